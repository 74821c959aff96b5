//! Two thousand datasets open at once under one limit of memory.
//!
//! libhdf5 gives every dataset a cache of its own, so a total limit leaves each with less than a
//! chunk. Here all datasets share one cache, and the chunks in use fill it.
//!
//! ```sh
//! cargo run --release -p pumice --example many_datasets
//! ```

use pumice::{Context, Dataset, File};

const DATASETS: usize = 2000;
const LIMIT: u64 = 8 << 20;

pub(crate) fn main() -> pumice::Result<()> {
    let context = Context::builder().cache_bytes(LIMIT).build()?;
    let path = std::env::temp_dir().join(format!("many-datasets-{}.h5", std::process::id()));
    let file = File::options().context(&context).create(&path)?;
    let mut open: Vec<Dataset> = Vec::new();
    for number in 0..DATASETS {
        let builder = file.new_dataset::<f64>().shape([200, 64]).chunk([100, 64]);
        open.push(builder.shuffle().deflate(1).create(&format!("d{number:04}"))?);
    }

    // Write a little to each, then read mostly from a few: those stay in memory.
    for (number, dataset) in open.iter().enumerate() {
        dataset.write((0..100, ..), &vec![number as f64; 6400])?;
    }
    let mut sum = 0.0;
    for access in 0..20_000usize {
        let number = if access % 20 == 0 { access * 7 % DATASETS } else { access % 40 * 50 };
        sum += open[number].read::<f64>((access as u64 % 90, 3))?[0];
    }

    let stats = context.stats();
    let served = stats.hits as f64 / (stats.hits + stats.misses) as f64;
    assert!(stats.peak <= LIMIT + LIMIT / 2, "chunks being loaded and written count, too");
    assert!(served > 0.5, "the forty datasets that are read most stay in memory");
    println!("sum {sum}");
    println!("{} hits, {} misses: {:.1} % from memory", stats.hits, stats.misses, served * 100.0);
    println!("at most {:.1} MiB held, {} MiB allowed", mib(stats.peak), LIMIT >> 20);
    println!("{} chunks written back, {} let go", stats.write_backs, stats.evictions);
    drop(open);
    file.close()?;
    // The file is only in the way from here on.
    let _ = std::fs::remove_file(&path);
    Ok(())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64
}
