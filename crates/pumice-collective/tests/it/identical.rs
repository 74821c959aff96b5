//! A file is the same for any number of ranks, and as one process writes it. Where chunks are emptied between two commits,
//! one process can use their room earlier: then values and length are as it leaves them, and places may differ.

use crate::support::{Describe, created, folder, make, plainly};
use pumice::{Datatype, File, H5Type, MemoryStore, Selection, Value};
use pumice_collective::Result;
use std::sync::Arc;

const SIZES: [usize; 5] = [1, 2, 3, 4, 7];

/// One write of a block: first row, rows, first column, columns.
type Block = [u64; 4];

/// Blocks in the order in which they are written. They share chunks, overlap, and are of all sizes.
const BLOCKS: [Block; 7] = [
    [0, 9, 0, 20],
    [7, 6, 3, 9],
    [13, 7, 0, 20],
    [19, 1, 19, 1],
    [2, 3, 15, 5],
    [0, 0, 0, 20],
    [5, 12, 4, 3],
];

fn dense(file: &File) -> pumice::DatasetBuilder {
    file.new_dataset::<i32>().shape([20, 20]).chunk([6, 7]).shuffle().deflate(4).fill_value(-1)
}

fn values<T>(number: usize, block: Block, make: impl Fn(u64) -> T) -> Vec<T> {
    (0..block[1] * block[3]).map(|cell| make(cell * 31 + number as u64 * 1000)).collect()
}

fn cells([row, rows, column, columns]: Block) -> Selection {
    match rows * columns {
        0 => Selection::none(),
        _ => Selection::block(&[row, column], &[rows, columns]).unwrap(),
    }
}

/// What ranks do together equals what one process does in the order of blocks: in each call, ranks hand in blocks
/// that follow one another.
fn check<T: H5Type + Sync>(describe: Describe, value: impl Fn(u64) -> T + Sync + Copy) {
    for erases in [false, true] {
        check_with(describe, value, erases);
    }
}

fn check_with<T: H5Type + Sync>(
    describe: Describe,
    value: impl Fn(u64) -> T + Sync + Copy,
    erases: bool,
) {
    let (_folder, path) = folder();
    let alone = plainly(&path, |file| {
        let dataset = describe(file).create("group/data")?;
        for round in 0..2 {
            for (number, block) in BLOCKS.into_iter().enumerate() {
                dataset.write(cells(block), &values(number + round, block, value))?;
            }
            file.flush()?;
            if erases {
                dataset.reset((3..9, 2..18))?;
                dataset.reset((18..20, ..))?;
            }
        }
        Ok(())
    });
    let sparse = File::open(&path).unwrap().dataset("group/data").unwrap().is_sparse();
    let mut first = None;
    for size in SIZES {
        let found = created(size, &path, |file, rank| {
            let dataset = make(file, describe)?;
            for round in 0..2 {
                for first in (0..BLOCKS.len()).step_by(size) {
                    let number = first + rank;
                    let block = BLOCKS.get(number).copied().unwrap_or([0; 4]);
                    dataset.write(cells(block), &values(number + round, block, value))?;
                }
                file.flush()?;
                if erases {
                    let mine = rank == size / 2;
                    let mine = if mine { cells([3, 6, 2, 16]) } else { Selection::none() };
                    dataset.erase(mine)?;
                    let last = rank == 0;
                    let last = if last { cells([18, 2, 0, 20]) } else { Selection::none() };
                    dataset.erase(last)?;
                }
            }
            Ok(())
        });
        let first = first.get_or_insert_with(|| found.clone());
        assert!(found == *first, "{size} rank(s) and 1: {} byte(s)", found.len());
        assert_eq!(found.len(), alone.len(), "{size} rank(s)");
        match erases && sparse {
            true => assert_eq!(content(&found), content(&alone), "{size} rank(s)"),
            false => assert!(found == alone, "{size} rank(s)"),
        }
    }
}

/// The values of the dataset, and which of its cells are defined.
fn content(bytes: &[u8]) -> (Vec<Value>, Vec<bool>) {
    let file = File::options().open_in(Arc::new(MemoryStore::new(bytes.to_vec()))).unwrap();
    let data = file.dataset("group/data").unwrap();
    let is_defined = |cell: u64| data.count_defined((cell / 20, cell % 20)).unwrap() == 1;
    let defined = (0..400).map(is_defined).collect();
    (data.read_values(..).unwrap(), defined)
}

#[test]
fn dense_chunks() {
    check::<i32>(dense, |value| value as i32);
    check::<i32>(|file| dense(file).no_filters(), |value| value as i32);
    check::<u8>(
        |file| {
            file.new_dataset::<u8>()
                .shape([20, 20])
                .chunk([5, 5])
                .max_shape([None, Some(20)])
                .fletcher32()
        },
        |value| value as u8,
    );
}

#[test]
fn sparse_chunks() {
    check::<f64>(
        |file| file.new_dataset::<f64>().shape([20, 20]).chunk([6, 7]).sparse().deflate(4),
        |value| value as f64 / 7.0,
    );
    check::<u16>(
        |file| file.new_dataset::<u16>().shape([20, 20]).chunk([4, 20]).sparse(),
        |value| value as u16,
    );
}

