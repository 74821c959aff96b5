//! Copying objects within a file and between files, with everything below them.
//!
//! An object is copied once, however many links lead to it. Its header is made first, then its
//! attributes, links and elements. Copies that are still to be filled wait in a list, so depth
//! costs no stack. The caller links the copy.
//!
//! Headers keep their versions, groups and chunk indexes their kinds, as with libhdf5. Elements are
//! copied as stored bytes, with two exceptions (`values`): data of variable length gets new objects
//! in the global heap; references to objects become references to the copies, or null references in
//! another file. If addresses have another width in the target, the elements that hold them change
//! their size (`widths`).

mod header;
mod values;
mod whole;
mod widths;

pub(crate) use values::for_each_reference;
pub use whole::{Remake, copy_whole};
pub use widths::{fit, sized};

use crate::attribute::{self, Attribute};
use crate::dataset::DatasetState;
use crate::file::File;
use crate::object::Object;
use crate::{Result, delete, group};
use pumice_format::messages::{Link, LinkTarget, kind};
use pumice_types::Datatype;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::vec;

/// The levels of a group's members that a shallow copy takes.
const SHALLOW: usize = 1;

/// Options of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyOptions {
    /// Copies a group with its members only; member groups stay empty.
    pub shallow: bool,
    /// Objects that soft links lead to instead of the links, where they lead to some.
    pub expand_soft_links: bool,
    /// Objects that external links lead to instead of the links, where they lead to some.
    pub expand_external_links: bool,
    /// Between files: objects that references lead to, too. Otherwise references become null.
    pub expand_references: bool,
    /// No attributes.
    pub without_attributes: bool,
    /// Uses an equal committed datatype of the target file instead of copying it.
    pub merge_committed_datatypes: bool,
    /// Leaves out objects that are newer than this program, and links and references to them.
    /// Without it they are an error.
    pub leave_newer: bool,
}

/// Copies `object` of the file `source`, with everything below it, to the file `target`. Gives the
/// new object's address; something must link to it.
pub fn copy(
    source: &Arc<File>,
    object: &Object,
    target: &File,
    options: &CopyOptions,
) -> Result<u64> {
    target.medium().require_writable()?;
    let mut copier = Copier::new(target, *options);
    let copied = copier.run(source, object.address());
    if copied.is_err() {
        // Half a copy is of no use; the first error says more than one about this.
        for address in copier.created {
            let _ = delete::discard(target, address);
        }
    }
    copied
}

/// Copies the attributes of an object to one that is there. Committed datatypes stay shared within a
/// file and are copied to another, unless it has them.
pub fn attributes(
    source: &Arc<File>,
    from: &Arc<Object>,
    target: &File,
    to: &Arc<Object>,
) -> Result<()> {
    let options = CopyOptions { merge_committed_datatypes: true, ..CopyOptions::default() };
    let mut copier = Copier::new(target, options);
    let task = Task { file: source.clone(), from: from.clone(), to: to.address(), depth: 0 };
    copier.sources.push(source.clone());
    copier.attributes(&task, to)?;
    copier.finish()
}

struct Copier<'a> {
    target: &'a File,
    /// Decides which datasets are stored in another way.
    remake: Option<&'a mut dyn Remake>,
    /// Copies that are.
    remade: HashSet<u64>,
    options: CopyOptions,
    /// The copy of each object, by file and address.
    copied: HashMap<(*const File, u64), u64>,
    /// Files that objects were copied from: they stay open, and so have different places.
    sources: Vec<Arc<File>>,
    /// The number of links to each copy so far.
    links: HashMap<u64, u32>,
    created: Vec<u64>,
    /// The steps that are left, the last first: a group's members come before the next member of
    /// its parent.
    pending: Vec<Step>,
    /// Datasets of references. Their elements are copied last, when all objects that they can refer
    /// to have copies.
    last: Vec<Task>,
    /// Copies that references lead to.
    referenced: Vec<u64>,
    /// Committed datatypes of the target, once they are needed.
    committed: Option<Vec<(Datatype, u64)>>,
}

/// Something that is still to be done.
enum Step {
    /// A copy is to be filled.
    Fill(Task),
    /// A copy of a dataset is to get its elements.
    Elements(Task),
    /// A copy of a group is to get the rest of its members.
    Members(Task, vec::IntoIter<Link>),
}

impl Step {
    fn task(&self) -> &Task {
        match self {
            Self::Fill(task) | Self::Elements(task) | Self::Members(task, _) => task,
        }
    }
}

/// A copy that is still to be filled.
struct Task {
    file: Arc<File>,
    from: Arc<Object>,
    to: u64,
    depth: usize,
}

