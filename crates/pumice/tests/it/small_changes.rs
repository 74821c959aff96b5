//! Cells that are written and erased one by one in chunks of many, through the public interface: logs that grow
//! long, are looked at, stored and read again, each step against a dictionary of cells.

use pumice::{Context, Dataset, Datatype, File, Selection, Transfer};
use std::collections::BTreeMap;
use std::path::Path;

/// Cells of the datasets; all of them in one chunk, or in two.
const CELLS: u64 = 40_000;
const STEPS: u64 = 8_000;

/// A small generator of random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// A single cell most of the time, sometimes a few.
    fn cells(&mut self) -> std::ops::Range<u64> {
        let len = if self.below(10) == 0 { 1 + self.below(60) } else { 1 };
        let start = self.below(CELLS - len);
        start..start + len
    }
}

/// A dataset and what is in it, an element as its bytes or its text.
struct Pair<T> {
    file: File,
    dataset: Dataset,
    model: BTreeMap<u64, T>,
}

impl<T> Pair<T> {
    fn reopen(&mut self, path: &Path) {
        let file = File::options().edit(path).unwrap();
        self.dataset = file.dataset("d").unwrap();
        self.file = file;
    }
}

fn record() -> Datatype {
    Datatype::compound([("a", Datatype::i32_le()), ("b", Datatype::i64_le())])
}

impl Pair<Vec<u8>> {
    fn check_records(&self) {
        let found = self.dataset.read_defined_bytes(..).unwrap();
        let size = self.dataset.datatype().size();
        let found: Vec<_> =
            found.coordinates.iter().copied().zip(found.values.chunks(size)).collect();
        let model: Vec<_> =
            self.model.iter().map(|(cell, value)| (*cell, value.as_slice())).collect();
        assert!(found == model, "{} cell(s), not {}", found.len(), model.len());
    }

    /// Looks at a few cells, in the log or below it, in order and in the other.
    fn look_at_records(&self, random: &mut Random) {
        let cells = random.cells();
        let known = |cell: u64| self.model.get(&cell).cloned().unwrap_or_else(|| vec![0; 12]);
        let wanted: Vec<u8> = cells.clone().flat_map(known).collect();
        assert_eq!(self.dataset.read_bytes(cells.clone()).unwrap(), wanted);
        let count = cells.clone().filter(|cell| self.model.contains_key(cell)).count();
        assert_eq!(self.dataset.count_defined(cells.clone()).unwrap(), count as u64);
        let backwards: Vec<u64> = cells.rev().collect();
        let wanted: Vec<u8> = backwards.iter().flat_map(|&cell| known(cell)).collect();
        let points = Selection::points(1, backwards).unwrap();
        assert_eq!(self.dataset.read_bytes(points).unwrap(), wanted);
    }

    /// Writes whole records, or one member of each, or erases cells.
    fn change_records(&mut self, random: &mut Random, number: u64) {
        let cells = random.cells();
        let count = cells.end - cells.start;
        let whole = |number: u64| {
            let mut element = (number as i32).to_le_bytes().to_vec();
            element.extend((number as i64 * 3).to_le_bytes());
            element
        };
        match random.below(8) {
            0..3 => {
                self.dataset
                    .write_bytes(cells.clone(), &whole(number).repeat(count as usize))
                    .unwrap();
                self.model.extend(cells.map(|cell| (cell, whole(number))));
            }
            3..5 => {
                let member = Datatype::compound([("b", Datatype::i64_le())]);
                let value = (number as i64).to_le_bytes();
                self.dataset
                    .write_as(
                        cells.clone(),
                        &member,
                        &value.repeat(count as usize),
                        &Transfer::default(),
                    )
                    .unwrap();
                for cell in cells {
                    let element = self.model.entry(cell).or_insert_with(|| vec![0; 12]);
                    element[4..].copy_from_slice(&value);
                }
            }
            _ => {
                self.dataset.erase(cells.clone()).unwrap();
                cells.for_each(|cell| {
                    self.model.remove(&cell);
                });
            }
        }
    }
}

