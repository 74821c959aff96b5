//! A dataset of a collective file, as one rank has it.
//!
//! A rank changes the chunks that it owns in a *bench*: a dataset of the same description in memory, whose cache
//! holds the changed chunks, and whose filters encode them.

use crate::{CollectiveError, Result};
use pumice::{AllocationTime, Context, Dataset, DatasetBuilder, File, LayoutKind, MemoryStore};
use pumice_format::index::ChunkRecord;
use pumice_space::{ChunkGrid, Dims};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The name of the dataset in a bench.
pub(crate) const NAME: &str = "bench";

/// What a rank did to a chunk since the last flush.
pub(crate) enum Touched {
    /// It has new values, in what was brought of it.
    Written {
        /// Whether there was anything to bring.
        brought: bool,
    },
    /// Only erased: the chunk as it was, if it was stored.
    Erased(Option<(Vec<u8>, ChunkRecord)>),
}

pub(crate) struct Entry {
    pub(crate) path: String,
    /// The dataset of the file; rank 0 alone has it.
    pub(crate) root: Option<Dataset>,
    pub(crate) bench: Dataset,
    /// Whether chunks go to owners. Otherwise rank 0 does all writing.
    pub(crate) spread: bool,
    /// Whether it is not committed yet.
    pub(crate) fresh: bool,
    pub(crate) owners: HashMap<Dims, usize>,
    pub(crate) touched: BTreeMap<Dims, Touched>,
    /// The dataset as the last commit left it.
    pub(crate) view: Option<Dataset>,
}

/// A chunk that a rank hands to the commit.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) key: Dims,
    /// What is stored from now on; `None`: nothing.
    pub(crate) record: Option<ChunkRecord>,
    /// Whether only values differ from what is stored, which have no filters: then it stays where it is.
    pub(crate) keeps: bool,
}

impl Entry {
    /// A dataset that exists.
    pub(crate) fn open(path: &str, view: Dataset, context: &Context) -> Result<Self> {
        let bench = bench(context, |file| empty_like(file, &view))?;
        Ok(Self { view: Some(view), ..Self::new(path, bench, false)? })
    }

    /// A dataset that is new.
    pub(crate) fn new(path: &str, bench: Dataset, fresh: bool) -> Result<Self> {
        if matches!(
            bench.layout(),
            LayoutKind::External | LayoutKind::Virtual | LayoutKind::Unreadable
        ) {
            let what = "external and virtual datasets as collective ones";
            return Err(pumice::Error::Unsupported(what.into()).into());
        }
        let spread = bench.as_engine().is_self_contained();
        let (path, root, view) = (path.to_owned(), None, None);
        let (owners, touched) = Default::default();
        Ok(Self { path, root, bench, spread, fresh, owners, touched, view })
    }

    pub(crate) fn grid(&self) -> Result<ChunkGrid> {
        let shape = self.bench.shape();
        let chunk = self.bench.chunk().unwrap_or_else(|| shape.clone());
        Ok(ChunkGrid::new(&shape, &chunk)?)
    }

    fn origin(&self, key: &Dims) -> Dims {
        let chunk = self.bench.chunk().unwrap_or_default();
        key.iter().zip(&chunk).map(|(at, side)| at * side).collect()
    }

    /// Brings a chunk to the bench before it is changed; it is there already if this rank has changed it.
    pub(crate) fn bring(
        &mut self,
        key: &Dims,
        view: Option<&Dataset>,
        whole: bool,
        erases: bool,
    ) -> Result<()> {
        match self.touched.get_mut(key) {
            Some(touched) if !erases => {
                let brought = match touched {
                    Touched::Written { brought } => *brought,
                    Touched::Erased(before) => before.is_some(),
                };
                *touched = Touched::Written { brought };
                return Ok(());
            }
            Some(_) => return Ok(()),
            None => {}
        }
        let origin = self.origin(key);
        let stored = match view.filter(|_| !whole) {
            Some(view) => view.as_engine().read_chunk(&origin)?,
            None => None,
        };
        if let Some((bytes, record)) = &stored {
            let bench = self.bench.as_engine();
            match record.sections.is_empty() {
                true => bench.write_chunk(&origin, bytes, record.filter_mask)?,
                false => bench.write_sections(&origin, record.clone(), bytes)?,
            }
        }
        let touched = match erases {
            true => Touched::Erased(stored),
            false => Touched::Written { brought: stored.is_some() },
        };
        self.touched.insert(key.clone(), touched);
        Ok(())
    }

