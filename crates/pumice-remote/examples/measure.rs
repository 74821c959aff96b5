//! Reads from an address and tells what that takes, as lines of JSON: `measure OPERATION ADDRESS [DATASET]`.
//!
//! `cell` opens the file and reads the last cell of a dataset, `walk` visits all objects and their attributes, `read` reads a
//! whole dataset, `download` fetches all bytes by parallel requests of 8 MiB without looking at them.

use futures_util::StreamExt;
use object_store::ObjectStoreExt;
use pumice::{Error, File, Node, Result, WalkOrder};
use pumice_remote::{Options, RemoteStore};
use std::ops::ControlFlow;
use std::time::Instant;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let word = |number: usize| words.get(number).map(String::as_str);
    let (Some(operation), Some(address)) = (word(1), word(2)) else {
        eprintln!("usage: measure cell|walk|read|download ADDRESS [DATASET]");
        std::process::exit(2);
    };
    let done = match operation {
        "download" => download(address),
        _ => measure(operation, address, word(3).unwrap_or("d")),
    };
    if let Err(error) = done {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn measure(operation: &str, address: &str, name: &str) -> Result<()> {
    let began = Instant::now();
    let mut options = Options::new();
    if let Some(folder) = std::env::var_os("PUMICE_REMOTE_DISK") {
        options = options.disk(folder, 1 << 30);
    }
    let store = RemoteStore::open(address, &options)?;
    let file = File::options().open_in(store.clone())?;
    let count = match operation {
        "cell" => {
            let dataset = file.dataset(name)?;
            let cell: Vec<u64> =
                dataset.shape().iter().map(|side| side.saturating_sub(1)).collect();
            dataset.read_values(&cell[..])?.len()
        }
        "read" => file.dataset(name)?.read_bytes(..)?.len(),
        "walk" => walk(&file)?,
        _ => return Err(Error::Invalid(format!("no operation is called {operation}"))),
    };
    let (seconds, taken) = (began.elapsed().as_secs_f64(), store.statistics());
    println!(
        r#"{{"operation": "{operation}", "seconds": {seconds:.4}, "requests": {}, "bytes": {}, "count": {count}, "retries": {}, "disk": {}}}"#,
        taken.requests, taken.bytes, taken.retries, taken.disk_hits
    );
    Ok(())
}

fn walk(file: &File) -> Result<usize> {
    let mut objects = 0;
    let ended = file.walk(WalkOrder::Name, |_, node| {
        objects += 1;
        let seen = node.and_then(|node| match node {
            Node::Group(group) => group.attributes().map(drop),
            Node::Dataset(dataset) => dataset.attributes().map(drop),
            Node::Datatype(_) => Ok(()),
        });
        seen.map_or_else(ControlFlow::Break, ControlFlow::Continue)
    });
    match ended {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(objects),
    }
}

/// The plain way to bring an object here: the measure of all others.
fn download(address: &str) -> Result<()> {
    const PIECE: u64 = 8 << 20;
    let failed = |error: object_store::Error| Error::Invalid(error.to_string());
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Error::Invalid(error.to_string()))?;
    let address = url::Url::parse(address).map_err(|error| Error::Invalid(error.to_string()))?;
    let settings = std::env::vars().chain([("AWS_ALLOW_HTTP".to_owned(), "true".to_owned())]);
    let (store, path) = object_store::parse_url_opts(&address, settings).map_err(failed)?;
    let began = Instant::now();
    let bytes = runtime.block_on(async {
        let length = store.head(&path).await?.size;
        let pieces = (0..length.div_ceil(PIECE))
            .map(|piece| piece * PIECE..((piece + 1) * PIECE).min(length));
        let fetch = |range| store.get_range(&path, range);
        let mut answers = futures_util::stream::iter(pieces.map(fetch)).buffer_unordered(32);
        let mut bytes = 0;
        while let Some(answer) = answers.next().await {
            bytes += answer?.len();
        }
        object_store::Result::Ok(bytes)
    });
    let (bytes, seconds) = (bytes.map_err(failed)?, began.elapsed().as_secs_f64());
    println!(r#"{{"operation": "download", "seconds": {seconds:.4}, "bytes": {bytes}}}"#);
    Ok(())
}
