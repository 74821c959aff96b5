//! Conversion of elements with parts of variable length to another datatype, with a heap.
//!
//! [`Conversion`] converts parts of a fixed size. Strings stay as they are, sequences are converted
//! value by value, compounds member by member: a member that the source lacks becomes zero, or
//! null. Between two datatypes of files, strings become neither sequences nor text of a fixed size.
//!
//! Between a file and values of Rust ([`reading`](HeapedConversion::reading),
//! [`writing`](HeapedConversion::writing)) more is possible: text of a fixed length and of any become each other,
//! numbers and bits become truth values, and references to objects become things of a [`Heap`](crate::Heap), of
//! which elements in memory have the numbers; [`Links`] knows them.

use crate::model::{Compound, Datatype, FixedString, Reference, StringPadding, VarLen, VarLenKind};
use crate::value::trimmed;
use crate::{Conversion, H5Type, Heaped, Strings, TypeError};

/// Converts heaped elements from one datatype to another.
///
/// ```
/// use pumice_types::{Datatype, Heaped, HeapedConversion, Value};
///
/// let list = |base: Datatype| Datatype::varlen(base, 16);
/// let (from, to) = (list(Datatype::i16_be()), list(Datatype::f64_le()));
/// let value = Value::Sequence(vec![Value::Integer(7), Value::Integer(-1)]);
/// let elements = Heaped::from_values(&from, &[value, Value::Null])?;
/// let converted = HeapedConversion::new(&from, &to)?.convert(&elements)?;
/// let value = Value::Sequence(vec![Value::Float(7.0), Value::Float(-1.0)]);
/// assert_eq!(converted.values(&to)?, [value, Value::Null]);
/// # Ok::<(), pumice_types::TypeError>(())
/// ```
#[derive(Debug)]
pub struct HeapedConversion {
    sizes: [usize; 2],
    step: Step,
    complete: bool,
    reading: bool,
}

#[derive(Debug)]
enum Step {
    /// Elements without references.
    Plain(Conversion),
    /// References, and the conversion of their sequences; `None` for none.
    VarLen { from: VarLen, size: u32, base: Option<Box<HeapedConversion>> },
    /// Members, with the places that they have in both.
    Compound(Vec<([usize; 2], HeapedConversion)>),
    /// Several elements in one.
    Array(Box<HeapedConversion>),
    /// Text of a fixed length that gets one of its own.
    Loosened { padding: StringPadding, size: u32 },
    /// Text that gets a fixed length.
    Fixed { from: VarLen, to: FixedString },
    /// Numbers or bits: anything but zero is true.
    Truth,
    /// References to objects, as the file has them or as memory does.
    Link(Reference),
}

/// The direction of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Both are a file's.
    Files,
    /// From a file to values of Rust.
    Reading,
    /// From values of Rust to a file.
    Writing,
}

/// References to objects, between a file and memory.
pub trait Links {
    /// Reads a reference of the file from `element` and writes the number of its value over
    /// `place`.
    fn read(&mut self, kind: &Reference, element: &[u8], place: &mut [u8])
    -> Result<(), TypeError>;

    /// Writes a reference to the value with the number at `place` over `element`, an element of a
    /// file.
    fn write(
        &mut self,
        place: &[u8],
        kind: &Reference,
        element: &mut [u8],
    ) -> Result<(), TypeError>;
}

/// Between files, references are copied as bytes.
struct NoLinks;

impl Links for NoLinks {
    fn read(&mut self, _: &Reference, _: &[u8], _: &mut [u8]) -> Result<(), TypeError> {
        Err(TypeError::value("nobody to follow it"))
    }

    fn write(&mut self, _: &[u8], _: &Reference, _: &mut [u8]) -> Result<(), TypeError> {
        Err(TypeError::value("nobody to make it"))
    }
}

/// The state of a conversion.
struct Target<'a> {
    to: Heaped,
    links: &'a mut dyn Links,
    reading: bool,
}

impl HeapedConversion {
    /// Chooses how to turn elements of `from` into elements of `to`, both of files.
    pub fn new(from: &Datatype, to: &Datatype) -> Result<Self, TypeError> {
        Self::choose(from, to, Way::Files)
    }

