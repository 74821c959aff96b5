//! Streams of small whole numbers: the gaps and lengths that a set of cells is made of.
//!
//! A stream has one of three forms, whichever is likely to be shortest after a compressor has seen
//! it. All are read in blocks of [`BLOCK`] numbers.
//!
//! | form | for | after the form byte |
//! |---|---|---|
//! | 0 constant | a number repeated | the number |
//! | 1 packed | numbers without pattern: [`packed`] | Rice codes, which no compressor can shorten |
//! | 2 bytes | numbers with a pattern: [`bytes`] | one byte each, for the compressor to work on |

mod bytes;
mod packed;

use super::compact::outside;
use super::{Aim, NAME, corrupt};
use crate::FilterError;
use pumice_bytes::{Lookup3, Reader};
use pumice_wide::{Work, run_widely};

use super::varint::{put_varint, varint};

/// Numbers that are decoded at a time.
pub(super) const BLOCK: usize = 256;

/// Numbers are below two to this power.
pub(super) const MOST_BITS: u32 = 48;

/// The least number that does not fit a byte; it marks all larger ones.
const LARGE: u32 = 255;

const CONSTANT: u8 = 0;
const PACKED: u8 = 1;
const BYTES: u8 = 2;

/// Work that is done beside decoding numbers, in small steps. A loop works with a copy, which it keeps in
/// registers.
pub(super) trait Beside: Clone {
    fn step(&mut self);
}

impl Beside for () {
    fn step(&mut self) {}
}

impl Beside for Lookup3<'_> {
    #[inline(always)]
    fn step(&mut self) {
        Lookup3::step(self);
    }
}

/// A number as a list of them holds it.
pub(super) trait Number: Copy + Default + PartialEq {
    fn wide(self) -> u64;

    /// The lowest 32 bits.
    fn narrow(self) -> u32;

    /// All bits that any of some numbers has.
    fn union(block: &[Self]) -> u64;
}

impl Number for u16 {
    #[inline(always)]
    fn wide(self) -> u64 {
        u64::from(self)
    }

    #[inline(always)]
    fn narrow(self) -> u32 {
        u32::from(self)
    }

    #[inline(always)]
    fn union(block: &[Self]) -> u64 {
        u64::from(block.iter().fold(0, |union, value| union | value))
    }
}

impl Number for u32 {
    #[inline(always)]
    fn wide(self) -> u64 {
        u64::from(self)
    }

    #[inline(always)]
    fn narrow(self) -> u32 {
        self
    }

    #[inline(always)]
    fn union(block: &[Self]) -> u64 {
        u64::from(block.iter().fold(0, |union, value| union | value))
    }
}

impl Number for u64 {
    #[inline(always)]
    fn wide(self) -> u64 {
        self
    }

    #[inline(always)]
    fn narrow(self) -> u32 {
        self as u32
    }

    #[inline(always)]
    fn union(block: &[Self]) -> u64 {
        block.iter().fold(0, |union, value| union | value)
    }
}

/// The form for numbers that are not all equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The one that is likely to be shortest once a compressor has followed.
    Compressible,
    /// Bytes, if all numbers are below 2^16.
    Bytes,
    Packed,
}

impl Wanted {
    /// The form for the gaps between cells of a chunk of `cells` cells.
    pub(super) fn of_cells(aim: Aim, cells: u64, gaps: &Facts) -> Self {
        match aim {
            Aim::Short => Self::Compressible,
            Aim::Fast if bytes_pay(cells, gaps.count, gaps.large) => Self::Bytes,
            Aim::Fast => Self::Packed,
        }
    }

    /// The form for gaps and lengths of runs, a few bytes for many cells.
    pub(super) fn of_runs(aim: Aim) -> Self {
        if aim == Aim::Fast { Self::Bytes } else { Self::Compressible }
    }
}

/// The properties of a list of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) count: usize,
    /// All bits that any of them has.
    pub(super) union: u64,
    pub(super) sum: u64,
    pub(super) zeros: usize,
    /// The number of values that do not fit a byte.
    pub(super) large: usize,
}

impl Facts {
    pub(super) fn of<N: Number>(values: &[N]) -> Self {
        run_widely(Look(values))
    }

    /// Whether all numbers are the same.
    fn constant<N: Number>(&self, values: &[N]) -> bool {
        let first = values.first().map_or(0, |first| first.wide());
        // Most lists have another sum already.
        self.sum == first.wrapping_mul(self.count as u64)
            && values.iter().all(|value| value.wide() == first)
    }
}

/// A pass over numbers.
struct Look<'a, N>(&'a [N]);

