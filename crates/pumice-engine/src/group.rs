//! Groups: the links of an object.
//!
//! New-style groups keep few links as messages of their object header and many in dense storage
//! (`dense_storage.rs`); at how many they move is the group's choice. Old-style groups keep them in a symbol
//! table (`group/old.rs`); one that gets a link that symbol tables cannot have becomes new-style.
//!
//! Every function here that changes a group holds a shared lock on changes, so that a commit sees
//! all of the change or nothing.

mod old;
mod path;

pub(crate) use old::OldGroup;
pub use path::{Found, resolve};

use crate::dense_storage::{Addresses, DenseStorage, Kind, Stored};
use crate::file::File;
use crate::object::{MAX_MESSAGE, Object, check_length};
use crate::{Error, Result};
use pumice_format::messages::{GroupInfo, Link, LinkInfo, LinkTarget, SymbolTable, kind};
use pumice_format::object_header::{MESSAGE_CONSTANT, ObjectHeader, RawMessage};
use pumice_format::{Context, Sizes, UNDEFINED};
use pumice_medium::Medium;
use pumice_medium::MetadataIo;
use std::sync::{Arc, MutexGuard};

/// The most links in messages, and the fewest in dense storage, by default.
const PHASE_CHANGE: (u16, u16) = (8, 6);

/// The links of an open group.
#[derive(Default)]
pub(crate) enum Links {
    /// The links have not been read yet.
    #[default]
    Unread,
    /// Links in messages, in order of their names.
    Compact(Arc<Vec<Link>>),
    /// In a fractal heap.
    Dense(Box<DenseStorage>),
    /// In a symbol table.
    Old(Box<OldGroup>),
}

/// The properties of a new group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSpec {
    /// Whether links store their creation order.
    pub track_order: bool,
    /// Whether dense storage has an index by creation order.
    pub index_order: bool,
    /// The most links in messages, and the fewest in dense storage.
    pub phase_change: Option<(u16, u16)>,
    /// The expected number of links, and the length of their names.
    pub estimates: Option<(u16, u16)>,
    /// Whether attributes store their creation order.
    pub track_attribute_order: bool,
    /// The most attributes in messages, and the fewest in dense storage.
    pub attribute_phase_change: Option<(u16, u16)>,
}

/// The messages of an empty new-style group.
pub fn new_messages(spec: &GroupSpec, sizes: Sizes) -> Vec<RawMessage> {
    let (mut links, mut limits) = (Vec::new(), Vec::new());
    let info = LinkInfo {
        max_creation_order: (spec.track_order || spec.index_order).then_some(0),
        order_index_address: spec.index_order.then_some(UNDEFINED),
        ..LinkInfo::default()
    };
    info.encode(sizes, &mut links);
    GroupInfo { phase_change: spec.phase_change, estimates: spec.estimates }.encode(&mut limits);
    vec![
        RawMessage::new(kind::LINK_INFO, 0, links),
        RawMessage::new(kind::GROUP_INFO, MESSAGE_CONSTANT, limits),
    ]
}

/// Creates a group; the caller links it. In files of the older format the group has a symbol table,
/// unless its properties need the newer form.
pub fn create(file: &File, spec: &GroupSpec) -> Result<Arc<Object>> {
    file.medium().require_writable()?;
    if !file.makes_old_groups() || *spec != GroupSpec::default() {
        let messages = new_messages(spec, file.superblock().sizes);
        let header = file.new_header(spec.track_attribute_order, spec.attribute_phase_change);
        return file.create_with(ObjectHeader { messages, ..header });
    }
    let _change = file.medium().change();
    let ranks = file.extension().group_ranks(file.superblock());
    let messages = vec![no_symbol_table(file.medium())];
    let object = file.create_sized(ObjectHeader { messages, ..file.new_header(false, None) }, 0)?;
    add_symbol_table(&object, file.medium(), ranks)?;
    Ok(object)
}

/// The message of a group whose symbol table is still to be made. libhdf5, too, makes the table
/// behind the header.
pub(crate) fn no_symbol_table(medium: &Medium) -> RawMessage {
    let mut body = Vec::new();
    let nowhere = SymbolTable { btree_address: UNDEFINED, heap_address: UNDEFINED };
    nowhere.encode(medium.sizes(), &mut body);
    RawMessage::new(kind::SYMBOL_TABLE, 0, body)
}

