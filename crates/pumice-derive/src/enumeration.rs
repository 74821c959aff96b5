//! C-like enums.

use crate::{name_of, representations};
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
    let names = data.variants.iter().map(|variant| name_of(&variant.ident, &variant.attrs));
    let names = names.collect::<syn::Result<Vec<_>>>()?;
    Ok(quote! {
        const _: () = {
            use ::pumice::derive::{ByteOrder, Datatype, Enumerated, Enumeration, Integer};

            #[automatically_derived]
            impl Enumerated for #name {
                type Integer = #integer;

                fn datatype() -> Datatype {
                    let size = ::core::mem::size_of::<#integer>() as u32;
                    let base = Integer::new(size, ByteOrder::NATIVE, <#integer>::MIN != 0);
                    let names = Enumeration::new(base);
                    #(let names = names.with(#names, &(Self::#variants as #integer).to_ne_bytes());)*
                    Datatype::Enum(names)
                }

                fn to_integer(&self) -> #integer {
                    match self {
                        #(Self::#variants => Self::#variants as #integer,)*
                    }
                }

                fn from_integer(integer: #integer) -> ::core::option::Option<Self> {
                    #(if integer == Self::#variants as #integer {
                        return ::core::option::Option::Some(Self::#variants);
                    })*
                    ::core::option::Option::None
                }
            }
        };
    })
}
