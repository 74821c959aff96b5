//! HDF5 files in object stores and on web servers, read by ranges.
//!
//! ```no_run
//! use pumice::File;
//! use pumice_remote::OpenUrl;
//!
//! let file = File::open_url("s3://bucket/cells.h5")?;
//! let row: Vec<f32> = file.dataset("counts")?.read((17, ..))?;
//! # Ok::<(), pumice::Error>(())
//! ```
//!
//! Addresses are `s3://bucket/name`, `gs://bucket/name`, `az://container/name`, `http://…` and `https://…`. Credentials come
//! from the environment: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`, ...;
//! `GOOGLE_APPLICATION_CREDENTIALS`; `AZURE_STORAGE_ACCOUNT_NAME`, `AZURE_STORAGE_ACCOUNT_KEY`, ... Requests to
//! `http://` endpoints need `AWS_ALLOW_HTTP=true` unless the endpoint is this machine.
//!
//! Opening sends one request, for the first MiB; its answer also gives the length and the ETag. Metadata comes in
//! blocks, which stay in memory. The chunks of a read are all asked for at once, near ones together, many at a time.
//! Every request names the ETag: if the object is replaced while it is open, reads fail and never mix two states.
//! `pumice repack --cloud` writes files that need few requests.
//!
//! How many requests reading takes, and how fast it is, is in `docs/remote.md`.

#![forbid(unsafe_code)]

mod address;
mod ahead;
mod blocks;
mod client;
mod disk;
mod fault;
mod options;
mod ranges;
mod statistics;
mod store;
mod threads;
mod upload;
mod wire;

pub use address::is_url;
pub use options::Options;
pub use statistics::Statistics;
pub use store::RemoteStore;
pub use upload::upload;

use pumice::{File, FileOptions, Result};

/// Opens the file at an address for reading.
///
/// ```no_run
/// let file = pumice_remote::open("https://example.org/cells.h5")?;
/// # Ok::<(), pumice::Error>(())
/// ```
pub fn open(address: &str) -> Result<File> {
    open_with(address, File::options(), &Options::new())
}

/// Opens the file at an address for reading, with settings of the file and of the way to it.
///
/// ```no_run
/// use pumice::File;
/// use pumice_remote::Options;
///
/// let options = Options::new().disk("/var/cache/pumice", 10 << 30);
/// let file = pumice_remote::open_with("gs://bucket/cells.h5", File::options(), &options)?;
/// # Ok::<(), pumice::Error>(())
/// ```
pub fn open_with(address: &str, file: FileOptions, options: &Options) -> Result<File> {
    let store = RemoteStore::open(address, options)?;
    let name = store.name().to_owned();
    file.open_in(store).map_err(|error| error.at(&name))
}

/// `open_url` for [`File`].
pub trait OpenUrl: Sized {
    /// Opens the file at an address for reading.
    ///
    /// ```no_run
    /// use pumice::File;
    /// use pumice_remote::OpenUrl;
    ///
    /// let file = File::open_url("az://container/cells.h5")?;
    /// # Ok::<(), pumice::Error>(())
    /// ```
    fn open_url(address: &str) -> Result<Self>;
}

impl OpenUrl for File {
    fn open_url(address: &str) -> Result<Self> {
        open(address)
    }
}
