//! Threads of a program share a dataset: reads run side by side, a chunk that two threads want is
//! decoded once, and a write is seen whole or not at all.
//!
//! ```sh
//! cargo run --release -p pumice --example many_threads
//! ```

use pumice::{Context, File};

const SIDE: u64 = 512;
const ROUNDS: u32 = 50;

pub(crate) fn main() -> pumice::Result<()> {
    let context = Context::builder().cache_bytes(4 << 20).build()?;
    let path = std::env::temp_dir().join(format!("many-threads-{}.h5", std::process::id()));
    let file = File::options().context(&context).create(&path)?;
    let builder = file.new_dataset::<u32>().shape([SIDE, SIDE]).chunk([64, 64]);
    let dataset = builder.shuffle().deflate(1).create("counter")?;

    // One thread fills the same window again and again, each time with one number; the others must
    // never see two numbers in it, although it lies in four chunks.
    let window = (32..96, 32..96);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| -> pumice::Result<()> {
            for round in 1..=ROUNDS {
                dataset.write(window.clone(), &vec![round; 64 * 64])?;
            }
            Ok(())
        });
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| -> pumice::Result<u32> {
                    let mut last = 0;
                    while last < ROUNDS {
                        let seen = dataset.read::<u32>(window.clone())?;
                        assert!(seen.iter().all(|&value| value == seen[0]), "half of a write");
                        assert!(seen[0] >= last, "an older value after a newer one");
                        last = seen[0];
                    }
                    Ok(last)
                })
            })
            .collect();
        for thread in readers {
            thread.join().expect("a reader panicked")?;
        }
        writer.join().expect("the writer panicked")
    })?;

    println!("{:?}", dataset.cache_stats());
    drop(dataset);
    file.close()?;
    // The file is only in the way from here on.
    let _ = std::fs::remove_file(&path);
    Ok(())
}
