//! A loader of single-cell data: a matrix of compressed rows goes in, shuffled batches of rows come out.
//!
//! ```sh
//! cargo run -p pumice --example single_cell_batches -- cells.h5
//! ```

use pumice::{Compressed, Duplicates, File, Lines};

fn main() -> pumice::Result<()> {
    let path = std::env::args_os().nth(1).unwrap_or("cells.h5".into());
    let (cells, genes, counts) = counts();
    // The job.
    let file = File::create(path)?;
    let matrix = file.new_dataset::<f32>().shape([cells, genes]).sparse().create("X")?;
    matrix.write_compressed([&counts], Duplicates::Error)?;
    let mut batch = Compressed::<f32>::new(Lines::Rows);
    for epoch in 0..2 {
        for rows in shuffled(cells, epoch).chunks(256) {
            matrix.read_rows_into(rows, &mut batch)?;
            println!("{} {} {:?}", rows[0], batch.len(), batch.values.iter().sum::<f32>());
        }
    }
    file.close()
}

/// 2,000 cells by 500 genes, about 25 counts in a row.
fn counts() -> (u64, u64, Compressed<f32>) {
    let mut counts = Compressed::new(Lines::Rows);
    counts.pointers.push(0);
    for cell in 0..2000u64 {
        for gene in (cell % 20..500).step_by(20) {
            counts.indices.push(gene);
            counts.values.push(((cell * gene) % 7) as f32);
        }
        counts.pointers.push(counts.indices.len() as u64);
    }
    (2000, 500, counts)
}

/// Every row once, in an order of the epoch.
fn shuffled(rows: u64, epoch: u64) -> Vec<u64> {
    (0..rows).map(|row| (row * 7919 + epoch * 31) % rows).collect()
}
