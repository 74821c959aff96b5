//! Elements with variable-length parts, whole in memory: fixed-size elements, and one heap of bytes
//! that their references point into.
//!
//! Where a file has a reference into a heap of its own, a heaped element has one into
//! [`Heaped::heap`], of the same size: the count of base elements (4 bytes), then one more than the
//! byte at which they begin (the rest), or all zeros for null. References inside the heap, those of
//! nested sequences, have the same form. So elements keep their layout, and no value needs an
//! allocation of its own.
//!
//! [`load`] turns references of a file into heaped ones, [`store`] back; where objects come from and
//! go to is the business of an [`ObjectSource`] and an [`ObjectSink`].
//!
//! Many references may lead to one object. If they do so more than by chance, it stays one object
//! in memory: a few bytes of a file never become many. Objects that have references themselves are
//! never shared, so that these can be [moved](move_references).

use crate::TypeError;
use crate::model::{Datatype, VarLen};
use std::collections::HashMap;
use std::ops::Range;

/// Bytes of the count at the beginning of a reference.
const COUNT: usize = 4;

/// Elements and the heap that their references point into.
///
/// ```
/// use pumice_types::{Datatype, Heaped};
///
/// let text = Datatype::varlen_string(16);
/// let names = Heaped::strings(16, ["ab", "", "cde"])?;
/// assert_eq!(names.elements.len(), 3 * 16);
/// let second = names.payload(&text, &names.elements[32..48])?;
/// assert_eq!(second, Some(&b"cde"[..]));
/// # Ok::<(), pumice_types::TypeError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heaped {
    /// The elements, in the file's layout, with references into the heap.
    pub elements: Vec<u8>,
    /// The bytes that the references point to.
    pub heap: Vec<u8>,
}

impl Heaped {
    /// Strings, with references of `size` bytes.
    pub fn strings<S: AsRef<[u8]>>(
        size: u32,
        strings: impl IntoIterator<Item = S>,
    ) -> Result<Self, TypeError> {
        let mut heaped = Self::default();
        for string in strings {
            let reference = heaped.push(string.as_ref(), string.as_ref().len() as u64, size)?;
            heaped.elements.extend_from_slice(&reference);
        }
        Ok(heaped)
    }

    /// Puts a payload of `count` base elements on the heap; returns the reference to it.
    pub fn push(&mut self, payload: &[u8], count: u64, size: u32) -> Result<Vec<u8>, TypeError> {
        let mut reference = vec![0; size as usize];
        put_reference(&mut reference, count, self.heap.len() as u64)?;
        self.heap.extend_from_slice(payload);
        Ok(reference)
    }

    /// The base elements of one variable-length element, one after another; `None` for null.
    pub fn payload(
        &self,
        datatype: &Datatype,
        reference: &[u8],
    ) -> Result<Option<&[u8]>, TypeError> {
        match datatype {
            Datatype::VarLen(varlen) => varlen.payload(reference, &self.heap),
            other => Err(TypeError::invalid(other.class_name(), "elements without a reference")),
        }
    }
}

impl VarLen {
    /// The bytes that a reference into `heap` points to; `None` for null.
    pub fn payload<'a>(
        &self,
        reference: &[u8],
        heap: &'a [u8],
    ) -> Result<Option<&'a [u8]>, TypeError> {
        let Some((count, start)) = reference_of(reference) else { return Ok(None) };
        let length = count.checked_mul(self.base.size() as u64);
        let end = length.and_then(|length| start.checked_add(length));
        let range =
            end.and_then(|end| Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?));
        let payload = range.and_then(|range| heap.get(range));
        payload.map(Some).ok_or_else(|| dangling(count, start, heap.len()))
    }
}

/// The count and the place of a heaped reference; `None` for null.
#[inline]
pub fn reference_of(reference: &[u8]) -> Option<(u64, u64)> {
    let (count, place) = reference.split_first_chunk::<COUNT>()?;
    let place = uint(place).checked_sub(1)?;
    Some((u64::from(u32::from_le_bytes(*count)), place))
}

