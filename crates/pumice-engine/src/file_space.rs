//! The space of a file: its strategy, and free space that is stored from one opening to the next in
//! libhdf5's free-space managers.
//!
//! While the file is open, only the allocator knows its free ranges. From the first commit on the
//! file names no free-space managers, because their contents would become wrong. Closing the file
//! stores them, in a commit of its own after the one that cut the free tail. A program that ends in
//! between loses free space, never data.

use crate::object::Object;
use crate::{Error, Result};
use pumice_bytes::DecodeError;
use pumice_format::free_space::{Client, LARGE, Manager, SIMPLE, SMALL, Section};
use pumice_format::messages::{FileSpaceInfo, FileSpaceStrategy, Message, kind};
use pumice_format::object_header::{
    MESSAGE_DONT_SHARE, MESSAGE_MARK_IF_UNKNOWN, ObjectHeader, RawMessage,
};
use pumice_format::{Context, Sizes, UNDEFINED};
use pumice_medium::Medium;
use pumice_medium::MetadataIo;
use pumice_medium::allocator::{FreeRange, Purpose, Rules};
use std::sync::Arc;

/// Places of managers in the message: for metadata, for raw data, for pages.
const METADATA: usize = 0;
const RAW: usize = 2;
const PAGES: usize = 6;
/// The most managers.
const MANAGERS: usize = 12;

/// The smallest page that libhdf5 takes.
const LEAST_PAGE: u64 = 512;

/// Pages from this size on have all of their free metadata space remembered. See
/// [`FileSpace::listable`].
const ROOMY_PAGE: u64 = 4096;

/// How often room for lists is sought.
const ATTEMPTS: usize = 16;

/// The space of an open file.
pub(crate) struct FileSpace {
    info: FileSpaceInfo,
    /// The superblock extension, where settings are stored.
    extension: Option<Arc<Object>>,
    /// Blocks of the managers that the file names now.
    stored: Vec<(u64, u64)>,
}

impl FileSpace {
    /// Sets up the pages of a new file whose superblock ends at `end`, and makes the extension for
    /// unusual settings, with this header.
    pub(crate) fn create(
        medium: &Arc<Medium>,
        info: FileSpaceInfo,
        end: u64,
        mut header: ObjectHeader,
    ) -> Result<Self> {
        check(&info)?;
        if info == FileSpaceInfo::default() {
            return Ok(Self { info, extension: None, stored: Vec::new() });
        }
        let purpose = Some(Purpose::Metadata);
        match rules(&info) {
            Rules::Paged(page) => {
                medium.allocate(page - end)?;
                let rest = FreeRange { address: end, length: page - end, purpose };
                own(medium.begin_space(Rules::Paged(page), &[rest]))?;
            }
            other => own(medium.begin_space(other, &[]))?,
        }
        let message = Message::FileSpaceInfo(info.clone());
        let flags = MESSAGE_DONT_SHARE | MESSAGE_MARK_IF_UNKNOWN;
        header.messages.push(message.to_raw(medium.sizes(), flags)?);
        let extension = Some(Arc::new(Object::create_sized(medium, header, 0)?));
        Ok(Self { info, extension, stored: Vec::new() })
    }

    /// Adds a message to the superblock extension, which is made with this header if there is none.
    pub(crate) fn extend(
        &mut self,
        medium: &Arc<Medium>,
        mut header: ObjectHeader,
        message: RawMessage,
    ) -> Result<()> {
        if let Some(extension) = &self.extension {
            return extension.push(message);
        }
        header.messages.push(message);
        self.extension = Some(Arc::new(Object::create_sized(medium, header, 0)?));
        Ok(())
    }

    /// Reads the free-space managers of a file that is opened for editing, and its superblock
    /// extension, if that is to be changed.
    pub(crate) fn open(
        medium: &Arc<Medium>,
        info: Option<FileSpaceInfo>,
        extension: Option<u64>,
    ) -> Result<Self> {
        let object = |address| Object::load(medium, address).map(Arc::new);
        let extension = extension.map(object).transpose()?;
        let Some(info) = info else {
            return Ok(Self { info: Default::default(), extension, stored: Vec::new() });
        };
        check(&info)?;
        let mut space = Self { info, extension, stored: Vec::new() };
        let mut free = Vec::new();
        for (place, &address) in space.info.managers.iter().enumerate() {
            if address != UNDEFINED {
                load(medium, place, address, &mut free, &mut space.stored)?;
            }
        }
        // In files with short lengths, libhdf5 misreads its own lists and stores what it read.
        let end = medium.free_ranges().1;
        let inside = |range: &FreeRange| {
            range.address.checked_add(range.length).is_some_and(|last| last <= end)
        };
        if medium.sizes().length < 8 && !free.iter().all(inside) {
            free.clear();
        }
        medium.begin_space(rules(&space.info), &free)?;
        Ok(space)
    }

    /// The settings.
    pub(crate) fn info(&self) -> &FileSpaceInfo {
        &self.info
    }

    /// The address of the superblock extension.
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

    /// Puts the driver information into the extension, and stages it.
    pub(crate) fn set_driver(&self, body: Vec<u8>) -> Result<()> {
        if let Some(extension) = &self.extension {
            extension.set(kind::DRIVER_INFO, 0, body)?;
        }
        self.stage()
    }

    fn stage(&self) -> Result<()> {
        self.extension.as_ref().map_or(Ok(()), |extension| extension.stage())
    }

