//! Which requests reading takes.

use crate::server::Server;
use pumice::{Context, File, Node, WalkOrder};
use pumice_remote::{OpenUrl, Options, RemoteStore};
use pumice_store::{ReadOp, Store};
use std::ops::ControlFlow;
use std::sync::Barrier;
use std::time::Duration;

/// A file of 4 MB in chunks of 40 kB, and its bytes.
pub(crate) fn file_of_chunks() -> (tempfile::TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let file = File::create(&path).unwrap();
    let dataset = file.new_dataset::<i32>().shape([1000, 1000]).chunk([10, 1000]);
    let dataset = dataset.create("d").unwrap();
    let values: Vec<i32> = (0..1_000_000).collect();
    dataset.write((.., ..), &values).unwrap();
    file.close().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    (folder, bytes)
}

fn bytes() -> Vec<u8> {
    (0..1_000_000_u32).map(|i| ((i * 7) >> 3) as u8).collect()
}

fn options() -> Options {
    Options::new()
        .first_bytes(16 << 10)
        .block_bytes(16 << 10)
        .piece_bytes(128 << 10)
        .gap_bytes(4 << 10)
}

#[test]
fn opening_takes_one_request_for_the_head_and_one_for_metadata_elsewhere() {
    let (_folder, bytes) = file_of_chunks();
    let length = bytes.len() as u64;
    let server = Server::new(bytes);
    let file = File::open_url(&server.url()).unwrap();
    assert_eq!(file.dataset("d").unwrap().shape(), [1000, 1000]);
    assert_eq!(server.requests(), [0..2 << 20, 2 << 20..length]);
}

#[test]
fn walking_300_groups_takes_six_requests_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let file = File::create(&path).unwrap();
    let values: Vec<i32> = (0..6400).collect();
    for number in 0..300 {
        let group = file.create_group(&format!("group{number:03}")).unwrap();
        group.set_attribute("unit", "mV").unwrap();
        for name in ["a", "b"] {
            let dataset = group.new_dataset::<i32>().shape([6400]).chunk([3200]);
            dataset.create(name).unwrap().write(.., &values).unwrap();
        }
    }
    file.close().unwrap();
    let server = Server::new(std::fs::read(&path).unwrap());
    let file = File::open_url(&server.url()).unwrap();
    let mut objects = 0;
    let _ = file.walk(WalkOrder::Name, |_, node| {
        objects += 1;
        if let Node::Group(group) = node.unwrap() {
            group.attributes().unwrap();
        }
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(objects, 901);
    let requests = server.requests();
    assert!(requests.len() <= 6, "{requests:?}");
}

#[test]
fn parts_of_chunks_are_asked_for_all_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let file = File::create(&path).unwrap();
    let dataset = file.new_dataset::<i32>().shape([4000, 1000]).chunk([100, 1000]);
    let dataset = dataset.create("d").unwrap();
    dataset.write((.., ..), &(0..4_000_000).collect::<Vec<i32>>()).unwrap();
    file.close().unwrap();
    let server = Server::new(std::fs::read(&path).unwrap());
    server.delay(Duration::from_millis(30));
    let store = RemoteStore::open(&server.url(), &options()).unwrap();
    let context = Context::builder().threads(2).build().unwrap();
    let file = File::options().context(&context).open_in(store).unwrap();
    let dataset = file.dataset("d").unwrap();
    for columns in [0..300, 7..8] {
        let found: Vec<i32> = dataset.read((.., columns.clone())).unwrap();
        let rows = (0..4000).map(|row| row * 1000);
        let expected = rows.flat_map(|row| columns.clone().map(move |column| row + column as i32));
        assert_eq!(found, expected.collect::<Vec<_>>());
    }
    assert!(server.most_at_once() >= 20, "{} at once", server.most_at_once());
}

#[test]
fn bytes_are_those_of_the_object() {
    let object = bytes();
    let server = Server::new(object.clone());
    let store = RemoteStore::open(&server.url(), &options().cache_bytes(100 << 10)).unwrap();
    assert_eq!(store.len().unwrap(), object.len() as u64);
    assert_eq!(store.etag(), Some("\"1\""));
    let mut seed = 1_u64;
    for round in 0..300 {
        let mut ops: Vec<(u64, Vec<u8>)> = Vec::new();
        for _ in 0..1 + round % 5 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let offset = (seed >> 33) % object.len() as u64;
            let length = [1, 100, 20_000, 300_000][(seed >> 20) as usize % 4];
            ops.push((offset, vec![0; length.min(object.len() - offset as usize)]));
        }
        let ranges: Vec<_> =
            ops.iter().map(|(at, buffer)| *at..*at + buffer.len() as u64).collect();
        let announced = (round % 2 == 0).then(|| store.announce(&ranges));
        let mut reads: Vec<_> =
            ops.iter_mut().map(|(offset, buffer)| ReadOp { offset: *offset, buffer }).collect();
        store.read_vectored(&mut reads).unwrap();
        drop(announced);
        for (offset, buffer) in &ops {
            assert!(*buffer == object[*offset as usize..][..buffer.len()]);
        }
    }
    assert!(store.read_at(object.len() as u64 - 1, &mut [0; 2]).is_err());
    assert!(store.read_at(u64::MAX, &mut [0; 2]).is_err());
}

