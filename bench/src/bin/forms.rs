//! Forms of one window beside each other: dense, columns of cells, points, compressed rows and compressed columns of the
//! same windows of one matrix, taking turns in one process.
//!
//! ```sh
//! cargo run --release --manifest-path bench/Cargo.toml --bin forms -- 0.01 0.05 0.2
//! ```
//!
//! The file is in memory and stays open. Every number is the smallest of many turns, in microseconds a window; in brackets
//! how many times as fast as the dense read. The last lines read everything, beside `read_columns`. With
//! `--processor-time` the clock counts what all threads of the process compute, which means more on a busy machine;
//! `--chunk=65x5000` sets the shape of chunks, `--only=rows` picks lines, `--seconds=2` is how long each line takes.

use pumice::{Dataset, File, Lines, Points, Selection};
use std::error::Error;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error>>;

const ROWS: u64 = 20_000;
const COLUMNS: u64 = 5_000;
const FORMS: [&str; 5] = ["dense", "columns", "points", "CSR", "CSC"];

/// Numbers that look random and are the same in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    /// Less than a bound.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// A matrix of cells that are scattered evenly.
fn matrix(file: &File, density: f64, chunk: Option<[u64; 2]>) -> Outcome<Dataset> {
    let builder = file.new_dataset::<f32>().shape([ROWS, COLUMNS]).sparse();
    let builder = match chunk {
        Some(chunk) => builder.chunk(chunk),
        None => builder.expected_density(density),
    };
    let matrix = builder.create("d")?;
    let (mut noise, mut pointers, mut columns) = (Noise(606), vec![0u32], Vec::new());
    let limit = (density * (1u64 << 32) as f64) as u64;
    for _ in 0..ROWS {
        columns.extend((0..COLUMNS as u32).filter(|_| noise.below(1 << 32) < limit));
        pointers.push(columns.len() as u32);
    }
    let values: Vec<f32> = columns.iter().map(|_| noise.below(4095) as f32 / 4.0).collect();
    matrix.write_at(&Points::compressed_rows(&pointers, &columns)?, &values)?;
    file.flush()?;
    Ok(matrix)
}

/// Windows of one kind, and how they are called.
fn kinds(noise: &mut Noise) -> Outcome<Vec<(String, Vec<Selection>)>> {
    let mut kinds = Vec::new();
    for size in [32, 128, 1024] {
        let ranges =
            (0..4).map(|_| Selection::block(&[noise.below(ROWS - size), 0], &[size, COLUMNS]));
        kinds.push((format!("{size} rows"), ranges.collect::<Result<Vec<_>, _>>()?));
        let scattered = (0..4).map(|_| {
            let mut rows: Vec<u64> = (0..size).map(|_| noise.below(ROWS)).collect();
            rows.sort_unstable();
            rows.dedup();
            let rows = rows.into_iter().map(|row| Selection::block(&[row, 0], &[1, COLUMNS]));
            let rows = rows.collect::<Result<Vec<_>, _>>()?;
            Selection::union_of(2, rows, &[ROWS, COLUMNS])
        });
        kinds.push((format!("{size} rows, scattered"), scattered.collect::<Result<Vec<_>, _>>()?));
    }
    let columns = (0..4).map(|_| Selection::block(&[0, noise.below(COLUMNS)], &[ROWS, 1]));
    kinds.push(("a column".into(), columns.collect::<Result<Vec<_>, _>>()?));
    for edge in [50, 200, 1000] {
        let boxes = (0..8).map(|_| {
            let corner = [noise.below(ROWS - edge), noise.below(COLUMNS - edge)];
            Selection::block(&corner, &[edge, edge])
        });
        kinds.push((format!("{edge} x {edge}"), boxes.collect::<Result<Vec<_>, _>>()?));
    }
    Ok(kinds)
}

/// Seconds, as the system tells them.
#[repr(C)]
struct Moment {
    seconds: i64,
    nanoseconds: i64,
}

unsafe extern "C" {
    fn clock_gettime(clock: i32, moment: *mut Moment) -> i32;
}

/// Whether time of processors is measured, or that of the clock.
static OF_PROCESSORS: OnceLock<bool> = OnceLock::new();

/// Seconds since some moment.
fn now() -> f64 {
    let clock = if OF_PROCESSORS.get() == Some(&true) { 2 } else { 1 };
    let mut moment = Moment { seconds: 0, nanoseconds: 0 };
    // SAFETY: `Moment` is the system's `timespec` on 64-bit Linux.
    unsafe { clock_gettime(clock, &mut moment) };
    moment.seconds as f64 + moment.nanoseconds as f64 * 1e-9
}

fn read(matrix: &Dataset, form: &str, window: &Selection) -> Outcome<()> {
    match form {
        "dense" => drop(black_box(matrix.read::<f32>(window)?)),
        "columns" => drop(black_box(matrix.read_columns::<u32, f32>(window)?)),
        "points" => drop(black_box(matrix.read_defined::<f32>(window)?)),
        "CSR" => drop(black_box(matrix.read_compressed_of::<f32>(window, Lines::Rows)?)),
        _ => drop(black_box(matrix.read_compressed_of::<f32>(window, Lines::Columns)?)),
    }
    Ok(())
}

/// The smallest time of each form, in microseconds a window, of turns that take so many seconds together.
fn least(
    seconds: f64,
    forms: &[&str],
    windows: &[Selection],
    matrix: &Dataset,
) -> Outcome<Vec<f64>> {
    let mut least = vec![f64::INFINITY; forms.len()];
    let begun = Instant::now();
    let mut turns = 0;
    while turns < 4 || begun.elapsed().as_secs_f64() < seconds {
        for (form, least) in forms.iter().zip(&mut least) {
            let turn = now();
            windows.iter().try_for_each(|window| read(matrix, form, window))?;
            *least = least.min((now() - turn) * 1e6 / windows.len() as f64);
        }
        turns += 1;
    }
    Ok(least)
}

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    OF_PROCESSORS.get_or_init(|| words.iter().any(|word| word == "--processor-time"));
    let part = words.iter().find_map(|word| word.strip_prefix("--only=")).unwrap_or("");
    let seconds =
        words.iter().find_map(|word| word.strip_prefix("--seconds=")).unwrap_or("2").parse()?;
    let chunk = words.iter().find_map(|word| word.strip_prefix("--chunk=")).map(|word| {
        let sides: Vec<u64> = word.split('x').filter_map(|side| side.parse().ok()).collect();
        [sides[0], sides[1]]
    });
    for density in words.iter().filter(|word| !word.starts_with("--")) {
        let file = File::in_memory()?;
        let matrix = matrix(&file, density.parse()?, chunk)?;
        println!("\n{density}, chunks {:?}\n\n| | {} |", matrix.chunk(), FORMS.join(" | "));
        println!("|---{}|", "|---".repeat(FORMS.len()));
        for (name, windows) in kinds(&mut Noise(707))? {
            if !name.contains(part) {
                continue;
            }
            let times = least(seconds, &FORMS, &windows, &matrix)?;
            let cells = times.iter().map(|time| format!("{time:.1} ({:.2}x)", times[0] / time));
            println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
        if "everything".contains(part) {
            let all = [Selection::block(&[0, 0], &[ROWS, COLUMNS])?];
            let times = least(2.0 * seconds, &FORMS[1..], &all, &matrix)?;
            let cells = times
                .iter()
                .map(|time| format!("{time:.0} ({:.2} of columns' time)", time / times[0]));
            println!("| everything | | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
    }
    Ok(())
}
