//! Sparse matrices and arrays as programs hold them: CSR, CSC and COO, to and from sparse datasets.
//!
//! | form | written by | read by |
//! |---|---|---|
//! | COO, any rank | [`Dataset::write_coo`] | [`Dataset::coo_blocks`], [`Dataset::read_coo`] |
//! | CSR | [`Dataset::write_compressed`] with [`Lines::Rows`] | [`Dataset::compressed_blocks`], [`Dataset::read_compressed`] |
//! | CSC | the same with [`Lines::Columns`] | the same |
//! | some rows or a window, as CSR or CSC | - | [`Dataset::read_rows`], [`Dataset::read_compressed_of`] |
//!
//! Both directions stream: writers take any number of blocks, readers give blocks. Counts and
//! coordinates have 64 bits. A value that is stored is defined, also if it is zero.

pub(crate) mod compressed;
mod coo;
mod duplicates;
#[cfg(feature = "sprs")]
mod sprs;
mod sums;

pub use compressed::{Compressed, CompressedBlocks, Lines};
pub use coo::{Coo, CooBlocks};
pub use duplicates::Duplicates;
