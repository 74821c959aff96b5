//! The nbit filter (id 5): of numbers that do not fill their bytes, only the significant bits.
//!
//! Elements follow each other as a stream of bits, most significant first: of a number its
//! significant bits from the highest down, of anything else its bytes; gaps of compounds are left
//! out. On decoding, what was left out is zero. As libhdf5 writes it, the stream has one byte more
//! than whole bytes.
//!
//! Parameters: their number, 1 if nothing is to be done, elements of a chunk (0 if that varies: then
//! it stands behind the stream, in 8 bytes), then the type, as one
//! of: 1, size, order (0 little-endian), precision, offset of a number; 2, size and base type of an
//! array; 3, size, number of members of a compound, and for each its offset and type; 4, size of
//! anything else.

use crate::bits::{BitReader, BitWriter};
use crate::facts::{put_count, take_count};
use crate::{DatasetFacts, Filter, FilterError, registry, scratch};
use pumice_types::{ByteOrder, Datatype};

const NAME: &str = "nbit";
const NUMBER: u32 = 1;
const ARRAY: u32 = 2;
const COMPOUND: u32 = 3;
const OTHER: u32 = 4;
/// The deepest nesting of types.
const MOST_DEPTH: usize = 64;

pub(crate) struct Nbit;

impl Filter for Nbit {
    fn id(&self) -> u16 {
        registry::NBIT
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn encode(
        &self,
        parameters: &[u32],
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let Some((count, element)) = parse(parameters)? else {
            return scratch::copy(NAME, input, out);
        };
        let found = if count == 0 { input.len() / element.size().max(1) } else { count };
        if found.checked_mul(element.size()) != Some(input.len()) {
            let reason = format!("{found} elements expected, {} bytes found", input.len());
            return Err(FilterError::encode(NAME, reason));
        }
        let bits = element.bits().saturating_mul(found as u64);
        scratch::room(
            NAME,
            out,
            usize::try_from(bits / 8).unwrap_or(usize::MAX).saturating_add(16),
        )?;
        let mut writer = BitWriter::new(out);
        element.pack(input, &mut writer);
        if writer.finish() == 0 {
            out.push(0);
        }
        if count == 0 {
            put_count(out, found);
        }
        Ok(())
    }

    fn decode(
        &self,
        parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        out.clear();
        let Some((count, element)) = parse(parameters)? else {
            if input.len() > limit {
                return Err(FilterError::too_large(NAME, limit, input.len()));
            }
            return scratch::copy(NAME, input, out);
        };
        let (input, count) = match count {
            0 => take_count(NAME, input)?,
            count => (input, count),
        };
        let Some(len) = count.checked_mul(element.size()).filter(|&len| len <= limit) else {
            let found = format!("{count} elements of {} bytes", element.size());
            return Err(FilterError::too_large(NAME, limit, found));
        };
        // Checked before the memory is taken: an element of many bytes may have a single bit.
        let bits = (input.len() as u64).saturating_mul(8);
        if element.bits().saturating_mul(count as u64) > bits {
            let expected = format!("{} bits for each of {count} elements", element.bits());
            return Err(FilterError::corrupt(NAME, expected, format!("{} bytes", input.len())));
        }
        scratch::grow(NAME, out, len)?;
        let mut reader = BitReader::new(input);
        let done = element.unpack(&mut reader, out);
        done.ok_or_else(|| FilterError::corrupt(NAME, "more bits", "the end of the input"))
    }

    fn parameters_for(
        &self,
        _parameters: &[u32],
        dataset: &DatasetFacts<'_>,
    ) -> Result<Vec<u32>, FilterError> {
        let cells = dataset
            .count()
            .ok_or_else(|| unsupported("a chunk of fewer cells", dataset.cells()))?;
        let mut parameters = vec![0, 1, cells];
        let divisible = matches!(
            dataset.datatype,
            Datatype::Integer(_) | Datatype::Float(_) | Datatype::Array(_) | Datatype::Compound(_)
        );
        if divisible {
            let mut full = true;
            describe(dataset.datatype, &mut parameters, &mut full)?;
            parameters[1] = u32::from(full);
        }
        parameters[0] = parameters.len() as u32;
        Ok(parameters)
    }
}

fn unsupported(expected: &'static str, found: impl std::fmt::Display) -> FilterError {
    FilterError::Parameters { filter: NAME, expected, found: found.to_string() }
}

/// Appends the parameters of a type; `full` becomes false if some bits can be left out.
fn describe(
    datatype: &Datatype,
    parameters: &mut Vec<u32>,
    full: &mut bool,
) -> Result<(), FilterError> {
    let size =
        u32::try_from(datatype.size()).map_err(|_| unsupported("a smaller type", datatype))?;
    let (order, precision, offset) = match datatype {
        Datatype::Integer(number) => (number.order, number.precision, number.bit_offset),
        Datatype::Float(number) => (number.order, number.precision, number.bit_offset),
        Datatype::Array(array) => {
            parameters.extend([ARRAY, size]);
            return describe(&array.base, parameters, full);
        }
        Datatype::Compound(compound) => {
            parameters.extend([COMPOUND, size, compound.members.len() as u32]);
            for member in &compound.members {
                parameters.push(member.offset);
                describe(&member.datatype, parameters, full)?;
            }
            return Ok(());
        }
        _ => {
            parameters.extend([OTHER, size]);
            return Ok(());
        }
    };
    let order = match order {
        ByteOrder::Little => 0,
        ByteOrder::Big => 1,
        ByteOrder::Vax => return Err(unsupported("little- or big-endian numbers", datatype)),
    };
    *full &= offset == 0 && u64::from(precision) == u64::from(size) * 8;
    parameters.extend([NUMBER, size, order, u32::from(precision), u32::from(offset)]);
    Ok(())
}

/// The parts of an element.
enum Element {
    Number { size: usize, big: bool, precision: u32, offset: u32 },
    Array { size: usize, base: Box<Element> },
    Compound { size: usize, members: Vec<(usize, Element)> },
    Other { size: usize },
}

/// The number of elements and their parts; `None` if bytes are unchanged.
fn parse(parameters: &[u32]) -> Result<Option<(usize, Element)>, FilterError> {
    let short = || unsupported("at least three parameters and a type", format!("{parameters:?}"));
    let [_, plain, count, rest @ ..] = parameters else { return Err(short()) };
    if *plain != 0 {
        return Ok(None);
    }
    let mut rest = rest;
    let element = Element::parse(&mut rest, 0).ok_or_else(short)?;
    Ok(Some((*count as usize, element)))
}

fn next(parameters: &mut &[u32]) -> Option<u32> {
    let (&first, rest) = parameters.split_first()?;
    *parameters = rest;
    Some(first)
}

impl Element {
    fn parse(parameters: &mut &[u32], depth: usize) -> Option<Self> {
        if depth > MOST_DEPTH {
            return None;
        }
        let class = next(parameters)?;
        let size = next(parameters)? as usize;
        if size == 0 {
            return None;
        }
        match class {
            NUMBER => {
                let big = next(parameters)? != 0;
                let (precision, offset) = (next(parameters)?, next(parameters)?);
                let used = u64::from(precision) + u64::from(offset);
                let fits = precision > 0 && used <= size as u64 * 8;
                fits.then_some(Self::Number { size, big, precision, offset })
            }
            ARRAY => {
                let base = Box::new(Self::parse(parameters, depth + 1)?);
                size.is_multiple_of(base.size()).then_some(Self::Array { size, base })
            }
            COMPOUND => {
                let count = next(parameters)? as usize;
                if count > parameters.len() {
                    return None;
                }
                let mut members = Vec::with_capacity(count);
                for _ in 0..count {
                    let offset = next(parameters)? as usize;
                    let member = Self::parse(parameters, depth + 1)?;
                    if offset.checked_add(member.size())? > size {
                        return None;
                    }
                    members.push((offset, member));
                }
                Some(Self::Compound { size, members })
            }
            OTHER => Some(Self::Other { size }),
            _ => None,
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Number { size, .. } | Self::Array { size, .. } => *size,
            Self::Compound { size, .. } | Self::Other { size } => *size,
        }
    }

