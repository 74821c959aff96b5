//! The threads and the chunk cache that files share.

use crate::errors::{invalid, raised};
use pumice::{Context, PolicyKind, Stats};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::process;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The process that loaded the module.
static LOADED_BY: OnceLock<u32> = OnceLock::new();

/// Whether this process is a child of the one that loaded the module.
pub(crate) fn has_forked() -> bool {
    process::id() != *LOADED_BY.get_or_init(process::id)
}

/// Threads and a chunk cache.
#[pyclass(frozen, name = "Context", module = "pumice._pumice")]
pub(crate) struct PyContext {
    /// The context, and the process that it belongs to.
    context: Mutex<(u32, Context)>,
    settings: Option<Settings>,
}

/// The creation options of a context.
struct Settings {
    limit: Option<u64>,
    policy: Option<PolicyKind>,
    threads: Option<usize>,
}

impl Settings {
    fn build(&self) -> PyResult<Context> {
        let mut builder = Context::builder();
        if let Some(limit) = self.limit {
            builder = builder.cache_bytes(limit);
        }
        if let Some(policy) = self.policy {
            builder = builder.policy(policy);
        }
        if let Some(threads) = self.threads {
            builder = builder.threads(threads);
        }
        builder.build().map_err(raised)
    }
}

impl PyContext {
    /// The context, of this process.
    pub(crate) fn context(&self) -> PyResult<Context> {
        let mut held = self.context.lock().unwrap_or_else(PoisonError::into_inner);
        if held.0 != process::id() {
            let new = match &self.settings {
                Some(settings) => settings.build()?,
                None => Context::global(),
            };
            std::mem::forget(std::mem::replace(&mut *held, (process::id(), new)));
        }
        Ok(held.1.clone())
    }
}

fn policy_of(name: &str) -> PyResult<PolicyKind> {
    Ok(match name {
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
    })
}

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
        let settings = Settings { limit, policy: policy.map(policy_of).transpose()?, threads };
        let context = Mutex::new((process::id(), settings.build()?));
        Ok(Self { context, settings: Some(settings) })
    }

    /// The one that files have that were opened without another.
    #[staticmethod]
    #[pyo3(name = "shared")]
    fn global() -> Self {
        Self { context: Mutex::new((process::id(), Context::global())), settings: None }
    }

    /// The statistics of the cache.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counters(py, &self.context()?.stats())
    }

    /// Sets the limit of the cache.
    fn set_limit(&self, py: Python<'_>, bytes: u64) -> PyResult<()> {
        let context = self.context()?;
        py.detach(|| context.set_cache_bytes(bytes)).map_err(raised)
    }

    /// Drops all chunks that can be read again.
    fn evict(&self, py: Python<'_>) -> PyResult<()> {
        let context = self.context()?;
        py.detach(|| context.evict()).map_err(raised)
    }
}
