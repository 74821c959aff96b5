//! Chunk indexes: from a chunk's coordinates to its place in the file.
//!
//! A [`ChunkIndex`] is the index that a layout message names, in memory. Its blocks, pages and
//! nodes are read when they are first needed, kept until they are [trimmed](ChunkIndex::trim), and
//! written by [`commit`](ChunkIndex::commit): only changed ones, children before parents, the
//! header last. All kinds pass one test suite (`tests/it/index.rs`).
//!
//! | kind | when chosen | on disk |
//! |---|---|---|
//! | single | one chunk that is the whole maximum extent | in the layout message |
//! | implicit | a limited extent, allocated early, without filters | nothing: chunks stand one after another |
//! | fixed array | a limited extent | header, one data block |
//! | extensible array | one unlimited axis | header, index block, super blocks, data blocks |
//! | version 2 B-tree | several unlimited axes | header, nodes |
//! | version 1 B-tree | in files for HDF5 1.8 and older | nodes |
//!
//! Invariants: a block is in memory at most once, and a block with two parents is refused, so that
//! no file can make an index larger in memory than the file itself or lead it in circles. An index
//! knows nothing of the chunks' bytes: it neither allocates nor frees them.
//!
//! ```
//! use pumice_structures::index::{ChunkIndex, IndexKind, IndexShape};
//! # use pumice_medium::MetadataIo;
//! # use pumice_format::{Sizes, index::{ChunkRecord, RecordFormat}};
//! # fn demo(io: &dyn MetadataIo) -> pumice_medium::Result<()> {
//! let (extent, chunk) = ([100, 40], [10, 10]);
//! let kind = ChunkIndex::choose(&extent, &[u64::MAX, 40], &chunk);
//! assert_eq!(kind, IndexKind::ExtensibleArray);
//!
//! let shape = IndexShape::new(&extent, &[u64::MAX, 40], &chunk)?;
//! let format = RecordFormat::plain(io.sizes(), 400);
//! let mut index = ChunkIndex::create(kind, format, shape.clone())?;
//! index.insert(io, &[3, 2], ChunkRecord::dense(0x1000, 400))?;
//! let header = index.commit(io)?;
//!
//! let mut index = ChunkIndex::open(kind, header, format, shape, io)?;
//! assert_eq!(index.lookup(io, &[3, 2])?, Some(ChunkRecord::dense(0x1000, 400)));
//! # Ok(())
//! # }
//! ```

mod btree1;
mod entries;
mod extensible_array;
mod fixed_array;
mod implicit;
mod shape;
mod single;
mod tree;

pub use entries::Claims;
pub use shape::{IndexKind, IndexShape};

use btree1::BTree1;
use extensible_array::ExtensibleArray;
use fixed_array::FixedArray;
use implicit::Implicit;
use pumice_format::UNDEFINED;
use pumice_format::index::extensible_array::ExtensibleArrayParameters;
use pumice_format::index::fixed_array::PAGE_BITS;
use pumice_format::index::tree::TreeParameters;
use pumice_format::index::{ChunkRecord, RecordFormat};
use pumice_medium::{Error, Result};
use pumice_medium::{MetadataIo, OfIndex};
use single::Single;
use std::ops::ControlFlow;
use tree::Tree;

/// Called by [`ChunkIndex::for_each`] for every stored chunk.
pub type Visit<'a> = dyn FnMut(&[u64], &ChunkRecord) -> Result<ControlFlow<()>> + 'a;

/// A chunk index of any kind.
///
/// ```
/// use pumice_structures::index::{ChunkIndex, IndexKind, IndexShape};
/// use pumice_format::{Sizes, index::RecordFormat};
/// let shape = IndexShape::new(&[50], &[50], &[5])?;
/// let format = RecordFormat::structured(Sizes::default(), 2, false, 20);
/// let index = ChunkIndex::create(IndexKind::FixedArray, format, shape)?;
/// assert_eq!(index.kind(), IndexKind::FixedArray);
/// # Ok::<(), pumice_medium::Error>(())
/// ```
#[derive(Debug)]
pub struct ChunkIndex {
    shape: IndexShape,
    form: Form,
    trims: u64,
}