/// Makes `reference` a heaped reference to `count` elements at byte `place` of the heap.
#[inline]
pub fn put_reference(reference: &mut [u8], count: u64, place: u64) -> Result<(), TypeError> {
    let size = reference.len();
    let (Ok(count), Some((head, tail))) =
        (u32::try_from(count), reference.split_first_chunk_mut::<COUNT>())
    else {
        return Err(TypeError::invalid("variable-length", too_long(count, size)));
    };
    *head = count.to_le_bytes();
    let place = place.saturating_add(1).to_le_bytes();
    let width = tail.len().min(place.len());
    if place.iter().skip(width).any(|&byte| byte != 0) {
        return Err(TypeError::invalid("variable-length", "a heap too large for its references"));
    }
    tail.fill(0);
    tail[..width].copy_from_slice(&place[..width]);
    Ok(())
}

fn too_long(count: u64, size: usize) -> String {
    format!("{count} base elements in a reference of {size} byte(s)")
}

fn dangling(count: u64, start: u64, heap: usize) -> TypeError {
    let reason = format!("a reference to {count} element(s) at byte {start} of a heap of {heap}");
    TypeError::invalid("variable-length", reason)
}

/// A little-endian number of up to eight bytes; further bytes are ignored.
#[inline]
fn uint(bytes: &[u8]) -> u64 {
    if let Some(wide) = bytes.first_chunk::<8>() {
        return u64::from_le_bytes(*wide);
    }
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// The source of objects for a file's references.
pub trait ObjectSource {
    /// The error of the source.
    type Error: From<TypeError>;

    /// The bytes behind a reference to `length` bytes; `None` for null.
    fn object(&mut self, reference: &[u8], length: u64) -> Result<Option<&[u8]>, Self::Error>;

    /// The position of a reference's object in the heap, if the source was told and remembers it.
    fn place(&mut self, _reference: &[u8]) -> Option<u64> {
        None
    }

    /// Tells the source the position of a reference's object.
    fn put(&mut self, _reference: &[u8], _place: u64) {}
}

/// Heaped elements as a source: their own heap.
pub struct InMemory<'a>(pub &'a [u8]);

impl ObjectSource for InMemory<'_> {
    type Error = TypeError;

    #[inline]
    fn object(&mut self, reference: &[u8], length: u64) -> Result<Option<&[u8]>, TypeError> {
        let Some((count, start)) = reference_of(reference) else { return Ok(None) };
        let end =
            usize::try_from(length).ok().and_then(|length| length.checked_add(start as usize));
        let object = end.and_then(|end| self.0.get(start as usize..end));
        object.map(Some).ok_or_else(|| dangling(count, start, self.0.len()))
    }
}

/// [`InMemory`] for references of which many lead to the same bytes, which are then stored once.
#[derive(Debug)]
pub struct InMemoryOnce<'a> {
    heap: &'a [u8],
    places: HashMap<(u64, u64), u64>,
    again: bool,
}

impl<'a> InMemoryOnce<'a> {
    /// References into `heap`.
    pub fn new(heap: &'a [u8]) -> Self {
        Self { heap, places: HashMap::new(), again: false }
    }

    /// Whether any references led to the same bytes.
    pub fn was_shared(&self) -> bool {
        self.again
    }
}

impl ObjectSource for InMemoryOnce<'_> {
    type Error = TypeError;

    fn object(&mut self, reference: &[u8], length: u64) -> Result<Option<&[u8]>, TypeError> {
        let Some((count, start)) = reference_of(reference) else { return Ok(None) };
        let end =
            usize::try_from(length).ok().and_then(|length| length.checked_add(start as usize));
        let object = end.and_then(|end| self.heap.get(start as usize..end));
        object.map(Some).ok_or_else(|| dangling(count, start, self.heap.len()))
    }

    fn place(&mut self, reference: &[u8]) -> Option<u64> {
        let place = self.places.get(&reference_of(reference)?).copied();
        self.again |= place.is_some();
        place
    }

    fn put(&mut self, reference: &[u8], place: u64) {
        if let Some(found) = reference_of(reference) {
            self.places.insert(found, place);
        }
    }
}