    /// Whether free space is neither remembered nor bound to pages.
    pub(crate) fn is_forgotten(&self) -> bool {
        !self.info.persist && self.info.strategy != FileSpaceStrategy::Paged
    }

    /// Whether closing the file stores free space; at most once.
    pub(crate) fn remembers(&self) -> bool {
        self.info.persist && self.extension.is_some() && self.stored.is_empty()
    }

    /// Stages managers of all free ranges. Nothing may be given back before the next commit.
    pub(crate) fn remember(&mut self, medium: &Medium) -> Result<()> {
        let mut rooms = Vec::new();
        for place in [METADATA, RAW, PAGES] {
            let sections = self.sections(medium, place);
            if !sections.is_empty() {
                let header_length = Manager::encoded_length(medium.sizes()) as u64;
                let header = medium.allocate_at_end(header_length)?;
                self.stored.push((header, header_length));
                let length = manager(&sections, medium).list_length;
                rooms.push(Room { place, header, list: medium.allocate_at_end(length)?, length });
            }
        }
        self.fit(medium, &mut rooms)?;
        self.info.managers = vec![UNDEFINED; MANAGERS];
        for room in rooms {
            let sections = self.sections(medium, room.place);
            let mut manager = manager(&sections, medium);
            // The lists could not be made to fit: free space is lost, which harms nothing.
            if manager.list_length > room.length {
                continue;
            }
            (manager.list_address, manager.list_room) = (room.list, room.length);
            manager.list_length = room.length;
            let (mut header, mut list) = (Vec::new(), Vec::new());
            manager.encode(medium.sizes(), &mut header);
            manager.encode_sections(room.header, &sections, medium.sizes(), &mut list);
            medium.stage(room.header, header);
            medium.stage(room.list, list);
            self.stored.push((room.list, room.length));
            if let Some(address) = self.info.managers.get_mut(room.place) {
                *address = room.header;
            }
        }
        self.info.end_before_managers = medium.free_ranges().1;
        self.store(medium)?;
        self.stage()
    }

    /// Makes rooms as long as their lists. In a paged file, taking room changes what is free. If
    /// that does not come to an end, a list is a little longer than its sections need.
    fn fit(&self, medium: &Medium, rooms: &mut [Room]) -> Result<()> {
        for attempt in 0..ATTEMPTS {
            let mut fits = true;
            for room in rooms.iter_mut() {
                let needed = manager(&self.sections(medium, room.place), medium).list_length;
                if needed == room.length || (attempt + 1 == ATTEMPTS && needed < room.length) {
                    continue;
                }
                fits = false;
                medium.free(room.list, room.length);
                // From the middle on only longer.
                room.length = if attempt < ATTEMPTS / 2 { needed } else { needed + 64 };
                room.list = medium.allocate_at_end(room.length)?;
            }
            if fits {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The free sections of one manager, sorted.
    fn sections(&self, medium: &Medium, place: usize) -> Vec<Section> {
        let paged = self.info.strategy == FileSpaceStrategy::Paged;
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
        self.listable(sections, place, medium.sizes())
    }

    /// The largest of sorted sections, as many as the file can name.
    ///
    /// - The sum of their sizes is a length of the file.
    /// - In small pages, the list of metadata sections fits well into the largest of them. If
    ///   libhdf5 finds no place for that list, it takes a page; the list of pages grows and needs a
    ///   new place, the list of metadata sections grows in turn, and closing the file may never
    ///   end.
    fn listable(&self, mut sections: Vec<Section>, place: usize, sizes: Sizes) -> Vec<Section> {
        let most = u64::MAX >> (64 - 8 * u32::from(sizes.length.clamp(1, 8)));
        let mut left = most;
        let mut fits = |section: &Section| left.checked_sub(section.size).map(|rest| left = rest);
        let mut kept: Vec<bool> = sections.iter().rev().map(|one| fits(one).is_some()).collect();
        sections.retain(|_| kept.pop().unwrap_or(false));
        let page = self.info.page_size;
        let paged = self.info.strategy == FileSpaceStrategy::Paged;
        if paged && place == METADATA && page < ROOMY_PAGE {
            let room = sections.last().map_or(0, |largest| largest.size / 2);
            let length = |from: usize| Manager::of_file(&sections[from..], sizes).list_length;
            let all: Vec<usize> = (0..sections.len()).collect();
            let first = all.partition_point(|&from| length(from) > room);
            sections.drain(..first);
        }
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

/// The places of a manager's header and list.
struct Room {
    place: usize,
    header: u64,
    list: u64,
    length: u64,
}

fn manager(sections: &[Section], medium: &Medium) -> Manager {
    Manager::of_file(sections, medium.sizes())
}

/// Reads a manager's free ranges, and notes its own blocks.
pub(crate) fn load(
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
        let what = format!("a page has 512 to 2^30 bytes, not {page}");
        return Err(crate::Error::Invalid(what));
    }
    let managed =
        matches!(info.strategy, FileSpaceStrategy::Paged | FileSpaceStrategy::FreeSpaceManagers);
    if info.persist && !managed {
        let what =
            "free space can be remembered only with the strategies FreeSpaceManagers and Paged";
        return Err(crate::Error::Invalid(what.into()));
    }
    Ok(())
}

/// Maps an error of free space in a new file to one of this program: the file cannot be at fault.
fn own(begun: Result<()>) -> Result<()> {
    begun.map_err(|error| Error::Internal(format!("the free space of a new file: {error}")))
}
