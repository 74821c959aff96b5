//! A committed state stays whole until the next commit, whatever other threads do meanwhile.

use pumice_cache::{ChunkCache, Config};
use pumice_engine::dataset::{DatasetSpec, DatasetState, LayoutSpec};
use pumice_engine::file::File;
use pumice_engine::{Result, group};
use pumice_filter::FilterSpec;
use pumice_format::messages::{Link, LinkTarget};
use pumice_space::{Extent, Selection};
use pumice_store::MemoryStore;
use pumice_types::{Datatype, H5Type};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const SIDE: u64 = 64;
const CHUNK: u64 = 8;
/// Several, so that a commit takes a while to stage them all.
const DATASETS: usize = 12;

/// A cell's only value, so that any state of the file can be checked by itself.
fn value(row: u64, column: u64) -> i32 {
    (row * 1000 + column + 1) as i32
}

/// A cache of a few chunks: nearly every write pushes another chunk out.
fn tiny_cache() -> ChunkCache<pumice_layout::DatasetLayout> {
    ChunkCache::new(Config::default().resident_limit(2000).active_limit(4000))
}

fn create(file: &File, name: &str, filters: Vec<FilterSpec>) -> Result<Arc<DatasetState>> {
    let layout = LayoutSpec::Sparse {
        chunk: vec![CHUNK, CHUNK],
        locations: Vec::new(),
        values: filters,
        dont_filter_partial: false,
    };
    let extent = Extent::simple(&[SIDE, SIDE])?;
    let spec = DatasetSpec::new(i32::datatype(), extent, layout);
    let state = DatasetState::create(file, spec)?;
    let address = state.object().address();
    let link = Link::new(name, LinkTarget::Hard { address });
    group::insert(file, &*file.root()?, link)?;
    file.new_dataset(state)
}

/// Writes and erases small blocks all over the place.
fn disturb(datasets: &[Arc<DatasetState>], mut random: u64, stop: &AtomicBool) {
    let datatype: Datatype = i32::datatype();
    while !stop.load(Ordering::Relaxed) {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let draw = random >> 20;
        let dataset = &datasets[(random >> 60) as usize % datasets.len()];
        let (row, column) = (draw % (SIDE - 12), (draw >> 8) % (SIDE - 12));
        let (rows, columns) = ((draw >> 16) % 12 + 1, (draw >> 20) % 12 + 1);
        let block = Selection::block(&[row, column], &[rows, columns]).unwrap();
        if draw >> 30 & 3 == 0 {
            dataset.erase(&block).unwrap();
            continue;
        }
        let cells = (row..row + rows).flat_map(|r| (column..column + columns).map(move |c| (r, c)));
        let bytes: Vec<u8> = cells.flat_map(|(r, c)| value(r, c).to_le_bytes()).collect();
        dataset.write(&block, &datatype, &bytes).unwrap();
    }
}

/// Opens a copy of the file as it is and checks every cell in it. Returns how many there are.
fn check(bytes: Vec<u8>) -> u64 {
    let file = File::open(Arc::new(MemoryStore::new(bytes)), tiny_cache(), false).unwrap();
    (0..DATASETS).map(|number| check_dataset(&file, &number.to_string())).sum()
}

fn check_dataset(file: &File, name: &str) -> u64 {
    let object = group::resolve(file, &file.root().unwrap(), name).unwrap();
    let dataset = DatasetState::open(file, &object.object).unwrap();
    let mut cells = 0;
    let mut found = Vec::new();
    let keep = |some| {
        found.extend(some);
        Ok(())
    };
    dataset.read_defined_each(&Selection::all(), dataset.datatype(), keep).unwrap();
    for part in found {
        let origin: Vec<u64> = part.chunk.iter().map(|number| number * CHUNK).collect();
        let mut coordinates = Vec::new();
        part.cells.append_coordinates(&[CHUNK, CHUNK], &origin, &mut coordinates);
        for (place, bytes) in coordinates.chunks(2).zip(part.values.chunks(4)) {
            assert_eq!(bytes, value(place[0], place[1]).to_le_bytes(), "{place:?}");
            cells += 1;
        }
    }
    cells
}

fn stays_whole(filters: Vec<FilterSpec>) {
    let store = Arc::new(MemoryStore::default());
    let file = File::create(store.clone(), tiny_cache(), &Default::default()).unwrap();
    let datasets: Vec<_> = (0..DATASETS)
        .map(|number| create(&file, &number.to_string(), filters.clone()).unwrap())
        .collect();
    let stop = AtomicBool::new(false);
    let mut cells = 0;
    std::thread::scope(|scope| {
        for seed in 1..=2 {
            let (datasets, stop) = (&datasets, &stop);
            scope.spawn(move || disturb(datasets, seed, stop));
        }
        for _ in 0..60 {
            file.commit().unwrap();
            // The others go on: what they take and give back must not touch what was committed.
            std::thread::yield_now();
            let copy = store.to_vec();
            cells = std::panic::catch_unwind(|| check(copy)).unwrap_or_else(|panic| {
                stop.store(true, Ordering::Relaxed);
                std::panic::resume_unwind(panic)
            });
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(cells > 0);
}

#[test]
fn a_committed_file_stays_whole_while_others_write() {
    stays_whole(Vec::new());
}

#[test]
fn a_committed_file_stays_whole_while_others_write_compressed_chunks() {
    stays_whole(vec![FilterSpec::deflate(1)]);
}
