//! References to objects, to regions of datasets, to attributes: making and following them.

use crate::{
    Attribute, AttributeValue, Dataset, DatasetBuilder, Extent, Group, Node, Select, Selection,
    Value,
};
use pumice_engine::attribute::{NewAttribute, Values};
use pumice_engine::file::File as Engine;
use pumice_engine::reference::{self, Home, Reference as Stored, Target};
use pumice_engine::{Error, Result};
use pumice_types::{Datatype, H5Type, Heap, OrNull, ReferenceKind, TypeError};
use std::sync::Arc;

/// A reference as a file has it: to an object, to elements of a dataset or to an attribute.
///
/// Which file it leads to is known only where it was read: follow it with the group or file there
/// ([`Group::dereference`]). Another file that is open does not take it.
#[derive(Clone, Debug)]
pub struct Reference(Stored, Home);

impl PartialEq for Reference {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Reference {}

impl Reference {
    pub(crate) fn new(stored: Stored, home: Home) -> Self {
        Self(stored, home)
    }

    /// Makes an element of a file refer to the same object.
    pub(crate) fn store(
        &self,
        file: &Engine,
        kind: &pumice_types::Reference,
        element: &mut [u8],
    ) -> Result<()> {
        self.1.check(&self.0, file)?;
        reference::store(file, kind, Some(&self.0), element)
    }

    /// References that a file has.
    fn all(file: &Engine, found: Vec<Option<Stored>>) -> Vec<Option<Self>> {
        found.into_iter().map(|found| found.map(|found| Self(found, Home::of(file)))).collect()
    }

    /// The address of the object's header.
    pub fn address(&self) -> u64 {
        self.0.address
    }

    /// The file of its object, if that is another one.
    pub fn file(&self) -> Option<&str> {
        self.0.file.as_deref()
    }

    /// Whether it refers to elements of a dataset.
    pub fn is_region(&self) -> bool {
        matches!(self.0.target, Target::Region { .. })
    }

    /// The name of the attribute that it means, if it means one.
    pub fn attribute(&self) -> Option<&str> {
        match &self.0.target {
            Target::Attribute(name) => Some(name),
            _ => None,
        }
    }
}

/// The kinds of references in a dataset or an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceType {
    /// Objects; libhdf5's `H5T_STD_REF_OBJ`.
    Object,
    /// Elements of datasets; libhdf5's `H5T_STD_REF_DSETREG`.
    Region,
    /// Objects, elements of datasets and attributes; libhdf5's `H5T_STD_REF`, since 1.12.
    Any,
}

impl ReferenceType {
    fn kind(self) -> ReferenceKind {
        match self {
            Self::Object => ReferenceKind::Object,
            Self::Region => ReferenceKind::Region,
            Self::Any => ReferenceKind::Object2 { version: 1 },
        }
    }
}

