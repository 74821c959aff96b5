//! What goes wrong on the way gives an error that says what to do, or nothing at all if it passes.

use crate::server::{Mischief, Server};
use pumice::{ErrorKind, File};
use pumice_remote::{Options, RemoteStore};
use pumice_store::Store;
use std::time::Duration;

fn bytes(seed: u8) -> Vec<u8> {
    (0..600_000_u32).map(|i| ((i * 31) >> 7) as u8 ^ seed).collect()
}

/// Small sizes, so that there are many requests, and no long pauses.
fn options() -> Options {
    let options = Options::new().first_bytes(8 << 10).block_bytes(8 << 10).piece_bytes(64 << 10);
    options.gap_bytes(1 << 10).retries(3).backoff(Duration::from_millis(2))
}

fn read(store: &RemoteStore, offset: u64, length: usize) -> std::io::Result<Vec<u8>> {
    let mut found = vec![0; length];
    store.read_at(offset, &mut found).map(|()| found)
}

#[test]
fn what_passes_is_not_seen() {
    let object = bytes(0);
    let server = Server::new(object.clone());
    let cuts = [0, 1, 1000, 8191].map(Mischief::Cut);
    for mischief in [429, 500, 502, 503, 504]
        .map(Mischief::Status)
        .into_iter()
        .chain(cuts)
        .chain([Mischief::HangUp])
    {
        server.next([mischief]);
        let store = RemoteStore::open(&server.url(), &options()).unwrap();
        server.next([mischief, mischief]);
        let found = read(&store, 100_000, 300_000).unwrap();
        assert!(found == object[100_000..400_000], "{mischief:?}");
        server.next([mischief]);
        assert!(read(&store, 500_000, 10).unwrap() == object[500_000..500_010], "{mischief:?}");
        let done = store.statistics();
        assert_eq!(done.retries, 4, "{mischief:?}: {done:?}");
        assert_eq!(done.requests, server.requests().len() as u64, "{mischief:?}");
    }
}

#[test]
fn a_cut_answer_is_continued_where_it_ended() {
    let server = Server::new(bytes(0));
    let store = RemoteStore::open(&server.url(), &options()).unwrap();
    server.requests();
    server.next([Mischief::Cut(5000)]);
    read(&store, 80_000, 60_000).unwrap();
    assert_eq!(server.requests(), [80_000..140_000, 85_000..140_000]);
}

#[test]
fn what_does_not_pass_is_an_error_with_its_cause() {
    for (mischief, part) in [
        (Mischief::Status(503), "the server answers 503"),
        (Mischief::Status(429), "the server answers 429"),
        (Mischief::Cut(10), "the answer was cut"),
        (Mischief::HangUp, "no answer"),
    ] {
        let server = Server::new(bytes(0));
        let store = RemoteStore::open(&server.url(), &options()).unwrap();
        server.always(mischief);
        let error = read(&store, 300_000, 400).unwrap_err().to_string();
        let parts = [part, "gave up after 4 attempts", &server.url()];
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        let error = RemoteStore::open(&server.url(), &options()).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn refusals_are_not_repeated_and_say_what_to_do() {
    for (status, kind, part) in [
        (404, ErrorKind::NotFound, "no such object (404); check the names"),
        (403, ErrorKind::Io, "access is refused (403): the server wants a user"),
        (401, ErrorKind::Io, "access is refused (401)"),
        (400, ErrorKind::Io, "the server answers 400: check the region"),
        (418, ErrorKind::Io, "the server answers 418"),
    ] {
        let server = Server::new(bytes(0));
        server.always(Mischief::Status(status));
        let error = RemoteStore::open(&server.url(), &options()).unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(part), "{error}");
        assert_eq!(server.requests().len(), 1);
    }
    let nobody = "http://127.0.0.1:1/a.h5";
    let error = RemoteStore::open(nobody, &options()).unwrap_err().to_string();
    let parts = ["no answer", "refused", "gave up after 3 attempts"];
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
}

#[test]
fn a_replaced_object_is_an_error_and_never_a_mixture() {
    for conditions in [true, false] {
        for (tag, part) in
            [(Some("\"2\""), "ETag"), (None, "ETag"), (Some("\"1\""), "bytes and has")]
        {
            let old = bytes(0);
            let server = Server::new(old.clone());
            if !conditions {
                server.ignore_conditions();
            }
            let store = RemoteStore::open(&server.url(), &options()).unwrap();
            assert!(read(&store, 200_000, 100).unwrap() == old[200_000..200_100]);
            let mut new = bytes(1);
            new.push(0);
            server.replace(new, tag);
            let error = read(&store, 300_000, 100).unwrap_err().to_string();
            assert!(error.contains("was replaced or changed") && error.contains(part), "{error}");
            assert!(read(&store, 300_000, 200_000).is_err());
            // What came before is of the old state.
            assert!(read(&store, 200_000, 100).unwrap() == old[200_000..200_100]);
        }
    }
}

#[test]
fn an_object_that_is_replaced_between_two_parts_of_an_answer_is_an_error() {
    let server = Server::new(bytes(0));
    let store = RemoteStore::open(&server.url(), &options()).unwrap();
    server.next([Mischief::Cut(5000)]);
    server.delay(Duration::from_millis(20));
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| read(&store, 80_000, 60_000));
        while server.requests().is_empty() {
            std::thread::yield_now();
        }
        server.replace(bytes(1), Some("\"2\""));
        assert!(reading.join().unwrap().is_err());
    });
}

#[test]
fn the_engine_says_that_the_file_was_changed() {
    let (_folder, file_bytes) = crate::requests::file_of_chunks();
    let server = Server::new(file_bytes.clone());
    let store = RemoteStore::open(&server.url(), &options()).unwrap();
    let file = File::options().open_in(store).unwrap();
    let dataset = file.dataset("d").unwrap();
    server.replace(file_bytes, Some("\"2\""));
    let error = dataset.read::<i32>((0..1000, ..)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed, "{error}");
    assert!(error.to_string().contains("another ETag"), "{error}");
    server.delete();
    let error = dataset.read::<i32>((0..1000, ..)).unwrap_err();
    assert!(error.to_string().contains("it was deleted"), "{error}");
}

#[test]
fn a_server_that_ignores_ranges_is_named() {
    let server = Server::new(bytes(0));
    server.ignore_ranges();
    let error = RemoteStore::open(&server.url(), &options()).unwrap_err().to_string();
    assert!(
        error.contains("the server sends the whole object where a range is asked for"),
        "{error}"
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn what_is_no_hdf5_file_or_empty_is_an_error_with_its_address() {
    let server = Server::new(b"not an HDF5 file".to_vec());
    let error = pumice_remote::open(&server.url()).err().unwrap().to_string();
    assert!(error.contains(&server.url()) && error.contains("HDF5 signature"), "{error}");
    let server = Server::new(Vec::new());
    let error = pumice_remote::open(&server.url()).err().unwrap().to_string();
    assert!(error.contains("the object is empty"), "{error}");
}

#[test]
fn objects_are_not_written() {
    let server = Server::new(bytes(0));
    let store = RemoteStore::open(&server.url(), &options()).unwrap();
    let error = store.write_at(0, b"x").unwrap_err();
    assert!(error.to_string().contains("read only"), "{error}");
    assert!(store.set_len(0).is_err());
}
