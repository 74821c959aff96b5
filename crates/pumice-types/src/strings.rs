//! Many strings, or many sequences of numbers, in two buffers: their offsets, and their contents
//! one after another.

use crate::heaped::{put_reference, reference_of};
use crate::model::{Datatype, FixedString, StringPadding, VarLen, VarLenKind};
use crate::value::trimmed;
use crate::{Conversion, Element, Heaped, TypeError};
use std::ops::Index;

/// Characters of a string that an error shows.
const SHOWN: usize = 40;

/// Strings of any bytes, one after another.
///
/// ```
/// use pumice_types::Strings;
///
/// let names: Strings = ["ab", "", "cde"].into_iter().collect();
/// assert_eq!(names.len(), 3);
/// assert_eq!(&names[2], b"cde");
/// assert_eq!(names.offsets(), [0, 2, 2, 5]);
/// assert_eq!(names.to_vec(), ["ab", "", "cde"]);
/// assert_eq!(names, ["ab", "", "cde"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strings {
    /// Ascending, from 0 to the length of `bytes`; one more than there are strings.
    offsets: Vec<u64>,
    bytes: Vec<u8>,
}

impl Default for Strings {
    fn default() -> Self {
        Self { offsets: vec![0], bytes: Vec::new() }
    }
}

impl Strings {
    /// No strings.
    pub fn new() -> Self {
        Self::default()
    }

    /// String `i` is `bytes[offsets[i]..offsets[i + 1]]`: the offsets ascend from 0 to the number of
    /// bytes.
    ///
    /// ```
    /// use pumice_types::Strings;
    ///
    /// let names = Strings::from_parts(vec![0, 2, 5], b"abcde".to_vec())?;
    /// assert_eq!(names, ["ab", "cde"]);
    /// assert!(Strings::from_parts(vec![0, 6], b"abcde".to_vec()).is_err());
    /// # Ok::<(), pumice_types::TypeError>(())
    /// ```
    pub fn from_parts(offsets: Vec<u64>, bytes: Vec<u8>) -> Result<Self, TypeError> {
        check_offsets(&offsets, bytes.len())?;
        Ok(Self { offsets, bytes })
    }

    /// The offset of each string, and the end of the last.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// All strings, one after another.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Both buffers: offsets and bytes.
    pub fn into_parts(self) -> (Vec<u64>, Vec<u8>) {
        (self.offsets, self.bytes)
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a string.
    pub fn push(&mut self, string: impl AsRef<[u8]>) {
        self.bytes.extend_from_slice(string.as_ref());
        self.offsets.push(self.bytes.len() as u64);
    }

    /// One string.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let (start, end) = (self.offsets.get(index)?, self.offsets.get(index + 1)?);
        self.bytes.get(*start as usize..*end as usize)
    }

