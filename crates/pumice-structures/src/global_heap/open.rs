//! A collection in memory to which objects are added.

use super::recent::Recent;
use super::write::lost;
use pumice_bytes::Writer as _;
use pumice_format::Context;
use pumice_format::global_heap::{self, Collection, MAX_INDEX};
use pumice_medium::Result;

/// The collection that objects are added to.
pub(super) struct Open {
    pub(super) address: u64,
    pub(super) bytes: Vec<u8>,
    /// The offset of its free space.
    pub(super) used: usize,
    /// The index of the next object.
    pub(super) next: u32,
    /// Whether committed metadata may refer to it.
    pub(super) committed: bool,
    pub(super) dirty: bool,
    pub(super) recent: Recent,
}

impl Open {
    /// A collection without some of its objects, whose indexes ascend. The other objects move to
    /// its beginning.
    pub(super) fn without(
        address: u64,
        bytes: &[u8],
        gone: &[u16],
        context: &Context,
    ) -> Result<Self> {
        let objects = Collection::decode(bytes, context)?;
        let header = global_heap::object_length(0, context);
        let mut kept = Vec::with_capacity(bytes.len());
        global_heap::put_header(bytes.len() as u64, context, &mut kept);
        let mut last = 0;
        let stays = |index: &u16| gone.binary_search(index).is_err();
        for (index, range) in objects.iter().filter(|(index, _)| stays(index)) {
            let length = global_heap::object_length(range.len(), context);
            let start = range.start.saturating_sub(header);
            let whole = bytes.get(start..).unwrap_or_default();
            let part = &whole[..length.min(whole.len())];
            kept.put_bytes(part);
            kept.put_zeros(length - part.len());
            last = last.max(index);
        }
        let used = kept.len();
        let free = bytes.len().checked_sub(used).ok_or_else(lost)?;
        global_heap::put_free(free, context, &mut kept);
        let next = u32::from(last) + 1;
        let recent = Recent::new(next, false);
        Ok(Self { address, bytes: kept, used, next, committed: true, dirty: true, recent })
    }

    /// Takes objects that came since the last commit out.
    pub(super) fn compact(&mut self, gone: &[u16], context: &Context) -> Result<()> {
        let left = Self::without(self.address, &self.bytes, gone, &context.at(self.address))?;
        self.recent.remove(gone);
        (self.bytes, self.used, self.next) = (left.bytes, left.used, left.next);
        self.dirty = true;
        Ok(())
    }

    pub(super) fn has_room(&self, need: usize) -> bool {
        self.next <= u32::from(MAX_INDEX) && self.bytes.len() - self.used >= need
    }

    /// Adds an object that takes `need` bytes, for which there is room.
    pub(super) fn add(&mut self, object: &[u8], need: usize, context: &Context) -> u32 {
        let index = self.next;
        let free = self.bytes.get_mut(self.used..).unwrap_or_default();
        global_heap::write_object(index as u16, object, context, free);
        // Behind it, the header of the free space; the rest is ignored.
        global_heap::write_free(context, free.get_mut(need..).unwrap_or_default());
        (self.used, self.dirty) = (self.used + need, true);
        self.next += 1;
        index
    }
}
