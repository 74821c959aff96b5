//! The ZFP filter (id 32013): arrays of numbers in blocks of four elements along each axis, as H5Z-ZFP stores them.
//!
//! What is stored for a chunk is a stream of bits without a header, lowest bit first. The header is in the parameters:
//! behind a number of versions, words of 32 bits with "zfp" and the codec's version, 52 bits of type and shape, and 12 or 64
//! bits of mode. A writer whose words are big-endian has the bytes of each exchanged, and of each element, too.
//!
//! Every mode is read (rate, precision, accuracy, reversible, expert), of one to four axes, and of integers and floats of
//! four and eight bytes. Streams are written by a plugin alone (feature `plugins`).

mod block;
mod order;

use crate::read_only::ReadOnly;
use crate::{FilterError, registry, scratch};
use block::{Bits, Block, Limits};

const NAME: &str = "zfp";
/// The version of the codec, of every release since 0.5.
const CODEC: u64 = 5;
/// Elements of a block along an axis.
const SIDE: usize = 4;

pub(crate) static ZFP: ReadOnly = ReadOnly { id: registry::ZFP, name: NAME, decode };

/// Replaces `out` by the elements of a stream.
fn decode(
    parameters: &[u32],
    input: &[u8],
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), FilterError> {
    Header::parse(parameters)?.decode(input, limit, out)
}

/// The kind of elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    I32,
    I64,
    F32,
    F64,
}

impl Kind {
    fn size(self) -> usize {
        match self {
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }
}

/// The header in the parameters.
struct Header {
    kind: Kind,
    /// The shape, fastest axis first; 1 for absent axes.
    shape: [usize; 4],
    axes: usize,
    limits: Limits,
    /// Whether elements are big-endian.
    big: bool,
}

impl Header {
    fn parse(parameters: &[u32]) -> Result<Self, FilterError> {
        let words = parameters.get(1..).unwrap_or_default();
        let swapped: Vec<u32> = words.iter().map(|word| word.swap_bytes()).collect();
        let found = Self::of(words, false).or_else(|| Self::of(&swapped, true));
        found.ok_or_else(|| FilterError::Parameters {
            filter: NAME,
            expected: "a version, and the header of a ZFP stream of codec 5",
            found: format!("{parameters:?}"),
        })
    }

    fn of(words: &[u32], big: bool) -> Option<Self> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut bits = Bits::new(&bytes);
        let magic = bits.take(32)?;
        if magic & 0xFF_FFFF != u64::from(u32::from_le_bytes(*b"zfp\0")) || magic >> 24 != CODEC {
            return None;
        }
        let mut meta = bits.take(52)?;
        let kind = [Kind::I32, Kind::I64, Kind::F32, Kind::F64][(meta & 3) as usize];
        let axes = (meta >> 2 & 3) as usize + 1;
        meta >>= 4;
        let width = 48 / axes;
        let mut shape = [1; 4];
        for axis in &mut shape[..axes] {
            let mask = if axes == 1 { 0xFFFF_FFFF } else { (1 << width) - 1 };
            *axis = usize::try_from(meta & mask).ok()? + 1;
            meta = meta.checked_shr(width as u32).unwrap_or(0);
        }
        let mut mode = bits.take(12)?;
        if mode == 0xFFF {
            mode |= bits.take(52)? << 12;
        }
        Some(Self { kind, shape, axes, limits: Limits::of(mode)?, big })
    }

    fn decode(&self, input: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
        let elements = self.shape.iter().try_fold(1usize, |count, axis| count.checked_mul(*axis));
        let length = elements.and_then(|count| count.checked_mul(self.kind.size()));
        let Some(length) = length.filter(|length| *length <= limit) else {
            return Err(FilterError::too_large(NAME, limit, format!("{:?} elements", self.shape)));
        };
        let blocks = self.shape.map(|axis| axis.div_ceil(SIDE));
        // A block has a bit at least: checked before memory is taken.
        let count: usize = blocks.iter().product();
        if count / 8 > input.len() {
            let expected = format!("bits of {count} blocks");
            return Err(FilterError::corrupt(NAME, expected, format!("{} bytes", input.len())));
        }
        out.clear();
        scratch::grow(NAME, out, length)?;
        let (mut bits, mut block) = (Bits::new(input), Block::new(self.axes, self.kind.size()));
        for number in 0..count {
            let mut rest = number;
            let starts = blocks.map(|axis| {
                let at = rest % axis;
                rest /= axis;
                at * SIDE
            });
            let done = match self.kind {
                Kind::I32 | Kind::I64 => block.integers(&mut bits, &self.limits),
                Kind::F32 | Kind::F64 => block.floats(&mut bits, &self.limits),
            };
            done.ok_or_else(|| FilterError::corrupt(NAME, "more bits", "the end of the input"))?;
            self.place(starts, block.values(), out);
        }
        Ok(())
    }

    /// Puts the elements of a block that are inside of the array to their places.
    fn place(&self, starts: [usize; 4], values: &[u64], out: &mut [u8]) {
        let counts: [usize; 4] =
            std::array::from_fn(|axis| (self.shape[axis] - starts[axis]).min(SIDE));
        let [nx, ny, nz, _] = self.shape;
        let size = self.kind.size();
        for w in 0..counts[3] {
            for z in 0..counts[2] {
                for y in 0..counts[1] {
                    let row = ((starts[3] + w) * nz + starts[2] + z) * ny + starts[1] + y;
                    let at = (row * nx + starts[0]) * size;
                    let from = &values[((w * SIDE + z) * SIDE + y) * SIDE..][..counts[0]];
                    for (value, to) in from.iter().zip(out[at..].chunks_exact_mut(size)) {
                        to.copy_from_slice(&value.to_le_bytes()[..size]);
                        if self.big {
                            to.reverse();
                        }
                    }
                }
            }
        }
    }
}
