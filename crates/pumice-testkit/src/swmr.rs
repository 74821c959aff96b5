//! `pumice-interop append` and `follow`: one program that writes a dataset, others that read it meanwhile.
//!
//! Cell `(row, column)` is `1000 * row + column`, so that every reader knows what it must find.

use anyhow::{Context, Result, bail, ensure};
use pumice::{Dataset, Error, File, Locking};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// The pause of a slow writer.
const PAUSE: Duration = Duration::from_millis(30);

/// The longest wait of a reader.
const PATIENCE: Duration = Duration::from_secs(60);

/// The cells of a dataset of this shape; a single axis is one of rows.
fn cells(rows: std::ops::Range<u64>, shape: &[u64]) -> Vec<i64> {
    let columns = shape.get(1).copied().unwrap_or(1);
    rows.flat_map(|row| (0..columns).map(move |column| (1000 * row + column) as i64)).collect()
}

/// Appends `rows` rows to each of the datasets, `times` times, and says after each flush how many there are. With
/// `wide`, each time adds a column, too, and all cells are written; with `slow`, readers have time to see each state.
pub(crate) fn append(file: &Path, paths: &str, times: u64, rows: u64, how: &str) -> Result<()> {
    let (swmr, wide) = (how.contains("swmr"), how.contains("wide"));
    let file = File::options().swmr(swmr).edit(file)?;
    ensure!(file.is_swmr() == swmr, "SWMR was not started");
    let datasets: Vec<Dataset> =
        paths.split(',').map(|path| file.dataset(path)).collect::<Result<_, _>>()?;
    for _ in 0..times {
        let mut reached = 0;
        for dataset in &datasets {
            let mut shape = dataset.shape();
            let first = shape.first().copied().context("a dataset without axes")?;
            reached = first + rows;
            shape[0] = reached;
            if let Some(columns) = shape.get_mut(1).filter(|_| wide) {
                *columns += 1;
            }
            dataset.resize(&shape)?;
            let first = if wide { 0 } else { first };
            let values = cells(first..reached, &shape);
            match shape.len() {
                1 => dataset.write(first..reached, &values)?,
                _ => dataset.write((first..reached, ..), &values)?,
            }
        }
        file.flush()?;
        println!("{reached}");
        std::io::stdout().flush()?;
        if how.contains("slow") {
            std::thread::sleep(PAUSE);
        }
    }
    Ok(file.close()?)
}

/// Reads a dataset until it has `last` rows, and says how many lengths it saw and how often it was told to try again.
pub(crate) fn follow(file: &Path, path: &str, last: u64, how: &str) -> Result<()> {
    let begun = Instant::now();
    let swmr = how.contains("swmr");
    let open = || {
        let options = File::options().swmr(swmr);
        let options = if swmr { options } else { options.locking(Locking::Off) };
        let file = options.open(file)?;
        let dataset = file.dataset(path)?;
        Ok::<_, Error>((file, dataset))
    };
    let (mut lengths, mut again, mut rows) = (0u64, 0u64, 0);
    let mut opened = None;
    while rows < last {
        ensure!(
            begun.elapsed() < PATIENCE,
            "{rows} rows of {last}, {again} times told to try again"
        );
        let seen = match opened.take() {
            None => open().and_then(|(file, dataset)| Ok((look(&dataset)?, file, dataset))),
            Some((file, dataset)) => {
                refreshed(how, &file, &dataset).and_then(|()| Ok((look(&dataset)?, file, dataset)))
            }
        };
        let (shape, values) = match seen {
            Ok((seen, file, dataset)) => {
                opened = Some((file, dataset));
                seen
            }
            Err(error) if !swmr && error.is_changed() => {
                again += 1;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let found = shape.first().copied().unwrap_or(0);
        ensure!(found >= rows, "{rows} rows became {found}");
        if values != cells(0..found, &shape) {
            let wrong = values.iter().zip(cells(0..found, &shape)).position(|(a, b)| *a != b);
            bail!("shape {shape:?}: cell number {wrong:?} is wrong");
        }
        lengths += u64::from(found > rows);
        rows = found;
    }
    println!("{lengths} {again}");
    Ok(())
}

fn refreshed(how: &str, file: &File, dataset: &Dataset) -> pumice::Result<()> {
    if how.contains("file") { file.refresh() } else { dataset.refresh() }
}

/// The shape and all cells.
fn look(dataset: &Dataset) -> pumice::Result<(Vec<u64>, Vec<i64>)> {
    let shape = dataset.shape();
    let values = dataset.read::<i64>(..)?;
    Ok((shape, values))
}
