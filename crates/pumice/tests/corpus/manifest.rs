//! What h5py found in a file.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The objects of a file by path; empty if nothing is known.
#[derive(Default)]
pub(crate) struct Manifest {
    objects: BTreeMap<String, Value>,
}

/// The files of a corpus with their manifests.
pub(crate) fn indexed(corpus: &Path) -> Vec<(PathBuf, Manifest)> {
    let index = std::fs::read_to_string(corpus.join("manifest_index.jsonl")).unwrap_or_default();
    let mut files = Vec::new();
    for line in index.lines() {
        let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
        let Some(stored) = entry["stored"].as_str() else { continue };
        let manifest = entry["manifest"].as_str().and_then(|name| read(&corpus.join(name)));
        files.push((corpus.join(stored), manifest.unwrap_or_default()));
    }
    files
}

fn read(path: &Path) -> Option<Manifest> {
    // Names that are no text appear as unpaired surrogates, which JSON allows and Rust does not.
    let text = std::fs::read_to_string(path).ok()?;
    let objects = serde_json::from_str(&text).ok()?;
    Some(Manifest { objects })
}

impl Manifest {
    /// What is known of the object at `path`.
    pub(crate) fn object(&self, path: &str) -> Option<&Value> {
        self.objects.get(path)
    }
}

/// A list of lengths; nothing for other values.
pub(crate) fn lengths(value: &Value) -> Option<Vec<u64>> {
    value.as_array()?.iter().map(Value::as_u64).collect()
}