/// Creates the symbol table of a new group whose header has the message for it.
pub(crate) fn add_symbol_table(
    group: &Object,
    medium: &Medium,
    ranks: (u16, u16),
) -> Result<SymbolTable> {
    let (links, message) = new_symbol_table(medium, ranks)?;
    let table = links.table();
    group.set(kind::SYMBOL_TABLE, 0, message.body)?;
    *group.links() = Links::Old(Box::new(links));
    Ok(table)
}

/// The links of an empty old-style group, and the message that says where they are.
pub(crate) fn new_symbol_table(
    medium: &Medium,
    ranks: (u16, u16),
) -> Result<(OldGroup, RawMessage)> {
    let links = OldGroup::create(medium, ranks)?;
    let mut body = Vec::new();
    links.table().encode(medium.sizes(), &mut body);
    Ok((links, RawMessage::new(kind::SYMBOL_TABLE, 0, body)))
}

/// Whether an object is a group.
pub fn is_group(object: &Object) -> bool {
    object.has(kind::LINK_INFO) || object.has(kind::SYMBOL_TABLE)
}

/// All links of a group, in order of their names.
pub fn links(file: &File, group: &Object) -> Result<Vec<Link>> {
    let mut storage = opened(file, group)?;
    let mut links = match &mut *storage {
        Links::Unread => Vec::new(),
        Links::Compact(links) => return Ok(links.to_vec()),
        Links::Dense(dense) => {
            let context = Context::new(file.superblock().sizes);
            let decode = |stored: Stored| Ok(Link::decode(&stored.body, &context)?);
            dense.list(file)?.into_iter().map(decode).collect::<Result<Vec<_>>>()?
        }
        Links::Old(old) => old.list(file.medium())?,
    };
    drop(storage);
    links.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(links)
}

/// The number of a group's links.
pub fn count(file: &File, group: &Object) -> Result<u64> {
    let mut storage = opened(file, group)?;
    Ok(match &mut *storage {
        Links::Unread => 0,
        Links::Compact(links) => links.len() as u64,
        Links::Dense(dense) => dense.count(),
        Links::Old(old) => old.list(file.medium())?.len() as u64,
    })
}

/// The link of a name.
pub fn link(file: &File, group: &Object, name: &str) -> Result<Option<Link>> {
    let found = opened(file, group)?.find(file, name)?;
    if found.is_none() && name.contains(char::REPLACEMENT_CHARACTER) {
        // A name that is not UTF-8 is known here in its displayed form.
        return Ok(links(file, group)?.into_iter().find(|link| link.name == name));
    }
    Ok(found)
}

/// The links of a group, opened where they are stored.
fn opened<'a>(file: &File, group: &'a Object) -> Result<MutexGuard<'a, Links>> {
    group.require_in(file)?;
    let mut storage = group.links();
    if let Links::Unread = *storage {
        *storage = open(file, group)?;
    }
    Ok(storage)
}

pub(crate) fn open(file: &File, group: &Object) -> Result<Links> {
    if let Some(message) = group.message(kind::SYMBOL_TABLE) {
        let table = SymbolTable::decode(&message.body, &group.context(&message))?;
        let ranks = file.extension().group_ranks(file.superblock());
        return Ok(Links::Old(Box::new(OldGroup::open(file.medium(), ranks, &table)?)));
    }
    let info = info(group)?;
    if info.heap_address != UNDEFINED {
        let addresses = Addresses {
            heap: info.heap_address,
            names: info.name_index_address,
            orders: info.order_index_address.unwrap_or(UNDEFINED),
        };
        return Ok(Links::Dense(Box::new(DenseStorage::open(file, Kind::Links, addresses)?)));
    }
    let messages = group.messages(kind::LINK);
    let decode = |message: &RawMessage| Ok(Link::decode(&message.body, &group.context(message))?);
    let mut links = messages.iter().map(decode).collect::<Result<Vec<_>>>()?;
    links.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Links::Compact(Arc::new(links)))
}