#[derive(Debug)]
enum Form {
    Single(Single),
    Implicit(Implicit),
    FixedArray(FixedArray),
    ExtensibleArray(ExtensibleArray),
    BTree2(Tree),
    BTree1(BTree1),
}

/// Calls the same method of an index's form.
macro_rules! delegate {
    ($form:expr, $inner:ident => $call:expr) => {
        match $form {
            Form::Single($inner) => $call,
            Form::Implicit($inner) => $call,
            Form::FixedArray($inner) => $call,
            Form::ExtensibleArray($inner) => $call,
            Form::BTree2($inner) => $call,
            Form::BTree1($inner) => $call,
        }
    };
}

/// The creation parameters of an index; each kind uses its own.
///
/// ```
/// let usual = pumice_structures::index::IndexParameters::default();
/// assert_eq!((usual.page_bits, usual.tree.node_size), (10, 2048));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexParameters {
    /// A page of a fixed array holds two to the power of this many entries.
    pub page_bits: u8,
    /// Parameters of extensible arrays.
    pub extensible: ExtensibleArrayParameters,
    /// Parameters of version 2 B-trees.
    pub tree: TreeParameters,
}

impl Default for IndexParameters {
    fn default() -> Self {
        let (extensible, tree) = Default::default();
        Self { page_bits: PAGE_BITS, extensible, tree }
    }
}

impl ChunkIndex {
    /// The kind of index for a dataset of these dimensions, in cells; `u64::MAX` is unlimited.
    pub fn choose(current: &[u64], maximum: &[u64], chunk: &[u64]) -> IndexKind {
        shape::choose(current, maximum, chunk)
    }

    /// A new index without chunks. Nothing is allocated before the first commit.
    pub fn create(kind: IndexKind, format: RecordFormat, shape: IndexShape) -> Result<Self> {
        Self::create_with(kind, IndexParameters::default(), format, shape)
    }

    /// [`create`](Self::create) with the parameters of a layout message. Fails if no index can be
    /// made with them.
    pub fn create_with(
        kind: IndexKind,
        parameters: IndexParameters,
        format: RecordFormat,
        shape: IndexShape,
    ) -> Result<Self> {
        let IndexParameters { page_bits, extensible, tree } = parameters;
        let form = match kind {
            IndexKind::Single => Form::Single(Single::new(format, &shape)),
            IndexKind::Implicit => Form::Implicit(Implicit::new(UNDEFINED, format, &shape)?),
            IndexKind::FixedArray => {
                Form::FixedArray(FixedArray::create(format, &shape, page_bits)?)
            }
            IndexKind::ExtensibleArray => {
                Form::ExtensibleArray(ExtensibleArray::create(format, &shape, extensible)?)
            }
            IndexKind::BTree2 => Form::BTree2(Tree::create(format, &shape, tree)?),
            IndexKind::BTree1 => Form::BTree1(BTree1::open(UNDEFINED, format, &shape)),
        };
        Ok(Self { shape, form, trims: 0 })
    }

    /// The index whose header is at `address`, or an empty one if that is undefined. For an
    /// implicit index, `address` is that of the first chunk. A single chunk has no header: use
    /// [`open_single`](Self::open_single).
    pub fn open(
        kind: IndexKind,
        address: u64,
        format: RecordFormat,
        shape: IndexShape,
        io: &dyn MetadataIo,
    ) -> Result<Self> {
        if kind == IndexKind::Implicit {
            let form = Form::Implicit(Implicit::open(address, format, &shape, io)?);
            return Ok(Self { shape, form, trims: 0 });
        }
        if address == UNDEFINED {
            return Self::create(kind, format, shape);
        }
        let form = match kind {
            IndexKind::Single | IndexKind::Implicit => {
                return Err(Error::Invalid("a single chunk has no index to open".into()));
            }
            IndexKind::FixedArray => {
                Form::FixedArray(FixedArray::open(address, format, &shape, io)?)
            }
            IndexKind::ExtensibleArray => {
                Form::ExtensibleArray(ExtensibleArray::open(address, format, &shape, io)?)
            }
            IndexKind::BTree2 => Form::BTree2(Tree::open(address, format, &shape, io)?),
            IndexKind::BTree1 => Form::BTree1(BTree1::open(address, format, &shape)),
        };
        Ok(Self { shape, form, trims: 0 })
    }