impl<N: Number> Work for Look<'_, N> {
    type Output = Facts;

    #[inline(always)]
    fn run(self) -> Facts {
        let mut facts = Facts { count: self.0.len(), ..Facts::default() };
        // Few enough at a time for sums of 32 bits, many of which fit a register.
        for part in self.0.chunks(1 << 12) {
            let union = N::union(part);
            facts.union |= union;
            let (mut zeros, mut large) = (0u32, 0u32);
            if union >> 20 == 0 {
                let mut sum = 0u32;
                for value in part.iter().map(|value| value.narrow()) {
                    sum += value;
                    zeros += u32::from(value == 0);
                    large += u32::from(value >= LARGE);
                }
                facts.sum = facts.sum.wrapping_add(u64::from(sum));
            } else {
                for value in part.iter().map(|value| value.wide()) {
                    facts.sum = facts.sum.wrapping_add(value);
                    zeros += u32::from(value == 0);
                    large += u32::from(value >= LARGE.into());
                }
            }
            facts.zeros += zeros as usize;
            facts.large += large as usize;
        }
        facts
    }
}

/// Whether gaps, of which some do not fit a byte, shall be bytes to be read fast: not where a bitmap would
/// be shorter, nor where many take three bytes.
fn bytes_pay(cells: u64, count: usize, large: usize) -> bool {
    count as u64 <= cells / 8 && large <= count / 8
}

/// Appends `values` with these properties, in the wanted form.
pub(super) fn encode<N: Number>(values: &[N], facts: &Facts, wanted: Wanted, out: &mut Vec<u8>) {
    run_widely(Encode { values, facts, wanted, out });
}

struct Encode<'a, N> {
    values: &'a [N],
    facts: &'a Facts,
    wanted: Wanted,
    out: &'a mut Vec<u8>,
}

impl<N: Number> Work for Encode<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        encode_in(self.values, self.facts, self.wanted, self.out);
    }
}

#[inline(always)]
fn encode_in<N: Number>(values: &[N], facts: &Facts, wanted: Wanted, out: &mut Vec<u8>) {
    if facts.constant(values) {
        out.push(CONSTANT);
        put_varint(values.first().map_or(0, |first| first.wide()), out);
        return;
    }
    if wanted == Wanted::Bytes && facts.union >> 16 == 0 {
        out.push(BYTES);
        return bytes::encode(values, facts.large, out);
    }
    let parameters = packed::parameters(values);
    // Compressors do worse than estimated on short random numbers, and take longer.
    if wanted == Wanted::Compressible && bytes::estimated_bits(values) < parameters.bits / 10 * 9 {
        out.push(BYTES);
        bytes::encode(values, facts.large, out);
    } else {
        out.push(PACKED);
        packed::encode(values, &parameters, out);
    }
}

/// A stream that is being read.
pub(super) struct Numbers<'a> {
    left: usize,
    form: Form<'a>,
}

enum Form<'a> {
    Constant(u64),
    Packed(packed::Packed<'a>),
    Bytes(bytes::Bytes<'a>),
}

impl<'a> Numbers<'a> {
    /// Finds a stream of `count` numbers at the reader's position and moves past it.
    pub(super) fn open(reader: &mut Reader<'a>, count: usize) -> Result<Self, FilterError> {
        let form = match reader.u8().map_err(corrupt)? {
            CONSTANT => Form::Constant(varint(reader).and_then(small)?),
            PACKED => Form::Packed(packed::Packed::open(reader, count)?),
            BYTES => Form::Bytes(bytes::Bytes::open(reader, count)?),
            form => return Err(corrupt(reader.error("a stream of form 0 to 2", form))),
        };
        Ok(Self { left: count, form })
    }

    /// The cells whose gaps the unread numbers are, all of them below `cells`, which is below 2^32.
    /// Goes on with other work meanwhile.
    pub(super) fn cells(
        self,
        cells: u64,
        beside: &mut impl Beside,
    ) -> Result<Vec<u32>, FilterError> {
        let mut list: Vec<u32> = Vec::with_capacity(self.left);
        let take = |block: &[u32]| {
            list.extend_from_slice(block);
            true
        };
        self.for_each_cell(cells, take, beside)?;
        Ok(list)
    }

    /// [`cells`](Self::cells) block by block, until `take` returns `false`; returns whether it
    /// never did. Goes on with other work meanwhile.
    pub(super) fn for_each_cell(
        mut self,
        cells: u64,
        mut take: impl FnMut(&[u32]) -> bool,
        beside: &mut impl Beside,
    ) -> Result<bool, FilterError> {
        match self.form {
            Form::Packed(packed) => return packed.for_each_cell(self.left, cells, take, beside),
            Form::Bytes(bytes) if bytes.are_narrow() => {
                return bytes.for_each_cell(cells, take, beside);
            }
            _ => {}
        }
        let (mut block, mut found) = ([0; BLOCK], [0; BLOCK]);
        let mut next = 0u64;
        while self.left > 0 {
            let gaps = self.block(&mut block)?;
            // Each gap is below 2^48, so the sum of a block is far from overflowing.
            let end = gaps.iter().sum::<u64>() + next + gaps.len() as u64;
            if end > cells {
                return Err(outside(format!("a cell beyond {cells}")));
            }
            let mut at = next as u32;
            for (cell, &gap) in found.iter_mut().zip(gaps) {
                *cell = at + gap as u32;
                at = cell.wrapping_add(1);
            }
            if !take(&found[..gaps.len()]) {
                return Ok(false);
            }
            next = end;
        }
        Ok(true)
    }

    /// The number of unread numbers.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Reads the next numbers, [`BLOCK`] of them unless the stream ends before. None is
    /// 2^[`MOST_BITS`] or more.
    pub(super) fn block<'o>(
        &mut self,
        out: &'o mut [u64; BLOCK],
    ) -> Result<&'o [u64], FilterError> {
        let count = self.left.min(BLOCK);
        self.left -= count;
        let values = &mut out[..count];
        match &mut self.form {
            Form::Constant(value) => values.fill(*value),
            Form::Packed(packed) => packed.block(values)?,
            Form::Bytes(bytes) => bytes.block(values)?,
        }
        let union = values.iter().fold(0, |union, value| union | value);
        small(union).map(|_| &*values)
    }
}

