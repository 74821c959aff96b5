//! `#[derive(H5Type)]`: structs become compound datatypes, C-like enums enumerations.
//!
//! The macro is documented where it is used: `pumice::H5Type`.

#![forbid(unsafe_code)]

mod attributes;
mod enumeration;
mod structure;

use proc_macro::TokenStream;
use syn::{Data, DeriveInput, Error, parse_macro_input};

/// Makes a struct an element of a compound datatype, or an enum one of an enumeration.
///
/// The fields of a struct are of types that are elements themselves: numbers, `bool`, `String`, arrays, `Vec`,
/// other structs and enums. Members of the datatype have their names, or those given by
/// `#[h5(rename = "...")]`, and follow each other without the gaps that fields may have in memory.
/// `#[h5(plain)]` lets the compiler check that a struct's bytes are an element as they are.
///
/// An enum must have a `#[repr]` of an integer and variants without fields.
#[proc_macro_derive(H5Type, attributes(h5))]
pub fn derive_h5_type(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let expanded = match &input.data {
        Data::Struct(data) => structure::expand(&input, data),
        Data::Enum(data) => enumeration::expand(&input, data),
        Data::Union(_) => Err(Error::new_spanned(
            &input.ident,
            "a union is no HDF5 type: which of its fields is meant is not stored",
        )),
    };
    expanded.unwrap_or_else(Error::into_compile_error).into()
}

#[cfg(test)]
mod tests {
    use super::{enumeration, structure};
    use syn::{Data, DeriveInput};

    /// The error message for an item that the macro does not take; `None` if it takes it.
    fn refused(item: &str) -> Option<String> {
        let input: DeriveInput = syn::parse_str(item).expect("an item of Rust");
        let expanded = match &input.data {
            Data::Struct(data) => structure::expand(&input, data),
            Data::Enum(data) => enumeration::expand(&input, data),
            Data::Union(_) => unreachable!("it is refused before"),
        };
        expanded.err().map(|error| error.to_string())
    }

    #[test]
    fn what_is_no_hdf5_type_is_refused_with_a_reason() {
        for (item, reason) in [
            ("struct S<T> { a: T }", "no generics"),
            ("struct S<'a> { a: &'a str }", "borrows nothing"),
            ("struct S(u8);", "have names"),
            ("struct S;", "have names"),
            ("struct S {}", "at least one member"),
            ("#[h5(plain)] struct S { a: u8 }", "needs #[repr(C)]"),
            ("#[h5(tidy)] struct S { a: u8 }", "expected `plain`"),
            ("struct S { a: u8, #[h5(rename = \"a\")] b: u8 }", "stands twice"),
            ("struct S { #[h5(rename = \"\")] b: u8 }", "not empty"),
            ("struct S { #[h5(skip)] b: u8 }", "expected `rename"),
            ("enum E { A, B }", "needs a #[repr]"),
            ("#[repr(C)] enum E { A }", "needs a #[repr]"),
            ("#[repr(usize)] enum E { A }", "needs a #[repr]"),
            ("#[repr(u8)] enum E { A(u8), B }", "have no fields"),
            ("#[repr(u8)] enum E { A { x: u8 } }", "have no fields"),
            ("#[repr(u8)] enum E {}", "at least one name"),
            ("#[repr(u8)] enum E { A, #[h5(rename = \"A\")] B }", "stands twice"),
        ] {
            let found = refused(item).unwrap_or_else(|| panic!("{item} is taken"));
            assert!(found.contains(reason), "{item}: {found}");
        }
    }

    #[test]
    fn what_is_one_is_taken() {
        for item in [
            "struct S { a: String, b: Vec<u8>, c: [Other; 3] }",
            "#[repr(C)] #[h5(plain)] struct S { a: u8 }",
            "#[repr(C, packed(2))] struct S { a: u8 }",
            "struct S { #[h5(region)] part: Option<Reference>, r#type: u8 }",
            "#[repr(i64)] enum E { A = -5, #[h5(rename = \"b c\")] B }",
        ] {
            assert_eq!(refused(item), None, "{item}");
        }
    }
}
