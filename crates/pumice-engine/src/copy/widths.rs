//! Elements in a file whose addresses have another width. Strings, sequences and references change
//! their size, and so do the elements that hold them.

use super::Copier;
use crate::dataset::DatasetSpec;
use crate::file::File;
use crate::reference;
use crate::{Error, Result};
use pumice_types::heaped::{put_reference, reference_of};
use pumice_types::{self as types, Compound, Datatype, Heaped, Member, VarLen};

/// Called with each reference to an object: its type, its bytes in the source and in the target.
type Visit<'a> =
    dyn FnMut(&types::Reference, &[u8], &types::Reference, &mut [u8]) -> Result<()> + 'a;

impl Copier<'_> {
    /// Whether elements of a type have another size in the target.
    pub(super) fn resizes(&self, file: &File, datatype: &Datatype) -> bool {
        let (from, to) = (file.superblock().sizes, self.target.superblock().sizes);
        from.offset != to.offset && datatype.has_references()
    }

    /// Whether the lengths in heaps of structured chunks have another width in the target.
    pub(super) fn recounts(&self, file: &File, datatype: &Datatype) -> bool {
        let (from, to) = (file.superblock().sizes, self.target.superblock().sizes);
        from.length != to.length && datatype.has_varlen()
    }

    /// Makes a dataset that is stored in another way have the types of the target.
    pub(super) fn resize_spec(&self, file: &File, spec: &mut DatasetSpec) -> Result<()> {
        match self.resizes(file, &spec.datatype) {
            true => fit(spec, self.target),
            false => Ok(()),
        }
    }

    /// A datatype of a file as the target has it.
    pub(super) fn sized(&self, file: &File, datatype: &Datatype) -> Result<Datatype> {
        match self.resizes(file, datatype) {
            true => sized(datatype, self.target),
            false => Ok(datatype.clone()),
        }
    }
}

/// Fits the references of a new dataset, and of its fill value, to the widths of `file`.
pub fn fit(spec: &mut DatasetSpec, file: &File) -> Result<()> {
    let sized = sized(&spec.datatype, file)?;
    if sized == spec.datatype {
        return Ok(());
    }
    if let Some(elements) = spec.fill.take() {
        let fill = Heaped { elements, heap: spec.fill_heap.take().unwrap_or_default() };
        // References in a fill value are not followed.
        let fill = relaid((&spec.datatype, &sized), &fill, &mut |_, _, _, _| Ok(()))?;
        spec.fill = Some(fill.elements);
        spec.fill_heap = sized.has_varlen().then_some(fill.heap);
    }
    spec.datatype = sized;
    Ok(())
}

/// A datatype with references as wide as `file` has them.
pub fn sized(datatype: &Datatype, file: &File) -> Result<Datatype> {
    Ok(match datatype {
        Datatype::Reference(class) => reference::datatype(file, class.kind),
        Datatype::VarLen(varlen) => {
            let size = 8 + u32::from(file.superblock().sizes.offset);
            let base = Box::new(sized(&varlen.base, file)?);
            Datatype::VarLen(VarLen { size, kind: varlen.kind, base })
        }
        Datatype::Array(array) => Datatype::array(sized(&array.base, file)?, array.dims.clone()),
        Datatype::Compound(compound) => Datatype::Compound(sized_compound(compound, file)?),
        other => other.clone(),
    })
}

/// A compound with the widths of the target: members behind one that changes its size move, and
/// gaps keep their length.
fn sized_compound(compound: &Compound, file: &File) -> Result<Compound> {
    let members = compound.members.iter();
    let members = members
        .map(|member| Ok(Member { datatype: sized(&member.datatype, file)?, ..member.clone() }));
    let mut members = members.collect::<Result<Vec<_>>>()?;
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&place| members[place].offset);
    let mut moved = 0i64;
    let shifted = |at: u32, moved: i64| {
        let there = u32::try_from(i64::from(at) + moved);
        there.map_err(|_| {
            Error::Invalid(
                "a compound is too large for the target file, whose references take more bytes"
                    .into(),
            )
        })
    };
    for place in order {
        members[place].offset = shifted(members[place].offset, moved)?;
        let before = compound.members[place].datatype.size() as i64;
        moved += members[place].datatype.size() as i64 - before;
    }
    Ok(Compound { size: shifted(compound.size, moved)?, members })
}

/// Converts elements from the type `from` to the type `to`, which differs in widths alone.
pub(super) fn relaid(
    (from, to): (&Datatype, &Datatype),
    values: &Heaped,
    visit: &mut Visit<'_>,
) -> Result<Heaped> {
    let mut made = Heaped::default();
    made.elements = relay((from, to), &values.elements, &values.heap, &mut made.heap, visit)?;
    Ok(made)
}

/// Converts elements like [`relaid`], and adds the objects of `heap` that they refer to to `new`.
fn relay(
    (from, to): (&Datatype, &Datatype),
    elements: &[u8],
    heap: &[u8],
    new: &mut Vec<u8>,
    visit: &mut Visit<'_>,
) -> Result<Vec<u8>> {
    if !from.has_references() {
        return Ok(elements.to_vec());
    }
    if let (Datatype::Array(from), Datatype::Array(to)) = (from, to) {
        return relay((&from.base, &to.base), elements, heap, new, visit);
    }
    let (old_size, size) = (from.size().max(1), to.size().max(1));
    let mut made = vec![0; elements.len() / old_size * size];
    for (element, made) in elements.chunks_exact(old_size).zip(made.chunks_exact_mut(size)) {
        match (from, to) {
            (Datatype::Reference(from), Datatype::Reference(to)) => visit(from, element, to, made)?,
            (Datatype::VarLen(from), Datatype::VarLen(to)) => {
                let Some((count, _)) = reference_of(element) else { continue };
                let payload = from.payload(element, heap)?.unwrap_or_default();
                let payload = relay((&from.base, &to.base), payload, heap, new, visit)?;
                put_reference(made, count, new.len() as u64)?;
                new.extend_from_slice(&payload);
            }
            (Datatype::Compound(from), Datatype::Compound(to)) => {
                for (from, to) in from.members.iter().zip(&to.members) {
                    let part = element.get(span(from)).ok_or_else(|| beyond(from))?;
                    let part = relay((&from.datatype, &to.datatype), part, heap, new, visit)?;
                    made.get_mut(span(to)).ok_or_else(|| beyond(to))?.copy_from_slice(&part);
                }
            }
            _ => return Err(Error::Internal(format!("{from} as {to}"))),
        }
    }
    Ok(made)
}

fn span(member: &Member) -> std::ops::Range<usize> {
    let start = member.offset as usize;
    start..start.saturating_add(member.datatype.size())
}

fn beyond(member: &Member) -> Error {
    Error::Damaged(format!("member \"{}\" beyond its compound", member.name))
}