impl<'a> Copier<'a> {
    fn new(target: &'a File, options: CopyOptions) -> Self {
        let (remade, copied, sources, links) = Default::default();
        let (created, pending, last, referenced, committed) = Default::default();
        Self {
            target,
            remake: None,
            remade,
            options,
            copied,
            sources,
            links,
            created,
            pending,
            last,
            referenced,
            committed,
        }
    }

    fn run(&mut self, source: &Arc<File>, address: u64) -> Result<u64> {
        let copy = self.copy_of(source, address, 0)?;
        self.count_link(copy)?;
        self.finish()?;
        Ok(copy)
    }

    /// Fills all copies.
    fn finish(&mut self) -> Result<()> {
        while let Some(step) = self.pending.pop() {
            self.target.spill()?;
            self.advance(step)?;
        }
        self.link_referenced()
    }

    /// The address of an object's copy, which may still have to be filled.
    fn copy_of(&mut self, file: &Arc<File>, address: u64, depth: usize) -> Result<u64> {
        let key = (Arc::as_ptr(file), address);
        if let Some(&copy) = self.copied.get(&key) {
            return Ok(copy);
        }
        if !self.sources.iter().any(|known| Arc::ptr_eq(known, file)) {
            self.sources.push(file.clone());
        }
        let from = file.object(address)?;
        if self.options.merge_committed_datatypes
            && let Some(found) = self.merged(file, &from)?
        {
            // Something leads to it already.
            self.links.insert(found, 1);
            self.copied.insert(key, found);
            return Ok(found);
        }
        let to = match self.remade(file, &from, depth)? {
            Some(to) => to,
            None => self.create(file, &from, depth)?,
        };
        self.copied.insert(key, to);
        self.created.push(to);
        self.pending.push(Step::Fill(Task { file: file.clone(), from, to, depth }));
        Ok(to)
    }

    /// Notes a link to a copy. A new object has one from the start.
    fn count_link(&mut self, copy: u64) -> Result<()> {
        let count = self.links.entry(copy).or_insert(0);
        *count += 1;
        if *count == 1 { Ok(()) } else { self.target.object(copy)?.add_link() }
    }

    /// Whether an object's addresses belong to another file than the target.
    fn is_foreign(&self, file: &File) -> bool {
        !std::ptr::eq(file, self.target)
    }

