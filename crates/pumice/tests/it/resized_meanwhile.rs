//! Reads, erasing and copies while another thread resizes the dataset.

use pumice::{
    Coo, Dataset, DatasetBuilder, Duplicates, Error, File, Keep, Lines, ReadMany, Select,
    Selection, WriteMany,
};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

const ROUNDS: u64 = 1000;

/// Resizes and writes on one thread, and calls `act` on another for as long.
fn against(datasets: &[&Dataset], mut act: impl FnMut() + Send) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                act();
            }
        });
        let mut side = 10;
        for round in 0..ROUNDS {
            side = if side > 120 { 10 } else { side + round % 37 };
            for dataset in datasets {
                // Also of the same number of cells, and of another shape.
                dataset.resize([side, 2 * side]).unwrap();
                dataset.resize([2 * side, side]).unwrap();
                let point = [round * 7919 % side, round * 104_729 % side];
                match dataset.datatype().has_varlen() {
                    true => dataset.write_strings([point].as_slice(), &["abc"]).unwrap(),
                    false => dataset.write_point(&point, round as f32).unwrap(),
                }
            }
        }
        done.store(true, Ordering::SeqCst);
        reader.join().unwrap();
    });
}

fn growing(builder: DatasetBuilder) -> DatasetBuilder {
    builder.shape([10, 10]).max_shape([None, None]).chunk([5, 5])
}

#[test]
fn matrices_and_lists_are_of_one_shape() {
    let file = File::in_memory().unwrap();
    let matrix = growing(file.new_dataset::<f32>()).sparse().create("d").unwrap();
    against(&[&matrix], || {
        for lines in [Lines::Rows, Lines::Columns] {
            let found = matrix.read_compressed::<f32>(lines).unwrap();
            assert_eq!(found.pointers.last(), Some(&found.len()));
            let mut next = 0;
            for block in matrix.compressed_blocks::<f32>(lines).unwrap() {
                let block = block.unwrap();
                assert_eq!(block.first, next);
                next += block.line_count();
            }
        }
        let inside = |list: &Coo<f32>| {
            let mut axes = list.columns.iter().zip(&list.shape);
            axes.all(|(column, end)| column.iter().all(|at| at < end))
        };
        assert!(inside(&matrix.read_coo().unwrap()));
        assert!(matrix.coo_blocks().unwrap().all(|block| inside(&block.unwrap())));
    });
}

#[test]
fn whole_datasets_are_read_and_erased() {
    let file = File::in_memory().unwrap();
    let sparse = growing(file.new_dataset::<f32>()).sparse().create("sparse").unwrap();
    let dense = growing(file.new_dataset::<f32>()).create("dense").unwrap();
    let words = growing(file.new_strings()).sparse().create("words").unwrap();
    let heaped = growing(file.new_strings()).create("heaped").unwrap();
    against(&[&sparse, &dense, &words, &heaped], || {
        for dataset in [&sparse, &dense] {
            dataset.read::<f32>(..).unwrap();
            dataset.read_bytes((.., 3)).unwrap();
            dataset.count_defined((2.., ..)).unwrap();
            dataset.defined(..).unwrap();
            let found = dataset.read_defined::<f32>(..).unwrap();
            assert_eq!(found.coordinates.len(), 2 * found.len());
            dataset.reset((.., 3)).unwrap();
            dataset.write_scalar((.., 4), 1.0f32).unwrap();
        }
        sparse.erase((2, ..)).unwrap();
        for dataset in [&words, &heaped] {
            dataset.read_strings(..).unwrap();
            dataset.read_values((3, ..)).unwrap();
        }
        words.read_defined_strings(..).unwrap();
        words.erase((.., 3)).unwrap();
    });
}

/// Shapes of equally many cells, of which none has those of the other.
const SHAPES: [[u64; 2]; 2] = [[10, 20], [20, 10]];

#[test]
fn several_datasets_are_used_in_the_extents_that_they_have_then() {
    let file = File::in_memory().unwrap();
    let dense = growing(file.new_dataset::<f32>()).create("dense").unwrap();
    let sparse = growing(file.new_dataset::<f32>()).sparse().create("sparse").unwrap();
    for (now, then) in [(0, 1), (1, 0)] {
        let (mut one, mut two) = ([0f32; 200], [0f32; 200]);
        let values: Vec<f32> = (0..200).map(|at| (at + 1000 * now) as f32).collect();
        let resize = |to: usize| {
            dense.resize(SHAPES[to]).unwrap();
            sparse.resize(SHAPES[to]).unwrap();
        };
        resize(now);
        let mut writes = WriteMany::new();
        writes.add(&dense, (.., ..), &values).unwrap().add(&sparse, (.., ..), &values).unwrap();
        resize(then);
        writes.run().unwrap();
        resize(now);
        resize(then);
        dense.write(.., &values).unwrap();
        let mut reads = ReadMany::new();
        reads.add(&dense, (.., ..), &mut one).unwrap();
        resize(now);
        sparse.write(.., &values).unwrap();
        reads.add(&sparse, (.., ..), &mut two).unwrap();
        dense.resize(SHAPES[then]).unwrap();
        dense.write(.., &values).unwrap();
        reads.run().unwrap();
        assert_eq!((&one[..], &two[..]), (&values[..], &values[..]));
    }
    // A buffer that does not fit is an error, then as before.
    let mut few = [0f32; 100];
    let mut reads = ReadMany::new();
    reads.add(&dense, (.., ..), &mut few).unwrap();
    assert!(reads.run().is_err());
}

