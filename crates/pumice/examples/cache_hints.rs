//! Telling the cache how a dataset is used, and reading its statistics.
//!
//! A scan through a large dataset could evict chunks that another part of the program uses. The
//! default policy resists that; a hint or a limit for one dataset makes it certain.
//!
//! ```sh
//! cargo run --release -p pumice --example cache_hints
//! ```

use pumice::{CacheOptions, Context, Dataset, File, Hint};

pub(crate) fn main() -> pumice::Result<()> {
    let context = Context::builder().cache_bytes(4 << 20).build()?;
    let path = std::env::temp_dir().join(format!("cache-hints-{}.h5", std::process::id()));
    let file = File::options().context(&context).create(&path)?;
    let table = create(&file, "table", 512)?;
    let archive = create(&file, "archive", 4096)?;

    for (what, options) in [
        ("no hint", CacheOptions::default()),
        ("each chunk once", CacheOptions::default().hint(Hint::Once)),
        ("at most 512 KiB", CacheOptions::default().maximum(512 << 10)),
    ] {
        archive.set_cache_options(options);
        let before = table.cache_stats();
        for row in (0..4096u64).step_by(64) {
            // The scan, and between its steps the table that is used all the time.
            archive.read::<f32>((row..row + 64, ..))?;
            table.read::<f32>((row * 7 % 512, ..))?;
        }
        let after = table.cache_stats();
        assert!(after.hits - before.hits > after.misses - before.misses, "{what}");
        println!(
            "{what}: the table was served {} times from memory, {} chunks were read again",
            after.hits - before.hits,
            after.misses - before.misses
        );
    }

    let stats = context.stats();
    println!(
        "in all: {} hits, {} misses, {} MiB read, {} ms decoding",
        stats.hits,
        stats.misses,
        stats.bytes_fetched >> 20,
        stats.decode_nanoseconds / 1_000_000
    );
    drop((table, archive));
    file.close()?;
    // The file is only in the way from here on.
    let _ = std::fs::remove_file(&path);
    Ok(())
}

fn create(file: &File, name: &str, rows: u64) -> pumice::Result<Dataset> {
    let builder = file.new_dataset::<f32>().shape([rows, 1024]).chunk([64, 256]);
    let dataset = builder.shuffle().deflate(1).create(name)?;
    let values: Vec<f32> = (0..rows * 1024).map(|i| (i % 1000) as f32).collect();
    dataset.write(.., &values)?;
    dataset.flush()?;
    Ok(dataset)
}
