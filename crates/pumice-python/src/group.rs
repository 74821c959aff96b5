//! Groups, and the common parts of all objects of a file.

use crate::attributes::PyAttributes;
use crate::create::{NewDataset, built};
use crate::dataset::PyDataset;
use crate::datatype::PyDatatype;
use crate::errors::{invalid, raised};
use crate::file::PyFile;
use crate::handles::{Again, Keeper, Slot};
use crate::reference::PyReference;
use crate::selection::PySelection;
use numpy::{PyArray1, PyReadonlyArray1};
use pumice::{
    CommittedDatatype, CopyOptions, Dataset, File, Group, GroupOptions, LinkTarget, Node,
    ReferenceType,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// A group, a dataset or a committed datatype.
#[derive(Clone)]
pub(crate) enum Object {
    Group(Group),
    Dataset(Dataset),
    Datatype(CommittedDatatype),
}

impl Object {
    /// The object as a node of the library.
    pub(crate) fn node(&self) -> Node {
        match self.clone() {
            Self::Group(group) => Node::Group(group),
            Self::Dataset(dataset) => Node::Dataset(dataset),
            Self::Datatype(datatype) => Node::Datatype(datatype),
        }
    }
}

impl Again for Object {
    fn again(&self, file: &File) -> Option<Self> {
        let path = self.node().object_path().to_string();
        Some(file.node(&path).ok()?.into())
    }
}

impl From<Node> for Object {
    fn from(node: Node) -> Self {
        match node {
            Node::Group(group) => Self::Group(group),
            Node::Dataset(dataset) => Self::Dataset(dataset),
            Node::Datatype(datatype) => Self::Datatype(datatype),
        }
    }
}

/// The methods of all objects.
#[pyclass(frozen, name = "Object", module = "pumice._pumice")]
#[derive(Clone)]
pub(crate) struct PyObjectHandle {
    object: Arc<Slot<Object>>,
    keeper: Arc<Keeper>,
}

impl PyObjectHandle {
    pub(crate) fn new(object: Object, keeper: &Arc<Keeper>) -> Self {
        Self { object: keeper.slot(object), keeper: keeper.clone() }
    }

    /// The object, for one call.
    pub(crate) fn object(&self) -> PyResult<Object> {
        self.object.handle()
    }

    fn group(&self) -> PyResult<Group> {
        match self.object()? {
            Object::Group(group) => Ok(group),
            _ => Err(invalid("not a group")),
        }
    }
}

#[pymethods]
impl PyObjectHandle {
    /// "group", "dataset" or "datatype".
    #[getter]
    fn kind(&self) -> PyResult<&'static str> {
        Ok(match self.object()? {
            Object::Group(_) => "group",
            Object::Dataset(_) => "dataset",
            Object::Datatype(_) => "datatype",
        })
    }

    /// Whether the object and its file are open.
    #[getter]
    fn is_open(&self) -> bool {
        self.object.is_open()
    }

    /// Drops the handle.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.object.take()));
    }

    /// The path that it was opened by.
    #[getter]
    fn path(&self) -> PyResult<String> {
        Ok(self.object()?.node().object_path().to_string())
    }

    /// The address of its header.
    #[getter]
    fn address(&self) -> PyResult<u64> {
        Ok(self.object()?.node().address())
    }

    /// The number of hard links to it.
    #[getter]
    fn link_count(&self) -> PyResult<u32> {
        Ok(match self.object()? {
            Object::Group(group) => group.link_count(),
            Object::Dataset(dataset) => dataset.link_count(),
            Object::Datatype(datatype) => datatype.link_count(),
        })
    }

    /// The time of its last change in seconds since 1970, if it keeps that.
    #[getter]
    fn modified(&self) -> PyResult<Option<u32>> {
        Ok(match self.object()? {
            Object::Group(group) => group.modified(),
            Object::Dataset(dataset) => dataset.modified(),
            Object::Datatype(datatype) => datatype.modified(),
        })
    }

    /// The file that it is in.
    fn file(&self) -> PyResult<PyFile> {
        Ok(PyFile::of(self.object()?.node().file().map_err(raised)?))
    }

    /// The path of its file, if that has one.
    #[getter]
    fn file_path(&self) -> PyResult<Option<std::path::PathBuf>> {
        let file = self.object()?.node().file().map_err(raised)?;
        Ok(file.file_path().map(Into::into))
    }

    /// Its attributes.
    fn attributes(&self) -> PyAttributes {
        PyAttributes(self.clone())
    }

    /// The object as a group.
    fn as_group(&self) -> PyResult<PyGroup> {
        self.group()?;
        Ok(PyGroup(self.clone()))
    }

    /// The object as a dataset.
    fn as_dataset(&self) -> PyResult<PyDataset> {
        match self.object()? {
            Object::Dataset(dataset) => Ok(PyDataset::new(dataset, &self.keeper)),
            _ => Err(invalid("not a dataset")),
        }
    }

    /// The datatype, of a dataset or a committed datatype.
    fn datatype(&self) -> PyResult<PyDatatype> {
        match self.object()? {
            Object::Group(_) => Err(invalid("a group has no datatype")),
            Object::Dataset(dataset) => Ok(PyDatatype(dataset.datatype().clone())),
            Object::Datatype(datatype) => Ok(PyDatatype(datatype.datatype().clone())),
        }
    }
}

