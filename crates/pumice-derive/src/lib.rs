//! `#[derive(H5Type)]`: structs become compound datatypes, C-like enums enumerations.
//!
//! The macro is documented where it is used: `pumice::H5Type`.

#![forbid(unsafe_code)]

mod enumeration;
mod structure;

use proc_macro::TokenStream;
use syn::{Attribute, Data, DeriveInput, Error, Ident, parse_macro_input};

/// Makes a struct an element of a compound datatype, or an enum one of an enumeration.
///
/// A struct must be `#[repr(C)]`, without generics, and its fields elements themselves: numbers,
/// arrays, fixed strings, other structs. It must have no padding, which the compiler checks: bytes
/// that belong to no field could not be written to a file. Members of the datatype are at the
/// fields' offsets and have their names, or those given by `#[h5(rename = "...")]`.
///
/// An enum must have a `#[repr]` of an integer and variants without fields.
#[proc_macro_derive(H5Type, attributes(h5))]
pub fn derive_h5_type(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let expanded = match &input.data {
        Data::Struct(data) => structure::expand(&input, data),
        Data::Enum(data) => enumeration::expand(&input, data),
        Data::Union(_) => Err(Error::new_spanned(&input.ident, "a union is no HDF5 type")),
    };
    expanded.unwrap_or_else(Error::into_compile_error).into()
}

/// What `#[repr(...)]` names.
fn representations(attributes: &[Attribute]) -> syn::Result<Vec<Ident>> {
    let mut found = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            found.extend(meta.path.get_ident().cloned());
            // `align(8)` and `packed(1)` have a number that does not matter here.
            if meta.input.peek(syn::token::Paren) {
                let inside;
                syn::parenthesized!(inside in meta.input);
                inside.parse::<syn::LitInt>()?;
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// The name in the file: the field's or variant's own, or that of `#[h5(rename = "...")]`.
fn name_of(ident: &Ident, attributes: &[Attribute]) -> syn::Result<String> {
    let mut name = ident.to_string().trim_start_matches("r#").to_owned();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("h5")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("rename") {
                return Err(meta.error("expected `rename = \"...\"`"));
            }
            name = meta.value()?.parse::<syn::LitStr>()?.value();
            Ok(())
        })?;
    }
    Ok(name)
}
