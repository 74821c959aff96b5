//! Turning packed elements of one datatype into packed elements of another.

use crate::{Datatype, TypeError};

/// A conversion between two datatypes, its kernel chosen once.
#[derive(Debug, Clone)]
pub struct Conversion {
    source_size: usize,
    target_size: usize,
    noop: bool,
}

impl Conversion {
    /// Chooses how to turn elements of `from` into elements of `to`.
    pub fn new(from: &Datatype, to: &Datatype) -> Result<Self, TypeError> {
        let (source_size, target_size) = (from.size(), to.size());
        Ok(Self {
            source_size,
            target_size,
            noop: from == to,
        })
    }

    /// Whether elements of both datatypes have the same bytes.
    pub fn is_noop(&self) -> bool {
        self.noop
    }

    /// Bytes of a source element.
    pub fn source_size(&self) -> usize {
        self.source_size
    }

    /// Bytes of a target element.
    pub fn target_size(&self) -> usize {
        self.target_size
    }

    /// Converts all elements of `source` into `target`.
    pub fn convert(&self, source: &[u8], target: &mut [u8]) -> Result<(), TypeError> {
        let _ = (source, target);
        todo!()
    }
}
