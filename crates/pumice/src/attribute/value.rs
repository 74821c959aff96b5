//! Values for attributes.

use pumice_engine::attribute::{self, NewAttribute, Values};
use pumice_engine::file::File as Engine;
use pumice_engine::object::Object;
use pumice_engine::{Error, Result};
use pumice_space::Extent;
use pumice_types::{
    CharacterSet, Datatype, FixedString, FixedText, H5Type, Heaped, StringPadding, Strings, VarLen,
    VarLenKind, plain, to_elements,
};

/// A value for an attribute: a number, `bool`, text, an array, slice or vector of an [`H5Type`],
/// one such value ([`Scalar`]), text of a fixed length ([`FixedLength`]), [data of variable
/// length](crate::VariableLength), [references](crate::Reference).
///
/// Text is of variable length and UTF-8, which h5py reads as `str`. Where there is an attribute of that name which is
/// text too, its form stays: fixed length, padding, character set. If it was too short, it becomes as
/// long as need be.
///
/// ```
/// use pumice::{File, FixedLength};
///
/// let file = File::in_memory()?;
/// file.set_attribute("title", "stones")?;
/// assert!(file.attribute("title")?.datatype().has_varlen());
/// file.set_attribute("code", FixedLength("abc"))?;
/// file.set_attribute("code", "xy")?;
/// assert_eq!(file.attribute("code")?.bytes(), b"xy\0");
/// # Ok::<(), pumice::Error>(())
/// ```
pub trait AttributeValue {
    /// The attribute of this value.
    fn attribute(&self, name: &str) -> Result<NewAttribute>;

    /// The text, if the value is text that takes the form of an existing attribute.
    #[doc(hidden)]
    fn text(&self) -> Option<&str> {
        None
    }
}

/// Adds or replaces an attribute of an object.
pub(crate) fn set(
    file: &Engine,
    object: &Object,
    name: &str,
    value: &impl AttributeValue,
) -> Result<()> {
    let mut new = value.attribute(name)?;
    // An unreadable attribute has no form to keep.
    if let Some(text) = value.text().filter(|_| new.committed.is_none())
        && let Ok(Some(there)) = attribute::attribute(file, object, name)
        && let Some(values) = in_form(text, &there.datatype)
    {
        new.values = values?;
        if there.extent.cells() == Some(1) {
            new.extent = there.extent;
        }
    }
    attribute::create(file, object, new)
}

/// Text in the form that an attribute has, if that is one of text.
fn in_form(text: &str, datatype: &Datatype) -> Option<Result<Values>> {
    let charset = |known: CharacterSet| match text.is_ascii() {
        true => known,
        false => CharacterSet::Utf8,
    };
    match datatype {
        Datatype::String(known) => {
            let ends = u32::from(known.padding == StringPadding::NullTerminate);
            let needed = u32::try_from(text.len()).unwrap_or(u32::MAX).saturating_add(ends);
            let size = known.size.max(needed);
            let string =
                FixedString { size, padding: known.padding, charset: charset(known.charset) };
            let one: Strings = [text].into_iter().collect();
            let elements = one.to_fixed(&string).map_err(Error::from);
            Some(elements.map(|elements| Values::Stored(Datatype::String(string), elements)))
        }
        Datatype::VarLen(VarLen {
            size,
            kind: VarLenKind::String { padding, charset: known },
            ..
        }) => {
            let datatype = Datatype::VarLen(VarLen::string(*size, *padding, charset(*known)));
            Some(Heaped::strings(*size, [text]).map_err(Error::from).and_then(|values| {
                check_text(text)?;
                Ok(Values::Heaped(datatype, values))
            }))
        }
        _ => None,
    }
}

fn check_text(text: &str) -> Result<()> {
    match text.contains('\0') {
        true => {
            Err(Error::WrongValue("a string with a null byte, which HDF5 takes for its end".into()))
        }
        false => Ok(()),
    }
}

