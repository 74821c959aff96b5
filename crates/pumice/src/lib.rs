//! HDF5, native in Rust, with sparse storage and one shared chunk cache.
//!
//! # A sparse array in a file
//!
//! ```
//! use pumice::File;
//!
//! # fn main() -> pumice::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("events.h5");
//! // Create a file and a sparse dataset: only cells that are written take space.
//! let file = File::create(&path)?;
//! let hits = file.new_dataset::<f32>().shape([100_000, 100_000]).sparse().create("run1/hits")?;
//!
//! // Write coordinates and values.
//! hits.write_points(&[[7, 9], [70_000, 8], [7, 10]], &[1.5, 2.5, 3.5])?;
//!
//! // Read a window: cells that were never written give the fill value.
//! let window: Vec<f32> = hits.read((7..9, 8..12))?;
//! assert_eq!(window, [0.0, 1.5, 3.5, 0.0, 0.0, 0.0, 0.0, 0.0]);
//!
//! // Ask which cells are defined, and read coordinates and values together.
//! assert_eq!(hits.count_defined(..)?, 3);
//! assert!(hits.is_defined(&[70_000, 8])?);
//! let defined = hits.read_defined::<f32>((0..10, ..))?;
//! assert_eq!(defined.values, [1.5, 3.5]);
//! assert_eq!(defined.point(1), [7, 10]);
//!
//! // Erase: the cells are undefined again, which is not the same as zero.
//! hits.erase((7..8, 0..10))?;
//! assert_eq!(hits.count_defined(..)?, 2);
//! file.close()?;
//!
//! // Open it again, and read from several threads at once.
//! let file = File::open(&path)?;
//! let hits = file.dataset("run1/hits")?;
//! std::thread::scope(|scope| {
//!     for row in [7, 70_000] {
//!         let hits = &hits;
//!         scope.spawn(move || assert_eq!(hits.count_defined((row..row + 1, ..)).unwrap(), 1));
//!     }
//! });
//! # Ok(())
//! # }
//! ```
//!
//! # Dense arrays, groups, attributes
//!
//! ```
//! use pumice::File;
//!
//! # fn main() -> pumice::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("dense.h5");
//! let file = File::create(&path)?;
//! let images = file
//!     .new_dataset::<u16>()
//!     .shape([2, 3])
//!     .max_shape([None, Some(3)])
//!     .chunk([1, 3])
//!     .shuffle()
//!     .deflate(4)
//!     .create("images")?;
//! images.write(.., &[1u16, 2, 3, 4, 5, 6])?;
//! images.set_attribute("unit", "counts")?;
//! images.resize([4, 3])?;
//! assert_eq!(images.read::<f64>((1..3, 1..3))?, [5.0, 6.0, 0.0, 0.0]);
//! # Ok(())
//! # }
//! ```
//!
//! # Where to look
//!
//! - [`File`], [`Group`], [`Dataset`], [`Attribute`]: the objects of a file.
//! - [`DatasetBuilder`]: how a new dataset is stored.
//! - [`Selection`]: which cells; ranges, tuples of ranges and `..` convert into it.
//! - [`Context`]: the threads and the chunk cache that files share.
//! - [`guide`]: sparse datasets at length.
//!
//! # Features
//!
//! | feature | by default | what it adds |
//! |---|---|---|
//! | `complex` | yes | complex numbers of the crate num-complex as elements |
//! | `derive` | yes | `#[derive(H5Type)]`: structs as compound datatypes, enums as enumerations |
//! | `ndarray` | | [`Dataset::read_array`], `write_array`, `create_from`: arrays of the crate ndarray |
//! | `sprs` | | `Dataset::read_sprs`, `write_sprs`: matrices of the crate sprs |
//! | `serde` | | [`Value`] with serde's traits |
//! | `plugins` | | third-party filters in C, loaded as libhdf5 does (`HDF5_PLUGIN_PATH`) |
//!
//! Rust 1.95 or newer is needed. The folder `examples` has a program for each common task.
//!
//! # When not to use it
//!
//! - For sparse datasets that other programs must read: structured chunks are in HDF5's RFCs, not in its
//!   releases, so libhdf5 and h5py cannot open them. [`Dataset::copy_as`] makes a dense copy.
//! - On systems other than Unix or on object stores. Over MPI, with the crate `pumice-collective`.
//! - For user-defined links, which are not followed; the error names them.