fn info(group: &Object) -> Result<LinkInfo> {
    let Some(message) = group.message(kind::LINK_INFO) else {
        return Err(Error::WrongKind("not a group".into()));
    };
    Ok(LinkInfo::decode(&message.body, &group.context(&message))?)
}

fn set_info(file: &File, group: &Object, info: &LinkInfo) -> Result<()> {
    let mut body = Vec::new();
    info.encode(file.superblock().sizes, &mut body);
    group.set(kind::LINK_INFO, 0, body)
}

fn phase_change(group: &Object) -> Result<(u16, u16)> {
    let Some(message) = group.message(kind::GROUP_INFO) else { return Ok(PHASE_CHANGE) };
    let info = GroupInfo::decode(&message.body, &group.context(&message))?;
    Ok(info.phase_change.unwrap_or(PHASE_CHANGE))
}

impl Links {
    fn find(&mut self, file: &File, name: &str) -> Result<Option<Link>> {
        match self {
            Self::Unread => Ok(None),
            Self::Compact(links) => Ok(find(links, name).cloned()),
            Self::Dense(dense) => {
                let Some(stored) = dense.find(file, name)? else { return Ok(None) };
                let context = Context::new(file.superblock().sizes);
                Ok(Some(Link::decode(&stored.body, &context)?))
            }
            Self::Old(old) => old.find(file.medium(), name),
        }
    }

    /// Stages changed blocks.
    pub(crate) fn commit(&mut self, medium: &Medium) -> Result<()> {
        match self {
            Self::Unread | Self::Compact(_) => Ok(()),
            Self::Dense(dense) => dense.commit(medium),
            Self::Old(old) => old.commit(medium),
        }
    }

    /// Stages blocks that keep their address. Returns about how many bytes of memory wait for a
    /// commit.
    pub(crate) fn spill(&mut self, medium: &Medium) -> Result<usize> {
        match self {
            Self::Unread | Self::Compact(_) => Ok(0),
            Self::Dense(dense) => dense.spill(medium),
            Self::Old(old) => old.spill(medium),
        }
    }

    /// Drops blocks that can be read again.
    pub(crate) fn trim(&mut self) {
        match self {
            Self::Unread | Self::Compact(_) => {}
            Self::Dense(dense) => dense.trim(),
            Self::Old(old) => old.trim(),
        }
    }
}

fn find<'a>(links: &'a [Link], name: &str) -> Option<&'a Link> {
    let place = links.partition_point(|link| link.name.as_str() < name);
    links.get(place).filter(|link| link.name == name)
}

/// Adds a link to a group.
pub fn insert(file: &File, group: &Object, link: Link) -> Result<()> {
    let _change = file.medium().change();
    insert_during(file, group, link)
}

/// Adds a hard link to an object of the same file. The caller changes its link count.
pub fn insert_object(file: &File, group: &Object, name: &str, object: &Object) -> Result<()> {
    object.require_in(file)?;
    insert(file, group, Link::new(name, LinkTarget::Hard { address: object.address() }))
}

/// Removes a link from a group and returns it. The object stays.
pub fn remove(file: &File, group: &Object, name: &str) -> Result<Link> {
    let _change = file.medium().change();
    remove_during(file, group, name)
}

/// Renames or moves a link, or both. The object stays.
pub fn rename(
    file: &File,
    (from, name): (&Object, &str),
    (to, new_name): (&Object, &str),
) -> Result<()> {
    let _change = file.medium().change();
    check_name(new_name)?;
    if opened(file, to)?.find(file, new_name)?.is_some() {
        return Err(exists(new_name));
    }
    let old = remove_during(file, from, name)?;
    let new = Link { creation_order: None, ..Link::new(new_name, old.target.clone()) };
    insert_during(file, to, new).inspect_err(|_| {
        // As it was; that there was room for it is known.
        let _ = insert_during(file, from, old);
    })
}

fn exists(name: &str) -> Error {
    Error::Exists(format!("\"{name}\" exists already"))
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.contains(['/', '\0']) || name == "." {
        return Err(Error::Invalid(format!("\"{name}\" is no name for a link")));
    }
    Ok(())
}

