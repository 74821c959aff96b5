//! Commands that exchange data with other programs.

use crate::formats;
use crate::locate::Spot;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Make datasets of files of other programs.
///
/// Formats, told by the file's content or by --from: mtx (Matrix Market, also .gz), npy and npz
/// (NumPy arrays, SciPy sparse matrices), h5ad (AnnData, MuData), 10x (versions 2 and 3), binsparse
/// (0.1), mat (MATLAB 7.3), csv (coordinates and values as CSV or TSV), h5dump (what h5dump and
/// `pumice dump` print: all groups, datasets, attributes and links in it).
///
/// Sparse arrays become sparse datasets: an entry of the file is a defined cell, also if its value
/// is zero. Dense arrays become dense datasets. Symmetric, skew-symmetric and hermitian matrices are
/// expanded. Elements keep the type that they have in the file; where that is text, they are 64-bit
/// floats, 64-bit integers, bytes that are 1 (pattern), or pairs "r", "i" of 64-bit floats (complex).
///
/// Files with several arrays become files with several datasets, at the paths that the arrays have;
/// --object chooses. Attributes source_* of a dataset record its origin. The output appears under
/// its name when it is complete.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pumice import matrix.mtx matrix.h5
  pumice import matrix.mtx.gz matrix.h5 --dataset runs/first --chunk 4096,4096
  pumice import cells.h5ad cells.h5 --object X --object layers/spliced
  pumice import cells.h5ad/layers cells.h5
  pumice import matrix.mtx runs.h5/first/counts       the dataset's path behind the file
  pumice import weights.npz weights.h5
  pumice import edges.csv edges.h5 --shape 1000,1000 --duplicates last
  pumice import triplets.tsv triplets.h5 --one-based
  xzcat matrix.mtx.xz | pumice import - matrix.h5 --duplicates error")]
pub(crate) struct Import {
    /// File to read, or FILE/PATH for --object PATH; `-` for a Matrix Market file on standard input
    #[arg(value_name = "INPUT", value_hint = ValueHint::FilePath)]
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) storing: Storing,
    /// Format of the input
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// Which array of the input, by its path there; may be repeated. All of them by default
    #[arg(long, value_name = "PATH")]
    pub(crate) object: Vec<String>,
    /// Path of the dataset in the file, if there is one; by default "matrix" or its path in the input. OUT.h5/PATH says it,
    /// too, or the group of several
    #[arg(long, value_name = "NAME")]
    pub(crate) dataset: Option<String>,
    /// Shape of the array, for text that does not say it
    #[arg(long, value_name = "R,C", value_delimiter = ',', num_args = 1)]
    pub(crate) shape: Option<Vec<u64>>,
    /// Coordinates count from 1, in csv
    #[arg(long)]
    pub(crate) one_based: bool,
    /// What to do where a cell has several entries (of a pattern, repetitions change nothing
    /// unless they are errors)
    #[arg(long, value_enum, default_value_t = Duplicates::Sum)]
    pub(crate) duplicates: Duplicates,
}

/// Make a file of another program from datasets.
///
/// Formats, told by the output's name or by --to: mtx (.mtx, .mtx.gz), npy, npz (sparse matrices as
/// SciPy stores them, dense arrays as NumPy does), h5ad, 10x (version 3), binsparse (.bsp.h5), mat
/// (sparse matrices), csv and tsv (also .gz).
///
/// Defined cells become entries, also if their values are zero. Of dense datasets in sparse formats,
/// cells that are not zero do. What was imported and is exported again is equal to what it was.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pumice export matrix.h5 matrix.mtx.gz
  pumice export matrix.h5 matrix.npz --form csc        for scipy.sparse.load_npz
  pumice export matrix.h5 matrix.npz --uncompressed    larger, and sooner there
  pumice export cells.h5 cells.h5ad                    all matrices, each at its path
  pumice export runs.h5/first/hits hits.npz            one of several datasets
  pumice export matrix.h5 matrix.h5 --to 10x --dataset /counts")]
