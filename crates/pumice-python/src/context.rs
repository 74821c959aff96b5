//! The threads and the chunk cache that files share.

use crate::errors::{invalid, raised};
use pumice::{Context, PolicyKind, Stats};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Threads and a chunk cache.
#[pyclass(frozen, name = "Context", module = "pumice._pumice")]
pub(crate) struct PyContext(pub(crate) Context);

/// Counters as a dictionary.
pub(crate) fn counters<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let all = [
        ("hits", stats.hits),
        ("misses", stats.misses),
        ("loads", stats.loads),
        ("direct", stats.direct),
        ("evictions", stats.evictions),
        ("write_backs", stats.write_backs),
        ("bytes_fetched", stats.bytes_fetched),
        ("bytes_written", stats.bytes_written),
        ("decode_nanoseconds", stats.decode_nanoseconds),
        ("prefetched", stats.prefetched),
        ("prefetch_useful", stats.prefetch_useful),
        ("prefetch_wasted", stats.prefetch_wasted),
    ];
    let dict = PyDict::new(py);
    all.iter().try_for_each(|(name, count)| dict.set_item(name, count))?;
    Ok(dict)
}

#[pymethods]
impl PyContext {
    /// A context of its own.
    #[new]
    #[pyo3(signature = (limit=None, policy=None, threads=None))]
    fn new(limit: Option<u64>, policy: Option<&str>, threads: Option<usize>) -> PyResult<Self> {
        let mut builder = Context::builder();
        if let Some(limit) = limit {
            builder = builder.cache_bytes(limit);
        }
        if let Some(policy) = policy {
            builder = builder.policy(match policy {
                "lirs" => PolicyKind::Lirs,
                "lru" => PolicyKind::Lru,
                "two-stage" => PolicyKind::TwoStage,
                "weighted-lru" => PolicyKind::WeightedLru,
                "tiny-lfu" => PolicyKind::TinyLfu,
                "random" => PolicyKind::Random,
                other => {
                    return Err(invalid(format!(
                        "{other} is no policy; there are lirs, lru, two-stage, weighted-lru, tiny-lfu and random"
                    )));
                }
            });
        }
        if let Some(threads) = threads {
            builder = builder.threads(threads);
        }
        Ok(Self(builder.build().map_err(raised)?))
    }

    /// The one that files have that were opened without another.
    #[staticmethod]
    #[pyo3(name = "shared")]
    fn global() -> Self {
        Self(Context::global())
    }

    /// What it has done so far.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counters(py, &self.0.stats())
    }

    /// Gives the cache another limit.
    fn set_limit(&self, py: Python<'_>, bytes: u64) -> PyResult<()> {
        py.detach(|| self.0.set_cache_bytes(bytes)).map_err(raised)
    }

    /// Lets everything go that can be read again.
    fn evict(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.evict()).map_err(raised)
    }
}
