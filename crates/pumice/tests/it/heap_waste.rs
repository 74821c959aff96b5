//! What overwritten and erased strings leave behind: in memory a share that can be set, in the file
//! nothing.

use pumice::{Context, Dataset, File};

const LENGTH: usize = 1000;
const CELLS: u64 = 100;
/// How often every string is overwritten.
const ROUNDS: u64 = 20;

fn word(seed: u64) -> String {
    let letter = |at: usize| char::from(b'a' + (seed as usize * 7 + at * at) as u8 % 26);
    (0..LENGTH).map(letter).collect()
}

fn filled(file: &File, sparse: bool) -> Dataset {
    let builder = file.new_strings().shape([CELLS]).chunk([CELLS]).no_filters();
    let builder = if sparse { builder.sparse() } else { builder.variable_length() };
    let dataset = builder.create("words").unwrap();
    let words: Vec<String> = (0..CELLS).map(word).collect();
    dataset.write_strings(.., &words).unwrap();
    dataset
}

#[test]
fn heaps_in_memory_are_made_anew_above_the_share_that_is_set() {
    for sparse in [false, true] {
        for (percent, most) in [(0, 0), (25, 25), (80, 80)] {
            let context = Context::builder().cache_bytes(64 << 20).threads(1).build().unwrap();
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("waste.h5");
            let file = File::options().context(&context).create(&path).unwrap();
            let dataset = filled(&file, sparse);
            dataset.set_heap_waste(percent);
            let used = CELLS * (LENGTH as u64 + 16);
            let mut largest = 0;
            for round in 0..ROUNDS * CELLS {
                dataset.write_strings(round % CELLS, &[word(round * 3)]).unwrap();
                largest = largest.max(context.stats().resident);
            }
            // Waste is a share of the whole heap; a vector may have room for twice what it holds.
            let heap = CELLS * LENGTH as u64 * 100 / (100 - most);
            assert!(largest < 2 * (heap + 2 * used), "{percent} %: {largest} byte(s)");
            if percent == 80 {
                assert!(largest > 2 * used, "{percent} %: {largest} byte(s), made anew too soon");
            }
            for at in 0..CELLS {
                let last = word(((ROUNDS - 1) * CELLS + at) * 3);
                assert_eq!(dataset.read_strings(at).unwrap(), [last]);
            }
            // The stored heap has no rests: every string and its header, to multiples of eight.
            dataset.flush().unwrap();
            let chunk = dataset.structured_chunk_info_at([0]).unwrap().unwrap();
            let stored = chunk.sections.last().unwrap().size;
            assert_eq!(stored, 12 + 16 + 16 + CELLS * (16 + LENGTH as u64) + 4);
        }
    }
}

#[test]
fn erased_strings_leave_nothing_in_the_file() {
    let file = File::in_memory().unwrap();
    let dataset = filled(&file, true);
    dataset.erase(10..90).unwrap();
    dataset.flush().unwrap();
    let chunk = dataset.structured_chunk_info_at([0]).unwrap().unwrap();
    let stored = chunk.sections.last().unwrap().size;
    assert_eq!(stored, 12 + 16 + 16 + 20 * (16 + LENGTH as u64) + 4);
    dataset.erase(..).unwrap();
    assert_eq!(dataset.storage_size().unwrap(), 0);
}
