//! What each way of writing points to a sparse dataset brings: the same million cells in the three orders that
//! the ways need. `cargo run --release --bin points`.
//!
//! Pairs in order of rows, one of them out of place, take the general way, which sorts them by chunk; in order
//! they are put together band by band; as compressed rows they are encoded in the pass that splits them.

use pumice::{Column, Context, File, MemoryStore, Points};
use std::sync::Arc;
use std::time::Instant;

const ROWS: usize = 10_000;
const COLUMNS: u64 = 10_000;
const IN_A_ROW: usize = 100;
const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let step = COLUMNS / IN_A_ROW as u64;
    let cell = |at: usize| (at % IN_A_ROW) as u64 * step + (at * 7919) as u64 % step;
    let pointers: Vec<u64> = (0..=ROWS).map(|row| (row * IN_A_ROW) as u64).collect();
    let columns: Vec<u64> = (0..ROWS * IN_A_ROW).map(cell).collect();
    let rows: Vec<u64> = (0..ROWS * IN_A_ROW).map(|at| (at / IN_A_ROW) as u64).collect();
    let values: Vec<f32> = (0..rows.len()).map(|at| at as f32).collect();
    let mut late_rows = rows.clone();
    let mut late_columns = columns.clone();
    let mut late_values = values.clone();
    let last = rows.len() - 1;
    late_rows.swap(0, last);
    late_columns.swap(0, last);
    late_values.swap(0, last);
    println!("| way | no filters, ms | deflate, ms |\n|---|---|---|");
    let pairs = |rows, columns| -> pumice::Result<Points<'_>> {
        Ok(Points::columns([Column::from(rows), Column::from(columns)])?)
    };
    let ways = [
        ("sorted by chunk", pairs(&late_rows[..], &late_columns[..])?, &late_values),
        ("band by band", pairs(&rows[..], &columns[..])?, &values),
        ("encoded rows", Points::compressed_rows(&pointers[..], &columns[..])?, &values),
    ];
    for (name, points, values) in &ways {
        let [plain, deflated] = [false, true].map(|deflates| best(points, values, deflates));
        println!("| {name} | {:.1} | {:.1} |", plain?, deflated?);
    }
    Ok(())
}

/// The shortest of some rounds of writing and flushing, in milliseconds.
fn best(points: &Points<'_>, values: &[f32], deflates: bool) -> pumice::Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let context = Context::builder().build()?;
        let file = File::options().context(&context).create_in(Arc::new(MemoryStore::default()))?;
        let new = file.new_dataset::<f32>().shape([ROWS as u64, COLUMNS]).sparse();
        let dataset = if deflates { new.deflate(4) } else { new.no_filters() }.create("a")?;
        let start = Instant::now();
        dataset.write_at(points, values)?;
        file.flush()?;
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(best)
}
