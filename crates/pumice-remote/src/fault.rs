//! What went wrong, in a sentence that says what to do; several threads may wait for one request, so it can be
//! cloned.

use pumice_store::ChangedMeanwhile;
use std::io;
use std::sync::Arc;

/// A failure of a request.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    kind: io::ErrorKind,
    sentence: Arc<str>,
    replaced: bool,
}

impl Fault {
    pub(crate) fn new(kind: io::ErrorKind, sentence: impl Into<Arc<str>>) -> Self {
        Self { kind, sentence: sentence.into(), replaced: false }
    }

    /// The object is not the one that was opened.
    pub(crate) fn replaced(sentence: impl Into<Arc<str>>) -> Self {
        Self { replaced: true, ..Self::new(io::ErrorKind::Other, sentence) }
    }

    /// Something that cannot be.
    pub(crate) fn internal(sentence: &str) -> Self {
        Self::new(io::ErrorKind::Other, format!("internal error, please report it: {sentence}"))
    }

    pub(crate) fn kind(&self) -> io::ErrorKind {
        self.kind
    }

    pub(crate) fn into_io(self) -> io::Error {
        match self.replaced {
            true => io::Error::new(self.kind, Replaced(self.sentence)),
            false => io::Error::new(self.kind, &*self.sentence),
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// An object that was replaced; its cause is what the engine knows such changes by.
#[derive(Debug)]
struct Replaced(Arc<str>);

impl std::fmt::Display for Replaced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Replaced {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&ChangedMeanwhile)
    }
}