    /// Bits of an element in the stream; saturates.
    fn bits(&self) -> u64 {
        match self {
            Self::Number { precision, .. } => u64::from(*precision),
            Self::Array { size, base } => base.bits().saturating_mul((size / base.size()) as u64),
            Self::Compound { members, .. } => {
                members.iter().fold(0, |bits, (_, member)| bits.saturating_add(member.bits()))
            }
            Self::Other { size } => *size as u64 * 8,
        }
    }

    /// Packs elements that follow each other.
    fn pack(&self, elements: &[u8], writer: &mut BitWriter<'_>) {
        match self {
            Self::Number { size, big, precision, offset } => {
                for element in elements.chunks_exact(*size) {
                    pack_number(element, *big, *precision, *offset, writer);
                }
            }
            Self::Array { base, .. } => base.pack(elements, writer),
            Self::Compound { size, members } => {
                for element in elements.chunks_exact(*size) {
                    for (offset, member) in members {
                        member.pack(&element[*offset..offset + member.size()], writer);
                    }
                }
            }
            Self::Other { .. } => {
                elements.iter().for_each(|&byte| writer.put(u64::from(byte), 8));
            }
        }
    }

    /// Unpacks elements into zeroed places that follow each other.
    fn unpack(&self, reader: &mut BitReader<'_>, elements: &mut [u8]) -> Option<()> {
        match self {
            Self::Number { size, big, precision, offset } => {
                for element in elements.chunks_exact_mut(*size) {
                    unpack_number(reader, *big, *precision, *offset, element)?;
                }
            }
            Self::Array { base, .. } => base.unpack(reader, elements)?,
            Self::Compound { size, members } => {
                for element in elements.chunks_exact_mut(*size) {
                    for (offset, member) in members {
                        member.unpack(reader, &mut element[*offset..offset + member.size()])?;
                    }
                }
            }
            Self::Other { .. } => {
                for byte in elements {
                    *byte = reader.take(8)? as u8;
                }
            }
        }
        Some(())
    }
}

/// The place of byte `at`, counted from the least significant.
fn place(at: usize, size: usize, big: bool) -> usize {
    if big { size - 1 - at } else { at }
}

fn pack_number(element: &[u8], big: bool, precision: u32, offset: u32, writer: &mut BitWriter<'_>) {
    if element.len() <= 8 {
        let mut wide = [0; 8];
        wide[..element.len()].copy_from_slice(element);
        if big {
            wide[..element.len()].reverse();
        }
        return writer.put(u64::from_le_bytes(wide) >> offset, precision);
    }
    for_each_piece(precision, offset, |byte, shift, bits| {
        let value = element[place(byte, element.len(), big)] >> shift;
        writer.put(u64::from(value), bits);
        Some(())
    });
}

fn unpack_number(
    reader: &mut BitReader<'_>,
    big: bool,
    precision: u32,
    offset: u32,
    element: &mut [u8],
) -> Option<()> {
    let size = element.len();
    if size <= 8 {
        let value = reader.take(precision)? << offset;
        element.copy_from_slice(&value.to_le_bytes()[..size]);
        if big {
            element.reverse();
        }
        return Some(());
    }
    for_each_piece(precision, offset, |byte, shift, bits| {
        element[place(byte, size, big)] |= (reader.take(bits)? as u8) << shift;
        Some(())
    })
}

/// The bytes that hold bits `offset` to `offset + precision`, from the most significant down: the
/// byte's number, its lowest bit in use, and how many are.
fn for_each_piece(
    precision: u32,
    offset: u32,
    mut piece: impl FnMut(usize, u32, u32) -> Option<()>,
) -> Option<()> {
    let mut end = offset + precision;
    while end > offset {
        let byte = (end - 1) / 8;
        let start = (byte * 8).max(offset);
        piece(byte as usize, start % 8, end - start)?;
        end = start;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn significant_bits_come_back_and_others_are_zero(
            size in 1usize..18,
            big in any::<bool>(),
            cut in any::<(u16, u16)>(),
            bytes in prop::collection::vec(any::<u8>(), 18 * 5),
        ) {
            let bits = size as u32 * 8;
            let offset = u32::from(cut.0) % bits;
            let precision = u32::from(cut.1) % (bits - offset) + 1;
            let parameters =
                [8, 0, 5, NUMBER, size as u32, u32::from(big), precision, offset];
            let data = &bytes[..size * 5];
            let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
            Nbit.encode(&parameters, data, &mut encoded).unwrap();
            prop_assert_eq!(encoded.len() as u32, precision * 5 / 8 + 1);
            Nbit.decode(&parameters, &encoded, data.len(), &mut decoded).unwrap();
            for (before, after) in data.chunks(size).zip(decoded.chunks(size)) {
                for bit in 0..bits {
                    let at = place(bit as usize / 8, size, big);
                    let kept = (offset..offset + precision).contains(&bit);
                    let expected = if kept { before[at] >> (bit % 8) & 1 } else { 0 };
                    prop_assert_eq!(after[at] >> (bit % 8) & 1, expected);
                }
            }
        }
    }

    #[test]
    fn few_bits_do_not_become_vast_elements() {
        let one_bit_each = [8, 0, 1 << 20, NUMBER, 1 << 10, 0, 1, 0];
        let mut out = Vec::new();
        assert!(Nbit.decode(&one_bit_each, &[0; 100], usize::MAX, &mut out).is_err());
        assert!(out.capacity() < 1 << 20);
    }
}
