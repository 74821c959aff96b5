//! One entry of a filter pipeline message: the filter and its parameters.

use crate::{DatasetFacts, FilterError, find, heap, location, references, registry};

/// A filter as a file describes it: id, flags, name and parameters ("client data values").
///
/// ```
/// let spec = pumice_filter::FilterSpec::deflate(4);
/// assert_eq!((spec.id, spec.parameters.as_slice()), (1, &[4][..]));
/// assert!(spec.optional);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FilterSpec {
    /// The filter's registered id.
    pub id: u16,
    /// Whether data that the filter cannot encode is stored without it.
    pub optional: bool,
    /// A name for people; ids below 256 are stored without.
    pub name: Option<String>,
    /// The text configuration of the filter, such as "level = 6", if the file keeps it, as HDF5
    /// 2.3's draft does. It has no effect; the parameters say the same.
    pub config: Option<String>,
    /// The parameters of the filter's encoder and decoder.
    pub parameters: Vec<u32>,
}

/// Parameters that a caller gives to filters that append facts about the dataset.
const GIVEN_PARAMETERS: usize = 2;

impl FilterSpec {
    /// Groups the bytes of equal significance of elements of `element_size` bytes.
    pub fn shuffle(element_size: u32) -> Self {
        Self {
            id: registry::SHUFFLE,
            optional: true,
            name: None,
            config: None,
            parameters: vec![element_size],
        }
    }

    /// Compresses with zlib's format at `level` 0 to 9.
    pub fn deflate(level: u32) -> Self {
        Self {
            id: registry::DEFLATE,
            optional: true,
            name: None,
            config: None,
            parameters: vec![level],
        }
    }

    /// Appends a checksum. Never optional, as in libhdf5.
    pub fn fletcher32() -> Self {
        Self {
            id: registry::FLETCHER32,
            optional: false,
            name: None,
            config: None,
            parameters: Vec::new(),
        }
    }

    /// Compresses with Zstandard at `level` 1 to 22 (3 is its default).
    pub fn zstd(level: u32) -> Self {
        let name = Some("zstd".to_owned());
        Self { id: registry::ZSTD, optional: true, name, config: None, parameters: vec![level] }
    }

    /// Compresses numbers by Rice coding, in blocks of `block` samples: an even number of at most
    /// 32.
    pub fn szip(coding: SzipCoding, block: u32) -> Self {
        // As libhdf5 adds them: codes with 13 low bits allowed, and no header of szip's own.
        const ALLOW_13_RAW: u32 = 1 | 128;
        let options = match coding {
            SzipCoding::Entropy => 4,
            SzipCoding::NearestNeighbour => 32,
        };
        Self::named(registry::SZIP, vec![options | ALLOW_13_RAW, block])
    }

    /// Stores only the significant bits of numbers that do not fill their bytes.
    pub fn nbit() -> Self {
        Self::named(registry::NBIT, Vec::new())
    }

    /// Stores numbers as their distance from the smallest of a chunk.
    ///
    /// ```
    /// use pumice_filter::{FilterSpec, Scaling};
    ///
    /// assert_eq!(FilterSpec::scale_offset(Scaling::Decimal(3)).parameters, [0, 3]);
    /// ```
    pub fn scale_offset(scaling: Scaling) -> Self {
        let parameters = match scaling {
            Scaling::Integer => vec![2, 0],
            Scaling::IntegerBits(bits) => vec![2, bits],
            Scaling::Decimal(digits) => vec![0, digits as u32],
        };
        Self::named(registry::SCALEOFFSET, parameters)
    }

    /// Compresses with LZF: fast, in every h5py.
    pub fn lzf() -> Self {
        Self::named(registry::LZF, Vec::new())
    }

    /// Compresses shuffled blocks at `level` 0 to 9.
    ///
    /// ```
    /// use pumice_filter::{BloscCodec, BloscShuffle, FilterSpec};
    ///
    /// let spec = FilterSpec::blosc(BloscCodec::Zstd, 5, BloscShuffle::Bits);
    /// assert_eq!(spec.parameters, [0, 0, 0, 0, 5, 2, 5]);
    /// ```
    pub fn blosc(codec: BloscCodec, level: u32, shuffle: BloscShuffle) -> Self {
        // The first four are the dataset's.
        let parameters = vec![0, 0, 0, 0, level, shuffle as u32, codec as u32];
        Self::named(registry::BLOSC, parameters)
    }

