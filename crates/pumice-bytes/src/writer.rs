//! Little-endian fields appended to a byte vector.

/// The methods of `Vec<u8>` that encoders need.
///
/// ```
/// use pumice_bytes::Writer;
///
/// let mut out = Vec::new();
/// out.put_u16(0x0201);
/// out.put_uint(0x050403, 3);
/// assert_eq!(out, [1, 2, 3, 4, 5]);
/// ```
pub trait Writer {
    /// Appends bytes as they are.
    fn put_bytes(&mut self, bytes: &[u8]);

    /// Appends one byte.
    fn put_u8(&mut self, value: u8) {
        self.put_bytes(&[value]);
    }

    /// Appends two bytes.
    fn put_u16(&mut self, value: u16) {
        self.put_bytes(&value.to_le_bytes());
    }

    /// Appends four bytes.
    fn put_u32(&mut self, value: u32) {
        self.put_bytes(&value.to_le_bytes());
    }

    /// Appends eight bytes.
    fn put_u64(&mut self, value: u64) {
        self.put_bytes(&value.to_le_bytes());
    }

    /// Appends the low `width` bytes of `value` (1 to 8). The undefined address keeps all bits set.
    fn put_uint(&mut self, value: u64, width: usize) {
        debug_assert!((1..=8).contains(&width));
        let bytes = value.to_le_bytes();
        self.put_bytes(bytes.get(..width).unwrap_or(&bytes));
    }

    /// Appends `count` zero bytes.
    fn put_zeros(&mut self, count: usize);

    /// Appends the checksum of everything from byte `start` on.
    fn put_checksum(&mut self, start: usize);
}

impl Writer for Vec<u8> {
    fn put_bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn put_zeros(&mut self, count: usize) {
        self.resize(self.len() + count, 0);
    }

    fn put_checksum(&mut self, start: usize) {
        let checksum = crate::lookup3(self.get(start..).unwrap_or_default());
        self.put_u32(checksum);
    }
}
