//! Parts of sparse chunks whose values have no filters, past the cache: how many bytes are read and written, where
//! they are, and what is in them afterwards. Chunks are of hundreds of megabytes if every cell counts.

use pumice::{
    CacheOptions, Context, Dataset, DatasetBuilder, Datatype, File, FilterSpec, MemoryStore,
    Points, Section, Selection, Transfer, WriteMany,
};
use pumice_store::Store;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One chunk of 512 MiB, of which every 32nd row is defined: 4 MiB in 64 rows.
const ROWS: u64 = 2048;
const COLUMNS: u64 = 65_536;
const APART: u64 = 32;
/// Between cells that are near each other, all is read.
const GAP: u64 = 4096;

/// Counts bytes.
#[derive(Default)]
struct Counting {
    inner: MemoryStore,
    read: AtomicU64,
    written: AtomicU64,
}

impl Counting {
    /// Bytes read and written by `act`.
    fn count<T>(&self, act: impl FnOnce() -> T) -> (T, u64, u64) {
        let at = || (self.read.load(Ordering::SeqCst), self.written.load(Ordering::SeqCst));
        let before = at();
        let done = act();
        (done, at().0 - before.0, at().1 - before.1)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.inner.len().unwrap() as usize];
        self.inner.read_at(0, &mut bytes).unwrap();
        bytes
    }
}

impl Store for Counting {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read.fetch_add(buffer.len() as u64, Ordering::SeqCst);
        self.inner.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.written.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        self.inner.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}

/// Two ways to make a chunk go past the cache.
#[derive(Clone, Copy, Debug)]
enum Past {
    Larger,
    Direct,
}

struct Bench {
    store: Arc<Counting>,
    file: File,
    dataset: Dataset,
    /// Bytes of the chunk's locations.
    head: u64,
}

fn value(row: u64, column: u64) -> f32 {
    (row * 7 + column % 1000) as f32
}

impl Bench {
    fn new(past: Past, filters: impl FnOnce(DatasetBuilder) -> DatasetBuilder) -> Self {
        let store = Arc::new(Counting::default());
        let bytes = if matches!(past, Past::Larger) { 1 << 20 } else { 64 << 20 };
        let context = Context::builder().cache_bytes(bytes).threads(2).build().unwrap();
        let file = File::options().context(&context).create_in(store.clone()).unwrap();
        let new = file.new_dataset::<f32>().shape([ROWS, COLUMNS]).chunk([ROWS, COLUMNS]);
        let dataset = filters(new.sparse().no_filters().fill_value(-1.0f32)).create("d").unwrap();
        if matches!(past, Past::Direct) {
            dataset.set_cache_options(CacheOptions::default().direct(true));
        }
        let rows = Selection::hyperslab(&[0, 0], &[APART, 1], &[ROWS / APART, 1], &[1, COLUMNS]);
        let rows = rows.unwrap();
        let values: Vec<f32> = (0..ROWS / APART)
            .flat_map(|row| (0..COLUMNS).map(move |column| value(row * APART, column)))
            .collect();
        dataset.write(rows, &values).unwrap();
        file.flush().unwrap();
        let info = dataset.structured_chunk_info_at([0, 0]).unwrap().unwrap();
        let section = |wanted: Section| info.sections.iter().find(|s| s.section == wanted).unwrap();
        assert_eq!(section(Section::Values).size, 4 * values.len() as u64);
        let head = section(Section::Selection).size;
        Bench { store, file, dataset, head }
    }

    /// What `act` reads: the locations, and values of so many cells, which are in so many places.
    fn reads<T>(&self, cells: u64, places: u64, act: impl FnOnce() -> T) -> T {
        let (done, read, written) = self.store.count(act);
        let wanted = self.head + 4 * cells;
        assert!(read <= wanted + places * GAP, "{read} byte(s) read for {wanted}");
        assert!(read >= wanted, "{read} byte(s) read for {wanted}");
        assert_eq!(written, 0);
        done
    }

    /// What `act` writes: values of so many cells in so many places, and nothing else.
    fn writes(&self, cells: u64, places: u64, act: impl FnOnce()) {
        let before = self.dataset.structured_chunk_info_at([0, 0]).unwrap().unwrap();
        let ((), read, written) = self.store.count(act);
        let bytes = 4 * cells;
        assert!(read <= self.head + bytes + places * GAP, "{read} byte(s) read for {bytes}");
        let room = (places - 1) * GAP;
        assert!((bytes..=bytes + room).contains(&written), "{written} byte(s) written for {bytes}");
        let after = self.dataset.structured_chunk_info_at([0, 0]).unwrap().unwrap();
        assert_eq!(before, after, "it stays where it is");
    }
}

/// Every way past the cache, without filters and with filters on the locations alone.
fn benches() -> Vec<Bench> {
    let mut all = Vec::new();
    for past in [Past::Larger, Past::Direct] {
        all.push(Bench::new(past, |new| new));
        all.push(Bench::new(past, |new| new.location_filters(vec![FilterSpec::deflate(1)])));
    }
    all
}