#[test]
fn values_of_variable_length_in_their_chunks() {
    let text = |value: u64| "stone".repeat((value % 5) as usize) + &value.to_string();
    check::<String>(|file| file.new_strings().shape([20, 20]).chunk([6, 7]).sparse(), text);
    check::<String>(
        |file| file.new_strings().shape([20, 20]).chunk([7, 6]).variable_length(),
        text,
    );
    check::<Vec<i16>>(
        |file| {
            file.new_sequences(Datatype::i16_be())
                .shape([20, 20])
                .chunk([6, 20])
                .sparse()
                .no_filters()
        },
        |value| (0..value % 4).map(|at| at as i16 - 1).collect(),
    );
}

#[test]
fn values_that_rank_0_writes_for_all() {
    check::<String>(
        |file| file.new_strings().shape([20, 20]).chunk([6, 7]),
        |value| value.to_string(),
    );
    check::<u32>(|file| file.new_dataset::<u32>().shape([20, 20]), |value| value as u32);
    check::<u32>(|file| file.new_dataset::<u32>().shape([20, 20]).compact(), |value| value as u32);
}

#[test]
fn values_of_other_types_are_converted() {
    check::<f64>(dense, |value| value as f64 + 0.75);
    check::<u16>(
        |file| file.new_dataset_of(Datatype::f32_be()).shape([20, 20]).chunk([6, 7]).sparse(),
        |value| value as u16,
    );
}

fn wide(file: &File) -> pumice::DatasetBuilder {
    dense(file).max_shape([None, None])
}

fn holes(file: &File) -> pumice::DatasetBuilder {
    file.new_dataset::<i32>()
        .shape([20, 20])
        .max_shape([None, None])
        .chunk([6, 7])
        .sparse()
        .no_filters()
}

#[test]
fn several_datasets_that_change_shape() {
    let (_folder, path) = folder();
    let alone = plainly(&path, |file| {
        let (one, two) = (wide(file).create("one")?, holes(file).create("two")?);
        file.root_attributes()?;
        one.write(.., &[7; 400])?;
        two.write((4..9, 4..9), &[8; 25])?;
        file.flush()?;
        one.resize([13, 33])?;
        file.flush()?;
        one.write((10..13, 20..33), &[9; 39])?;
        two.write((0..20, 0), &[1; 20])?;
        file.flush()?;
        two.resize([6, 6])?;
        file.flush()
    });
    for size in SIZES {
        let found = created(size, &path, |file, rank| {
            let (one, two) =
                (file.create_dataset("one", wide)?, file.create_dataset("two", holes)?);
            file.change(|file| file.root_attributes())?;
            let rows = shared(20, size, rank);
            one.write((rows.clone(), ..), &vec![7; 20 * (rows.end - rows.start) as usize])?;
            let rows = shared(5, size, rank);
            let count = 5 * (rows.end - rows.start) as usize;
            two.write((rows.start + 4..rows.end + 4, 4..9), &vec![8; count])?;
            one.resize([13, 33])?;
            assert_eq!(one.shape()?, [13, 33]);
            let columns = shared(13, size, rank);
            let count = 3 * (columns.end - columns.start) as usize;
            one.write((10..13, columns.start + 20..columns.end + 20), &vec![9; count])?;
            let rows = shared(20, size, rank);
            two.write((rows.clone(), 0), &vec![1; (rows.end - rows.start) as usize])?;
            two.resize([6, 6])
        });
        assert!(found == alone, "{size} rank(s): {} byte(s), not {}", found.len(), alone.len());
    }
}

trait Attributes {
    fn root_attributes(&self) -> pumice::Result<()>;
}

impl Attributes for File {
    fn root_attributes(&self) -> pumice::Result<()> {
        self.set_attribute("title", "stones")?;
        self.create_group("empty").map(drop)
    }
}

/// This rank's part of so many rows.
fn shared(rows: u64, size: usize, rank: usize) -> std::ops::Range<u64> {
    let at = |rank: usize| rows * rank as u64 / size as u64;
    at(rank)..at(rank + 1)
}

#[test]
fn a_file_is_opened_and_changed_again() -> Result<()> {
    let (_folder, path) = folder();
    let change = |file: &File| {
        let dataset = file.dataset("group/data")?;
        dataset.write((0..20, 3..11), &[5u8; 160])?;
        dataset.erase((10..14, ..))
    };
    plainly(&path, |file| {
        let dataset = file
            .new_dataset::<f32>()
            .shape([20, 20])
            .chunk([6, 7])
            .sparse()
            .create("group/data")?;
        dataset.write((0..15, 0..15), &[1.5f32; 225])
    });
    let before = std::fs::read(&path).unwrap();
    let file = File::edit(&path)?;
    change(&file)?;
    file.close()?;
    let alone = std::fs::read(&path).unwrap();
    let mut first = None;
    for size in SIZES {
        std::fs::write(&path, &before).unwrap();
        crate::support::ranks(size, |comm| {
            let rank = comm.rank();
            let file = pumice_collective::CollectiveFile::open_with(
                comm,
                &path,
                crate::support::options(),
            )?;
            let dataset = file.dataset("group/data")?;
            let rows = shared(20, size, rank);
            dataset
                .write((rows.clone(), 3..11), &vec![5u8; 8 * (rows.end - rows.start) as usize])?;
            dataset.erase(if rank + 1 == size {
                cells([10, 4, 0, 20])
            } else {
                Selection::none()
            })?;
            file.close()
        });
        let found = std::fs::read(&path).unwrap();
        let first = first.get_or_insert_with(|| found.clone());
        assert!(found == *first, "{size} rank(s) and 1");
        assert_eq!(content(&found), content(&alone), "{size} rank(s)");
    }
    Ok(())
}
