//! Paths: from a group through links of all kinds to an object.

use super::{is_group, link};
use crate::file::File;
use crate::object::Object;
use crate::{Error, Result, outside};
use pumice_format::messages::LinkTarget;
use std::sync::Arc;

/// The most soft and external links that one path may lead through.
const MAX_LINKS: usize = 16;

/// The result of resolving a path.
pub struct Found {
    /// The file that it is in, if an external link led there.
    pub file: Option<Arc<File>>,
    /// The object.
    pub object: Arc<Object>,
}

/// The object that `path` leads to from `start`, an absolute path beginning at the root.
pub fn resolve(file: &File, start: &Arc<Object>, path: &str) -> Result<Found> {
    resolve_within(file, start, path, &mut MAX_LINKS.clone())
}

fn resolve_within(
    file: &File,
    start: &Arc<Object>,
    path: &str,
    links: &mut usize,
) -> Result<Found> {
    let object = if path.starts_with('/') { file.root()? } else { start.clone() };
    let mut found = Found { file: None, object };
    for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
        let file = found.file.as_deref().unwrap_or(file);
        if !is_group(&found.object) {
            return Err(Error::NotFound(format!("{path}: what holds \"{name}\" is no group")));
        }
        let Some(link) = link(file, &found.object, name)? else {
            return Err(Error::NotFound(format!("{path}: no link \"{name}\"")));
        };
        if let LinkTarget::Hard { address } = link.target {
            found.object = file.object(address)?;
            continue;
        }
        *links = links.checked_sub(1).ok_or_else(|| {
            Error::Invalid(format!("Too many soft links in path {path}: more than {MAX_LINKS}"))
        })?;
        let next = match link.target {
            LinkTarget::Soft { path: target } => {
                resolve_within(file, &found.object, &target, links)?
            }
            LinkTarget::External { file: other, path: target } => {
                let other = outside::open(file, &other, outside::LINK_FOLDERS)?;
                let next = resolve_within(&other, &other.root()?, &target, links)?;
                Found { file: Some(next.file.unwrap_or(other)), ..next }
            }
            _ => return Err(Error::Unsupported(format!("the user-defined link \"{name}\""))),
        };
        found = Found { file: next.file.or(found.file), object: next.object };
    }
    Ok(found)
}
