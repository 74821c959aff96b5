//! Dimension scales: datasets that label the indices of an axis, by the attributes of HDF5's H5DS.
//!
//! A scale has `CLASS` (`DIMENSION_SCALE`), perhaps `NAME`, and in `REFERENCE_LIST` where it is attached. A dataset
//! has its scales, axis by axis, in `DIMENSION_LIST` and the names of its axes in `DIMENSION_LABELS`. All five
//! are as libhdf5 writes them, so that h5py (`dims`) and netCDF find them.

use crate::file::Owner;
use crate::{
    Attribute, Dataset, Group, Node, RawAttribute, Reference, ReferenceType, VariableLength,
};
use pumice_engine::reference::{Home, Reference as Stored, Target};
use pumice_engine::{Error, Result};
use pumice_types::{
    CharacterSet, Compound, Datatype, FixedString, Member, StringPadding, Value, VarLen,
};
use std::sync::Arc;

const CLASS: &str = "CLASS";
const SCALE: &str = "DIMENSION_SCALE";
const NAME: &str = "NAME";
const LABELS: &str = "DIMENSION_LABELS";
const LIST: &str = "DIMENSION_LIST";
const ATTACHED: &str = "REFERENCE_LIST";

/// The use of a scale: the dataset's address, and the axis.
type Place = (u64, i128);

impl Dataset {
    /// Makes it a dimension scale of a name, which may be empty: `H5DSset_scale`.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let image = file.new_dataset::<f32>().shape([2, 3]).create("image")?;
    /// let height = file.new_dataset::<f64>().shape([2]).create("height")?;
    /// height.make_scale("height in mm")?;
    /// image.attach_scale(0, &height)?;
    /// image.set_label(1, "column")?;
    ///
    /// let scales = image.scales(0)?;
    /// assert_eq!(scales[0].scale_name()?.as_deref(), Some("height in mm"));
    /// assert_eq!(image.label(1)?.as_deref(), Some("column"));
    /// image.detach_scale(0, &height)?;
    /// assert!(image.scales(0)?.is_empty());
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn make_scale(&self, name: &str) -> Result<()> {
        if self.has_attribute(LIST)? {
            let what = "a dataset with scales of its own cannot be one";
            return self.at(Err(Error::Invalid(what.into())));
        }
        self.set_attribute(CLASS, self.at(terminated(SCALE))?)?;
        self.set_attribute(NAME, self.at(terminated(name))?)
    }

    /// Whether it is a dimension scale.
    pub fn is_scale(&self) -> Result<bool> {
        Ok(match self.attribute_if_any(CLASS)? {
            Some(class) => class.read_string().is_ok_and(|class| class == SCALE),
            None => false,
        })
    }

    /// The name that it has as a dimension scale.
    pub fn scale_name(&self) -> Result<Option<String>> {
        let name = self.attribute_if_any(NAME)?.map(|name| name.read_string()).transpose()?;
        Ok(name.filter(|name| !name.is_empty()))
    }

    /// Attaches a scale of the same file to an axis, behind its other scales: `H5DSattach_scale`. A
    /// dataset that is no scale becomes one. A scale that is attached already stays so.
    pub fn attach_scale(&self, axis: usize, scale: &Dataset) -> Result<()> {
        self.check_axis(axis)?;
        self.check_scale(scale)?;
        if !scale.is_scale()? {
            scale.set_attribute(CLASS, scale.at(terminated(SCALE))?)?;
        }
        let mut lists = self.scale_lists()?;
        if lists[axis].iter().any(|known| known.address() == scale.address()) {
            return Ok(());
        }
        let mut places = scale.attached_to()?;
        places.push((self.address(), axis as i128));
        scale.set_attached_to(&places)?;
        lists[axis].push(scale.own_reference());
        self.set_scale_lists(&lists)
    }

