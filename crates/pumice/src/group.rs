//! Groups: names and the objects that they lead to.

use crate::destination::Destination;
use crate::file::Owner;
use crate::{
    Attribute, AttributeValue, CommittedDatatype, Dataset, DatasetBuilder, File, GroupOptions,
    ObjectPath,
};
use pumice_engine::attribute;
use pumice_engine::dataset::DatasetState;
use pumice_engine::file::File as Engine;
use pumice_engine::object::Object;
use pumice_engine::{Error, Result, copy, group};
use pumice_format::messages::{Link, LinkTarget};
use pumice_types::H5Type;
use std::sync::Arc;

/// A group of a file.
///
/// ```
/// use pumice::{File, MemberKind};
///
/// let file = File::in_memory()?;
/// let run = file.create_group("2026/run1")?;
/// run.new_dataset::<i32>().shape([3]).create("counts")?;
/// run.set_attribute("operator", "nobody")?;
///
/// assert_eq!(run.path(), "/2026/run1");
/// assert_eq!(file.dataset("2026/run1/counts")?.shape(), [3]);
/// assert_eq!(file.group("2026")?.members()?[0].kind, MemberKind::Group);
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone)]
pub struct Group {
    object: Arc<Object>,
    path: ObjectPath,
    /// Last, so that the file is closed after everything else is dropped.
    owner: Arc<Owner>,
}

/// A name in a group and the object that it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The name.
    pub name: String,
    /// The kind of its object.
    pub kind: MemberKind,
    /// Its place in the order of creation, if the group tracks that.
    pub creation_order: Option<u64>,
}

/// The kind of object that a name leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberKind {
    /// A group.
    Group,
    /// A dataset.
    Dataset,
    /// A committed datatype.
    Datatype,
    /// A path in this file, which need not exist.
    SoftLink(String),
    /// A file and a path in it.
    ExternalLink(String, String),
    /// A link of a class that its author has registered: 65 to 255.
    UserDefinedLink(u8),
    /// An object that cannot be read, and why.
    Unreadable(String),
    /// Something else.
    Other,
}

/// The object at a path.
pub enum Node {
    /// A group.
    Group(Group),
    /// A dataset.
    Dataset(Dataset),
    /// A committed datatype.
    Datatype(CommittedDatatype),
}

impl Node {
    /// The address of its object header: two nodes of a file with equal addresses are the same.
    pub fn address(&self) -> u64 {
        match self {
            Self::Group(group) => group.address(),
            Self::Dataset(dataset) => dataset.address(),
            Self::Datatype(datatype) => datatype.address(),
        }
    }

    /// Its path in the file.
    pub fn object_path(&self) -> &ObjectPath {
        match self {
            Self::Group(group) => group.object_path(),
            Self::Dataset(dataset) => dataset.object_path(),
            Self::Datatype(datatype) => datatype.object_path(),
        }
    }

    /// The file that it is in: an external link may have led to another.
    pub fn file(&self) -> Result<File> {
        File::of(match self {
            Self::Group(group) => group.owner().clone(),
            Self::Dataset(dataset) => dataset.owner().clone(),
            Self::Datatype(datatype) => datatype.owner().clone(),
        })
    }

    /// Its attributes, in order of their names.
    pub fn attributes(&self) -> Result<Vec<Attribute>> {
        match self {
            Self::Group(group) => group.attributes(),
            Self::Dataset(dataset) => dataset.attributes(),
            Self::Datatype(datatype) => datatype.attributes(),
        }
    }

    /// The names of its attributes in the order in which they were made, if it keeps that, otherwise in the order in
    /// which they are stored.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// file.create_group("run")?.set_attribute("operator", "nobody")?;
    /// assert_eq!(file.node("run")?.attribute_names()?, ["operator"]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn attribute_names(&self) -> Result<Vec<String>> {
        let file = self.file()?;
        let object = file.engine().object(self.address())?;
        attribute::names_in_order(file.engine(), &object)
            .map_err(|error| error.at(self.object_path()))
    }
}

impl Group {
    pub(crate) fn root(owner: Arc<Owner>) -> Result<Self> {
        let object = owner.0.root().map_err(|error| error.at("/"))?;
        Ok(Self { owner, object, path: ObjectPath::root() })
    }

    /// The owner that keeps its file open.
    pub(crate) fn into_owner(self) -> Arc<Owner> {
        self.owner
    }

