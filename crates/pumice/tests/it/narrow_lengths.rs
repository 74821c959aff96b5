//! Strings and sequences in structured chunks of files whose lengths, or addresses, are shorter than eight bytes.

use pumice::{
    CopyOptions, DatasetBuilder, Datatype, File, FilterSpec, MemoryStore, Section, StoredSection,
    Value,
};
use std::sync::Arc;

const WIDTHS: [(u8, u8); 7] = [(8, 8), (8, 4), (4, 8), (4, 4), (8, 2), (2, 8), (2, 2)];

fn texts() -> Vec<String> {
    (0..10).map(|n| "granite ".repeat(n)).collect()
}

fn of_widths(offset: u8, length: u8, store: &Arc<MemoryStore>) -> File {
    File::options().widths(offset, length).create_in(store.clone()).unwrap()
}

/// Every way in which a heap is stored: with filters and without, and both in one dataset.
fn ways(builder: DatasetBuilder) -> [(&'static str, DatasetBuilder); 4] {
    [
        ("plain", builder.clone().no_filters()),
        ("usual", builder.clone()),
        ("deflate", builder.clone().section_filter(Section::Heap, FilterSpec::deflate(4))),
        ("edge", builder.shape([10]).chunk([4]).dont_filter_partial_chunks()),
    ]
}

fn fill(file: &File) {
    let size = file.reference_size();
    let record = Datatype::compound([
        ("id", Datatype::i32_le()),
        ("names", Datatype::varlen(Datatype::varlen_string(size), size)),
    ]);
    for (name, new) in ways(file.new_strings().shape([10]).chunk([5]).sparse()) {
        let data = new.create(&format!("sparse {name}")).unwrap();
        data.write_strings(.., &texts()).unwrap();
    }
    for (name, new) in ways(file.new_strings().shape([10]).chunk([5]).variable_length()) {
        new.create(&format!("dense {name}")).unwrap().write_strings(.., &texts()).unwrap();
    }
    for (name, new) in ways(file.new_dataset_of(record).shape([10]).chunk([5]).sparse()) {
        let data = new.create(&format!("nested {name}")).unwrap();
        data.write_values(.., &records()).unwrap();
    }
}

fn records() -> Vec<Value> {
    let record = |text: String| {
        let names = vec![Value::from(text.as_str()), Value::from("x")];
        let id = ("id".to_owned(), Value::Integer(text.len() as i128));
        Value::Compound(vec![id, ("names".to_owned(), Value::Sequence(names))])
    };
    texts().into_iter().map(record).collect()
}

fn check(file: &File) {
    for name in ["plain", "usual", "deflate", "edge"] {
        for layout in ["sparse", "dense"] {
            let data = file.dataset(&format!("{layout} {name}")).unwrap();
            assert_eq!(data.read_strings(..).unwrap(), texts(), "{layout} {name}");
        }
        let nested = file.dataset(&format!("nested {name}")).unwrap();
        assert_eq!(nested.read_values(..).unwrap(), records(), "{name}");
    }
}

fn names() -> impl Iterator<Item = String> {
    let ways = ["plain", "usual", "deflate", "edge"];
    let layouts = ["sparse", "dense", "nested"];
    ways.into_iter().flat_map(move |way| layouts.map(|layout| format!("{layout} {way}")))
}

#[test]
fn strings_of_structured_chunks_are_read_again_whatever_the_widths() {
    for (offset, length) in WIDTHS {
        let store = Arc::new(MemoryStore::default());
        let file = of_widths(offset, length, &store);
        fill(&file);
        file.close().unwrap();
        let file = File::options().edit_in(store.clone()).unwrap();
        check(&file);
        // Section by section, as they are.
        for name in names() {
            let data = file.dataset(&name).unwrap();
            for chunk in data.structured_chunks().unwrap().list().unwrap() {
                let sections = data.read_structured_chunk(&chunk.offset).unwrap().unwrap();
                data.write_structured_chunk(&chunk.offset, &sections).unwrap();
                data.check_structured_chunk(&chunk.offset).unwrap();
            }
        }
        file.close().unwrap();
        check(&File::options().open_in(store).unwrap());
    }
}

#[test]
fn copies_have_the_lengths_of_their_file() {
    for (from, to) in [((8, 8), (8, 4)), ((8, 8), (2, 2)), ((8, 4), (8, 8)), ((4, 2), (4, 8))] {
        let stores = [Arc::new(MemoryStore::default()), Arc::new(MemoryStore::default())];
        let files = [of_widths(from.0, from.1, &stores[0]), of_widths(to.0, to.1, &stores[1])];
        fill(&files[0]);
        files[0].flush().unwrap();
        for name in names() {
            files[0].copy_object(&name, &files[1], &name, &CopyOptions::new()).unwrap();
        }
        let [_, file] = files;
        file.close().unwrap();
        check(&File::options().open_in(stores[1].clone()).unwrap());
    }
}

#[test]
fn a_heap_that_lengths_cannot_count_is_refused_and_what_was_there_stays() {
    let stores = Arc::new(MemoryStore::default());
    let file = of_widths(8, 2, &stores);
    let new = || file.new_strings().shape([10]).chunk([5]);
    let ways = [
        new().sparse().no_filters(),
        new().sparse(),
        new().variable_length().no_filters(),
        new().variable_length(),
    ];
    let large = "x".repeat(60_000);
    for (number, new) in ways.into_iter().enumerate() {
        let data = new.create(&number.to_string()).unwrap();
        data.write_strings(0..3, &["a", "bc", &large]).unwrap();
        for cell in [3, 2] {
            let texts = match cell {
                3 => ["y".repeat(6_000), "z".into()],
                _ => ["y".repeat(66_000), "z".into()],
            };
            let error = data.write_strings(cell..cell + 2, &texts).unwrap_err().to_string();
            assert!(error.contains("65535 at most: choose smaller chunks"), "{error}");
            assert_eq!(data.read_strings(0..4).unwrap(), ["a", "bc", &large, ""]);
        }
        // It is what is there that counts, not what was there.
        data.write_strings(2..3, &["y"]).unwrap();
        data.write_strings(3..4, &[&large]).unwrap();
    }
    file.close().unwrap();
    let file = File::options().open_in(stores).unwrap();
    for number in 0..4 {
        let data = file.dataset(&number.to_string()).unwrap();
        assert_eq!(data.read_strings(0..4).unwrap(), ["a", "bc", "y", &large]);
    }
}

/// A heap of one collection, whose header may say another length, with lengths of `width` bytes and its checksum.
fn heap(collection: &[u8], width: usize) -> Vec<u8> {
    let mut heap = b"HGLS\x01\0\0\0\x01\0\0\0".to_vec();
    for number in [12 + 2 * width, collection.len()] {
        heap.extend_from_slice(&number.to_le_bytes()[..width]);
    }
    heap.extend_from_slice(b"GCOL\x01\0\0\0");
    heap.extend_from_slice(&collection.len().to_le_bytes());
    heap.extend_from_slice(&collection[16..]);
    let checksum = pumice_bytes::lookup3(&heap);
    heap.extend_from_slice(&checksum.to_le_bytes());
    heap
}

/// Whatever the lengths of the file were, heaps without the heap filter had once lengths of eight bytes.
#[test]
fn heaps_with_lengths_of_eight_bytes_are_read_in_any_file_and_not_stored_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.h5");
    let texts = ["a", "bc", "def"];
    let file = File::options().widths(8, 4).create(&path).unwrap();
    let new = || file.new_strings().shape([3]).chunk([3]).sparse().no_filters();
    let data = new().create("data").unwrap();
    data.write_strings(.., &texts).unwrap();
    data.flush().unwrap();
    let mut sections = data.read_structured_chunk([0]).unwrap().unwrap();
    let stored = sections.pop().unwrap().bytes;
    let collection = stored[20..stored.len() - 4].to_vec();
    assert_eq!(stored, heap(&collection, 4));
    let wide = heap(&collection, 8);
    let with = |bytes: &[u8]| {
        let mut sections = sections.clone();
        sections.push(StoredSection::unfiltered(bytes.to_vec(), 0));
        sections
    };
    let error = data.write_structured_chunk([0], &with(&wide)).unwrap_err().to_string();
    assert!(error.contains("heap of a structured chunk"), "{error}");
    // Bytes that nothing uses make room for it, as only another program can write it.
    let roomy = heap(&[&collection[..], &[0; 8]].concat(), 4);
    data.write_structured_chunk([0], &with(&roomy)).unwrap();
    drop(data);
    file.close().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let place = bytes.windows(roomy.len()).position(|part| part == roomy).unwrap();
    bytes[place..place + roomy.len()].copy_from_slice(&wide);
    std::fs::write(&path, &bytes).unwrap();

    let file = File::options().edit(&path).unwrap();
    let data = file.dataset("data").unwrap();
    assert_eq!(data.read_strings(..).unwrap(), texts);
    data.write_strings(0..1, &["new"]).unwrap();
    drop(data);
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    assert_eq!(file.dataset("data").unwrap().read_strings(..).unwrap(), ["new", "bc", "def"]);
    let sections = file.dataset("data").unwrap().read_structured_chunk([0]).unwrap().unwrap();
    assert_eq!(sections[2].bytes[12..16], 20u32.to_le_bytes());
}
