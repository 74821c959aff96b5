//! Attributes: small named values of groups and datasets.

mod value;

pub(crate) use value::set;
pub use value::{AttributeValue, FixedLength, Scalar};

use crate::ObjectPath;
use crate::file::Owner;
use crate::typed;
use pumice_engine::attribute::{self, NewAttribute, Values};
use pumice_engine::object::Object;
use pumice_engine::{Error, Result};
use pumice_space::Extent;
use pumice_types::{Datatype, Element, H5Type, Heaped, Sequences, Strings, Value, references};
use std::fmt;
use std::sync::Arc;

/// An attribute, read whole, except for strings and sequences of variable length: these are read
/// when they are asked for, from the attribute that has the name by then. It is an error if there
/// is none, or one of another type or shape.
///
/// ```
/// use pumice::File;
///
/// let file = File::in_memory()?;
/// file.set_attribute("scale", 0.5f64)?;
/// file.set_attribute("origin", [1i32, -2])?;
/// file.set_attribute("unit", "mm")?;
///
/// assert_eq!(file.attribute("scale")?.read::<f32>()?, [0.5]);
/// assert_eq!(file.attribute("origin")?.read::<i64>()?, [1, -2]);
/// assert_eq!(file.attribute("unit")?.read_string()?, "mm");
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone)]
pub struct Attribute {
    owner: Arc<Owner>,
    path: ObjectPath,
    inner: attribute::Attribute,
    /// The object of the attribute, if its elements refer to data that the file may lose.
    object: Option<Arc<Object>>,
}

impl fmt::Debug for Attribute {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, inner, .. } = self;
        formatter.debug_struct("Attribute").field("path", &&**path).field("inner", inner).finish()
    }
}

/// Attributes are equal if name, type, shape, stored bytes and path are.
impl PartialEq for Attribute {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path && self.inner == other.inner
    }
}

impl Attribute {
    fn new(
        owner: &Arc<Owner>,
        object: &Arc<Object>,
        path: &ObjectPath,
        inner: attribute::Attribute,
    ) -> Self {
        let refers = inner.datatype.has_varlen();
        let object = refers.then(|| object.clone());
        Self { owner: owner.clone(), path: path.clone(), inner, object }
    }

    pub(crate) fn all(
        owner: &Arc<Owner>,
        object: &Arc<Object>,
        path: &ObjectPath,
    ) -> Result<Vec<Self>> {
        let all = attribute::attributes(&owner.0, object).map_err(|error| error.at(path))?;
        Ok(all.into_iter().map(|inner| Self::new(owner, object, path, inner)).collect())
    }

    pub(crate) fn find(
        owner: &Arc<Owner>,
        object: &Arc<Object>,
        path: &ObjectPath,
        name: &str,
    ) -> Result<Self> {
        match attribute::attribute(&owner.0, object, name).map_err(|error| error.at(path))? {
            Some(inner) => Ok(Self::new(owner, object, path, inner)),
            None => Err(Error::NotFound(format!("no attribute \"{name}\"")).at(path)),
        }
    }

    pub(crate) fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Its type.
    pub fn datatype(&self) -> &Datatype {
        &self.inner.datatype
    }

    /// Its shape.
    pub fn extent(&self) -> &Extent {
        &self.inner.extent
    }

    /// The address of the committed datatype that it shares, if it does.
    pub fn committed_datatype(&self) -> Option<u64> {
        self.inner.committed
    }

    /// Its place in the order of creation, if its object tracks that.
    pub fn creation_order(&self) -> Option<u32> {
        self.inner.creation_order
    }

    /// The stored bytes of its elements.
    pub fn bytes(&self) -> &[u8] {
        &self.inner.data
    }

