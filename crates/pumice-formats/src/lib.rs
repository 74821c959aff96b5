//! Files of other programs: reading them as datasets, and writing datasets to them.
//!
//! One file per format, each behind the trait [`Format`]. Reading gives a [`Source`] for each array
//! of a file: cells or blocks of cells, a bounded number at a time, in the datatype of the file.
//! Writing takes cells from `bands`, a bounded number of rows or columns at a time. Formats know
//! nothing of duplicates, symmetry or chunks: [`fill`] does, which writes the cells of a source to a dataset.
//! [`matrices`] are those that are groups of arrays in a file of HDF5.
//!
//! ```
//! use pumice_formats::{Input, Part, recognised};
//!
//! let path = std::env::temp_dir().join(format!("formats-{}.mtx", std::process::id()));
//! std::fs::write(&path, "%%MatrixMarket matrix coordinate real general\n3 4 1\n2 3 0.5\n")?;
//! let format = recognised(&path)?;
//! let mut found = format.open(&Input { path: &path, shape: None, one_based: false })?;
//! let source = &mut found[0].source;
//! assert_eq!(source.array().shape, [3, 4]);
//! let Some(Part::Cells(cells)) = source.next_part()? else { panic!("no cells") };
//! assert_eq!(cells.columns, [[1], [2]]);
//! # std::fs::remove_file(path)?;
//! # Ok::<(), anyhow::Error>(())
//! ```

#![forbid(unsafe_code)]

mod anndata;
mod arithmetic;
mod array_stream;
mod bands;
mod binsparse;
mod blocks;
mod compressed;
mod container;
mod coordinates;
mod dense;
mod diagonals;
mod filling;
mod labels;
mod matlab;
mod matrices;
mod matrix_market;
mod npy;
mod npz;
mod number_text;
mod tenx;
mod text;
mod text_file;
mod zip;

pub use arithmetic::Arithmetic;
pub use container::objects;
pub use dense::{Blocks, selection};
pub use filling::{Duplicates, dataset_for, fill, record_origin};
pub use labels::{Keeper, Label};
pub use matrices::{Matrix, copy_attribute, is_at, matrices, thin};

use anyhow::{Result, bail};
use pumice::{Dataset, Datatype, File, FileOptions};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// About how many cells a source gives at once.
pub const BATCH: usize = 1 << 20;

/// The symmetry of a matrix: which entries stand for two cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symmetry {
    /// None: an entry is one cell.
    #[default]
    General,
    /// The mirror image has the same value.
    Symmetric,
    /// The mirror image has the negated value.
    SkewSymmetric,
    /// The mirror image has the conjugated value.
    Hermitian,
}

/// The properties of an array before its cells are read.
#[derive(Clone, Debug)]
pub struct Array {
    /// Its extent.
    pub shape: Vec<u64>,
    /// The type of its values.
    pub datatype: Datatype,
    /// The number of entries, mirror images not counted.
    pub entries: u64,
    /// Whether every cell has a value; otherwise entries define cells.
    pub dense: bool,
    /// Which entries stand for two cells.
    pub symmetry: Symmetry,
    /// Whether entries have no values: adding them changes nothing.
    pub pattern: bool,
    /// Notes of the array's origin, for the dataset.
    pub notes: Vec<(&'static str, String)>,
}

impl Array {
    /// A sparse array without symmetry.
    pub fn sparse(shape: Vec<u64>, datatype: Datatype, entries: u64) -> Self {
        let symmetry = Symmetry::General;
        Self { shape, datatype, entries, dense: false, symmetry, pattern: false, notes: Vec::new() }
    }

    /// A dense array.
    pub fn dense(shape: Vec<u64>, datatype: Datatype) -> Self {
        let entries = shape.iter().fold(1u64, |cells, &side| cells.saturating_mul(side));
        Self { dense: true, ..Self::sparse(shape, datatype, entries) }
    }
}

/// Cells that a source gives.
#[derive(Debug)]
pub enum Part {
    /// Cells one by one, in any order.
    Cells(Cells),
    /// A block of cells, in row-major order.
    Block {
        /// The first cell.
        start: Vec<u64>,
        /// How many there are along each axis.
        count: Vec<u64>,
        /// The values.
        values: Vec<u8>,
    },
}

/// Coordinates, one column per axis, and values, one after another.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    /// The coordinates, axis by axis.
    pub columns: Vec<Vec<u64>>,
    /// The values.
    pub values: Vec<u8>,
    /// The place of each cell in the file, for messages.
    pub marks: Vec<u64>,
}

