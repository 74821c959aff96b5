//! Blocks on disk: they spare requests, and are never wrong.

use crate::requests::file_of_chunks;
use crate::server::Server;
use pumice::{Context, File};
use pumice_remote::{Options, RemoteStore};
use std::path::Path;
use std::sync::Arc;

fn options(folder: &Path, most: u64) -> Options {
    let options = Options::new().first_bytes(16 << 10).block_bytes(16 << 10).piece_bytes(256 << 10);
    options.gap_bytes(4 << 10).disk(folder, most)
}

/// Reads all of a dataset, and says how many requests that took, and how many ranges came from disk.
fn read(server: &Server, options: &Options) -> (usize, u64) {
    server.requests();
    let store = RemoteStore::open(&server.url(), options).unwrap();
    let found = read_with(&store);
    assert!(found.iter().copied().eq(0..1_000_000), "other values");
    (server.requests().len(), store.statistics().disk_hits)
}

fn read_with(store: &Arc<RemoteStore>) -> Vec<i32> {
    let context = Context::builder().threads(2).build().unwrap();
    let file = File::options().context(&context).open_in(store.clone()).unwrap();
    file.dataset("d").unwrap().read((.., ..)).unwrap()
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_second_opening_takes_one_request() {
    let (folder, bytes) = file_of_chunks();
    let (server, kept) = (Server::new(bytes), folder.path().join("kept"));
    let (first, hits) = read(&server, &options(&kept, 1 << 30));
    assert!(first > 10 && hits == 0, "{first} requests, {hits} from disk");
    let (second, hits) = read(&server, &options(&kept, 1 << 30));
    assert!(second == 1 && hits >= 100, "{second} requests, {hits} from disk");
    // Another state of the object has nothing there.
    let (_folder, mut bytes) = file_of_chunks();
    bytes.push(0);
    server.replace(bytes, Some("\"2\""));
    let (third, hits) = read(&server, &options(&kept, 1 << 30));
    assert!(third > 10 && hits == 0, "{third} requests, {hits} from disk");
}

#[test]
fn damaged_files_are_never_served() {
    let (folder, bytes) = file_of_chunks();
    let (server, kept) = (Server::new(bytes), folder.path().join("kept"));
    read(&server, &options(&kept, 1 << 30));
    for (number, path) in files(&kept).into_iter().enumerate() {
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        match number % 4 {
            0 => bytes[middle] ^= 1,
            1 => bytes.truncate(middle),
            2 => bytes[20] ^= 1,
            // The file of another range.
            _ => bytes = std::fs::read(&files(&kept)[0]).unwrap(),
        }
        std::fs::write(&path, bytes).unwrap();
    }
    let (_, hits) = read(&server, &options(&kept, 1 << 30));
    assert!(hits <= 1, "{hits}");
    let (requests, _) = read(&server, &options(&kept, 1 << 30));
    assert_eq!(requests, 1, "all is there again");
}

#[test]
fn the_folder_keeps_to_its_limit() {
    let (folder, bytes) = file_of_chunks();
    let (server, kept) = (Server::new(bytes), folder.path().join("kept"));
    for _ in 0..3 {
        read(&server, &options(&kept, 1 << 20));
        let held: u64 = files(&kept).iter().map(|path| path.metadata().unwrap().len()).sum();
        assert!(held <= 1 << 20 && held > 1 << 19, "{held}");
    }
}

#[test]
fn several_openings_share_a_folder() {
    let (folder, bytes) = file_of_chunks();
    let (server, kept) = (Server::new(bytes), folder.path().join("kept"));
    std::thread::scope(|scope| {
        for most in [1 << 20, 1 << 30, 1 << 20, 1 << 30] {
            let (server, options) = (&server, options(&kept, most));
            scope.spawn(move || {
                for _ in 0..3 {
                    let store = RemoteStore::open(&server.url(), &options).unwrap();
                    assert!(read_with(&store).iter().copied().eq(0..1_000_000));
                }
            });
        }
    });
    assert!(files(&kept).iter().all(|path| path.extension().unwrap() == "range"));
}

#[test]
fn a_folder_that_cannot_be_is_an_error() {
    let (folder, bytes) = file_of_chunks();
    let server = Server::new(bytes);
    let place = folder.path().join("a.h5/kept");
    let error = RemoteStore::open(&server.url(), &options(&place, 1 << 20)).unwrap_err();
    assert!(error.to_string().contains("cannot be made"), "{error}");
}