#![deny(unsafe_code)]
#![warn(missing_debug_implementations)]

#[cfg(feature = "ndarray")]
mod arrays;
mod attribute;
mod blocks;
mod builder;
mod chunk;
mod committed;
mod context;
mod convert;
mod copy;
mod dataset;
#[cfg(feature = "derive")]
mod derived;
mod destination;
mod file;
mod file_copy;
mod filters;
mod group;
mod growing;
pub mod guide;
mod info;
mod links;
mod many;
#[cfg(doctest)]
mod misuse;
mod named;
mod object_copy;
mod path;
mod points;
mod reference;
mod scales;
mod select;
mod shown;
mod space;
mod structured;
mod transfer;
mod typed;
mod walk;

pub use attribute::{Attribute, AttributeValue, FixedLength, RawAttribute, Scalar, VariableLength};
pub use builder::{Access, DatasetBuilder};
pub use chunk::{ChunkInfo, Chunks};
pub use committed::{CommittedDatatype, CommittedValue};
pub use context::{Context, ContextBuilder};
pub use convert::{Compressed, CompressedBlocks, Coo, CooBlocks, Duplicates, Lines};
pub use copy::Keep;
pub use dataset::creation::{AllocationTime, Creation, Fill, FillTime};
pub use dataset::{Dataset, Defined, LayoutKind};
pub use file::{File, FileOptions, SharedKind};
pub use file_copy::Remade;
pub use filters::{Section, SectionFilters, Sections};
pub use group::{Group, Member, MemberKind, Node};
pub use info::{FileInfo, FileSpaceInfo, FileSpaceStrategy};
pub use links::GroupOptions;
pub use many::{ReadMany, WriteMany};
pub use named::LinkTarget;
pub use object_copy::CopyOptions;
pub use path::ObjectPath;
pub use pumice_cache::Config as CacheConfig;
pub use pumice_cache::DatasetOptions as CacheOptions;
pub use pumice_cache::{CurvePoint, Hint, PolicyKind, Sizing, Stats};
pub use pumice_trace::{simulate, trace};

/// Replacement policies: the trait and its parts for a policy of the program's own, and policies to
/// build on.
///
/// See [`ContextBuilder::own_policy`].
pub mod policy {
    pub use pumice_cache::{
        Lirs, Lru, Policy, Random, TinyLfu, TwoStage, Usage, Weight, WeightedLru,
    };
}
/// Complex numbers, as the crates of linear algebra have them.
#[cfg(feature = "complex")]
pub use num_complex::Complex;
pub use pumice_engine::dataset::{Columns, VirtualMapping, VirtualView};
pub use pumice_engine::version::{ByKind, LibraryVersion};
pub use pumice_engine::{Error, ErrorKind, Result};
pub use pumice_filter::register as register_filter;
pub use pumice_filter::{
    BitshuffleCodec, BloscCodec, BloscShuffle, DatasetFacts, Filter, FilterError, FilterSpec,
    Scaling, SzipCoding,
};
pub use pumice_medium::journal::Durability;
pub use pumice_space::{Column, Coordinate, Extent, HyperslabAxis, Points, Selection, UNLIMITED};
pub use pumice_store::{Locking, MemoryStore, ReadOp, Store, WriteOp};
pub use pumice_types::{Datatype, Element, FixedText, H5Type, Heaped, Sequences, Strings, Value};
pub use reference::{Reference, ReferenceType, References};
pub use select::{AxisCells, AxisRange, Mask, Select};
pub use space::{ExternalPiece, FileSpace, ObjectSpace, Place, PlaceKind};
pub use structured::{SectionInfo, StoredSection, StructuredChunkInfo};
pub use transfer::Transfer;
pub use walk::WalkOrder;

