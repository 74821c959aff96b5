//! How room is found in the file: the strategy that it was made with, and free space that is
//! remembered from one opening to the next in libhdf5's free-space managers.
//!
//! As long as the file is open, free ranges are the allocator's business alone, and the file names
//! no managers from the first commit on: what they said would be wrong. Closing the file stores them
//! anew, in a commit of its own after the one that cut the file's free tail off. A program that ends
//! in between loses free space, never data.

use crate::Result;
use crate::allocator::{FreeRange, Purpose, Rules};
use crate::medium::Medium;
use crate::metadata::MetadataIo;
use crate::object::Object;
use pumice_bytes::DecodeError;
use pumice_format::free_space::{Client, LARGE, Manager, SIMPLE, SMALL, Section};
use pumice_format::messages::{FileSpaceInfo, FileSpaceStrategy, Message, kind};
use pumice_format::object_header::{MESSAGE_DONT_SHARE, MESSAGE_MARK_IF_UNKNOWN, ObjectHeader};
use pumice_format::{Context, UNDEFINED};
use std::sync::Arc;

/// Places of managers in the message: for metadata, for raw data, for pages.
const METADATA: usize = 0;
const RAW: usize = 2;
const PAGES: usize = 6;
/// How many there can be.
const MANAGERS: usize = 12;

/// The smallest page that libhdf5 takes.
const LEAST_PAGE: u64 = 512;

/// How room is found in an open file.
pub(crate) struct FileSpace {
    info: FileSpaceInfo,
    /// The superblock extension, where settings are stored.
    extension: Option<Arc<Object>>,
    /// Blocks of the managers that the file names now.
    stored: Vec<(u64, u64)>,
}

impl FileSpace {
    /// For a new file whose superblock ends at `end`: sets up its pages and makes the extension
    /// that has the settings, if they are not the usual ones.
    pub(crate) fn create(medium: &Arc<Medium>, info: FileSpaceInfo, end: u64) -> Result<Self> {
        check(&info)?;
        if info == FileSpaceInfo::default() {
            return Ok(Self { info, extension: None, stored: Vec::new() });
        }
        let purpose = Some(Purpose::Metadata);
        match rules(&info) {
            Rules::Paged(page) => {
                medium.allocate(page - end)?;
                let rest = FreeRange { address: end, length: page - end, purpose };
                medium.begin_space(Rules::Paged(page), &[rest])?;
            }
            other => medium.begin_space(other, &[])?,
        }
        let message = Message::FileSpaceInfo(info.clone());
        let flags = MESSAGE_DONT_SHARE | MESSAGE_MARK_IF_UNKNOWN;
        let mut header = ObjectHeader::new();
        header.messages.push(message.to_raw(medium.sizes(), flags)?);
        let extension = Some(Arc::new(Object::create(medium, header)?));
        Ok(Self { info, extension, stored: Vec::new() })
    }

    /// For a file that is opened for editing: reads its managers.
    pub(crate) fn open(
        medium: &Arc<Medium>,
        info: Option<FileSpaceInfo>,
        extension: u64,
    ) -> Result<Self> {
        let Some(info) = info else {
            return Ok(Self { info: Default::default(), extension: None, stored: Vec::new() });
        };
        check(&info)?;
        let extension = Some(Arc::new(Object::load(medium, extension)?));
        let mut space = Self { info, extension, stored: Vec::new() };
        let mut free = Vec::new();
        for (place, &address) in space.info.managers.iter().enumerate() {
            if address != UNDEFINED {
                load(medium, place, address, &mut free, &mut space.stored)?;
            }
        }
        medium.begin_space(rules(&space.info), &free)?;
        Ok(space)
    }

    /// The settings.
    pub(crate) fn info(&self) -> &FileSpaceInfo {
        &self.info
    }

    /// Where the superblock extension is.
    pub(crate) fn extension_address(&self) -> Option<u64> {
        self.extension.as_ref().map(|extension| extension.address())
    }

    /// Before a commit: the file names no managers any more.
    pub(crate) fn forget(&mut self, medium: &Medium) -> Result<()> {
        if self.stored.is_empty() {
            return self.stage();
        }
        for (address, length) in std::mem::take(&mut self.stored) {
            medium.free(address, length);
        }
        self.info.managers = Vec::new();
        self.info.end_before_managers = UNDEFINED;
        self.store(medium)?;
        self.stage()
    }

    fn stage(&self) -> Result<()> {
        self.extension.as_ref().map_or(Ok(()), |extension| extension.stage())
    }

    /// Whether closing the file stores anything.
    pub(crate) fn remembers(&self, medium: &Medium) -> bool {
        self.info.persist && self.extension.is_some() && medium.sizes().length == 8
    }

