//! Requests that files of other programs take. The files are found through `PUMICE_CORPUS` (default: beside the project).

use crate::server::Server;
use pumice::{Dataset, File, Node, WalkOrder};
use pumice_remote::{Options, RemoteStore};
use std::ops::ControlFlow;
use std::path::PathBuf;

fn corpus() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora");
    let path = std::env::var_os("PUMICE_CORPUS").map_or_else(|| beside.into(), PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no corpus at {}", path.display());
    None
}

/// All objects of a file, and the paths of its datasets.
fn walk(file: &File) -> (usize, Vec<String>) {
    let (mut objects, mut datasets) = (0, Vec::new());
    let _ = file.walk(WalkOrder::Name, |path, node| {
        objects += 1;
        if let Ok(Node::Dataset(dataset)) = node
            && dataset.shape().iter().all(|side| *side > 0)
        {
            datasets.push(path.to_owned());
        }
        ControlFlow::<()>::Continue(())
    });
    (objects, datasets)
}

/// Reads the last cell.
fn read_cell(dataset: &Dataset) -> pumice::Result<()> {
    let cell: Vec<u64> = dataset.shape().iter().map(|side| side - 1).collect();
    dataset.read_values(&cell[..]).map(drop)
}

#[test]
fn one_chunk_of_any_small_file_takes_four_requests_at_most() {
    let Some(corpus) = corpus() else { return };
    let options = Options::new();
    let (mut files, mut reads, mut most, mut most_of_walks) = (0, 0, 0, 0);
    let folders =
        ["files", "real", "sparse/h5"].map(|name| std::fs::read_dir(corpus.join(name)).unwrap());
    for path in folders.into_iter().flatten().map(|entry| entry.unwrap().path()) {
        let bytes = std::fs::read(&path).unwrap();
        if bytes.len() <= 1 << 20 {
            // The first request brings all of it.
            continue;
        }
        let server = Server::new(bytes);
        let open = || {
            RemoteStore::open(&server.url(), &options)
                .and_then(|store| File::options().open_in(store))
        };
        let Ok(file) = open() else { continue };
        let (objects, datasets) = walk(&file);
        drop(file);
        let walking = server.requests().len();
        if objects >= 300 {
            continue;
        }
        files += 1;
        most_of_walks = most_of_walks.max(walking);
        assert!(walking <= 6, "{}: {walking} to walk", path.display());
        for name in datasets {
            let file = open().unwrap();
            if read_cell(&file.dataset(&name).unwrap()).is_err() {
                continue;
            }
            reads += 1;
            let taken = server.requests().len();
            most = most.max(taken);
            assert!(taken <= 4, "{}: {taken} for {name}", path.display());
        }
    }
    println!(
        "{files} files, {reads} cells: {most} requests for a cell, {most_of_walks} for a walk at most"
    );
}
