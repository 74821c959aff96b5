//! Parsing `#[repr(...)]` and `#[h5(...)]`.

use proc_macro2::Span;
use syn::{Attribute, Error, Ident};

/// The names in `#[repr(...)]`.
pub(crate) fn representations(attributes: &[Attribute]) -> syn::Result<Vec<Ident>> {
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

/// Whether a struct has `#[h5(plain)]`.
pub(crate) fn is_plain(attributes: &[Attribute]) -> syn::Result<bool> {
    let mut plain = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("h5")) {
        attribute.parse_nested_meta(|meta| match meta.path.is_ident("plain") {
            true => {
                plain = true;
                Ok(())
            }
            false => Err(meta.error("expected `plain`")),
        })?;
    }
    Ok(plain)
}

/// The name and options of a field or variant.
pub(crate) struct Named {
    /// Its own name, or that of `#[h5(rename = "...")]`.
    pub(crate) name: String,
    /// The kind of references, `region` or `any`, if they are not object references.
    pub(crate) references: Option<Ident>,
    span: Span,
}

impl Named {
    pub(crate) fn of(ident: &Ident, attributes: &[Attribute]) -> syn::Result<Self> {
        let name = ident.to_string().trim_start_matches("r#").to_owned();
        let mut named = Self { name, references: None, span: ident.span() };
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("h5")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("region") || meta.path.is_ident("any") {
                    named.references = meta.path.get_ident().cloned();
                    return Ok(());
                }
                if !meta.path.is_ident("rename") {
                    let known = "expected `rename = \"...\"`, or `region` or `any` of references";
                    return Err(meta.error(known));
                }
                named.name = meta.value()?.parse::<syn::LitStr>()?.value();
                Ok(())
            })?;
        }
        if named.name.is_empty() || named.name.contains('\0') {
            return Err(Error::new(named.span, "a name of HDF5 is not empty and has no null byte"));
        }
        Ok(named)
    }
}

/// Refuses names that stand twice.
pub(crate) fn check_names(all: &[Named]) -> syn::Result<()> {
    for (at, named) in all.iter().enumerate() {
        if all[..at].iter().any(|before| before.name == named.name) {
            let message = format!("the name {:?} stands twice", named.name);
            return Err(Error::new(named.span, message));
        }
    }
    Ok(())
}
