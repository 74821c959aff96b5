//! Changed metadata takes no more memory than it may, however much of it there is.

#[path = "support/held.rs"]
mod held;

use held::most_memory;
use pumice::{File, FileOptions, LibraryVersion};
use std::path::Path;

const GROUPS: usize = 50_000;
const LIMIT: usize = 1 << 20;
/// Beside what changed: the chunk cache and other things of a fixed size, what is open anyway, and
/// copies that are made while blocks are written.
const ALLOWANCE: usize = 5 << 20;

fn name(number: usize) -> String {
    format!("group of number {number}")
}

fn create(path: &Path, options: FileOptions) -> usize {
    let file = options.create(path).unwrap();
    let most = most_memory(|| {
        (0..GROUPS).for_each(|number| drop(file.create_group(&name(number)).unwrap()));
    });
    file.close().unwrap();
    most
}

/// One after the other: they share one count of memory.
#[test]
fn fifty_thousand_groups_are_made_and_changed_within_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    for version in [LibraryVersion::default(), LibraryVersion::Earliest] {
        let path = folder.path().join("a.h5");
        let options = || File::options().library_version(version);
        let free = create(&path, options().metadata_limit(usize::MAX));
        assert!(free > 2 * (LIMIT + ALLOWANCE), "{version:?}: {free}, so that a limit shows");
        let length = std::fs::metadata(&path).unwrap().len();
        let most = create(&path, options().metadata_limit(LIMIT));
        assert!(most < LIMIT + ALLOWANCE, "{version:?}: {most} bytes");
        let limited = std::fs::metadata(&path).unwrap().len();
        assert!(limited < length + length / 10, "{limited} instead of {length} bytes");

        let file = options().metadata_limit(LIMIT).edit(&path).unwrap();
        let most = most_memory(|| {
            for number in 0..GROUPS {
                let group = file.group(&name(number)).unwrap();
                group.set_attribute("number", number as u64).unwrap();
            }
        });
        assert!(most < LIMIT + ALLOWANCE, "{version:?}: {most} bytes to edit");
        file.close().unwrap();

        let file = File::open(&path).unwrap();
        assert_eq!(file.member_count().unwrap(), GROUPS as u64);
        for number in (0..GROUPS).step_by(997) {
            let found = file.group(&name(number)).unwrap().attribute("number").unwrap();
            assert_eq!(found.read::<u64>().unwrap(), [number as u64]);
        }
    }
}
