//! The hash of elements that depends neither on byte order nor on padding or gaps: SHA-256 over
//! little-endian numbers, variable-length data as length and content, references as `R`, and members
//! of a compound one after another, each preceded by its name.
//!
//! Some rules are those of h5py and numpy, which made the first hashes: a compound of floats `r`
//! and `i` is a complex number, a scalar string loses the null bytes at its end, a scalar sequence
//! of strings goes without their number, and an attribute of arrays repeats each element as often
//! as its array has elements.

use pumice::types::{
    ByteOrder, Compound, Conversion, Enumeration, FixedString, Float, Integer, StringPadding,
    TypeError, VarLen, VarLenKind,
};
use pumice::{Datatype, Heaped};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Bytes of a long double in memory.
const LONG_DOUBLE: usize = 16;

/// Elements to be hashed.
pub(super) struct Elements<'a> {
    datatype: &'a Datatype,
    data: Heaped,
    /// Whether strings lose the null bytes at their end.
    trimmed: bool,
    /// Whether a sequence of strings goes without their number.
    unwrapped: bool,
}

impl<'a> Elements<'a> {
    /// Elements of a dataset.
    pub(super) fn new(datatype: &'a Datatype, data: Heaped) -> Self {
        Self { datatype, data, trimmed: false, unwrapped: false }
    }

    /// For one element without any dimension.
    pub(super) fn of_scalar(mut self, scalar: bool) -> Self {
        (self.trimmed, self.unwrapped) = (scalar, scalar);
        self
    }

    /// Elements of an attribute, which may be a scalar.
    pub(super) fn of_attribute(mut self, scalar: bool) -> Self {
        self.unwrapped = scalar;
        if let Datatype::Array(_) = self.datatype {
            let (base, mut count) = (base_of(self.datatype), 1);
            let mut datatype = self.datatype;
            while let Datatype::Array(array) = datatype {
                (count, datatype) = (count * array.count(), &*array.base);
            }
            let elements = self.data.elements.chunks_exact(base.size().max(1));
            self.data.elements = elements.flat_map(|element| element.repeat(count)).collect();
            self.datatype = base;
        }
        self
    }

    /// The hash in hexadecimal.
    pub(super) fn hash(&self) -> Result<String, TypeError> {
        let mut feeder = Feeder { hasher: Sha256::new(), heap: &self.data.heap };
        match self.datatype {
            Datatype::VarLen(outer) if self.unwrapped && outer.kind == VarLenKind::Sequence => {
                let strings = outer.payload(&self.data.elements, &self.data.heap)?;
                feeder.feed(&outer.base, false, strings.unwrap_or_default())?;
            }
            datatype => feeder.feed(datatype, self.trimmed, &self.data.elements)?,
        }
        let mut text = String::new();
        for byte in feeder.hasher.finalize() {
            let _ = write!(text, "{byte:02x}");
        }
        Ok(text)
    }
}

/// The base type of arrays, however nested.
fn base_of(datatype: &Datatype) -> &Datatype {
    match datatype {
        Datatype::Array(array) => base_of(&array.base),
        other => other,
    }
}

struct Feeder<'a> {
    hasher: Sha256,
    heap: &'a [u8],
}

