//! Orders of iteration: links and attributes by name or by their creation, upwards, downwards, or as they are stored.

use crate::fault::{Fault, Result};
use crate::handle::Handle;
use pumice_engine::attribute::{self, Attribute};
use pumice_engine::group;
use pumice_engine::object::Object;
use pumice_format::messages::{Link, LinkInfo, kind};
use std::ffi::c_int;

/// `H5_INDEX_CRT_ORDER`.
const BY_CREATION: c_int = 1;
/// `H5_ITER_DEC`.
const DOWNWARDS: c_int = 1;

/// The links of a group.
pub(crate) fn links(group: &Handle, index: c_int, order: c_int) -> Result<Vec<Link>> {
    let object = group.object()?;
    let mut links = group::links(group.engine(), &object)?;
    if index == BY_CREATION {
        if !tracks_order(&object)? {
            return Err(Fault::Invalid(
                "creation order is not tracked for links of the group".into(),
            ));
        }
        links.sort_by_key(|link| link.creation_order);
    }
    if order == DOWNWARDS {
        links.reverse();
    }
    Ok(links)
}

/// Whether a group keeps the order in which links came.
pub(crate) fn tracks_order(group: &Object) -> Result<bool> {
    let Some(raw) = group.message(kind::LINK_INFO) else { return Ok(false) };
    Ok(LinkInfo::decode(&raw.body, &group.context(&raw))?.max_creation_order.is_some())
}

/// The attributes of an object.
pub(crate) fn attributes(
    handle: &Handle,
    object: &Object,
    index: c_int,
    order: c_int,
) -> Result<Vec<Attribute>> {
    let mut all = attribute::attributes(handle.engine(), object)?;
    if index == BY_CREATION && object.attribute_order().0 {
        all.sort_by_key(|attribute| attribute.creation_order);
    }
    if order == DOWNWARDS {
        all.reverse();
    }
    Ok(all)
}
