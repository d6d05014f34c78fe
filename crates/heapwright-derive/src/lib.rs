//! `#[derive(Trace)]` for values in heapwright's realms (`heapwright::gc::Realm`).
//!
//! ```text
//!   struct Node<'gc> { next: Gc<'gc, Node<'gc>>, #[trace(skip)] file: File }
//!
//!   unsafe impl Trace for Node<'_>     each field's `trace`, except of skipped fields
//!   no Drop                            conflicts with an implementation for all types with Drop
//!   file: 'static                      a skipped field holds no reference of a realm
//!   fn check() { wf::<Node>() }        well-formed by its written bounds
//! ```
//!
//! These four parts meet the contract of `Trace`, so the derived `unsafe impl` is sound for any
//! type. The compiler infers bounds of a struct from its fields (`'gc: 'a` from a `&'a &'gc ()`).
//! An implementation takes inferred bounds for granted, and no code checks them where a realm's
//! root is named. `check` has no argument of the type, so it compiles only if the bounds are
//! written. Then the implementation has them too, and the compiler checks them.
//!
//! Any thread may use or drop the values if the type is `Send` with `'static` for its lifetimes
//! (see `heapwright_realm`'s `send`).
#![forbid(unsafe_code)]

mod manifest;

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use std::fs;
use std::path::PathBuf;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Field, Fields, GenericParam, Token, WherePredicate, parse_quote};

/// Implements `heapwright::gc::Trace` for a struct or an enum. Each field implements it, or has
/// `#[trace(skip)]` and is `'static`. The type must not implement `Drop`.
///
/// `#[trace(crate = path)]` before the type says where heapwright is, for a crate that gets it from
/// another crate, as in `#[trace(crate = other::heapwright)]`. Without the attribute, the crate's
/// manifest gives heapwright's name.
///
/// # Errors
///
/// A compile error for unions, for fields that are neither `Trace` nor skipped, and for types that
/// implement `Drop`. Also an error: a bound that a field's type needs (such as `'gc: 'a`) is not
/// written on the type.
#[proc_macro_derive(Trace, attributes(trace))]
pub fn derive_trace(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    derive(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// `#[trace(crate = path)]` has the path. Without it, the crate's manifest has the name, such as
/// `hw` in the entry `hw = { package = "heapwright" }`.
fn heapwright(input: &DeriveInput) -> syn::Result<TokenStream> {
    let mut path: Option<syn::Path> = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("trace")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("crate") {
                path = Some(meta.value()?.call(syn::Path::parse_mod_style)?);
                return Ok(());
            }
            Err(meta.error("a type takes only `#[trace(crate = path)]`"))
        })?;
    }
    if let Some(path) = path {
        return Ok(quote!(#path));
    }
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let manifests =
        folder.ancestors().filter_map(|at| fs::read_to_string(at.join("Cargo.toml")).ok());
    let name = format_ident!("{}", manifest::name(manifests));
    Ok(quote!(::#name))
}

fn is_skipped(field: &Field) -> syn::Result<bool> {
    let mut skipped = false;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("trace")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("skip") {
                skipped = true;
                return Ok(());
            }
            Err(meta.error("a field takes only `#[trace(skip)]`"))
        })?;
    }
    Ok(skipped)
}

struct Traced {
    pattern: TokenStream,
    calls: TokenStream,
}

