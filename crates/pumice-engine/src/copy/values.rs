//! Elements that lead to other places: data of variable length, references to objects.

use super::widths::relaid;
use super::{Copier, Task};
use crate::dataset::DatasetState;
use crate::file::File;
use crate::reference::{self, Reference};
use crate::{Error, Result};
use pumice_layout::Storage;
use pumice_types::heaped::reference_of;
use pumice_types::{Datatype, Heaped};
use std::sync::Arc;

impl Copier<'_> {
    /// Whether the elements of a dataset cannot be copied as stored bytes.
    pub(super) fn changes(&self, file: &File, dataset: &DatasetState) -> bool {
        let stored = &dataset.layout().storage;
        if matches!(stored, Storage::External(_) | Storage::Virtual) {
            return false;
        }
        let own_heap = matches!(stored, Storage::VariableLength(..));
        let datatype = dataset.datatype();
        self.resizes(file, datatype)
            || (datatype.has_varlen() && !own_heap)
            || (own_heap && self.recounts(file, datatype))
            || (self.is_foreign(file) && datatype.refers_to_objects())
    }

    /// Elements as the target has them, for elements as the source has them.
    pub(super) fn moved(
        &mut self,
        task: &Task,
        datatype: &Datatype,
        data: Vec<u8>,
    ) -> Result<Vec<u8>> {
        let foreign = self.is_foreign(&task.file) && datatype.refers_to_objects();
        if !datatype.has_varlen() && !foreign {
            return Ok(data);
        }
        let mut values = match datatype.has_varlen() {
            true => task.file.global_heap().load(datatype, data)?,
            false => Heaped { elements: data, heap: Vec::new() },
        };
        self.translate(task, datatype, &mut values)?;
        if datatype.has_varlen() {
            let (heap, datatype) = (self.target.global_heap(), self.sized(&task.file, datatype)?);
            heap.store(&datatype, &mut values.elements, &values.heap)?;
        }
        Ok(values.elements)
    }

    /// [`moved`](Self::moved) for a fill value: its references are not followed and become null in
    /// another file.
    pub(super) fn moved_fill(
        &mut self,
        file: &Arc<File>,
        datatype: &Datatype,
        value: Vec<u8>,
    ) -> Result<Vec<u8>> {
        let sized = self.sized(file, datatype)?;
        let mut values = match datatype.has_varlen() {
            true => file.global_heap().load(datatype, value)?,
            false => Heaped { elements: value, heap: Vec::new() },
        };
        self.end_references(file, datatype, &mut values)?;
        if sized != *datatype {
            values = relaid((datatype, &sized), &values, &mut |_, _, _, _| Ok(()))?;
        }
        if datatype.has_varlen() {
            self.target.global_heap().store(&sized, &mut values.elements, &values.heap)?;
        }
        Ok(values.elements)
    }

    /// Makes references to objects of another file null. The other bytes of the elements stay.
    pub(super) fn end_references(
        &self,
        file: &File,
        datatype: &Datatype,
        values: &mut Heaped,
    ) -> Result<()> {
        if !self.is_foreign(file) || !datatype.refers_to_objects() {
            return Ok(());
        }
        for_each_reference(
            datatype,
            &mut values.elements,
            &mut values.heap,
            &mut |class, element| reference::store(self.target, class, None, element),
        )
    }

    /// A reference to the copy of the object that `found` refers to.
    fn led(&mut self, task: &Task, mut found: Reference) -> Result<Option<Reference>> {
        match self.copy_of(&task.file, found.address, task.depth) {
            Ok(address) => {
                self.referenced.push(address);
                found.address = address;
                Ok(Some(found))
            }
            // If the copy goes on without the object, its references become null.
            Err(error) => self.forgive(found.address, Err(error)).map(|()| None),
        }
    }

    /// The reference that an element gets in the target.
    fn redirected(
        &mut self,
        task: &Task,
        class: &pumice_types::Reference,
        element: &[u8],
    ) -> Result<Option<Reference>> {
        let whole = Datatype::Reference(class.clone());
        let found = reference::references(&task.file, &whole, element)?.pop().flatten();
        match found {
            // An object of a third file exists for both.
            Some(found) if found.file.is_some() => Ok(Some(found)),
            Some(found)
                if self.options.expand_references && !self.omits(&task.file, found.address) =>
            {
                self.led(task, found)
            }
            _ => Ok(None),
        }
    }

    /// Makes references to objects lead to their copies, or nowhere, and elements as wide as the target has
    /// them; within a file they stay.
    pub(super) fn translate(
        &mut self,
        task: &Task,
        datatype: &Datatype,
        values: &mut Heaped,
    ) -> Result<()> {
        if self.resizes(&task.file, datatype) {
            let sized = self.sized(&task.file, datatype)?;
            *values = relaid((datatype, &sized), values, &mut |from, element, to, made| {
                let found = self.redirected(task, from, element)?;
                reference::store(self.target, to, found.as_ref(), made)
            })?;
            return Ok(());
        }
        if !self.is_foreign(&task.file) || !datatype.refers_to_objects() {
            return Ok(());
        }
        let Heaped { elements, heap } = values;
        for_each_reference(datatype, elements, heap, &mut |class, element| {
            let found = self.redirected(task, class, element)?;
            reference::store(self.target, class, found.as_ref(), element)
        })
    }
}

/// Called with each reference to an object.
type Visit<'a> = dyn FnMut(&pumice_types::Reference, &mut [u8]) -> Result<()> + 'a;

/// Visits every reference to an object, in elements and in the objects of `heap` that they refer
/// to.
pub(crate) fn for_each_reference(
    datatype: &Datatype,
    elements: &mut [u8],
    heap: &mut Vec<u8>,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let size = datatype.size().max(1);
    match datatype {
        Datatype::Reference(reference) => {
            elements.chunks_exact_mut(size).try_for_each(|element| visit(reference, element))
        }
        Datatype::Array(array) if datatype.refers_to_objects() => {
            for_each_reference(&array.base, elements, heap, visit)
        }
        Datatype::Compound(compound) if datatype.refers_to_objects() => {
            for element in elements.chunks_exact_mut(size) {
                for member in
                    compound.members.iter().filter(|member| member.datatype.refers_to_objects())
                {
                    let start = member.offset as usize;
                    let end = start.saturating_add(member.datatype.size());
                    let part = element.get_mut(start..end).ok_or_else(|| {
                        Error::Damaged(format!("member \"{}\" beyond its compound", member.name))
                    })?;
                    for_each_reference(&member.datatype, part, heap, visit)?;
                }
            }
            Ok(())
        }
        Datatype::VarLen(varlen) if datatype.refers_to_objects() => {
            for element in elements.chunks_exact(size) {
                let Some(payload) = varlen.payload(element, heap)? else { continue };
                let start = reference_of(element).map_or(0, |(_, start)| start as usize);
                let mut payload = payload.to_vec();
                for_each_reference(&varlen.base, &mut payload, heap, visit)?;
                heap[start..start + payload.len()].copy_from_slice(&payload);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
