//! A program ends while one call changes more of a chunk index than may wait in memory.

use pumice::{Context, File, FileOptions, FileSpaceStrategy, LibraryVersion};
use pumice_testkit::moments::torn;
use pumice_testkit::recording::RecordingStore;
use std::sync::Arc;

/// Chunks of one element, with filters: every one that is overwritten gets another place, so that all blocks of the
/// index change.
const CHUNKS: u64 = 2_500;

/// So many moments at which a program ends are tried.
const MOMENTS: usize = 40;

fn kinds() -> Vec<(&'static str, FileOptions)> {
    let old = File::options().library_version(LibraryVersion::Earliest);
    let paged = File::options().space_strategy(FileSpaceStrategy::Paged).page_size(512);
    vec![
        ("fixed", File::options()),
        ("extensible", File::options()),
        ("tree", File::options()),
        ("old tree", old),
        ("fixed in pages", paged.persist_free_space(true)),
    ]
}

fn values(seed: u64) -> Vec<i32> {
    (0..CHUNKS).map(|number| (number * 7 + seed) as i32).collect()
}

fn create(file: &File, kind: &str) -> pumice::Dataset {
    let shape = if kind == "tree" { vec![CHUNKS / 50, 50] } else { vec![CHUNKS] };
    let builder = file.new_dataset::<i32>().shape(shape.clone()).chunk(vec![1; shape.len()]);
    let limited = kind.starts_with("fixed");
    let most = shape.iter().map(|&side| limited.then_some(side)).collect::<Vec<_>>();
    builder.max_shape(most).deflate(1).create("d").unwrap()
}

#[test]
fn a_program_may_end_while_blocks_of_an_index_wait_elsewhere_in_the_file() {
    for (kind, options) in kinds() {
        let store = Arc::new(RecordingStore::of_parts(&[0]));
        let context = Context::builder().cache_bytes(1 << 16).threads(1).build().unwrap();
        let options = options.context(&context).metadata_limit(3_000);
        let file = options.create_in(store.clone()).unwrap();
        let dataset = create(&file, kind);
        dataset.write(.., &values(1)).unwrap();
        file.flush().unwrap();
        let first = store.count();
        dataset.write(.., &values(2)).unwrap();
        assert_eq!(dataset.read::<i32>(..).unwrap(), values(2), "{kind}: what waits is read");
        // Once more: what waits elsewhere is changed again.
        dataset.write(.., &values(3)).unwrap();
        assert_eq!(dataset.read::<i32>(..).unwrap(), values(3), "{kind}");
        drop(dataset);
        file.close().unwrap();
        let step = ((store.count() - first) / MOMENTS).max(1);
        let mut seen = [0; 3];
        for count in (first..=store.count()).rev().step_by(step) {
            for torn in torn(count) {
                let at = format!("{kind}: after {count} of {} changes, {torn}", store.count());
                let copy = Arc::new(store.blank());
                store.play(count, torn, &*copy).unwrap();
                let file = File::options().edit_in(copy.clone());
                let file = file.unwrap_or_else(|error| panic!("{at}: {error}"));
                let found = file.dataset("d").unwrap().read::<i32>(..);
                let found = found.unwrap_or_else(|error| panic!("{at}: {error}"));
                let state = (1..=3).find(|&seed| found == values(seed));
                let state = state.unwrap_or_else(|| panic!("{at}: between two calls"));
                seen[state as usize - 1] += 1;
                file.create_group("after").unwrap();
                file.close().unwrap();
                let file = File::options().open_in(copy).unwrap();
                assert_eq!(file.dataset("d").unwrap().read::<i32>(..).unwrap(), found, "{at}");
            }
        }
        assert!(seen[0] > 0 && seen[2] > 0, "{kind}: {seen:?}");
    }
}
