//! One HDF5 file, written and read by several ranks: processes of MPI, or threads.
//!
//! All ranks make the same calls in the same order ("collective calls"), each with its own cells, and find the
//! same outcome: if a rank fails, all get an error. A chunk that several ranks write has one owner, which merges
//! what they hand in, in the order of ranks, and encodes the chunk. Rank 0 gives all chunks their places, their
//! owners write them there, and rank 0 commits. So a file is the same, byte for byte, whatever the number of
//! ranks, and is as at its last commit whenever one of them ends.
//!
//! ```
//! use pumice_collective::{CollectiveError, CollectiveFile};
//! use pumice_comm::{Communicator, run};
//! use std::{sync::Arc, time::Duration};
//!
//! let folder = tempfile::tempdir().unwrap();
//! let path = folder.path().join("a.h5");
//! let sums = run(3, Duration::from_secs(30), |comm| {
//!     let rank = comm.rank() as u64;
//!     let file = CollectiveFile::create(Arc::new(comm), &path)?;
//!     let dataset = file.create_dataset("stones", |file| {
//!         file.new_dataset::<u32>().shape([30, 8]).chunk([7, 8]).shuffle().deflate(4)
//!     })?;
//!     dataset.write((rank * 10..rank * 10 + 10, ..), &[rank as u32; 80])?;
//!     let all = dataset.read::<u64>(..)?;
//!     file.close()?;
//!     Ok::<u64, CollectiveError>(all.iter().sum())
//! });
//! assert!(sums.into_iter().all(|sum| sum.unwrap().unwrap() == 80 * (1 + 2)));
//! assert_eq!(pumice::File::open(&path)?.dataset("stones")?.read::<u8>((20, 0..2))?, [2, 2]);
//! # Ok::<(), pumice::Error>(())
//! ```
//!
//! What is chosen and why, and what it costs: `docs/collective.md`.
//!
//! # When not to use it
//!
//! Threads of one process share a [`pumice::File`] and need nothing of this. Families of files, split and multi
//! files, external and virtual datasets are not written collectively.

#![forbid(unsafe_code)]

mod call;
mod commit;
mod dataset;
mod entry;
mod error;
mod file;
mod gate;
mod options;
mod owners;
pub mod parcel;
mod pieces;
mod wire;

pub use dataset::CollectiveDataset;
pub use error::CollectiveError;
pub use file::CollectiveFile;
pub use options::CollectiveOptions;
pub use pumice_comm as comm;

/// The outcome of a collective call.
pub type Result<T> = std::result::Result<T, CollectiveError>;
