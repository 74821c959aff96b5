//! Changed chunks that cannot be stored, because a filter that must not be left out refuses them.
//!
//! A commit stores all other changes of the file, keeps the stored form of these chunks, and
//! returns an error when it is done. In memory they stay as they are, to be changed or erased until
//! the file is closed.
//!
//! There is one exception. Overwritten strings and sequences leave the global heap with the commit.
//! A stored chunk with references to them would refer to nothing, or to other objects; then the
//! commit does not take place.

use super::File;
use crate::object::Object;
use crate::{Error, Result, group};
use pumice_cache::Refused;
use pumice_format::messages::LinkTarget;
use pumice_layout::Hdf5;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most datasets that an error names.
const MOST_NAMED: usize = 8;

/// Separates the error that some chunks were not stored from all others.
pub(super) fn unless_stored(result: Result<()>) -> Result<Result<()>> {
    match result {
        Err(error) if !error.is_not_stored() => Err(error),
        other => Ok(other),
    }
}

/// The worse of two outcomes: one that says that all could be stored but some chunks is better than any other error.
pub(super) fn worse(one: Result<()>, other: Result<()>) -> Result<()> {
    match (&one, &other) {
        (Err(first), Err(second)) if first.is_not_stored() && !second.is_not_stored() => other,
        _ => one.and(other),
    }
}

impl File {
    /// Fails if the stored form of these chunks would make the file invalid.
    pub(super) fn still_valid(&self, refused: Vec<Refused<Hdf5>>) -> Result<Vec<Refused<Hdf5>>> {
        if refused.is_empty() {
            return Ok(refused);
        }
        let datasets = self.open_datasets();
        let mut left = Vec::with_capacity(refused.len());
        for one in refused {
            let dataset = datasets.iter().find(|dataset| dataset.has_refused(&one));
            if let Some(dataset) = dataset
                && dataset.needs_any(&one.keys)?
            {
                let path = self.path_to(dataset.object());
                let why = "its stored chunk has strings or sequences that may be gone, so no change of the file is stored";
                return Err(one.error.at(&format!("{path}: {why}")));
            }
            left.push(one);
        }
        Ok(left)
    }

    /// The error that names the chunks that were not stored, if there are any. `lost`: they are
    /// lost, because the file is being closed.
    pub(super) fn told(&self, refused: Vec<Refused<Hdf5>>, lost: bool) -> Result<()> {
        let mut refused = refused.into_iter().map(|one| (self.named(&one), one));
        let Some(((path, chunk), first)) = refused.next() else { return Ok(()) };
        let fate = match lost {
            true => "are lost, all other changes are stored",
            false => "are not stored and stay in memory, all others are stored",
        };
        let mut what = format!("changes in {}{chunk} {fate}", number(first.keys.len()));
        let others: Vec<_> = refused.map(|((path, _), one)| (path, one.keys.len())).collect();
        for (other, chunks) in others.iter().take(MOST_NAMED) {
            what += &format!("; the same with {} of {other}", number(*chunks));
        }
        if others.len() > MOST_NAMED {
            what += &format!("; and in {} more dataset(s)", others.len() - MOST_NAMED);
        }
        Err(Error::NotStored { what, source: Box::new(first.error) }.at(&path))
    }

    /// The path of a dataset, and the first cell of the first refused chunk.
    fn named(&self, refused: &Refused<Hdf5>) -> (String, String) {
        let datasets = self.open_datasets();
        let Some(dataset) = datasets.iter().find(|dataset| dataset.has_refused(refused)) else {
            return ("a dataset that was deleted".into(), String::new());
        };
        let sides = dataset.layout().geometry.chunk().iter();
        let cell = |key: &[u64]| -> Vec<u64> {
            key.iter().zip(sides).map(|(at, side)| at.saturating_mul(*side)).collect()
        };
        let place = refused.keys.first().map(|key| cell(key));
        let place = place.map_or(String::new(), |cell| format!(" from cell {cell:?}"));
        (self.path_to(dataset.object()), place)
    }

    /// A path to an object, if there is one. Looks through all groups: for messages.
    fn path_to(&self, object: &Object) -> String {
        let wanted = object.address();
        let unnamed = || format!("<object at {wanted:#x}>");
        let Ok(root) = self.root() else { return unnamed() };
        let mut seen = BTreeSet::from([root.address()]);
        let mut groups: Vec<(String, Arc<Object>)> = vec![(String::new(), root)];
        while let Some((path, group)) = groups.pop() {
            for link in group::links(self, &group).unwrap_or_default() {
                let LinkTarget::Hard { address } = link.target else { continue };
                let path = format!("{path}/{}", link.name);
                if address == wanted {
                    return path;
                }
                if let (true, Ok(object)) = (seen.insert(address), self.object(address))
                    && group::is_group(&object)
                {
                    groups.push((path, object));
                }
            }
        }
        unnamed()
    }
}

/// A number of chunks, in words.
fn number(chunks: usize) -> String {
    match chunks {
        1 => "one chunk".into(),
        more => format!("{more} chunks"),
    }
}
