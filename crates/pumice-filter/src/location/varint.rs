//! Whole numbers of seven bits a byte, lowest first; the high bit says that more follow.

use super::corrupt;
use crate::FilterError;
use pumice_bytes::Reader;

/// Appends `value`.
pub(super) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a number of at most 63 bits in its only form: no leading zero groups.
pub(super) fn varint(reader: &mut Reader<'_>) -> Result<u64, FilterError> {
    let start = reader.clone();
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let byte = reader.u8().map_err(corrupt)?;
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            let padded = byte == 0 && shift > 0;
            return match padded {
                true => Err(corrupt(start.error("a number without padding", "a zero group"))),
                false => Ok(value),
            };
        }
    }
    Err(corrupt(start.error("a number of at most 63 bits", "more")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_comes_back_and_has_one_form() {
        for shift in 0..63 {
            for value in [1u64 << shift, (1 << shift) - 1] {
                let mut out = Vec::new();
                put_varint(value, &mut out);
                assert_eq!(varint(&mut Reader::new("test", 0, &out)).unwrap(), value);
            }
        }
        assert!(varint(&mut Reader::new("test", 0, &[0x80, 0])).is_err());
        assert!(varint(&mut Reader::new("test", 0, &[0xFF; 20])).is_err());
        assert!(varint(&mut Reader::new("test", 0, &[0x80])).is_err());
    }
}
