//! The Rust side of the benchmark: one command per line on standard input, one answer per line on
//! standard output.
//!
//! `bench.py` drives it, so that Pumice's operations take turns with its peers' in one run. Input
//! arrays are loaded once, before any clock starts. An operation opens the file, does its work and
//! closes the file, all inside the measured time. The answer is
//! `seconds count sum` (elements touched and their sum, for checking) or `error message`.

mod dense;
mod many;
mod sparse;
mod strings;
mod threads;
mod windows;

use std::error::Error;
use std::fs;
use std::io::{self, BufRead, Write};
use std::time::Instant;

/// Anything that goes wrong is told to the driver.
type Outcome<T> = Result<T, Box<dyn Error>>;

/// What an operation touched; lets the driver check that work was done, and done right.
#[derive(Debug, Default, Clone, Copy)]
pub struct Touched {
    count: u64,
    sum: f64,
}

impl Touched {
    /// Counts and sums values; the driver asks for it, so it is part of no measured time.
    pub fn of(values: &[f32]) -> Self {
        let sum = values.iter().map(|&value| f64::from(value)).sum();
        Self { count: values.len() as u64, sum }
    }
}

/// The arrays that write operations take their data from.
#[derive(Debug, Default)]
pub struct Input {
    /// Edge of the square array.
    edge: u64,
    /// A sparse matrix as compressed rows: where each row begins, and the column of each cell.
    pointers: Vec<u32>,
    columns: Vec<u32>,
    /// Cells to look up, to change and to erase: all rows, then all columns.
    points: Vec<u32>,
    changed: Vec<u32>,
    erased: Vec<u32>,
    /// Values of the defined cells, or of all cells of a dense array.
    values: Vec<f32>,
    /// Row and column of the first cell of each window.
    windows: Vec<u64>,
    /// Strings of variable length.
    strings: pumice::Strings,
}

/// What stays from one command to the next.
#[derive(Default)]
struct State {
    input: Input,
    opened: Option<windows::Opened>,
}

fn main() -> io::Result<()> {
    let mut state = State::default();
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        match answer(&mut state, &words) {
            Ok(text) => writeln!(out, "{text}")?,
            Err(error) => writeln!(out, "error {}", error.to_string().replace('\n', " "))?,
        }
        out.flush()?;
    }
    Ok(())
}

fn answer(state: &mut State, words: &[&str]) -> Outcome<String> {
    let State { input, opened } = state;
    let (&verb, arguments) = words.split_first().ok_or("empty command")?;
    match (verb, arguments) {
        ("version", []) => Ok(env!("CARGO_PKG_VERSION").into()),
        ("load-sparse", [edge, folder]) => {
            let part = |name: &str| load(&format!("{folder}/{name}.bin"));
            *input = Input {
                edge: edge.parse()?,
                pointers: part("pointers")?,
                columns: part("columns")?,
                points: part("points")?,
                changed: part("changed")?,
                erased: part("erased")?,
                values: load(&format!("{folder}/values.bin"))?,
                windows: Vec::new(),
                strings: pumice::Strings::new(),
            };
            Ok("ok".into())
        }
        ("load-dense", [edge, values, windows]) => {
            *input = Input {
                edge: edge.parse()?,
                values: load(values)?,
                windows: load(windows)?,
                ..Input::default()
            };
            Ok("ok".into())
        }
        ("load-rows", [folder]) => {
            let part = |name: &str| load(&format!("{folder}/{name}.bin"));
            let values = load(&format!("{folder}/values.bin"))?;
            let (pointers, columns) = (part("pointers")?, part("columns")?);
            *input = Input { pointers, columns, values, ..Input::default() };
            Ok("ok".into())
        }
        ("windows-write", [path, columns, chunk @ ..]) => {
            let chunk = match chunk {
                [rows, columns] => Some([rows.parse()?, columns.parse()?]),
                _ => None,
            };
            windows::write(input, path, columns.parse()?, chunk)?;
            Ok("ok".into())
        }
        ("windows-open", [path]) => {
            *opened = Some(windows::open(path)?);
            Ok("ok".into())
        }
        ("windows-close", []) => {
            *opened = None;
            Ok("ok".into())
        }
        ("windows-read", [form, kind, rest @ ..]) => {
            windows::read(opened.as_mut().ok_or("no file open")?, form, kind, rest)
        }
        ("load-strings", [folder]) => {
            *input = Input { strings: strings::load(folder)?, ..Input::default() };
            Ok("ok".into())
        }
        (verb, [path]) if verb.starts_with("strings-") => strings::run(&input.strings, verb, path),
        ("many", [path, accesses, count, write, limit]) => {
            let (count, write, limit) = (count.parse()?, *write == "write", limit.parse()?);
            many::run(path, &load(accesses)?, count, write, limit)
        }
        _ => measured(input, verb, arguments),
    }
}

/// Runs one operation, timed; what it read is summed after the clock has stopped.
fn measured(input: &Input, verb: &str, arguments: &[&str]) -> Outcome<String> {
    let (&path, numbers) = arguments.split_first().ok_or("no file named")?;
    let numbers: Vec<u64> = numbers.iter().map(|n| n.parse()).collect::<Result<_, _>>()?;
    let mut columns: Vec<Vec<u32>> = Vec::new();
    let start = Instant::now();
    let read: Vec<f32> = match (verb, numbers.as_slice()) {
        ("sparse-write", &[filtered]) => sparse::write(input, path, filtered != 0)?,
        ("sparse-all", []) => sparse::read_all(path)?,
        ("sparse-where", []) => {
            columns = sparse::defined(path)?;
            Vec::new()
        }
        ("sparse-points", []) => sparse::points(input, path)?,
        ("sparse-update", []) => sparse::update(input, path)?,
        ("sparse-erase", []) => sparse::erase(input, path)?,
        ("sparse-box", &[row, column, rows, columns]) => {
            sparse::read_box(path, [row, column], [rows, columns])?
        }
        ("dense-write", &[chunk, level]) => dense::write(input, path, chunk, level)?,
        ("threads", &[threads]) => threads::read_all(path, threads as usize)?,
        ("threads-control", &[threads]) => threads::control(path, threads as usize)?,
        ("plain-read", &[offset]) => dense::read_plain(path, offset)?,
        ("dense-all", []) => dense::read_all(path)?,
        ("dense-rows", &[first, count]) => dense::read_rows(path, first, count)?,
        ("dense-columns", &[first, count]) => dense::read_columns(path, first, count)?,
        ("dense-windows", &[edge]) => dense::read_windows(input, path, edge)?,
        _ => return Err(format!("no command {verb} {}", arguments.join(" ")).into()),
    };
    let seconds = start.elapsed().as_secs_f64();
    let mut touched = Touched::of(&read);
    if let Some(column) = columns.first() {
        // Coordinates alone are counted, each as one.
        touched = Touched { count: column.len() as u64, sum: column.len() as f64 };
    }
    Ok(format!("{seconds:.9} {} {:.6}", touched.count, touched.sum))
}

/// A file of packed little-endian elements.
fn load<T: bytemuck::AnyBitPattern + bytemuck::NoUninit>(path: &str) -> Outcome<Vec<T>> {
    let bytes = fs::read(path)?;
    let mut values = vec![T::zeroed(); bytes.len() / size_of::<T>()];
    bytemuck::cast_slice_mut::<T, u8>(&mut values).copy_from_slice(&bytes);
    Ok(values)
}