    fn check_scale(&self, scale: &Dataset) -> Result<()> {
        let what = if !Arc::ptr_eq(self.owner(), scale.owner())
            && !same_file(self.owner(), scale.owner())
        {
            "a scale of another file"
        } else if scale.address() == self.address() {
            "a dataset as its own scale"
        } else if self.is_scale()? {
            "a scale of a scale"
        } else if scale.has_attribute(LIST)? {
            "a scale that has scales itself"
        } else {
            return Ok(());
        };
        self.at(Err(Error::Invalid(what.into())))
    }

    /// Detaches a scale from an axis; it is an error if it is not attached: `H5DSdetach_scale`.
    pub fn detach_scale(&self, axis: usize, scale: &Dataset) -> Result<()> {
        self.check_axis(axis)?;
        let mut lists = self.scale_lists()?;
        let Some(at) = lists[axis].iter().position(|known| known.address() == scale.address())
        else {
            let what = format!("{} is no scale of axis {axis}", scale.path());
            return self.at(Err(Error::NotFound(what)));
        };
        lists[axis].remove(at);
        self.set_scale_lists(&lists)?;
        let mut places = scale.attached_to()?;
        places.retain(|place| *place != (self.address(), axis as i128));
        scale.set_attached_to(&places)
    }

    /// The scales of an axis, in the order in which they were attached.
    pub fn scales(&self, axis: usize) -> Result<Vec<Dataset>> {
        self.check_axis(axis)?;
        let group = Group::root(self.owner().clone())?;
        let lists = self.scale_lists()?;
        let open = |reference: &Reference| match group.dereference(reference)? {
            Node::Dataset(scale) => Ok(scale),
            _ => self.at(Err(Error::WrongKind("a scale that is no dataset".into()))),
        };
        lists[axis].iter().map(open).collect()
    }

    /// The name of an axis, if it has one.
    pub fn label(&self, axis: usize) -> Result<Option<String>> {
        self.check_axis(axis)?;
        let Some(labels) = self.attribute_if_any(LABELS)? else { return Ok(None) };
        let labels = labels.read::<String>()?;
        Ok(labels.into_iter().nth(axis).filter(|label| !label.is_empty()))
    }

    /// Sets the label of an axis, or removes it if `label` is empty: `H5DSset_label`.
    pub fn set_label(&self, axis: usize, label: &str) -> Result<()> {
        self.check_axis(axis)?;
        let mut labels = match self.attribute_if_any(LABELS)? {
            Some(labels) => labels.read_values()?,
            None => Vec::new(),
        };
        labels.resize(self.shape().len(), Value::Null);
        labels[axis] = if label.is_empty() { Value::Null } else { label.into() };
        if labels.iter().all(|label| *label == Value::Null) {
            return match self.has_attribute(LABELS)? {
                true => self.remove_attribute(LABELS),
                false => Ok(()),
            };
        }
        let ascii = labels.iter().all(|label| label.as_str().is_none_or(str::is_ascii));
        let charset = if ascii { CharacterSet::Ascii } else { CharacterSet::Utf8 };
        let text = VarLen::string(16, StringPadding::NullTerminate, charset);
        let value = VariableLength::values(text.into(), &[labels.len() as u64], &labels);
        self.set_attribute(LABELS, self.at(value)?)
    }

    fn check_axis(&self, axis: usize) -> Result<()> {
        let rank = self.shape().len();
        match axis < rank {
            true => Ok(()),
            false => {
                let what = format!("axis {axis} of a dataset of {rank} dimension(s)");
                self.at(Err(Error::RankMismatch(what)))
            }
        }
    }

    fn attribute_if_any(&self, name: &str) -> Result<Option<Attribute>> {
        match self.has_attribute(name)? {
            true => self.attribute(name).map(Some),
            false => Ok(None),
        }
    }

    fn own_reference(&self) -> Reference {
        let stored = Stored { file: None, address: self.address(), target: Target::Object };
        Reference::new(stored, Home::of(self.engine()))
    }

