//! A cache with one toy dataset, and short words for what tests do with it.

use super::*;

/// A cache with one toy dataset.
pub struct Bench {
    pub toy: Arc<Toy>,
    pub cache: ChunkCache<Toy>,
    pub dataset: Dataset<Toy>,
}

impl Bench {
    pub fn new(config: Config, toy: Toy) -> Self {
        let toy = Arc::new(toy);
        let cache = ChunkCache::new(config);
        let options = DatasetOptions::default();
        let dataset = match toy.unchunked {
            true => cache.register_unchunked(Arc::clone(&toy), options),
            false => cache.register(Arc::clone(&toy), options),
        };
        Bench { toy, cache, dataset }
    }

    /// Another dataset in the same store.
    pub fn sibling(&self) -> (Arc<Toy>, Dataset<Toy>) {
        let toy = Arc::new(Toy::beside(&self.toy));
        let dataset = self.cache.register(Arc::clone(&toy), DatasetOptions::default());
        (toy, dataset)
    }

    /// Limits for `resident` and `active` chunks of the toy.
    pub fn with_limits(cells: usize, resident: u64, active: u64) -> Self {
        let bytes = 2 * cells as u64 + BOOK;
        let config =
            Config::default().resident_limit(resident * bytes).active_limit(active * bytes);
        Bench::new(config, Toy::new(cells))
    }

    pub fn put(&self, key: u64, start: usize, data: &[u8]) -> Result<(), ToyError> {
        self.cache.write(&self.dataset, [(key, Write::Put { start, data })])
    }

    pub fn erase(&self, key: u64, start: usize, len: usize) -> Result<(), ToyError> {
        self.cache.write(&self.dataset, [(key, Write::Erase { start, len })])
    }

    /// All cells of a chunk.
    pub fn get(&self, key: u64) -> Result<Vec<u8>, ToyError> {
        self.get_many([key]).map(|mut chunks| chunks.remove(0))
    }

    pub fn get_many(&self, keys: impl IntoIterator<Item = u64>) -> Result<Vec<Vec<u8>>, ToyError> {
        let keys: Vec<_> = keys.into_iter().collect();
        let mut chunks = vec![vec![0; self.toy.cells]; keys.len()];
        let parts = keys.into_iter().zip(&mut chunks);
        self.cache
            .read(&self.dataset, parts.map(|(key, out)| (key, Read::Values { start: 0, out })))?;
        Ok(chunks)
    }

    pub fn put_many(
        &self,
        keys: impl IntoIterator<Item = u64>,
        data: &[u8],
    ) -> Result<(), ToyError> {
        let parts = keys.into_iter().map(|key| (key, Write::Put { start: 0, data }));
        self.cache.write(&self.dataset, parts)
    }

    pub fn defined(&self, key: u64) -> Result<Vec<usize>, ToyError> {
        let mut cells = Vec::new();
        self.cache.read(&self.dataset, [(key, Read::Defined(&mut cells))])?;
        Ok(cells)
    }

    pub fn flush(&self) -> Result<(), ToyError> {
        self.cache.flush(&self.dataset, false)
    }

    pub fn stats(&self) -> Stats {
        self.cache.stats()
    }
}