#[test]
fn of_values_only_those_are_read_that_are_asked_for() {
    for bench in benches() {
        let data = &bench.dataset;
        // A piece of a row, one that is not defined, and both in one window, converted.
        let row = bench.reads(100, 1, || data.read::<f32>((64, 500..600)).unwrap());
        assert!(row.iter().zip(500..).all(|(found, column)| *found == value(64, column)));
        let row = bench.reads(0, 0, || data.read::<f32>((65, 500..600)).unwrap());
        assert_eq!(row, [-1.0; 100]);
        let window = bench.reads(6, 2, || data.read::<f64>((31..65, 7..10)).unwrap());
        for (at, found) in window.iter().enumerate() {
            let (row, column) = (31 + at as u64 / 3, 7 + at as u64 % 3);
            let wanted = if row % APART == 0 { f64::from(value(row, column)) } else { -1.0 };
            assert_eq!(*found, wanted);
        }
        // A column, and places in memory.
        let column = bench.reads(64, 64, || data.read::<f32>((.., 9)).unwrap());
        assert!(
            column.iter().zip(0..).all(|(found, row)| {
                *found == if row % APART == 0 { value(row, 9) } else { -1.0 }
            })
        );
        let places = Selection::hyperslab(&[0], &[2], &[3], &[1]).unwrap();
        let transfer = Transfer::new().memory(places, [6]).transform("x+1").unwrap();
        let mut buffer = [0.5f32; 6];
        bench.reads(3, 1, || data.read_into_with((0, 4..7), &mut buffer, &transfer).unwrap());
        assert_eq!(buffer, [5.0, 0.5, 6.0, 0.5, 7.0, 0.5]);
    }
}

#[test]
fn of_points_and_defined_cells_only_the_values_are_read_that_are_there() {
    for bench in benches() {
        let data = &bench.dataset;
        let points = [[64, 3], [1, 1], [0, 60_000], [64, 3], [1984, 0]];
        let listed = Points::list(2, points.as_flattened()).unwrap();
        let found = bench.reads(3, 3, || data.read_at::<f32>(&listed).unwrap());
        let wanted = [value(64, 3), -1.0, value(0, 60_000), value(64, 3), value(1984, 0)];
        assert_eq!(found, wanted);
        let list = Selection::points(2, points.concat()).unwrap();
        assert_eq!(bench.reads(3, 3, || data.read::<f32>(list).unwrap()), wanted);
        let found = bench.reads(30, 3, || data.read_defined::<f32>((30..100, 90..100)).unwrap());
        assert_eq!((found.point(0), found.point(29)), (&[32, 90][..], &[96, 99][..]));
        let wanted = (0..30).map(|at| value(32 + 32 * (at / 10), 90 + at % 10));
        assert!(found.values.iter().copied().eq(wanted));
        let window = (30..100, 90..100);
        let columns = bench.reads(30, 3, || data.read_columns::<u32, f64>(window).unwrap());
        assert!(columns.values.iter().zip(&found.values).all(|(a, b)| *a == f64::from(*b)));
        let rows = (0..30).map(|at| 32 + 32 * (at / 10));
        assert!(columns.coordinates[0].iter().copied().eq(rows));
        let all = bench.reads(64 * COLUMNS, 1, || data.read_columns::<u32, f32>(..).unwrap());
        assert_eq!(all.values[COLUMNS as usize + 5], value(32, 5));
        // Where cells are defined is known from the locations alone.
        assert_eq!(bench.reads(0, 0, || data.count_defined((30..100, 90..100)).unwrap()), 30);
    }
}

#[test]
fn values_of_defined_cells_are_overwritten_where_they_are() {
    for bench in benches() {
        let data = &bench.dataset;
        bench.writes(100, 1, || data.write((64, 500..600), &[5.0f32; 100]).unwrap());
        bench.writes(100, 1, || data.write((96, 500..600), &[6i64; 100]).unwrap());
        let column = Selection::hyperslab(&[0, 9], &[APART, 1], &[64, 1], &[1, 1]).unwrap();
        bench.writes(64, 64, || data.write(column, &[7.0f32; 64]).unwrap());
        bench.writes(3, 3, || {
            data.write_points(&[[64, 3], [0, 60_000], [1984, 0]], &[1.0f32, 2.0, 3.0]).unwrap();
        });
        bench.writes(1, 1, || {
            let points = Selection::points(2, vec![128, 8, 128, 8]).unwrap();
            data.write(points, &[8.0f32, 9.0]).unwrap();
        });
        let values = [4.0f32; 50];
        bench.writes(50, 1, || {
            let mut writes = WriteMany::new();
            writes.add(data, (160, 0..50), &values).unwrap();
            writes.run().unwrap();
        });
        let check = |data: &Dataset| {
            assert_eq!(data.read::<f32>((64, 499..601)).unwrap()[..2], [value(64, 499), 5.0]);
            assert_eq!(data.read::<f32>((96, 599..601)).unwrap(), [6.0, value(96, 600)]);
            let column = data.read::<f32>((.., 9)).unwrap();
            let seven = |(row, found): (usize, &f32)| {
                *found == if (row as u64).is_multiple_of(APART) { 7.0 } else { -1.0 }
            };
            assert!(column.iter().enumerate().filter(|(row, _)| *row != 160).all(seven));
            assert_eq!(data.read::<f32>((64, 2..5)).unwrap(), [value(64, 2), 1.0, value(64, 4)]);
            assert_eq!(data.read::<f32>((1984, 0)).unwrap(), [3.0]);
            assert_eq!(data.read::<f32>((128, 7..10)).unwrap(), [value(128, 7), 9.0, 7.0]);
            assert_eq!(data.read::<f32>((160, 48..51)).unwrap(), [4.0, 4.0, value(160, 50)]);
            assert_eq!(data.count_defined(..).unwrap(), 64 * COLUMNS);
        };
        check(data);
        // A program that ends here leaves a file with what it has written, as with other data in their place.
        let left = File::options().open_bytes(bench.store.bytes()).unwrap();
        check(&left.dataset("d").unwrap());
        bench.file.flush().unwrap();
        let left = File::options().open_bytes(bench.store.bytes()).unwrap();
        check(&left.dataset("d").unwrap());
    }
}

