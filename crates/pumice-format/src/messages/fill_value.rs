//! The fill value messages: 0x0005 (versions 1 to 3; written as 3, in files of the oldest format as 2) and its predecessor 0x0004.
//!
//! The value is raw: one element of the dataset's datatype, as long as that is.

use super::Era;
use crate::error::fits;
use crate::{Context, DecodeError, FormatError};
use pumice_bytes::{Reader, Writer};

const STRUCTURE: &str = "fill value message";

const UNDEFINED_VALUE: u8 = 0x10;
const HAVE_VALUE: u8 = 0x20;

/// The value of undefined elements, and when space is allocated and filled.
///
/// ```
/// use pumice_format::Context;
/// use pumice_format::messages::{Fill, FillValue};
///
/// let fill = FillValue { value: Fill::Value(vec![7, 0, 0, 0]), ..FillValue::default() };
/// let mut bytes = Vec::new();
/// fill.encode(&mut bytes)?;
/// assert_eq!(bytes, [3, 0x2B, 4, 0, 0, 0, 7, 0, 0, 0]);
/// assert_eq!(FillValue::decode(&bytes, &Context::default())?, fill);
/// # Ok::<(), pumice_format::FormatError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FillValue {
    /// When space is allocated.
    pub allocation: AllocationTime,
    /// When the value is written.
    pub write: FillTime,
    /// The value.
    pub value: Fill,
}

/// The fill value itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fill {
    /// None: unwritten elements have no defined value.
    Undefined,
    /// All bytes are 0.
    Default,
    /// One element of the dataset's datatype.
    Value(Vec<u8>),
}

/// When the space of a dataset is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationTime {
    /// The layout's default.
    Default,
    /// When the dataset is created.
    Early,
    /// With the first write.
    Late,
    /// Chunk by chunk.
    Incremental,
}

/// When fill values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillTime {
    /// When space is allocated.
    Allocation,
    /// Never.
    Never,
    /// When space is allocated, if a value was set.
    IfSet,
}

impl Default for FillValue {
    /// libhdf5's defaults for a chunked dataset.
    fn default() -> Self {
        Self {
            allocation: AllocationTime::Incremental,
            write: FillTime::IfSet,
            value: Fill::Default,
        }
    }
}

impl FillValue {
    /// Decodes the body of a message 0x0005.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        let start = reader.clone();
        match reader.u8()? {
            1 | 2 => decode_long(&mut reader),
            3 => decode_flags(&mut reader),
            version => Err(start.unknown("version 1 to 3", 3u8, version)),
        }
    }

    /// Decodes the body of a message 0x0004.
    pub fn decode_old(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader("old fill value message", bytes);
        let value = match decode_value(&mut reader)? {
            Fill::Default => Fill::Undefined,
            value => value,
        };
        Ok(Self { allocation: AllocationTime::Late, write: FillTime::IfSet, value })
    }

    /// Appends the body of a message 0x0005 as files of an era have it: version 2 or 3.
    pub fn encode_for(&self, era: Era, out: &mut Vec<u8>) -> Result<(), FormatError> {
        if era == Era::New {
            return self.encode(out);
        }
        let (allocation, write) = self.times();
        out.put_bytes(&[2, allocation, write, u8::from(self.value != Fill::Undefined)]);
        match &self.value {
            Fill::Undefined => Ok(()),
            Fill::Default => {
                out.put_u32(0);
                Ok(())
            }
            Fill::Value(value) => encode_value(value, out),
        }
    }

    /// Appends the body of a message 0x0004, which has only a value; returns whether there is one.
    pub fn encode_old(&self, out: &mut Vec<u8>) -> Result<bool, FormatError> {
        match &self.value {
            Fill::Value(value) => encode_value(value, out).map(|()| true),
            Fill::Undefined | Fill::Default => Ok(false),
        }
    }

    /// When space is allocated and filled, as numbers.
    fn times(&self) -> (u8, u8) {
        let allocation = match self.allocation {
            AllocationTime::Default => 0,
            AllocationTime::Early => 1,
            AllocationTime::Late => 2,
            AllocationTime::Incremental => 3,
        };
        let write = match self.write {
            FillTime::Allocation => 0,
            FillTime::Never => 1,
            FillTime::IfSet => 2,
        };
        (allocation, write)
    }

    /// Appends the body of a message 0x0005 in version 3.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let (allocation, write) = self.times();
        let flags = allocation | write << 2;
        match &self.value {
            Fill::Undefined => out.put_bytes(&[3, flags | UNDEFINED_VALUE]),
            Fill::Default => out.put_bytes(&[3, flags]),
            Fill::Value(value) => {
                out.put_bytes(&[3, flags | HAVE_VALUE]);
                encode_value(value, out)?;
            }
        }
        Ok(())
    }
}

