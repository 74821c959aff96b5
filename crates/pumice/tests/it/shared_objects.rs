//! Cells of one chunk that refer to the same object, however many: they are read, changed, stored and copied,
//! and the object stays one.

use pumice::{Dataset, Datatype, File, Heaped, Keep, Section, Value};
use std::path::Path;

const CELLS: u64 = 1000;

/// References of all cells to three texts of 1100 bytes, and those texts.
fn heaped() -> (Heaped, Vec<String>) {
    let texts: Vec<String> = ["a", "b", "c"].map(|letter| letter.repeat(1100)).to_vec();
    let Heaped { elements, heap } = Heaped::strings(16, &texts).unwrap();
    let elements = elements.chunks(16).cycle().take(CELLS as usize).flatten().copied().collect();
    let all = texts.into_iter().cycle().take(CELLS as usize).collect();
    (Heaped { elements, heap }, all)
}

fn create(file: &File, sparse: bool) -> Dataset {
    let builder = file.new_strings().shape([CELLS]).chunk([CELLS]).no_filters();
    let builder = if sparse { builder.sparse() } else { builder.variable_length() };
    builder.create("d").unwrap()
}

fn open(path: &Path) -> (File, Dataset) {
    let file = File::options().edit(path).unwrap();
    let dataset = file.dataset("d").unwrap();
    (file, dataset)
}

/// Bytes of the heap in the file.
fn stored_heap(dataset: &Dataset) -> u64 {
    let chunk = dataset.structured_chunk_info_at([0]).unwrap().unwrap();
    let heap = chunk.sections.last().unwrap();
    assert_eq!(heap.section, Section::Heap);
    heap.size
}

#[test]
fn an_object_of_many_cells_is_read_changed_and_stored_as_one() {
    for sparse in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shared.h5");
        let (values, mut texts) = heaped();
        let file = File::create(&path).unwrap();
        create(&file, sparse).write_heaped(.., &values).unwrap();
        drop(file);
        let (file, dataset) = open(&path);
        assert!(stored_heap(&dataset) < 4000, "three texts, not {CELLS}");
        assert_eq!(dataset.read_strings(..).unwrap(), texts);
        assert_eq!(dataset.read_strings(17..23).unwrap(), texts[17..23]);
        assert_eq!(dataset.read_heaped(..).unwrap().heap.len(), 3300);
        // Every second one gets a text of its own, in an order of its own, and some another text after that.
        for at in 0..700 {
            let cell = at * 7 % CELLS / 2 * 2;
            texts[cell as usize] = format!("{at} of its own");
            dataset.write_strings(cell, &[&texts[cell as usize]]).unwrap();
            if at % 100 == 0 {
                assert_eq!(dataset.read_strings(..).unwrap(), texts);
            }
        }
        dataset.flush().unwrap();
        assert!(stored_heap(&dataset) < 4000 + 500 * 40);
        drop((dataset, file));
        let (file, dataset) = open(&path);
        assert_eq!(dataset.read_strings(..).unwrap(), texts);
        let like = file.new_dataset_like(&dataset);
        let copy = dataset.copy_as(like, "copy", &Keep::Defined).unwrap();
        assert_eq!(copy.read_strings(..).unwrap(), texts);
        // Texts that replace each other many times do not pile up in memory.
        for round in 0..20_000 {
            texts[1] = format!("{round} again");
            dataset.write_strings(1, &[&texts[1]]).unwrap();
        }
        assert!(dataset.cache_stats().resident < 1 << 18, "{}", dataset.cache_stats().resident);
        assert_eq!(dataset.read_strings(..).unwrap(), texts);
    }
}

#[test]
fn members_and_sequences_of_sequences_share_what_they_refer_to() {
    let text = Datatype::varlen_string(16);
    let record = Datatype::compound([("one", text.clone()), ("other", text.clone())]);
    let lists = Datatype::varlen(text, 16);
    for (datatype, fields) in [(record, 2), (lists, 0)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shared.h5");
        let long = Value::from("long ".repeat(1000).as_str());
        let value = match fields {
            0 => Value::Sequence(vec![long.clone(), Value::from("b"), long.clone()]),
            _ => {
                Value::Compound(vec![("one".into(), long.clone()), ("other".into(), long.clone())])
            }
        };
        let one = Heaped::from_values(&datatype, std::slice::from_ref(&value)).unwrap();
        let elements = one.elements.repeat(CELLS as usize);
        let file = File::create(&path).unwrap();
        let builder = file.new_dataset_of(datatype).shape([CELLS]).chunk([CELLS]).sparse();
        let dataset = builder.create("d").unwrap();
        dataset.write_heaped(.., &Heaped { elements, heap: one.heap }).unwrap();
        drop((dataset, file));
        let (_file, dataset) = open(&path);
        assert!(dataset.read_heaped(..).unwrap().heap.len() < 100_000);
        assert_eq!(dataset.read_values(..).unwrap(), vec![value.clone(); CELLS as usize]);
        dataset.write_values(4, std::slice::from_ref(&value)).unwrap();
        dataset.flush().unwrap();
        assert_eq!(dataset.read_values(5..9).unwrap(), vec![value; 4]);
    }
}