#[test]
fn records_members_and_erased_cells_are_those_of_a_dictionary() {
    for (chunk, filtered) in [(CELLS, true), (CELLS / 2, false)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("steps.h5");
        let file = File::create(&path).unwrap();
        let builder = file.new_dataset_of(record()).shape([CELLS]).chunk([chunk]).sparse();
        let builder = if filtered { builder } else { builder.no_filters() };
        let dataset = builder.create("d").unwrap();
        let mut pair = Pair { file, dataset, model: BTreeMap::new() };
        let mut random = Random(7 + chunk);
        for number in 0..STEPS {
            pair.change_records(&mut random, number);
            pair.look_at_records(&mut random);
            match random.below(1500) {
                0 => pair.check_records(),
                1 => pair.file.flush().unwrap(),
                2 => pair.reopen(&path),
                _ => {}
            }
        }
        pair.check_records();
        pair.reopen(&path);
        pair.check_records();
        let left: Vec<u64> = pair.model.keys().copied().collect();
        left.iter().for_each(|&cell| pair.dataset.erase(cell).unwrap());
        pair.model.clear();
        pair.check_records();
        assert_eq!(pair.dataset.storage_size().unwrap(), 0);
    }
}

impl Pair<String> {
    fn check_strings(&self, sparse: bool) {
        if !sparse {
            let found = self.dataset.read_strings(..).unwrap();
            for (cell, text) in found.iter().enumerate() {
                let wanted = self.model.get(&(cell as u64)).map_or("", String::as_str);
                assert_eq!(text, wanted.as_bytes(), "cell {cell}");
            }
            return;
        }
        let (cells, texts) = self.dataset.read_defined_strings(..).unwrap();
        assert!(cells.iter().eq(self.model.keys()));
        assert!(texts.iter().eq(self.model.values().map(String::as_bytes)));
    }

    fn look_at_strings(&self, random: &mut Random) {
        let cells = random.cells();
        let found = self.dataset.read_strings(cells.clone()).unwrap();
        let known = cells.clone().map(|cell| self.model.get(&cell).map_or("", String::as_str));
        assert!(found.iter().eq(known.map(str::as_bytes)));
        if self.dataset.is_sparse() {
            let count = cells.clone().filter(|cell| self.model.contains_key(cell)).count();
            assert_eq!(self.dataset.count_defined(cells).unwrap(), count as u64);
        }
    }

    fn change_strings(&mut self, random: &mut Random, number: u64) {
        let cells = random.cells();
        if random.below(3) == 0 {
            match self.dataset.is_sparse() {
                true => self.dataset.erase(cells.clone()).unwrap(),
                false => self.dataset.reset(cells.clone()).unwrap(),
            }
            cells.for_each(|cell| drop(self.model.remove(&cell)));
            return;
        }
        let text = |cell: u64| format!("{number} {}", "x".repeat((cell * 7 % 13) as usize));
        let texts: Vec<String> = cells.clone().map(text).collect();
        self.dataset.write_strings(cells.clone(), &texts).unwrap();
        self.model.extend(cells.zip(texts));
    }
}

#[test]
fn strings_of_sparse_and_dense_chunks_are_those_of_a_dictionary() {
    for sparse in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("strings.h5");
        let file = File::create(&path).unwrap();
        let builder = file.new_strings().shape([CELLS]).chunk([CELLS]);
        let builder = if sparse { builder.sparse() } else { builder.variable_length() };
        let dataset = builder.create("d").unwrap();
        let mut pair = Pair { file, dataset, model: BTreeMap::new() };
        let mut random = Random(11);
        for number in 0..STEPS {
            pair.change_strings(&mut random, number);
            pair.look_at_strings(&mut random);
            match random.below(1500) {
                0 => pair.check_strings(sparse),
                1 => pair.file.flush().unwrap(),
                2 => pair.reopen(&path),
                _ => {}
            }
        }
        pair.check_strings(sparse);
        pair.reopen(&path);
        pair.check_strings(sparse);
    }
}

/// Cells here and there, in most of 2000 chunks, as no hyperslab has them.
fn scattered(dims: &[u64]) -> (Selection, Vec<u64>) {
    let cells: Vec<u64> = (0..4000).map(|at| at * 5 + at % 3).collect();
    let points = Selection::points(1, cells.clone()).unwrap();
    (points.or(&Selection::point(&[cells[0]]).unwrap(), dims).unwrap(), cells)
}

