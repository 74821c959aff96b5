//! NumPy's archives (.npz): sparse matrices as `scipy.sparse.save_npz` stores them, or dense arrays.

use super::array_stream::{Numbers, Stream};
use super::bands;
use super::blocks::BlockSource;
use super::compressed::{CompressedSource, Parts};
use super::coordinates::CoordinateSource;
use super::diagonals::DiagonalSource;
use super::npy::{self, NpyStream};
use super::zip::{Archive, NewMember, Writer};
use super::{Array, Form, Format, Found, Input, Output, Probe, Source};
use anyhow::{Context, Result, bail, ensure};
use pumice::types::Conversion;
use pumice::{Dataset, Datatype, H5Type};
use std::io::Write;

pub(crate) struct Npz;

impl Format for Npz {
    fn name(&self) -> &'static str {
        "npz"
    }

    fn title(&self) -> &'static str {
        "NumPy archive, SciPy sparse matrix"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".npz"]
    }

    fn recognises(&self, probe: &Probe) -> bool {
        probe.head.starts_with(b"PK\x03\x04") || probe.head.starts_with(b"PK\x05\x06")
    }

    fn open(&self, input: &Input<'_>) -> Result<Vec<Found>> {
        ensure!(!input.is_standard_input(), "an archive is read from a file, not from a pipe");
        let archive = Archive::open(input.path)?;
        if archive.member("format.npy").is_some() {
            let source = sparse(&archive).with_context(|| input.name())?;
            return Ok(vec![Found::new("matrix", source)]);
        }
        let mut found = Vec::new();
        for member in &archive.members {
            let name = cleaned(&member.name, found.len());
            let array = NpyStream::open(archive.read(member)?);
            let array = array.with_context(|| format!("{}: {}", input.name(), member.name))?;
            found.push(Found::new(name, array.dense()));
        }
        Ok(found)
    }

    fn export(&self, output: &Output<'_>) -> Result<()> {
        let mut archive = Writer::create(output.path, !output.uncompressed)?;
        match output.datasets {
            [dataset] if dataset.is_sparse() && dataset.shape().len() == 2 => {
                write_sparse(dataset, &mut archive, output)?;
            }
            datasets => {
                for dataset in datasets {
                    let name = dataset.path().trim_matches('/').replace('/', "_");
                    archive.member(&format!("{name}.npy"), |out| {
                        npy::write_dense(dataset, out, output.progress)
                    })?;
                }
            }
        }
        archive.finish()
    }

    fn holds_several(&self) -> bool {
        true
    }
}

/// The path of a member's array, below the root group whatever the member's name is.
fn cleaned(name: &str, number: usize) -> String {
    let name = name.strip_suffix(".npy").unwrap_or(name);
    let parts = name.split('/').filter(|part| !["", ".", ".."].contains(part));
    let path = parts.collect::<Vec<_>>().join("/");
    if path.is_empty() { format!("arr_{number}") } else { path }
}

fn sparse(archive: &Archive) -> Result<Box<dyn Source>> {
    let stream = |name: &str| -> Result<Box<dyn Stream>> {
        let file = format!("{name}.npy");
        let member = archive.member(&file).with_context(|| format!("it has no {file}"))?;
        let array = NpyStream::open(archive.read(member)?).context(file)?;
        Ok(Box::new(array))
    };
    let numbers = |name: &str| Numbers::new(stream(name)?, name);
    let mut format = stream("format")?;
    let format = format.read(1)?;
    let format: String = format.iter().filter(|&&byte| byte > 0).map(|&b| char::from(b)).collect();
    let shape = numbers("shape")?;
    let rank = shape.len();
    let shape = { shape }.read(rank)?;
    let axis = match format.as_str() {
        "csr" => Some(0),
        "csc" => Some(1),
        "coo" => None,
        "bsr" => return blocks(archive, shape, numbers("indptr")?, numbers("indices")?),
        "dia" => return diagonals(archive, shape, stream("offsets")?),
        other => bail!("the form {other:?} is not known"),
    };
    let values = stream("data")?;
    let array = Array::sparse(shape, values.datatype().clone(), values.len());
    Ok(match axis {
        Some(axis) => {
            ensure!(rank == 2, "expected a matrix, found {rank} dimension(s)");
            let (pointers, indices) = (numbers("indptr")?, numbers("indices")?);
            let parts = Parts { pointers, indices, values, lines: None, axis };
            Box::new(CompressedSource::new(array, parts)?)
        }
        None => {
            ensure!(rank == 2, "expected a matrix, found {rank} dimension(s)");
            let columns = vec![numbers("row")?, numbers("col")?];
            Box::new(CoordinateSource::new(array, columns, values)?)
        }
    })
}

/// Compressed rows of blocks.
fn blocks(
    archive: &Archive,
    shape: Vec<u64>,
    pointers: Numbers,
    indices: Numbers,
) -> Result<Box<dyn Source>> {
    ensure!(shape.len() == 2, "expected a matrix, found {} dimension(s)", shape.len());
    let values = in_rows(archive, "data.npy")?;
    let &[_, height, width] = values.shape.as_slice() else {
        bail!("data.npy: expected blocks, found an array of {:?}", values.shape);
    };
    let source = BlockSource::new(shape, [height, width], pointers, indices, Box::new(values))?;
    Ok(Box::new(source))
}

