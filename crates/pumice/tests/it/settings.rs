//! Settings of the cache, end to end: on datasets of every layout, in files.

use pumice::policy::{Lru, Policy, Usage};
use pumice::{
    CacheOptions, Context, ContextBuilder, Dataset, DatasetBuilder, Durability, File, Hint,
    LibraryVersion, Locking, MemoryStore, PolicyKind, Sizing, Stats, Store, Transfer, VirtualView,
};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Chunks of a dataset, and bytes of each.
const CHUNKS: u64 = 32;
const CELLS: u64 = 1024;
const CHUNK: u64 = 4 * CELLS;

/// Layouts whose chunks are kept in memory.
const KEPT: [&str; 4] = ["deflated", "plain", "sparse", "plain sparse"];

fn dataset(file: &File, layout: &str) -> Dataset {
    let builder = file.new_dataset::<i32>().shape([CHUNKS * CELLS]);
    let chunked = |builder: DatasetBuilder| builder.chunk([CELLS]);
    let builder = match layout {
        "deflated" => chunked(builder).deflate(1),
        "plain" => chunked(builder),
        "sparse" => chunked(builder).sparse(),
        "plain sparse" => chunked(builder).sparse().no_filters(),
        "contiguous" => builder,
        _ => unreachable!("{layout}"),
    };
    builder.create(&layout.replace(' ', "-")).unwrap()
}

fn file(builder: ContextBuilder) -> (Context, File) {
    let context = builder.build().unwrap();
    let store = Arc::new(MemoryStore::default());
    let file = File::options().context(&context).create_in(store).unwrap();
    (context, file)
}

fn values(chunk: u64) -> Vec<i32> {
    (0..CELLS as i32).map(|cell| cell + 10_000 * chunk as i32).collect()
}

fn cells(chunk: u64) -> std::ops::Range<u64> {
    chunk * CELLS..(chunk + 1) * CELLS
}

fn write(dataset: &Dataset, chunk: u64) {
    dataset.write(cells(chunk), &values(chunk)).unwrap();
}

/// A part, which is what is kept of every layout.
fn read(dataset: &Dataset, chunk: u64) {
    let range = chunk * CELLS + 1..(chunk + 1) * CELLS - 1;
    let expected = values(chunk);
    assert_eq!(dataset.read::<i32>(range).unwrap(), expected[1..expected.len() - 1]);
}

fn stats(dataset: &Dataset) -> Stats {
    dataset.cache_stats()
}

#[test]
fn every_policy_and_hint_gives_right_answers_on_every_layout() {
    let hints = [Hint::Normal, Hint::Sequential, Hint::Random, Hint::Once];
    for policy in PolicyKind::ALL {
        for hint in hints {
            // Room for six chunks of two datasets.
            let (context, file) =
                file(Context::builder().policy(policy).cache_bytes(6 * CHUNK).threads(2));
            for layout in KEPT.into_iter().chain(["contiguous"]) {
                let dataset = dataset(&file, layout);
                dataset.set_cache_options(CacheOptions::default().hint(hint));
                (0..CHUNKS).for_each(|chunk| write(&dataset, chunk));
                for step in [1, 5, 31] {
                    (0..CHUNKS).for_each(|chunk| read(&dataset, chunk * step % CHUNKS));
                    assert!(context.stats().resident <= 6 * CHUNK, "{policy} {layout}");
                }
                dataset.flush().unwrap();
                dataset.evict().unwrap();
                (0..CHUNKS).rev().for_each(|chunk| read(&dataset, chunk));
            }
        }
    }
}

#[test]
fn policies_choose_who_leaves() {
    for layout in KEPT {
        let mut missed = Vec::new();
        for policy in [PolicyKind::Lirs, PolicyKind::Lru] {
            let builder = Context::builder().policy(policy).threads(1);
            let (context, file) = file(builder.cache_bytes(1 << 30));
            let dataset = dataset(&file, layout);
            (0..CHUNKS).for_each(|chunk| write(&dataset, chunk));
            dataset.evict().unwrap();
            let one = {
                read(&dataset, 0);
                stats(&dataset).resident + context.stats().bookkeeping
            };
            dataset.evict().unwrap();
            context.set_cache_bytes(24 * one).unwrap();
            let before = stats(&dataset).misses;
            for _ in 0..8 {
                (0..CHUNKS).for_each(|chunk| read(&dataset, chunk));
            }
            missed.push(stats(&dataset).misses - before);
        }
        assert_eq!(missed[1], 8 * CHUNKS, "{layout}: a loop that is too long for LRU");
        assert!(missed[0] < missed[1] * 3 / 4, "{layout}: {missed:?}");
    }
}

