//! Many threads that read one file at once get what one thread gets, of every layout, while chunks
//! come and go in a small cache.

use pumice::{Attribute, CommittedDatatype, Context, Dataset, File, Group, Node, Selection};
use std::sync::Arc;
use std::thread;

const THREADS: u64 = 8;
const READS: u64 = 60;

fn is_shared<T: Send + Sync>() {}

#[test]
fn handles_go_from_thread_to_thread() {
    is_shared::<File>();
    is_shared::<Group>();
    is_shared::<Dataset>();
    is_shared::<Attribute>();
    is_shared::<CommittedDatatype>();
    is_shared::<Node>();
    is_shared::<Context>();
}

/// The names of the datasets: one for each layout and chunk index that can be written.
const NUMBERS: [&str; 9] = [
    "contiguous",
    "single",
    "fixed",
    "extensible",
    "tree",
    "filtered",
    "checked",
    "compact",
    "sparse",
];

fn write(path: &std::path::Path) -> pumice::Result<()> {
    let file = File::create(path)?;
    let values: Vec<i32> = (0..70 * 90).map(|cell| cell * 7919 % 10_007).collect();
    let new = || file.new_dataset::<i32>().shape([70, 90]);
    let made = [
        new().create(NUMBERS[0])?,
        new().chunk([70, 90]).create(NUMBERS[1])?,
        new().chunk([9, 8]).create(NUMBERS[2])?,
        new().chunk([9, 8]).max_shape([None, Some(90)]).create(NUMBERS[3])?,
        new().chunk([9, 8]).max_shape([None, None]).create(NUMBERS[4])?,
        new().chunk([9, 8]).shuffle().deflate(3).create(NUMBERS[5])?,
        new().chunk([16, 16]).deflate(1).fletcher32().create(NUMBERS[6])?,
        new().compact().create(NUMBERS[7])?,
        new().chunk([9, 8]).sparse().create(NUMBERS[8])?,
    ];
    for dataset in &made[..8] {
        dataset.write(.., &values)?;
    }
    let diagonal: Vec<[u64; 2]> = (0..70).map(|row| [row, (row * 13) % 90]).collect();
    made[8].write(diagonal, &values[..70])?;
    let words = file.new_strings().shape([500]).chunk([64]).sparse().create("words")?;
    let texts: Vec<String> = (0..500).map(|word| "pumice ".repeat(word % 9)).collect();
    words.write_strings(.., &texts)?;
    file.set_attribute("numbers", vec![1u16, 2, 3])?;
    file.close()
}

/// A window that depends on nothing but its number.
fn window(number: u64) -> Selection {
    let (top, left) = (number * 31 % 60, number * 17 % 80);
    Selection::block(&[top, left], &[1 + number % 10, 1 + number * 3 % 10]).unwrap()
}

/// Everything that one thread reads, in one order or another.
fn read(file: &File, shift: u64) -> Vec<(u64, Vec<i32>, Vec<u8>)> {
    let mut found = Vec::new();
    for step in 0..READS {
        let number = (step + shift * 7) % READS;
        let name = NUMBERS[number as usize % NUMBERS.len()];
        let values = file.dataset(name).unwrap().read::<i32>(window(number)).unwrap();
        let words = file.dataset("words").unwrap();
        let words = words.read_strings(number * 8..number * 8 + 5).unwrap();
        let mut text = words.bytes().to_vec();
        text.extend(file.attribute("numbers").unwrap().bytes());
        found.push((number, values, text));
    }
    found.sort();
    found
}

#[test]
fn eight_threads_read_what_one_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    write(&path).unwrap();
    for threads in [0, 2] {
        // Room for few chunks: most are dropped and loaded again.
        let context = Context::builder().cache_bytes(8 << 10).threads(threads).build().unwrap();
        let file = Arc::new(File::options().context(&context).open(&path).unwrap());
        let wanted = read(&file, 0);
        assert!(wanted.iter().any(|(_, values, _)| values.iter().any(|&value| value != 0)));
        thread::scope(|scope| {
            let readers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let file = file.clone();
                    scope.spawn(move || read(&file, thread))
                })
                .collect();
            for reader in readers {
                assert_eq!(reader.join().unwrap(), wanted);
            }
        });
    }
}