/// Structs as elements of compound datatypes, C-like enums as enumerations.
///
/// Fields may be numbers, `bool`, `String`, [`FixedText`], arrays, `Vec`, [`Reference`], complex numbers, and other
/// structs and enums. Members of the datatype have the fields' names; padding between fields is left out.
///
/// ```
/// use pumice::{File, H5Type};
///
/// #[derive(H5Type, Clone, Debug, PartialEq)]
/// struct Sample {
///     name: String,
///     #[h5(rename = "detector id")]
///     detector: u16,
///     position: [f32; 3],
///     quality: Quality,
///     valid: bool,
///     peaks: Vec<f64>,
/// }
///
/// #[derive(H5Type, Clone, Copy, Debug, PartialEq)]
/// #[repr(u8)]
/// enum Quality {
///     Good = 1,
///     Doubtful = 2,
/// }
///
/// let file = File::in_memory()?;
/// let samples = file.new_dataset::<Sample>().shape([2]).create("samples")?;
/// let tuff = Sample {
///     name: "tuff".into(),
///     detector: 7,
///     position: [1.0, 2.0, 3.0],
///     quality: Quality::Doubtful,
///     valid: true,
///     peaks: vec![0.5],
/// };
/// samples.write(1, &[tuff.clone()])?;
/// assert_eq!(samples.read::<Sample>(1)?, [tuff]);
///
/// // Members are matched by name: a reader may know only some of them, and in another type.
/// #[derive(H5Type, Debug, PartialEq)]
/// struct Place {
///     position: [f64; 3],
/// }
/// assert_eq!(samples.read::<Place>(1)?, [Place { position: [1.0, 2.0, 3.0] }]);
/// # Ok::<(), pumice::Error>(())
/// ```
///
/// A struct of plain fields (numbers, arrays, fixed text, complex numbers, such structs) that is
/// `#[repr(C)]` and has no padding is copied between file and memory as bytes. With `#[h5(plain)]`
/// the compiler checks that, and the struct is an [`Element`]:
///
/// ```
/// use pumice::{Element, FixedText, H5Type};
///
/// #[derive(H5Type, Clone, Copy)]
/// #[repr(C)]
/// #[h5(plain)]
/// struct Hit {
///     time: f64,
///     detector: u16,
///     label: FixedText<6>,
/// }
/// fn is_element<T: Element>() {}
/// is_element::<Hit>();
/// ```
///
/// References to objects are [`Reference`] or `Option<Reference>`; `#[h5(region)]` makes a new dataset's
/// member one of region references, `#[h5(any)]` one of HDF5 1.12's references to anything.
#[cfg(feature = "derive")]
pub use pumice_derive::H5Type;

#[cfg(feature = "derive")]
#[doc(hidden)]
pub mod derive {
    pub use crate::derived::*;
}

/// The errors of the parts that [`Error`] is made of.
///
/// Most programs ask for the [kind](Error::kind) alone:
///
/// ```
/// use pumice::{ErrorKind, File};
///
/// let file = File::in_memory()?;
/// let dataset = match file.dataset("hits") {
///     Err(error) if error.kind() == ErrorKind::NotFound => {
///         file.new_dataset::<f32>().shape([9]).create("hits")?
///     }
///     found => found?,
/// };
/// assert_eq!(dataset.read::<f32>(5..12).unwrap_err().kind(), ErrorKind::OutOfBounds);
/// assert_eq!(dataset.read::<f32>((0, 0)).unwrap_err().kind(), ErrorKind::RankMismatch);
/// assert_eq!(dataset.read::<String>(..).unwrap_err().kind(), ErrorKind::TypeMismatch);
/// assert_eq!(dataset.write(.., &[1.5f32]).unwrap_err().kind(), ErrorKind::CountMismatch);
/// assert_eq!(file.create_group("hits").unwrap_err().kind(), ErrorKind::Exists);
/// assert_eq!(file.group("hits").unwrap_err().kind(), ErrorKind::WrongKind);
/// # Ok::<(), pumice::Error>(())
/// ```
pub mod error {
    pub use pumice_bytes::DecodeError;
    pub use pumice_cache::CacheError;
    pub use pumice_engine::{Error, ErrorKind, Result};
    pub use pumice_filter::FilterError;
    pub use pumice_format::FormatError;
    pub use pumice_space::SpaceError;
    pub use pumice_types::TypeError;
}

/// The datatype model, conversion and DDL names.
pub mod types {
    pub use pumice_types::*;
}