    /// The conversion from elements of a file to those of a Rust type.
    ///
    /// ```
    /// use pumice_types::{Datatype, H5Type, HeapedConversion};
    ///
    /// assert!(HeapedConversion::reading(&Datatype::fixed_string(4), &String::datatype()).is_ok());
    /// assert!(HeapedConversion::reading(&Datatype::u8(), &bool::datatype()).is_ok());
    /// assert!(HeapedConversion::reading(&Datatype::u8(), &String::datatype()).is_err());
    /// ```
    pub fn reading(file: &Datatype, memory: &Datatype) -> Result<Self, TypeError> {
        Self::choose(file, memory, Way::Reading)
    }

    /// The conversion from elements of a Rust type to those of a file.
    pub fn writing(memory: &Datatype, file: &Datatype) -> Result<Self, TypeError> {
        Self::choose(memory, file, Way::Writing)
    }

    fn choose(from: &Datatype, to: &Datatype, way: Way) -> Result<Self, TypeError> {
        let (step, complete) = Self::step(from, to, way)?;
        let sizes = [from.size(), to.size()];
        if sizes.contains(&0) {
            return Err(TypeError::invalid(from.class_name(), "elements of zero bytes"));
        }
        Ok(Self { sizes, step, complete, reading: way == Way::Reading })
    }

    /// The conversion of elements, and whether every member of the target gets a value.
    fn step(from: &Datatype, to: &Datatype, way: Way) -> Result<(Step, bool), TypeError> {
        let refers = |datatype: &Datatype| match way {
            Way::Files => datatype.has_varlen(),
            _ => datatype.has_references(),
        };
        if !refers(from) && !refers(to) {
            match Conversion::new(from, to) {
                Ok(plain) => {
                    let complete = plain.overwrites_target();
                    return Ok((Step::Plain(plain), complete));
                }
                Err(error) if way == Way::Files => return Err(error),
                Err(_) => {}
            }
        }
        let step = match (from, to) {
            (Datatype::VarLen(from), Datatype::VarLen(to)) if same_kind(from, to) => {
                let text = matches!(from.kind, VarLenKind::String { .. });
                let same = text || from.base == to.base && !refers(&from.base);
                let base = (!same).then(|| Self::choose(&from.base, &to.base, way)).transpose()?;
                Step::VarLen { from: from.clone(), size: to.size, base: base.map(Box::new) }
            }
            (Datatype::Compound(from), Datatype::Compound(to)) => {
                let members = members(from, to, way)?;
                let complete = members.len() == to.members.len()
                    && members.iter().all(|(_, member)| member.complete);
                return Ok((Step::Compound(members), complete));
            }
            (Datatype::Array(one), Datatype::Array(other)) if one.count() == other.count() => {
                let base = Self::choose(&one.base, &other.base, way)?;
                let complete = base.complete;
                return Ok((Step::Array(Box::new(base)), complete));
            }
            (Datatype::String(from), Datatype::VarLen(to)) if way != Way::Files && is_text(to) => {
                Step::Loosened { padding: from.padding, size: to.size }
            }
            (Datatype::VarLen(from), Datatype::String(to))
                if way != Way::Files && is_text(from) =>
            {
                Step::Fixed { from: from.clone(), to: to.clone() }
            }
            (Datatype::Integer(_) | Datatype::Bitfield(_), to)
                if way == Way::Reading && *to == bool::datatype() =>
            {
                Step::Truth
            }
            (Datatype::Reference(from), Datatype::Reference(to)) if way != Way::Files => {
                Step::Link(if way == Way::Reading { from } else { to }.clone())
            }
            _ => {
                let text = |datatype| crate::ddl::inline(datatype).to_string();
                return Err(TypeError::NoConversion { from: text(from), to: text(to) });
            }
        };
        Ok((step, true))
    }

    /// Whether every member of the target gets a value. Members that the source lacks become zero,
    /// or null.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Converts elements, with a heap of their own.
    pub fn convert(&self, from: &Heaped) -> Result<Heaped, TypeError> {
        self.convert_with(&from.elements, &from.heap, None, &mut NoLinks)
    }