#[test]
fn several_datasets_are_used_while_they_are_resized() {
    let file = File::in_memory().unwrap();
    let dense = growing(file.new_dataset::<f32>()).create("dense").unwrap();
    let sparse = growing(file.new_dataset::<f32>()).sparse().create("sparse").unwrap();
    let resize = |to: [u64; 2]| [&dense, &sparse].map(|dataset| dataset.resize(to).unwrap());
    resize(SHAPES[0]);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let (mut one, mut two) = ([0f32; 200], [0f32; 200]);
                let mut reads = ReadMany::new();
                reads.add(&dense, (.., ..), &mut one).unwrap();
                reads.add(&sparse, (.., ..), &mut two).unwrap();
                reads.run().unwrap();
                let mut writes = WriteMany::new();
                writes.add(&dense, (.., ..), &one).unwrap().add(&sparse, (.., ..), &two).unwrap();
                writes.run().unwrap();
                dense.will_read([(.., ..)]).unwrap();
                sparse.will_read([(.., ..)]).unwrap();
            }
        });
        for round in 0..ROUNDS {
            resize(SHAPES[(round % 2) as usize]);
        }
        done.store(true, Ordering::SeqCst);
        other.join().unwrap();
    });
}

/// All cells of an extent that is another as soon as it is known, if that can be had.
struct Pursued<'a> {
    ask: &'a Sender<()>,
    done: &'a Mutex<Receiver<()>>,
    looks: &'a AtomicUsize,
}

impl Select for Pursued<'_> {
    fn select(&self, dims: &[u64]) -> Result<Selection, Error> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        self.ask.send(()).unwrap();
        // Not if resizes are held off: then the answer comes when the read is done.
        let _ = self.done.lock().unwrap().recv_timeout(Duration::from_millis(100));
        let all = Selection::block(&[0, 0], dims)?;
        Ok(all)
    }
}

#[test]
fn a_dataset_that_is_resized_whenever_it_is_looked_at_is_read_all_the_same() {
    let file = File::in_memory().unwrap();
    let dense = growing(file.new_dataset::<f32>()).create("dense").unwrap();
    let sparse = growing(file.new_dataset::<f32>()).sparse().create("sparse").unwrap();
    for dataset in [&dense, &sparse] {
        dataset.resize(SHAPES[0]).unwrap();
        let (ask, asked) = channel();
        let (tell, done) = channel();
        let (done, looks) = (Mutex::new(done), AtomicUsize::new(0));
        thread::scope(|scope| {
            scope.spawn(move || {
                for (round, ()) in asked.into_iter().enumerate() {
                    dataset.resize(SHAPES[(round + 1) % 2]).unwrap();
                    let _ = tell.send(());
                }
            });
            let pursued = || Pursued { ask: &ask, done: &done, looks: &looks };
            assert_eq!(dataset.read::<f32>(pursued()).unwrap().len(), 200);
            let (mut one, mut two) = ([1f32; 200], [1f32; 1]);
            let mut reads = ReadMany::new();
            reads.add(dataset, pursued(), &mut one).unwrap();
            reads.add(&sparse, (0, 0), &mut two).unwrap();
            reads.run().unwrap();
            assert_eq!((one, two), ([0f32; 200], [0f32]));
            drop(ask);
        });
        assert!(looks.into_inner() > 10, "it was resized in between");
    }
}

#[test]
fn a_copy_that_fails_says_that_its_original_was_resized() {
    let file = File::in_memory().unwrap();
    let original = growing(file.new_dataset::<f32>()).sparse().create("d").unwrap();
    against(&[&original], || {
        let builder = file.new_dataset_like(&original).sparse();
        match original.copy_as(builder, "g/copy", &Keep::Defined) {
            Ok(_) => file.unlink("g/copy").unwrap(),
            Err(Error::At { source, .. }) => {
                let why = source.to_string();
                let known = why.contains("was resized") || why.contains("a copy of shape");
                assert!(known, "{why}");
            }
            Err(other) => panic!("{other}"),
        }
    });
}

#[test]
fn a_copy_that_fails_leaves_no_group_that_it_made() {
    let file = File::in_memory().unwrap();
    let original = file.new_dataset::<f32>().shape([3]).create("d").unwrap();
    file.create_group("there").unwrap();
    for path in ["a/b/c", "/a/b/c", "there/b/c"] {
        let other_shape = file.new_dataset::<f32>().shape([4]);
        assert!(original.copy_as(other_shape, path, &Keep::Defined).is_err());
        assert!(!file.contains("a") && !file.contains("there/b"), "{path}");
        assert!(file.contains("there"), "it was there before");
        let impossible = file.new_dataset::<f32>().shape([3]).chunk([1, 1]);
        assert!(original.copy_as(impossible, path, &Keep::Defined).is_err());
        assert!(!file.contains("a") && !file.contains("there/b"), "{path}");
    }
    original.copy_as(file.new_dataset_like(&original), "a/b/c", &Keep::Defined).unwrap();
    let again = original.copy_as(file.new_dataset_like(&original), "a/b/c", &Keep::Defined);
    assert!(again.is_err() && file.contains("a/b/c"));
    let list = Coo { shape: vec![3], columns: vec![vec![1]], values: vec![2.0f32] };
    file.dataset("a/b/c").unwrap().write_coo([&list], Duplicates::Last).unwrap();
}
