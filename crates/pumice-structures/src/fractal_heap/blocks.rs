//! Direct and indirect blocks of a heap: finding, walking, adding and dropping them.

use super::{FractalHeap, to_usize};
use pumice_format::UNDEFINED;
use pumice_format::fractal_heap::HeapChild;
use pumice_medium::zeroed;
use pumice_medium::{DataKind, MetadataIo};
use pumice_medium::{Error, Result};

/// The address of a root table that has no space yet: a commit allocates it, because until then it
/// may grow several times.
pub(super) const UNPLACED: u64 = u64::MAX - 1;

/// A direct block in memory.
pub(super) struct Block {
    pub(super) address: u64,
    /// All bytes of the block; a commit updates the prefix.
    pub(super) bytes: Vec<u8>,
    pub(super) dirty: bool,
}

/// An indirect block in memory.
pub(super) struct Table {
    pub(super) address: u64,
    pub(super) rows: u32,
    pub(super) children: Vec<HeapChild>,
    pub(super) dirty: bool,
}

/// The place of a direct block, existing or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    pub(super) address: u64,
    /// Its place in the heap's space.
    pub(super) start: u64,
    pub(super) size: u64,
    /// Bytes in the file: fewer than its size with filters.
    pub(super) stored: u64,
}

/// [`FractalHeap::for_each_block`] calls it for every direct block: with the length of its prefix
/// if the block exists, its place, and whether it is in a table.
type Visit<'a> = dyn FnMut(Option<u64>, Stored, bool) -> Result<()> + 'a;

/// The place of a new block: its table, its number there, its place in the heap and its size.
struct Slot {
    table: u64,
    number: usize,
    start: u64,
    size: u64,
}

impl FractalHeap {
    /// Loads the direct block that holds `offset` and says where in the heap it begins.
    pub(super) fn block_of(&mut self, offset: u64) -> Result<u64> {
        if let Some((&start, block)) = self.blocks.range(..=offset).next_back()
            && offset - start < block.bytes.len() as u64
        {
            return Ok(start);
        }
        let header = &self.header;
        if header.root_address == UNDEFINED {
            return Err(self.damaged("a root block", "none"));
        }
        if header.root_rows == 0 {
            let root = HeapChild { address: header.root_address, filtered: header.root_filtered };
            let size = header.starting_size;
            return self.load_block(root, 0, size).map(|()| 0);
        }
        let slot = self.locate(offset)?;
        let child = self.child(&slot);
        let Some(child) = child.filter(|child| child.address != UNDEFINED) else {
            return Err(self.damaged("an offset in a block", format!("{offset:#x}")));
        };
        self.load_block(child, slot.start, slot.size).map(|()| slot.start)
    }

    fn child(&self, slot: &Slot) -> Option<HeapChild> {
        self.tables.get(&slot.table)?.children.get(slot.number).copied()
    }

    /// The place of the direct block that holds `offset`, below the root table.
    fn locate(&mut self, offset: u64) -> Result<Slot> {
        let mut table = (self.header.root_address, 0u64, u32::from(self.header.root_rows));
        loop {
            let (address, start, rows) = table;
            let found = self.header.find(offset - start);
            let Some((row, column, first)) = found.filter(|&(row, ..)| row < rows) else {
                return Err(self.damaged("an offset inside the heap", format!("{offset:#x}")));
            };
            let number = row as usize * usize::from(self.header.width) + column as usize;
            self.load_table(address, start, rows)?;
            let begin = start.saturating_add(first);
            if self.header.is_direct(row) {
                let size = self.header.block_size(row).unwrap_or(u64::MAX);
                return Ok(Slot { table: start, number, start: begin, size });
            }
            let slot = Slot { table: start, number, start: begin, size: 0 };
            let child = self.child(&slot);
            let Some(child) = child.filter(|child| child.address != UNDEFINED) else {
                return Err(self.damaged("an offset in a block", format!("{offset:#x}")));
            };
            table = (child.address, begin, self.rows_below(row, rows)?);
        }
    }

    /// Rows of a table that stands in `row` of one of `rows`. It has fewer: every descent ends.
    fn rows_below(&self, row: u32, rows: u32) -> Result<u32> {
        let below = self.header.rows_below(row).filter(|&below| below > 0 && below < rows);
        below.ok_or_else(|| self.damaged("rows below a block", row))
    }

    fn load_table(&mut self, address: u64, start: u64, rows: u32) -> Result<()> {
        if let Some(table) = self.tables.get(&start) {
            if table.rows != rows {
                return Err(self.damaged("a table of other rows", rows));
            }
            return Ok(());
        }
        let length = self.header.indirect_length(rows, &self.context);
        let bytes = self.medium.read(address, length)?;
        let context = self.context.at(address);
        let children = self.header.decode_indirect(&bytes, start, rows, &context)?;
        self.tables.insert(start, Table { address, rows, children, dirty: false });
        Ok(())
    }