/// An attribute of values, with the heap objects that they refer to.
fn of_values<T: H5Type>(name: &str, extent: Extent, values: &[T]) -> Result<NewAttribute> {
    let datatype = T::datatype();
    if let Some(bytes) = plain::bytes(values) {
        return Ok(NewAttribute::new(name, datatype, extent, bytes.to_vec()));
    }
    if datatype.refers_to_objects() {
        let what = "references inside values of an attribute: write them as `References`";
        return Err(Error::Unsupported(what.into()));
    }
    let (elements, heap) = to_elements(values)?;
    if !datatype.has_varlen() {
        return Ok(NewAttribute::new(name, datatype, extent, elements));
    }
    let values = Values::Heaped(datatype, Heaped { elements, heap: heap.bytes });
    Ok(NewAttribute { name: name.into(), extent, values, committed: None })
}

/// One value as an attribute, such as a struct with [`derive(H5Type)`](macro@crate::H5Type).
///
/// ```
/// use pumice::{File, H5Type, Scalar};
///
/// #[derive(H5Type, Debug, PartialEq)]
/// struct Author {
///     name: String,
///     year: u16,
/// }
///
/// let file = File::in_memory()?;
/// let author = Author { name: "Mary Anning".into(), year: 1799 };
/// file.set_attribute("author", Scalar(&author))?;
/// assert_eq!(file.attribute("author")?.read_scalar::<Author>()?, author);
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Scalar<'a, T>(pub &'a T);

impl<T: H5Type> AttributeValue for Scalar<'_, T> {
    fn attribute(&self, name: &str) -> Result<NewAttribute> {
        of_values(name, Extent::Scalar, std::slice::from_ref(self.0))
    }
}

macro_rules! scalars {
    ($($scalar:ty),+) => {$(
        impl AttributeValue for $scalar {
            fn attribute(&self, name: &str) -> Result<NewAttribute> {
                Scalar(self).attribute(name)
            }
        }
    )+};
}

scalars! { i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, bool }

#[cfg(feature = "complex")]
scalars! { crate::Complex<f32>, crate::Complex<f64> }

impl<const N: usize> AttributeValue for FixedText<N> {
    fn attribute(&self, name: &str) -> Result<NewAttribute> {
        Scalar(self).attribute(name)
    }
}

impl<T: H5Type> AttributeValue for &[T] {
    fn attribute(&self, name: &str) -> Result<NewAttribute> {
        of_values(name, Extent::simple(&[self.len() as u64])?, self)
    }
}

impl<T: H5Type, const N: usize> AttributeValue for [T; N] {
    fn attribute(&self, name: &str) -> Result<NewAttribute> {
        self.as_slice().attribute(name)
    }
}

impl<T: H5Type> AttributeValue for Vec<T> {
    fn attribute(&self, name: &str) -> Result<NewAttribute> {
        self.as_slice().attribute(name)
    }
}

impl AttributeValue for &str {
    fn attribute(&self, name: &str) -> Result<NewAttribute> {
        Scalar(self).attribute(name)
    }

    fn text(&self) -> Option<&str> {
        Some(self)
    }
}

impl AttributeValue for String {
    fn attribute(&self, name: &str) -> Result<NewAttribute> {
        self.as_str().attribute(name)
    }

    fn text(&self) -> Option<&str> {
        Some(self)
    }
}

impl AttributeValue for &String {
    fn attribute(&self, name: &str) -> Result<NewAttribute> {
        self.as_str().attribute(name)
    }

    fn text(&self) -> Option<&str> {
        Some(self)
    }
}

/// Text as an attribute of a fixed length: the length of the text, UTF-8, padded with null bytes.
///
/// ```
/// use pumice::{File, FixedLength};
///
/// let file = File::in_memory()?;
/// file.set_attribute("unit", FixedLength("mm"))?;
/// assert_eq!(file.attribute("unit")?.datatype().size(), 2);
/// assert_eq!(file.attribute("unit")?.read_string()?, "mm");
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FixedLength<'a>(pub &'a str);

impl AttributeValue for FixedLength<'_> {
    fn attribute(&self, name: &str) -> Result<NewAttribute> {
        let mut data = self.0.as_bytes().to_vec();
        data.resize(self.0.len().max(1), 0);
        let (padding, charset) = (StringPadding::NullPad, CharacterSet::Utf8);
        let string = FixedString { size: data.len() as u32, padding, charset };
        Ok(NewAttribute::new(name, Datatype::String(string), Extent::Scalar, data))
    }
}
