//! Indexes as the layout message promises them: one that comes into the file with the first chunk has the
//! parameters that the message has, whoever chose them; trees of small nodes are edited, and where that cannot be,
//! changes are refused before they are taken.

#[allow(dead_code, reason = "of what exchanges bytes, not all is needed here")]
use crate::worked_example::patch;

use pumice::{Dataset, DatasetBuilder, File, MemoryStore, Store};
use std::sync::Arc;

const LAYOUT: u8 = 8;

fn bytes_of(store: &MemoryStore) -> Vec<u8> {
    let mut bytes = vec![0; store.len().unwrap() as usize];
    store.read_at(0, &mut bytes).unwrap();
    bytes
}

/// A file with one dataset, and where the header of that is.
fn made(build: impl Fn(&File) -> DatasetBuilder, write: impl Fn(&Dataset)) -> (Vec<u8>, u64) {
    let store = Arc::new(MemoryStore::default());
    let file = File::options().create_in(store.clone()).unwrap();
    let dataset = build(&file).create("d").unwrap();
    write(&dataset);
    let address = dataset.address();
    drop(dataset);
    file.close().unwrap();
    (bytes_of(&store), address)
}

fn opened(bytes: &[u8]) -> (Arc<MemoryStore>, File) {
    let store = Arc::new(MemoryStore::default());
    store.write_at(0, bytes).unwrap();
    let file = File::options().edit_in(store.clone()).unwrap();
    (store, file)
}

/// Gives the layout message, whose last field is the address of the index, other parameters before that.
fn set_parameters(bytes: &mut [u8], address: u64, parameters: &[u8]) {
    let (flags, mut body) = patch::message(bytes, address, LAYOUT);
    let end = body.len() - 8;
    body[end - parameters.len()..end].copy_from_slice(parameters);
    patch::set_message(bytes, address, LAYOUT, LAYOUT, flags, &body);
}

/// The parameters of the layout message, and the header of the index.
fn stored(bytes: &[u8], address: u64, parameters: usize) -> (Vec<u8>, &[u8]) {
    let (_, body) = patch::message(bytes, address, LAYOUT);
    let (before, index) = body.split_at(body.len() - 8);
    let index = u64::from_le_bytes(index.try_into().unwrap()) as usize;
    (before[before.len() - parameters..].to_vec(), &bytes[index..index + 40])
}

fn dense(file: &File, max: Option<[Option<u64>; 2]>) -> DatasetBuilder {
    let new = file.new_dataset::<u8>().shape([20, 20]).chunk([1, 1]);
    match max {
        Some(max) => new.max_shape(max),
        None => new,
    }
}

fn sparse(file: &File, max: Option<[Option<u64>; 2]>) -> DatasetBuilder {
    dense(file, max).sparse()
}

#[test]
fn an_index_that_comes_with_the_first_chunk_is_as_the_layout_message_says() {
    let one = Some([None, Some(20)]);
    let both = Some([None, None]);
    for make in [dense, sparse] {
        // A page of four entries.
        let (mut bytes, address) = made(|file| make(file, None), |_| ());
        set_parameters(&mut bytes, address, &[2]);
        let after = filled(&bytes);
        let (message, header) = stored(&after, address, 1);
        assert_eq!((&header[..4], message[0], header[7]), (&b"FAHD"[..], 2, 2));

        // 20 bits, 2 entries in the index block, super blocks of 2 data blocks, these of 8 entries, in pages of 16.
        let (mut bytes, address) = made(|file| make(file, one), |_| ());
        set_parameters(&mut bytes, address, &[20, 2, 2, 8, 4]);
        let after = filled(&bytes);
        let (message, header) = stored(&after, address, 5);
        assert_eq!(message, [20, 2, 2, 8, 4]);
        assert_eq!((&header[..4], &header[7..12]), (&b"EAHD"[..], &[20, 2, 8, 2, 4][..]));

        // Nodes of 300 bytes, split at 90 %, merged at 30 %.
        let (mut bytes, address) = made(|file| make(file, both), |_| ());
        set_parameters(&mut bytes, address, &[44, 1, 0, 0, 90, 30]);
        let after = filled(&bytes);
        let (message, header) = stored(&after, address, 6);
        assert_eq!(message, [44, 1, 0, 0, 90, 30]);
        assert_eq!((&header[..4], &header[6..10]), (&b"BTHD"[..], &[44, 1, 0, 0][..]));
        assert_eq!(header[14..16], [90, 30]);

        // What no index can have: the usual one, whatever the message says.
        let (mut bytes, address) = made(|file| make(file, both), |_| ());
        set_parameters(&mut bytes, address, &[20, 0, 0, 0, 100, 40]);
        let after = filled(&bytes);
        assert_eq!(stored(&after, address, 6).1[6..10], 2048u32.to_le_bytes());
    }
}