    fn load_block(&mut self, child: HeapChild, start: u64, size: u64) -> Result<()> {
        if self.blocks.contains_key(&start) {
            return Ok(());
        }
        let stored = child.filtered.map_or(size, |(stored, _)| stored);
        let mut bytes = self.medium.read(child.address, to_usize(stored))?;
        if let Some((_, mask)) = child.filtered {
            bytes = self.pipeline.decode(bytes, mask, to_usize(size))?;
        }
        self.header.check_direct(&bytes, start, &self.context.at(child.address))?;
        self.blocks.insert(start, Block { address: child.address, bytes, dirty: false });
        Ok(())
    }

    /// Calls `visit` for all places of direct blocks up to where the next new one goes.
    pub(super) fn for_each_block(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        if self.header.root_address == UNDEFINED {
            return Ok(());
        }
        let overhead = self.header.direct_overhead(self.context.sizes);
        if self.header.root_rows == 0 {
            let size = self.header.starting_size;
            let stored = self.header.root_filtered.map_or(size, |(stored, _)| stored);
            let root = Stored { address: self.header.root_address, start: 0, size, stored };
            return visit(Some(overhead), root, false);
        }
        let mut tables = vec![(self.header.root_address, 0u64, u32::from(self.header.root_rows))];
        while let Some((address, start, rows)) = tables.pop() {
            self.load_table(address, start, rows)?;
            let children = self.tables.get(&start).map(|table| table.children.clone());
            for (number, child) in children.unwrap_or_default().into_iter().enumerate() {
                let (row, column) = (number as u32 / u32::from(self.header.width), number as u64);
                let column = column % u64::from(self.header.width);
                let size = self.header.block_size(row).unwrap_or(u64::MAX);
                let first = self.header.row_start(row).unwrap_or(u64::MAX);
                let first = start.saturating_add(first).saturating_add(size.saturating_mul(column));
                if !self.header.is_direct(row) {
                    if child.address != UNDEFINED {
                        tables.push((child.address, first, self.rows_below(row, rows)?));
                    }
                    continue;
                }
                let stored = child.filtered.map_or(size, |(stored, _)| stored);
                let block = Stored { address: child.address, start: first, size, stored };
                if child.address != UNDEFINED {
                    visit(Some(overhead), block, true)?;
                } else if first < self.header.next_block {
                    visit(None, block, true)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a direct block with room for an object of `length` bytes.
    pub(super) fn add_block(&mut self, length: u64) -> Result<()> {
        let sizes = self.context.sizes;
        let overhead = self.header.direct_overhead(sizes);
        let size = (length + overhead).next_power_of_two().max(self.header.starting_size);
        if self.header.root_address == UNDEFINED && size == self.header.starting_size {
            let address = self.medium.allocate_for(DataKind::LocalHeap, size)?;
            self.header.root_address = address;
            self.header.managed_space = size;
            self.header.free_space = self.header.free_space.saturating_add(size - overhead);
            return self.enter_block(address, 0, size, false);
        }
        if self.header.root_rows == 0 {
            self.make_root(size)?;
        }
        let hole = self.space()?.take_hole(size);
        let slot = match hole {
            Some((_, start)) => self.locate(start)?,
            None => self.next_slot(size)?,
        };
        let address = self.medium.allocate_for(DataKind::LocalHeap, slot.size)?;
        if let Some(table) = self.tables.get_mut(&slot.table)
            && let Some(child) = table.children.get_mut(slot.number)
        {
            child.address = address;
            table.dirty = true;
        }
        if hole.is_none() {
            self.header.next_block = slot.start + slot.size;
        }
        self.enter_block(address, slot.start, slot.size, true)
    }

    fn enter_block(&mut self, address: u64, start: u64, size: u64, in_table: bool) -> Result<()> {
        let overhead = self.header.direct_overhead(self.context.sizes);
        let bytes = zeroed(usize::try_from(size).unwrap_or(usize::MAX))?;
        self.blocks.insert(start, Block { address, bytes, dirty: true });
        self.header.allocated_space = self.header.allocated_space.saturating_add(size);
        let stored = Stored { address, start, size, stored: size };
        self.space()?.add_block(stored, in_table, overhead, &[]);
        Ok(())
    }

    /// Makes an indirect root that can hold blocks of `size` bytes, above the direct root if any.
    fn make_root(&mut self, size: u64) -> Result<()> {
        let sizes = self.context.sizes;
        let needed = self.header.row_of_size(size) + 1;
        let rows = match u32::from(self.header.starting_rows) {
            0 => self.header.max_rows(),
            rows => rows,
        };
        let rows = rows.max(needed);
        let mut table = self.unplaced_table(rows);
        let old = self.header.root_address;
        let mut covered = 0;
        self.header.next_block = 0;
        if old != UNDEFINED {
            if let Some(first) = table.children.first_mut() {
                first.address = old;
            }
            covered = self.header.starting_size - self.header.direct_overhead(sizes);
            self.header.next_block = self.header.starting_size;
            self.space()?.move_into_table();
        }
        self.header.root_address = table.address;
        self.header.root_rows = rows as u16;
        self.header.managed_space = self.header.row_start(rows).unwrap_or(u64::MAX);
        let more = self.header.capacity(rows, sizes).saturating_sub(covered);
        self.header.free_space = self.header.free_space.saturating_add(more);
        self.tables.insert(0, table);
        Ok(())
    }

    fn unplaced_table(&self, rows: u32) -> Table {
        let count = rows as usize * usize::from(self.header.width);
        let children = vec![HeapChild { address: UNDEFINED, filtered: None }; count];
        Table { address: UNPLACED, rows, children, dirty: true }
    }

    fn new_table(&mut self, rows: u32) -> Result<Table> {
        let length = self.header.indirect_length(rows, &self.context);
        let address = self.medium.allocate(length as u64)?;
        Ok(Table { address, ..self.unplaced_table(rows) })
    }

    /// Gives the root table a place, if it has none.
    pub(super) fn place_root(&mut self) -> Result<()> {
        if self.header.root_address != UNPLACED {
            return Ok(());
        }
        let rows = u32::from(self.header.root_rows);
        let length = self.header.indirect_length(rows, &self.context);
        let address = self.medium.allocate(length as u64)?;
        self.header.root_address = address;
        if let Some(root) = self.tables.get_mut(&0) {
            root.address = address;
        }
        Ok(())
    }

    /// The next place for a block of at least `size` bytes; tables on the way are made.
    fn next_slot(&mut self, size: u64) -> Result<Slot> {
        let needed = self.header.row_of_size(size);
        let mut at = self.header.next_block;
        'root: loop {
            let mut table = (self.header.root_address, 0u64, u32::from(self.header.root_rows));
            loop {
                let (address, start, rows) = table;
                self.load_table(address, start, rows)?;
                let found = self.header.find(at - start);
                let Some((row, column, first)) = found else {
                    return Err(Error::Unsupported("a larger fractal heap".into()));
                };
                let row_start = |row| self.header.row_start(row).unwrap_or(u64::MAX);
                if row >= rows {
                    match start {
                        0 => self.grow_root(row.max(needed))?,
                        start => at = start.saturating_add(row_start(rows)),
                    }
                    continue 'root;
                }
                let number = row as usize * usize::from(self.header.width) + column as usize;
                let begin = start.saturating_add(first);
                if self.header.is_direct(row) {
                    if row >= needed {
                        let size = self.header.block_size(row).unwrap_or(u64::MAX);
                        return Ok(Slot { table: start, number, start: begin, size });
                    }
                    at = start.saturating_add(row_start(needed));
                    continue;
                }
                let below = self.rows_below(row, rows)?;
                if below <= needed {
                    at = start.saturating_add(row_start(row + 1));
                    continue;
                }
                let slot = Slot { table: start, number, start: begin, size: 0 };
                table = (self.child_table(&slot, below)?, begin, below);
                at = at.max(begin);
            }
        }
    }

    /// The table in a slot, created if it does not exist.
    fn child_table(&mut self, slot: &Slot, rows: u32) -> Result<u64> {
        if let Some(child) = self.child(slot).filter(|child| child.address != UNDEFINED) {
            return Ok(child.address);
        }
        let made = self.new_table(rows)?;
        let address = made.address;
        if let Some(table) = self.tables.get_mut(&slot.table)
            && let Some(child) = table.children.get_mut(slot.number)
        {
            child.address = address;
            table.dirty = true;
        }
        self.tables.insert(slot.start, made);
        Ok(address)
    }

    /// Gives the root more rows: at least up to `row`. It moves.
    fn grow_root(&mut self, row: u32) -> Result<()> {
        let old = u32::from(self.header.root_rows);
        let rows = (2 * old).min(self.header.max_rows()).max(row + 1);
        if rows > self.header.max_rows() {
            return Err(Error::Unsupported("a larger fractal heap".into()));
        }
        let mut table = self.unplaced_table(rows);
        if let Some(root) = self.tables.remove(&0) {
            for (new, old) in table.children.iter_mut().zip(&root.children) {
                *new = *old;
            }
            if root.address != UNPLACED {
                let length = self.header.indirect_length(old, &self.context);
                self.medium.free(root.address, length as u64);
            }
        }
        let sizes = self.context.sizes;
        let more = self.header.capacity(rows, sizes) - self.header.capacity(old, sizes);
        self.header.free_space = self.header.free_space.saturating_add(more);
        self.header.managed_space = self.header.row_start(rows).unwrap_or(u64::MAX);
        self.header.root_address = table.address;
        self.header.root_rows = rows as u16;
        self.tables.insert(0, table);
        Ok(())
    }

    /// Gives back the space of a block in a table that has no object left.
    pub(super) fn drop_block(&mut self, start: u64) -> Result<()> {
        let slot = self.locate(start)?;
        let Some(table) = self.tables.get_mut(&slot.table) else { return Ok(()) };
        let Some(child) = table.children.get_mut(slot.number) else { return Ok(()) };
        let address = std::mem::replace(&mut child.address, UNDEFINED);
        table.dirty = true;
        self.blocks.remove(&start);
        self.header.allocated_space = self.header.allocated_space.saturating_sub(slot.size);
        self.medium.free(address, slot.size);
        Ok(())
    }
}
