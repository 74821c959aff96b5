//! Two manifests side by side: ours, and one that h5py made.

use serde_json::{Map, Value};

/// The differences of two manifests.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The differences.
    pub differences: Vec<String>,
    /// Objects and attributes that h5py could not read, and so cannot be compared.
    pub beyond_h5py: usize,
    /// The number of datasets with equal hashes.
    pub datasets: usize,
    /// The number of attributes with equal hashes.
    pub attributes: usize,
}

/// Compares our manifest with that of h5py. Where h5py has an error, anything may stand.
pub fn compare(ours: &Value, theirs: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    let empty = Map::new();
    let (ours, theirs) = (ours.as_object().unwrap_or(&empty), theirs.as_object().unwrap_or(&empty));
    for (path, expected) in theirs {
        match ours.get(path) {
            Some(found) => comparison.object(path, found, expected),
            None => comparison.differ(path, "missing"),
        }
    }
    for path in ours.keys().filter(|path| !theirs.contains_key(*path)) {
        comparison.differ(path, "not in h5py's manifest");
    }
    comparison
}

impl Comparison {
    fn differ(&mut self, path: &str, what: impl std::fmt::Display) {
        self.differences.push(format!("{path}: {what}"));
    }

    fn object(&mut self, path: &str, found: &Value, expected: &Value) {
        self.attributes(path, &found["attrs"], &expected["attrs"]);
        if !expected["error"].is_null() {
            self.beyond_h5py += 1;
            return;
        }
        if !found["error"].is_null() {
            return self.differ(path, &found["error"]);
        }
        for field in ["type", "target", "file", "same_as", "shape", "maxshape", "chunks", "filters"]
        {
            if found[field] != expected[field] {
                let (found, expected) = (&found[field], &expected[field]);
                self.differ(path, format!("{field} {found} instead of {expected}"));
            }
        }
        match (&found["sha256"], &expected["sha256"]) {
            (found, expected) if found != expected => self.differ(path, "other values"),
            (Value::String(_), _) => self.datasets += 1,
            _ => {}
        }
    }

    fn attributes(&mut self, path: &str, found: &Value, expected: &Value) {
        let Some(expected) = expected.as_object() else { return };
        if let Some(error) = found.get("").and_then(|entry| entry.get("error")) {
            return self.differ(path, format!("attributes: {error}"));
        }
        for (name, expected) in expected {
            let path = format!("{path} attribute \"{name}\"");
            let Some(found) = found.get(name) else {
                self.differ(&path, "missing");
                continue;
            };
            if !expected["error"].is_null() {
                self.beyond_h5py += 1;
            } else if !found["error"].is_null() {
                self.differ(&path, &found["error"]);
            } else if found["null"] != expected["null"] || found["shape"] != expected["shape"] {
                self.differ(&path, format!("{found} instead of {expected}"));
            } else if found["sha256"] != expected["sha256"] {
                self.differ(&path, "other values");
            } else {
                self.attributes += 1;
            }
        }
        for name in found.as_object().into_iter().flat_map(|found| found.keys()) {
            if !expected.contains_key(name) {
                self.differ(path, format!("attribute \"{name}\" is not in h5py's manifest"));
            }
        }
    }
}