/// Diagonals.
fn diagonals(
    archive: &Archive,
    shape: Vec<u64>,
    mut offsets: Box<dyn Stream>,
) -> Result<Box<dyn Source>> {
    ensure!(shape.len() == 2, "expected a matrix, found {} dimension(s)", shape.len());
    let conversion = Conversion::new(offsets.datatype(), &i64::datatype())?;
    let bytes = offsets.read(offsets.len())?;
    let mut wide = vec![0; usize::try_from(offsets.len())? * 8];
    conversion.convert(&bytes, &mut wide)?;
    let (offsets, _) = wide.as_chunks::<8>();
    let offsets = offsets.iter().map(|&number| i64::from_ne_bytes(number)).collect();
    let values = in_rows(archive, "data.npy")?;
    let &[_, length] = values.shape.as_slice() else {
        bail!("data.npy: expected diagonals, found an array of {:?}", values.shape);
    };
    Ok(Box::new(DiagonalSource::new(shape, offsets, length, Box::new(values))?))
}

/// An array of the archive in row-major order.
fn in_rows(archive: &Archive, file: &str) -> Result<NpyStream> {
    let member = archive.member(file).with_context(|| format!("it has no {file}"))?;
    let array = NpyStream::open(archive.read(member)?).with_context(|| file.to_owned())?;
    ensure!(
        array.is_in_rows(),
        "{file}: its elements follow each other by columns; save the matrix with `.tocsr()`"
    );
    Ok(array)
}

/// Writes a matrix, in one pass over it.
fn write_sparse(dataset: &Dataset, archive: &mut Writer, output: &Output<'_>) -> Result<()> {
    let entries = bands::count(dataset)?;
    let shape = dataset.shape();
    let wide = shape.iter().copied().fold(entries, u64::max) > i32::MAX as u64;
    let form = output.plain_form()?.unwrap_or(Form::Csr);
    let axis = usize::from(form == Form::Csc);
    let (lines, name) = match form {
        Form::Coo => (entries, "coo"),
        Form::Csc => (shape[1] + 1, "csc"),
        _ => (shape[0] + 1, "csr"),
    };
    let names =
        if form == Form::Coo { ["row.npy", "col.npy"] } else { ["indptr.npy", "indices.npy"] };
    let mut first = NumberWriter::begin(archive.aside(names[0])?, wide, &[lines])?;
    let mut second = NumberWriter::begin(archive.aside(names[1])?, wide, &[entries])?;
    let mut data = archive.aside("data.npy")?;
    data.write_all(&npy::header(dataset.datatype(), &[entries])?)?;
    if form != Form::Coo {
        first.append(&[0])?;
    }
    let mut before = 0;
    bands::for_each_band(dataset, axis, output.progress, |band| {
        match form {
            Form::Coo => first.append(&band.columns[0])?,
            _ => {
                let ends: Vec<u64> = band.ends(axis).iter().map(|end| before + end).collect();
                before += band.columns[axis].len() as u64;
                first.append(&ends)?;
            }
        }
        second.append(&band.columns[1 - axis])?;
        Ok(data.write_all(&band.values)?)
    })?;
    archive.append(second.out)?;
    archive.append(first.out)?;
    archive.member("format.npy", |out| {
        out.write_all(&npy::header(&Datatype::fixed_string(3), &[])?)?;
        Ok(out.write_all(name.as_bytes())?)
    })?;
    let mut sides = NumberWriter::begin(archive.aside("shape.npy")?, true, &[2])?;
    sides.append(&shape)?;
    archive.append(sides.out)?;
    archive.append(data)
}

/// An array of whole numbers of 32 or 64 bits that is being written.
struct NumberWriter {
    out: NewMember,
    wide: bool,
    bytes: Vec<u8>,
}

impl NumberWriter {
    fn begin(mut out: NewMember, wide: bool, shape: &[u64]) -> Result<Self> {
        let datatype = if wide { Datatype::i64_le() } else { Datatype::i32_le() };
        out.write_all(&npy::header(&datatype, shape)?)?;
        Ok(Self { out, wide, bytes: Vec::new() })
    }

    /// Writes numbers, which fit.
    fn append(&mut self, numbers: &[u64]) -> Result<()> {
        self.bytes.clear();
        match self.wide {
            true => self.bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes())),
            false => {
                self.bytes.extend(numbers.iter().flat_map(|&number| (number as u32).to_le_bytes()));
            }
        }
        Ok(self.out.write_all(&self.bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::cleaned;

    #[test]
    fn names_of_members_lead_nowhere_else() {
        for (name, expected) in [
            ("x.npy", "x"),
            ("a/b.npy", "a/b"),
            ("../../etc/x.npy", "etc/x"),
            ("/abs/./x.npy", "abs/x"),
            ("a/../b.npy", "a/b"),
            ("...npy", "arr_3"),
            (".npy", "arr_3"),
            ("..", "arr_3"),
            ("..x.npy", "..x"),
        ] {
            assert_eq!(cleaned(name, 3), expected, "{name}");
        }
    }
}
