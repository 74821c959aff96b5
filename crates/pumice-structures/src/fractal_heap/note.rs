//! The note of free space that a heap keeps in the file: libhdf5's free-space manager of the heap.
//!
//! Every commit of a changed heap stores it anew, in its place as long as it fits; blocks that are
//! written before a commit are without it, since it would move again and again. It lists free
//! ranges of direct blocks. Offsets of freed blocks are not listed: libhdf5 goes on behind the last
//! block, and a survey finds them again.

use super::{FractalHeap, to_usize};
use pumice_format::UNDEFINED;
use pumice_format::free_space::{Manager, SIMPLE, Section};
use pumice_medium::Result;
use pumice_medium::{DataKind, MetadataIo};

/// The blocks of a note: its header and its list, each with its bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Note {
    header: Option<(u64, u64)>,
    list: Option<(u64, u64)>,
}

impl Note {
    /// All blocks that there are.
    pub(super) fn blocks(self) -> impl Iterator<Item = (u64, u64)> {
        self.header.into_iter().chain(self.list)
    }
}

impl FractalHeap {
    /// The note that the file has.
    pub(super) fn stored_note(&self) -> Result<Note> {
        let address = self.header.free_space_address;
        if address == UNDEFINED {
            return Ok(Note::default());
        }
        let length = Manager::encoded_length(self.context.sizes);
        let manager =
            Manager::decode(&self.medium.read(address, length)?, &self.context.at(address))?;
        let mut note = Note { header: Some((address, length as u64)), list: None };
        if manager.list_address != UNDEFINED {
            let list = self.medium.read(manager.list_address, to_usize(manager.list_length))?;
            manager.check_list(&list, &self.context.at(manager.list_address))?;
            let room = manager.list_room.max(manager.list_length);
            note.list = Some((manager.list_address, room));
        }
        Ok(note)
    }

    /// Stages the free-space manager, or gives the old one back.
    pub(super) fn stage_note(&mut self) -> Result<()> {
        // Without a survey, nothing has changed within blocks.
        let Some(space) = &self.space else { return Ok(()) };
        let section = |(offset, size)| Section { size, offset, class: SIMPLE };
        let mut sections: Vec<Section> = space.ranges().map(section).collect();
        sections.sort_unstable();
        // A note that cannot be read is left in the file.
        let mut note = self.note.unwrap_or_else(|| self.stored_note().unwrap_or_default());
        if sections.is_empty() || self.header.objects[0] == 0 {
            note.blocks().for_each(|(address, length)| self.medium.free(address, length));
            self.header.free_space_address = UNDEFINED;
            self.note = Some(Note::default());
            return Ok(());
        }
        let (sizes, bits) = (self.context.sizes, self.header.bits);
        let mut manager = Manager::of_heap(&sections, bits, self.header.max_direct_size, sizes);
        let (header, header_length) = match note.header {
            Some(block) => block,
            None => self.new_block(DataKind::Header, Manager::encoded_length(sizes) as u64)?,
        };
        let needed = manager.list_length;
        let fits = |&(_, room): &(u64, u64)| room >= needed && room / 2 <= needed;
        let (list, room) = match note.list.filter(fits) {
            Some(block) => block,
            None => {
                note.list.into_iter().for_each(|(address, room)| self.medium.free(address, room));
                self.new_block(DataKind::LocalHeap, needed)?
            }
        };
        (manager.list_address, manager.list_length, manager.list_room) = (list, room, room);
        let (mut bytes, mut listed) = (Vec::new(), Vec::new());
        manager.encode(sizes, &mut bytes);
        manager.encode_sections(header, &sections, sizes, &mut listed);
        self.medium.stage(header, bytes);
        self.medium.stage(list, listed);
        self.header.free_space_address = header;
        (note.header, note.list) = (Some((header, header_length)), Some((list, room)));
        self.note = Some(note);
        Ok(())
    }

    fn new_block(&self, kind: DataKind, length: u64) -> Result<(u64, u64)> {
        Ok((self.medium.allocate_for(kind, length)?, length))
    }
}