    /// All strings, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.offsets.windows(2).map(|ends| &self.bytes[ends[0] as usize..ends[1] as usize])
    }

    /// A `String` for each; bytes that are no UTF-8 become U+FFFD.
    pub fn to_vec(&self) -> Vec<String> {
        self.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    /// The strings of heaped elements, of variable or of fixed length. Null gives an empty string.
    pub fn from_heaped(datatype: &Datatype, heaped: Heaped) -> Result<Self, TypeError> {
        match datatype {
            Datatype::VarLen(varlen) if matches!(varlen.kind, VarLenKind::String { .. }) => {
                Self::from_references(varlen, heaped)
            }
            Datatype::String(string) => {
                let elements = heaped.elements.chunks_exact((string.size as usize).max(1));
                Ok(elements.map(|element| trimmed(element, string.padding)).collect())
            }
            other => Err(TypeError::invalid(other.class_name(), "no strings")),
        }
    }

    /// The strings as elements of a fixed length, each ending as the type says.
    ///
    /// ```
    /// use pumice_types::{Datatype, FixedString, StringPadding, Strings};
    ///
    /// let Datatype::String(four) = Datatype::fixed_string(4) else { unreachable!() };
    /// let names: Strings = ["ab", "cdef"].into_iter().collect();
    /// assert_eq!(names.to_fixed(&four)?, b"ab\0\0cdef");
    /// let longer: Strings = ["basalt"].into_iter().collect();
    /// assert!(longer.to_fixed(&four).is_err());
    /// // What ends with a null byte has none before it.
    /// let ended = FixedString { padding: StringPadding::NullTerminate, ..four };
    /// let parted: Strings = ["a\0b"].into_iter().collect();
    /// assert!(parted.to_fixed(&ended).is_err());
    /// # Ok::<(), pumice_types::TypeError>(())
    /// ```
    pub fn to_fixed(&self, string: &FixedString) -> Result<Vec<u8>, TypeError> {
        let (size, room) = (string.size as usize, string.room());
        let ends = string.padding == StringPadding::NullTerminate;
        for text in self.iter() {
            let start = || String::from_utf8_lossy(text).chars().take(SHOWN).collect::<String>();
            let length = text.len();
            if length > room {
                let start = start();
                let reason =
                    format!("\"{start}\" has {length} byte(s), and an element takes {room}");
                return Err(TypeError::invalid("string", reason));
            }
            if ends && text.contains(&0) {
                let reason = format!("{:?} has a null byte, which would end it", start());
                return Err(TypeError::invalid("string", reason));
            }
        }
        let pad = if string.padding == StringPadding::SpacePad { b' ' } else { 0 };
        let (total, mut elements) = (self.len().saturating_mul(size), Vec::new());
        if elements.try_reserve_exact(total).is_err() {
            let reason = format!("no memory for {total} byte(s) of strings");
            return Err(TypeError::invalid("string", reason));
        }
        elements.resize(total, pad);
        for (text, place) in self.iter().zip(elements.chunks_exact_mut(size.max(1))) {
            place[..text.len()].copy_from_slice(text);
        }
        Ok(elements)
    }

    fn from_references(varlen: &VarLen, heaped: Heaped) -> Result<Self, TypeError> {
        let Heaped { elements, heap } = heaped;
        let size = (varlen.size as usize).max(1);
        // Mostly the heap is already in the wanted form: the strings in order, and nothing else.
        if let Some(offsets) = in_order(&elements, size, 1, heap.len())
            && !heap.contains(&0)
        {
            return Ok(Self { offsets, bytes: heap });
        }
        let total = total(&elements, size);
        let mut strings = Self::default();
        if strings.bytes.try_reserve_exact(total).is_err() {
            let reason = format!("no memory for {total} byte(s) of strings");
            return Err(TypeError::invalid("variable-length", reason));
        }
        for reference in elements.chunks_exact(size) {
            let text = varlen.payload(reference, &heap)?.unwrap_or_default();
            strings.push(trimmed(text, StringPadding::NullTerminate));
        }
        Ok(strings)
    }
}

impl Index<usize> for Strings {
    type Output = [u8];

    fn index(&self, index: usize) -> &[u8] {
        &self.bytes[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }
}

impl<S: AsRef<[u8]>> FromIterator<S> for Strings {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Self {
        let mut all = Self::default();
        strings.into_iter().for_each(|string| all.push(string));
        all
    }
}

impl<S: AsRef<[u8]>> PartialEq<[S]> for Strings {
    fn eq(&self, other: &[S]) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(a, b)| a == b.as_ref())
    }
}

impl<S: AsRef<[u8]>, const N: usize> PartialEq<[S; N]> for Strings {
    fn eq(&self, other: &[S; N]) -> bool {
        *self == other[..]
    }
}

impl<S: AsRef<[u8]>> PartialEq<Vec<S>> for Strings {
    fn eq(&self, other: &Vec<S>) -> bool {
        *self == other[..]
    }
}