/// The sink for objects of a file.
pub trait ObjectSink {
    /// The error of the sink.
    type Error: From<TypeError>;

    /// Stores an object of `count` base elements and makes `reference` the file's reference to it. Before, it
    /// leads to the object in memory, or is null if the object has references of its own.
    fn put(&mut self, object: &[u8], count: u32, reference: &mut [u8]) -> Result<(), Self::Error>;

    /// Makes `reference`, which leads into memory, the file's reference to the object that was
    /// stored for it, if the sink remembers one; returns whether it does.
    fn put_again(&mut self, _reference: &mut [u8]) -> bool {
        false
    }
}

/// Turns the file's references in `elements`, and in everything that they lead to, into references
/// into `heap`, to which the objects are added.
pub fn load<S: ObjectSource>(
    datatype: &Datatype,
    elements: &mut [u8],
    heap: &mut Vec<u8>,
    source: &mut S,
) -> Result<(), S::Error> {
    load_at(datatype, elements, heap, 0, source)
}

/// [`load`] for a heap that will begin at byte `base` of a larger one.
pub fn load_at<S: ObjectSource>(
    datatype: &Datatype,
    elements: &mut [u8],
    heap: &mut Vec<u8>,
    base: u64,
    source: &mut S,
) -> Result<(), S::Error> {
    for_each_reference(datatype, elements, &mut |varlen, reference| {
        load_one(varlen, reference, heap, base, source)
    })
}

fn load_one<S: ObjectSource>(
    varlen: &VarLen,
    reference: &mut [u8],
    heap: &mut Vec<u8>,
    base: u64,
    source: &mut S,
) -> Result<(), S::Error> {
    let Some(&head) = reference.first_chunk::<COUNT>() else {
        return Err(TypeError::invalid("variable-length", too_long(0, reference.len())).into());
    };
    let count = u64::from(u32::from_le_bytes(head));
    let length = count.saturating_mul(varlen.base.size() as u64);
    // References to empty objects are equal by chance.
    let shared = length > 0 && !varlen.base.has_varlen();
    if let Some(place) = source.place(reference).filter(|_| shared) {
        return Ok(put_reference(reference, count, place)?);
    }
    let Some(object) = source.object(reference, length)? else {
        reference.fill(0);
        return Ok(());
    };
    if object.len() as u64 != length {
        let reason = format!("an object of {} byte(s) for {length}", object.len());
        return Err(TypeError::invalid("variable-length", reason).into());
    }
    if !varlen.base.has_varlen() {
        let place = base.saturating_add(append(heap, object)?);
        if shared {
            source.put(reference, place);
        }
        return Ok(put_reference(reference, count, place)?);
    }
    // Its own objects come first: then the object has its final form.
    let mut object = object.to_vec();
    load_at(&varlen.base, &mut object, heap, base, source)?;
    let place = append(heap, &object)?;
    Ok(put_reference(reference, count, base.saturating_add(place))?)
}

/// Adds bytes to the heap and returns their position. Lack of memory is an error, because the file
/// states the length.
fn append(heap: &mut Vec<u8>, object: &[u8]) -> Result<u64, TypeError> {
    let place = heap.len();
    if heap.try_reserve(object.len()).is_err() {
        let reason = format!("no memory for {} more byte(s)", object.len());
        return Err(TypeError::invalid("variable-length", reason));
    }
    heap.extend_from_slice(object);
    Ok(place as u64)
}