/// A number, or the union of some, that must be below 2^[`MOST_BITS`].
fn small(number: u64) -> Result<u64, FilterError> {
    if number >> MOST_BITS == 0 {
        return Ok(number);
    }
    let expected = format!("numbers below 2^{MOST_BITS}");
    Err(FilterError::corrupt(NAME, expected, "a larger one"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(values: &[u64]) -> Vec<u64> {
        let mut out = Vec::new();
        for wanted in [Wanted::Bytes, Wanted::Packed] {
            encode::<u64>(values, &Facts::of(values), wanted, &mut out);
            assert_eq!(read(&out, values.len()).unwrap(), values);
            out.clear();
        }
        encode::<u64>(values, &Facts::of(values), Wanted::Compressible, &mut out);
        read(&out, values.len()).unwrap()
    }

    fn read(bytes: &[u8], count: usize) -> Result<Vec<u64>, FilterError> {
        let mut reader = Reader::new("test", 0, bytes);
        let mut numbers = Numbers::open(&mut reader, count)?;
        let mut values = Vec::new();
        let mut buffer = [0; BLOCK];
        while values.len() < count {
            values.extend_from_slice(numbers.block(&mut buffer)?);
        }
        assert!(reader.is_empty());
        Ok(values)
    }

    fn number() -> impl Strategy<Value = u64> {
        (0..MOST_BITS + 1, any::<u64>()).prop_map(|(bits, value)| value & ((1 << bits) - 1))
    }

    fn wanted() -> impl Strategy<Value = Wanted> {
        prop_oneof![Just(Wanted::Compressible), Just(Wanted::Bytes), Just(Wanted::Packed),]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        #[test]
        fn any_numbers_come_back(values in proptest::collection::vec(number(), 0..700)) {
            prop_assert_eq!(round_trip(&values), values);
        }

        #[test]
        fn narrow_numbers_come_back(
            bits in 0u32..20,
            values in proptest::collection::vec(any::<u64>(), 0..1500),
        ) {
            let values: Vec<u64> = values.iter().map(|value| value & ((1 << bits) - 1)).collect();
            prop_assert_eq!(round_trip(&values), values);
        }

        #[test]
        fn patterns_come_back(
            pattern in proptest::collection::vec(0u64..70_000, 1..30),
            count in 0usize..3000,
        ) {
            let values: Vec<u64> = pattern.iter().cycle().take(count).copied().collect();
            prop_assert_eq!(round_trip(&values), values);
        }

        #[test]
        fn damage_gives_numbers_or_an_error(
            values in proptest::collection::vec(0u64..2000, 2..600),
            wanted in wanted(),
            changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
            count in 0usize..700,
        ) {
            let mut out = Vec::new();
            encode(&values, &Facts::of(&values), wanted, &mut out);
            for (at, byte) in changes {
                let at = at.index(out.len());
                out[at] = byte;
            }
            let mut reader = Reader::new("test", 0, &out);
            if let Ok(mut numbers) = Numbers::open(&mut reader, count) {
                let mut buffer = [0; BLOCK];
                for _ in 0..count.div_ceil(BLOCK) {
                    if numbers.block(&mut buffer).is_err() {
                        break;
                    }
                }
            }
        }
    }

    /// The cells that numbers are the gaps between, one after another.
    fn summed(bytes: &[u8], count: usize, cells: u64) -> Option<Vec<u32>> {
        let mut next = 0;
        let gaps = read(bytes, count).ok()?.into_iter();
        let list = gaps.map(|gap| {
            next += gap + 1;
            (next <= cells).then(|| (next - 1) as u32)
        });
        list.collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn cells_are_the_sums_of_numbers_whatever_the_bytes(
            bits in 0u32..22,
            values in proptest::collection::vec(any::<u64>(), 0..1500),
            spare in 0u64..3,
            wanted in wanted(),
            change in proptest::option::of((any::<proptest::sample::Index>(), any::<u8>())),
        ) {
            let values: Vec<u64> = values.iter().map(|value| value & ((1 << bits) - 1)).collect();
            let cells = (values.iter().sum::<u64>() + values.len() as u64 + spare).saturating_sub(1);
            let cells = cells.min(u64::from(u32::MAX));
            let mut out = Vec::new();
            encode(&values, &Facts::of(&values), wanted, &mut out);
            if let Some((at, byte)) = change {
                let at = at.index(out.len());
                out[at] = byte;
            }
            let mut reader = Reader::new("test", 0, &out);
            let numbers = Numbers::open(&mut reader, values.len());
            // The reader of the container checks for bytes after the numbers.
            if reader.is_empty() {
                let list = numbers.and_then(|numbers| numbers.cells(cells, &mut ())).ok();
                prop_assert_eq!(list, summed(&out, values.len(), cells));
            }
        }
    }

    fn refused(bytes: &[u8], count: usize, reason: &str) {
        let error = read(bytes, count).expect_err(reason).to_string();
        assert!(error.contains(reason), "{error}");
    }

    #[test]
    fn the_unary_part_has_exactly_one_one_for_each_number() {
        assert_eq!(read(&[PACKED, 0, 1, 0x8C], 3).unwrap(), [2, 0, 3]);
        refused(&[PACKED, 0, 1, 0x0C], 3, "fewer");
        refused(&[PACKED, 0, 1, 0x9C], 3, "more");
        // The one too many is in a word that no number needs.
        refused(&[PACKED, 0, 9, 0x8C, 0, 0, 0, 0, 0, 0, 0, 1], 3, "more");
        refused(&[PACKED, 0, 2, 0x8C, 0], 3, "spare bytes");
        let mut two_blocks = vec![PACKED, 0, 0, 33];
        two_blocks.extend([0xFF; 32]);
        two_blocks.push(1);
        assert_eq!(read(&two_blocks, 257).unwrap(), [0; 257]);
        two_blocks[36] = 3;
        refused(&two_blocks, 257, "more");
    }

    #[test]
    fn low_bits_are_followed_by_zeros() {
        assert_eq!(read(&[PACKED, 1, 1, 0x16, 0x04], 3).unwrap(), [2, 0, 3]);
        refused(&[PACKED, 1, 1, 0x16, 0x0C], 3, "zero bits");
        refused(&[PACKED, 1, 1, 0x16, 0x84], 3, "zero bits");
        // Whole bytes have no room for others.
        assert_eq!(read(&[PACKED, 8, 1, 1, 0xFF], 1).unwrap(), [255]);
        assert_eq!(read(&[PACKED, 1, 1, 0xFF, 0xFF], 8).unwrap(), [1; 8]);
    }

    #[test]
    fn a_stream_of_no_numbers_has_all_its_fixed_parts() {
        for bytes in [&[CONSTANT, 0][..], &[CONSTANT, 9], &[PACKED, 0], &[BYTES, 0]] {
            assert!(read(bytes, 0).unwrap().is_empty());
            assert!(read(&bytes[..1], 0).is_err());
        }
        refused(&[PACKED, 1, 0], 0, "spare bytes");
        refused(&[PACKED, 1, 1], 0, "spare bytes");
        refused(&[BYTES, 1], 0, "width");
        refused(&[CONSTANT, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40], 0, "numbers below");
    }

    #[test]
    fn large_numbers_are_as_wide_as_the_largest_and_below_the_limit_in_the_end() {
        assert_eq!(read(&[BYTES, 255, 1, 0], 1).unwrap(), [255]);
        assert_eq!(read(&[BYTES, 255, 255, 2, 0, 1, 0, 1], 2).unwrap(), [255, 512]);
        refused(&[BYTES, 255, 255, 2, 0, 1, 0, 0], 2, "least width");
        refused(&[BYTES, 255, 6, 9, 0, 0, 0, 0, 0], 1, "least width");
        let most = [BYTES, 255, 6, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
        assert_eq!(read(&most, 1).unwrap(), [(1 << MOST_BITS) - 1]);
        refused(&[BYTES, 255, 6, 0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], 1, "numbers below");
    }

    #[test]
    fn a_stream_of_many_numbers_in_few_bytes_is_refused_unless_constant() {
        for form in [PACKED, BYTES] {
            assert!(read(&[form, 0, 0, 0, 0, 0, 0, 0], 1 << 40).is_err());
        }
    }
}
