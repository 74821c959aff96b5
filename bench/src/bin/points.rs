//! What each way of writing points to a sparse dataset brings: the same cells in the three orders that the
//! ways need. `cargo run --release --bin points -- 100` has so many in each of 10,000 rows.
//!
//! Pairs in order of rows, one of them out of place, take the general way, which sorts them by chunk; in order
//! they are put together band by band; as compressed rows they are encoded in the pass that splits them.

use pumice::{Column, Context, File, MemoryStore, Points};
use std::sync::Arc;
use std::time::Instant;

const ROWS: usize = 10_000;
const COLUMNS: u64 = 10_000;
const ROUNDS: usize = 9;

/// Filters of the dataset.
#[derive(Clone, Copy)]
enum Filters {
    None,
    Locations,
    Default,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let in_a_row: usize = std::env::args().nth(1).map_or(Ok(100), |text| text.parse())?;
    let step = COLUMNS / in_a_row as u64;
    let cell = |at: usize| (at % in_a_row) as u64 * step + (at * 7919) as u64 % step;
    let pointers: Vec<u64> = (0..=ROWS).map(|row| (row * in_a_row) as u64).collect();
    let columns: Vec<u64> = (0..ROWS * in_a_row).map(cell).collect();
    let rows: Vec<u64> = (0..ROWS * in_a_row).map(|at| (at / in_a_row) as u64).collect();
    let values: Vec<f32> = (0..rows.len()).map(|at| at as f32).collect();
    let mut late_rows = rows.clone();
    let mut late_columns = columns.clone();
    let mut late_values = values.clone();
    let last = rows.len() - 1;
    late_rows.swap(0, last);
    late_columns.swap(0, last);
    late_values.swap(0, last);
    println!("| ms | no filters | values without filters | default filters |\n|---|---|---|---|");
    let pairs = |rows, columns| -> pumice::Result<Points<'_>> {
        Ok(Points::columns([Column::from(rows), Column::from(columns)])?)
    };
    let ways = [
        ("sorted by chunk", pairs(&late_rows[..], &late_columns[..])?, &late_values),
        ("band by band", pairs(&rows[..], &columns[..])?, &values),
        ("encoded rows", Points::compressed_rows(&pointers[..], &columns[..])?, &values),
    ];
    for (name, points, values) in &ways {
        let [none, plain, all] = [Filters::None, Filters::Locations, Filters::Default]
            .map(|filters| best(points, values, filters));
        println!("| {name} | {:.1} | {:.1} | {:.1} |", none?, plain?, all?);
    }
    Ok(())
}

/// The shortest of some rounds of writing and flushing, in milliseconds.
fn best(points: &Points<'_>, values: &[f32], filters: Filters) -> pumice::Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let context = Context::builder().build()?;
        let file = File::options().context(&context).create_in(Arc::new(MemoryStore::default()))?;
        let new = file.new_dataset::<f32>().shape([ROWS as u64, COLUMNS]).sparse();
        let new = match filters {
            Filters::None => new.no_filters(),
            Filters::Locations => new.value_filters(vec![]),
            Filters::Default => new,
        };
        let dataset = new.create("a")?;
        let start = Instant::now();
        dataset.write_at(points, values)?;
        file.flush()?;
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(best)
}
