//! Copying a whole file, with datasets stored in other ways where that is wanted.

use super::{Copier, CopyOptions, Step, Task};
use crate::dataset::{DatasetSpec, DatasetState};
use crate::file::File;
use crate::object::Object;
use crate::{Error, Result, delete};
use pumice_format::messages::kind;
use pumice_format::object_header::RawMessage;
use pumice_types::Heaped;
use std::sync::Arc;

/// Chooses the storage of datasets when a whole file is copied.
pub trait Remake {
    /// The description of a dataset's copy; `None` to copy it unchanged.
    fn plan(&mut self, from: &Arc<DatasetState>) -> Result<Option<DatasetSpec>>;

    /// Copies the elements of a dataset that was planned. Not called for elements that lead to other
    /// places.
    fn fill(&mut self, from: &Arc<DatasetState>, to: &Arc<DatasetState>) -> Result<()>;

    /// Whether the copy of a planned dataset gets all cells.
    fn keeps_all(&self, _from: &DatasetState) -> bool {
        true
    }

    /// Whether the object at an address is left out, with all links and references to it.
    fn omits(&self, _address: u64) -> bool {
        false
    }

    /// Called when a part of the object at an address could not be copied. Returning an error ends
    /// the copy; returning `Ok` leaves that part out.
    fn failed(&mut self, _address: u64, error: Error) -> Result<()> {
        Err(error)
    }

    /// A dataset has been copied.
    fn done(&mut self, _from: &DatasetState) {}
}

/// Copies everything below the root group of `source`, and its attributes, to the root group of
/// `target`, which must have none of these names. References lead to the copies.
pub fn copy_whole(
    source: &Arc<File>,
    target: &File,
    options: &CopyOptions,
    remake: &mut dyn Remake,
) -> Result<()> {
    target.medium().require_writable()?;
    let options = CopyOptions { expand_references: true, ..*options };
    let mut copier = Copier { remake: Some(remake), ..Copier::new(target, options) };
    let copied = copier.whole(source);
    if copied.is_err() {
        // Half a copy is of no use; the first error says more than one about this.
        for address in copier.created {
            let _ = delete::discard(target, address);
        }
    }
    copied
}

/// Whether an object cannot be read because it is newer than this program.
fn is_newer(file: &Arc<File>, address: u64) -> bool {
    let opened = file.object(address).and_then(|object| match object.has(kind::LAYOUT) {
        true => file.dataset(address, || DatasetState::open(file, &object)).map(drop),
        false => Ok(()),
    });
    opened.is_err_and(|error| error.is_newer())
}

impl Copier<'_> {
    fn whole(&mut self, source: &Arc<File>) -> Result<()> {
        let (from, to) = (source.root()?, self.target.root()?.address());
        self.sources.push(source.clone());
        self.copied.insert((Arc::as_ptr(source), from.address()), to);
        self.links.insert(to, 1);
        self.pending.push(Step::Fill(Task { file: source.clone(), from, to, depth: 0 }));
        while let Some(step) = self.next_step() {
            let address = step.task().from.address();
            let done = self.advance(step);
            self.forgive(address, done)?;
        }
        self.link_referenced()
    }

    /// Asks whether the copy goes on without a part that failed.
    pub(super) fn forgive(&mut self, address: u64, done: Result<()>) -> Result<()> {
        match (done, &mut self.remake) {
            (Err(error), Some(remake)) => remake.failed(address, error),
            (done, _) => done,
        }
    }

    /// Whether an object is left out.
    pub(super) fn omits(&self, file: &Arc<File>, address: u64) -> bool {
        self.remake.as_ref().is_some_and(|remake| remake.omits(address))
            || self.options.leave_newer && is_newer(file, address)
    }

    fn next_step(&mut self) -> Option<Step> {
        self.pending.pop().or_else(|| self.last.pop().map(Step::Elements))
    }

    /// The object of a dataset that is stored in another way, if it shall be.
    pub(super) fn remade(
        &mut self,
        file: &Arc<File>,
        from: &Arc<Object>,
        depth: usize,
    ) -> Result<Option<u64>> {
        if !from.has(kind::LAYOUT) {
            return Ok(None);
        }
        let Some(remake) = &mut self.remake else { return Ok(None) };
        // An object that cannot be opened is copied as it is, or fails there.
        let Ok(state) = file.dataset(from.address(), || DatasetState::open(file, from)) else {
            return Ok(None);
        };
        let Some(mut spec) = remake.plan(&state)? else { return Ok(None) };
        let same_type = spec.datatype == *state.datatype();
        self.end_references_of_fill(file, &mut spec)?;
        self.resize_spec(file, &mut spec)?;
        let made = DatasetState::create(self.target, spec)?;
        let mut others = Vec::new();
        for raw in from.all_messages() {
            match raw.kind {
                kind::COMMENT | kind::MODIFICATION_TIME => others.push(self.as_it_is(file, &raw)?),
                kind::DATATYPE if same_type => others.push(self.datatype(file, &raw, depth)?),
                _ => {}
            }
        }
        let object = made.object().clone();
        object.change(|messages| {
            let replaced = |raw: &RawMessage| others.iter().any(|other| other.kind == raw.kind);
            messages.retain(|raw| !replaced(raw));
            messages.extend(others);
        })?;
        let address = object.address();
        self.target.new_dataset(made)?;
        self.remade.insert(address);
        Ok(Some(address))
    }

    /// Makes the references of a copied fill value null.
    fn end_references_of_fill(&self, file: &File, spec: &mut DatasetSpec) -> Result<()> {
        if spec.datatype.has_varlen() && spec.fill_heap.is_none() {
            // Its objects are in the target.
            return Ok(());
        }
        let Some(elements) = spec.fill.take() else { return Ok(()) };
        let mut fill = Heaped { elements, heap: spec.fill_heap.take().unwrap_or_default() };
        self.end_references(file, &spec.datatype, &mut fill)?;
        spec.fill = Some(fill.elements);
        spec.fill_heap = spec.datatype.has_varlen().then_some(fill.heap);
        Ok(())
    }

    /// The elements of a dataset that is stored in another way.
    pub(super) fn remade_elements(
        &mut self,
        task: &Task,
        from: &Arc<DatasetState>,
        to: &Arc<Object>,
    ) -> Result<()> {
        let open = || DatasetState::open(self.target, to);
        let copy = self.target.dataset(to.address(), open)?;
        let resizes = self.resizes(&task.file, from.datatype())
            && self.remake.as_ref().is_some_and(|remake| remake.keeps_all(from));
        if from.datatype().refers_to_objects() || resizes {
            copy.copy_values(from, &mut |values| self.translate(task, from.datatype(), values))?;
            return copy.flush(self.target.cache());
        }
        let remake = self.remake.as_mut();
        remake.map_or(Ok(()), |remake| remake.fill(from, &copy))
    }
}
