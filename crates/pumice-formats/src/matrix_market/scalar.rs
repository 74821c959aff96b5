//! The values of a matrix: from the words of a field to elements.

use super::lines::quoted;
use pumice::types::{Datatype, H5Type};

/// A value of one field of the Matrix Market format.
pub(crate) trait Scalar: Copy {
    /// The number of words of a value.
    const WORDS: usize;
    /// The name of a value in messages.
    const NAME: &'static str;

    /// The type of the dataset's elements.
    fn datatype() -> Datatype;

    /// The value of `WORDS` words; the word that is not understood otherwise.
    fn parse<'a>(words: &[&'a [u8]]) -> Result<Self, &'a [u8]>;

    /// Appends the element's bytes.
    fn append(self, out: &mut Vec<u8>);
}

macro_rules! number {
    ($number:ty, $name:literal, $parse:expr) => {
        impl Scalar for $number {
            const WORDS: usize = 1;
            const NAME: &'static str = $name;

            fn datatype() -> Datatype {
                <$number as H5Type>::datatype()
            }

            fn parse<'a>(words: &[&'a [u8]]) -> Result<Self, &'a [u8]> {
                let parse: fn(&[u8]) -> Option<Self> = $parse;
                parse(words[0]).ok_or(words[0])
            }

            fn append(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_ne_bytes());
            }
        }
    };
}

number!(f64, "a number", float);
number!(i64, "an integer of 64 bits", integer);
number!(u64, "an unsigned integer of 64 bits", integer);

/// The value of a pattern's entry, which has none: its cell holds a 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Present;

impl Scalar for Present {
    const WORDS: usize = 0;
    const NAME: &'static str = "nothing";

    fn datatype() -> Datatype {
        u8::datatype()
    }

    fn parse<'a>(_words: &[&'a [u8]]) -> Result<Self, &'a [u8]> {
        Ok(Self)
    }

    fn append(self, out: &mut Vec<u8>) {
        out.push(1);
    }
}

/// A complex number: a compound of "r" and "i", as h5py stores it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Complex {
    real: f64,
    imaginary: f64,
}

impl Scalar for Complex {
    const WORDS: usize = 2;
    const NAME: &'static str = "two numbers";

    fn datatype() -> Datatype {
        Datatype::compound([("r", <f64 as Scalar>::datatype()), ("i", <f64 as Scalar>::datatype())])
    }

    fn parse<'a>(words: &[&'a [u8]]) -> Result<Self, &'a [u8]> {
        let real = float(words[0]).ok_or(words[0])?;
        let imaginary = float(words[1]).ok_or(words[1])?;
        Ok(Self { real, imaginary })
    }

    fn append(self, out: &mut Vec<u8>) {
        self.real.append(out);
        self.imaginary.append(out);
    }
}

fn integer<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// A float, also with Fortran's exponent letter D.
fn float(word: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(word).ok()?;
    if let Ok(value) = text.parse() {
        return Some(value);
    }
    let exponent = text.find(['d', 'D'])?;
    let (digits, power) = (&text[..exponent], &text[exponent + 1..]);
    if !digits.ends_with(|last: char| last.is_ascii_digit() || last == '.') {
        return None;
    }
    format!("{digits}e{power}").parse().ok()
}

/// The message about a word that is no value of `S`.
pub(crate) fn expected<S: Scalar>(word: &[u8]) -> String {
    format!("expected {}, found {}", S::NAME, quoted(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse<S: Scalar>(words: &[&[u8]]) -> Option<S> {
        S::parse(words).ok()
    }

    #[test]
    fn floats_of_c_and_fortran_are_read() {
        for (text, value) in [("1", 1.0), ("-2.5e3", -2500.0), ("+.5", 0.5), ("1.D-3", 0.001)] {
            assert_eq!(parse::<f64>(&[text.as_bytes()]), Some(value), "{text}");
        }
        for wrong in ["", "x", "1,5", "0x10", "1e", "d3", "infd", "1d", "\u{e9}"] {
            assert_eq!(parse::<f64>(&[wrong.as_bytes()]), None, "{wrong}");
        }
    }

    #[test]
    fn integers_must_fit() {
        assert_eq!(parse::<i64>(&[b"-9223372036854775808"]), Some(i64::MIN));
        assert_eq!(parse::<i64>(&[b"9223372036854775808"]), None);
        assert_eq!(parse::<i64>(&[b"1.0"]), None);
        assert_eq!(parse::<u64>(&[b"18446744073709551615"]), Some(u64::MAX));
    }

    #[test]
    fn elements_keep_their_values() {
        let value = Complex { real: 1.5, imaginary: -2.5 };
        let mut bytes = Vec::new();
        value.append(&mut bytes);
        assert_eq!(bytes.len(), Complex::datatype().size());
        assert_eq!(bytes, [1.5f64.to_ne_bytes(), (-2.5f64).to_ne_bytes()].concat());
    }
}
