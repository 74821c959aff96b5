//! Structs.

use crate::{name_of, representations};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataStruct, DeriveInput, Error, Fields};

pub(crate) fn expand(input: &DeriveInput, data: &DataStruct) -> syn::Result<TokenStream> {
    let name = &input.ident;
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(&input.generics, "an HDF5 type has no generics"));
    }
    let representations = representations(&input.attrs)?;
    let is = |wanted: &str| representations.iter().any(|found| found == wanted);
    if !is("C") && !is("transparent") {
        let message = "an HDF5 type needs #[repr(C)], so that its fields have fixed offsets";
        return Err(Error::new_spanned(name, message));
    }
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(name, "members of a compound datatype have names"));
    };
    if fields.named.is_empty() {
        return Err(Error::new_spanned(name, "a compound datatype has at least one member"));
    }
    let types: Vec<_> = fields.named.iter().map(|field| &field.ty).collect();
    let idents: Vec<_> = fields.named.iter().filter_map(|field| field.ident.as_ref()).collect();
    let names = fields.named.iter().zip(&idents).map(|(field, ident)| name_of(ident, &field.attrs));
    let names = names.collect::<syn::Result<Vec<_>>>()?;
    let padding = format!(
        "{name} has padding between or behind its fields: reorder them, or add a field for it"
    );
    Ok(quote! {
        const _: () = {
            use ::pumice::derive::{Compound, Datatype, Element, Member, Pod, Zeroable};

            const FIELDS: usize = 0 #(+ ::core::mem::size_of::<#types>())*;
            ::core::assert!(::core::mem::size_of::<#name>() == FIELDS, #padding);

            const fn is_element<T: Element>() {}
            #(is_element::<#types>();)*

            // SAFETY: every field is an element, for which all zeros are a value.
            #[allow(unsafe_code)]
            unsafe impl Zeroable for #name {}
            // SAFETY: the layout is fixed by its representation, every field is plain old data, and
            // there is no padding: all three are checked above.
            #[allow(unsafe_code)]
            unsafe impl Pod for #name {}

            #[automatically_derived]
            impl Element for #name {
                fn datatype() -> Datatype {
                    Datatype::Compound(Compound {
                        size: ::core::mem::size_of::<#name>() as u32,
                        members: ::std::vec![#(Member {
                            name: #names.into(),
                            offset: ::core::mem::offset_of!(#name, #idents) as u32,
                            datatype: <#types as Element>::datatype(),
                        }),*],
                    })
                }
            }
        };
    })
}
