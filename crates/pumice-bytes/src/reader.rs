//! A cursor over bytes that cannot read past their end.

use crate::{DecodeError, UNDEFINED};

/// Reads little-endian fields from a slice and knows which structure it is reading, and where.
///
/// Copying a reader is cheap and gives an independent position.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    structure: &'static str,
    base: u64,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader of `structure`, whose bytes begin at file address `base`.
    pub fn new(structure: &'static str, base: u64, bytes: &'a [u8]) -> Self {
        Self { structure, base, bytes, at: 0 }
    }

    /// The name of the structure, for errors.
    pub fn structure(&self) -> &'static str {
        self.structure
    }

    /// The file address of the next byte.
    pub fn address(&self) -> u64 {
        self.base.saturating_add(self.at as u64)
    }

    /// The number of bytes read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The number of bytes left.
    pub fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// An error at the current position.
    pub fn error(
        &self,
        expected: impl Into<std::borrow::Cow<'static, str>>,
        found: impl std::fmt::Display,
    ) -> DecodeError {
        DecodeError::new(self.structure, self.address(), expected, found)
    }

    /// An error at the current position: a version, class or type that this program does not know.
    /// `newest` is the highest that it knows; see [`DecodeError::is_newer`].
    pub fn unknown(
        &self,
        expected: impl Into<std::borrow::Cow<'static, str>>,
        newest: impl Into<u64>,
        found: impl Into<u64>,
    ) -> DecodeError {
        DecodeError::unknown(self.structure, self.address(), expected, newest, found)
    }

    /// An error at the current position for flags with reserved bits. A newer program gives them a
    /// meaning ([`DecodeError::is_newer`]); if all bits are set, it is damage.
    ///
    /// ```
    /// let reader = pumice_bytes::Reader::new("group info message", 0x40, &[]);
    /// let error = reader.reserved("flags of bits 0 and 1", 0x04);
    /// assert!(error.is_newer());
    /// assert_eq!(error.to_string(), "group info message at 0x40: expected flags of bits 0 and 1, found 0x04");
    /// assert!(!reader.reserved("flags of bits 0 and 1", 0xff).is_newer());
    /// ```
    pub fn reserved(
        &self,
        expected: impl Into<std::borrow::Cow<'static, str>>,
        flags: u8,
    ) -> DecodeError {
        let error = self.error(expected, format!("{flags:#04x}"));
        if flags == u8::MAX { error } else { error.newer() }
    }

    /// The next `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let end = self.at.checked_add(count);
        match end.and_then(|end| self.bytes.get(self.at..end)) {
            Some(taken) => {
                self.at += count;
                Ok(taken)
            }
            None => Err(self.too_few(count)),
        }
    }

    #[cold]
    fn too_few(&self, count: usize) -> DecodeError {
        self.error(format!("{count} more byte(s)"), self.remaining())
    }

    /// The next `N` bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// All bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at = self.bytes.len();
        rest
    }

    /// Everything read so far, for checksums.
    pub fn consumed(&self) -> &'a [u8] {
        self.bytes.get(..self.at).unwrap_or_default()
    }

    /// Passes over `count` bytes.
    #[inline]
    pub fn skip(&mut self, count: usize) -> Result<(), DecodeError> {
        self.take(count).map(drop)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Two bytes.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    /// An unsigned integer of `width` bytes, 1 to 8.
    #[inline]
    pub fn uint(&mut self, width: usize) -> Result<u64, DecodeError> {
        if width == 8 {
            return self.u64();
        }
        if width == 0 || width > 8 {
            return Err(self.error("an integer of 1 to 8 bytes", width));
        }
        let mut wide = [0; 8];
        for (to, from) in wide.iter_mut().zip(self.take(width)?) {
            *to = *from;
        }
        Ok(u64::from_le_bytes(wide))
    }

    /// A file address of `width` bytes; all bits set means [`UNDEFINED`] at any width.
    #[inline]
    pub fn offset(&mut self, width: usize) -> Result<u64, DecodeError> {
        let value = self.uint(width)?;
        let undefined = if width == 8 { u64::MAX } else { (1 << (8 * width)) - 1 };
        Ok(if value == undefined { UNDEFINED } else { value })
    }

    /// Checks a four-byte signature.
    pub fn signature(&mut self, expected: &[u8; 4]) -> Result<(), DecodeError> {
        let start = self.clone();
        let found = self.array::<4>()?;
        if found == *expected {
            return Ok(());
        }
        Err(start.error(
            format!("signature \"{}\"", expected.escape_ascii()),
            format!("\"{}\"", found.escape_ascii()),
        ))
    }

    /// A count of items that each take at least `bytes_each` of the remaining bytes: safe to
    /// allocate for.
    pub fn count(&self, items: u64, bytes_each: usize) -> Result<usize, DecodeError> {
        let room = self.remaining() / bytes_each.max(1);
        match usize::try_from(items) {
            Ok(items) if items <= room => Ok(items),
            _ => Err(self.error(format!("at most {room} item(s) of {bytes_each} byte(s)"), items)),
        }
    }

    /// Reads a four-byte checksum and compares it with that of everything read before it.
    pub fn checksum(&mut self) -> Result<(), DecodeError> {
        let computed = crate::lookup3(self.consumed());
        let before = self.clone();
        let stored = self.u32()?;
        if stored == computed {
            return Ok(());
        }
        Err(before.error(format!("checksum {computed:#010x}"), format!("{stored:#010x}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_past_the_end_names_structure_and_address() {
        let mut reader = Reader::new("block", 0x100, &[1, 2, 3]);
        assert_eq!(reader.u16().unwrap(), 0x0201);
        let error = reader.u32().unwrap_err();
        assert_eq!((error.structure, error.address), ("block", 0x102));
        assert_eq!(reader.u8().unwrap(), 3, "a failed read moves nothing");
    }

    #[test]
    fn undefined_addresses_are_recognised_at_every_width() {
        for width in 1..=8 {
            let bytes = vec![0xFF; width];
            assert_eq!(Reader::new("address", 0, &bytes).offset(width).unwrap(), UNDEFINED);
        }
        assert_eq!(Reader::new("address", 0, &[0xFE, 0xFF]).offset(2).unwrap(), 0xFFFE);
    }

    #[test]
    fn counts_beyond_the_input_are_refused() {
        let reader = Reader::new("table", 0, &[0; 100]);
        assert_eq!(reader.count(10, 10).unwrap(), 10);
        assert!(reader.count(11, 10).is_err());
        assert!(reader.count(u64::MAX, 1).is_err());
    }

    #[test]
    fn checksum_covers_what_was_read() {
        let mut bytes = b"hello".to_vec();
        bytes.extend_from_slice(&crate::lookup3(b"hello").to_le_bytes());
        let mut reader = Reader::new("text", 0, &bytes);
        reader.skip(5).unwrap();
        reader.checksum().unwrap();
        bytes[0] ^= 1;
        let mut reader = Reader::new("text", 0, &bytes);
        reader.skip(5).unwrap();
        assert!(reader.checksum().is_err());
    }
}
