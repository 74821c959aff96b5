//! Structs.

use crate::attributes::{Named, check_names, is_plain, representations};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataStruct, DeriveInput, Error, Fields, Ident, Type};

pub(crate) fn expand(input: &DeriveInput, data: &DataStruct) -> syn::Result<TokenStream> {
    let name = &input.ident;
    if !input.generics.params.is_empty() {
        let message =
            "an HDF5 type has no generics and borrows nothing: its size and its members are fixed";
        return Err(Error::new_spanned(&input.generics, message));
    }
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(name, "members of a compound datatype have names"));
    };
    if fields.named.is_empty() {
        return Err(Error::new_spanned(name, "a compound datatype has at least one member"));
    }
    let types: Vec<_> = fields.named.iter().map(|field| &field.ty).collect();
    let idents: Vec<_> = fields.named.iter().filter_map(|field| field.ident.as_ref()).collect();
    let named =
        fields.named.iter().zip(&idents).map(|(field, ident)| Named::of(ident, &field.attrs));
    let named = named.collect::<syn::Result<Vec<_>>>()?;
    check_names(&named)?;
    let representations = representations(&input.attrs)?;
    let is = |wanted: &str| representations.iter().any(|found| found == wanted);
    let ordered = is("C") || is("transparent");
    let element = match is_plain(&input.attrs)? {
        true if ordered => element(name, &types),
        true => {
            let message = "#[h5(plain)] needs #[repr(C)], so that its fields have fixed offsets";
            return Err(Error::new_spanned(name, message));
        }
        false => TokenStream::new(),
    };
    let members = named.iter().zip(&types).map(|(Named { name, references, .. }, of)| {
        let datatype = quote! { <#of as ::pumice::derive::H5Type>::datatype() };
        match references {
            Some(meaning) => quote! { (#name, ::pumice::derive::references::#meaning(#datatype)) },
            None => quote! { (#name, #datatype) },
        }
    });
    let ways = if is("packed") { packed(name) } else { by_field(&idents, &types) };
    Ok(quote! {
        const _: () = {
            // SAFETY: it is plain only if the layout is fixed by its representation, every field is plain, and
            // there is no padding; its datatype has the fields in the same order.
            #[allow(unsafe_code)]
            #[automatically_derived]
            unsafe impl ::pumice::derive::H5Type for #name {
                const PLAIN: bool = #ordered
                    && ::core::mem::size_of::<#name>() == 0 #(+ ::core::mem::size_of::<#types>())*
                    #(&& <#types as ::pumice::derive::H5Type>::PLAIN)*;
                const SIZE: usize = 0 #(+ <#types as ::pumice::derive::H5Type>::SIZE)*;
                const OWNED: bool = true #(&& <#types as ::pumice::derive::H5Type>::OWNED)*;

                fn datatype() -> ::pumice::derive::Datatype {
                    ::pumice::derive::Datatype::compound([#(#members),*])
                }

                #ways
            }

            #element
        };
    })
}

/// Going through the fields one by one.
fn by_field(idents: &[&Ident], types: &[&Type]) -> TokenStream {
    quote! {
        fn put(&self, __place: &mut [u8], __heap: &mut ::pumice::derive::Heap) -> ::core::result::Result<(), ::pumice::derive::TypeError> {
            if Self::PLAIN {
                return ::pumice::derive::plain::put(self, __place);
            }
            #(let (__now, __place) = __place.split_at_mut(<#types as ::pumice::derive::H5Type>::SIZE);
            <#types as ::pumice::derive::H5Type>::put(&self.#idents, __now, __heap)?;)*
            let _ = __place;
            ::core::result::Result::Ok(())
        }

        fn take(__place: &[u8], __heap: &::pumice::derive::Heap) -> ::core::result::Result<Self, ::pumice::derive::TypeError> {
            if Self::PLAIN {
                return ::pumice::derive::plain::take(__place);
            }
            #(let (__now, __place) = __place.split_at(<#types as ::pumice::derive::H5Type>::SIZE);
            let #idents = <#types as ::pumice::derive::H5Type>::take(__now, __heap)?;)*
            let _ = __place;
            ::core::result::Result::Ok(Self { #(#idents),* })
        }
    }
}

/// Fields of a packed struct cannot be borrowed: it must be plain.
fn packed(name: &Ident) -> TokenStream {
    let message = format!("{name} is packed, and not all its fields are plain");
    quote! {
        fn put(&self, place: &mut [u8], _: &mut ::pumice::derive::Heap) -> ::core::result::Result<(), ::pumice::derive::TypeError> {
            const { ::core::assert!(Self::PLAIN, #message) };
            ::pumice::derive::plain::put(self, place)
        }

        fn take(place: &[u8], _: &::pumice::derive::Heap) -> ::core::result::Result<Self, ::pumice::derive::TypeError> {
            const { ::core::assert!(Self::PLAIN, #message) };
            ::pumice::derive::plain::take(place)
        }
    }
}

/// Says that a struct is plain, which the compiler checks.
fn element(name: &Ident, types: &[&Type]) -> TokenStream {
    let padding = format!(
        "{name} has padding between or behind its fields: reorder them, add a field for it, or do without #[h5(plain)]"
    );
    quote! {
        const FIELDS: usize = 0 #(+ ::core::mem::size_of::<#types>())*;
        ::core::assert!(::core::mem::size_of::<#name>() == FIELDS, #padding);

        const fn is_element<T: ::pumice::derive::Element>() {}
        #(is_element::<#types>();)*

        // SAFETY: every field is an element, for which all zeros are a value.
        #[allow(unsafe_code)]
        unsafe impl ::pumice::derive::Zeroable for #name {}
        // SAFETY: the layout is fixed by its representation, every field is plain old data, and
        // there is no padding: all three are checked above.
        #[allow(unsafe_code)]
        unsafe impl ::pumice::derive::Pod for #name {}

        #[automatically_derived]
        impl ::pumice::derive::Element for #name {}
    }
}