    /// Compresses with LZ4 in blocks of `block_size` bytes; 0 for one block.
    pub fn lz4(block_size: u32) -> Self {
        Self::named(registry::LZ4, vec![block_size])
    }

    /// Compresses with bzip2 in blocks of 100,000 bytes times `level`, 1 to 9.
    pub fn bzip2(level: u32) -> Self {
        Self::named(registry::BZIP2, vec![level])
    }

    /// Groups the bits of equal significance, and compresses them.
    ///
    /// ```
    /// use pumice_filter::{BitshuffleCodec, FilterSpec};
    ///
    /// let spec = FilterSpec::bitshuffle(BitshuffleCodec::Lz4);
    /// assert_eq!(spec.parameters, [0, 2]);
    /// ```
    pub fn bitshuffle(codec: BitshuffleCodec) -> Self {
        let parameters = match codec {
            BitshuffleCodec::None => vec![0, 0],
            BitshuffleCodec::Lz4 => vec![0, 2],
            BitshuffleCodec::Zstd(level) => vec![0, 3, level],
        };
        Self::named(registry::BITSHUFFLE, parameters)
    }

    /// Rewrites references into the heap of a structured chunk as counts; see [`references`].
    pub fn references() -> Self {
        let name = Some(references::NAME.to_owned());
        Self { id: references::ID, optional: true, name, config: None, parameters: Vec::new() }
    }

    /// Rewrites the heap of a structured chunk as lengths and bytes; see [`heap`].
    pub fn heap() -> Self {
        let name = Some(heap::NAME.to_owned());
        Self { id: heap::ID, optional: true, name, config: None, parameters: Vec::new() }
    }

    /// Rewrites the cell locations of a sparse chunk (section 0) compactly; see [`location`].
    pub fn location() -> Self {
        let name = Some(location::NAME.to_owned());
        Self { id: location::ID, optional: true, name, config: None, parameters: Vec::new() }
    }

    /// The specification to store for a new dataset: some filters record facts about its type, its
    /// fill value and the shape of its chunks. A filter that is not available keeps its parameters.
    /// An optional one that does not fit such datasets keeps the caller's parameters, without facts
    /// about another dataset, and is skipped for every chunk.
    pub fn for_dataset(&self, dataset: &DatasetFacts<'_>) -> Result<Self, FilterError> {
        let Some(filter) = find(self.id) else { return Ok(self.clone()) };
        if self.optional && !filter.can_apply(dataset) {
            let given = self.parameters.iter().take(GIVEN_PARAMETERS).copied().collect();
            return Ok(Self { parameters: given, ..self.clone() });
        }
        let parameters = filter.parameters_for(&self.parameters, dataset)?;
        Ok(Self { parameters, ..self.clone() })
    }

    /// An optional filter under its registered name, which files store for ids above 255.
    fn named(id: u16, parameters: Vec<u32>) -> Self {
        let name = registry::registered_name(id).filter(|_| id > 255).map(str::to_owned);
        Self { id, optional: true, name, config: None, parameters }
    }
}

/// The compressor inside [bitshuffle](FilterSpec::bitshuffle).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BitshuffleCodec {
    /// No compressor; a compressing filter may follow.
    None,
    /// LZ4.
    Lz4,
    /// Zstandard at a level of 1 to 22.
    Zstd(u32),
}

/// The number form of [scaleoffset](FilterSpec::scale_offset).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scaling {
    /// Integers, in as many bits as a chunk needs. Nothing is lost.
    Integer,
    /// Integers in this many bits; higher bits are lost.
    IntegerBits(u32),
    /// Floats, rounded to this many decimal digits after the point (negative: before it).
    Decimal(i32),
}

/// The coding of [szip](FilterSpec::szip).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SzipCoding {
    /// Without prediction (EC).
    Entropy,
    /// Differences from the sample before (NN): better for data that vary slowly.
    NearestNeighbour,
}

/// The compressor inside [blosc](FilterSpec::blosc).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BloscCodec {
    /// Blosc's own.
    BloscLz = 0,
    /// LZ4.
    Lz4 = 1,
    /// LZ4HC; written by LZ4, which has the same format.
    Lz4Hc = 2,
    /// Snappy.
    Snappy = 3,
    /// zlib (deflate).
    Zlib = 4,
    /// Zstandard.
    Zstd = 5,
}

/// The shuffle before [blosc](FilterSpec::blosc)'s compressor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BloscShuffle {
    /// No shuffle.
    None = 0,
    /// Groups the bytes of equal significance.
    Bytes = 1,
    /// Groups the bits of equal significance.
    Bits = 2,
}
