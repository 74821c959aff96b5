//! Removing links, and deleting the object that loses its last link with all its storage.

use crate::dataset::DatasetState;
use crate::file::File;
use crate::object::Object;
use crate::{Result, attribute, group};
use pumice_format::UNDEFINED;
use pumice_format::messages::{ExternalFiles, Layout, LinkTarget, kind};
use pumice_structures::local_heap::LocalHeap;
use std::collections::HashSet;
use std::sync::Arc;

/// Removes a link of a group. An object without hard links is deleted with everything that only it
/// linked to, and its space is reused. An object that a handle holds open stays until it is closed,
/// and is deleted by the next commit.
pub fn unlink(file: &File, from: &Object, name: &str) -> Result<()> {
    let link = group::remove(file, from, name)?;
    match link.target {
        LinkTarget::Hard { address } => release(file, address),
        _ => Ok(()),
    }
}

/// Removes one reference to the object at `address`, and deletes the object with the last.
pub fn release(file: &File, address: u64) -> Result<()> {
    let before = file.medium().given_back();
    let done = release_all(file, vec![address], HashSet::new());
    file.note_deleted(file.medium().given_back().saturating_sub(before));
    done
}

/// Deletes an object that no handle holds any more.
pub(crate) fn delete_abandoned(file: &File, address: u64) -> Result<()> {
    let (before, mut pending) = (file.medium().given_back(), Vec::new());
    let done = delete(file, &file.object(address)?, &mut pending)
        .and_then(|()| release_all(file, pending, HashSet::from([address])));
    file.note_deleted(file.medium().given_back().saturating_sub(before));
    done
}

/// Deletes objects, and the objects that only they linked to. A damaged file may link back to an
/// object in `deleted`, which can still be read until the commit.
fn release_all(file: &File, mut pending: Vec<u64>, mut deleted: HashSet<u64>) -> Result<()> {
    while let Some(address) = pending.pop() {
        if deleted.contains(&address) {
            continue;
        }
        // An object that cannot be opened stays: its space cannot be found.
        let Ok(object) = file.object(address) else { continue };
        if object.remove_link()? > 0 {
            continue;
        }
        drop(object);
        match file.is_held(address) {
            true => file.abandon(address),
            false => {
                delete(file, &file.object(address)?, &mut pending)?;
                deleted.insert(address);
            }
        }
    }
    Ok(())
}

/// Deletes an object without links, and nothing else.
pub(crate) fn discard(file: &File, address: u64) -> Result<()> {
    delete(file, &file.object(address)?, &mut Vec::new())
}

/// Deletes an object, and adds the objects that it linked to to `pending`.
fn delete(file: &File, object: &Arc<Object>, pending: &mut Vec<u64>) -> Result<()> {
    // Parts that cannot be read stay in the file; the others are given back.
    if group::is_group(object) {
        if let Ok(links) = group::links(file, object) {
            let hard = links.into_iter().filter_map(|link| match link.target {
                LinkTarget::Hard { address } => Some(address),
                _ => None,
            });
            pending.extend(hard);
            group::delete(file, object)?;
        }
    } else if object.has(kind::LAYOUT) {
        let open = || DatasetState::open(file, object);
        if let Ok(dataset) = file.dataset(object.address(), open) {
            // Objects of unreadable elements cannot be given back.
            let _ = dataset.discard_all();
            dataset.free()?;
        }
        if let Some(raw) = object.message(kind::LAYOUT)
            && let Ok(Layout::Virtual { heap_address, heap_index }) =
                Layout::decode(&raw.body, &object.context(&raw))
            && heap_address != UNDEFINED
        {
            file.global_heap().discard_object(heap_address, heap_index);
        }
        if let Some(raw) = object.message(kind::EXTERNAL_FILES)
            && let Ok(files) = ExternalFiles::decode(&raw.body, &object.context(&raw))
            && let Ok(names) = LocalHeap::open(file.medium(), files.heap_address)
        {
            let _change = file.medium().change();
            names.delete(&**file.medium());
        }
        pending.extend(attribute::committed_datatype(file, object));
    }
    pending.extend(attribute::delete_all(file, object)?);
    // In one change, before a new object in its space can be listed.
    let change = file.medium().change();
    let forgotten = file.forget(object.address(), || object.free(&change));
    drop(change);
    drop(forgotten);
    Ok(())
}
