//! Conversion of elements with variable-length parts to another datatype, with what they refer to.
//!
//! Parts of a fixed size are the business of [`Conversion`]. Strings stay as they are, sequences are
//! converted value by value, compounds member by member: a member that the source does not have is zero, or
//! null. Strings do not become sequences, nor of a fixed size.

use crate::model::{Compound, Datatype, VarLen, VarLenKind};
use crate::{Conversion, Heaped, TypeError};

/// How heaped elements of one datatype become those of another.
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
pub struct HeapedConversion {
    sizes: [usize; 2],
    step: Step,
}

enum Step {
    /// Elements without references.
    Plain(Conversion),
    /// References, and how what they lead to is converted; `None` if it stays as it is.
    VarLen { from: VarLen, size: u32, base: Option<Box<HeapedConversion>> },
    /// Members, with the places that they have in both.
    Compound(Vec<([usize; 2], HeapedConversion)>),
    /// So many elements in one.
    Array(Box<HeapedConversion>),
}

impl HeapedConversion {
    /// Chooses how to turn elements of `from` into elements of `to`.
    pub fn new(from: &Datatype, to: &Datatype) -> Result<Self, TypeError> {
        let step = match (from, to) {
            _ if !from.has_varlen() && !to.has_varlen() => Step::Plain(Conversion::new(from, to)?),
            (Datatype::VarLen(from), Datatype::VarLen(to)) if same_kind(from, to) => {
                let text = matches!(from.kind, VarLenKind::String { .. });
                let same = text || from.base == to.base && !from.base.has_varlen();
                let base = (!same).then(|| Self::new(&from.base, &to.base)).transpose()?;
                Step::VarLen { from: from.clone(), size: to.size, base: base.map(Box::new) }
            }
            (Datatype::Compound(from), Datatype::Compound(to)) => {
                Step::Compound(members(from, to)?)
            }
            (Datatype::Array(one), Datatype::Array(other)) if one.count() == other.count() => {
                Step::Array(Box::new(Self::new(&one.base, &other.base)?))
            }
            _ => return Err(TypeError::invalid(from.class_name(), format!("no way to {to}"))),
        };
        let sizes = [from.size(), to.size()];
        if sizes.contains(&0) {
            return Err(TypeError::invalid(from.class_name(), "elements of zero bytes"));
        }
        Ok(Self { sizes, step })
    }

    /// The elements, with what they refer to in a heap of their own.
    pub fn convert(&self, from: &Heaped) -> Result<Heaped, TypeError> {
        let [size, _] = self.sizes;
        if !from.elements.len().is_multiple_of(size) {
            return Err(TypeError::SourceLength { element: size, found: from.elements.len() });
        }
        let mut to = Heaped::default();
        let elements = self.elements(&from.elements, &from.heap, &mut to)?;
        Ok(Heaped { elements, heap: to.heap })
    }

    /// Converts elements; what they refer to is put on the heap of `to`.
    fn elements(&self, from: &[u8], heap: &[u8], to: &mut Heaped) -> Result<Vec<u8>, TypeError> {
        let [size, new] = self.sizes;
        let count = from.len() / size;
        let mut elements = vec![0; count.saturating_mul(new)];
        match &self.step {
            Step::Plain(conversion) => {
                conversion.convert(from, &mut elements)?;
            }
            _ => {
                for (element, place) in from.chunks_exact(size).zip(elements.chunks_exact_mut(new))
                {
                    self.element(element, heap, place, to)?;
                }
            }
        }
        Ok(elements)
    }

    fn element(
        &self,
        from: &[u8],
        heap: &[u8],
        place: &mut [u8],
        to: &mut Heaped,
    ) -> Result<(), TypeError> {
        match &self.step {
            Step::Plain(conversion) => conversion.convert(from, place),
            Step::VarLen { from: varlen, size, base } => {
                let Some(payload) = varlen.payload(from, heap)? else { return Ok(()) };
                let count = (payload.len() / varlen.base.size().max(1)) as u64;
                let reference = match base {
                    None => to.push(payload, count, *size)?,
                    Some(base) => {
                        let payload = base.elements(payload, heap, to)?;
                        to.push(&payload, count, *size)?
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
                    member.element(from, heap, place, to)?;
                }
                Ok(())
            }
            Step::Array(base) => {
                place.copy_from_slice(&base.elements(from, heap, to)?);
                Ok(())
            }
        }
    }
}

fn same_kind(from: &VarLen, to: &VarLen) -> bool {
    let text = |varlen: &VarLen| matches!(varlen.kind, VarLenKind::String { .. });
    text(from) == text(to)
}

/// The members that both have.
fn members(
    from: &Compound,
    to: &Compound,
) -> Result<Vec<([usize; 2], HeapedConversion)>, TypeError> {
    let both = to.members.iter().filter_map(|new| Some((from.member(&new.name)?, new)));
    both.map(|(old, new)| {
        let places = [old.offset as usize, new.offset as usize];
        Ok((places, HeapedConversion::new(&old.datatype, &new.datatype)?))
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
