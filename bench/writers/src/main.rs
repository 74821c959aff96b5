//! Writes with Pumice what `writers.py` writes with h5py, and prints the seconds of each step.
//!
//! ```text
//! pumice-bench-writers objects|attributes|append COUNT FILE
//! pumice-bench-writers contiguous|pwrite GIB FILE
//! ```

use pumice::File;
use std::error::Error;
use std::os::unix::fs::FileExt;
use std::time::Instant;

type Done = Result<Vec<f64>, Box<dyn Error>>;

/// Bytes that one call writes to the large dataset.
const PIECE: usize = 8 << 20;
const COLUMNS: u64 = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [operation, count, path] = arguments.as_slice() else {
        return Err("usage: OPERATION COUNT FILE".into());
    };
    let count: u64 = count.parse()?;
    let seconds = match operation.as_str() {
        "objects" => objects(count, path)?,
        "attributes" => attributes(count, path)?,
        "append" => append(count, path)?,
        "contiguous" => contiguous(count, path)?,
        "pwrite" => pwrite(count, path)?,
        other => return Err(format!("no operation {other}").into()),
    };
    let texts: Vec<_> = seconds.iter().map(|seconds| format!("{seconds:.6}")).collect();
    println!("{}", texts.join(" "));
    Ok(())
}

/// Seconds of creating, finding and deleting many groups; each step ends with the file flushed or
/// closed.
fn objects(count: u64, path: &str) -> Done {
    let mut watch = Watch::new();
    let file = File::create(path)?;
    for number in 0..count {
        file.create_group(&format!("group {number}"))?;
    }
    file.close()?;
    watch.lap();
    let file = File::edit(path)?;
    for number in scattered(count) {
        file.group(&format!("group {number}"))?;
    }
    watch.lap();
    for number in scattered(count) {
        file.unlink(&format!("group {number}"))?;
    }
    file.close()?;
    watch.lap();
    Ok(watch.laps)
}

fn attributes(count: u64, path: &str) -> Done {
    let mut watch = Watch::new();
    let file = File::create(path)?;
    let group = file.create_group("group")?;
    for number in 0..count {
        group.set_attribute(&format!("attribute {number}"), number as i64)?;
    }
    drop(group);
    file.close()?;
    watch.lap();
    let file = File::edit(path)?;
    let group = file.group("group")?;
    for number in scattered(count) {
        let value = group.attribute(&format!("attribute {number}"))?.read::<i64>()?;
        assert_eq!(value, [number as i64]);
    }
    watch.lap();
    for number in scattered(count) {
        group.remove_attribute(&format!("attribute {number}"))?;
    }
    drop(group);
    file.close()?;
    watch.lap();
    Ok(watch.laps)
}

/// Seconds of growing a dataset by a row and writing it, again and again.
fn append(count: u64, path: &str) -> Done {
    let mut watch = Watch::new();
    let file = File::create(path)?;
    let dataset = file
        .new_dataset::<f64>()
        .shape([0, COLUMNS])
        .max_shape([None, Some(COLUMNS)])
        .chunk([1024, COLUMNS])
        .create("rows")?;
    for row in 0..count {
        dataset.resize([row + 1, COLUMNS])?;
        dataset.write((row, ..), &[row as f64; COLUMNS as usize])?;
    }
    drop(dataset);
    file.close()?;
    watch.lap();
    Ok(watch.laps)
}

fn contiguous(gib: u64, path: &str) -> Done {
    let piece = numbers();
    let rows = (gib << 30) / PIECE as u64;
    let mut watch = Watch::new();
    let file = File::create(path)?;
    let dataset = file.new_dataset::<f32>().shape([rows, piece.len() as u64]).create("d")?;
    for row in 0..rows {
        dataset.write((row, ..), &piece)?;
    }
    drop(dataset);
    file.close()?;
    watch.lap();
    Ok(watch.laps)
}

fn pwrite(gib: u64, path: &str) -> Done {
    let piece = numbers();
    let bytes: &[u8] = bytemuck::cast_slice(&piece);
    let mut watch = Watch::new();
    let file = std::fs::File::create(path)?;
    for number in 0..(gib << 30) / PIECE as u64 {
        file.write_all_at(bytes, number * PIECE as u64)?;
    }
    drop(file);
    watch.lap();
    Ok(watch.laps)
}

fn numbers() -> Vec<f32> {
    (0..PIECE / 4).map(|number| number as f32).collect()
}

/// All numbers below `count`, all over the place.
fn scattered(count: u64) -> impl Iterator<Item = u64> {
    let step = (count as f64 * 0.618) as u64 | 1;
    let step = (step..).find(|step| gcd(*step, count) == 1).unwrap_or(1);
    (0..count).map(move |number| number * step % count)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Seconds from one lap to the next.
struct Watch {
    since: Instant,
    laps: Vec<f64>,
}

impl Watch {
    fn new() -> Self {
        Self { since: Instant::now(), laps: Vec::new() }
    }

    fn lap(&mut self) {
        self.laps.push(self.since.elapsed().as_secs_f64());
        self.since = Instant::now();
    }
}