impl Group {
    /// A reference to the object at `path`, which must be in this file.
    ///
    /// ```
    /// use pumice::{File, Node, ReferenceType};
    ///
    /// let file = File::in_memory()?;
    /// let data = file.new_dataset::<i32>().shape([10]).create("data")?;
    /// data.write(.., &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9])?;
    ///
    /// let links = file.new_references(ReferenceType::Object).shape([2]).create("links")?;
    /// links.write_references(0, &[Some(file.reference("data")?)])?;
    /// let found = links.read_references(..)?;
    /// assert!(matches!(file.dereference(found[0].as_ref().unwrap())?, Node::Dataset(_)));
    /// assert!(found[1].is_none(), "never written");
    ///
    /// file.set_attribute("part", file.region_reference("data", 3..5)?)?;
    /// let found = file.attribute("part")?.read_references()?;
    /// let (data, part) = file.dereference_region(found[0].as_ref().unwrap())?;
    /// assert_eq!(data.read::<i32>(part)?, [3, 4]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn reference(&self, path: &str) -> Result<Reference> {
        Ok(self.made(self.own(path)?, Target::Object))
    }

    /// A reference to elements of the dataset at `path`, which must be in this file.
    pub fn region_reference(&self, path: &str, selection: impl Select) -> Result<Reference> {
        let address = self.own(path)?;
        let dataset = self.dataset(path)?;
        let target = dataset.selected(selection, |cells, dims| reference::region(cells, dims))?;
        Ok(self.made(address, target))
    }

    /// A reference to an attribute of the object at `path`, which must be in this file.
    pub fn attribute_reference(&self, path: &str, name: &str) -> Result<Reference> {
        let target = Target::Attribute(name.into());
        Ok(self.made(self.own(path)?, target))
    }

    fn made(&self, address: u64, target: Target) -> Reference {
        Reference(Stored { file: None, address, target }, Home::of(self.engine()))
    }

    /// The address of an object of this file.
    fn own(&self, path: &str) -> Result<u64> {
        let (owner, object) = self.resolve(path)?;
        if std::ptr::eq(&*owner.0, self.engine()) {
            return Ok(object.address());
        }
        let what = "a reference to an object of another file";
        Err(Error::Invalid(what.into()).at(&self.child_path(path)))
    }

    /// The type of references in this file.
    pub fn reference_datatype(&self, meaning: ReferenceType) -> Datatype {
        reference::datatype(self.engine(), meaning.kind())
    }

    /// Begins a dataset of references; see [`reference`](Self::reference).
    pub fn new_references(&self, meaning: ReferenceType) -> DatasetBuilder {
        self.new_dataset_of(self.reference_datatype(meaning))
    }

    /// The references in elements of a reference type of this file, such as those of
    /// [`Value::Reference`](crate::Value::Reference); `None` for null ones.
    pub fn references(
        &self,
        datatype: &Datatype,
        elements: &[u8],
    ) -> Result<Vec<Option<Reference>>> {
        let found = reference::references(self.engine(), datatype, elements)?;
        Ok(Reference::all(self.engine(), found))
    }

    /// The reference that a [`Value`] of this file is; `None` for one that leads nowhere.
    ///
    /// ```
    /// use pumice::{File, ReferenceType};
    ///
    /// let file = File::in_memory()?;
    /// file.create_group("a")?;
    /// let links = file.new_references(ReferenceType::Object).shape([1]).create("links")?;
    /// let made = file.reference_value(&file.reference("a")?, ReferenceType::Object)?;
    /// links.write_values(.., &[made])?;
    /// let found = links.read_values(..)?;
    /// assert_eq!(file.reference_of(&found[0])?, Some(file.reference("a")?));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn reference_of(&self, value: &Value) -> Result<Option<Reference>> {
        let kinds = [ReferenceType::Object, ReferenceType::Region, ReferenceType::Any];
        let Value::Reference(element) = value else {
            return Err(Error::TypeMismatch(format!("{value} is no reference")));
        };
        // Each kind has a length of its own.
        let mut types = kinds.map(|kind| self.reference_datatype(kind)).into_iter();
        let datatype = types.find(|datatype| datatype.size() == element.len());
        let datatype = datatype.ok_or_else(|| {
            Error::TypeMismatch(format!("{value} is no reference of a file like this one"))
        })?;
        Ok(self.references(&datatype, element)?.pop().flatten())
    }

    /// A reference as a [`Value`], for datasets and attributes of this file whose elements are, or
    /// contain, references of that type; see [`reference_of`](Self::reference_of).
    pub fn reference_value(&self, reference: &Reference, meaning: ReferenceType) -> Result<Value> {
        let Datatype::Reference(kind) = self.reference_datatype(meaning) else {
            return Err(Error::Internal("a type of references that is none".into()));
        };
        let mut element = vec![0; kind.size as usize];
        reference.store(self.changing()?, &kind, &mut element)?;
        Ok(Value::Reference(element))
    }

    /// The object that a reference of this file names. Its path is unknown: see
    /// [`path_of`](Self::path_of).
    pub fn dereference(&self, reference: &Reference) -> Result<Node> {
        let owner = match reference.file() {
            Some(name) => {
                Arc::new(self.owner().beside(reference::other_file(self.engine(), name)?))
            }
            None => self.owner().clone(),
        };
        let address = reference.address();
        let path = format!("<object at {address:#x}>");
        let object = owner.0.object(address).map_err(|error| error.at(&path))?;
        crate::group::open(owner, object, path.into())
    }

    /// The dataset that a reference of this file names, with the selected elements; all of them if
    /// it names the whole dataset.
    pub fn dereference_region(&self, reference: &Reference) -> Result<(Dataset, Selection)> {
        let Node::Dataset(dataset) = self.dereference(reference)? else {
            return Err(Error::WrongKind("a reference to something that is no dataset".into()));
        };
        let selection = reference::selection(&reference.0, dataset.shape().len())?;
        Ok((dataset, selection))
    }

    /// The attribute that a reference of this file leads to.
    pub fn dereference_attribute(&self, reference: &Reference) -> Result<Attribute> {
        let name = reference.attribute();
        let name = name.ok_or_else(|| Error::WrongKind("a reference to no attribute".into()))?;
        match self.dereference(reference)? {
            Node::Group(group) => group.attribute(name),
            Node::Dataset(dataset) => dataset.attribute(name),
            Node::Datatype(datatype) => datatype.attribute(name),
        }
    }
}

