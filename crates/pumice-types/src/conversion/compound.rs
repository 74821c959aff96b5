//! Compounds: members are matched by name, at any depth.
//!
//! Nested compounds are flattened into one list of parts, and neighbouring parts that are only
//! copied are joined. Parts with a real conversion are gathered from a block of elements, converted
//! together and scattered, so that their kernels run over many values at a time.

use super::Kernel;
use crate::TypeError;
use crate::model::{Compound, Datatype};

/// Bytes of elements that are worked on while they are in the nearest cache.
const BLOCK_BYTES: usize = 16 << 10;

/// Members that both compounds have.
#[derive(Debug, Clone)]
pub(super) struct CompoundKernel {
    source_size: usize,
    target_size: usize,
    /// Sorted by their place in the source.
    parts: Vec<Part>,
    overwrites_target: bool,
}

/// One member, or several that lie side by side and are copied as bytes.
#[derive(Debug, Clone)]
struct Part {
    source_offset: usize,
    source_size: usize,
    target_offset: usize,
    target_size: usize,
    kernel: Kernel,
}

impl CompoundKernel {
    pub(super) fn choose(from: &Compound, to: &Compound) -> Result<Kernel, TypeError> {
        let mut parts = Vec::with_capacity(to.members.len());
        // Whether all members of the target, nested ones included, have a counterpart.
        let complete = collect_parts(from, to, 0, 0, &mut parts)?;
        let in_place = parts.iter().all(Part::stays_in_place);
        if from.size == to.size && complete && in_place {
            return Ok(Kernel::Copy);
        }
        parts.sort_unstable_by_key(|part| part.source_offset);
        let mut joined: Vec<Part> = Vec::with_capacity(parts.len());
        for part in parts {
            if !joined.last_mut().is_some_and(|last| last.join(&part)) {
                joined.push(part);
            }
        }
        // Members of a valid compound do not overlap, so their sizes add up to the bytes written.
        let written: usize = joined
            .iter()
            .filter(|part| part.kernel.overwrites_target())
            .map(|part| part.target_size)
            .sum();
        Ok(Kernel::Compound(Box::new(Self {
            source_size: from.size as usize,
            target_size: to.size as usize,
            parts: joined,
            overwrites_target: written == to.size as usize,
        })))
    }

    pub(super) fn overwrites_target(&self) -> bool {
        self.overwrites_target
    }

    pub(super) fn run(&self, source: &[u8], target: &mut [u8]) {
        let elements = (BLOCK_BYTES / self.source_size.max(self.target_size)).max(1);
        let (mut packed, mut converted) = (Vec::new(), Vec::new());
        let blocks = source.chunks(elements * self.source_size);
        for (from, to) in blocks.zip(target.chunks_mut(elements * self.target_size)) {
            for part in &self.parts {
                self.run_part(part, from, to, &mut packed, &mut converted);
            }
        }
    }

    fn run_part(
        &self,
        part: &Part,
        source: &[u8],
        target: &mut [u8],
        packed: &mut Vec<u8>,
        converted: &mut Vec<u8>,
    ) {
        let from = Stride { element: self.source_size, offset: part.source_offset };
        let to = Stride { element: self.target_size, offset: part.target_offset };
        if matches!(part.kernel, Kernel::Copy) {
            copy_strided(part.source_size, source, from, target, to);
            return;
        }
        let count = source.len() / self.source_size;
        packed.resize(count * part.source_size, 0);
        converted.resize(count * part.target_size, 0);
        let packed_stride = Stride { element: part.source_size, offset: 0 };
        let converted_stride = Stride { element: part.target_size, offset: 0 };
        copy_strided(part.source_size, source, from, packed, packed_stride);
        if !part.kernel.overwrites_target() {
            copy_strided(part.target_size, target, to, converted, converted_stride);
        }
        part.kernel.run(packed, converted);
        copy_strided(part.target_size, converted, converted_stride, target, to);
    }
}

impl Part {
    fn stays_in_place(&self) -> bool {
        matches!(self.kernel, Kernel::Copy) && self.source_offset == self.target_offset
    }

    /// Takes in a part that follows this one in source and target, if both are copied.
    fn join(&mut self, next: &Self) -> bool {
        let copies = matches!((&self.kernel, &next.kernel), (Kernel::Copy, Kernel::Copy));
        let adjacent = self.source_offset + self.source_size == next.source_offset
            && self.target_offset + self.target_size == next.target_offset;
        if copies && adjacent {
            self.source_size += next.source_size;
            self.target_size += next.target_size;
        }
        copies && adjacent
    }
}

/// Finds the members that both compounds have and says whether the target has no others.
fn collect_parts(
    from: &Compound,
    to: &Compound,
    source_base: usize,
    target_base: usize,
    parts: &mut Vec<Part>,
) -> Result<bool, TypeError> {
    let mut names: Vec<_> =
        from.members.iter().map(|member| (member.name.as_str(), member)).collect();
    names.sort_unstable_by_key(|(name, _)| *name);
    let mut complete = true;
    for member in &to.members {
        let Ok(index) = names.binary_search_by_key(&member.name.as_str(), |(name, _)| *name) else {
            complete = false;
            continue;
        };
        let source = names[index].1;
        let source_offset = source_base + source.offset as usize;
        let target_offset = target_base + member.offset as usize;
        match (&source.datatype, &member.datatype) {
            (Datatype::Compound(from), Datatype::Compound(to)) if from != to => {
                complete &= collect_parts(from, to, source_offset, target_offset, parts)?;
            }
            (from, to) => parts.push(Part {
                source_offset,
                source_size: from.size(),
                target_offset,
                target_size: to.size(),
                kernel: Kernel::new(from, to)?,
            }),
        }
    }
    Ok(complete)
}

/// The offset of a part in each of a row of elements.
#[derive(Debug, Clone, Copy)]
struct Stride {
    element: usize,
    offset: usize,
}

/// Copies `size` bytes of each element.
fn copy_strided(size: usize, source: &[u8], from: Stride, target: &mut [u8], to: Stride) {
    match size {
        1 => copy_fixed::<1>(source, from, target, to),
        2 => copy_fixed::<2>(source, from, target, to),
        4 => copy_fixed::<4>(source, from, target, to),
        8 => copy_fixed::<8>(source, from, target, to),
        16 => copy_fixed::<16>(source, from, target, to),
        _ => {
            let elements = source.chunks_exact(from.element);
            for (read, written) in elements.zip(target.chunks_exact_mut(to.element)) {
                written[to.offset..][..size].copy_from_slice(&read[from.offset..][..size]);
            }
        }
    }
}

/// Copies strided parts of a fixed size, each by one load and one store.
fn copy_fixed<const SIZE: usize>(source: &[u8], from: Stride, target: &mut [u8], to: Stride) {
    let elements = source.chunks_exact(from.element);
    for (read, written) in elements.zip(target.chunks_exact_mut(to.element)) {
        written[to.offset..][..SIZE].copy_from_slice(&read[from.offset..][..SIZE]);
    }
}
