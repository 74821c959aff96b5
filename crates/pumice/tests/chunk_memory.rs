//! Operations on very many chunks take no more memory than the cache, changed metadata, and a little.

#[path = "support/held.rs"]
mod held;

use held::most_memory;
use pumice::{
    AllocationTime, Context, CopyOptions, Dataset, File, FileOptions, LibraryVersion, Lines,
    Selection,
};
use pumice_bytes::lookup3;
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
    check_beside(kind, operation, 0, act);
}

/// Fails if an operation takes too much beside what it returns.
fn check_beside<T>(
    kind: &str,
    operation: &str,
    result: usize,
    act: impl FnOnce() -> pumice::Result<T>,
) {
    let most = most_memory(|| act().unwrap());
    let limit = CACHE as usize + METADATA + ALLOWANCE + result;
    assert!(most < limit, "{kind}, {operation}: {most} bytes instead of {limit} at most");
}

fn extent(kind: &str) -> Vec<u64> {
    match kind {
        "second extensible" => vec![100, CHUNKS / 100],
        kind if kind.contains("btree2") => vec![CHUNKS / 100, 100],
        _ => vec![CHUNKS],
    }
}

fn create(file: &File, kind: &str) -> pumice::Result<Dataset> {
    let extent = extent(kind);
    let chunk = vec![1; extent.len()];
    let builder = file.new_dataset::<u8>().shape(extent.clone()).chunk(chunk);
    let unlimited = kind.contains("extensible") || kind.contains("btree");
    let most = |length: &u64| if unlimited { None } else { Some(*length) };
    let mut most: Vec<_> = extent.iter().map(most).collect();
    if kind == "second extensible" {
        // Chunks are not in row-major order in its index.
        most[0] = Some(100);
    }
    let mut builder = builder.max_shape(most);
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
    ask(kind, &dataset, &values);
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

/// Questions about chunks and defined cells. What they return is the caller's.
fn ask(kind: &str, dataset: &Dataset, values: &[u8]) {
    check(kind, "will_read", || dataset.will_read([..]));
    check(kind, "prefetch", || dataset.prefetch(..));
    check(kind, "count_defined", || dataset.count_defined(..));
    assert_eq!(dataset.count_defined(..).unwrap(), CHUNKS);
    let all = Selection::all();
    check(kind, "count in", || dataset.chunk_count_in(&all));
    let mut offsets = 0;
    check(kind, "list", || match dataset.is_sparse() {
        true => dataset.structured_chunks()?.try_for_each(|one| one.map(|_| offsets += 1)),
        false => dataset.chunks()?.try_for_each(|one| one.map(|_| offsets += 1)),
    });
    assert_eq!(offsets, CHUNKS);
    // Coordinates and values, which grow by doubling.
    let rank = dataset.shape().len();
    let result = CHUNKS as usize * (8 * rank + 1) * 2;
    check_beside(kind, "read_defined", result, || dataset.read_defined::<u8>(..));
    check_beside(kind, "read_columns", result, || dataset.read_columns::<u64, u8>(..));
    let mut found = dataset.read_defined::<u8>(..).unwrap().values;
    assert_eq!(found, values);
    found.fill(0);
    let columns = dataset.read_columns::<u32, u8>(..).unwrap();
    assert_eq!(columns.values, values);
    assert!(columns.coordinates[0].is_sorted());
    if dataset.is_sparse() {
        check_beside(kind, "defined", result, || dataset.defined(..));
    }
}

/// Strings of chunks that go when a dataset becomes smaller.
fn shrink_strings(folder: &Path) {
    let context = Context::builder().cache_bytes(CACHE).threads(1).build().unwrap();
    let options = File::options().context(&context).metadata_limit(METADATA);
    let file = options.create(folder.join("strings.h5")).unwrap();
    let builder = file.new_strings().shape([CHUNKS]).chunk([1]).max_shape([None]);
    let dataset = builder.create("d").unwrap();
    let one = ["word"; 1000];
    for start in (0..CHUNKS).step_by(one.len()) {
        dataset.write_strings(start..start + one.len() as u64, &one).unwrap();
    }
    file.flush().unwrap();
    check("strings", "shrink", || dataset.resize([1]));
    assert_eq!(&dataset.read_strings(..).unwrap()[0], b"word");
    check("strings", "close", || {
        drop(dataset);
        file.close()
    });
}

/// Every second chunk goes, so that no two holes are one.
fn make_holes(folder: &Path) {
    let context = Context::builder().cache_bytes(CACHE).threads(1).build().unwrap();
    let options = File::options().context(&context).metadata_limit(METADATA);
    let file = options.create(folder.join("holes.h5")).unwrap();
    let many = 4 * CHUNKS;
    let (rows, columns) = (many / 700, 700);
    let builder = file.new_dataset::<u8>().shape([rows, columns]).chunk([1, 1]);
    let dataset = builder.max_shape([None, Some(columns)]).sparse().create("d").unwrap();
    dataset.write(.., &vec![7u8; many as usize]).unwrap();
    file.flush().unwrap();
    ask_by_number_and_line(&dataset);
    let half = Selection::hyperslab(&[0, 0], &[1, 2], &[rows, columns / 2], &[1, 1]).unwrap();
    check("holes", "erase", || dataset.erase(&half));
    check("holes", "flush", || file.flush());
    assert_eq!(dataset.chunk_count().unwrap(), many / 2);
    check("holes", "close", || {
        drop(dataset);
        file.close()
    });
}

/// Chunks along an edge that are stored without filters, and with filters when they are whole.
fn move_edge(folder: &Path) {
    let context = Context::builder().cache_bytes(CACHE).threads(1).build().unwrap();
    let options = File::options().context(&context).metadata_limit(METADATA);
    let file = options.clone().create(folder.join("edge.h5")).unwrap();
    let many = 2 * CHUNKS;
    let builder = file.new_dataset::<u8>().shape([many, 3]).max_shape([Some(many), Some(4)]);
    let builder = builder.chunk([1, 2]).deflate(1).dont_filter_partial_chunks();
    let dataset = builder.create("d").unwrap();
    let values: Vec<u8> = (0..many).map(|number| number as u8 | 1).collect();
    dataset.write((.., 2), &values).unwrap();
    file.flush().unwrap();
    check("edge", "grow", || dataset.resize([many, 4]));
    check("edge", "flush", || file.flush());
    assert_eq!(dataset.read::<u8>((.., 2)).unwrap(), values);
    check("edge", "shrink", || dataset.resize([many, 3]));
    drop(dataset);
    check("edge", "close", || file.close());
    let dataset = options.open(folder.join("edge.h5")).unwrap().dataset("d").unwrap();
    assert_eq!(dataset.read::<u8>((.., 2)).unwrap(), values);
}

/// Chunks that are asked for one by one, and rows and columns of the matrix that they are.
fn ask_by_number_and_line(dataset: &Dataset) {
    let [rows, columns] = dataset.shape()[..] else { panic!("a matrix") };
    let last = (rows * columns) as usize - 1;
    check("numbers", "ask", || {
        for number in [0, 1, 200_000, 200_001, 5, last, 100_000, 99_999] {
            let chunk = dataset.structured_chunk_info(.., number)?.unwrap();
            assert_eq!(chunk.offset, [number as u64 / columns, number as u64 % columns]);
        }
        let third = dataset.structured_chunk_info((.., 2), 9)?.unwrap();
        assert_eq!(third.offset, [9, 2]);
        dataset.structured_chunk_info(.., last + 1)
    });
    for (lines, count) in [(Lines::Rows, rows), (Lines::Columns, columns)] {
        check("lines", "read", || {
            let mut next = 0;
            for block in dataset.compressed_blocks::<u8>(lines)? {
                let block = block?;
                assert_eq!(block.values.len() as u64 * count, block.line_count() * rows * columns);
                next += block.line_count();
            }
            assert_eq!(next, count);
            Ok(())
        });
    }
}

/// A commit that was ended after its journal, which is longer than the limits.
fn open_with_journal(folder: &Path) {
    const BLOCK: usize = 1 << 20;
    let path = folder.join("journal.h5");
    let file = File::create(&path).unwrap();
    let data = file.new_dataset::<u8>().shape([40 * BLOCK as u64]).create("d").unwrap();
    data.write(.., &vec![1u8; 40 * BLOCK]).unwrap();
    file.flush().unwrap();
    let places = data.places().unwrap();
    let address = places.iter().find(|place| place.length > BLOCK as u64).unwrap().address;
    drop(data);
    file.close().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let (length, new) = (bytes.len() as u64, vec![2u8; BLOCK]);
    (0..40).for_each(|_| bytes.extend(&new));
    let mut list = Vec::new();
    for number in 0..40 {
        list.extend((address + number * BLOCK as u64).to_le_bytes());
        list.extend((BLOCK as u64).to_le_bytes());
        list.extend(lookup3(&new).to_le_bytes());
    }
    list.extend(b"PumiceJ1");
    [40, length, length].iter().for_each(|field: &u64| list.extend(field.to_le_bytes()));
    let checksum = lookup3(&list);
    list.extend(checksum.to_le_bytes());
    list.extend([0; 4]);
    bytes.extend(list);
    std::fs::write(&path, bytes).unwrap();
    let mut found = vec![0; 40 * BLOCK];
    let context = Context::builder().cache_bytes(CACHE).threads(1).build().unwrap();
    let options = || File::options().context(&context).metadata_limit(METADATA);
    check("journal", "read", || options().open(&path)?.dataset("d")?.read_into(.., &mut found));
    assert!(found.iter().all(|&byte| byte == 2));
    assert!(path.metadata().unwrap().len() > length);
    check("journal", "edit", || options().edit(&path)?.close());
    assert_eq!(path.metadata().unwrap().len(), length);
    let file = File::open(&path).unwrap();
    assert!(file.dataset("d").unwrap().read::<u8>(..).unwrap().iter().all(|&byte| byte == 2));
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
        "second extensible",
        "btree1",
        "implicit early",
        "sparse extensible",
    ];
    kinds.iter().for_each(|kind| run(kind, folder.path()));
    shrink_strings(folder.path());
    make_holes(folder.path());
    move_edge(folder.path());
    open_with_journal(folder.path());
}