fn trace_fields(
    heapwright: &TokenStream,
    fields: &Fields,
    types: &mut Vec<syn::Type>,
    skipped: &mut Vec<syn::Type>,
) -> syn::Result<Traced> {
    let mut names = Vec::new();
    let mut calls = TokenStream::new();
    for (n, field) in fields.iter().enumerate() {
        let bound = format_ident!("field_{n}");
        let binding = if is_skipped(field)? {
            skipped.push(field.ty.clone());
            quote!(_)
        } else {
            types.push(field.ty.clone());
            calls.extend(
                quote_spanned!(field.ty.span()=> #heapwright::gc::Trace::trace(#bound, tracer);),
            );
            quote!(#bound)
        };
        names.push(match &field.ident {
            Some(name) => quote!(#name: #binding),
            None => binding,
        });
    }
    let pattern = match fields {
        Fields::Named(_) => quote!({ #(#names),* }),
        Fields::Unnamed(_) => quote!(( #(#names),* )),
        Fields::Unit => quote!(),
    };
    Ok(Traced { pattern, calls })
}

fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let heapwright = heapwright(input)?;
    let name = &input.ident;
    let (mut types, mut skipped) = (Vec::new(), Vec::new());
    let body = match &input.data {
        Data::Struct(data) => {
            let Traced { pattern, calls } =
                trace_fields(&heapwright, &data.fields, &mut types, &mut skipped)?;
            quote!(let Self #pattern = self; #calls)
        }
        Data::Enum(data) if data.variants.is_empty() => quote!(match *self {}),
        Data::Enum(data) => {
            let mut arms = TokenStream::new();
            for variant in &data.variants {
                let Traced { pattern, calls } =
                    trace_fields(&heapwright, &variant.fields, &mut types, &mut skipped)?;
                let variant = &variant.ident;
                arms.extend(quote!(Self::#variant #pattern => { #calls }));
            }
            quote!(match self { #arms })
        }
        Data::Union(_) => {
            let why = "`Trace` cannot be derived for a union: nothing says which field is in use";
            return Err(syn::Error::new(name.span(), why));
        }
    };

    // A generic parameter brings its own bound; types of fields that name a parameter need no more.
    let mut generics = input.generics.clone();
    let parameters: Vec<_> = generics
        .params
        .iter()
        .filter_map(|parameter| match parameter {
            GenericParam::Type(parameter) => Some(parameter.ident.clone()),
            _ => None,
        })
        .collect();
    let clause = generics.make_where_clause();
    for parameter in parameters {
        clause.predicates.push(parse_quote!(#parameter: #heapwright::gc::Trace));
    }
    let mut statics: Punctuated<WherePredicate, Token![,]> = Punctuated::new();
    for of in &skipped {
        statics.push(parse_quote!(#of: 'static));
    }
    clause.predicates.extend(statics);
    // The derived type with `'static`, the one lifetime for which references are `Send`.
    let mut lasting = input.generics.clone();
    for parameter in lasting.lifetimes_mut() {
        parameter.lifetime.ident = format_ident!("static");
    }
    let (_, lasting, _) = lasting.split_for_impl();
    let (parameters, arguments, clause) = generics.split_for_impl();

    let traced = if types.is_empty() {
        quote!(false)
    } else {
        quote!(#(<#types as #heapwright::gc::Trace>::TRACED)||*)
    };
    Ok(quote! {
        // SAFETY: every field that may hold a reference is traced. Skipped fields are 'static, so
        // they hold none. The type has no `Drop` that could use a reference.
        unsafe impl #parameters #heapwright::gc::Trace for #name #arguments #clause {
            const TRACED: bool = #traced;
            const SENDS: bool = {
                #[allow(unused_imports)]
                use #heapwright::__MayNotBeSend as _;
                <#heapwright::__IsSend<#name #lasting>>::YES
            };
            const DROPS_ANYWHERE: bool =
                !#heapwright::__needs_drop::<Self>() || <Self as #heapwright::gc::Trace>::SENDS;

            #[inline]
            #[allow(unused_variables, clippy::match_single_binding)]
            fn trace(&self, tracer: &#heapwright::gc::Tracer) {
                #body
            }
        }

        const _: () = {
            /// A type that implements `Drop` has this trait already. The compiler's error then
            /// shows the trait's name.
            #[allow(dead_code, non_camel_case_types)]
            trait __DropIsNotForValuesInARealm_FinalizeIs_OrAFieldOfItsOwn {}
            #[allow(drop_bounds)]
            impl<T: #heapwright::__Drop + ?Sized> __DropIsNotForValuesInARealm_FinalizeIs_OrAFieldOfItsOwn for T {}
            impl #parameters __DropIsNotForValuesInARealm_FinalizeIs_OrAFieldOfItsOwn for #name #arguments #clause {}

            #[allow(dead_code)]
            fn well_formed<T: ?Sized>() {}
            /// No argument's type implies bounds here, so all bounds must be written.
            #[allow(dead_code, clippy::extra_unused_lifetimes, clippy::needless_lifetimes)]
            fn check #parameters () #clause {
                well_formed::<#name #arguments>()
            }
        };
    })
}
