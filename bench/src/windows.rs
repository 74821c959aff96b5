//! Windows of a sparse matrix of 32-bit floats, dataset `d`, from a file that stays open: batches of rows, columns and
//! boxes, in several forms.

use crate::{Input, Outcome, Touched, load};
use pumice::{Compressed, Dataset, File, Lines, Points, Selection};
use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

/// A file that stays open from one operation to the next.
pub struct Opened {
    matrix: Dataset,
    _file: File,
    /// Memory that batches are read into.
    batch: Compressed<f32>,
}

/// Writes the matrix from compressed rows.
pub fn write(input: &Input, path: &str, columns: u64, chunk: Option<[u64; 2]>) -> Outcome<()> {
    let file = File::create(path)?;
    let rows = input.pointers.len() as u64 - 1;
    let density = input.values.len() as f64 / (rows as f64 * columns as f64);
    let builder = file.new_dataset::<f32>().shape([rows, columns]).sparse();
    let builder = match chunk {
        Some(chunk) => builder.chunk(chunk),
        None => builder.expected_density(density),
    };
    let matrix = builder.create("d")?;
    matrix.write_at(&Points::compressed_rows(&input.pointers, &input.columns)?, &input.values)?;
    drop(matrix);
    Ok(file.close()?)
}

/// Opens the file.
pub fn open(path: &str) -> Outcome<Opened> {
    let file = File::open(path)?;
    let (matrix, batch) = (file.dataset("d")?, Compressed::new(Lines::Rows));
    Ok(Opened { matrix, _file: file, batch })
}

/// Reads windows in one of several forms; the time is that of the reads alone.
pub fn read(opened: &mut Opened, form: &str, kind: &str, rest: &[&str]) -> Outcome<String> {
    let Opened { matrix, batch, .. } = opened;
    let mut total = Total::default();
    let [height, width] = [matrix.shape()[0], matrix.shape()[1]];
    match (kind, rest) {
        ("all", []) => total.read(matrix, form, &[], [0..height, 0..width], batch)?,
        ("rows", [list, size]) => {
            let rows: Vec<u64> = load(list)?;
            for rows in rows.chunks(size.parse()?) {
                let range = rows[0]..rows[rows.len() - 1] + 1;
                let listed = if range.end - range.start == rows.len() as u64 { &[] } else { rows };
                total.read(matrix, form, listed, [range, 0..width], batch)?;
            }
        }
        ("columns", [list]) => {
            for column in load::<u64>(list)? {
                total.read(matrix, form, &[], [0..height, column..column + 1], batch)?;
            }
        }
        ("boxes", [list, edge]) => {
            let edge: u64 = edge.parse()?;
            for corner in load::<u64>(list)?.chunks_exact(2) {
                let ranges = [corner[0]..corner[0] + edge, corner[1]..corner[1] + edge];
                total.read(matrix, form, &[], ranges, batch)?;
            }
        }
        _ => return Err(format!("no windows {kind} {}", rest.join(" ")).into()),
    }
    let Total { time, touched: Touched { count, sum } } = total;
    Ok(format!("{:.9} {count} {sum:.6}", time.as_secs_f64()))
}

#[derive(Default)]
struct Total {
    time: Duration,
    touched: Touched,
}

impl Total {
    /// One window: some rows if they are listed, else ranges.
    fn read(
        &mut self,
        matrix: &Dataset,
        form: &str,
        rows: &[u64],
        ranges: [Range<u64>; 2],
        batch: &mut Compressed<f32>,
    ) -> Outcome<()> {
        let [down, across] = ranges;
        let begun = Instant::now();
        let selection = || -> Outcome<Selection> {
            let (left, wide) = (across.start, across.end - across.start);
            if rows.is_empty() {
                let (top, high) = (down.start, down.end - down.start);
                return Ok(Selection::block(&[top, left], &[high, wide])?);
            }
            let mut sorted = rows.to_vec();
            sorted.sort_unstable();
            let row = |row| Selection::block(&[row, left], &[1, wide]);
            let rows = sorted.into_iter().map(row).collect::<Result<Vec<_>, _>>()?;
            Ok(Selection::union_of(2, rows, &matrix.shape())?)
        };
        let values = match form {
            "csr" if rows.is_empty() => {
                matrix.read_compressed_of(&selection()?, Lines::Rows)?.values
            }
            "csr" => matrix.read_rows::<f32>(rows)?.values,
            "csr-kept" => {
                batch.lines = Lines::Rows;
                match rows {
                    [] => matrix.read_compressed_into(&selection()?, batch)?,
                    _ => matrix.read_rows_into(rows, batch)?,
                }
                let time = begun.elapsed();
                return Ok(self.add(time, &batch.values));
            }
            "csc" => matrix.read_compressed_of(&selection()?, Lines::Columns)?.values,
            "columns" => {
                let found = matrix.read_columns::<u32, f32>(&selection()?)?;
                black_box(&found.coordinates);
                found.values
            }
            "defined" => {
                let found = matrix.read_defined::<f32>(&selection()?)?;
                black_box(&found.coordinates);
                found.values
            }
            "dense" => matrix.read::<f32>(&selection()?)?,
            _ => return Err(format!("no form {form}").into()),
        };
        self.add(begun.elapsed(), &values);
        Ok(())
    }

    fn add(&mut self, time: Duration, values: &[f32]) {
        let Touched { count, sum } = Touched::of(values);
        self.time += time;
        self.touched = Touched { count: self.touched.count + count, sum: self.touched.sum + sum };
    }
}
