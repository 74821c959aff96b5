//! Tests of code that the compiler must refuse, each beside similar code that it takes.
//!
//! Code that the macro itself refuses (generics, tuples, fields of enums, a missing `#[repr]`) is
//! tested in `pumice-derive`.
//!
//! A field that is no HDF5 type:
//!
//! ```
//! #[derive(pumice::H5Type)]
//! struct Shared { text: String }
//! ```
//! ```compile_fail,E0277
//! #[derive(pumice::H5Type)]
//! struct Shared { text: std::rc::Rc<String> }
//! ```
//! ```compile_fail,E0277
//! #[derive(pumice::H5Type)]
//! struct Sized { length: usize }
//! ```
//!
//! A union:
//!
//! ```compile_fail
//! #[derive(pumice::H5Type, Clone, Copy)]
//! #[repr(C)]
//! union Either { number: u32, float: f32 }
//! ```
//!
//! Structs marked as plain with padding, and with fields that are not plain:
//!
//! ```
//! #[derive(pumice::H5Type, Clone, Copy)]
//! #[repr(C)]
//! #[h5(plain)]
//! struct Full { large: u64, small: [u8; 8] }
//! ```
//! ```compile_fail,E0080
//! #[derive(pumice::H5Type, Clone, Copy)]
//! #[repr(C)]
//! #[h5(plain)]
//! struct Padded { large: u64, small: u8 }
//! ```
//! ```compile_fail,E0277
//! #[derive(pumice::H5Type, Clone, Copy)]
//! #[repr(C)]
//! #[h5(plain)]
//! struct Flag { flag: bool }
//! ```
//!
//! A packed struct with fields that cannot be moved as bytes:
//!
//! ```
//! # use pumice::{File, H5Type};
//! #[derive(H5Type, Clone, Copy)]
//! #[repr(C, packed)]
//! struct Packed { flag: u8, number: u64 }
//! let file = File::in_memory()?;
//! file.new_dataset::<Packed>().create("d")?.write(.., &[Packed { flag: 1, number: 2 }])?;
//! # Ok::<(), pumice::Error>(())
//! ```
//! ```compile_fail,E0080
//! # use pumice::{File, H5Type};
//! #[derive(H5Type, Clone, Copy)]
//! #[repr(C, packed)]
//! struct Packed { flag: bool, number: u64 }
//! let file = File::in_memory()?;
//! file.new_dataset::<Packed>().create("d")?.write(.., &[Packed { flag: true, number: 2 }])?;
//! # Ok::<(), pumice::Error>(())
//! ```
//!
//! A type that has itself inside, which would have no end:
//!
//! ```
//! # use pumice::{File, H5Type};
//! #[derive(H5Type)]
//! struct Leaf { name: String }
//! #[derive(H5Type)]
//! struct Tree { leaves: Vec<Leaf> }
//! File::in_memory()?.new_dataset::<Tree>();
//! # Ok::<(), pumice::Error>(())
//! ```
//! ```compile_fail
//! # use pumice::{File, H5Type};
//! #[derive(H5Type)]
//! struct Tree { branches: Vec<Tree> }
//! File::in_memory()?.new_dataset::<Tree>();
//! # Ok::<(), pumice::Error>(())
//! ```
//!
//! Reading types that borrow:
//!
//! ```
//! let file = pumice::File::in_memory()?;
//! let names = file.new_dataset::<String>().shape([2]).create("names")?;
//! names.write(.., &["a", "b"])?;
//! names.read::<String>(..)?;
//! # Ok::<(), pumice::Error>(())
//! ```
//! ```compile_fail,E0080
//! let file = pumice::File::in_memory()?;
//! let names = file.new_dataset::<String>().shape([2]).create("names")?;
//! names.read::<&str>(..)?;
//! # Ok::<(), pumice::Error>(())
//! ```
//!
//! Columns of types that are not plain:
//!
//! ```compile_fail,E0277
//! let file = pumice::File::in_memory()?;
//! let names = file.new_dataset::<String>().shape([2]).sparse().create("names")?;
//! names.read_columns::<u32, String>(..)?;
//! # Ok::<(), pumice::Error>(())
//! ```
//!
//! Selections of floats or of negative indices:
//!
//! ```compile_fail,E0277
//! let file = pumice::File::in_memory()?;
//! let numbers = file.new_dataset::<u8>().shape([2]).create("numbers")?;
//! numbers.read::<u8>(0.0..1.0)?;
//! # Ok::<(), pumice::Error>(())
//! ```