    fn advance(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Fill(task) => self.fill(task),
            Step::Elements(task) => {
                let to = self.target.object(task.to)?;
                self.elements(&task, &to)
            }
            Step::Members(task, links) => self.member(task, links),
        }
    }

    fn fill(&mut self, task: Task) -> Result<()> {
        let to = self.target.object(task.to)?;
        if !self.options.without_attributes {
            let copied = self.attributes(&task, &to);
            self.forgive(task.from.address(), copied)?;
        }
        if group::is_group(&task.from) {
            return self.members(task);
        }
        if !task.from.has(kind::LAYOUT) {
            return Ok(());
        }
        if self.remake.is_some()
            && attribute::object_datatype(&task.file, &task.from)?.refers_to_objects()
        {
            self.last.push(task);
            return Ok(());
        }
        self.elements(&task, &to)
    }

    fn attributes(&mut self, task: &Task, to: &Object) -> Result<()> {
        let mut all = Vec::new();
        // Keeps the objects of references until they are copied, though others may replace them.
        let file = task.file.clone();
        let _reading = file.global_heap().reading();
        for found in attribute::each(&task.file, &task.from)? {
            match found {
                Ok(attribute) => all.push(attribute),
                Err(error) => self.forgive(task.from.address(), Err(error))?,
            }
        }
        all.sort_by(|one, other| {
            (one.creation_order, &one.name).cmp(&(other.creation_order, &other.name))
        });
        for attribute in all {
            let copied = self.attribute(task, to, attribute);
            self.forgive(task.from.address(), copied)?;
        }
        Ok(())
    }

    fn attribute(&mut self, task: &Task, to: &Object, mut attribute: Attribute) -> Result<()> {
        if let Some(address) = attribute.committed {
            let copy = self.copy_of(&task.file, address, task.depth)?;
            self.count_link(copy)?;
            attribute.committed = Some(copy);
        }
        let data = std::mem::take(&mut attribute.data);
        attribute.data = self.moved(task, &attribute.datatype, data)?;
        attribute.datatype = self.sized(&task.file, &attribute.datatype)?;
        attribute::store(self.target, to, attribute)
    }

    fn members(&mut self, task: Task) -> Result<()> {
        if self.options.shallow && task.depth >= SHALLOW {
            return Ok(());
        }
        let mut links = group::links(&task.file, &task.from)?;
        links.sort_by_key(|link| link.creation_order);
        self.pending.push(Step::Members(task, links.into_iter()));
        Ok(())
    }

    /// Copies the next member of a group, with all below it, before the one after it.
    fn member(&mut self, task: Task, mut links: vec::IntoIter<Link>) -> Result<()> {
        let Some(link) = links.next() else { return Ok(()) };
        let rest = self.pending.len();
        let linked = self.link(&task, link);
        let address = task.from.address();
        self.pending.insert(rest, Step::Members(task, links));
        self.forgive(address, linked)
    }

    fn link(&mut self, task: &Task, link: Link) -> Result<()> {
        let target = match self.led_to(task, &link)? {
            Some((file, address)) if self.omits(&file, address) => return Ok(()),
            Some((file, address)) => {
                let address = self.copy_of(&file, address, task.depth + 1)?;
                self.count_link(address)?;
                LinkTarget::Hard { address }
            }
            None => link.target.clone(),
        };
        let to = self.target.object(task.to)?;
        group::insert(self.target, &to, Link { target, creation_order: None, ..link })
    }

    /// The object that is to be copied instead of a link.
    fn led_to(&self, task: &Task, link: &Link) -> Result<Option<(Arc<File>, u64)>> {
        let expand = match &link.target {
            LinkTarget::Hard { address } => return Ok(Some((task.file.clone(), *address))),
            LinkTarget::Soft { .. } => self.options.expand_soft_links,
            LinkTarget::External { .. } => self.options.expand_external_links,
            LinkTarget::UserDefined { .. } => false,
        };
        if !expand {
            return Ok(None);
        }
        // One that leads nowhere stays a link.
        let Ok(found) = group::resolve(&task.file, &task.from, &link.name) else { return Ok(None) };
        let file = found.file.unwrap_or_else(|| task.file.clone());
        Ok(Some((file, found.object.address())))
    }

    fn elements(&mut self, task: &Task, to: &Arc<Object>) -> Result<()> {
        let open = || DatasetState::open(&task.file, &task.from);
        let from = task.file.dataset(task.from.address(), open)?;
        if self.remade.contains(&task.to) {
            self.remade_elements(task, &from, to)?;
            self.tell(&from);
            return Ok(());
        }
        let copy = DatasetState::open(self.target, to)?;
        let copied = match self.changes(&task.file, &from) {
            false => copy.copy_stored(&from),
            true => {
                copy.copy_values(&from, &mut |values| self.translate(task, from.datatype(), values))
            }
        };
        let copied = copied.and_then(|()| copy.flush(self.target.cache()));
        if copied.is_err() {
            let _ = copy.free();
        }
        self.tell(&from);
        copied
    }

    fn tell(&mut self, from: &DatasetState) {
        if let Some(remake) = &mut self.remake {
            remake.done(from);
        }
    }

    /// Links objects that only references lead to, by libhdf5's names.
    fn link_referenced(&mut self) -> Result<()> {
        let root = self.target.root()?;
        for copy in std::mem::take(&mut self.referenced) {
            if self.links.contains_key(&copy) {
                continue;
            }
            self.count_link(copy)?;
            let name = format!("~obj_pointed_by_{copy}");
            let link = Link::new(name, LinkTarget::Hard { address: copy });
            group::insert(self.target, &root, link)?;
        }
        Ok(())
    }

    /// The committed datatype of the target that equals this one, if it is one.
    fn merged(&mut self, file: &Arc<File>, from: &Object) -> Result<Option<u64>> {
        if group::is_group(from) || from.has(kind::LAYOUT) || !from.has(kind::DATATYPE) {
            return Ok(None);
        }
        if !self.is_foreign(file) {
            return Ok(Some(from.address()));
        }
        let datatype = self.sized(file, &attribute::object_datatype(file, from)?)?;
        let known = match self.committed.take() {
            Some(known) => known,
            None => committed_datatypes(self.target)?,
        };
        let known = self.committed.insert(known);
        let found = known.iter().find(|(other, _)| *other == datatype);
        Ok(found.map(|&(_, address)| address))
    }
}

/// All committed datatypes that links of a file lead to.
fn committed_datatypes(file: &File) -> Result<Vec<(Datatype, u64)>> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut pending = vec![file.superblock().root_address];
    while let Some(address) = pending.pop() {
        if !seen.insert(address) {
            continue;
        }
        // An unreadable object is no candidate.
        let Ok(object) = file.object(address) else { continue };
        if group::is_group(&object) {
            let links = group::links(file, &object).unwrap_or_default();
            pending.extend(links.into_iter().filter_map(|link| match link.target {
                LinkTarget::Hard { address } => Some(address),
                _ => None,
            }));
        } else if !object.has(kind::LAYOUT)
            && let Ok(datatype) = attribute::object_datatype(file, &object)
        {
            found.push((datatype, address));
        }
    }
    Ok(found)
}
