//! Reads of one dense file by three readers in Rust, one thread each.
//!
//! `readers OPERATION READER PATH` reads dataset `d` (square, 32-bit floats) and prints seconds and a
//! sum; `readers.py` takes turns with h5py. Opening the file is part of the time.

use std::hint::black_box;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// How many rows or columns are read, one call each.
const LINES: u64 = 128;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [operation, reader, path] = arguments.as_slice() else {
        return Err("usage: readers all|rows|columns pumice|rust-hdf5|hdf5-reader|pread FILE".into());
    };
    let began = Instant::now();
    let sum = match reader.as_str() {
        "pumice" => pumice(operation, path)?,
        "rust-hdf5" => rust_hdf5(operation, path)?,
        "hdf5-reader" => hdf5_reader(operation, path)?,
        "pread" => pread(path)?,
        other => return Err(format!("no reader {other}").into()),
    };
    println!("{} {sum}", began.elapsed().as_secs_f64());
    Ok(())
}

/// The first elements' sum: proof that something was read, for little time.
fn sum(values: &[f32]) -> f64 {
    black_box(values).iter().step_by(4099).map(|&value| f64::from(value)).sum()
}

fn pumice(operation: &str, path: &str) -> Outcome<f64> {
    let context = pumice::Context::builder().threads(1).build()?;
    let file = pumice::File::options().context(&context).open(path)?;
    let dataset = file.dataset("d")?;
    let middle = dataset.shape()[0] / 2;
    let mut total = 0.0;
    match operation {
        "all" => total += sum(&dataset.read::<f32>(..)?),
        "rows" => {
            for row in middle..middle + LINES {
                total += sum(&dataset.read::<f32>((row..row + 1, ..))?);
            }
        }
        _ => {
            for column in middle..middle + LINES {
                total += sum(&dataset.read::<f32>((.., column..column + 1))?);
            }
        }
    }
    Ok(total)
}

fn rust_hdf5(operation: &str, path: &str) -> Outcome<f64> {
    let file = rust_hdf5::H5File::open(path)?;
    let dataset = file.dataset("d")?;
    let edge = dataset.shape()[0];
    let lines = edge / 2..edge / 2 + LINES as usize;
    let mut total = 0.0;
    match operation {
        "all" => total += sum(&dataset.read_raw::<f32>()?),
        "rows" => {
            for row in lines {
                total += sum(&dataset.read_slice::<f32>(&[row, 0], &[1, edge])?);
            }
        }
        _ => {
            for column in lines {
                total += sum(&dataset.read_slice::<f32>(&[0, column], &[edge, 1])?);
            }
        }
    }
    Ok(total)
}

fn hdf5_reader(operation: &str, path: &str) -> Outcome<f64> {
    use hdf5_reader::{SliceInfo, SliceInfoElem};
    let file = hdf5_reader::Hdf5File::open(path)?;
    let dataset = file.dataset("/d")?;
    let edge = dataset.shape()[0];
    let whole = SliceInfoElem::Slice { start: 0, end: edge, step: 1 };
    let one = |line| SliceInfoElem::Slice { start: line, end: line + 1, step: 1 };
    let flat = |array: &ndarray::ArrayD<f32>| array.as_slice().map(sum).unwrap_or(f64::NAN);
    let mut total = 0.0;
    match operation {
        "all" => total += flat(&dataset.read_array::<f32>()?),
        _ => {
            for line in edge / 2..edge / 2 + LINES {
                let selections = match operation {
                    "rows" => vec![one(line), whole.clone()],
                    _ => vec![whole.clone(), one(line)],
                };
                total += flat(&dataset.read_slice::<f32>(&SliceInfo { selections })?);
            }
        }
    }
    Ok(total)
}

/// What the system takes for the same bytes of a contiguous dataset at the end of its file.
fn pread(path: &str) -> Outcome<f64> {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::open(path)?;
    let length = file.metadata()?.len() as usize & !((1 << 20) - 1);
    let mut values = vec![0f32; length / size_of::<f32>()];
    file.read_exact_at(bytemuck::cast_slice_mut(&mut values), 0)?;
    Ok(sum(&values))
}