    /// Encodes what this rank has changed, on all of its threads.
    pub(crate) fn encode(&self, view: Option<&Dataset>) -> Result<Vec<Outcome>> {
        if self.touched.is_empty() || !self.spread {
            return Ok(Vec::new());
        }
        self.bench.flush()?;
        let mut outcomes = Vec::with_capacity(self.touched.len());
        for (key, touched) in &self.touched {
            let origin = self.origin(key);
            let record = self.bench.as_engine().chunk_record(&origin)?;
            match touched {
                // As it was: there is nothing to store.
                Touched::Erased(before) if self.is_as(before, &origin, record.as_ref())? => {
                    continue;
                }
                _ => {}
            }
            let stored = || match view {
                Some(view) => Ok(view.as_engine().chunk_record(&origin)?.is_some()),
                None => Ok::<_, CollectiveError>(false),
            };
            if record.is_some() || stored()? {
                let brought = matches!(touched, Touched::Written { brought: true });
                let keeps = brought && self.keeps(&origin, record.as_ref(), view)?;
                outcomes.push(Outcome { key: key.clone(), record, keeps });
            }
        }
        Ok(outcomes)
    }

    /// Whether a sparse chunk has the cells that it has in the file, and values without filters.
    fn keeps(
        &self,
        origin: &Dims,
        record: Option<&ChunkRecord>,
        view: Option<&Dataset>,
    ) -> Result<bool> {
        let (Some(record), Some(view)) = (record, view) else { return Ok(false) };
        let [_, values] = record.sections.as_slice() else { return Ok(false) };
        if !self.bench.is_sparse() || !self.bench.filters().is_empty() {
            return Ok(false);
        }
        let Some((stored, old)) = view.as_engine().read_chunk(origin)? else { return Ok(false) };
        let head = values.offset as usize;
        let same = old.size == record.size && old.sections == record.sections;
        Ok(same && self.encoded(origin)?.get(..head) == stored.get(..head))
    }

    fn is_as(
        &self,
        before: &Option<(Vec<u8>, ChunkRecord)>,
        origin: &Dims,
        record: Option<&ChunkRecord>,
    ) -> Result<bool> {
        Ok(match (before, record) {
            (None, None) => true,
            (Some((bytes, old)), Some(new)) => {
                old.sections == new.sections
                    && old.filter_mask == new.filter_mask
                    && *bytes == self.encoded(origin)?
            }
            _ => false,
        })
    }

    /// The bytes of a chunk that was encoded.
    pub(crate) fn bytes(&self, key: &Dims) -> Result<Vec<u8>> {
        self.encoded(&self.origin(key))
    }

    fn encoded(&self, origin: &Dims) -> Result<Vec<u8>> {
        let found = self.bench.as_engine().read_chunk(origin)?;
        let none = || pumice::Error::Internal("a chunk was encoded and is not there".into());
        Ok(found.ok_or_else(none)?.0)
    }

    /// After a commit: all is in the file, and benches are empty.
    pub(crate) fn committed(&mut self, view: &File, context: &Context) -> Result<()> {
        let view = view.dataset(&self.path)?;
        if !self.touched.is_empty() || self.fresh || self.bench.shape() != view.shape() {
            self.bench = bench(context, |file| empty_like(file, &view))?;
        }
        self.owners.clear();
        self.touched.clear();
        self.fresh = false;
        self.view = Some(view);
        Ok(())
    }
}

/// Begins a dataset with the description of another: also its layout, and the filters of its sections.
pub(crate) fn empty_like(file: &File, other: &Dataset) -> DatasetBuilder {
    let builder = file.new_dataset_like(other);
    let builder = match other.layout() {
        LayoutKind::Compact => builder.compact(),
        LayoutKind::Sparse => builder.sparse().filters(other.section_filters()),
        LayoutKind::VariableLength => builder.variable_length().filters(other.section_filters()),
        LayoutKind::Chunked => {
            other.filters().into_iter().fold(builder, |builder, filter| builder.filter(filter))
        }
        _ => builder,
    };
    let Ok(creation) = other.creation() else { return builder };
    let builder = builder.fill_time(creation.fill_time);
    match creation.dont_filter_partial_chunks {
        true => builder.dont_filter_partial_chunks(),
        false => builder,
    }
}

/// A dataset in memory of a file of its own. Its chunks take no space before they are written.
pub(crate) fn bench(
    context: &Context,
    describe: impl Fn(&File) -> DatasetBuilder,
) -> Result<Dataset> {
    let store = Arc::new(MemoryStore::default());
    let file = File::options().context(context).create_in(store)?;
    let later = describe(&file).allocation_time(AllocationTime::Incremental);
    match later.create(NAME) {
        Ok(dataset) => Ok(dataset),
        Err(_) => Ok(describe(&file).create(NAME)?),
    }
}