impl Dataset {
    /// Its elements, if they are references.
    pub fn read_references(&self, selection: impl Select) -> Result<Vec<Option<Reference>>> {
        let bytes = self.read_bytes(selection)?;
        let found = reference::references(&self.owner().0, self.datatype(), &bytes);
        let found = found.map_err(|error| error.at(self.path()))?;
        Ok(Reference::all(&self.owner().0, found))
    }
}

impl Dataset {
    /// Writes references to the selected cells, in row-major order; `None` leads nowhere.
    pub fn write_references(
        &self,
        selection: impl Select,
        references: &[Option<Reference>],
    ) -> Result<()> {
        self.make_room()?;
        for Reference(reference, home) in references.iter().flatten() {
            self.at(home.check(reference, &self.owner().0))?;
        }
        let references: Vec<_> =
            references.iter().map(|found| found.as_ref().map(|found| found.0.clone())).collect();
        let elements = reference::elements(&self.owner().0, self.datatype(), &references);
        let elements = self.at(elements)?;
        let datatype = self.datatype();
        self.selected(selection, |selection, _| self.state.write(selection, datatype, &elements))
    }
}

/// The dataset or attribute gets object references, unless `#[h5(region)]` or `#[h5(any)]` says
/// otherwise; see [`derive(H5Type)`](macro@crate::H5Type). `Option<Reference>` may be null.
// SAFETY: it is not plain.
#[allow(unsafe_code)]
unsafe impl H5Type for Reference {
    const PLAIN: bool = false;
    const SIZE: usize = 8;
    const OWNED: bool = true;

    fn datatype() -> Datatype {
        Datatype::Reference(pumice_types::Reference { size: 8, kind: ReferenceKind::Object })
    }

    fn put(&self, place: &mut [u8], heap: &mut Heap) -> Result<(), TypeError> {
        heap.push_thing(self.clone(), place);
        Ok(())
    }

    fn take(place: &[u8], heap: &Heap) -> Result<Self, TypeError> {
        let missing = || "a reference leads nowhere: read `Option<Reference>`".into();
        let found = heap.thing::<Self>(place).cloned();
        found.ok_or_else(|| TypeError::Value(missing()))
    }
}

impl OrNull for Reference {}

impl AttributeValue for Reference {
    fn attribute(&self, name: &str) -> Result<NewAttribute> {
        let list = References(vec![Some(self.clone())]);
        Ok(NewAttribute { extent: Extent::Scalar, ..list.attribute(name)? })
    }
}

/// A list of references as an attribute: in the oldest of the types that can have them all. `None`
/// leads nowhere.
///
/// ```
/// use pumice::{File, References};
///
/// let file = File::in_memory()?;
/// file.create_group("a")?;
/// file.set_attribute("both", References(vec![Some(file.reference("a")?), None]))?;
/// assert_eq!(file.attribute("both")?.read_references()?[0], Some(file.reference("a")?));
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct References(pub Vec<Option<Reference>>);

impl AttributeValue for References {
    fn attribute(&self, name: &str) -> Result<NewAttribute> {
        let mut targets = self.0.iter().flatten().map(|reference| &reference.0.target);
        let meaning = if targets.clone().all(|target| matches!(target, Target::Object)) {
            ReferenceType::Object
        } else if targets.all(|target| matches!(target, Target::Region { .. })) {
            ReferenceType::Region
        } else {
            ReferenceType::Any
        };
        let whole = |Reference(reference, home): &Reference| (reference.clone(), home.clone());
        let all = self.0.iter().map(|found| found.as_ref().map(whole)).collect();
        let extent = Extent::Simple { dims: [self.0.len() as u64].as_slice().into(), max: None };
        let values = Values::References(meaning.kind(), all);
        Ok(NewAttribute { name: name.into(), extent, values, committed: None })
    }
}

impl Attribute {
    /// Its elements, if they are references.
    pub fn read_references(&self) -> Result<Vec<Option<Reference>>> {
        let found = reference::references(&self.owner().0, self.datatype(), self.bytes())?;
        Ok(Reference::all(&self.owner().0, found))
    }
}