#[test]
fn cells_that_come_or_go_make_the_chunk_anew_and_a_killed_program_leaves_the_old_one() {
    for bench in benches() {
        let (data, defined) = (&bench.dataset, 64 * COLUMNS);
        // Two rows of which one is there: not even that one is overwritten in its place.
        data.write((64..66, 0..2), &[1.0f32; 4]).unwrap();
        let left = File::options().open_bytes(bench.store.bytes()).unwrap().dataset("d").unwrap();
        assert_eq!(left.read::<f32>((64..66, 0..2)).unwrap(), [448.0, 449.0, -1.0, -1.0]);
        assert_eq!(left.count_defined(..).unwrap(), defined);
        assert_eq!(data.read::<f32>((63..66, 1..3)).unwrap(), [-1.0, -1.0, 1.0, 450.0, 1.0, -1.0]);
        data.erase((0, ..)).unwrap();
        data.write_points(&[[3, 3]], &[3.0f32]).unwrap();
        assert_eq!(data.count_defined(..).unwrap(), defined + 3 - COLUMNS);
        // And from then on in the new place.
        bench.file.flush().unwrap();
        data.write((3, 3), &[4.0f32]).unwrap();
        bench.file.flush().unwrap();
        let left = File::options().open_bytes(bench.store.bytes()).unwrap().dataset("d").unwrap();
        assert_eq!(left.read::<f32>((3, 2..5)).unwrap(), [-1.0, 4.0, -1.0]);
        assert_eq!(left.read_defined::<f32>((0..4, ..)).unwrap().values, [4.0]);
    }
}

#[test]
fn members_that_a_write_lacks_keep_what_they_were() {
    let record = Datatype::compound([("a", Datatype::i32_le()), ("b", Datatype::i64_le())]);
    let part = Datatype::compound([("b", Datatype::i64_le())]);
    for cache in [0, 64 << 20] {
        let context = Context::builder().cache_bytes(cache).build().unwrap();
        let store = Arc::new(Counting::default());
        let file = File::options().context(&context).create_in(store.clone()).unwrap();
        let new = file.new_dataset_of(record.clone()).shape([1 << 20]).chunk([1 << 20]);
        let dataset = new.sparse().no_filters().create("d").unwrap();
        let element = |a: i32, b: i64| [&a.to_le_bytes()[..], &b.to_le_bytes()].concat();
        let all: Vec<u8> = (0..1000).flat_map(|n| element(n, -i64::from(n))).collect();
        let cells = Selection::hyperslab(&[5], &[1000], &[1000], &[1]).unwrap();
        dataset.write_bytes(cells.clone(), &all).unwrap();
        file.flush().unwrap();
        let (some, transfer) = (Selection::points(1, vec![2005, 5]).unwrap(), Transfer::new());
        let bytes = [77i64.to_le_bytes(), 88i64.to_le_bytes()].concat();
        let ((), _, written) =
            store.count(|| dataset.write_as(some, &part, &bytes, &transfer).unwrap());
        assert!(cache > 0 || written <= 2 * 12 + GAP, "{written}");
        let found = dataset.read_bytes(cells).unwrap();
        assert_eq!(found[..36], [element(0, 88), element(1, -1), element(2, 77)].concat());
        assert_eq!(found[36..], all[36..]);
    }
}

#[test]
fn damaged_locations_are_told_and_nothing_is_written() {
    let bench = Bench::new(Past::Direct, |new| new);
    let info = bench.dataset.structured_chunk_info_at([0, 0]).unwrap().unwrap();
    let mut bytes = bench.store.bytes();
    bytes[info.address as usize + 40] ^= 4;
    let file = File::options().edit_in(Arc::new(MemoryStore::new(bytes))).unwrap();
    let dataset = file.dataset("d").unwrap();
    dataset.set_cache_options(CacheOptions::default().direct(true));
    assert!(dataset.read::<f32>((64, 0..3)).is_err());
    assert!(dataset.read_defined::<f32>((64, 0..3)).is_err());
    assert!(dataset.write((64, 0..3), &[1.0f32; 3]).is_err());
}
