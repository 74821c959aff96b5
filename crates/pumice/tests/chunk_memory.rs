//! Operations on very many chunks take no more memory than the cache, changed metadata, and a little.

#[path = "support/held.rs"]
mod held;

use held::most_memory;
use pumice::{AllocationTime, Context, CopyOptions, Dataset, File, FileOptions, LibraryVersion};
use std::path::Path;

/// Chunks of one cell of one byte: more than any operation lists.
const CHUNKS: u64 = 70_000;
const CACHE: u64 = 1 << 20;
const METADATA: usize = 1 << 20;
/// Beside both: what a request needs of the chunks that are served at a time, what is remembered of space that was given
/// back, and what is open anyway.
const ALLOWANCE: usize = 28 << 20;

/// Fails if an operation takes too much.
fn check<T>(kind: &str, operation: &str, act: impl FnOnce() -> pumice::Result<T>) {
    let most = most_memory(|| act().unwrap());
    let limit = CACHE as usize + METADATA + ALLOWANCE;
    assert!(most < limit, "{kind}, {operation}: {most} bytes instead of {limit} at most");
}

fn extent(kind: &str) -> Vec<u64> {
    if kind.contains("btree2") { vec![CHUNKS / 100, 100] } else { vec![CHUNKS] }
}

fn create(file: &File, kind: &str) -> pumice::Result<Dataset> {
    let extent = extent(kind);
    let chunk = vec![1; extent.len()];
    let builder = file.new_dataset::<u8>().shape(extent.clone()).chunk(chunk);
    let unlimited = kind.contains("extensible") || kind.contains("btree");
    let most = |length: &u64| if unlimited { None } else { Some(*length) };
    let mut builder = builder.max_shape(extent.iter().map(most).collect::<Vec<_>>());
    if kind.contains("sparse") {
        builder = builder.sparse();
    }
    if kind.contains("deflate") {
        builder = builder.deflate(1);
    }
    if kind.contains("early") {
        builder = builder.allocation_time(AllocationTime::Early);
    }
    builder.create("d")
}

fn options(context: &Context, kind: &str) -> FileOptions {
    let options = File::options().context(context).metadata_limit(METADATA);
    match kind.contains("btree1") {
        true => options.library_version(LibraryVersion::Earliest),
        false => options,
    }
}

fn run(kind: &str, folder: &Path) {
    let (path, copy) = (folder.join("a.h5"), folder.join("b.h5"));
    let context = Context::builder().cache_bytes(CACHE).threads(1).build().unwrap();
    let options = || options(&context, kind);
    let values: Vec<u8> = (0..CHUNKS).map(|number| number as u8 | 1).collect();
    let mut found = vec![0u8; values.len()];

    let file = options().create(&path).unwrap();
    let mut made = None;
    check(kind, "create", || {
        made = Some(create(&file, kind)?);
        Ok(())
    });
    let dataset = made.unwrap();
    check(kind, "write", || dataset.write(.., &values));
    check(kind, "flush", || file.flush());
    check(kind, "overwrite", || dataset.write(.., &values));
    check(kind, "flush", || file.flush());
    check(kind, "read", || dataset.read_into(.., &mut found));
    assert_eq!(found, values);
    check(kind, "count", || dataset.chunk_count());
    drop(dataset);
    check(kind, "close", || file.close());

    let file = options().edit(&path).unwrap();
    let dataset = file.dataset("d").unwrap();
    check(kind, "copy", || {
        let target = options().create(&copy)?;
        file.copy_object("d", &target, "d", &CopyOptions::new())?;
        target.close()
    });
    let copied = options().open(&copy).unwrap().dataset("d").unwrap();
    assert_eq!(copied.read::<u8>(..).unwrap(), values);
    drop(copied);
    check(kind, "shrink", || dataset.resize(vec![1; extent(kind).len()]));
    check(kind, "flush", || file.flush());
    check(kind, "grow", || dataset.resize(extent(kind)));
    assert_eq!(dataset.read::<u8>(..).unwrap().iter().filter(|&&value| value != 0).count(), 1);
    dataset.write(.., &values).unwrap();
    file.flush().unwrap();
    if kind.contains("sparse") {
        check(kind, "erase", || dataset.erase(..));
        assert_eq!(dataset.chunk_count().unwrap(), 0);
        dataset.write(.., &values).unwrap();
    }
    drop(dataset);
    check(kind, "delete", || file.unlink("d"));
    check(kind, "close", || file.close());
}

/// One after the other: they share one count of memory.
#[test]
fn very_many_chunks_take_no_more_memory_than_they_may() {
    let folder = tempfile::tempdir().unwrap();
    let kinds = [
        "fixed",
        "fixed deflate",
        "extensible early",
        "btree2",
        "btree1",
        "implicit early",
        "sparse extensible",
    ];
    kinds.iter().for_each(|kind| run(kind, folder.path()));
}
