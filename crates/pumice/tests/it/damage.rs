//! Damaged files: every byte changed, every length cut off, every checksum made right again.
//!
//! Three promises are held against small files with everything that Pumice writes:
//!
//! - Whatever the damage, opening, walking and reading end in an answer or an error: no panic, no
//!   long wait, no memory beyond reason.
//! - What has a checksum is never wrong: metadata, attributes and the cells of sparse chunks are
//!   as they were, or there is an error. Values without checksum may be wrong, on the right cells.
//! - With a right checksum over wrong bytes the first promise still holds.

mod clock;
mod specimen;
mod walk;

use crate::memory;
use crate::thorough::{amount, thorough};
use pumice::{File, StoredSection};
use pumice_bytes::lookup3;
use specimen::Specimen;
use std::cell::Cell;
use std::fmt::Arguments;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once};
use std::thread;
use std::time::Duration;
use walk::{Contents, Walker};

/// The most memory that a file of some kilobytes may make us take at once.
const MEMORY: u64 = 1 << 30;
/// The longest that a thread may compute for one damaged file.
const TIME: Duration = Duration::from_secs(10);

thread_local! {
    /// How often this thread has panicked: the cache turns a panic under it into an error.
    static PANICS: Cell<u32> = const { Cell::new(0) };
}

#[test]
fn changed_bytes_of_dense_files_are_errors_or_harmless() {
    for_each(specimen::dense(), change_every_byte);
}

#[test]
fn changed_bytes_of_sparse_files_are_errors_or_harmless() {
    for_each(specimen::sparse(), change_every_byte);
}

#[test]
fn changed_bytes_of_variable_length_files_are_errors_or_harmless() {
    for_each(specimen::variable_length(), change_every_byte);
}

#[test]
fn changed_bytes_of_variable_length_files_with_every_index_are_errors_or_harmless() {
    for_each(specimen::variable_length_indexes(), change_each_byte_once);
}

#[test]
fn changed_bytes_of_chunks_that_were_written_through_long_logs_are_errors_or_harmless() {
    for_each(specimen::logged(), change_each_byte_once);
}

#[test]
fn truncated_files_are_errors_or_harmless() {
    for_each(specimen::some(), |specimen| {
        let mut cases = Cases::new(specimen);
        for length in 0..specimen.bytes.len() {
            let mut cut = specimen.bytes[..length].to_vec();
            let opened = cases.run(format_args!("cut at {length}"), cut.clone());
            assert!(opened.is_none(), "{}: opened {length} byte(s)", specimen.name);
            if length >= 48 {
                // The superblock agrees that the file is so short.
                cut[28..36].copy_from_slice(&(length as u64).to_le_bytes());
                repair(&mut cut, &(0..44));
                cases.must_hold(format_args!("ends at {length}"), cut, None);
            }
        }
        cases.finish()
    });
}

#[test]
fn damage_under_right_checksums_ends_in_an_answer_or_an_error() {
    for_each(specimen::some(), |specimen| {
        let mut cases = Cases::new(specimen);
        for block in &specimen.blocks {
            for at in block.clone() {
                for pattern in patterns(&specimen.bytes, at) {
                    let mut damaged = specimen.bytes.clone();
                    damaged[at] ^= pattern;
                    repair(&mut damaged, block);
                    cases.run(format_args!("byte {at} ^ {pattern:#x}"), damaged);
                }
            }
        }
        cases.finish()
    });
}

#[test]
fn numbers_of_extreme_size_under_right_checksums_end_in_an_answer_or_an_error() {
    for_each(specimen::some(), |specimen| {
        let mut cases = Cases::new(specimen);
        for block in &specimen.blocks {
            for (number, (width, value)) in EXTREMES.into_iter().enumerate() {
                let places = block.start..=block.end.saturating_sub(width);
                let step = amount(3, 1);
                let places = places.skip(number % step).step_by(step);
                for at in places.filter(|&at| !is_idle(&specimen.bytes, at)) {
                    let mut damaged = specimen.bytes.clone();
                    damaged[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
                    repair(&mut damaged, block);
                    cases.run(format_args!("{width} byte(s) at {at} = {value:#x}"), damaged);
                }
            }
        }
        cases.finish()
    });
}

/// Widths and values that sums and products are likely to overflow with.
const EXTREMES: [(usize, u64); 6] =
    [(2, 0xFFFF), (4, 0xFFFF_FFFF), (8, u64::MAX), (8, u64::MAX - 7), (8, 1 << 40), (8, 1 << 63)];

#[test]
fn scattered_damage_under_right_checksums_ends_in_an_answer_or_an_error() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for specimen in specimen::some() {
        let mut cases = Cases::new(&specimen);
        for case in 0..300 {
            cases.run(format_args!("random {case}"), random.damage(&specimen));
        }
        println!("{}", cases.finish());
    }
}