pub(crate) struct Export {
    /// HDF5 file, perhaps with the path of what is meant: FILE/PATH
    #[arg(value_name = "FILE[/PATH]", value_hint = ValueHint::FilePath)]
    pub(crate) file: Spot,
    /// File to make
    #[arg(value_name = "OUTPUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Format of the output
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,
    /// Dataset; may be repeated where the format holds several. All of them by default, if it does
    #[arg(long, value_name = "NAME")]
    pub(crate) dataset: Vec<String>,
    /// Store arrays as they are, in npz
    #[arg(long)]
    pub(crate) uncompressed: bool,
    /// Form of sparse matrices, where the format has several
    #[arg(long, value_enum)]
    pub(crate) form: Option<Form>,
    /// Replace OUTPUT if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Make sparse datasets of a file's sparse matrices, and keep all else.
///
/// Files of AnnData and MuData (h5ad, h5mu), 10x Genomics, MATLAB 7.3 and Binsparse are HDF5 in which a
/// sparse matrix is a group of arrays. In the new file such a group is a sparse dataset, with the group's
/// attributes; where the group has other members, it stays, and the dataset takes the place of the array
/// of values. Everything else is copied as it is stored: tables, attributes, links, types, filters.
///
/// --dense makes dense datasets sparse as well, those of a loom file for example: cells that are zero
/// become undefined. Of matrices alone, `pumice import` makes a file without the rest.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pumice convert cells.h5ad cells.h5
  pumice convert cells.h5ad cells.h5 --object X --object layers/spliced
  pumice convert filtered_feature_bc_matrix.h5 counts.h5
  pumice convert cells.loom cells.h5 --dense matrix --dense layers/spliced")]
pub(crate) struct Convert {
    /// HDF5 file of another program, also packed by gzip; or FILE/PATH for --object PATH
    #[arg(value_name = "INPUT", value_hint = ValueHint::FilePath)]
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) storing: Storing,
    /// Format of the input: h5ad, 10x, mat or binsparse
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// Which sparse matrix, by its path; may be repeated. All of them by default
    #[arg(long, value_name = "PATH")]
    pub(crate) object: Vec<String>,
    /// A dense dataset to make sparse, without its zeros; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) dense: Vec<String>,
}

impl Import {
    /// The command for an object behind the file, as `--object` names it.
    pub(crate) fn located(mut self) -> Self {
        locate_objects(&mut self.input, &mut self.object);
        self
    }
}

impl Convert {
    /// The command for an object behind the file, as `--object` names it.
    pub(crate) fn located(mut self) -> Self {
        locate_objects(&mut self.input, &mut self.object);
        self
    }
}

/// Brings what stands behind a file's name before the objects that are named, or in their place if there are none.
fn locate_objects(input: &mut PathBuf, objects: &mut Vec<String>) {
    let spot = Spot::from(std::mem::take(input).into_os_string());
    for object in objects.iter_mut() {
        *object = spot.object(Some(object)).unwrap_or_default();
    }
    if objects.is_empty() {
        objects.extend(spot.object(None));
    }
    *input = spot.file;
}

// Where datasets go, and how they are stored. A doc comment here would become the help of the commands.
#[derive(Args, Clone, Debug)]
pub(crate) struct Storing {
    /// HDF5 file to make
    #[arg(value_name = "OUT.h5", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Shape of a chunk; by default chunks of sparse datasets get about 16,384 entries each, or 24,576 without
    /// compression
    #[arg(long, value_name = "R,C", value_delimiter = ',', num_args = 1)]
    pub(crate) chunk: Option<Vec<u64>>,
    /// Store without compression
    #[arg(long)]
    pub(crate) no_filters: bool,
    /// Replace OUT.h5 if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// What happens to several entries for one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Duplicates {
    /// Their sum counts, as in most programs that read Matrix Market files
    Sum,
    /// The first one counts
    First,
    /// The last one counts
    Last,
    /// The import fails
    Error,
}

impl From<Duplicates> for formats::Duplicates {
    fn from(duplicates: Duplicates) -> Self {
        match duplicates {
            Duplicates::Sum => Self::Sum,
            Duplicates::First => Self::First,
            Duplicates::Last => Self::Last,
            Duplicates::Error => Self::Error,
        }
    }
}

/// The form of a sparse matrix
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// Compressed rows
    Csr,
    /// Compressed columns
    Csc,
    /// Coordinates
    Coo,
    /// Compressed rows without the empty ones (Binsparse)
    Dcsr,
    /// Compressed columns without the empty ones (Binsparse)
    Dcsc,
}

impl From<Form> for formats::Form {
    fn from(form: Form) -> Self {
        match form {
            Form::Csr => Self::Csr,
            Form::Csc => Self::Csc,
            Form::Coo => Self::Coo,
            Form::Dcsr => Self::Dcsr,
            Form::Dcsc => Self::Dcsc,
        }
    }
}
