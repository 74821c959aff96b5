//! C-like enums.

use crate::attributes::{Named, check_names, representations};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataEnum, DeriveInput, Error, Fields};

const INTEGERS: [&str; 8] = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"];

pub(crate) fn expand(input: &DeriveInput, data: &DataEnum) -> syn::Result<TokenStream> {
    let name = &input.ident;
    let representations = representations(&input.attrs)?;
    let integer = representations.iter().find(|found| INTEGERS.iter().any(|one| *found == one));
    let Some(integer) = integer else {
        let message =
            "an enumeration needs a #[repr] of an integer of 8 to 64 bits, as in #[repr(u8)]";
        return Err(Error::new_spanned(name, message));
    };
    if data.variants.is_empty() {
        return Err(Error::new_spanned(name, "an enumeration has at least one name"));
    }
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new_spanned(variant, "names of an enumeration have no fields"));
        }
    }
    let variants: Vec<_> = data.variants.iter().map(|variant| &variant.ident).collect();
    let names = data.variants.iter().map(|variant| Named::of(&variant.ident, &variant.attrs));
    let names = names.collect::<syn::Result<Vec<_>>>()?;
    check_names(&names)?;
    let names: Vec<_> = names.into_iter().map(|named| named.name).collect();
    let text = name.to_string();
    Ok(quote! {
        const _: () = {
            // SAFETY: it is not plain.
            #[allow(unsafe_code)]
            #[automatically_derived]
            unsafe impl ::pumice::derive::H5Type for #name {
                const PLAIN: bool = false;
                const SIZE: usize = ::core::mem::size_of::<#integer>();
                const OWNED: bool = true;

                fn datatype() -> ::pumice::derive::Datatype {
                    ::pumice::derive::enumeration::<#integer>(&[#((#names, Self::#variants as #integer)),*])
                }

                fn put(&self, place: &mut [u8], _: &mut ::pumice::derive::Heap) -> ::core::result::Result<(), ::pumice::derive::TypeError> {
                    let integer: #integer = match self {
                        #(Self::#variants => Self::#variants as #integer,)*
                    };
                    ::pumice::derive::plain::put(&integer, place)
                }

                fn take(place: &[u8], _: &::pumice::derive::Heap) -> ::core::result::Result<Self, ::pumice::derive::TypeError> {
                    let integer: #integer = ::pumice::derive::plain::take(place)?;
                    #(if integer == Self::#variants as #integer {
                        return ::core::result::Result::Ok(Self::#variants);
                    })*
                    ::core::result::Result::Err(::pumice::derive::no_variant(#text, integer))
                }
            }
        };
    })
}