    /// [`convert`](Self::convert) with references to objects. Members that the source lacks are
    /// those of `onto`, which are as many elements of the target.
    pub fn convert_with(
        &self,
        elements: &[u8],
        heap: &[u8],
        onto: Option<Heaped>,
        links: &mut dyn Links,
    ) -> Result<Heaped, TypeError> {
        let [size, new] = self.sizes;
        if !elements.len().is_multiple_of(size) {
            return Err(TypeError::SourceLength { element: size, found: elements.len() });
        }
        let expected = (elements.len() / size).saturating_mul(new);
        let Heaped { elements: mut places, heap: old } = match onto {
            Some(onto) => onto,
            None => Heaped { elements: zeroed(expected)?, heap: Vec::new() },
        };
        if places.len() != expected {
            return Err(TypeError::TargetLength { expected, found: places.len() });
        }
        let reading = self.reading;
        let mut target = Target { to: Heaped { elements: Vec::new(), heap: old }, links, reading };
        self.elements(elements, heap, &mut places, &mut target)?;
        Ok(Heaped { elements: places, heap: target.to.heap })
    }

    /// Converts elements; their strings and sequences go to the heap of `to`.
    fn elements(
        &self,
        from: &[u8],
        heap: &[u8],
        places: &mut [u8],
        target: &mut Target<'_>,
    ) -> Result<(), TypeError> {
        let [size, new] = self.sizes;
        if let Step::Plain(conversion) = &self.step {
            return conversion.convert(from, places);
        }
        let pairs = from.chunks_exact(size).zip(places.chunks_exact_mut(new));
        for (element, place) in pairs {
            self.element(element, heap, place, target)?;
        }
        Ok(())
    }

    fn element(
        &self,
        from: &[u8],
        heap: &[u8],
        place: &mut [u8],
        target: &mut Target<'_>,
    ) -> Result<(), TypeError> {
        match &self.step {
            Step::Plain(conversion) => conversion.convert(from, place),
            Step::VarLen { from: varlen, size, base } => {
                let Some(payload) = varlen.payload(from, heap)? else {
                    place.fill(0);
                    return Ok(());
                };
                let count = (payload.len() / varlen.base.size().max(1)) as u64;
                let reference = match base {
                    None => target.to.push(payload, count, *size)?,
                    Some(base) => {
                        let [_, new] = base.sizes;
                        let mut converted = zeroed((count as usize).saturating_mul(new))?;
                        base.elements(payload, heap, &mut converted, target)?;
                        target.to.push(&converted, count, *size)?
                    }
                };
                place.copy_from_slice(&reference);
                Ok(())
            }
            Step::Compound(members) => {
                for ([old, new], member) in members {
                    let [from_size, to_size] = member.sizes;
                    let (Some(from), Some(place)) =
                        (from.get(*old..old + from_size), place.get_mut(*new..new + to_size))
                    else {
                        return Err(TypeError::invalid("compound", "a member outside"));
                    };
                    member.element(from, heap, place, target)?;
                }
                Ok(())
            }
            Step::Array(base) => base.elements(from, heap, place, target),
            Step::Loosened { padding, size } => {
                let text = trimmed(from, *padding);
                place.copy_from_slice(&target.to.push(text, text.len() as u64, *size)?);
                Ok(())
            }
            Step::Fixed { from: varlen, to } => {
                let text = varlen.payload(from, heap)?.unwrap_or_default();
                let one: Strings = [text].into_iter().collect();
                place.copy_from_slice(&one.to_fixed(to)?);
                Ok(())
            }
            Step::Truth => {
                place.fill(u8::from(from.iter().any(|&byte| byte != 0)));
                Ok(())
            }
            Step::Link(kind) if target.reading => target.links.read(kind, from, place),
            Step::Link(kind) => target.links.write(from, kind, place),
        }
    }
}

fn zeroed(bytes: usize) -> Result<Vec<u8>, TypeError> {
    bytemuck::allocation::try_zeroed_vec(bytes)
        .map_err(|()| TypeError::value(format!("no memory for {bytes} byte(s)")))
}