    pub(crate) fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.owner.0
    }

    /// The file, ready for a change. To be called before the change begins.
    pub(crate) fn changing(&self) -> Result<&Engine> {
        self.owner.begin_object_change().map_err(|error| error.at(&self.path))?;
        Ok(self.engine())
    }

    /// Its path in the file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path of the group as a value to keep: it shares its memory with the paths of the groups above.
    pub fn object_path(&self) -> &ObjectPath {
        &self.path
    }

    /// The number of hard links to it.
    pub fn link_count(&self) -> u32 {
        self.object.link_count()
    }

    /// The time of its last change in seconds since 1970, if it keeps that.
    pub fn modified(&self) -> Option<u32> {
        self.object.modified()
    }

    /// The comment that was given to the group.
    pub fn comment(&self) -> Option<String> {
        crate::dataset::creation::comment(&self.object)
    }

    /// Sets the group's comment, or removes it.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// file.set_comment(Some("calibrated"))?;
    /// assert_eq!(file.comment().as_deref(), Some("calibrated"));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn set_comment(&self, text: Option<&str>) -> Result<()> {
        self.changing()?;
        let set = crate::dataset::creation::set_comment(&self.object, text);
        set.map_err(|error| error.at(&self.path))
    }

    /// The address of its object header: two handles with equal addresses are the same group.
    pub fn address(&self) -> u64 {
        self.object.address()
    }

    /// Its members, in order of their names. One that cannot be read is
    /// [`Unreadable`](MemberKind::Unreadable) and hides no other.
    pub fn members(&self) -> Result<Vec<Member>> {
        let links = group::links(self.engine(), &self.object).map_err(|e| e.at(&self.path))?;
        let member = |link: Link| Member {
            kind: self.kind_of_target(link.target),
            name: link.name,
            creation_order: link.creation_order,
        };
        Ok(links.into_iter().map(member).collect())
    }

    fn kind_of_target(&self, target: LinkTarget) -> MemberKind {
        match target {
            LinkTarget::Hard { address } => match self.engine().object(address) {
                Ok(object) => kind_of(&object),
                Err(error) => MemberKind::Unreadable(error.to_string()),
            },
            LinkTarget::Soft { path } => MemberKind::SoftLink(path),
            LinkTarget::External { file, path } => MemberKind::ExternalLink(file, path),
            LinkTarget::UserDefined { class, .. } => MemberKind::UserDefinedLink(class),
        }
    }

    /// Whether `path` leads to an object.
    pub fn contains(&self, path: &str) -> bool {
        self.resolve(path).is_ok()
    }

    /// The object at `path`. Soft and external links are followed. The file of an external link
    /// stays open as long as the object, for editing if this file is and that one can be.
    pub fn node(&self, path: &str) -> Result<Node> {
        let (owner, object) = self.resolve(path)?;
        open(owner, object, self.child_path(path))
    }

    /// The group at `path`.
    pub fn group(&self, path: &str) -> Result<Group> {
        match self.node(path)? {
            Node::Group(group) => Ok(group),
            _ => Err(Error::WrongKind("not a group".into()).at(&self.child_path(path))),
        }
    }

    /// The committed datatype at `path`.
    pub fn committed_datatype(&self, path: &str) -> Result<CommittedDatatype> {
        match self.node(path)? {
            Node::Datatype(datatype) => Ok(datatype),
            _ => Err(Error::WrongKind("not a datatype".into()).at(&self.child_path(path))),
        }
    }

    /// The dataset at `path`.
    pub fn dataset(&self, path: &str) -> Result<Dataset> {
        let (owner, object) = self.resolve(path)?;
        open_dataset(owner, object, self.child_path(path))
    }

    /// Makes a group, and the groups on the way to it.
    pub fn create_group(&self, path: &str) -> Result<Group> {
        self.create_group_with(path, &GroupOptions::default())
    }

    /// Creates a group with unusual properties, and the groups on the way to it.
    pub fn create_group_with(&self, path: &str, options: &GroupOptions) -> Result<Group> {
        let place = self.destination(path)?;
        let owner = place.owner().clone();
        let object = place.fill(|file| group::create(file, &options.spec), |object| object)?;
        Ok(Group { owner, object, path: place.path })
    }

    /// Begins a dataset with elements of `T`: a number, `bool`, `String`, `Vec`, an array, a struct or an enum.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let flags = file.new_dataset::<bool>().shape([2]).create("flags")?;
    /// flags.write(.., &[true, false])?;
    /// let walks = file.new_dataset::<Vec<u32>>().shape([2]).create("walks")?;
    /// walks.write(.., &[vec![1, 2, 3], vec![]])?;
    /// assert_eq!(walks.read::<Vec<f64>>(0)?, [[1.0, 2.0, 3.0]]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn new_dataset<T: H5Type>(&self) -> DatasetBuilder {
        DatasetBuilder::new(self.clone(), self.fitted(T::datatype()))
    }

    /// A datatype with references as wide as this file has them.
    pub(crate) fn fitted(&self, datatype: pumice_types::Datatype) -> pumice_types::Datatype {
        match datatype.has_references() {
            // Filters that do not fit are refused when the dataset is created.
            true => copy::sized(&datatype, self.engine()).unwrap_or(datatype),
            false => datatype,
        }
    }

    /// Begins a dataset with elements of any datatype.
    pub fn new_dataset_of(&self, datatype: pumice_types::Datatype) -> DatasetBuilder {
        DatasetBuilder::new(self.clone(), datatype)
    }

    /// Begins a dataset of UTF-8 strings of any length.
    pub fn new_strings(&self) -> DatasetBuilder {
        self.new_dataset_of(pumice_types::Datatype::varlen_string(self.reference_size()))
    }

    /// Begins a dataset of sequences of any length.
    pub fn new_sequences(&self, base: pumice_types::Datatype) -> DatasetBuilder {
        self.new_dataset_of(pumice_types::Datatype::varlen(base, self.reference_size()))
    }

    /// Bytes of a variable-length reference in this file: a length and a global heap id.
    pub fn reference_size(&self) -> u32 {
        8 + u32::from(self.engine().superblock().sizes.offset)
    }

    /// Begins a dataset with the datatype, shape, fill value and chunks of another, to be stored in
    /// any way.
    pub fn new_dataset_like(&self, other: &Dataset) -> DatasetBuilder {
        DatasetBuilder::like(self.clone(), other)
    }

    pub(crate) fn link_dataset(
        &self,
        path: &str,
        mut spec: pumice_engine::dataset::DatasetSpec,
    ) -> Result<Dataset> {
        let place = self.destination(path)?;
        if !place.is_in(&self.owner) {
            // It was described for this file; addresses may have another width there.
            copy::fit(&mut spec, &place.owner().0).map_err(|error| error.at(&place.path))?;
        }
        // Listed before it can be found: a dataset must have only one state.
        let make = |file: &Engine| file.new_dataset(DatasetState::create(file, spec)?);
        let state = place.fill(make, |state| state.object())?;
        Ok(Dataset::new(place.owner().clone(), state, place.path))
    }

    /// Whether it has an attribute with this name.
    pub fn has_attribute(&self, name: &str) -> Result<bool> {
        let has = attribute::has(self.engine(), &self.object, name);
        has.map_err(|error| error.at(&self.path))
    }

    /// The names of its attributes, in order.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// file.set_attribute("title", "stones")?;
    /// file.set_attribute("count", 7)?;
    /// assert_eq!(file.attribute_names()?, ["count", "title"]);
    /// assert!(file.has_attribute("title")?);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn attribute_names(&self) -> Result<Vec<String>> {
        let names = attribute::names(self.engine(), &self.object);
        names.map_err(|error| error.at(&self.path))
    }

    /// Its attributes, in order of their names.
    pub fn attributes(&self) -> Result<Vec<Attribute>> {
        Attribute::all(&self.owner, &self.object, &self.path)
    }

    /// The attribute of a name.
    pub fn attribute(&self, name: &str) -> Result<Attribute> {
        Attribute::find(&self.owner, &self.object, &self.path, name)
    }

    /// Adds or replaces an attribute.
    pub fn set_attribute(&self, name: &str, value: impl AttributeValue) -> Result<()> {
        let set = crate::attribute::set(self.changing()?, &self.object, name, &value);
        set.map_err(|error| error.at(&self.path))
    }

    /// Renames an attribute.
    pub fn rename_attribute(&self, name: &str, new_name: &str) -> Result<()> {
        let renamed = attribute::rename(self.changing()?, &self.object, name, new_name);
        renamed.map_err(|error| error.at(&self.path))
    }

    /// Removes an attribute.
    pub fn remove_attribute(&self, name: &str) -> Result<()> {
        attribute::remove(self.changing()?, &self.object, name).map_err(|e| e.at(&self.path))
    }

    pub(crate) fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// The file and the object at `path`.
    pub(crate) fn resolve(&self, path: &str) -> Result<(Arc<Owner>, Arc<Object>)> {
        let found = group::resolve(self.engine(), &self.object, path);
        let found = found.map_err(|error| match error {
            Error::NotFound(_) => error,
            other => other.at(&self.child_path(path)),
        })?;
        let owner = match found.file {
            Some(file) => Arc::new(self.owner.beside(file)),
            None => self.owner.clone(),
        };
        Ok((owner, found.object))
    }

    pub(crate) fn child_path(&self, path: &str) -> ObjectPath {
        self.path.child(path)
    }

    /// The place for a new link at `path`; groups on the way are created.
    pub(crate) fn destination<'a>(&self, path: &'a str) -> Result<Destination<'a>> {
        let (folders, name) = split(path);
        let mut parent = match path.starts_with('/') {
            true => Self::root(self.owner.clone())?,
            false => self.clone(),
        };
        for folder in folders.split('/').filter(|folder| !folder.is_empty() && *folder != ".") {
            parent = parent.group_or_new(folder)?;
        }
        Destination::new(parent, name)
    }

    /// The missing groups on the way to a new object at `path`, innermost first.
    pub(crate) fn absent_groups<'a>(&self, path: &'a str) -> Vec<&'a str> {
        let parents = path.trim_end_matches('/').rmatch_indices('/').map(|(end, _)| &path[..end]);
        parents.take_while(|parent| !parent.is_empty() && !self.contains(parent)).collect()
    }

    /// Removes empty groups, each of which is in the next. Errors are ignored: nobody wants these
    /// groups any more.
    pub(crate) fn remove_empty(&self, groups: &[&str]) {
        let is_empty = |path: &str| {
            let members = self.group(path).and_then(|group| group.members());
            members.is_ok_and(|members| members.is_empty())
        };
        for path in groups.iter().filter(|path| !path.is_empty()) {
            if !is_empty(path) || self.unlink(path).is_err() {
                return;
            }
        }
    }

    /// The group of a name, made if need be.
    fn group_or_new(&self, name: &str) -> Result<Group> {
        let exists = || Ok::<_, Error>(group::link(self.engine(), &self.object, name)?.is_some());
        if !exists()? {
            let made = self.create_group(name);
            // If it failed because another thread was faster, theirs is as good.
            if made.is_ok() || !exists()? {
                return made;
            }
        }
        self.group(name)
    }
}