fn insert_during(file: &File, group: &Object, mut link: Link) -> Result<()> {
    check_name(&link.name)?;
    file.medium().require_writable()?;
    let mut storage = opened(file, group)?;
    if storage.find(file, &link.name)?.is_some() {
        return Err(exists(&link.name));
    }
    if let Links::Old(old) = &mut *storage {
        let plain = matches!(link.target, LinkTarget::Hard { .. } | LinkTarget::Soft { .. });
        if plain && link.name.is_ascii() {
            old.insert(file.medium(), &link)?;
            return group.mark();
        }
        modernize(file, group, &mut storage)?;
    }
    let mut info = info(group)?;
    if let Some(next) = info.max_creation_order {
        link.creation_order = Some(next);
        info.max_creation_order = Some(next.saturating_add(1));
    }
    let mut body = Vec::new();
    link.encode(file.superblock().sizes, &mut body)?;
    let (max_compact, _) = phase_change(group)?;
    if let Links::Compact(links) = &*storage
        && (links.len() >= usize::from(max_compact) || body.len() > MAX_MESSAGE)
    {
        make_dense(file, group, &mut storage, &mut info)?;
    }
    match &mut *storage {
        Links::Compact(links) => {
            let place = links.partition_point(|other| other.name < link.name);
            group.push(RawMessage::new(kind::LINK, 0, body))?;
            Arc::make_mut(links).insert(place, link);
        }
        Links::Dense(dense) => {
            renew(file, dense, &mut info)?;
            dense.insert(file, &link.name, link.creation_order.unwrap_or(0), &stored(body))?;
            group.mark()?;
        }
        _ => return Err(Error::Internal("links that are nowhere".into())),
    }
    set_info(file, group, &info)
}

fn stored(body: Vec<u8>) -> Stored {
    Stored { body, flags: 0, creation_order: 0 }
}

/// Moves links from messages to dense storage.
fn make_dense(file: &File, group: &Object, storage: &mut Links, info: &mut LinkInfo) -> Result<()> {
    let Links::Compact(links) = storage else { return Ok(()) };
    let dense = filled(file, links, info)?;
    group.change(|messages| messages.retain(|message| message.kind != kind::LINK))?;
    *storage = Links::Dense(Box::new(dense));
    Ok(())
}

/// Makes new dense storage that holds these links. The caller stores its address in the group.
fn filled(file: &File, links: &[Link], info: &mut LinkInfo) -> Result<DenseStorage> {
    let mut dense = DenseStorage::create(file, Kind::Links, info.order_index_address.is_some())?;
    for link in links {
        let mut body = Vec::new();
        link.encode(file.superblock().sizes, &mut body)?;
        dense.insert(file, &link.name, link.creation_order.unwrap_or(0), &stored(body))?;
    }
    note(file, &mut dense, info)?;
    Ok(dense)
}

fn note(file: &File, dense: &mut DenseStorage, info: &mut LinkInfo) -> Result<()> {
    let addresses = dense.addresses(file)?;
    info.heap_address = addresses.heap;
    info.name_index_address = addresses.names;
    info.order_index_address = info.order_index_address.map(|_| addresses.orders);
    Ok(())
}

/// Moves links out of dense storage that cannot be changed in place.
fn renew(file: &File, dense: &mut Box<DenseStorage>, info: &mut LinkInfo) -> Result<()> {
    if dense.is_changeable() {
        return Ok(());
    }
    let context = Context::new(file.superblock().sizes);
    let decode = |stored: Stored| Ok(Link::decode(&stored.body, &context)?);
    let links = dense.list(file)?.into_iter().map(decode).collect::<Result<Vec<_>>>()?;
    let old = std::mem::replace(dense, Box::new(filled(file, &links, info)?));
    old.delete(&**file.medium())
}

/// Turns an old-style group into a new-style one.
fn modernize(file: &File, group: &Object, storage: &mut Links) -> Result<()> {
    let Links::Old(old) = storage else { return Ok(()) };
    let mut links = old.list(file.medium())?;
    links.sort_by(|a, b| a.name.cmp(&b.name));
    let mut bodies = Vec::new();
    for link in &links {
        let mut body = Vec::new();
        link.encode(file.superblock().sizes, &mut body)?;
        check_length(kind::LINK, &body)?;
        bodies.push(RawMessage::new(kind::LINK, 0, body));
    }
    let new = new_messages(&GroupSpec::default(), file.superblock().sizes);
    group.change(|messages| {
        messages.retain(|message| message.kind != kind::SYMBOL_TABLE);
        messages.extend(new);
        messages.extend(bodies);
    })?;
    let compact = Links::Compact(Arc::new(links));
    if let Links::Old(old) = std::mem::replace(storage, compact) {
        old.delete(file.medium(), &**file.medium())?;
    }
    Ok(())
}