impl Feeder<'_> {
    fn feed(
        &mut self,
        datatype: &Datatype,
        scalar: bool,
        elements: &[u8],
    ) -> Result<(), TypeError> {
        match datatype {
            Datatype::Integer(integer) => self.integers(integer, elements),
            Datatype::Float(float) => self.floats(float, elements),
            Datatype::Complex(complex) => self.floats(&complex.base, elements),
            Datatype::Enum(enumeration) => self.enumerations(enumeration, elements),
            Datatype::String(string) => {
                let texts = elements.chunks_exact(datatype.size().max(1));
                texts.for_each(|text| self.text(string, scalar, text));
                Ok(())
            }
            Datatype::Reference(_) => {
                self.hasher.update(b"R");
                Ok(())
            }
            Datatype::Array(array) => self.feed(&array.base, false, elements),
            Datatype::Compound(compound) => self.compound(compound, scalar, elements),
            Datatype::VarLen(varlen) => {
                let references = elements.chunks_exact(datatype.size().max(1));
                references.into_iter().try_for_each(|reference| self.varlen(varlen, reference))
            }
            // Bit fields, opaque elements and times, as they are.
            _ => {
                self.hasher.update(elements);
                Ok(())
            }
        }
    }

    fn integers(&mut self, integer: &Integer, elements: &[u8]) -> Result<(), TypeError> {
        let little = Integer::new(integer.size, ByteOrder::Little, integer.signed);
        self.converted(&Datatype::Integer(integer.clone()), &Datatype::Integer(little), elements)
    }

    /// Floats in the smallest of numpy's formats that holds them.
    fn floats(&mut self, float: &Float, elements: &[u8]) -> Result<(), TypeError> {
        let standard = [Float::half, Float::single, Float::double];
        let holds = |wide: &Float| {
            let bias = |float: &Float| i64::from(float.exponent_bias);
            let top = |float: &Float| (1i64 << float.exponent_size.min(40)) - bias(float);
            float.mantissa_size <= wide.mantissa_size
                && top(float) <= top(wide)
                && bias(float) <= bias(wide)
        };
        let wide = standard.iter().map(|make| make(ByteOrder::Little)).find(holds);
        match wide {
            Some(wide) => {
                self.converted(&Datatype::Float(float.clone()), &Datatype::Float(wide), elements)
            }
            // Wider than a double: in little-endian order, in the 16 bytes of a long double.
            None => {
                let used = usize::from(float.precision).div_ceil(8);
                for element in elements.chunks_exact((float.size as usize).max(1)) {
                    let mut element = element.to_vec();
                    if float.order == ByteOrder::Big {
                        element.reverse();
                    }
                    // A long double of this format comes with its unused bytes.
                    if element.len() != LONG_DOUBLE {
                        element.truncate(used);
                        element.resize(LONG_DOUBLE, 0);
                    }
                    self.hasher.update(element);
                }
                Ok(())
            }
        }
    }

    fn enumerations(&mut self, of: &Enumeration, elements: &[u8]) -> Result<(), TypeError> {
        let bool_names = of.names == ["FALSE", "TRUE"] || of.names == ["TRUE", "FALSE"];
        if bool_names && of.base.size > 1 {
            let byte = Datatype::Integer(Integer::new(1, ByteOrder::Little, true));
            return self.converted(&Datatype::Integer(of.base.clone()), &byte, elements);
        }
        self.integers(&of.base, elements)
    }

    fn converted(
        &mut self,
        from: &Datatype,
        to: &Datatype,
        elements: &[u8],
    ) -> Result<(), TypeError> {
        let conversion = Conversion::new(from, to)?;
        if conversion.is_noop() {
            self.hasher.update(elements);
            return Ok(());
        }
        let count = elements.len() / from.size().max(1);
        let mut target = vec![0; count * to.size()];
        conversion.convert(elements, &mut target)?;
        self.hasher.update(&target);
        Ok(())
    }

    fn compound(
        &mut self,
        compound: &Compound,
        scalar: bool,
        elements: &[u8],
    ) -> Result<(), TypeError> {
        let size = compound.size as usize;
        let column = |offset: u32, length: usize| -> Vec<u8> {
            let start = offset as usize;
            let parts = elements.chunks_exact(size.max(1));
            parts.filter_map(|part| part.get(start..start + length)).flatten().copied().collect()
        };
        if let [real, imaginary] = compound.members.as_slice()
            && (real.name.as_str(), imaginary.name.as_str()) == ("r", "i")
            && real.datatype == imaginary.datatype
            && let Datatype::Float(float) = &real.datatype
        {
            let length = real.datatype.size();
            let pairs = column(real.offset, length)
                .chunks_exact(length)
                .zip(column(imaginary.offset, length).chunks_exact(length))
                .flat_map(|(real, imaginary)| [real, imaginary].concat())
                .collect::<Vec<u8>>();
            return self.floats(float, &pairs);
        }
        for member in &compound.members {
            self.hasher.update(&member.name);
            let column = column(member.offset, member.datatype.size());
            self.feed(&member.datatype, scalar, &column)?;
        }
        Ok(())
    }

    /// Text padded with null bytes, or of a scalar without them, but never empty.
    fn text(&mut self, string: &FixedString, scalar: bool, element: &[u8]) {
        let end = match string.padding {
            StringPadding::NullTerminate => element.iter().position(|&byte| byte == 0),
            StringPadding::NullPad => None,
            StringPadding::SpacePad => {
                Some(element.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1))
            }
        };
        let mut padded = element.to_vec();
        padded[end.unwrap_or(element.len())..].fill(0);
        if scalar {
            let end = padded.iter().rposition(|&byte| byte != 0).map_or(1, |last| last + 1);
            padded.truncate(end);
        }
        self.hasher.update(padded);
    }

    /// A string up to its first null byte, or the elements of a sequence, behind their number.
    fn varlen(&mut self, varlen: &VarLen, reference: &[u8]) -> Result<(), TypeError> {
        let payload = varlen.payload(reference, self.heap)?.unwrap_or_default();
        if let VarLenKind::String { .. } = varlen.kind {
            let text = payload.split(|&byte| byte == 0).next().unwrap_or_default();
            self.hasher.update((text.len() as u64).to_le_bytes());
            self.hasher.update(text);
            return Ok(());
        }
        let count = payload.len() / varlen.base.size().max(1);
        self.hasher.update((count as u64).to_le_bytes());
        self.feed(&varlen.base, false, payload)
    }
}