    /// The scales of all axes.
    fn scale_lists(&self) -> Result<Vec<Vec<Reference>>> {
        let mut lists = match self.attribute_if_any(LIST)? {
            Some(lists) => lists.read::<Vec<Reference>>()?,
            None => Vec::new(),
        };
        lists.resize(self.shape().len(), Vec::new());
        Ok(lists)
    }

    fn set_scale_lists(&self, lists: &[Vec<Reference>]) -> Result<()> {
        if lists.iter().all(Vec::is_empty) {
            return self.remove_attribute(LIST);
        }
        let group = Group::root(self.owner().clone())?;
        let value = |list: &Vec<Reference>| {
            let items = list.iter().map(|one| group.reference_value(one, ReferenceType::Object));
            match list.is_empty() {
                true => Ok(Value::Null),
                false => Ok(Value::Sequence(items.collect::<Result<_>>()?)),
            }
        };
        let values = lists.iter().map(value).collect::<Result<Vec<_>>>()?;
        let datatype = Datatype::varlen(group.reference_datatype(ReferenceType::Object), 16);
        let made = VariableLength::values(datatype, &[lists.len() as u64], &values);
        self.set_attribute(LIST, self.at(made)?)
    }

    /// The uses of this scale.
    fn attached_to(&self) -> Result<Vec<Place>> {
        let Some(list) = self.attribute_if_any(ATTACHED)? else { return Ok(Vec::new()) };
        let group = Group::root(self.owner().clone())?;
        let mut places = Vec::new();
        for entry in list.read_values()? {
            let (Some(dataset), Some(Value::Integer(axis))) =
                (entry.member("dataset"), entry.member("dimension"))
            else {
                return self.at(Err(Error::Damaged(format!("{ATTACHED} of another form"))));
            };
            if let Some(dataset) = group.reference_of(dataset)? {
                places.push((dataset.address(), *axis));
            }
        }
        Ok(places)
    }

    fn set_attached_to(&self, places: &[Place]) -> Result<()> {
        if places.is_empty() {
            return match self.has_attribute(ATTACHED)? {
                true => self.remove_attribute(ATTACHED),
                false => Ok(()),
            };
        }
        let group = Group::root(self.owner().clone())?;
        let reference = group.reference_datatype(ReferenceType::Object);
        // As the C struct of libhdf5 lies in memory: an address, an unsigned int, and padding.
        let (width, size) = (reference.size(), 16.max(reference.size() as u32 + 4));
        let datatype = Datatype::Compound(Compound {
            size,
            members: vec![
                Member { name: "dataset".into(), offset: 0, datatype: reference },
                Member {
                    name: "dimension".into(),
                    offset: width as u32,
                    datatype: Datatype::u32_le(),
                },
            ],
        });
        let mut data = vec![0; places.len() * size as usize];
        for (element, (address, axis)) in data.chunks_exact_mut(size as usize).zip(places) {
            let bytes = address.to_le_bytes();
            element[..width].copy_from_slice(&bytes[..width]);
            element[width..width + 4].copy_from_slice(&(*axis as u32).to_le_bytes());
        }
        self.set_attribute(
            ATTACHED,
            self.at(RawAttribute::new(datatype, &[places.len() as u64], data))?,
        )
    }
}

fn same_file(one: &Owner, other: &Owner) -> bool {
    std::ptr::eq(&*one.0, &*other.0)
}

/// Text as C has it, with a null byte at its end.
fn terminated(text: &str) -> Result<RawAttribute> {
    let charset = if text.is_ascii() { CharacterSet::Ascii } else { CharacterSet::Utf8 };
    let string =
        FixedString { size: text.len() as u32 + 1, padding: StringPadding::NullTerminate, charset };
    let mut data = text.as_bytes().to_vec();
    data.push(0);
    RawAttribute::new(Datatype::String(string), &[], data)
}