/// Adds the objects that heaped elements refer to in the heap `from` to `heap`, which begins at
/// byte `base` of a larger one, and changes the references. Returns whether several refer to the
/// same bytes.
pub fn adopt(
    datatype: &Datatype,
    elements: &mut [u8],
    heap: &mut Vec<u8>,
    base: u64,
    from: &[u8],
) -> Result<bool, TypeError> {
    // Values that follow each other move as one.
    let together = datatype.as_flat_varlen().and_then(|varlen| {
        let run = run_of(varlen, elements)?;
        from.get(run.start as usize..run.end as usize).map(|bytes| (varlen.size, run.start, bytes))
    });
    let Some((size, start, bytes)) = together else {
        if !repeats(datatype, elements)? {
            load_at(datatype, elements, heap, base, &mut InMemory(from))?;
            return Ok(false);
        }
        let mut once = InMemoryOnce::new(from);
        load_at(datatype, elements, heap, base, &mut once)?;
        return Ok(once.was_shared());
    };
    let place = base + append(heap, bytes)?;
    for reference in elements.chunks_exact_mut((size as usize).max(1)) {
        if let Some((count, old)) = reference_of(reference) {
            put_reference(reference, count, place + (old - start))?;
        }
    }
    Ok(false)
}

/// Whether references of heaped elements lead to more bytes than the heap has, so that several must
/// lead to the same. Also true if they lead to other references, of which that is unknown.
fn repeats(datatype: &Datatype, elements: &mut [u8]) -> Result<bool, TypeError> {
    let (mut first, mut last, mut total, mut nested) = (u64::MAX, 0, 0u64, false);
    for_each_reference(datatype, elements, &mut |varlen, reference| -> Result<(), TypeError> {
        nested |= varlen.base.has_varlen();
        if let Some((count, place)) = reference_of(reference) {
            let length = count.saturating_mul(varlen.base.size() as u64);
            (first, last) = (first.min(place), last.max(place.saturating_add(length)));
            total = total.saturating_add(length);
        }
        Ok(())
    })?;
    Ok(nested || total > last.saturating_sub(first))
}

/// The bytes that references of a file claim to lead to, each counted for itself; `None` if they
/// lead to other references, of which that is unknown.
pub fn claimed_bytes(datatype: &Datatype, elements: &mut [u8]) -> Result<Option<u64>, TypeError> {
    let (mut total, mut nested) = (0u64, false);
    for_each_reference(datatype, elements, &mut |varlen, reference| -> Result<(), TypeError> {
        nested |= varlen.base.has_varlen();
        let count = reference.first_chunk::<COUNT>().map_or(0, |count| u32::from_le_bytes(*count));
        let length = u64::from(count).saturating_mul(varlen.base.size() as u64);
        total = total.saturating_add(length);
        Ok(())
    })?;
    Ok((!nested).then_some(total))
}

/// The part of the heap that references lead to, if they do so one after another and without gaps.
pub fn run_of(varlen: &VarLen, elements: &[u8]) -> Option<Range<u64>> {
    let base = varlen.base.size() as u64;
    let mut run: Option<Range<u64>> = None;
    for reference in elements.chunks_exact((varlen.size as usize).max(1)) {
        let Some((count, place)) = reference_of(reference) else { continue };
        let run = run.get_or_insert(place..place);
        if place != run.end {
            return None;
        }
        run.end = run.end.checked_add(count.checked_mul(base)?)?;
    }
    Some(run.unwrap_or(0..0))
}

impl Datatype {
    /// The variable-length datatype that this is, if its base has no variable-length parts.
    pub fn as_flat_varlen(&self) -> Option<&VarLen> {
        match self {
            Datatype::VarLen(varlen) if !varlen.base.has_varlen() => Some(varlen),
            _ => None,
        }
    }
}

