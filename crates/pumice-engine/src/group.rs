//! Groups: the links of an object.
//!
//! New-style groups keep links as messages of their object header; they are read and written.
//! Old-style groups (symbol tables, `group/old.rs`) and links in dense storage (fractal heaps,
//! `group/dense.rs`) are read only.

mod dense;
mod old;

pub(crate) use old::HeapText;

use crate::file::File;
use crate::object::Object;
use crate::{Error, Result, outside};
use pumice_format::messages::{GroupInfo, Link, LinkInfo, LinkTarget, SymbolTable, kind};
use pumice_format::object_header::{MESSAGE_CONSTANT, RawMessage};
use pumice_format::{Sizes, UNDEFINED};
use std::sync::Arc;

/// The most soft and external links that one path may lead through.
const MAX_LINKS: usize = 16;

/// The messages of an empty group.
pub fn new_messages() -> Result<Vec<RawMessage>> {
    let (mut links, mut limits) = (Vec::new(), Vec::new());
    LinkInfo::default().encode(Sizes::default(), &mut links);
    GroupInfo::default().encode(&mut limits);
    Ok(vec![
        RawMessage::new(kind::LINK_INFO, 0, links),
        RawMessage::new(kind::GROUP_INFO, MESSAGE_CONSTANT, limits),
    ])
}

/// Whether an object is a group.
pub fn is_group(object: &Object) -> bool {
    object.has(kind::LINK_INFO) || object.has(kind::SYMBOL_TABLE)
}

/// All links of a group, in order of their names.
pub fn links(file: &File, group: &Object) -> Result<Vec<Link>> {
    Ok(known_links(file, group)?.0.to_vec())
}

/// All links in order of their names, and the number of changes to the group so far.
fn known_links(file: &File, group: &Object) -> Result<(Arc<Vec<Link>>, u64)> {
    group.links(|| {
        let mut links = list(file, group)?;
        links.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(links)
    })
}

fn list(file: &File, group: &Object) -> Result<Vec<Link>> {
    if let Some(message) = group.message(kind::SYMBOL_TABLE) {
        let table = SymbolTable::decode(&message.body, &group.context(&message))?;
        return old::links(file, &table);
    }
    let Some(message) = group.message(kind::LINK_INFO) else {
        return Err(Error::Invalid("not a group".into()));
    };
    let info = LinkInfo::decode(&message.body, &group.context(&message))?;
    if info.heap_address != UNDEFINED {
        return dense::links(file, &info);
    }
    let messages = group.messages(kind::LINK);
    let links = messages.iter();
    links.map(|message| Ok(Link::decode(&message.body, &group.context(message))?)).collect()
}

/// The link of a name.
pub fn link(file: &File, group: &Object, name: &str) -> Result<Option<Link>> {
    let (links, _) = known_links(file, group)?;
    Ok(find(&links, name).cloned())
}

fn find<'a>(links: &'a [Link], name: &str) -> Option<&'a Link> {
    let place = links.partition_point(|link| link.name.as_str() < name);
    links.get(place).filter(|link| link.name == name)
}

/// Adds a link to a group.
pub fn insert(file: &File, group: &Object, link: Link) -> Result<()> {
    if link.name.is_empty() || link.name.contains('/') || link.name == "." {
        return Err(Error::Invalid(format!("\"{}\" is no name for a link", link.name)));
    }
    let mut body = Vec::new();
    link.encode(file.superblock().sizes, &mut body)?;
    // Again if another thread changes the group between the look and the insertion.
    loop {
        let (links, changes) = known_links(file, group)?;
        if find(&links, &link.name).is_some() {
            return Err(Error::Invalid(format!("\"{}\" exists already", link.name)));
        }
        // Unshared, the list of links grows in place.
        drop(links);
        if group.push_link(changes, &link, &body)? {
            return Ok(());
        }
    }
}

/// Removes a link from a group and returns it. The object stays.
pub fn remove(file: &File, group: &Object, name: &str) -> Result<Link> {
    let missing = || Error::NotFound(format!("no link \"{name}\""));
    let link = link(file, group, name)?.ok_or_else(missing)?;
    let context = group.context(&RawMessage::default());
    let removed = group.change(|messages| {
        let before = messages.len();
        messages.retain(|message| {
            message.kind != kind::LINK
                || Link::decode(&message.body, &context).is_ok_and(|other| other.name != name)
        });
        messages.len() < before
    })?;
    // Another thread may have been faster: only one of them has removed it.
    if removed { Ok(link) } else { Err(missing()) }
}

/// What a path leads to.
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
            Error::Invalid(format!("{path}: more than {MAX_LINKS} soft and external links"))
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
