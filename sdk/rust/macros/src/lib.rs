//! The attribute of `sledge-sdk`, which reexports it: `#[sledge::function]`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Error, FnArg, ItemFn, Result, Safety};

/// Makes a function the entry point of a reactor: for WebAssembly it is exported, natively it stays what it is, to be tested.
///
/// It has no parameter, or one that is a `FromRequest`, and returns an `IntoReply`. To be used once in a crate.
#[proc_macro_attribute]
pub fn function(arguments: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand(&arguments.into(), item.into()).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(arguments: &TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !arguments.is_empty() {
        return Err(Error::new_spanned(arguments, "#[sledge::function] takes no arguments"));
    }
    let function: ItemFn = syn::parse2(item)?;
    check(&function)?;
    let name = &function.sig.ident;
    // Errors about types that cannot be had from a request, or made a reply, stand where the function is named.
    let called = if function.sig.inputs.is_empty() {
        quote_spanned!(name.span()=> ::sledge::handle(|()| #name()))
    } else {
        quote_spanned!(name.span()=> ::sledge::handle(#name))
    };
    Ok(quote! {
        #function

        const _: () = {
            // Natively nothing else uses it, perhaps.
            #[allow(dead_code)]
            #[cfg_attr(target_family = "wasm", unsafe(export_name = "sledge_handle"))]
            extern "C" fn handle() -> i32 {
                #called
            }
        };
    })
}

fn check(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    let refuse = |span, what: &str| Err(Error::new(span, format!("a function for Sledge {what}")));
    if let Some(token) = &signature.asyncness {
        return refuse(token.span(), "is not async: each request has a sandbox of its own, and what waits lets others run");
    }
    if let Safety::Unsafe(token) = &signature.safety {
        return refuse(token.span(), "is not unsafe: the runtime calls it, and can promise nothing");
    }
    if signature.generics.type_params().next().is_some() || signature.generics.const_params().next().is_some() {
        return refuse(signature.generics.span(), "is not generic: the runtime calls it, and can name no types");
    }
    if let Some(second) = signature.inputs.iter().nth(1) {
        return refuse(second.span(), "has at most one parameter: a request, its body as bytes, text or `Json`");
    }
    if let Some(FnArg::Receiver(receiver)) = signature.inputs.first() {
        return refuse(receiver.span(), "is no method");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(item: TokenStream) -> String {
        expand(&TokenStream::new(), item).expect_err("it is refused").to_string()
    }

    #[test]
    fn what_cannot_be_an_entry_point_is_refused_with_the_reason() {
        assert!(
            error(quote!(
                async fn f() {}
            ))
            .contains("not async")
        );
        assert!(
            error(quote!(
                unsafe fn f() {}
            ))
            .contains("not unsafe")
        );
        assert!(
            error(quote!(
                fn f<T>(_: T) {}
            ))
            .contains("not generic")
        );
        assert!(
            error(quote!(
                fn f(_: &[u8], _: u8) {}
            ))
            .contains("at most one parameter")
        );
        assert!(
            error(quote!(
                fn f(&self) {}
            ))
            .contains("no method")
        );
        assert!(
            expand(
                &quote!(x),
                quote!(
                    fn f() {}
                )
            )
            .is_err()
        );
        assert!(
            expand(
                &TokenStream::new(),
                quote!(
                    struct S;
                )
            )
            .is_err()
        );
    }

    #[test]
    fn the_function_stays_and_an_export_is_added() {
        let text = expand(
            &TokenStream::new(),
            quote!(
                pub fn f<'a>(body: &'a [u8]) -> &'a [u8] {
                    body
                }
            ),
        )
        .unwrap()
        .to_string();
        assert!(
            text.starts_with("pub fn f < 'a >") && text.contains("sledge_handle") && text.contains(":: sledge :: handle (f)"),
            "{text}"
        );
        let text = expand(
            &TokenStream::new(),
            quote!(
                fn f() {}
            ),
        )
        .unwrap()
        .to_string();
        assert!(text.contains("handle (| () | f ())"), "{text}");
    }
}
