//! Complex numbers that are compounds of two floats, under the names that programs give them.

use crate::model::{Complex, Compound, Datatype, Float, Member};

/// Names of the parts: h5py's, Julia's and MATLAB's, and longer ones.
const REAL: [&str; 3] = ["r", "re", "real"];
const IMAGINARY: [&str; 4] = ["i", "im", "imag", "imaginary"];

/// A complex number as a compound, with the names that another compound gives its parts.
pub(super) fn like(complex: &Complex, compound: &Compound) -> Option<Compound> {
    let [real, imaginary] = parts(compound)?;
    Some(named(&complex.base, [&real.name, &imaginary.name]))
}

/// `from` with `to`'s names of the real and imaginary parts, if both are complex numbers and the
/// names differ.
pub(super) fn renamed(from: &Compound, to: &Compound) -> Option<Compound> {
    let ([real, imaginary], [new_real, new_imaginary]) = (parts(from)?, parts(to)?);
    if real.name == new_real.name && imaginary.name == new_imaginary.name {
        return None;
    }
    let members = vec![
        Member { name: new_real.name.clone(), ..real.clone() },
        Member { name: new_imaginary.name.clone(), ..imaginary.clone() },
    ];
    Some(Compound { size: from.size, members })
}

fn named(base: &Float, names: [&str; 2]) -> Compound {
    Compound::packed(names.map(|name| (name, Datatype::Float(base.clone()))))
}

/// The real and the imaginary part, if a compound has just these.
fn parts(compound: &Compound) -> Option<[&Member; 2]> {
    let [one, other] = compound.members.as_slice() else { return None };
    let floats = [one, other].iter().all(|part| matches!(part.datatype, Datatype::Float(_)));
    let is = |member: &Member, names: &[&str]| {
        names.iter().any(|name| name.eq_ignore_ascii_case(&member.name))
    };
    match floats {
        true if is(one, &REAL) && is(other, &IMAGINARY) => Some([one, other]),
        true if is(other, &REAL) && is(one, &IMAGINARY) => Some([other, one]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Conversion, Datatype};

    #[test]
    fn complex_numbers_become_each_other_whatever_their_parts_are_called() {
        let pair = |real: &str, imaginary: &str, part: Datatype| {
            Datatype::compound([(real, part.clone()), (imaginary, part)])
        };
        let Datatype::Float(base) = Datatype::f32_be() else { unreachable!() };
        let native = Datatype::from(crate::Complex { base });
        let numpy = pair("r", "i", Datatype::f64_le());
        let matlab =
            Datatype::compound([("imag", Datatype::f32_le()), ("real", Datatype::f32_le())]);
        let value = [1.5f32.to_be_bytes(), (-2.0f32).to_be_bytes()].concat();
        let wanted = [1.5f64.to_le_bytes(), (-2.0f64).to_le_bytes()].concat();
        let convert = |from: &Datatype, to: &Datatype, element: &[u8]| {
            let mut place = vec![0; to.size()];
            Conversion::new(from, to).unwrap().convert(element, &mut place).unwrap();
            place
        };
        assert_eq!(convert(&native, &numpy, &value), wanted);
        assert_eq!(convert(&numpy, &native, &wanted), value);
        let swapped = convert(&numpy, &matlab, &wanted);
        assert_eq!(swapped, [(-2.0f32).to_le_bytes(), 1.5f32.to_le_bytes()].concat());
        assert_eq!(convert(&matlab, &numpy, &swapped), wanted);
        let points = pair("x", "y", Datatype::f64_le());
        assert!(Conversion::new(&native, &points).is_err(), "a point is no number");
    }
}
