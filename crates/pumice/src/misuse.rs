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
//! ```compile_fail,E0277
//! let file = pumice::File::in_memory()?;
//! let numbers = file.new_dataset::<u8>().shape([2]).create("numbers")?;
//! numbers.read::<u8>(-1)?;
//! # Ok::<(), pumice::Error>(())
//! ```
//!
//! Datasets of types that HDF5 has not, of which the size depends on the machine:
//!
//! ```compile_fail,E0277
//! pumice::File::in_memory()?.new_dataset::<usize>().shape([2]).create("sizes")?;
//! # Ok::<(), pumice::Error>(())
//! ```
//!
//! Values of another type than the one that is named, and attributes of types that HDF5 has not:
//!
//! ```compile_fail,E0308
//! let file = pumice::File::in_memory()?;
//! let numbers = file.new_dataset::<f32>().shape([2]).create("numbers")?;
//! numbers.write::<f32>(.., &[1.0_f64, 2.0])?;
//! # Ok::<(), pumice::Error>(())
//! ```
//! ```compile_fail,E0277
//! pumice::File::in_memory()?.root().set_attribute("count", 3_usize)?;
//! # Ok::<(), pumice::Error>(())
//! ```
//!
//! Points of different ranks, and coordinates that may be negative:
//!
//! ```
//! let file = pumice::File::in_memory()?;
//! let hits = file.new_dataset::<u8>().shape([9, 9]).sparse().create("hits")?;
//! hits.write_points(&[[7, 9 - 1], [1, 2]], &[1, 2])?;
//! assert_eq!(hits.read_columns::<u32, u8>(..)?.values, [2, 1]);
//! # Ok::<(), pumice::Error>(())
//! ```
//! ```compile_fail,E0308
//! let file = pumice::File::in_memory()?;
//! let hits = file.new_dataset::<u8>().shape([9, 9]).sparse().create("hits")?;
//! hits.write_points(&[[7, 9 - 1], [1]], &[1, 2])?;
//! # Ok::<(), pumice::Error>(())
//! ```
//! ```compile_fail,E0277
//! let file = pumice::File::in_memory()?;
//! let hits = file.new_dataset::<u8>().shape([9, 9]).sparse().create("hits")?;
//! hits.read_columns::<i32, u8>(..)?;
//! # Ok::<(), pumice::Error>(())
//! ```
//!
//! A file that has been closed, a builder whose dataset has been created, a list of reads that has run:
//!
//! ```compile_fail,E0382
//! let file = pumice::File::in_memory()?;
//! file.close()?;
//! file.flush()?;
//! # Ok::<(), pumice::Error>(())
//! ```
//! ```compile_fail,E0382
//! let file = pumice::File::in_memory()?;
//! let builder = file.new_dataset::<u8>().shape([2]);
//! builder.create("one")?;
//! builder.create("other")?;
//! # Ok::<(), pumice::Error>(())
//! ```
//! ```compile_fail,E0382
//! let many = pumice::ReadMany::new();
//! many.run()?;
//! many.run()?;
//! # Ok::<(), pumice::Error>(())
//! ```
//!
//! Two reads into one buffer, and a look at it before they have run:
//!
//! ```
//! let file = pumice::File::in_memory()?;
//! let numbers = file.new_dataset::<u8>().shape([2]).create("numbers")?;
//! let mut buffer = [9; 4];
//! let (first, second) = buffer.split_at_mut(2);
//! let mut many = pumice::ReadMany::new();
//! many.add(&numbers, .., first)?;
//! many.add(&numbers, .., second)?;
//! many.run()?;
//! assert_eq!(buffer, [0; 4]);
//! # Ok::<(), pumice::Error>(())
//! ```
//! ```compile_fail,E0499
//! let file = pumice::File::in_memory()?;
//! let numbers = file.new_dataset::<u8>().shape([2]).create("numbers")?;
//! let mut buffer = [9; 2];
//! let mut many = pumice::ReadMany::new();
//! many.add(&numbers, .., &mut buffer)?;
//! many.add(&numbers, .., &mut buffer)?;
//! many.run()?;
//! # Ok::<(), pumice::Error>(())
//! ```
//! ```compile_fail,E0502
//! let file = pumice::File::in_memory()?;
//! let numbers = file.new_dataset::<u8>().shape([2]).create("numbers")?;
//! let mut buffer = [9; 2];
//! let mut many = pumice::ReadMany::new();
//! many.add(&numbers, .., &mut buffer)?;
//! assert_eq!(buffer, [0; 2]);
//! many.run()?;
//! # Ok::<(), pumice::Error>(())
//! ```
//!
//! A read into memory that must not change:
//!
//! ```compile_fail,E0308
//! let file = pumice::File::in_memory()?;
//! let numbers = file.new_dataset::<u8>().shape([2]).create("numbers")?;
//! numbers.read_into(.., &[0_u8; 2])?;
//! # Ok::<(), pumice::Error>(())
//! ```
//!
//! Lists of chunks that outlive their dataset, and points that outlive their coordinates:
//!
//! ```compile_fail,E0505
//! let file = pumice::File::in_memory()?;
//! let numbers = file.new_dataset::<u8>().shape([2]).chunk([1]).create("numbers")?;
//! let chunks = numbers.chunks()?;
//! drop(numbers);
//! chunks.list()?;
//! # Ok::<(), pumice::Error>(())
//! ```
//! ```compile_fail,E0505
//! use pumice::Points;
//! let rows = vec![1_u32, 2];
//! let points = Points::columns([rows.as_slice(), rows.as_slice()])?;
//! drop(rows);
//! println!("{}", points.len());
//! # Ok::<(), pumice::advanced::SpaceError>(())
//! ```
//!
//! Strings where sequences of numbers are meant, and a number for what has a name:
//!
//! ```compile_fail,E0277
//! let file = pumice::File::in_memory()?;
//! let names = file.new_dataset::<String>().shape([2]).create("names")?;
//! names.read_sequences::<String>(..)?;
//! # Ok::<(), pumice::Error>(())
//! ```
//! ```compile_fail,E0308
//! let file = pumice::File::in_memory()?;
//! let matrix = file.new_dataset::<u8>().shape([9, 9]).sparse().create("matrix")?;
//! matrix.read_compressed::<u8>(0)?;
//! # Ok::<(), pumice::Error>(())
//! ```