    /// Its elements, converted to `T`.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// file.set_attribute("names", ["tuff", "basalt"])?;
    /// file.set_attribute("flags", [true, false])?;
    /// assert_eq!(file.attribute("names")?.read::<String>()?, ["tuff", "basalt"]);
    /// assert_eq!(file.attribute("flags")?.read::<bool>()?, [true, false]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn read<T: H5Type>(&self) -> Result<Vec<T>> {
        let values = || typed::values(&self.owner.0, &self.inner.datatype, &self.read_heaped()?);
        values().map_err(|error| error.at(&self.path))
    }

    /// Its one value, converted to `T`.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// file.set_attribute("scale", 0.5)?;
    /// assert_eq!(file.attribute("scale")?.read_scalar::<f64>()?, 0.5);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn read_scalar<T: H5Type>(&self) -> Result<T> {
        let mut values = self.read()?;
        match (values.pop(), values.len()) {
            (Some(one), 0) => Ok(one),
            (_, rest) => {
                let what = format!("an attribute of {} values read as one", rest + 1);
                let what =
                    if values.is_empty() { "an attribute without a value".into() } else { what };
                Err(Error::CountMismatch(what).at(&self.path))
            }
        }
    }

    /// Its text: the first of its strings, of fixed or variable length.
    pub fn read_string(&self) -> Result<String> {
        let strings = self.read_strings()?;
        let first = strings.get(0).unwrap_or_default();
        Ok(String::from_utf8_lossy(first).into_owned())
    }

    /// Its strings, of fixed or variable length.
    pub fn read_strings(&self) -> Result<Strings> {
        let strings = Strings::from_heaped(&self.inner.datatype, self.read_heaped()?);
        strings.map_err(|error| Error::from(error).at(&self.path))
    }

    /// Its sequences of variable length, their values converted to `T`.
    pub fn read_sequences<T: Element>(&self) -> Result<Sequences<T>> {
        let sequences = Sequences::from_heaped(&self.inner.datatype, &self.read_heaped()?);
        sequences.map_err(|error| Error::from(error).at(&self.path))
    }

    /// Its elements of any datatype as owned values.
    pub fn read_values(&self) -> Result<Vec<Value>> {
        let values = self.read_heaped()?.values(&self.inner.datatype);
        values.map_err(|error| Error::from(error).at(&self.path))
    }

    /// Its elements in its own type, with everything that they refer to in one heap.
    pub fn read_heaped(&self) -> Result<Heaped> {
        let Some(object) = &self.object else {
            return Ok(Heaped { elements: self.inner.data.clone(), heap: Vec::new() });
        };
        let loaded = attribute::load(&self.owner.0, object, &self.inner);
        loaded.map_err(|error| error.at(&self.path))
    }
}

/// A value of any datatype and shape, as bytes.
///
/// ```
/// use pumice::{Datatype, H5Type, File, RawAttribute};
///
/// let file = File::in_memory()?;
/// let value = RawAttribute::new(u16::datatype(), &[2], vec![1, 0, 2, 0])?;
/// file.set_attribute("pair", value)?;
/// assert_eq!(file.attribute("pair")?.read::<u16>()?, [1, 2]);
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RawAttribute {
    datatype: Datatype,
    extent: Extent,
    data: Vec<u8>,
}

impl RawAttribute {
    /// Elements of `datatype` in an array of `shape`; without dimensions it is a scalar.
    pub fn new(datatype: Datatype, shape: &[u64], data: Vec<u8>) -> Result<Self> {
        let extent = if shape.is_empty() { Extent::Scalar } else { Extent::simple(shape)? };
        let bytes = extent.cells().and_then(|cells| cells.checked_mul(datatype.size() as u64));
        if bytes != Some(data.len() as u64) {
            return Err(Error::CountMismatch(format!(
                "{} byte(s) for an attribute of shape {shape:?} with elements of {} byte(s)",
                data.len(),
                datatype.size()
            )));
        }
        Ok(Self { datatype, extent, data })
    }
}

impl RawAttribute {
    /// No elements at all: a null dataspace, which has a datatype and neither shape nor value.
    ///
    /// ```
    /// use pumice::{H5Type, File, RawAttribute};
    ///
    /// let file = File::in_memory()?;
    /// file.set_attribute("unknown", RawAttribute::null(f64::datatype()))?;
    /// assert!(file.attribute("unknown")?.extent().is_null());
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn null(datatype: Datatype) -> Self {
        Self { datatype, extent: Extent::Null, data: Vec::new() }
    }