    /// The index of a dataset that is one chunk, as its layout message describes it.
    pub fn open_single(
        record: Option<ChunkRecord>,
        format: RecordFormat,
        shape: IndexShape,
    ) -> Result<Self> {
        let mut single = Single::new(format, &shape);
        if let Some(record) = record {
            single.set(record)?;
        }
        Ok(Self { shape, form: Form::Single(single), trims: 0 })
    }

    /// The kind of the index.
    pub fn kind(&self) -> IndexKind {
        match self.form {
            Form::Single(_) => IndexKind::Single,
            Form::Implicit(_) => IndexKind::Implicit,
            Form::FixedArray(_) => IndexKind::FixedArray,
            Form::ExtensibleArray(_) => IndexKind::ExtensibleArray,
            Form::BTree2(_) => IndexKind::BTree2,
            Form::BTree1(_) => IndexKind::BTree1,
        }
    }

    /// The creation parameters.
    pub fn parameters(&self) -> IndexParameters {
        let mut parameters = IndexParameters::default();
        match &self.form {
            Form::FixedArray(array) => parameters.page_bits = array.page_bits(),
            Form::ExtensibleArray(array) => parameters.extensible = array.parameters(),
            Form::BTree2(tree) => parameters.tree = tree.parameters(),
            Form::Single(_) | Form::Implicit(_) | Form::BTree1(_) => {}
        }
        parameters
    }

    /// Fails if chunks can be neither added nor taken away: if it is a B-tree of too small nodes.
    pub fn check_changeable(&self) -> Result<()> {
        match &self.form {
            Form::BTree2(tree) => tree.check_changeable(),
            _ => Ok(()),
        }
    }

    /// The format of its records.
    pub fn format(&self) -> &RecordFormat {
        delegate!(&self.form, form => form.format())
    }

    /// The shape of the index in chunks.
    pub fn shape(&self) -> &IndexShape {
        &self.shape
    }

    /// Takes the space of all chunks, if they have their places from the start and none yet.
    pub fn allocate(&mut self, io: &dyn MetadataIo) -> Result<()> {
        match &mut self.form {
            Form::Implicit(implicit) => implicit.allocate(io),
            _ => Ok(()),
        }
    }

    /// Allocates the header, so that the index is in the file before there is a chunk in it.
    pub fn place(&mut self, io: &dyn MetadataIo) -> Result<()> {
        match &mut self.form {
            Form::FixedArray(array) => array.place(io),
            Form::ExtensibleArray(array) => array.place(io),
            Form::BTree2(tree) => tree.place(io),
            Form::BTree1(tree) => tree.place(io),
            Form::Single(_) | Form::Implicit(_) => Ok(()),
        }
    }

    /// The record of a single-chunk index, which its layout message stores.
    pub fn single(&self) -> Option<&ChunkRecord> {
        match &self.form {
            Form::Single(single) => single.record(),
            _ => None,
        }
    }

    /// The record of the chunk at `coord`, if it is stored.
    pub fn lookup(&mut self, io: &dyn MetadataIo, coord: &[u64]) -> Result<Option<ChunkRecord>> {
        self.check_rank(coord)?;
        delegate!(&mut self.form, form => form.lookup(io, coord))
    }

    /// [`lookup`](Self::lookup) for many chunks, in their order.
    pub fn lookup_many<C: AsRef<[u64]>>(
        &mut self,
        io: &dyn MetadataIo,
        coords: &[C],
    ) -> Result<Vec<Option<ChunkRecord>>> {
        coords.iter().map(|coord| self.lookup(io, coord.as_ref())).collect()
    }

