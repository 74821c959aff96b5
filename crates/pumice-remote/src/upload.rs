//! Whole files to object stores, in parts.

use crate::address::{Address, Service};
use crate::client::explain;
use crate::fault::Fault;
use crate::statistics::Counts;
use crate::threads;
use crate::wire::Wire;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload, RetryConfig};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use tokio::task::JoinSet;

/// The size of a part; services want 5 MiB at least, and 10,000 parts at most.
const PART: u64 = 8 << 20;
const MOST_PARTS: u64 = 9_000;
/// Parts under way at once.
const TOGETHER: usize = 8;

/// Writes a file to an object store, in parts that are sent at the same time; the object appears when all
/// have arrived. An object that exists is replaced only if `replace` says so.
///
/// ```no_run
/// pumice_remote::upload("cells.h5", "s3://bucket/cells.h5", false)?;
/// # Ok::<(), pumice::Error>(())
/// ```
pub fn upload(file: impl AsRef<Path>, address: &str, replace: bool) -> pumice::Result<()> {
    let (file, address) = (file.as_ref().to_owned(), address.to_owned());
    let sent = threads::runtime().and_then(|runtime| {
        let (sender, answer) = mpsc::channel();
        runtime.spawn(async move {
            let _ = sender.send(send(file, &address, replace).await);
        });
        answer.recv().unwrap_or_else(|_| Err(Fault::internal("an upload ended without an answer")))
    });
    let action = || "write".into();
    sent.map_err(|fault| pumice::Error::Io { action: action(), source: fault.into_io() })
}

async fn send(file: PathBuf, address: &str, replace: bool) -> Result<(), Fault> {
    let wire = Wire(Arc::<Counts>::default());
    let address = Address::parse(address, wire, RetryConfig::default())?;
    if address.service == Service::Http {
        let what = "a web server takes no files in parts: write to s3://, gs:// or az://";
        return Err(Fault::new(io::ErrorKind::Unsupported, format!("{}: {what}", address.name)));
    }
    if !replace && address.objects.head(&address.path).await.is_ok() {
        let what = format!("{}: the object exists", address.name);
        return Err(Fault::new(io::ErrorKind::AlreadyExists, what));
    }
    let failed = |error: &object_store::Error| explain(&address, error);
    let upload = address.objects.put_multipart(&address.path).await;
    let mut upload = upload.map_err(|error| failed(&error))?;
    let sent = match send_parts(&file, &mut *upload, &address).await {
        Ok(()) => upload.complete().await.map(drop).map_err(|error| failed(&error)),
        Err(fault) => Err(fault),
    };
    if sent.is_err() {
        // What was sent takes space until it is given up; a failure here adds nothing to the first one.
        let _ = upload.abort().await;
    }
    sent
}

async fn send_parts(
    path: &Path,
    upload: &mut dyn MultipartUpload,
    address: &Address,
) -> Result<(), Fault> {
    let reading =
        |error: io::Error| Fault::new(error.kind(), format!("{}: {error}", path.display()));
    let mut file = File::open(path).map_err(reading)?;
    let length = file.metadata().map_err(reading)?.len();
    let part = PART.max(length.div_ceil(MOST_PARTS).next_multiple_of(1 << 20));
    let mut flying = JoinSet::new();
    let mut sent = 0;
    while sent < length || sent == 0 {
        let mut bytes = Vec::new();
        (&mut file).take(part).read_to_end(&mut bytes).map_err(reading)?;
        if bytes.is_empty() && sent > 0 {
            let what = "the file has become shorter meanwhile";
            return Err(Fault::new(
                io::ErrorKind::UnexpectedEof,
                format!("{}: {what}", path.display()),
            ));
        }
        sent += bytes.len().max(1) as u64;
        if flying.len() >= TOGETHER {
            landed(flying.join_next().await, address)?;
        }
        flying.spawn(upload.put_part(PutPayload::from(bytes)));
    }
    while let Some(done) = flying.join_next().await {
        landed(Some(done), address)?;
    }
    Ok(())
}

type Landed = Result<object_store::Result<()>, tokio::task::JoinError>;

fn landed(done: Option<Landed>, address: &Address) -> Result<(), Fault> {
    match done {
        None | Some(Ok(Ok(()))) => Ok(()),
        Some(Ok(Err(error))) => Err(explain(address, &error)),
        Some(Err(_)) => Err(Fault::internal("a part ended without an answer")),
    }
}