fn encode_value(value: &[u8], out: &mut Vec<u8>) -> Result<(), FormatError> {
    let length = fits(STRUCTURE, "bytes of the value", u64::from(u32::MAX), value.len())?;
    out.put_uint(length, 4);
    out.put_bytes(value);
    Ok(())
}

fn decode_long(reader: &mut Reader<'_>) -> Result<FillValue, DecodeError> {
    let start = reader.clone();
    let [allocation, write, defined] = reader.array()?;
    let value = if defined != 0 { decode_value(reader)? } else { Fill::Undefined };
    times(&start, allocation, write, value)
}

fn decode_flags(reader: &mut Reader<'_>) -> Result<FillValue, DecodeError> {
    let start = reader.clone();
    let flags = reader.u8()?;
    if flags & 0xC0 != 0 {
        return Err(start.reserved("flags of bits 0 to 5", flags));
    }
    if flags & 0x30 == 0x30 {
        return Err(start.error("a value that is defined or not", format!("{flags:#04x}")));
    }
    let value = if flags & UNDEFINED_VALUE != 0 {
        Fill::Undefined
    } else if flags & HAVE_VALUE != 0 {
        let length = reader.u32()?;
        let length = reader.count(u64::from(length), 1)?;
        Fill::Value(reader.take(length)?.to_vec())
    } else {
        Fill::Default
    };
    times(&start, flags & 3, flags >> 2 & 3, value)
}

/// A length, negative for "undefined" and 0 for "default", and that many bytes.
fn decode_value(reader: &mut Reader<'_>) -> Result<Fill, DecodeError> {
    let length = reader.u32()?;
    if length & 0x8000_0000 != 0 {
        return Ok(Fill::Undefined);
    }
    if length == 0 {
        return Ok(Fill::Default);
    }
    let length = reader.count(u64::from(length), 1)?;
    Ok(Fill::Value(reader.take(length)?.to_vec()))
}

fn times(
    start: &Reader<'_>,
    allocation: u8,
    write: u8,
    value: Fill,
) -> Result<FillValue, DecodeError> {
    let allocation = match allocation {
        0 => AllocationTime::Default,
        1 => AllocationTime::Early,
        2 => AllocationTime::Late,
        3 => AllocationTime::Incremental,
        time => return Err(start.error("an allocation time of 0 to 3", time)),
    };
    let write = match write {
        0 => FillTime::Allocation,
        1 => FillTime::Never,
        2 => FillTime::IfSet,
        time => return Err(start.error("a fill time of 0 to 2", time)),
    };
    Ok(FillValue { allocation, write, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> Result<FillValue, DecodeError> {
        FillValue::decode(bytes, &Context::default())
    }

    #[test]
    fn version_2_is_read() {
        let fill = decode(&[2, 2, 2, 1, 2, 0, 0, 0, 9, 8]).unwrap();
        assert_eq!(fill.allocation, AllocationTime::Late);
        assert_eq!(fill.value, Fill::Value(vec![9, 8]));
        assert_eq!(decode(&[2, 2, 2, 1, 0, 0, 0, 0]).unwrap().value, Fill::Default);
        assert_eq!(decode(&[2, 2, 2, 0]).unwrap().value, Fill::Undefined);
        assert!(decode(&[2, 2, 2, 1, 3, 0, 0, 0, 9, 8]).is_err());
    }

    #[test]
    fn the_old_message_is_read() {
        let context = Context::default();
        let fill = FillValue::decode_old(&[1, 0, 0, 0, 5], &context).unwrap();
        assert_eq!(fill.value, Fill::Value(vec![5]));
        let none = FillValue::decode_old(&[0, 0, 0, 0], &context).unwrap();
        assert_eq!(none.value, Fill::Undefined);
    }

    #[test]
    fn all_states_survive_a_round_trip() {
        for value in [Fill::Undefined, Fill::Default, Fill::Value(vec![1, 2, 3])] {
            for write in [FillTime::Allocation, FillTime::Never, FillTime::IfSet] {
                for allocation in [AllocationTime::Default, AllocationTime::Early] {
                    let fill = FillValue { allocation, write, value: value.clone() };
                    let mut bytes = Vec::new();
                    fill.encode(&mut bytes).unwrap();
                    assert_eq!(decode(&bytes).unwrap(), fill);
                }
            }
        }
    }
}