/// A group.
#[pyclass(frozen, name = "Group", module = "pumice._pumice")]
pub(crate) struct PyGroup(PyObjectHandle);

impl PyGroup {
    pub(crate) fn new(group: Group, keeper: &Arc<Keeper>) -> Self {
        Self(PyObjectHandle::new(Object::Group(group), keeper))
    }

    fn opened(&self, node: Node) -> PyObjectHandle {
        PyObjectHandle::new(node.into(), &self.0.keeper)
    }
}

/// A link: its kind and its target.
type LinkFacts = (&'static str, Option<String>, Option<String>);

fn link_facts(target: LinkTarget) -> LinkFacts {
    match target {
        LinkTarget::Hard { .. } => ("hard", None, None),
        LinkTarget::Soft { path } => ("soft", Some(path), None),
        LinkTarget::External { file, path } => ("external", Some(path), Some(file)),
        LinkTarget::UserDefined { .. } => ("user-defined", None, None),
    }
}

fn meaning(kind: &str) -> PyResult<ReferenceType> {
    match kind {
        "object" => Ok(ReferenceType::Object),
        "region" => Ok(ReferenceType::Region),
        "any" => Ok(ReferenceType::Any),
        other => Err(invalid(format!("{other} is no kind of reference"))),
    }
}

#[pymethods]
impl PyGroup {
    /// The group as an object.
    fn object(&self) -> PyObjectHandle {
        self.0.clone()
    }

    /// The names of its members, each with its place in the order of creation if the group tracks that.
    fn names(&self, py: Python<'_>) -> PyResult<Vec<(String, Option<u64>)>> {
        let group = self.0.group()?;
        py.detach(|| group.link_names()).map_err(raised)
    }

    /// The number of its members.
    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        let group = self.0.group()?;
        py.detach(|| group.member_count()).map_err(raised)
    }

    /// The link at a path, not followed.
    fn link(&self, py: Python<'_>, path: &str) -> PyResult<Option<LinkFacts>> {
        let group = self.0.group()?;
        let found = py.detach(|| group.link(path)).map_err(raised)?;
        Ok(found.map(link_facts))
    }

    /// Whether a path leads to an object.
    fn leads(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        let group = self.0.group()?;
        Ok(py.detach(|| group.contains(path)))
    }

    /// The object at a path.
    fn open(&self, py: Python<'_>, path: &str) -> PyResult<PyObjectHandle> {
        let group = self.0.group()?;
        Ok(self.opened(py.detach(|| group.node(path)).map_err(raised)?))
    }

    /// The path of the object at an address.
    fn path_of(&self, py: Python<'_>, address: u64) -> PyResult<Option<String>> {
        let group = self.0.group()?;
        Ok(py.detach(|| group.path_of(address)))
    }

    /// Makes a group.
    fn create_group(
        &self,
        py: Python<'_>,
        path: &str,
        track_order: bool,
    ) -> PyResult<PyObjectHandle> {
        let group = self.0.group()?;
        let options =
            GroupOptions::new().track_order(track_order).track_attribute_order(track_order);
        let made = py.detach(|| group.create_group_with(path, &options)).map_err(raised)?;
        Ok(self.opened(Node::Group(made)))
    }

    /// Makes a dataset.
    fn create_dataset(
        &self,
        py: Python<'_>,
        path: &str,
        datatype: &PyDatatype,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<PyObjectHandle> {
        let group = self.0.group()?;
        let committed = match options.get_item("committed")? {
            Some(committed) => Some(committed.cast::<PyObjectHandle>()?.get().object()?),
            None => None,
        };
        let builder = match committed {
            None => group.new_dataset_of(datatype.0.clone()),
            Some(Object::Datatype(committed)) => group.new_dataset_of_committed(&committed),
            Some(_) => return Err(invalid("only a committed datatype can be a dataset's type")),
        };
        let builder = built(builder, &NewDataset::parse(options)?);
        let made = py.detach(|| builder.create(path)).map_err(raised)?;
        Ok(self.opened(Node::Dataset(made)))
    }

    /// Stores a datatype under a name.
    fn commit(
        &self,
        py: Python<'_>,
        path: &str,
        datatype: &PyDatatype,
    ) -> PyResult<PyObjectHandle> {
        let group = self.0.group()?;
        let made = py.detach(|| group.commit_datatype(path, &datatype.0)).map_err(raised)?;
        Ok(self.opened(Node::Datatype(made)))
    }

    /// Creates a hard link to an object.
    fn link_object(&self, py: Python<'_>, path: &str, target: &PyObjectHandle) -> PyResult<()> {
        let (group, object) = (self.0.group()?, target.object()?);
        py.detach(|| group.link_node(path, &object.node())).map_err(raised)
    }

    /// Makes a link to a path of this file.
    fn link_soft(&self, py: Python<'_>, path: &str, target: &str) -> PyResult<()> {
        let group = self.0.group()?;
        py.detach(|| group.create_soft_link(path, target)).map_err(raised)
    }

    /// Makes a link to a path of another file.
    fn link_external(&self, py: Python<'_>, path: &str, file: &str, target: &str) -> PyResult<()> {
        let group = self.0.group()?;
        py.detach(|| group.create_external_link(path, file, target)).map_err(raised)
    }

    /// Takes a link away.
    fn unlink(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        let group = self.0.group()?;
        py.detach(|| group.unlink(path)).map_err(raised)
    }

    /// Renames a link.
    fn rename(&self, py: Python<'_>, path: &str, new_path: &str) -> PyResult<()> {
        let group = self.0.group()?;
        py.detach(|| group.rename(path, new_path)).map_err(raised)
    }

    /// Copies an object, to this file or another.
    fn copy(
        &self,
        py: Python<'_>,
        path: &str,
        to: &PyGroup,
        new_path: &str,
        flags: (bool, bool, bool, bool, bool),
    ) -> PyResult<()> {
        let (group, to) = (self.0.group()?, to.0.group()?);
        let (shallow, soft, external, references, without_attributes) = flags;
        let options = CopyOptions::new()
            .shallow(shallow)
            .expand_soft_links(soft)
            .expand_external_links(external)
            .expand_references(references)
            .without_attributes(without_attributes);
        py.detach(|| group.copy_object(path, &to, new_path, &options)).map_err(raised)
    }

    /// A reference to the object at a path.
    fn reference(&self, py: Python<'_>, path: &str) -> PyResult<PyReference> {
        let group = self.0.group()?;
        py.detach(|| group.reference(path)).map(PyReference).map_err(raised)
    }

    /// A reference to cells of the dataset at a path.
    fn region(&self, py: Python<'_>, path: &str, cells: &PySelection) -> PyResult<PyReference> {
        let group = self.0.group()?;
        py.detach(|| group.region_reference(path, &cells.0)).map(PyReference).map_err(raised)
    }

    /// The object that a reference leads to.
    fn dereference(&self, py: Python<'_>, reference: &PyReference) -> PyResult<PyObjectHandle> {
        let group = self.0.group()?;
        Ok(self.opened(py.detach(|| group.dereference(&reference.0)).map_err(raised)?))
    }

    /// The cells that a reference leads to, and the shape of their dataset.
    fn dereference_region(
        &self,
        py: Python<'_>,
        reference: &PyReference,
    ) -> PyResult<(PySelection, Vec<u64>)> {
        let group = self.0.group()?;
        let found = py.detach(|| group.dereference_region(&reference.0)).map_err(raised)?;
        Ok((PySelection(found.1), found.0.shape()))
    }

    /// The references in elements of this file; `None` for null ones.
    fn references(
        &self,
        py: Python<'_>,
        datatype: &PyDatatype,
        elements: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<Vec<Option<PyReference>>> {
        let (group, elements) = (self.0.group()?, elements.as_slice()?);
        let found = py.detach(|| group.references(&datatype.0, elements)).map_err(raised)?;
        Ok(found.into_iter().map(|found| found.map(PyReference)).collect())
    }

    /// Elements of this file with these references.
    fn reference_elements<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        references: Vec<Option<PyRef<'py, PyReference>>>,
    ) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let (group, meaning) = (self.0.group()?, meaning(kind)?);
        let size = group.reference_datatype(meaning).size();
        let given: Vec<Option<pumice::Reference>> =
            references.iter().map(|one| one.as_ref().map(|one| one.0.clone())).collect();
        let elements = || -> pumice::Result<Vec<u8>> {
            let mut elements = Vec::with_capacity(size * given.len());
            for reference in &given {
                match reference {
                    None => elements.resize(elements.len() + size, 0),
                    Some(reference) => match group.reference_value(reference, meaning)? {
                        pumice::Value::Reference(element) => elements.extend(element),
                        _ => {
                            return Err(pumice::Error::Internal("a reference that is none".into()));
                        }
                    },
                }
            }
            Ok(elements)
        };
        Ok(PyArray1::from_vec(py, py.detach(elements).map_err(raised)?))
    }

    /// The datatype of references of this file.
    fn reference_datatype(&self, kind: &str) -> PyResult<PyDatatype> {
        Ok(PyDatatype(self.0.group()?.reference_datatype(meaning(kind)?)))
    }

    /// Bytes of a reference to data of variable length in this file.
    #[getter]
    fn reference_size(&self) -> PyResult<u32> {
        Ok(self.0.group()?.reference_size())
    }

    /// The comment, and a new one.
    #[getter]
    fn comment(&self) -> PyResult<Option<String>> {
        Ok(self.0.group()?.comment())
    }
}