    /// Sets the record of the chunk at `coord`.
    pub fn insert(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
        record: ChunkRecord,
    ) -> Result<()> {
        self.check_rank(coord)?;
        delegate!(&mut self.form, form => form.insert(io, coord, &record))
    }

    /// Forgets the chunk at `coord`, and says where it was stored.
    pub fn remove(&mut self, io: &dyn MetadataIo, coord: &[u64]) -> Result<Option<ChunkRecord>> {
        self.check_rank(coord)?;
        delegate!(&mut self.form, form => form.remove(io, coord))
    }

    /// Calls `visit` for every stored chunk: trees in order of coordinates, arrays in order of
    /// slots, which is the same unless the unlimited axis is not the first.
    pub fn for_each(&mut self, io: &dyn MetadataIo, visit: &mut Visit<'_>) -> Result<()> {
        self.for_each_after(io, None, visit)
    }

    /// Visits, in the index's order, the stored chunks behind `after`, which need not be stored itself.
    pub fn for_each_after(
        &mut self,
        io: &dyn MetadataIo,
        after: Option<&[u64]>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        after.map_or(Ok(()), |after| self.check_rank(after))?;
        delegate!(&mut self.form, form => form.for_each(io, after, visit)).map(drop)
    }

    /// About how many bytes its blocks take in memory.
    pub fn memory(&self) -> usize {
        match &self.form {
            Form::FixedArray(array) => array.memory(),
            Form::ExtensibleArray(array) => array.memory(),
            Form::BTree2(tree) => tree.memory(),
            Form::BTree1(tree) => tree.memory(),
            Form::Single(_) | Form::Implicit(_) => 0,
        }
    }

    /// Drops blocks that have not changed since they were read or staged.
    pub fn trim(&mut self) {
        self.trims += 1;
        match &mut self.form {
            Form::FixedArray(array) => array.trim(),
            Form::ExtensibleArray(array) => array.trim(),
            Form::BTree2(tree) => tree.trim(),
            Form::BTree1(tree) => tree.trim(),
            Form::Single(_) | Form::Implicit(_) => {}
        }
    }

    /// Counts trims: a block that was read for the index before a trim may be older than the
    /// present one.
    pub fn trims(&self) -> u64 {
        self.trims
    }

    /// Sets a new extent, in chunks. Chunks outside of it stay until they are removed.
    pub fn resize(&mut self, current: &[u64]) -> Result<()> {
        self.check_rank(current)?;
        self.shape.resize(current);
        Ok(())
    }

    /// Stages every changed block, allocating new ones, and returns the address for the layout
    /// message: the header's, or the chunk's own if it is single. Undefined as long as nothing was
    /// ever inserted, unless the header was [placed](Self::place).
    pub fn commit(&mut self, io: &dyn MetadataIo) -> Result<u64> {
        delegate!(&mut self.form, form => form.commit(&OfIndex(io)))
    }

    /// Frees all blocks of the index, and leaves it empty. The chunks are the caller's.
    pub fn delete(&mut self, io: &dyn MetadataIo) -> Result<()> {
        delegate!(&mut self.form, form => form.delete(io))
    }

    /// Bytes of all blocks that are stored or will be at the next commit: the index size that
    /// `h5stat` reports.
    ///
    /// One difference: for an extensible array that was just opened, libhdf5 computes the index
    /// block before it knows how many super blocks there are, and so reports it too small by
    /// `29 * O` bytes with the usual parameters. This is the real size.
    pub fn storage_size(&mut self, io: &dyn MetadataIo) -> Result<u64> {
        delegate!(&mut self.form, form => form.storage_size(io))
    }

    fn check_rank(&self, coord: &[u64]) -> Result<()> {
        if coord.len() == self.shape.rank() {
            return Ok(());
        }
        Err(Error::RankMismatch(format!(
            "{} chunk coordinates for a dataset of rank {}",
            coord.len(),
            self.shape.rank()
        )))
    }
}