impl Cells {
    /// No cells of an array of this rank.
    pub fn new(rank: usize) -> Self {
        Self { columns: vec![Vec::new(); rank], ..Self::default() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The coordinates of a cell.
    pub fn place(&self, at: usize) -> Vec<u64> {
        self.columns.iter().map(|axis| axis[at]).collect()
    }
}

/// The source of an imported array.
pub trait Source {
    /// What is known of the array before its cells.
    fn array(&self) -> &Array;

    /// The next cells, about [`BATCH`] at most; `None` behind the last ones.
    fn next_part(&mut self) -> Result<Option<Part>>;

    /// An error about the cell with a mark.
    fn blame(&self, _mark: u64, message: String) -> anyhow::Error {
        anyhow::Error::msg(message)
    }
}

/// An array of a file, and the path that its dataset gets unless another is asked for.
pub struct Found {
    /// The path.
    pub name: String,
    /// Its cells.
    pub source: Box<dyn Source>,
    /// Names of its rows and columns.
    pub labels: Vec<labels::Label>,
    /// The group of an HDF5 file with the arrays of its entries.
    pub group: Option<String>,
}

impl Found {
    /// An array whose lines have no names.
    pub fn new(name: impl Into<String>, source: Box<dyn Source>) -> Self {
        Self { name: name.into(), source, labels: Vec::new(), group: None }
    }
}

/// The input of an import.
pub struct Input<'a> {
    /// `-` is standard input.
    pub path: &'a Path,
    /// The shape, where the file does not say it.
    pub shape: Option<&'a [u64]>,
    /// Whether coordinates in text count from one.
    pub one_based: bool,
}

impl Input<'_> {
    /// The name for messages.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Whether the input is standard input.
    pub fn is_standard_input(&self) -> bool {
        self.path == Path::new("-")
    }
}

/// The output of an export.
pub struct Output<'a> {
    /// The file of the datasets.
    pub file: &'a File,
    /// The datasets, and the names that they were found by.
    pub datasets: &'a [Dataset],
    /// The file to make.
    pub path: &'a Path,
    /// The name that the file will have.
    pub final_path: &'a Path,
    /// Rows, columns or coordinates, where the format has several forms.
    pub form: Option<Form>,
    /// Whether arrays are stored uncompressed.
    pub uncompressed: bool,
    /// Who hears how far the work is.
    pub progress: &'a dyn Progress,
}

impl Output<'_> {
    /// The form that was asked for, if the format has it.
    pub fn plain_form(&self) -> Result<Option<Form>> {
        if let Some(Form::Dcsr | Form::Dcsc) = self.form {
            bail!("the format has csr, csc and coo; dcsr and dcsc are for Binsparse");
        }
        Ok(self.form)
    }

    /// The one dataset, where a format holds no more than one.
    pub fn only_dataset(&self) -> Result<&Dataset> {
        match self.datasets {
            [dataset] => Ok(dataset),
            several => {
                bail!("the format holds one array, not {}; --dataset names one", several.len())
            }
        }
    }
}

/// Hears how far long work is.
pub trait Progress: Sync {
    /// So many more entries or bytes of values are done.
    fn add(&self, count: u64);

    /// There is so much more to do than was known.
    fn expect(&self, _count: u64) {}

    /// Whether the work is to end with an error.
    fn is_over(&self) -> bool {
        false
    }
}

/// Nobody hears how far the work is.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Progress for Unwatched {
    fn add(&self, _: u64) {}
}

/// The form of a sparse matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
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

/// A format of other programs.
pub trait Format: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Its title in texts.
    fn title(&self) -> &'static str;

    /// The endings of its files' names.
    fn endings(&self) -> &'static [&'static str];

    /// Whether a file has this format.
    fn recognises(&self, probe: &Probe) -> bool;

    /// The arrays of a file.
    fn open(&self, input: &Input<'_>) -> Result<Vec<Found>>;

    /// The names of arrays that are a sparse matrix together, in a group of an HDF5 file.
    fn arrays(&self) -> &'static [&'static str] {
        &["data", "indices", "indptr"]
    }

    /// The array of the group that has the values.
    fn values(&self) -> &'static str {
        "data"
    }

    /// Makes a file.
    fn export(&self, _output: &Output<'_>) -> Result<()> {
        bail!("{} is read, not written", self.title())
    }

    /// Whether a file may hold several arrays.
    fn holds_several(&self) -> bool {
        false
    }
}