#[test]
fn a_minimum_is_kept_and_a_maximum_is_not_exceeded_on_every_layout() {
    for layout in KEPT {
        for policy in PolicyKind::ALL {
            let (_context, file) =
                file(Context::builder().policy(policy).cache_bytes(20 * CHUNK).threads(1));
            let small = dataset(&file, layout);
            let large =
                file.new_dataset::<i32>().shape([8 * CHUNKS * CELLS]).chunk([CELLS]).deflate(1);
            let large = large.create("large").unwrap();
            (0..CHUNKS).for_each(|chunk| write(&small, chunk));
            (0..8 * CHUNKS).for_each(|chunk| write(&large, chunk));
            small.evict().unwrap();
            large.evict().unwrap();

            small.set_cache_options(CacheOptions::default().minimum(6 * CHUNK));
            (0..4).for_each(|chunk| read(&small, chunk));
            for round in 0..2 {
                (0..8 * CHUNKS).for_each(|chunk| read(&large, chunk));
                let before = stats(&small).misses;
                (0..4).for_each(|chunk| read(&small, chunk));
                assert_eq!(stats(&small).misses, before, "{layout} {policy} {round}: it is kept");
            }
            small.set_cache_options(CacheOptions::default().maximum(3 * CHUNK));
            assert!(stats(&small).resident <= 3 * CHUNK, "{layout} {policy}: at once");
            for chunk in 0..CHUNKS {
                read(&small, chunk);
                assert!(stats(&small).resident <= 3 * CHUNK, "{layout} {policy}");
                write(&small, chunk);
                assert!(stats(&small).resident <= 3 * CHUNK, "{layout} {policy}");
            }
            small.set_cache_options(CacheOptions::default().direct(true));
            small.evict().unwrap();
            (0..CHUNKS).for_each(|chunk| read(&small, chunk));
            write(&small, 3);
            assert_eq!(stats(&small).resident, 0, "{layout} {policy}: nothing is kept");
        }
    }
}

#[test]
fn weights_decide_whether_complete_chunks_leave_first() {
    for (weight, stays) in [(1.0, false), (0.0, true)] {
        let builder = Context::builder().policy(PolicyKind::WeightedLru).threads(1);
        let (_context, file) = file(builder.cache_bytes(8 * CHUNK));
        let dataset = dataset(&file, "deflated");
        (0..CHUNKS).for_each(|chunk| write(&dataset, chunk));
        dataset.evict().unwrap();
        dataset.set_cache_options(CacheOptions::default().preemption(weight));
        let half = |chunk: u64| dataset.read::<i32>(chunk * CELLS..chunk * CELLS + 512).unwrap();
        (0..5).for_each(|chunk| drop(half(chunk)));
        // Complete, and used last.
        drop(dataset.read::<i32>(cells(9)).unwrap());
        (10..13).for_each(|chunk| drop(half(chunk)));
        let before = stats(&dataset).misses;
        drop(half(9));
        assert_eq!(stats(&dataset).misses == before, stays, "{weight}");
    }
}

#[test]
fn a_file_has_defaults_for_its_datasets_as_by_set_cache() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let context = Context::builder().cache_bytes(1 << 20).threads(1).build().unwrap();
    let options = CacheOptions::default().maximum(4 * CHUNK).hint(Hint::Once);
    let file = File::options().context(&context).cache_options(options).create(&path).unwrap();
    for layout in KEPT {
        let dataset = dataset(&file, layout);
        assert_eq!(dataset.cache_options(), options);
        (0..CHUNKS).for_each(|chunk| write(&dataset, chunk));
        assert!(stats(&dataset).resident <= 4 * CHUNK, "{layout}");
    }
    file.close().unwrap();
    // Other ones, for a file that is there; H5Pset_cache with no room lets requests pass.
    let none = CacheOptions::default().chunk_cache(0, 0.75);
    let file = File::options().context(&context).cache_options(none).open(&path).unwrap();
    for layout in KEPT {
        let dataset = file.dataset(&layout.replace(' ', "-")).unwrap();
        (0..CHUNKS).for_each(|chunk| read(&dataset, chunk));
        assert_eq!((stats(&dataset).resident, stats(&dataset).hits), (0, 0), "{layout}");
        dataset.set_cache_options(CacheOptions::default());
        read(&dataset, 1);
        read(&dataset, 1);
        assert!(stats(&dataset).resident > 0, "{layout}");
    }
}