    /// One element, such as a struct that is an [`Element`], instead of an array.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// file.set_attribute("origin", pumice::RawAttribute::scalar([0.5f32, 1.5]))?;
    /// assert_eq!(file.attribute("origin")?.read::<[f32; 2]>()?, [[0.5, 1.5]]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn scalar<T: Element>(value: T) -> Self {
        let data = bytemuck::bytes_of(&value).to_vec();
        Self { datatype: T::datatype(), extent: Extent::Scalar, data }
    }
}

impl AttributeValue for RawAttribute {
    fn attribute(&self, name: &str) -> Result<NewAttribute> {
        let Self { datatype, extent, data } = self.clone();
        Ok(NewAttribute::new(name, datatype, extent, data))
    }
}

/// A value with data of variable length, which the file keeps in its global heap.
///
/// ```
/// use pumice::{File, Sequences, VariableLength};
///
/// let file = File::in_memory()?;
/// file.set_attribute("title", VariableLength::text("a text as h5py writes it")?)?;
/// file.set_attribute("names", VariableLength::strings(["ab", "", "cde"])?)?;
/// let steps: Sequences<i32> = [vec![1, 2], vec![]].into_iter().collect();
/// file.set_attribute("steps", VariableLength::sequences(&steps)?)?;
///
/// assert_eq!(file.attribute("title")?.read_string()?, "a text as h5py writes it");
/// assert_eq!(file.attribute("names")?.read_strings()?, ["ab", "", "cde"]);
/// assert_eq!(file.attribute("steps")?.read_sequences::<i64>()?[0], [1, 2]);
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct VariableLength {
    datatype: Datatype,
    extent: Extent,
    values: Heaped,
}

/// Bytes of a reference into the global heap in nearly every file: where addresses have eight.
const REFERENCE: u32 = 16;

impl VariableLength {
    /// One UTF-8 string.
    pub fn text(text: &str) -> Result<Self> {
        Ok(Self { extent: Extent::Scalar, ..Self::strings([text])? })
    }

    /// A list of UTF-8 strings.
    pub fn strings<S: AsRef<str>>(strings: impl IntoIterator<Item = S>) -> Result<Self> {
        let strings: Strings = strings.into_iter().map(|text| text.as_ref().to_owned()).collect();
        if strings.bytes().contains(&0) {
            let what = "a string with a null byte, which HDF5 takes for its end";
            return Err(Error::Invalid(what.into()));
        }
        let elements = references(strings.offsets(), 1, REFERENCE)?;
        let values = Heaped { elements, heap: strings.bytes().to_vec() };
        let extent = Extent::simple(&[strings.len() as u64])?;
        Ok(Self { datatype: Datatype::varlen_string(REFERENCE), extent, values })
    }

    /// A list of sequences.
    pub fn sequences<T: Element>(sequences: &Sequences<T>) -> Result<Self> {
        let base = T::datatype();
        let elements = references(sequences.offsets(), base.size(), REFERENCE)?;
        let heap = bytemuck::cast_slice(sequences.values()).to_vec();
        let extent = Extent::simple(&[sequences.len() as u64])?;
        let datatype = Datatype::varlen(base, REFERENCE);
        Ok(Self { datatype, extent, values: Heaped { elements, heap } })
    }

    /// Values of any datatype, however nested, in an array of `shape`; without dimensions, one.
    pub fn values(datatype: Datatype, shape: &[u64], values: &[Value]) -> Result<Self> {
        let values = Heaped::from_values(&datatype, values)?;
        Self::heaped(datatype, shape, values)
    }

    /// Elements with everything that they refer to, in an array of `shape`; without dimensions, one.
    pub fn heaped(datatype: Datatype, shape: &[u64], values: Heaped) -> Result<Self> {
        let extent = if shape.is_empty() { Extent::Scalar } else { Extent::simple(shape)? };
        Ok(Self { datatype, extent, values })
    }
}

impl AttributeValue for VariableLength {
    fn attribute(&self, name: &str) -> Result<NewAttribute> {
        let Self { datatype, extent, values } = self.clone();
        let values = Values::Heaped(datatype, values);
        Ok(NewAttribute { name: name.into(), extent, values, committed: None })
    }
}
