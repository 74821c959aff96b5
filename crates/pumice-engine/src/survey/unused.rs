//! Ranges of a file that nothing refers to: space that earlier openings freed and did not remember.
//!
//! Everything below the root group is asked for its ranges ([`super::object`]): by links, committed
//! datatypes, references in elements and attributes, and global heap references of all elements
//! that may have them. The gaps are unused. A mistake would destroy data, so anything unknown is an
//! error, and no space is taken for unused: unknown messages, other classes of links, shared
//! messages, several files, structures that overlap. Elements are read only if they can refer to
//! something.

use super::Place;
use crate::copy::for_each_reference;
use crate::dataset::DatasetState;
use crate::file::File;
use crate::object::Object;
use crate::{Error, Result, attribute, group, reference, shared};
use pumice_format::UNDEFINED;
use pumice_format::messages::{Layout, LinkTarget, SharedLocation, kind};
use pumice_format::object_header::RawMessage;
use pumice_layout::Storage;
use pumice_medium::MetadataIo;
use pumice_types::{Datatype, Heaped};
use std::collections::HashSet;
use std::sync::Arc;

/// Messages whose use of space is known.
const UNDERSTOOD: [u16; 20] = [
    kind::NIL,
    kind::DATASPACE,
    kind::LINK_INFO,
    kind::DATATYPE,
    kind::FILL_VALUE_OLD,
    kind::FILL_VALUE,
    kind::LINK,
    kind::EXTERNAL_FILES,
    kind::LAYOUT,
    kind::GROUP_INFO,
    kind::PIPELINE,
    kind::ATTRIBUTE,
    kind::COMMENT,
    kind::MODIFICATION_TIME_OLD,
    kind::CONTINUATION,
    kind::SYMBOL_TABLE,
    kind::MODIFICATION_TIME,
    kind::ATTRIBUTE_INFO,
    kind::REFERENCE_COUNT,
    kind::STRUCTURED_PIPELINE,
];

/// The ranges below `end` that nothing refers to, addresses and lengths in order, in a file open
/// for reading. An error if that cannot be known for sure.
pub fn unused(file: &Arc<File>, end: u64) -> Result<Vec<(u64, u64)>> {
    let extension = file.extension();
    if extension.driver.is_some() || !extension.shared_messages.is_empty() {
        return Err(not_understood("several files, or shared messages"));
    }
    if file.superblock().extension_address != UNDEFINED {
        let object = Object::load(file.medium(), file.superblock().extension_address)?;
        let known = [kind::NIL, kind::BTREE_K, kind::FILE_SPACE_INFO, kind::CONTINUATION];
        check_kinds(&object, &known)?;
    }
    file.global_heap().watch();
    let mut search = Search::new(file);
    search.places.extend(super::file(file)?);
    while let Some(address) = search.pending.pop() {
        if search.seen.insert(address) {
            search.object(address)?;
        }
    }
    search.places.extend(super::global_heap(file));
    gaps(search.places, end)
}

fn not_understood(what: &str) -> Error {
    Error::Unsupported(format!("the unused space of a file with {what}"))
}

/// Fails for messages of other kinds than `known`.
fn check_kinds(object: &Object, known: &[u16]) -> Result<()> {
    match object.all_messages().iter().find(|message| !known.contains(&message.kind)) {
        None => Ok(()),
        Some(message) => {
            Err(not_understood(&format!("a message of kind {:#06x} in an object", message.kind)))
        }
    }
}

/// The gaps between ranges, which must not overlap.
fn gaps(mut places: Vec<Place>, end: u64) -> Result<Vec<(u64, u64)>> {
    places.retain(|place| place.length > 0);
    places.sort_unstable();
    let (mut at, mut gaps) = (0, Vec::new());
    for place in places {
        let upto = place.address.checked_add(place.length).filter(|&upto| upto <= end);
        let Some(upto) = upto.filter(|_| place.address >= at) else {
            return Err(not_understood("structures that overlap or lie beyond its end"));
        };
        if place.address > at {
            gaps.push((at, place.address - at));
        }
        at = upto;
    }
    if end > at {
        gaps.push((at, end - at));
    }
    Ok(gaps)
}

/// A walk through all that a file leads to.
struct Search<'a> {
    file: &'a Arc<File>,
    pending: Vec<u64>,
    seen: HashSet<u64>,
    places: Vec<Place>,
}