/// All formats; the first that recognises a file reads it.
pub static ALL: &[&dyn Format] = &[
    &matrix_market::MatrixMarket,
    &npy::Npy,
    &npz::Npz,
    &binsparse::Binsparse,
    &matlab::Matlab,
    &tenx::TenX,
    &anndata::AnnData,
    &text::Text,
];

/// The format of a name.
pub fn named(name: &str) -> Result<&'static dyn Format> {
    let format = ALL.iter().find(|format| format.name() == name);
    format.copied().ok_or_else(|| {
        let known: Vec<_> = ALL.iter().map(|format| format.name()).collect();
        anyhow::anyhow!("{name:?} is none of the formats {} and h5dump", known.join(", "))
    })
}

/// The format that the name of a file asks for.
pub fn by_ending(path: &Path) -> Option<&'static dyn Format> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let fits = |format: &&&dyn Format| format.endings().iter().any(|end| name.ends_with(end));
    ALL.iter().find(fits).copied()
}

/// The format that a file has.
pub fn recognised(path: &Path) -> Result<&'static dyn Format> {
    let probe = Probe::new(path);
    if let Some(format) = ALL.iter().find(|format| format.recognises(&probe)) {
        return Ok(*format);
    }
    if let Some(format) =
        by_ending(path).filter(|format| !probe.is_hdf5() || format.title().contains("HDF5"))
    {
        return Ok(format);
    }
    if path.is_file() {
        bail!(
            "{}: no matrix that is known here; --from says what it is, `pumice import --help` lists the formats",
            path.display()
        )
    }
    // Opening it says what is wrong.
    Ok(&matrix_market::MatrixMarket)
}

/// Whether a file is h5dump's output.
pub fn is_dump(path: &Path) -> bool {
    let head = Probe::new(path).head;
    head.trim_ascii_start().starts_with(b"HDF5 \"")
}

/// The beginning of a file.
pub struct Probe {
    /// Its name.
    pub path: PathBuf,
    /// Its first bytes; unpacked if it is a gzip file.
    pub head: Vec<u8>,
    /// The file, if it is HDF5.
    pub file: Option<File>,
}

impl Probe {
    fn new(path: &Path) -> Self {
        let mut head = Vec::new();
        // Only regular files are opened: others might wait for a writer.
        if path.is_file()
            && let Ok(file) = fs::File::open(path)
        {
            // An unreadable file has no beginning; opening it again reports why.
            let _ = unpacked(file)
                .and_then(|mut file| Ok(file.by_ref().take(4096).read_to_end(&mut head)?));
        }
        // MATLAB's files have a block of their own before what is HDF5.
        let likely = [0, 512, 1024, 2048];
        let is_hdf5 = |at: &usize| head.get(*at..at + 8) == Some(b"\x89HDF\r\n\x1a\n");
        let file = likely.iter().any(is_hdf5).then(|| open(path).ok()).flatten();
        Self { path: path.to_owned(), head, file }
    }

    fn is_hdf5(&self) -> bool {
        self.file.is_some()
    }
}

/// The signature of a gzip file.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A file's bytes, unpacked if it is a gzip file.
pub fn unpacked<'a>(input: impl Read + 'a) -> Result<Box<dyn std::io::BufRead + 'a>> {
    use std::io::{BufRead, BufReader};
    let mut input = BufReader::with_capacity(256 << 10, input);
    let start = input.fill_buf()?;
    Ok(if start.starts_with(&GZIP_MAGIC) {
        let unpacked = flate2::read::MultiGzDecoder::new(input);
        Box::new(BufReader::with_capacity(256 << 10, unpacked))
    } else {
        Box::new(input)
    })
}

/// Opens a file for reading, also one that another program is writing beside readers (SWMR).
pub fn open(path: impl AsRef<Path>) -> pumice::Result<File> {
    open_with(File::options(), path.as_ref())
}

/// Opens a file for reading with these options, also one that is being written beside readers.
pub fn open_with(options: FileOptions, path: &Path) -> pumice::Result<File> {
    match options.clone().open(path) {
        Err(error) if error.is_being_written() => options.swmr(true).open(path),
        opened => opened,
    }
}

/// A temporary file without a name.
pub fn nameless(path: &Path) -> io::Result<fs::File> {
    let file = fs::OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    fs::remove_file(path)?;
    Ok(file)
}