#[test]
fn many_threads_that_want_one_block_send_one_request() {
    let server = Server::new(bytes());
    server.delay(Duration::from_millis(20));
    let store = RemoteStore::open(&server.url(), &options()).unwrap();
    server.requests();
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        for i in 0..8 {
            let (store, barrier) = (&store, &barrier);
            scope.spawn(move || {
                barrier.wait();
                store.read_at(500_000 + i, &mut [0; 10]).unwrap();
            });
        }
    });
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn near_ranges_are_asked_for_together_and_long_ones_in_pieces() {
    let server = Server::new(bytes());
    let store = RemoteStore::open(&server.url(), &options()).unwrap();
    server.requests();
    let mut buffers = [[0; 1000]; 4];
    let offsets = [100_000, 102_000, 500_000, 504_999];
    let mut ops: Vec<_> =
        buffers.iter_mut().zip(offsets).map(|(buffer, offset)| ReadOp { offset, buffer }).collect();
    store.read_vectored(&mut ops).unwrap();
    let mut requests = server.requests();
    requests.sort_by_key(|range| range.start);
    assert_eq!(requests, [100_000..103_000, 500_000..505_999]);
    store.read_at(600_000, &mut vec![0; 256 << 10]).unwrap();
    let mut requests = server.requests();
    requests.sort_by_key(|range| range.start);
    let middle = 600_000 + (128 << 10);
    assert_eq!(requests, [600_000..middle, middle..middle + (128 << 10)]);
}

#[test]
fn small_chunks_that_are_read_one_by_one_come_together() {
    let (_folder, bytes) = file_of_chunks();
    let server = Server::new(bytes);
    let options = Options::new().first_bytes(64 << 10).block_bytes(256 << 10).gap_bytes(64 << 10);
    let store = RemoteStore::open(&server.url(), &options).unwrap();
    // Without threads nothing is loaded ahead.
    let context = Context::builder().threads(1).build().unwrap();
    let file = File::options().context(&context).open_in(store).unwrap();
    let dataset = file.dataset("d").unwrap();
    for row in (0..1000).step_by(10) {
        let found: Vec<i32> = dataset.read((row..row + 10, ..)).unwrap();
        assert_eq!(found[0] as u64, 1000 * row);
    }
    let requests = server.requests();
    assert!(requests.len() <= 25, "{} requests: {requests:?}", requests.len());
}

#[test]
fn chunks_of_a_read_are_all_under_way_at_once() {
    let (_folder, bytes) = file_of_chunks();
    let server = Server::new(bytes);
    server.delay(Duration::from_millis(30));
    // No two chunks together, so that each is a request.
    let options = options().gap_bytes(0).piece_bytes(40_000).requests(24);
    let store = RemoteStore::open(&server.url(), &options).unwrap();
    let context = Context::builder().threads(2).build().unwrap();
    let file = File::options().context(&context).open_in(store.clone()).unwrap();
    let dataset = file.dataset("d").unwrap();
    let found: Vec<i32> = dataset.read((200..600, ..)).unwrap();
    assert_eq!(found, (200_000..600_000).collect::<Vec<_>>());
    let most = server.most_at_once();
    assert!((12..=24).contains(&most), "{most} at once");
    assert!(store.statistics().bytes_ahead > 1_500_000, "{:?}", store.statistics());
}

#[test]
fn what_is_under_way_keeps_to_the_budget() {
    let server = Server::new(bytes());
    server.delay(Duration::from_millis(5));
    let options = options().gap_bytes(0).piece_bytes(10_000).flying_bytes(40 << 10);
    let store = RemoteStore::open(&server.url(), &options).unwrap();
    let mut found = vec![0; 900_000];
    store.read_at(50_000, &mut found).unwrap();
    assert!(found == bytes()[50_000..950_000]);
    // The server counts a request a moment longer than it takes.
    assert!(server.most_at_once() <= 8, "{}", server.most_at_once());
    // Announced ranges, of which nobody reads the first ones.
    let ranges: Vec<_> = (0..90).map(|i| 50_000 + i * 10_000..60_000 + i * 10_000).collect();
    let announced = store.announce(&ranges);
    let mut last = vec![0; 10_000];
    store.read_at(940_000, &mut last).unwrap();
    assert!(last == bytes()[940_000..950_000]);
    drop(announced);
}