    /// Hands managers of all free ranges to the next commit. Nothing may be given back before it.
    pub(crate) fn remember(&mut self, medium: &Medium) -> Result<()> {
        let paged = self.info.strategy == FileSpaceStrategy::Paged;
        let places: Vec<_> = [METADATA, RAW, PAGES]
            .into_iter()
            .filter(|&place| !self.sections(medium, place, paged).is_empty())
            .collect();
        let header_length = Manager::encoded_length(medium.sizes()) as u64;
        let mut rooms = Vec::new();
        for place in places {
            let count = self.sections(medium, place, paged).len() as u64;
            // Taking space for the managers may split two ranges for each of them.
            let room = 64 + 25 * (count + 8);
            let (header, list) = (medium.allocate(header_length)?, medium.allocate(room)?);
            self.stored.extend([(header, header_length), (list, room)]);
            rooms.push((place, header, list, room));
        }
        self.info.managers = vec![UNDEFINED; MANAGERS];
        for (place, header, list, room) in rooms {
            let sections = self.sections(medium, place, paged);
            let mut manager = Manager::of_file(&sections).sized(&sections, medium.sizes());
            (manager.list_address, manager.list_room) = (list, room);
            let (mut header_bytes, mut bytes) = (Vec::new(), Vec::new());
            manager.encode(medium.sizes(), &mut header_bytes);
            manager.encode_sections(header, &sections, medium.sizes(), &mut bytes);
            bytes.resize(room as usize, 0);
            medium.stage(header, header_bytes);
            medium.stage(list, bytes);
            if let Some(address) = self.info.managers.get_mut(place) {
                *address = header;
            }
        }
        self.info.end_before_managers = medium.free_ranges().1;
        self.store(medium)?;
        self.stage()
    }

    /// The free sections of one manager, sorted.
    fn sections(&self, medium: &Medium, place: usize, paged: bool) -> Vec<Section> {
        let purpose = match place {
            METADATA => Some(Purpose::Metadata),
            RAW => Some(Purpose::Raw),
            _ => None,
        };
        let class = match (paged, place) {
            (false, _) => SIMPLE,
            (true, PAGES) => LARGE,
            (true, _) => SMALL,
        };
        let (ranges, _) = medium.free_ranges();
        let of_it = ranges.into_iter().filter(|range| range.purpose == purpose);
        let mut sections: Vec<_> = of_it
            .filter(|range| range.length >= self.info.threshold)
            .map(|range| Section { size: range.length, offset: range.address, class })
            .collect();
        sections.sort_unstable();
        sections
    }

    /// Puts the settings into the extension.
    fn store(&self, medium: &Medium) -> Result<()> {
        let Some(extension) = &self.extension else { return Ok(()) };
        let mut body = Vec::new();
        self.info.encode(medium.sizes(), &mut body);
        let flags = MESSAGE_DONT_SHARE | MESSAGE_MARK_IF_UNKNOWN;
        extension.set(kind::FILE_SPACE_INFO, flags, body)
    }
}

/// Reads a manager's free ranges, and notes its own blocks.
fn load(
    medium: &Medium,
    place: usize,
    address: u64,
    free: &mut Vec<FreeRange>,
    stored: &mut Vec<(u64, u64)>,
) -> Result<()> {
    let context = Context::new(medium.sizes());
    let length = Manager::encoded_length(medium.sizes());
    let manager = Manager::decode(&medium.read(address, length)?, &context.at(address))?;
    if manager.client != Client::File {
        let (expected, found) = ("a manager of file space", "one of a heap");
        return Err(DecodeError::new("free-space manager header", address, expected, found).into());
    }
    stored.push((address, length as u64));
    if manager.list_address == UNDEFINED {
        return Ok(());
    }
    let list = manager.list_address;
    let length = usize::try_from(manager.list_length).unwrap_or(usize::MAX);
    let bytes = medium.read(list, length)?;
    let purpose = match place {
        RAW | 3 => Some(Purpose::Raw),
        0..PAGES => Some(Purpose::Metadata),
        _ => None,
    };
    for section in manager.decode_sections(&bytes, address, &context.at(list))? {
        free.push(FreeRange { address: section.offset, length: section.size, purpose });
    }
    stored.push((list, manager.list_room.max(manager.list_length)));
    Ok(())
}

fn rules(info: &FileSpaceInfo) -> Rules {
    match info.strategy {
        FileSpaceStrategy::Paged => Rules::Paged(info.page_size),
        FileSpaceStrategy::FreeSpaceManagers if info.persist => Rules::ByPurpose,
        _ => Rules::Plain,
    }
}

fn check(info: &FileSpaceInfo) -> Result<()> {
    let page = info.page_size;
    if info.strategy == FileSpaceStrategy::Paged && !(LEAST_PAGE..=1 << 30).contains(&page) {
        let what = format!("pages of {page} bytes, not of 512 to 2^30");
        return Err(crate::Error::Invalid(what));
    }
    let managed =
        matches!(info.strategy, FileSpaceStrategy::Paged | FileSpaceStrategy::FreeSpaceManagers);
    if info.persist && !managed {
        let what = "free space that is remembered by a strategy without free-space managers";
        return Err(crate::Error::Invalid(what.into()));
    }
    Ok(())
}