#[test]
fn options_end_with_the_last_handle_and_chunks_stay() {
    let usual = CacheOptions::default().maximum(30 * CHUNK);
    for layout in KEPT {
        let context = Context::builder().cache_bytes(1 << 20).threads(1).build().unwrap();
        let options = File::options().context(&context).cache_options(usual);
        let file = options.create_in(Arc::new(MemoryStore::default())).unwrap();
        let first = dataset(&file, layout);
        let name = layout.replace(' ', "-");
        (0..8).for_each(|chunk| write(&first, chunk));
        let other = CacheOptions::default().hint(Hint::Random).minimum(9).write_through(true);
        first.set_cache_options(other);
        let second = file.dataset(&name).unwrap();
        let third = second.clone();
        drop((first, second));
        assert_eq!(third.cache_options(), other, "{layout}: one handle is left");
        file.flush().unwrap();
        let resident = context.stats().resident;
        assert!(resident > 0);
        drop(third);
        assert_eq!(context.stats().resident, resident, "{layout}: chunks stay");
        let again = file.dataset(&name).unwrap();
        assert_eq!(again.cache_options(), usual, "{layout}");
        let before = stats(&again).misses;
        (0..8).for_each(|chunk| read(&again, chunk));
        assert_eq!(stats(&again).misses, before, "{layout}: they are found");
        drop(again);
        file.close().unwrap();
        assert_eq!(context.stats().resident, 0, "{layout}: they go with the file");
    }
}

#[test]
fn what_is_written_through_is_in_the_file_when_the_call_returns() {
    for layout in KEPT {
        for by_dataset in [false, true] {
            let (context, file) = file(Context::builder().cache_bytes(1 << 20).threads(2));
            let dataset = dataset(&file, layout);
            write(&dataset, 0);
            assert_eq!((stats(&dataset).write_backs, stats(&dataset).dirty), (0, 1), "{layout}");
            dataset.set_cache_options(CacheOptions::default().write_through(by_dataset));
            let transfer = Transfer::new().write_through(!by_dataset);
            let both: Vec<i32> = [values(1), values(2)].concat();
            dataset.write_with(CELLS..3 * CELLS, &both, &transfer).unwrap();
            assert_eq!((stats(&dataset).write_backs, stats(&dataset).dirty), (2, 1), "{layout}");
            let resident = stats(&dataset).resident;
            assert!(resident > 0, "{layout}: they stay");
            // A change of a chunk that is in memory, and of a part.
            dataset.write_with(cells(0), &values(0), &transfer).unwrap();
            dataset.write_with(CELLS + 5..CELLS + 6, &values(1)[5..6], &transfer).unwrap();
            assert_eq!((stats(&dataset).write_backs, stats(&dataset).dirty), (4, 0), "{layout}");
            dataset.write_point(&[2 * CELLS], 20_000).unwrap();
            assert_eq!(stats(&dataset).dirty, u64::from(!by_dataset), "{layout}");
            (0..3).for_each(|chunk| read(&dataset, chunk));
            context.evict().unwrap();
            (0..3).for_each(|chunk| read(&dataset, chunk));
        }
    }
}

#[test]
fn one_dataset_is_evicted_and_others_stay() {
    // What is loaded ahead would come after the eviction.
    let (context, file) = file(Context::builder().cache_bytes(1 << 20).threads(2).background(0));
    let datasets = KEPT.map(|layout| dataset(&file, layout));
    for dataset in &datasets {
        (0..4).for_each(|chunk| write(dataset, chunk));
    }
    for (number, dataset) in datasets.iter().enumerate() {
        dataset.evict().unwrap();
        assert_eq!((stats(dataset).resident, stats(dataset).dirty), (0, 0));
        let left: u64 = datasets.iter().map(|dataset| stats(dataset).dirty).sum();
        assert_eq!(left, 4 * (KEPT.len() - 1 - number) as u64, "others wait as before");
        (0..4).for_each(|chunk| read(dataset, chunk));
        dataset.evict().unwrap();
    }
    assert_eq!(context.stats().resident, 0);
}

/// Waits for work beside the calls.
fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if is() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{what}");
}

