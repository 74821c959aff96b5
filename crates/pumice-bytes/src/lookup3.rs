//! Bob Jenkins' lookup3 hash (`hashlittle` with an initial value of zero): the checksum of all
//! HDF5 metadata and of the metadata sections of structured chunks.

/// The checksum of `bytes`.
///
/// ```
/// assert_eq!(pumice_bytes::lookup3(b"Four score and seven years ago"), 0x1777_0551);
/// ```
pub fn lookup3(bytes: &[u8]) -> u32 {
    // The start value folds the length in; HDF5's seed is zero.
    let start = 0xDEAD_BEEFu32.wrapping_add(bytes.len() as u32);
    let mut state = [start; 3];
    // The last block, even a full one, is mixed by `finish`, so it is kept out of the loop.
    let whole = bytes.len().saturating_sub(1) / 12 * 12;
    let (head, tail) = bytes.split_at(whole);
    for block in head.chunks_exact(12) {
        add(&mut state, block);
        mix(&mut state);
    }
    if tail.is_empty() {
        return start;
    }
    let mut padded = [0; 12];
    for (to, from) in padded.iter_mut().zip(tail) {
        *to = *from;
    }
    add(&mut state, &padded);
    finish(state)
}

fn add(state: &mut [u32; 3], block: &[u8]) {
    for (word, bytes) in state.iter_mut().zip(block.chunks_exact(4)) {
        let mut array = [0; 4];
        array.copy_from_slice(bytes);
        *word = word.wrapping_add(u32::from_le_bytes(array));
    }
}

fn mix(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    a = a.wrapping_sub(c) ^ c.rotate_left(4);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(6);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(8);
    b = b.wrapping_add(a);
    a = a.wrapping_sub(c) ^ c.rotate_left(16);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(19);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(4);
    b = b.wrapping_add(a);
    *state = [a, b, c];
}

fn finish([mut a, mut b, mut c]: [u32; 3]) -> u32 {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::lookup3;

    #[test]
    fn published_vectors() {
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }

    #[test]
    fn a_fully_defined_chunk_of_ten_has_the_documented_checksum() {
        // docs/format: the 39-byte encoding of "all" over an extent of 10.
        let mut bytes = vec![1, 0, 8, 16, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend_from_slice(&[3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(lookup3(&bytes), 0xC84C_82FC);
    }
}