/// Sequences of numbers, one after another.
///
/// ```
/// use pumice_types::Sequences;
///
/// let walks: Sequences<u32> = [vec![1, 2, 3], vec![], vec![4]].into_iter().collect();
/// assert_eq!(walks[0], [1, 2, 3]);
/// assert_eq!(walks.offsets(), [0, 3, 3, 4]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequences<T> {
    /// Ascending, from 0 to the number of values; one more than there are sequences.
    offsets: Vec<u64>,
    values: Vec<T>,
}

impl<T> Default for Sequences<T> {
    fn default() -> Self {
        Self { offsets: vec![0], values: Vec::new() }
    }
}

impl<T> Sequences<T> {
    /// No sequences.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sequence `i` is `values[offsets[i]..offsets[i + 1]]`: the offsets ascend from 0 to the number
    /// of values.
    pub fn from_parts(offsets: Vec<u64>, values: Vec<T>) -> Result<Self, TypeError> {
        check_offsets(&offsets, values.len())?;
        Ok(Self { offsets, values })
    }

    /// The offset of each sequence, and the end of the last.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// All values, one sequence after another.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Both buffers: offsets and values.
    pub fn into_parts(self) -> (Vec<u64>, Vec<T>) {
        (self.offsets, self.values)
    }

    /// The number of sequences.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All sequences, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[T]> {
        self.offsets.windows(2).map(|ends| &self.values[ends[0] as usize..ends[1] as usize])
    }
}

impl<T: Element> Sequences<T> {
    /// The sequences of heaped elements, their values converted. Null gives an empty sequence.
    pub fn from_heaped(datatype: &Datatype, heaped: &Heaped) -> Result<Self, TypeError> {
        let Datatype::VarLen(varlen) = datatype else {
            return Err(TypeError::invalid(datatype.class_name(), "no sequences"));
        };
        let conversion = Conversion::new(&varlen.base, &T::datatype())?;
        let (size, base) = ((varlen.size as usize).max(1), varlen.base.size().max(1));
        let Heaped { elements, heap } = heaped;
        if let Some(offsets) = in_order(elements, size, base, heap.len()) {
            let mut values = zeroed(heap.len() / base)?;
            conversion.convert(heap, bytemuck::cast_slice_mut(&mut values))?;
            return Ok(Self { offsets, values });
        }
        let mut offsets = vec![0];
        let mut values: Vec<T> = zeroed(total(elements, size))?;
        let mut rest = values.as_mut_slice();
        let mut done = 0;
        for reference in elements.chunks_exact(size) {
            let payload = varlen.payload(reference, heap)?.unwrap_or_default();
            let (now, later) = rest.split_at_mut((payload.len() / base).min(rest.len()));
            conversion.convert(payload, bytemuck::cast_slice_mut(now))?;
            done += now.len() as u64;
            offsets.push(done);
            rest = later;
        }
        Ok(Self { offsets, values })
    }

    /// Heaped elements with references of `size` bytes, and their datatype.
    pub fn to_heaped(&self, size: u32) -> Result<(Datatype, Heaped), TypeError> {
        let elements = references(&self.offsets, size_of::<T>(), size)?;
        let heap = bytemuck::cast_slice(&self.values).to_vec();
        Ok((Datatype::varlen(T::datatype(), size), Heaped { elements, heap }))
    }
}

/// References of `size` bytes to the parts of a heap between offsets, which count base elements.
pub fn references(offsets: &[u64], base: usize, size: u32) -> Result<Vec<u8>, TypeError> {
    let mut elements = Vec::new();
    let first = offsets.first().map_or(0, |&first| first.saturating_mul(base as u64));
    append_references(offsets, base, size, first, &mut elements)?;
    Ok(elements)
}