fn values() -> Vec<u8> {
    (0..400).map(|cell| (cell % 251) as u8 + 1).collect()
}

/// Writes all chunks, in two goes, and gives the file.
fn filled(bytes: &[u8]) -> Vec<u8> {
    let (store, file) = opened(bytes);
    file.dataset("d").unwrap().write((3, ..), &values()[60..80]).unwrap();
    file.close().unwrap();
    let file = File::options().edit_in(store.clone()).unwrap();
    file.dataset("d").unwrap().write(.., &values()).unwrap();
    file.close().unwrap();
    let file = File::options().edit_in(store.clone()).unwrap();
    assert_eq!(file.dataset("d").unwrap().read::<u8>(..).unwrap(), values());
    drop(file);
    bytes_of(&store)
}

#[test]
fn trees_of_small_nodes_are_edited() {
    // Three or two records to a node, and up to five to a leaf.
    let sizes = [(dense as fn(&File, _) -> _, 134u8), (dense, 97), (sparse, 250), (sparse, 175)];
    for (make, node_size) in sizes {
        let (mut bytes, address) = made(|file| make(file, Some([None, None])), |_| ());
        set_parameters(&mut bytes, address, &[node_size, 0, 0, 0, 100, 40]);
        let bytes = filled(&bytes);
        assert_eq!(stored(&bytes, address, 6).1[6], node_size, "as the message says");
        let (store, file) = opened(&bytes);
        let dataset = file.dataset("d").unwrap();
        for [rows, columns] in [[13, 20], [13, 7], [2, 7], [5, 5], [1, 1]] {
            dataset.resize([rows, columns]).unwrap();
            file.flush().unwrap();
            assert!(dataset.chunk_count().unwrap() <= rows * columns);
            assert_eq!(dataset.read::<u8>((0, 0)).unwrap(), [1]);
        }
        drop(dataset);
        file.close().unwrap();
        filled_again(&store);
    }
}

fn filled_again(store: &Arc<MemoryStore>) {
    let file = File::options().edit_in(store.clone()).unwrap();
    let dataset = file.dataset("d").unwrap();
    dataset.resize([20, 20]).unwrap();
    dataset.write(.., &values()).unwrap();
    drop(dataset);
    file.close().unwrap();
    let file = File::options().edit_in(store.clone()).unwrap();
    assert_eq!(file.dataset("d").unwrap().read::<u8>(..).unwrap(), values());
}

#[test]
fn changes_of_a_tree_that_cannot_be_changed_are_refused_at_once() {
    let (mut bytes, address) = made(
        |file| sparse(file, Some([None, None])),
        |dataset| dataset.write((0, 0..2), &[7u8, 8]).unwrap(),
    );
    let (_, body) = patch::message(&bytes, address, LAYOUT);
    let index = u64::from_le_bytes(body[body.len() - 8..].try_into().unwrap()) as usize;
    // Two records to a leaf are as many as there are, but above it there would be one, which cannot be split.
    patch::patch(&mut bytes, index, 38, |header| {
        let record = u32::from(u16::from_le_bytes([header[10], header[11]]));
        header[6..10].copy_from_slice(&(10 + 2 * record).to_le_bytes());
    });
    let (_, file) = opened(&bytes);
    let dataset = file.dataset("d").unwrap();
    assert_eq!(dataset.read::<u8>((0, 0..3)).unwrap(), [7, 8, 0]);
    let refused = [
        dataset.write((5, 5), &[1u8]),
        dataset.write_point(&[5, 5], 1u8),
        dataset.write_points(&[[5, 5], [6, 6]], &[1u8, 2]),
        dataset.erase((0, 0)),
        dataset.resize([1, 1]),
    ];
    for error in refused {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("at most 1 record(s) at depth 1"), "{error}");
        assert!(error.contains("split and merged"), "{error}");
    }
    file.flush().unwrap();
    assert_eq!(dataset.count_defined(..).unwrap(), 2);
    assert_eq!(dataset.shape(), [20, 20]);
}
