//! The scaleoffset filter (id 6): integers as their distance from the smallest, floats likewise
//! after scaling by a power of ten (D-scaling), each in as few bits as the largest needs.
//!
//! A chunk is 4 bytes of bits per value, a byte 8, the smallest value in 8 bytes (all
//! little-endian), zeros up to byte 21, and the distances as a stream of bits, most significant
//! first. Where there is a fill value, the largest distance stands for it. With as many bits as the
//! type has, the values follow as they are, little-endian.
//!
//! Parameters: method (0 floats by D-scaling, 2 integers), decimal digits or bits (0: find out),
//! elements of a chunk (0 if that varies: then it stands at the end, in 8 bytes), class (0 integer, 1 float), size, signed, big-endian, fill value defined,
//! and up to twelve for its bytes. Callers give the first two. Scaling loses digits on purpose.

mod float;
mod integer;

use crate::bits::{BitReader, BitWriter};
use crate::facts::{put_count, take_count};
use crate::{DatasetFacts, Filter, FilterError, registry, scratch};
use pumice_types::{ByteOrder, Datatype};

const NAME: &str = "scaleoffset";
const PARAMETERS: usize = 20;
const HEADER: usize = 21;
const METHOD_DECIMAL: u32 = 0;
const METHOD_INTEGER: u32 = 2;

pub(crate) struct ScaleOffset;

impl Filter for ScaleOffset {
    fn id(&self) -> u16 {
        registry::SCALEOFFSET
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
        let mut settings = Settings::parse(parameters)?;
        if settings.is_plain() {
            return scratch::copy(NAME, input, out);
        }
        let varies = settings.count == 0;
        if varies {
            settings.count = input.len() / settings.size;
        }
        if settings.len() != Some(input.len()) {
            let reason =
                format!("{} elements expected, {} bytes found", settings.count, input.len());
            return Err(FilterError::encode(NAME, reason));
        }
        let mut words = scratch::take_words(settings.count);
        scratch::room(NAME, &mut words, settings.count)?;
        words.extend(input.chunks_exact(settings.size).map(|bytes| settings.word(bytes)));
        let scaled = match settings.float {
            true => float::scale(&settings, &mut words),
            false => Ok(integer::scale(&settings, &mut words)),
        };
        let done = scaled.and_then(|scaled| {
            // No more bits than the input has; the count may follow them.
            scratch::room(NAME, out, HEADER + input.len() + 16)?;
            settings.put(&scaled, &words, out);
            if varies {
                put_count(out, settings.count);
            }
            Ok(())
        });
        scratch::give_words(words);
        done
    }

    fn decode(
        &self,
        parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let (mut settings, mut input) = (Settings::parse(parameters)?, input);
        if settings.count == 0 && !settings.is_plain() {
            (input, settings.count) = take_count(NAME, input)?;
        }
        let announced = if settings.is_plain() { Some(input.len()) } else { settings.len() };
        let Some(len) = announced.filter(|&len| len <= limit) else {
            return Err(FilterError::too_large(NAME, limit, format!("{announced:?}")));
        };
        if settings.is_plain() {
            return scratch::copy(NAME, input, out);
        }
        let (scaled, stream) = settings.header(input)?;
        // Checked before memory is taken. Values without bits may be any number: none may be too many.
        let bits = u64::from(scaled.bits).saturating_mul(settings.count as u64);
        if bits > (stream.len() as u64).saturating_mul(8) {
            return Err(FilterError::corrupt(NAME, format!("{bits} bits"), stream.len()));
        }
        scratch::grow(NAME, out, len)?;
        if scaled.bits == settings.bits() {
            return settings.take_plain(stream, out);
        }
        match settings.float {
            true => float::unscale(&settings, &scaled, stream, out),
            false => settings
                .unpack(&scaled, stream, out, |distance| distance.wrapping_add(scaled.least)),
        }
    }

    fn can_apply(&self, dataset: &DatasetFacts<'_>) -> bool {
        match dataset.datatype {
            Datatype::Integer(integer) => integer.order != ByteOrder::Vax,
            Datatype::Float(float) => float.order != ByteOrder::Vax,
            _ => false,
        }
    }