fn is_text(varlen: &VarLen) -> bool {
    matches!(varlen.kind, VarLenKind::String { .. })
}

fn same_kind(from: &VarLen, to: &VarLen) -> bool {
    is_text(from) == is_text(to)
}

/// The members that both have.
fn members(
    from: &Compound,
    to: &Compound,
    way: Way,
) -> Result<Vec<([usize; 2], HeapedConversion)>, TypeError> {
    let both = to.members.iter().filter_map(|new| Some((from.member(&new.name)?, new)));
    both.map(|(old, new)| {
        let places = [old.offset as usize, new.offset as usize];
        Ok((places, HeapedConversion::choose(&old.datatype, &new.datatype, way)?))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn record(number: Datatype, size: u32) -> Datatype {
        let list = Datatype::varlen(number.clone(), size);
        Datatype::compound([
            ("id", number),
            ("name", Datatype::varlen_string(size)),
            ("lists", Datatype::varlen(list, size)),
        ])
    }

    #[test]
    fn records_with_strings_and_nested_lists_become_others_member_by_member() {
        let (from, to) = (record(Datatype::i16_be(), 16), record(Datatype::f64_le(), 12));
        let value = |number: &dyn Fn(i8) -> Value, name: Value| {
            let list =
                |numbers: &[i8]| Value::Sequence(numbers.iter().map(|&n| number(n)).collect());
            let lists = Value::Sequence(vec![list(&[1, -2]), list(&[]), Value::Null]);
            Value::Compound(vec![
                ("id".into(), number(7)),
                ("name".into(), name),
                ("lists".into(), lists),
            ])
        };
        let integer = |number: i8| Value::Integer(number.into());
        let float = |number: i8| Value::Float(number.into());
        let names = [Value::from("basalt"), Value::from(""), Value::Null];
        let old: Vec<Value> = names.iter().map(|name| value(&integer, name.clone())).collect();
        let new: Vec<Value> = names.iter().map(|name| value(&float, name.clone())).collect();
        let elements = Heaped::from_values(&from, &old).unwrap();
        let there = HeapedConversion::new(&from, &to).unwrap().convert(&elements).unwrap();
        assert_eq!(there.values(&to).unwrap(), new);
        let back = HeapedConversion::new(&to, &from).unwrap().convert(&there).unwrap();
        assert_eq!(back.values(&from).unwrap(), old);
    }

    #[test]
    fn members_and_arrays_keep_their_places_and_what_is_new_is_null() {
        let string = Datatype::varlen_string(16);
        let from = Datatype::compound([("gone", Datatype::u8()), ("text", string.clone())]);
        let fields = [("text", string.clone()), ("number", Datatype::i32_le()), ("new", string)];
        let to = Datatype::compound(fields);
        let text = |text: &str| ("text".to_string(), Value::from(text));
        let old = [Value::Compound(vec![("gone".into(), Value::Integer(9)), text("tuff")])];
        let elements = Heaped::from_values(&from, &old).unwrap();
        let made = HeapedConversion::new(&from, &to).unwrap().convert(&elements).unwrap();
        let new =
            vec![text("tuff"), ("number".into(), Value::Integer(0)), ("new".into(), Value::Null)];
        assert_eq!(made.values(&to).unwrap(), [Value::Compound(new)]);
    }

    #[test]
    fn what_has_no_counterpart_is_refused() {
        let (string, list) = (Datatype::varlen_string(16), Datatype::varlen(Datatype::u8(), 16));
        for (from, to) in [
            (&string, &list),
            (&list, &string),
            (&string, &Datatype::fixed_string(4)),
            (&string, &Datatype::i32_le()),
            (&list, &Datatype::varlen(string.clone(), 16)),
        ] {
            assert!(HeapedConversion::new(from, to).is_err(), "{from} to {to}");
        }
        let same = HeapedConversion::new(&list, &list).unwrap();
        let dangling = Heaped { elements: vec![9; 16], heap: vec![1] };
        assert!(same.convert(&dangling).is_err());
        assert!(same.convert(&Heaped { elements: vec![0; 15], heap: vec![] }).is_err());
    }
}