/// [`references`] appended to `elements`, for values of which the first begins at byte `place` of
/// the heap.
pub fn append_references(
    offsets: &[u64],
    base: usize,
    size: u32,
    place: u64,
    elements: &mut Vec<u8>,
) -> Result<(), TypeError> {
    let (start, size) = (elements.len(), size as usize);
    let bytes = offsets.len().saturating_sub(1) * size;
    if size == WIDE {
        elements.reserve(bytes);
        return append_wide(offsets, base as u64, place, elements);
    }
    elements.resize(start + bytes, 0);
    let mut next = place;
    for (ends, to) in offsets.windows(2).zip(elements[start..].chunks_exact_mut(size.max(1))) {
        let count = ends[1].checked_sub(ends[0]).unwrap_or(u64::MAX);
        put_reference(to, count, next)?;
        next = next.saturating_add(count.saturating_mul(base as u64));
    }
    Ok(())
}

/// Bytes of a reference in a file with the usual size of offsets.
const WIDE: usize = 16;

/// References of 16 bytes: as there may be many, without a look at each byte.
fn append_wide(
    offsets: &[u64],
    base: u64,
    place: u64,
    elements: &mut Vec<u8>,
) -> Result<(), TypeError> {
    let too_long = |count: u64| {
        let reason = format!("{count} base elements in a reference of {WIDE} byte(s)");
        TypeError::invalid("variable-length", reason)
    };
    let mut next = place.saturating_add(1);
    for ends in offsets.windows(2) {
        let count = ends[1].checked_sub(ends[0]).unwrap_or(u64::MAX);
        let count = u32::try_from(count).map_err(|_| too_long(count))?;
        let reference = u128::from(count) | u128::from(next) << 32;
        elements.extend_from_slice(&reference.to_le_bytes());
        next = next.saturating_add(u64::from(count).saturating_mul(base));
    }
    Ok(())
}

impl<T> Index<usize> for Sequences<T> {
    type Output = [T];

    fn index(&self, index: usize) -> &[T] {
        &self.values[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }
}

impl<T: Clone, S: AsRef<[T]>> FromIterator<S> for Sequences<T> {
    fn from_iter<I: IntoIterator<Item = S>>(sequences: I) -> Self {
        let mut all = Self::default();
        for sequence in sequences {
            all.values.extend_from_slice(sequence.as_ref());
            all.offsets.push(all.values.len() as u64);
        }
        all
    }
}

/// The offsets of references that lead, one after another and without gaps, to all of a heap.
fn in_order(elements: &[u8], size: usize, base: usize, heap: usize) -> Option<Vec<u64>> {
    let mut offsets = Vec::with_capacity(elements.len() / size + 1);
    let mut next = 0u64;
    offsets.push(next);
    for reference in elements.chunks_exact(size) {
        if let Some((count, place)) = reference_of(reference) {
            if place != next.saturating_mul(base as u64) {
                return None;
            }
            next += count;
        }
        offsets.push(next);
    }
    (next.checked_mul(base as u64) == Some(heap as u64)).then_some(offsets)
}

/// Base elements that all references lead to.
fn total(elements: &[u8], size: usize) -> usize {
    let counts = elements.chunks_exact(size).filter_map(reference_of).map(|(count, _)| count);
    usize::try_from(counts.fold(0, u64::saturating_add)).unwrap_or(usize::MAX)
}

fn zeroed<T: Element>(count: usize) -> Result<Vec<T>, TypeError> {
    bytemuck::allocation::try_zeroed_vec(count).map_err(|()| {
        TypeError::invalid("variable-length", format!("no memory for {count} values"))
    })
}

fn check_offsets(offsets: &[u64], length: usize) -> Result<(), TypeError> {
    let ends = offsets.first() == Some(&0) && offsets.last() == Some(&(length as u64));
    if ends && offsets.is_sorted() {
        return Ok(());
    }
    let reason = format!("offsets that do not ascend from 0 to {length}");
    Err(TypeError::invalid("variable-length", reason))
}