/// The path of the group that holds the last name of `path`, and that name.
pub(crate) fn split(path: &str) -> (&str, &str) {
    let path = path.trim_end_matches('/');
    match path.rfind('/') {
        Some(place) => (&path[..=place], &path[place + 1..]),
        None => ("", path),
    }
}

/// Opens an object as its kind.
pub(crate) fn open(owner: Arc<Owner>, object: Arc<Object>, path: ObjectPath) -> Result<Node> {
    match kind_of(&object) {
        MemberKind::Group => Ok(Node::Group(Group { owner, object, path })),
        MemberKind::Dataset => Ok(Node::Dataset(open_dataset(owner, object, path)?)),
        MemberKind::Datatype => Ok(Node::Datatype(CommittedDatatype::new(owner, object, path)?)),
        _ => Err(Error::WrongKind("neither group nor dataset nor datatype".into()).at(&path)),
    }
}

fn open_dataset(owner: Arc<Owner>, object: Arc<Object>, path: ObjectPath) -> Result<Dataset> {
    if kind_of(&object) != MemberKind::Dataset {
        return Err(Error::WrongKind("not a dataset".into()).at(&path));
    }
    let open = || DatasetState::open(&owner.0, &object);
    let state = owner.0.dataset(object.address(), open).map_err(|e| e.at(&path))?;
    Ok(Dataset::new(owner, state, path))
}

fn kind_of(object: &Object) -> MemberKind {
    use pumice_format::messages::kind;
    if group::is_group(object) {
        MemberKind::Group
    } else if object.has(kind::LAYOUT) {
        MemberKind::Dataset
    } else if object.has(kind::DATATYPE) {
        MemberKind::Datatype
    } else {
        MemberKind::Other
    }
}
