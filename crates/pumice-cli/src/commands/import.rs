//! `pumice import`: a Matrix Market file becomes a dataset.
//!
//! Entries stream through batches of a fixed size, see `import/batch.rs`. The output is written
//! under a temporary name beside its own and renamed when it is complete.

mod batch;

use super::{Outcome, output};
use crate::cli::Import;
use crate::matrix_market::{Complex, Field, Format, Header, Parser, Present, Scalar, Symmetry};
use crate::numbers;
use crate::progress::Progress;
use anyhow::{Context, Result, bail, ensure};
use batch::Batches;
use flate2::read::MultiGzDecoder;
use pumice::{Dataset, File};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// What a gzip file begins with.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// About how many entries a chunk shall have: a quarter of a megabyte of values. Few enough for
/// reading small windows fast, enough for compression and few index entries.
const CHUNK_ENTRIES: f64 = 32_768.0;
/// Chunks have at most this many cells: entries are not spread evenly, and where they are dense a
/// chunk shall stay small.
const MAX_CHUNK_CELLS: f64 = (1u64 << 28) as f64;
/// Unless there would be more chunks than this, of which an index must know.
const MAX_CHUNKS: f64 = (1u64 << 16) as f64;
/// Chunks have at least this many cells, if the matrix has.
const MIN_CHUNK_CELLS: f64 = 65_536.0;
/// How many entries are read between two looks at the progress.
const PROGRESS_STEP: u64 = 1 << 16;

pub(super) fn run(arguments: &Import) -> Result<Outcome> {
    let target = Target::new(arguments)?;
    let name = arguments.matrix.display().to_string();
    let (input, mut progress) = open_input(&arguments.matrix)?;
    let mut parser = Parser::open(input, &name)?;
    let header = parser.header();
    let summary = match header.field {
        Field::Real => copy::<f64, _>(arguments, &mut parser, &mut progress, &target),
        Field::Integer => copy::<i64, _>(arguments, &mut parser, &mut progress, &target),
        Field::UnsignedInteger => copy::<u64, _>(arguments, &mut parser, &mut progress, &target),
        Field::Complex => copy::<Complex, _>(arguments, &mut parser, &mut progress, &target),
        Field::Pattern => copy::<Present, _>(arguments, &mut parser, &mut progress, &target),
    }?;
    drop(progress);
    target.publish(arguments.force)?;
    let mut out = output();
    writeln!(out, "{summary}")?;
    out.flush()?;
    Ok(Outcome::Complete)
}

/// Copies the matrix into the target; returns what to tell about it.
fn copy<S: Scalar, R: BufRead>(
    arguments: &Import,
    parser: &mut Parser<R>,
    progress: &mut Progress,
    target: &Target,
) -> Result<String> {
    let header = parser.header();
    let file = File::create(&target.partial)?;
    let dataset = create_dataset::<S>(&file, arguments, &header)?;
    let mut batches = Batches::<S>::new(&dataset, &header, arguments.duplicates);
    let mut read = 0u64;
    while let Some(entry) = parser.next_entry::<S>()? {
        batches.add(entry, parser)?;
        read += 1;
        if read.is_multiple_of(PROGRESS_STEP) {
            progress.update();
        }
    }
    let entries = batches.finish(parser)?;
    record_origin(&dataset, arguments, &header)?;
    let path = dataset.path().to_owned();
    drop(dataset);
    file.close()?;
    let bytes = fs::metadata(&target.partial).map(|data| data.len());
    let bytes = bytes.with_context(|| format!("read the size of {}", target.partial.display()))?;
    let (rows, columns) = (header.rows, header.columns);
    Ok(format!(
        "{path}: {}, {} entries, density {}, {} bytes, {} bytes per entry",
        numbers::shape(&[rows, columns]),
        numbers::grouped(entries),
        numbers::percent(entries, rows.saturating_mul(columns)),
        numbers::grouped(bytes),
        numbers::per_cell(bytes, entries),
    ))
}

fn create_dataset<S: Scalar>(file: &File, arguments: &Import, header: &Header) -> Result<Dataset> {
    let shape = [header.rows, header.columns];
    let chunk = match &arguments.chunk {
        None => chunk_shape(header),
        Some(chunk) => {
            ensure!(
                chunk.len() == 2 && !chunk.contains(&0),
                "--chunk needs two numbers above 0, as in 1000,1000"
            );
            chunk.iter().zip(shape).map(|(&side, length)| side.min(length.max(1))).collect()
        }
    };
    let mut builder = file.new_dataset_of(S::datatype()).shape(shape).chunk(chunk);
    if shape.contains(&0) {
        // A chunk has cells, also where the matrix has none, and must fit the largest shape.
        builder = builder.max_shape(shape.map(|length| Some(length.max(1))));
    }
    let builder = match header.format {
        Format::Coordinate => builder.sparse(),
        Format::Array if arguments.no_filters => builder,
        Format::Array => builder.shuffle().deflate(4),
    };
    let builder = if arguments.no_filters { builder.no_filters() } else { builder };
    Ok(builder.create(&arguments.dataset)?)
}

