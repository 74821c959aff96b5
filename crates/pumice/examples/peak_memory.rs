//! The memory that operations on datasets of very many chunks take, for every index.
//!
//! Every chunk has one cell of one byte, so the figures are the cost of chunks, not of cells. Each
//! operation runs in a process of its own. Its figure is the process's peak memory while it ran,
//! beyond the memory that it had before, the caller's buffer included in the latter.
//!
//! ```sh
//! cargo run --release -p pumice --example peak_memory -- 100000 1000000 10000000
//! cargo run --release -p pumice --example peak_memory -- 1000000 --only fixed,sparse
//! ```

use pumice::{
    AllocationTime, Context, CopyOptions, Dataset, File, FileOptions, LibraryVersion, Result,
};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of the cache; changed metadata has the usual limit.
const CACHE: u64 = 32 << 20;

const KINDS: [&str; 12] = [
    "fixed",
    "fixed-deflate",
    "extensible",
    "extensible-deflate",
    "extensible-early",
    "btree2",
    "btree2-deflate",
    "btree1",
    "btree1-early",
    "implicit-early",
    "sparse",
    "sparse-extensible",
];

/// In this order: each finds the file as the one before it has left it.
const OPERATIONS: [&str; 10] =
    ["create", "write", "overwrite", "read", "count", "copy", "erase", "shrink", "grow", "delete"];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["one", kind, operation, count, path] = words[..] {
        let chunks = count.parse().unwrap_or(1);
        return one(kind, operation, chunks, Path::new(path));
    }
    let only = words.iter().position(|word| *word == "--only").and_then(|at| words.get(at + 1));
    let chosen = |kind: &&&str| only.is_none_or(|only| only.split(',').any(|one| one == **kind));
    for count in words.iter().filter(|word| word.parse::<u64>().is_ok()) {
        println!("\n{count} chunks, MiB beyond the caller's buffer\n");
        println!("| index | {} |", OPERATIONS.join(" | "));
        println!("|---|{}", "---|".repeat(OPERATIONS.len()));
        for kind in KINDS.iter().filter(chosen) {
            row(kind, count);
        }
    }
    Ok(())
}

/// Runs all operations on one kind of dataset.
fn row(kind: &str, count: &str) {
    let path = std::env::temp_dir().join(format!("peak-memory-{}.h5", std::process::id()));
    let mut cells = Vec::new();
    for operation in OPERATIONS {
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("peak_memory"));
        let run = Command::new(program).args(["one", kind, operation, count]).arg(&path).output();
        cells.push(match run {
            Ok(run) if run.status.success() => String::from_utf8_lossy(&run.stdout).into_owned(),
            Ok(run) => {
                eprintln!("{kind} {operation}: {}", String::from_utf8_lossy(&run.stderr));
                "failed".into()
            }
            Err(error) => error.to_string(),
        });
    }
    println!("| {kind} | {} |", cells.join(" | "));
    // They are only in the way from here on.
    let _ = std::fs::remove_file(copy_of(&path));
    let _ = std::fs::remove_file(path);
}

fn copy_of(path: &Path) -> PathBuf {
    path.with_extension("copy.h5")
}

/// Runs one operation, and prints its peak memory in MiB.
fn one(kind: &str, operation: &str, chunks: u64, path: &Path) -> Result<()> {
    let context = Context::builder().cache_bytes(CACHE).build()?;
    let options = File::options().context(&context);
    let options = match kind {
        "btree1" | "btree1-early" => options.library_version(LibraryVersion::Earliest),
        _ => options,
    };
    // Each step has a place of its own in memory, so that it is not zero pages that are shared.
    let buffer: Vec<u8> = (0..chunks).map(|number| number as u8 | 1).collect();
    let before = status("VmRSS:");
    reset_peak();
    act(kind, operation, chunks, path, options, buffer)?;
    print!("{:.0}", status("VmHWM:").saturating_sub(before) as f64 / 1024.0);
    Ok(())
}

fn act(
    kind: &str,
    operation: &str,
    chunks: u64,
    path: &Path,
    options: FileOptions,
    mut buffer: Vec<u8>,
) -> Result<()> {
    if operation == "create" {
        let file = options.create(path)?;
        drop(create(&file, kind, chunks)?);
        return file.close();
    }
    let file = match operation {
        "read" | "count" | "copy" => options.clone().open(path)?,
        _ => options.clone().edit(path)?,
    };
    let dataset = file.dataset("d")?;
    match operation {
        "write" => dataset.write(.., &buffer)?,
        // Once more in this opening as well, with a commit in between.
        "overwrite" => {
            dataset.write(.., &buffer)?;
            file.flush()?;
            dataset.write(.., &buffer)?;
        }
        "read" => {
            dataset.read_into(.., &mut buffer)?;
            assert!(buffer.iter().enumerate().all(|(at, &byte)| byte == at as u8 | 1));
        }
        "count" => {
            assert_eq!(dataset.chunk_count()?, chunks);
            assert!(dataset.storage_size()? >= chunks);
            let mut listed = 0;
            if dataset.is_sparse() {
                dataset.structured_chunks()?.try_for_each(|chunk| chunk.map(|_| listed += 1))?;
            } else {
                dataset.chunks()?.try_for_each(|chunk| chunk.map(|_| listed += 1))?;
            }
            assert_eq!(listed, chunks);
            assert_eq!(dataset.count_defined(..)?, chunks);
            dataset.will_read([..])?;
        }
        "copy" => {
            let target = options.create(copy_of(path))?;
            file.copy_object("d", &target, "d", &CopyOptions::new())?;
            target.close()?;
        }
        // Cells of dense datasets get the fill value.
        "erase" => dataset.reset(..)?,
        // What was erased is to be there again before all of it goes but one chunk.
        "shrink" => {
            dataset.write(.., &buffer)?;
            file.flush()?;
            dataset.resize(vec![1; dataset.shape().len()])?;
        }
        "grow" => dataset.resize(extent(kind, chunks))?,
        _ => {
            dataset.write(.., &buffer)?;
            drop(dataset);
            file.flush()?;
            file.unlink("d")?;
            return file.close();
        }
    }
    drop(dataset);
    file.close()
}

fn extent(kind: &str, chunks: u64) -> Vec<u64> {
    match kind {
        "btree2" | "btree2-deflate" => vec![chunks / 1000, 1000],
        _ => vec![chunks],
    }
}

fn create(file: &File, kind: &str, chunks: u64) -> Result<Dataset> {
    let extent = extent(kind, chunks);
    let builder = file.new_dataset::<u8>().shape(extent.clone());
    let builder = builder.chunk(vec![1; extent.len()]);
    let builder = match kind.contains("extensible") || kind.starts_with("btree") {
        true => builder.max_shape(extent.iter().map(|_| None)),
        false => builder.max_shape(extent.iter().map(|&length| Some(length))),
    };
    let builder = if kind.ends_with("deflate") { builder.deflate(1) } else { builder };
    let builder = if kind.starts_with("sparse") { builder.sparse() } else { builder };
    let early = builder.clone().allocation_time(AllocationTime::Early);
    let builder = if kind.ends_with("early") { early } else { builder };
    builder.create("d")
}

/// A figure of this process, in KiB.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Resets the peak to the present memory.
fn reset_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}
