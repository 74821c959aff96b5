//! How a collective file is opened.

use pumice::{Context, Durability, FileOptions, Locking};
use pumice_store::Store;
use std::sync::Arc;

type Wrap = dyn Fn(Arc<dyn Store>) -> Arc<dyn Store> + Send + Sync;

/// Options for creating and opening a file collectively. All ranks give the same.
///
/// ```
/// use pumice_collective::CollectiveOptions;
/// use pumice::{Context, Durability};
///
/// let context = Context::builder().threads(2).build()?;
/// let options = CollectiveOptions::new().context(&context).durability(Durability::Power);
/// # let _ = options;
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct CollectiveOptions {
    pub(crate) context: Option<Context>,
    pub(crate) durability: Durability,
    pub(crate) locking: Option<Locking>,
    pub(crate) file: Option<FileOptions>,
    pub(crate) wrap: Option<Arc<Wrap>>,
}

impl CollectiveOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The threads and the chunk cache of this rank: by default those that all files of a process share.
    pub fn context(mut self, context: &Context) -> Self {
        self.context = Some(context.clone());
        self
    }

    /// What a commit survives. With [`Durability::Power`] each rank waits for the device, too.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// How rank 0 locks the file.
    pub fn locking(mut self, locking: Locking) -> Self {
        self.locking = Some(locking);
        self
    }

    /// Other options of a new file, such as its version; rank 0 creates it with them.
    pub fn file(mut self, options: FileOptions) -> Self {
        self.file = Some(options);
        self
    }

    /// Lets all writes of this rank go through another store, which may let them fail.
    #[doc(hidden)]
    pub fn wrap_store(
        mut self,
        wrap: impl Fn(Arc<dyn Store>) -> Arc<dyn Store> + Send + Sync + 'static,
    ) -> Self {
        self.wrap = Some(Arc::new(wrap));
        self
    }

    pub(crate) fn wrapped(&self, store: impl Store + 'static) -> Arc<dyn Store> {
        let store: Arc<dyn Store> = Arc::new(store);
        match &self.wrap {
            Some(wrap) => wrap(store),
            None => store,
        }
    }
}

impl std::fmt::Debug for CollectiveOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CollectiveOptions")
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}