/// A chunk that has about [`CHUNK_ENTRIES`] entries if these are spread evenly. Sides are as equal
/// as the shape allows, and chunks divide the matrix as evenly as they can.
fn chunk_shape(header: &Header) -> Vec<u64> {
    let (rows, columns) = (header.rows.max(1), header.columns.max(1));
    let cells = rows as f64 * columns as f64;
    let per_entry = (cells / header.entries.max(1) as f64).max(1.0);
    let most = MAX_CHUNK_CELLS.max(cells / MAX_CHUNKS);
    let wanted = (per_entry * CHUNK_ENTRIES).clamp(MIN_CHUNK_CELLS, most);
    let short = rows.min(columns) as f64;
    let side = wanted.sqrt().min(short);
    let other = wanted / side;
    let divided = |length: u64, side: f64| {
        let pieces = (length as f64 / side).ceil().max(1.0) as u64;
        length.div_ceil(pieces)
    };
    let sides = if rows <= columns { [side, other] } else { [other, side] };
    vec![divided(rows, sides[0]), divided(columns, sides[1])]
}

fn record_origin(dataset: &Dataset, arguments: &Import, header: &Header) -> Result<()> {
    let name = arguments.matrix.file_name().unwrap_or(arguments.matrix.as_os_str());
    let format = format!("Matrix Market {}", header.format);
    dataset.set_attribute("source_file", &*name.to_string_lossy())?;
    dataset.set_attribute("source_format", format.as_str())?;
    dataset.set_attribute("source_field", header.field.to_string().as_str())?;
    dataset.set_attribute("source_symmetry", header.symmetry.to_string().as_str())?;
    Ok(())
}

/// The input, unpacked if it is gzip, and a watch on how much of it is read.
fn open_input(path: &Path) -> Result<(Box<dyn BufRead>, Progress)> {
    let action = || format!("open {}", path.display());
    let (input, length): (Box<dyn Read>, _) = if path == Path::new("-") {
        (Box::new(io::stdin().lock()), None)
    } else {
        let file = fs::File::open(path).with_context(action)?;
        let data = file.metadata().with_context(action)?;
        ensure!(!data.is_dir(), "{} is a folder", path.display());
        (Box::new(file), data.is_file().then_some(data.len()))
    };
    let progress = Progress::new(length);
    let mut input = BufReader::with_capacity(256 << 10, progress.watch(input));
    let start = input.fill_buf().with_context(|| format!("read {}", path.display()))?;
    let input: Box<dyn BufRead> = if start.starts_with(&GZIP_MAGIC) {
        Box::new(BufReader::with_capacity(256 << 10, MultiGzDecoder::new(input)))
    } else {
        Box::new(input)
    };
    Ok((input, progress))
}

/// The file to make. Until it is published it has another name; dropped before that, it is removed.
struct Target {
    path: PathBuf,
    partial: PathBuf,
}

impl Target {
    fn new(arguments: &Import) -> Result<Self> {
        let path = arguments.output.clone();
        let Some(name) = path.file_name() else {
            bail!("{} is no name for a file", path.display());
        };
        if !arguments.force {
            refuse_existing(&path)?;
        }
        if let (Ok(input), Ok(output)) =
            (fs::canonicalize(&arguments.matrix), fs::canonicalize(&path))
        {
            ensure!(input != output, "{} is the input", path.display());
        }
        let mut partial = std::ffi::OsString::from(".");
        partial.push(name);
        partial.push(format!(".{}.partial", std::process::id()));
        let partial = path.with_file_name(partial);
        Ok(Self { path, partial })
    }

    fn publish(self, force: bool) -> Result<()> {
        if !force {
            refuse_existing(&self.path)?;
        }
        fs::rename(&self.partial, &self.path).with_context(|| {
            format!("rename {} to {}", self.partial.display(), self.path.display())
        })
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // After publishing there is nothing under this name; before the file was made, neither.
        let _ = fs::remove_file(&self.partial);
    }
}

fn refuse_existing(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(_) => bail!("{} exists already; --force replaces it", path.display()),
        Err(_) => Ok(()),
    }
}

/// Whether entries stand for two cells.
fn is_mirrored(symmetry: Symmetry) -> bool {
    symmetry != Symmetry::General
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(rows: u64, columns: u64, entries: u64) -> Header {
        let (format, field) = (Format::Coordinate, Field::Real);
        Header { format, field, symmetry: Symmetry::General, rows, columns, entries }
    }

    #[test]
    fn chunks_follow_density_and_fit_the_matrix() {
        assert_eq!(chunk_shape(&header(0, 0, 0)), [1, 1]);
        assert_eq!(chunk_shape(&header(5, 5, 3)), [5, 5]);
        // Sparser matrices get larger chunks, up to 2^28 cells.
        assert_eq!(chunk_shape(&header(63_436, 63_436, 299_188)), [15_859, 15_859]);
        assert_eq!(chunk_shape(&header(10_000, 10_000, 10_000_000)), [556, 556]);
        assert_eq!(chunk_shape(&header(1 << 31, 1 << 31, 9)), [1 << 23, 1 << 23]);
        // A long shape gets long chunks.
        assert_eq!(chunk_shape(&header(3, 1_000_000, 1_000_000)), [3, 32_259]);
    }
}