#[test]
fn questions_over_many_chunks_are_answered_without_writing_them_back() {
    let context = Context::builder().cache_bytes(64 << 20).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = File::options().context(&context).create(folder.path().join("many.h5")).unwrap();
    let dataset =
        file.new_dataset::<i32>().shape([30_000]).chunk([10]).sparse().create("d").unwrap();
    let (selection, cells) = scattered(&[30_000]);
    // Half of the cells in the file, the others in the cache.
    dataset.write(0..10_000, &(0..10_000).collect::<Vec<i32>>()).unwrap();
    dataset.flush().unwrap();
    dataset.write(10_000..20_000, &(10_000..20_000).collect::<Vec<i32>>()).unwrap();
    let before = context.stats().write_backs;
    let inside: Vec<u64> = cells.iter().copied().filter(|&cell| cell < 20_000).collect();
    assert_eq!(dataset.count_defined(&selection).unwrap(), inside.len() as u64);
    let found = dataset.read_defined::<i32>(&selection).unwrap();
    assert_eq!(found.coordinates, inside);
    assert!(found.values.iter().zip(&inside).all(|(&value, &cell)| value as u64 == cell));
    dataset.erase(&selection).unwrap();
    assert_eq!(dataset.count_defined(&selection).unwrap(), 0);
    assert_eq!(dataset.count_defined(..).unwrap(), 20_000 - inside.len() as u64);
    assert_eq!(context.stats().write_backs, before, "nothing had to be written");
}

#[test]
fn chunks_that_are_asked_for_by_number_are_those_that_are_listed() {
    let file = File::in_memory().unwrap();
    let dataset =
        file.new_dataset::<i32>().shape([100_000]).chunk([10]).sparse().create("d").unwrap();
    let points: Vec<[u64; 1]> = (0..9000).map(|at| [at * 11]).collect();
    dataset.write_points(&points, &vec![1; points.len()]).unwrap();
    let all = dataset.structured_chunks().unwrap().list().unwrap();
    for (number, chunk) in all.iter().enumerate() {
        assert_eq!(dataset.structured_chunk_info(.., number).unwrap().as_ref(), Some(chunk));
    }
    assert_eq!(dataset.structured_chunk_info(.., all.len()).unwrap(), None);
    let (selection, cells) = scattered(&[100_000]);
    let touched = |offset: u64| cells.iter().any(|&cell| cell / 10 * 10 == offset);
    let mut wanted = all.iter().filter(|chunk| touched(chunk.offset[0]));
    let mut number = 0;
    while let Some(found) = dataset.structured_chunk_info(&selection, number).unwrap() {
        assert_eq!(Some(&found), wanted.next());
        number += 1;
    }
    assert_eq!(wanted.next(), None);
    // Whatever changes is seen by the next question: in the cache, in the file, and the extent.
    assert_eq!(dataset.structured_chunk_info(.., 1).unwrap().unwrap().offset, [10]);
    dataset.erase(11).unwrap();
    assert_eq!(dataset.structured_chunk_info(.., 1).unwrap().unwrap().offset, [20]);
    dataset.write(12, &[5]).unwrap();
    assert_eq!(dataset.structured_chunk_info(.., 1).unwrap().unwrap().offset, [10]);
    let sections = dataset.read_structured_chunk([10]).unwrap().unwrap();
    dataset.erase(0..20).unwrap();
    assert_eq!(dataset.structured_chunk_info(.., 0).unwrap().unwrap().offset, [20]);
    dataset.write_structured_chunk([10], &sections).unwrap();
    assert_eq!(dataset.structured_chunk_info(.., 0).unwrap().unwrap().offset, [10]);
    dataset.resize([30]).unwrap();
    assert_eq!(dataset.structured_chunk_info(.., 2).unwrap(), None);
    assert_eq!(dataset.structured_chunk_info(.., 1).unwrap().unwrap().offset, [20]);
    assert!(dataset.structured_chunk_info(0..31, 0).is_err());
}
