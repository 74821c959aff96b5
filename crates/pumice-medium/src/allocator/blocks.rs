//! Blocks from which small ranges of one purpose are cut, so that metadata lies beside metadata and
//! raw data beside raw data: libhdf5's aggregators, with the same sizes and places.
//!
//! Invariant: the rest of a block is neither free nor taken, and lies below the end of the file.

/// The block that ranges of one purpose come from now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Block {
    /// Bytes that are set aside at a time.
    step: u64,
    /// The address of the rest.
    address: u64,
    /// Its bytes.
    left: u64,
    /// Bytes that were set aside in one piece, used ones included.
    total: u64,
}

impl Block {
    /// Whether the file ends with this block, even if it is used up.
    fn ends_at(&self, end: u64) -> bool {
        self.total > 0 && self.address + self.left == end
    }

    fn cut(&mut self, length: u64) -> u64 {
        let address = self.address;
        self.address += length;
        self.left -= length;
        address
    }

    /// Removes and returns the rest.
    fn empty(&mut self) -> Option<(u64, u64)> {
        let rest = (self.left > 0).then_some((self.address, self.left));
        (self.address, self.left, self.total) = (0, 0, 0);
        rest
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// The address of the range.
    Taken(u64),
    /// The caller takes this many bytes of new space at the end and passes them to [`Blocks::add`].
    Needs(u64),
    /// The caller takes new space for it at the end; no block is concerned.
    Apart,
}

/// A block for metadata, one for raw data.
#[derive(Debug, Default)]
pub(super) struct Blocks([Block; 2]);

impl Blocks {
    /// Blocks of these sizes, for metadata and for raw data.
    pub(super) fn new(metadata: u64, raw: u64) -> Self {
        Self([metadata, raw].map(|step| Block { step, ..Block::default() }))
    }

    /// Begins the block of metadata, of which `taken` bytes are used. Returns the new end of the
    /// file.
    pub(super) fn begin(&mut self, taken: u64) -> u64 {
        let block = &mut self.0[0];
        if block.step <= taken {
            return taken;
        }
        (block.address, block.left, block.total) = (taken, block.step - taken, block.step);
        block.step
    }

    /// Cuts `length` bytes off the block of a set, if it has them, or makes it longer where it is
    /// the last of the file.
    pub(super) fn cut(&mut self, set: usize, length: u64, end: &mut u64) -> Option<Cut> {
        let block = &mut self.0[set];
        if length <= block.left {
            return Some(Cut::Taken(block.cut(length)));
        }
        if !block.ends_at(*end) {
            return Some(if length >= block.step { Cut::Apart } else { Cut::Needs(block.step) });
        }
        // A range too long for a block goes past it: the rest stays.
        let more = if length >= block.step { length } else { block.step };
        *end = end.checked_add(more)?;
        block.left += more;
        block.total += more;
        Some(Cut::Taken(block.cut(length)))
    }

    /// Puts a new block into the place of a set's old one, and returns the rest of that.
    pub(super) fn add(&mut self, set: usize, address: u64) -> Option<(u64, u64)> {
        let block = &mut self.0[set];
        let rest = block.empty();
        (block.address, block.left, block.total) = (address, block.step, block.step);
        rest
    }

    /// Gives up the other set's block if it ends the file and has provided more than its usual
    /// size. Returns its rest.
    pub(super) fn give_way(&mut self, set: usize, end: u64) -> Option<(u64, u64)> {
        let block = &mut self.0[1 - set];
        let served = block.total - block.left >= block.step;
        if block.left > 0 && block.ends_at(end) && served { block.empty() } else { None }
    }

    /// Gives up both blocks, and returns the rest of each.
    pub(super) fn release(&mut self) -> impl Iterator<Item = (usize, (u64, u64))> {
        let rests = self.0.each_mut().map(Block::empty);
        *self = Self::default();
        rests.into_iter().enumerate().filter_map(|(set, rest)| Some((set, rest?)))
    }

    /// Whether a range has bytes of the rest of a block.
    pub(super) fn overlaps(&self, address: u64, end: u64) -> bool {
        let left = |block: &Block| block.address < end && address < block.address + block.left;
        self.0.iter().any(|block| block.left > 0 && left(block))
    }

    /// Bytes that are left in blocks.
    #[cfg(test)]
    pub(super) fn left(&self) -> u64 {
        self.0.iter().map(|block| block.left).sum()
    }
}