    fn parameters_for(
        &self,
        parameters: &[u32],
        dataset: &DatasetFacts<'_>,
    ) -> Result<Vec<u32>, FilterError> {
        let unsupported = |expected| FilterError::Parameters {
            filter: NAME,
            expected,
            found: dataset.datatype.to_string(),
        };
        let (class, signed, order) = match dataset.datatype {
            Datatype::Integer(integer) => (0, u32::from(integer.signed), integer.order),
            Datatype::Float(float) => (1, 0, float.order),
            _ => return Err(unsupported("integers or floats")),
        };
        if order == ByteOrder::Vax {
            return Err(unsupported("little- or big-endian numbers"));
        }
        let big = order == ByteOrder::Big;
        let mut all = vec![0; PARAMETERS];
        all[..2].copy_from_slice(&given(parameters, class)?);
        all[2] = dataset.count().ok_or_else(|| unsupported("smaller chunks"))?;
        all[3] = class;
        all[4] = dataset.element_size();
        all[5] = signed;
        all[6] = u32::from(big);
        if let Some(fill) = dataset.fill {
            all[7] = 1;
            let mut fill = fill.to_vec();
            if big {
                fill.reverse();
            }
            for (to, bytes) in all[8..].iter_mut().zip(fill.chunks(4)) {
                let mut word = [0; 4];
                word[..bytes.len()].copy_from_slice(bytes);
                *to = u32::from_le_bytes(word);
            }
        }
        Settings::parse(&all)?;
        Ok(all)
    }

    /// Values without scaling behind a header are not.
    fn is_gain(&self, input: &[u8], encoded: &[u8]) -> bool {
        encoded.len() < HEADER + input.len()
    }
}

/// Method and factor, if they suit the class.
fn given(parameters: &[u32], class: u32) -> Result<[u32; 2], FilterError> {
    let wanted = if class == 0 { METHOD_INTEGER } else { METHOD_DECIMAL };
    match parameters {
        [method, factor, ..] if *method == wanted => Ok([*method, *factor]),
        _ => Err(FilterError::Parameters {
            filter: NAME,
            expected: "method 2 and bits for integers, 0 and decimal digits for floats",
            found: format!("{parameters:?}"),
        }),
    }
}

/// The settings in the parameters.
struct Settings {
    /// Bits of an integer, 0 to find out; decimal digits of a float.
    factor: i32,
    count: usize,
    float: bool,
    size: usize,
    signed: bool,
    big: bool,
    fill: Option<u64>,
}

/// The scaling of a chunk.
struct Scaled {
    /// Bits of a distance; as many as the type has if nothing was scaled.
    bits: u32,
    /// The smallest value, as bits of its type.
    least: u64,
}

impl Settings {
    fn parse(parameters: &[u32]) -> Result<Self, FilterError> {
        let wrong = |expected| FilterError::Parameters {
            filter: NAME,
            expected,
            found: format!("{parameters:?}"),
        };
        let [_, factor, count, class, size, signed, big, filled, fill @ ..] = parameters else {
            return Err(wrong("20 parameters"));
        };
        given(parameters, *class)?;
        let float = match (class, size) {
            (0, 1 | 2 | 4 | 8) => false,
            (1, 4 | 8) => true,
            _ => return Err(wrong("integers of 1, 2, 4 or 8 bytes or floats of 4 or 8")),
        };
        let factor = *factor as i32;
        let factor = if float { factor } else { factor.max(0) };
        if !float && factor as u32 > size * 8 {
            return Err(wrong("no more bits than the type has"));
        }
        let [low, high] = [0, 1].map(|at| u64::from(fill.get(at).copied().unwrap_or(0)));
        let mut settings = Self {
            factor,
            count: *count as usize,
            float,
            size: *size as usize,
            signed: *signed != 0,
            big: *big != 0,
            fill: None,
        };
        settings.fill = (*filled != 0).then_some((high << 32 | low) & settings.mask());
        Ok(settings)
    }

    /// Whether values are stored unscaled, without a header.
    fn is_plain(&self) -> bool {
        !self.float && self.factor as u32 == self.bits()
    }

    fn bits(&self) -> u32 {
        self.size as u32 * 8
    }

    /// All bits of a value.
    fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    fn len(&self) -> Option<usize> {
        self.count.checked_mul(self.size)
    }

    /// The bits of an element.
    fn word(&self, bytes: &[u8]) -> u64 {
        let mut wide = [0; 8];
        wide[..self.size].copy_from_slice(bytes);
        if self.big {
            wide[..self.size].reverse();
        }
        u64::from_le_bytes(wide)
    }