/// Turns references into `heap` in `elements` into references of the file: everything that they
/// lead to goes to the sink.
pub fn store<S: ObjectSink>(
    datatype: &Datatype,
    elements: &mut [u8],
    heap: &[u8],
    sink: &mut S,
) -> Result<(), S::Error> {
    for_each_reference(datatype, elements, &mut |varlen, reference| {
        let Some(payload) = varlen.payload(reference, heap)? else {
            reference.fill(0);
            return Ok(());
        };
        if !payload.is_empty() && !varlen.base.has_varlen() && sink.put_again(reference) {
            return Ok(());
        }
        let count = reference_of(reference).map_or(0, |(count, _)| count as u32);
        if varlen.base.has_varlen() {
            let mut payload = payload.to_vec();
            store(&varlen.base, &mut payload, heap, sink)?;
            // An object with references of its own is never stored twice.
            reference.fill(0);
            return sink.put(&payload, count, reference);
        }
        sink.put(payload, count, reference)
    })
}

/// Moves all references in heaped elements, and in the sequences that they lead to, to other
/// positions of the heap. `place` gives the new position for an old one; the heap is already in its
/// new order.
pub fn move_references(
    datatype: &Datatype,
    elements: &mut [u8],
    heap: &mut [u8],
    place: &dyn Fn(u64) -> u64,
) -> Result<(), TypeError> {
    if let Some(varlen) = datatype.as_flat_varlen() {
        // A type need not be asked for each of a million strings.
        for reference in elements.chunks_exact_mut((varlen.size as usize).max(1)) {
            if let Some((count, old)) = reference_of(reference) {
                put_reference(reference, count, place(old))?;
            }
        }
        return Ok(());
    }
    for_each_reference(datatype, elements, &mut |varlen, reference| {
        let Some((count, old)) = reference_of(reference) else { return Ok(()) };
        let new = place(old);
        put_reference(reference, count, new)?;
        if varlen.base.has_varlen() {
            let Some(payload) = varlen.payload(reference, heap)? else { return Ok(()) };
            let mut payload = payload.to_vec();
            move_references(&varlen.base, &mut payload, heap, place)?;
            heap[new as usize..new as usize + payload.len()].copy_from_slice(&payload);
        }
        Ok(())
    })
}

/// Bytes of the heap that elements refer to, directly and further on.
pub fn payload_bytes(datatype: &Datatype, elements: &[u8], heap: &[u8]) -> Result<u64, TypeError> {
    let mut total = 0u64;
    let mut elements = elements.to_vec();
    for_each_reference(datatype, &mut elements, &mut |varlen,
                                                      reference|
     -> Result<(), TypeError> {
        if let Some(payload) = varlen.payload(reference, heap)? {
            total = total.saturating_add(payload.len() as u64);
            if varlen.base.has_varlen() {
                total = total.saturating_add(payload_bytes(&varlen.base, payload, heap)?);
            }
        }
        Ok(())
    })?;
    Ok(total)
}

/// Called with each reference.
pub type Visit<'a, E> = dyn FnMut(&VarLen, &mut [u8]) -> Result<(), E> + 'a;

/// Visits every variable-length reference in packed elements.
pub fn for_each_reference<E: From<TypeError>>(
    datatype: &Datatype,
    elements: &mut [u8],
    visit: &mut Visit<'_, E>,
) -> Result<(), E> {
    let size = datatype.size();
    if size == 0 || !elements.len().is_multiple_of(size) {
        return Err(TypeError::SourceLength { element: size, found: elements.len() }.into());
    }
    match datatype {
        Datatype::VarLen(varlen) => {
            elements.chunks_exact_mut(size).try_for_each(|reference| visit(varlen, reference))
        }
        // The elements of an array follow each other as those of a dataset do.
        Datatype::Array(array) if array.base.has_varlen() => {
            for_each_reference(&array.base, elements, visit)
        }
        Datatype::Compound(compound) if datatype.has_varlen() => {
            for element in elements.chunks_exact_mut(size) {
                for member in compound.members.iter().filter(|member| member.datatype.has_varlen())
                {
                    let start = member.offset as usize;
                    let end = start.saturating_add(member.datatype.size());
                    let Some(part) = element.get_mut(start..end) else {
                        let reason = format!("member \"{}\" outside of it", member.name);
                        return Err(TypeError::invalid("compound", reason).into());
                    };
                    for_each_reference(&member.datatype, part, visit)?;
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
