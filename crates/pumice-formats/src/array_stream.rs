//! One-dimensional arrays, read from front to back: those of HDF5 files and of NumPy files.

use anyhow::{Result, bail, ensure};
use pumice::types::Conversion;
use pumice::{Dataset, Datatype, H5Type};

/// Elements that follow each other.
pub(crate) trait Stream {
    fn datatype(&self) -> &Datatype;

    /// The number of all elements.
    fn len(&self) -> u64;

    /// The next elements; there must be as many.
    fn read(&mut self, count: u64) -> Result<Vec<u8>>;
}

/// The elements of a dataset, in row-major order.
pub(crate) struct DatasetStream {
    dataset: Dataset,
    next: u64,
}

impl DatasetStream {
    /// A dataset with one dimension.
    pub(crate) fn new(dataset: Dataset) -> Result<Self> {
        let rank = dataset.shape().len();
        ensure!(rank == 1, "{}: expected one dimension, found {rank}", dataset.path());
        Ok(Self { dataset, next: 0 })
    }
}

impl Stream for DatasetStream {
    fn datatype(&self) -> &Datatype {
        self.dataset.datatype()
    }

    fn len(&self) -> u64 {
        self.dataset.shape()[0]
    }

    fn read(&mut self, count: u64) -> Result<Vec<u8>> {
        let end = self.next.saturating_add(count);
        ensure!(
            end <= self.len(),
            "{}: expected {end} element(s) or more, found {}",
            self.dataset.path(),
            self.len()
        );
        if count == 0 {
            return Ok(Vec::new());
        }
        let bytes = self.dataset.read_bytes(self.next..end)?;
        self.next = end;
        Ok(bytes)
    }
}

/// An element that repeats as often as needed.
pub(crate) struct Repeated {
    datatype: Datatype,
    element: Vec<u8>,
    len: u64,
}

impl Repeated {
    pub(crate) fn new(datatype: Datatype, element: Vec<u8>, len: u64) -> Self {
        Self { datatype, element, len }
    }
}

impl Stream for Repeated {
    fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read(&mut self, count: u64) -> Result<Vec<u8>> {
        Ok(self.element.repeat(usize::try_from(count)?))
    }
}

/// Elements that are taken two by two: complex numbers as pairs of their parts.
pub(crate) struct Pairs {
    parts: Box<dyn Stream>,
    datatype: Datatype,
}

impl Pairs {
    pub(crate) fn new(parts: Box<dyn Stream>) -> Result<Self> {
        ensure!(parts.len().is_multiple_of(2), "expected pairs, found {} numbers", parts.len());
        let part = parts.datatype().clone();
        let datatype = Datatype::compound([("r", part.clone()), ("i", part)]);
        Ok(Self { parts, datatype })
    }
}

impl Stream for Pairs {
    fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    fn len(&self) -> u64 {
        self.parts.len() / 2
    }

    fn read(&mut self, count: u64) -> Result<Vec<u8>> {
        self.parts.read(count.saturating_mul(2))
    }
}

/// Elements under another name of their type.
pub(crate) struct Renamed {
    pub(crate) inner: Box<dyn Stream>,
    pub(crate) datatype: Datatype,
}

impl Stream for Renamed {
    fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read(&mut self, count: u64) -> Result<Vec<u8>> {
        self.inner.read(count)
    }
}

/// A stream of non-negative integers: pointers, indices.
pub(crate) struct Numbers {
    stream: Box<dyn Stream>,
    what: String,
    signed: bool,
    conversion: Conversion,
}

impl Numbers {
    /// `what` names the array in messages.
    pub(crate) fn new(stream: Box<dyn Stream>, what: impl Into<String>) -> Result<Self> {
        let what = what.into();
        let signed = match stream.datatype() {
            Datatype::Integer(integer) => integer.signed,
            other => bail!("{what}: expected integers, found {}", other.class_name()),
        };
        let wide = if signed { i64::datatype() } else { u64::datatype() };
        let conversion = Conversion::new(stream.datatype(), &wide)?;
        Ok(Self { stream, what, signed, conversion })
    }

    pub(crate) fn len(&self) -> u64 {
        self.stream.len()
    }

    pub(crate) fn read(&mut self, count: u64) -> Result<Vec<u64>> {
        let bytes = self.stream.read(count)?;
        let mut wide = vec![0; usize::try_from(count)? * 8];
        self.conversion.convert(&bytes, &mut wide)?;
        let numbers = wide.chunks_exact(8).map(|bytes| {
            let mut number = [0; 8];
            number.copy_from_slice(bytes);
            u64::from_ne_bytes(number)
        });
        let numbers: Vec<u64> = numbers.collect();
        if self.signed
            && let Some(negative) = numbers.iter().find(|&&number| number > i64::MAX as u64)
        {
            bail!("{}: expected no negative number, found {}", self.what, *negative as i64);
        }
        Ok(numbers)
    }

    pub(crate) fn what(&self) -> &str {
        &self.what
    }
}