#[test]
fn work_ahead_is_on_off_or_bounded() {
    for background in [0, 1, usize::MAX] {
        let builder = Context::builder().cache_bytes(64 * CHUNK).threads(4);
        let (context, file) = file(builder.background(background));
        let dataset = dataset(&file, "deflated");
        (0..CHUNKS).for_each(|chunk| write(&dataset, chunk));
        dataset.evict().unwrap();
        dataset.set_cache_options(CacheOptions::default().hint(Hint::Sequential));
        match background {
            0 => {
                assert!(dataset.prefetch(cells(20)).unwrap(), "what is asked for is done");
                assert!(stats(&dataset).resident > 0, "by the caller, at once");
                (0..4).for_each(|chunk| read(&dataset, chunk));
                assert_eq!(stats(&dataset).loads, 5, "and nothing else is");
            }
            _ => eventually("nothing is loaded ahead", || {
                dataset.evict().unwrap();
                (0..8).for_each(|chunk| read(&dataset, chunk));
                stats(&dataset).prefetched > 0
            }),
        }
        // More than half of the cache is dirty.
        context.set_cache_bytes(40 * CHUNK).unwrap();
        (0..CHUNKS).for_each(|chunk| write(&dataset, chunk));
        match background {
            0 => assert_eq!(stats(&dataset).written_early, 0),
            _ => eventually("nothing is written early", || {
                write(&dataset, 0);
                stats(&dataset).written_early > 0
            }),
        }
        let settings = context.cache_config().background(0);
        context.configure(settings).unwrap();
        dataset.evict().unwrap();
        let before = stats(&dataset).loads;
        (0..4).for_each(|chunk| read(&dataset, chunk));
        assert_eq!(stats(&dataset).loads, before + 4, "switched off while files are open");
    }
}

#[test]
fn the_size_is_set_and_changed_and_moves_between_its_bounds() {
    let sizing = Sizing::Adaptive { minimum: 4 * CHUNK, maximum: 64 * CHUNK };
    let (context, file) = file(Context::builder().cache_bytes(8 * CHUNK).sizing(sizing).threads(1));
    let dataset = dataset(&file, "deflated");
    (0..CHUNKS).for_each(|chunk| write(&dataset, chunk));
    for _ in 0..2000 {
        (0..20).for_each(|chunk| read(&dataset, chunk));
        let (resident, _) = context.cache_config().limits();
        assert!((4 * CHUNK..=64 * CHUNK).contains(&resident));
    }
    assert!(context.cache_config().limits().0 > 8 * CHUNK, "there were hits to be gained");
    context
        .configure(context.cache_config().sizing(Sizing::Fixed).resident_limit(3 * CHUNK))
        .unwrap();
    assert!(context.stats().resident <= 3 * CHUNK);
    (0..CHUNKS).for_each(|chunk| read(&dataset, chunk));
    assert!(context.stats().resident <= 3 * CHUNK);
}

/// Memory that counts the largest piece that was read or written.
#[derive(Default)]
struct Counting {
    bytes: MemoryStore,
    read: AtomicU64,
    written: AtomicU64,
}

impl Store for Counting {
    fn len(&self) -> io::Result<u64> {
        self.bytes.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read.fetch_max(buffer.len() as u64, Ordering::Relaxed);
        self.bytes.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.written.fetch_max(bytes.len() as u64, Ordering::Relaxed);
        self.bytes.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.bytes.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.bytes.sync()
    }
}

#[test]
fn the_conversion_buffer_is_as_large_as_was_asked_for() {
    let store = Arc::new(Counting::default());
    let context = Context::builder().threads(1).build().unwrap();
    let file = File::options().context(&context).create_in(store.clone()).unwrap();
    let dataset = file.new_dataset::<i16>().shape([3, 100_000]).create("d").unwrap();
    let values: Vec<i64> = (0..300_000).map(|cell| cell % 30_000).collect();
    for bytes in [0, 1, 7, 4096, 50_000] {
        let transfer = Transfer::new().buffer(bytes);
        let some = 2..if bytes < 100 { 300 } else { 90_000 };
        let expected: Vec<i64> = (0..3)
            .flat_map(|row| &values[row * 100_000..][2..some.end as usize])
            .copied()
            .collect();
        store.written.store(0, Ordering::Relaxed);
        dataset.write_with((.., some.clone()), &expected, &transfer).unwrap();
        store.read.store(0, Ordering::Relaxed);
        assert_eq!(dataset.read_with::<i64>((.., some.clone()), &transfer).unwrap(), expected);
        let most = bytes.max(2);
        for moved in [&store.read, &store.written] {
            let moved = moved.load(Ordering::Relaxed);
            assert!(moved <= most && moved + 2 > most.min(50_000), "{moved} of {bytes}");
        }
        // What is not converted goes past it.
        store.read.store(0, Ordering::Relaxed);
        let plain: Vec<i16> = expected.iter().map(|&value| value as i16).collect();
        assert_eq!(dataset.read_with::<i16>((.., some), &transfer).unwrap(), plain);
    }
}