fn remove_during(file: &File, group: &Object, name: &str) -> Result<Link> {
    let missing = || Error::NotFound(format!("no link \"{name}\""));
    file.medium().require_writable()?;
    let mut storage = opened(file, group)?;
    let sizes = file.superblock().sizes;
    match &mut *storage {
        Links::Unread => Err(missing()),
        Links::Old(old) => {
            let removed = old.remove(file.medium(), name)?.ok_or_else(missing)?;
            group.mark()?;
            Ok(removed)
        }
        Links::Compact(links) => {
            let removed = find(links, name).cloned().ok_or_else(missing)?;
            group.change(|messages| {
                messages.retain(|message| {
                    message.kind != kind::LINK
                        || Link::decode(&message.body, &Context::new(sizes))
                            .is_ok_and(|other| other.name != name)
                });
            })?;
            Arc::make_mut(links).retain(|link| link.name != name);
            let empty = links.is_empty();
            drop(storage);
            if empty {
                forget_order(file, group)?;
            }
            Ok(removed)
        }
        Links::Dense(dense) => {
            let mut info = info(group)?;
            renew(file, dense, &mut info)?;
            let context = Context::new(sizes);
            let order = |stored: &Stored| {
                Ok(Link::decode(&stored.body, &context)?.creation_order.unwrap_or(0))
            };
            let removed = dense.remove(file, name, order)?.ok_or_else(missing)?;
            let removed = Link::decode(&removed.body, &context)?;
            group.mark()?;
            make_compact(file, group, &mut storage, &mut info)?;
            set_info(file, group, &info)?;
            Ok(removed)
        }
    }
}

/// In an empty group, the order of creation begins again.
fn forget_order(file: &File, group: &Object) -> Result<()> {
    let mut info = info(group)?;
    info.max_creation_order = info.max_creation_order.map(|_| 0);
    set_info(file, group, &info)
}

/// Moves links back into messages if they are few.
fn make_compact(
    file: &File,
    group: &Object,
    storage: &mut Links,
    info: &mut LinkInfo,
) -> Result<()> {
    let Links::Dense(dense) = storage else { return Ok(()) };
    let (_, min_dense) = phase_change(group)?;
    if dense.count() >= u64::from(min_dense) && dense.count() > 0 {
        return Ok(());
    }
    let messages = dense.list(file)?;
    if messages.iter().any(|message| message.body.len() > MAX_MESSAGE) {
        return Ok(());
    }
    let context = Context::new(file.superblock().sizes);
    let decode = |stored: &Stored| Ok(Link::decode(&stored.body, &context)?);
    let mut links = messages.iter().map(decode).collect::<Result<Vec<Link>>>()?;
    links.sort_by(|a, b| a.name.cmp(&b.name));
    if links.is_empty() {
        info.max_creation_order = info.max_creation_order.map(|_| 0);
    }
    group.change(|all| {
        all.extend(messages.into_iter().map(|m| RawMessage::new(kind::LINK, 0, m.body)));
    })?;
    info.heap_address = UNDEFINED;
    info.name_index_address = UNDEFINED;
    info.order_index_address = info.order_index_address.map(|_| UNDEFINED);
    let compact = Links::Compact(Arc::new(links));
    match std::mem::replace(storage, compact) {
        Links::Dense(dense) => dense.delete(&**file.medium()),
        _ => Ok(()),
    }
}

/// Gives back the space of a group's links; the group must not be used any more.
pub(crate) fn delete(file: &File, group: &Object) -> Result<()> {
    let _change = file.medium().change();
    let mut storage = opened(file, group)?;
    match std::mem::take(&mut *storage) {
        Links::Unread | Links::Compact(_) => Ok(()),
        Links::Dense(dense) => dense.delete(&**file.medium()),
        Links::Old(old) => old.delete(file.medium(), &**file.medium()),
    }
}
