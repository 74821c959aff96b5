//! Values of types of Rust, from elements of a file and to them.
//!
//! The engine copies plain values as bytes. Other values become elements in memory, without gaps,
//! and a heap of the objects that they refer to. The engine converts such elements where it can;
//! strings, sequences and references to objects are converted here.

use crate::Reference;
use pumice_engine::file::File as Engine;
use pumice_engine::reference::{self, Home};
use pumice_engine::{Error, Result};
use pumice_types::{
    Datatype, H5Type, Heap, Heaped, HeapedConversion, Links, TypeError, from_elements,
};

/// Whether an error says that no conversion leads from one datatype to the other.
pub(crate) fn is_unconvertible(error: &Error) -> bool {
    matches!(error.cause(), Error::Type(TypeError::NoConversion { .. }))
}

/// Elements of a file, with the objects that they refer to, as values.
pub(crate) fn values<T: H5Type>(
    file: &Engine,
    datatype: &Datatype,
    found: &Heaped,
) -> Result<Vec<T>> {
    found.check_claims(datatype)?;
    let conversion = HeapedConversion::reading(datatype, &T::datatype())?;
    let mut links = FileLinks::new(file, Heap::default());
    let converted = conversion.convert_with(&found.elements, &found.heap, None, &mut links);
    let converted = links.checked(converted)?;
    links.heap.bytes = converted.heap;
    Ok(from_elements(&converted.elements, &links.heap)?)
}

/// Values, as elements in memory, on their way into a file.
pub(crate) struct Outgoing<'a> {
    conversion: HeapedConversion,
    elements: Vec<u8>,
    links: FileLinks<'a>,
}

impl<'a> Outgoing<'a> {
    pub(crate) fn new(
        file: &'a Engine,
        memory: &Datatype,
        (elements, heap): (Vec<u8>, Heap),
        datatype: &Datatype,
    ) -> Result<Self> {
        let conversion = HeapedConversion::writing(memory, datatype)?;
        Ok(Self { conversion, elements, links: FileLinks::new(file, heap) })
    }

    /// Whether every member of the file's elements gets a value.
    pub(crate) fn is_complete(&self) -> bool {
        self.conversion.is_complete()
    }

    /// The elements of the file; members without a value are those of `onto`.
    pub(crate) fn convert(&mut self, onto: Option<Heaped>) -> Result<Heaped> {
        let heap = std::mem::take(&mut self.links.heap.bytes);
        let converted = self.conversion.convert_with(&self.elements, &heap, onto, &mut self.links);
        self.links.heap.bytes = heap;
        self.links.checked(converted)
    }
}

/// References to objects of a file, as things of a heap.
struct FileLinks<'a> {
    file: &'a Engine,
    heap: Heap,
    /// The file's error.
    error: Option<Error>,
}

impl<'a> FileLinks<'a> {
    fn new(file: &'a Engine, heap: Heap) -> Self {
        Self { file, heap, error: None }
    }

    fn checked<R>(&mut self, result: Result<R, TypeError>) -> Result<R> {
        match (result, self.error.take()) {
            (Err(_), Some(error)) => Err(error),
            (result, _) => Ok(result?),
        }
    }

    fn note(&mut self, error: Error) -> TypeError {
        let text = error.to_string();
        self.error = Some(error);
        TypeError::Value(text)
    }
}

impl Links for FileLinks<'_> {
    fn read(
        &mut self,
        kind: &pumice_types::Reference,
        element: &[u8],
        place: &mut [u8],
    ) -> Result<(), TypeError> {
        let datatype = Datatype::Reference(kind.clone());
        match reference::references(self.file, &datatype, element) {
            Err(error) => return Err(self.note(error)),
            Ok(found) => match found.into_iter().next().flatten() {
                Some(found) => {
                    self.heap.push_thing(Reference::new(found, Home::of(self.file)), place);
                }
                None => place.fill(0),
            },
        }
        Ok(())
    }

    fn write(
        &mut self,
        place: &[u8],
        kind: &pumice_types::Reference,
        element: &mut [u8],
    ) -> Result<(), TypeError> {
        let stored = match self.heap.thing::<Reference>(place) {
            None => {
                element.fill(0);
                Ok(())
            }
            Some(found) => found.store(self.file, kind, element),
        };
        stored.map_err(|error| self.note(error))
    }
}