#[test]
fn editing_a_damaged_file_ends_in_an_answer_or_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.h5");
    let mut random = Random(0xD1B5_4A32_D192_ED03);
    for specimen in specimen::some() {
        let mut cases = Cases::new(&specimen);
        for case in 0..200 {
            std::fs::write(&path, random.damage(&specimen)).unwrap();
            cases.watch(format_args!("random {case}"), |walker| walker.edit(&path));
            let length = std::fs::metadata(&path).unwrap().len();
            assert!(length < 16 << 20, "{}: random {case}: {length} byte(s)", specimen.name);
        }
        println!("{}", cases.finish());
    }
}

#[test]
fn data_outside_the_file_is_neither_read_nor_written() {
    let specimen = &specimen::dense()[0];
    let address = (specimen.exposed[0].start as u64).to_le_bytes();
    let named = |block: &&Range<usize>| {
        specimen.bytes[(*block).clone()].windows(8).any(|bytes| bytes == address)
    };
    let block = specimen.blocks.iter().find(named).expect("the header of the dataset");
    let place = specimen.bytes[block.clone()].windows(8).position(|bytes| bytes == address);
    let place = block.start + place.expect("its address");
    for address in [specimen.bytes.len() as u64 - 79, 1 << 40, u64::MAX - 1] {
        let mut damaged = specimen.bytes.clone();
        damaged[place..place + 8].copy_from_slice(&address.to_le_bytes());
        repair(&mut damaged, block);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("damaged.h5");
        std::fs::write(&path, &damaged).unwrap();
        let file = File::edit(&path).unwrap();
        let dataset = file.dataset("a/contiguous").unwrap();
        assert!(dataset.read::<i16>((4.., 7..)).is_err(), "{address:#x}");
        assert!(dataset.write((4.., 7..), &[1i16]).is_err(), "{address:#x}");
        file.close().unwrap();
        assert_eq!(std::fs::read(&path).unwrap().len(), damaged.len(), "{address:#x}");
    }
}

/// The sections of a chunk, of every kind and with filters of all sorts, damaged in front of the
/// filters and behind them.
#[test]
fn damaged_sections_end_in_an_answer_or_an_error() {
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    for (name, file) in specimen::sections() {
        let specimen =
            Specimen { name, bytes: Vec::new(), exposed: Vec::new(), blocks: Vec::new() };
        let dataset = file.dataset("d").unwrap();
        let sections = dataset.read_structured_chunk([0, 0]).unwrap().expect("it is stored");
        let filtered = dataset
            .section_filters()
            .sections()
            .any(|section| dataset.section_filters().count(section) > 0);
        let mut cases = Cases::of(&specimen, Contents::default());
        for at in 0..sections.len() {
            for case in 0..200 {
                let mut damaged = sections.clone();
                random.damage_section(&mut damaged[at], filtered);
                cases.watch(format_args!("section {at}, random {case}"), |_| {
                    let written = dataset.write_structured_chunk([0, 0], &damaged);
                    written.and_then(|()| dataset.read_values(..))
                });
            }
        }
        assert!(cases.most_memory < 16 << 20, "{}: {}", specimen.name, cases.most_memory);
        println!("{}", cases.finish());
    }
}

/// Checks specimens on all processors, and tells of each.
fn for_each(specimens: Vec<Specimen>, check: impl Fn(&Specimen) -> String + Sync) {
    let (next, told) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(specimen) = specimens.get(next.fetch_add(1, Ordering::Relaxed)) {
            let line = check(specimen);
            told.lock().unwrap().push(line);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("every case holds"));
    });
    // By the thread of the test, so that they are shown with it.
    told.into_inner().unwrap().iter().for_each(|line| println!("{line}"));
}

fn change_every_byte(specimen: &Specimen) -> String {
    let mut cases = Cases::new(specimen);
    for at in 0..specimen.bytes.len() {
        for pattern in patterns(&specimen.bytes, at) {
            let mut damaged = specimen.bytes.clone();
            damaged[at] ^= pattern;
            cases.must_hold(format_args!("byte {at} ^ {pattern:#x}"), damaged, Some(at));
        }
    }
    cases.finish()
}

/// As [`change_every_byte`], with one change to each: for many files that are alike.
fn change_each_byte_once(specimen: &Specimen) -> String {
    let mut cases = Cases::new(specimen);
    for at in 0..specimen.bytes.len() {
        let pattern = [0x01, 0x80, 0xFF, 0x10][at % 4];
        let mut damaged = specimen.bytes.clone();
        damaged[at] ^= pattern;
        cases.must_hold(format_args!("byte {at} ^ {pattern:#x}"), damaged, Some(at));
    }
    cases.finish()
}

/// What a byte is changed by: a byte among many zeros, which mostly are room for later, once, and every byte unless
/// everything is tried.
fn patterns(bytes: &[u8], at: usize) -> impl Iterator<Item = u8> {
    let all = [0x01, 0x80, 0xFF];
    let range = match (is_idle(bytes, at), thorough()) {
        (true, _) => 2..3,
        (false, true) => 0..3,
        (false, false) => at % 3..at % 3 + 1,
    };
    all.into_iter().take(range.end).skip(range.start)
}