impl<'a> Search<'a> {
    fn new(file: &'a Arc<File>) -> Self {
        let pending = vec![file.superblock().root_address];
        Self { file, pending, seen: HashSet::new(), places: Vec::new() }
    }

    fn object(&mut self, address: u64) -> Result<()> {
        let file = self.file;
        let object = file.object(address)?;
        check_kinds(&object, &UNDERSTOOD)?;
        for message in object.all_messages().iter().filter(|message| message.is_shared()) {
            self.shared(message)?;
        }
        self.places.extend(super::object(file, &object)?);
        if group::is_group(&object) {
            self.links(&object)?;
        }
        if object.has(kind::LAYOUT) {
            self.dataset(&object)?;
        }
        for attribute in attribute::each(file, &object)? {
            let attribute = attribute?;
            self.pending.extend(attribute.committed);
            self.elements(&attribute.datatype, attribute.data)?;
        }
        Ok(())
    }

    /// Follows a message that stands in another object.
    fn shared(&mut self, message: &RawMessage) -> Result<()> {
        match SharedLocation::decode(&message.body, &shared::context(self.file, message))? {
            SharedLocation::Object { address } => self.pending.push(address),
            SharedLocation::Heap { .. } => return Err(not_understood("shared messages")),
        }
        Ok(())
    }

    fn links(&mut self, group: &Object) -> Result<()> {
        for link in group::links(self.file, group)? {
            match link.target {
                LinkTarget::Hard { address } => self.pending.push(address),
                LinkTarget::Soft { .. } | LinkTarget::External { .. } => {}
                LinkTarget::UserDefined { class, .. } => {
                    return Err(not_understood(&format!("links of class {class}")));
                }
            }
        }
        Ok(())
    }

    /// Follows the references of a dataset's elements, fill value and layout.
    fn dataset(&mut self, object: &Arc<Object>) -> Result<()> {
        let dataset = DatasetState::open(self.file, object)?;
        if let Some(raw) = object.message(kind::LAYOUT)
            && let Layout::Virtual { heap_address, heap_index } =
                Layout::decode(&raw.body, &object.context(&raw))?
            && heap_address != UNDEFINED
        {
            self.file.global_heap().object_at(heap_address, heap_index)?;
        }
        let datatype = dataset.datatype();
        if !datatype.has_varlen() && !datatype.refers_to_objects() {
            return Ok(());
        }
        if let Some(mut values) = dataset.fill_heaped()? {
            self.references(datatype, &mut values)?;
        }
        match &dataset.layout().storage {
            // The elements belong to other datasets.
            Storage::Virtual => Ok(()),
            Storage::Unreadable(reason) => Err(Error::Unsupported(reason.clone())),
            Storage::External(_) => Err(not_understood("references from external files")),
            _ => dataset.for_each_stored_block(&mut |block| {
                self.references(datatype, &mut dataset.read_heaped(block)?)
            }),
        }
    }

    /// Follows the references of an attribute's elements.
    fn elements(&mut self, datatype: &Datatype, data: Vec<u8>) -> Result<()> {
        let mut values = match datatype.has_varlen() {
            true => self.file.global_heap().load(datatype, data)?,
            false => Heaped { elements: data, heap: Vec::new() },
        };
        self.references(datatype, &mut values)
    }

    /// Follows references to objects.
    fn references(&mut self, datatype: &Datatype, values: &mut Heaped) -> Result<()> {
        let Heaped { elements, heap } = values;
        for_each_reference(datatype, elements, heap, &mut |class, element| {
            let class = Datatype::Reference(class.clone());
            let found = reference::references(self.file, &class, element)?;
            let here = found.into_iter().flatten().filter(|found| found.file.is_none());
            for found in here {
                if self.may_be_object(found.address)? {
                    self.pending.push(found.address);
                }
            }
            Ok(())
        })
    }

    /// Whether an object header may be at an address. References to deleted objects stay in a file.
    fn may_be_object(&self, address: u64) -> Result<bool> {
        if address == UNDEFINED || !self.file.medium().reaches(address, 16)? {
            return Ok(false);
        }
        let start = self.file.medium().read(address, 4)?;
        Ok(start == b"OHDR" || start.starts_with(&[1, 0]))
    }
}