    /// Writes the bits of an element.
    #[inline]
    fn place(&self, word: u64, to: &mut [u8]) {
        to.copy_from_slice(&word.to_le_bytes()[..self.size]);
        if self.big {
            to.reverse();
        }
    }

    /// Writes header and stream.
    fn put(&self, scaled: &Scaled, words: &[u64], out: &mut Vec<u8>) {
        out.extend_from_slice(&scaled.bits.to_le_bytes());
        out.push(8);
        out.extend_from_slice(&scaled.least.to_le_bytes());
        out.resize(HEADER, 0);
        if scaled.bits == self.bits() {
            words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()[..self.size]));
            return;
        }
        let mut writer = BitWriter::new(out);
        words.iter().for_each(|&word| writer.put(word, scaled.bits));
        if writer.finish() == 0 {
            out.push(0);
        }
    }

    /// Reads the header; gives the stream behind it.
    fn header<'a>(&self, input: &'a [u8]) -> Result<(Scaled, &'a [u8]), FilterError> {
        let Some((header, stream)) = input.split_first_chunk::<HEADER>() else {
            return Err(FilterError::corrupt(NAME, "21 bytes of header", input.len()));
        };
        let bits = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        if bits > self.bits() {
            let expected = format!("at most {} bits", self.bits());
            return Err(FilterError::corrupt(NAME, expected, bits));
        }
        let mut least = [0; 8];
        let width = usize::from(header[4]).min(8);
        least[..width].copy_from_slice(&header[5..5 + width]);
        let needed = (self.count as u64).saturating_mul(u64::from(bits)).div_ceil(8);
        if (stream.len() as u64) < needed {
            return Err(FilterError::corrupt(NAME, format!("{needed} more bytes"), stream.len()));
        }
        Ok((Scaled { bits, least: u64::from_le_bytes(least) }, stream))
    }

    fn take_plain(&self, stream: &[u8], out: &mut [u8]) -> Result<(), FilterError> {
        let Some(values) = stream.get(..out.len()) else {
            return Err(FilterError::corrupt(NAME, format!("{} bytes", out.len()), stream.len()));
        };
        out.copy_from_slice(values);
        if self.big {
            out.chunks_exact_mut(self.size).for_each(<[u8]>::reverse);
        }
        Ok(())
    }

    /// Turns every distance into a value.
    fn unpack(
        &self,
        scaled: &Scaled,
        stream: &[u8],
        out: &mut [u8],
        value: impl Fn(u64) -> u64,
    ) -> Result<(), FilterError> {
        let filling = (1u64 << scaled.bits) - 1;
        let mut reader = BitReader::new(stream);
        for to in out.chunks_exact_mut(self.size) {
            let Some(distance) = reader.take(scaled.bits) else {
                return Err(FilterError::corrupt(NAME, "more bits", "the end of the input"));
            };
            let word = match self.fill {
                Some(fill) if distance == filling => fill,
                _ => value(distance),
            };
            self.place(word, to);
        }
        Ok(())
    }

    /// The bits that distances up to `span` less one need, and one more for the fill value.
    fn bits_for(&self, span: u64) -> u32 {
        let values = span.saturating_add(u64::from(self.fill.is_some()));
        // Rounded up: the logarithm of the next power of two.
        64 - values.saturating_sub(1).leading_zeros()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_as_libhdf5_counts_them() {
        let mut settings = Settings::parse(&[2, 0, 4, 0, 2, 1, 0, 0]).unwrap();
        assert_eq!([1, 2, 3, 4, 5].map(|span| settings.bits_for(span)), [0, 1, 2, 2, 3]);
        settings.fill = Some(0);
        assert_eq!([1, 2, 3, 4, 5].map(|span| settings.bits_for(span)), [1, 2, 2, 3, 3]);
    }

    #[test]
    fn a_fill_value_survives_scaling() {
        let parameters = [2, 0, 4, 0, 2, 1, 1, 1, 0xFFFF];
        let data: Vec<u8> = [100i16, -1, 103, 101].iter().flat_map(|v| v.to_be_bytes()).collect();
        let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
        ScaleOffset.encode(&parameters, &data, &mut encoded).unwrap();
        assert_eq!(encoded[0], 3, "four distances and the fill value");
        assert_eq!(encoded.len(), HEADER + 2);
        ScaleOffset.decode(&parameters, &encoded, 8, &mut decoded).unwrap();
        assert_eq!(decoded, data);
    }
}