fn is_idle(bytes: &[u8], at: usize) -> bool {
    let near = at.saturating_sub(8)..(at + 9).min(bytes.len());
    bytes[near].iter().all(|&byte| byte == 0)
}

/// Makes the checksum behind a block right.
fn repair(bytes: &mut [u8], block: &Range<usize>) {
    let checksum = lookup3(&bytes[block.clone()]).to_le_bytes();
    bytes[block.end..block.end + 4].copy_from_slice(&checksum);
}

/// Runs damaged versions of one file and collects what must not be.
struct Cases<'a> {
    specimen: &'a Specimen,
    walker: Walker,
    truth: Contents,
    failures: Vec<String>,
    count: u64,
    most_memory: u64,
    longest: Duration,
}

impl<'a> Cases<'a> {
    fn new(specimen: &'a Specimen) -> Self {
        let walker = Walker::new();
        let truth = walker.walk(specimen.bytes.clone()).expect("an undamaged file");
        assert!(truth.is_complete(), "{}: {truth:#?}", specimen.name);
        Self { walker, ..Self::of(specimen, truth) }
    }

    fn of(specimen: &'a Specimen, truth: Contents) -> Self {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let usual = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                PANICS.set(PANICS.get() + 1);
                usual(panic);
            }));
        });
        let walker = Walker::new();
        let (failures, count, most_memory) = (Vec::new(), 0, 0);
        Self { specimen, walker, truth, failures, count, most_memory, longest: Duration::ZERO }
    }

    /// Walks a damaged file; what was found, if it could be opened.
    fn run(&mut self, case: Arguments<'_>, bytes: Vec<u8>) -> Option<Contents> {
        self.watch(case, |walker| walker.walk(bytes)).flatten()
    }

    /// Does something with a damaged file.
    fn watch<T>(&mut self, case: Arguments<'_>, action: impl FnOnce(&Walker) -> T) -> Option<T> {
        let (start, panics) = (clock::computed(), PANICS.get());
        memory::reset();
        let done = catch_unwind(AssertUnwindSafe(|| action(&self.walker)));
        let (time, memory) = (clock::computed().saturating_sub(start), memory::peak());
        self.count += 1;
        self.most_memory = self.most_memory.max(memory);
        self.longest = self.longest.max(time);
        if time > TIME {
            self.failures.push(format!("{case}: took {time:?}"));
        }
        if memory > MEMORY {
            self.failures.push(format!("{case}: took {memory} byte(s)"));
        }
        if PANICS.get() > panics {
            self.failures.push(format!("{case}: panicked"));
        }
        done.ok()
    }

    /// Walks a damaged file, in which nothing with a checksum may be wrong.
    fn must_hold(&mut self, case: Arguments<'_>, bytes: Vec<u8>, damaged: Option<usize>) {
        let Some(found) = self.run(case, bytes) else { return };
        let exposed =
            damaged.is_some_and(|at| self.specimen.exposed.iter().any(|range| range.contains(&at)));
        for difference in found.differences(&self.truth, exposed) {
            self.failures.push(format!("{case}: {difference}"));
        }
    }

    /// Fails if anything was that must not be; tells what there was.
    fn finish(self) -> String {
        let Self { specimen: Specimen { name, bytes, .. }, failures, count, .. } = self;
        let shown = failures[..failures.len().min(20)].join("\n");
        assert!(failures.is_empty(), "{name}: {} failure(s)\n{shown}", failures.len());
        format!(
            "{name}: {} byte(s), {count} case(s), at most {} KiB and {:?}",
            bytes.len(),
            self.most_memory >> 10,
            self.longest,
        )
    }
}

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    /// A file with some bytes of its blocks changed, and right checksums.
    fn damage(&mut self, specimen: &Specimen) -> Vec<u8> {
        let mut damaged = specimen.bytes.clone();
        for _ in 0..=self.below(6) {
            let block = &specimen.blocks[self.below(specimen.blocks.len())];
            let at = block.start + self.below(block.len());
            damaged[at] = self.below(256) as u8;
        }
        specimen.blocks.iter().for_each(|block| repair(&mut damaged, block));
        damaged
    }

    /// Changes some bytes of a section; without filters its checksum, if it has one, is right.
    fn damage_section(&mut self, section: &mut StoredSection, filtered: bool) {
        if filtered && self.below(4) == 0 {
            section.unfiltered_size = EXTREMES[self.below(EXTREMES.len())].1;
        }
        let end = section.bytes.len() - if filtered { 0 } else { 4 };
        for _ in 0..=self.below(3) {
            let (width, value) = match self.below(2) {
                0 => (1, self.below(256) as u64),
                _ => EXTREMES[self.below(EXTREMES.len())],
            };
            let width = width.min(end);
            let at = self.below(end - width + 1);
            section.bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
        if !filtered {
            repair(&mut section.bytes, &(0..end));
        }
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}