/// Options for a file that is open already.
fn opened(
    path: &Path,
    change: impl FnOnce(pumice::FileOptions) -> pumice::FileOptions,
) -> Result<File, String> {
    change(File::options()).edit(path).map_err(|error| error.to_string())
}

#[test]
fn an_option_that_cannot_take_effect_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let context = Context::builder().threads(1).build().unwrap();
    let file = File::options().context(&context).create(&path).unwrap();
    let cache = CacheOptions::default().maximum(1 << 20);
    let view = VirtualView { first_missing: true, gap: 3 };
    let other = Context::builder().threads(1).build().unwrap();
    let refused = [
        opened(&path, |options| options.context(&other)),
        opened(&path, |options| options.context(&Context::global())),
        opened(&path, |options| options.cache_options(cache)),
        opened(&path, |options| options.locking(Locking::Off)),
        opened(&path, |options| options.durability(Durability::Power)),
        opened(&path, |options| options.virtual_view(view)),
        opened(&path, |options| options.alignment(100, 4096)),
        opened(&path, |options| options.library_version(LibraryVersion::Earliest)),
        opened(&path, |options| options.newest_version(LibraryVersion::V110)),
        opened(&path, |options| options.mark_open(true)),
    ];
    for (number, refused) in refused.into_iter().enumerate() {
        let why = refused.err().unwrap_or_else(|| panic!("{number} is not refused"));
        assert!(why.contains("a.h5") && why.contains("open with another"), "{number}: {why}");
    }
    // What is so, or was not asked for, is no error; nor what concerns writing, for who reads.
    drop(opened(&path, |options| options).unwrap());
    drop(opened(&path, |options| options.context(&context)).unwrap());
    drop(opened(&path, |options| options.cache_options(CacheOptions::default())).unwrap());
    drop(File::options().durability(Durability::Power).open(&path).unwrap());
    drop(file);
    drop(opened(&path, |options| options.cache_options(cache).context(&other)).unwrap());
}

/// Notes what it is told, and lets chunks leave in the order in which they were used.
struct Watching {
    order: Lru,
    hints: Arc<Mutex<Vec<Hint>>>,
    told: Arc<AtomicBool>,
}

impl Policy for Watching {
    fn admit(&mut self, id: u32, identity: u64, weight: u64, usage: Usage) {
        self.hints.lock().unwrap().push(usage.hint);
        self.order.admit(id, identity, weight, usage);
    }
    fn touch(&mut self, id: u32, usage: Usage) {
        self.order.touch(id, usage);
    }
    fn reweigh(&mut self, id: u32, weight: u64) {
        self.order.reweigh(id, weight);
    }
    fn evict(&mut self, id: u32) {
        self.order.evict(id);
    }
    fn remove(&mut self, id: u32) {
        self.order.remove(id);
    }
    fn coldest(&self, visit: &mut dyn FnMut(u32) -> bool) {
        self.told.store(true, Ordering::Relaxed);
        self.order.coldest(visit);
    }
    fn set_capacity(&mut self, capacity: u64) {
        self.order.set_capacity(capacity);
    }
}

#[test]
fn a_policy_of_ones_own_is_asked_and_told_of_hints_on_every_layout() {
    for layout in KEPT {
        let (hints, told) = (Arc::<Mutex<Vec<Hint>>>::default(), Arc::<AtomicBool>::default());
        let (noted, asked) = (Arc::clone(&hints), Arc::clone(&told));
        let own = move |_| -> Box<dyn Policy> {
            let (hints, told) = (Arc::clone(&noted), Arc::clone(&asked));
            Box::new(Watching { order: Lru::new(), hints, told })
        };
        let (context, file) =
            file(Context::builder().own_policy(own).cache_bytes(6 * CHUNK).threads(2));
        let dataset = dataset(&file, layout);
        dataset.set_cache_options(CacheOptions::default().hint(Hint::Random));
        (0..CHUNKS).for_each(|chunk| write(&dataset, chunk));
        (0..CHUNKS).for_each(|chunk| read(&dataset, chunk));
        assert!(context.stats().resident <= 6 * CHUNK && told.load(Ordering::Relaxed), "{layout}");
        let hints = hints.lock().unwrap().clone();
        assert!(!hints.is_empty() && hints.iter().all(|hint| *hint == Hint::Random), "{layout}");
        context.configure(context.cache_config().policy(PolicyKind::TinyLfu)).unwrap();
        (0..CHUNKS).for_each(|chunk| read(&dataset, chunk));
    }
}
