//! A seam's trait, the layer in front of it, and what makes one of the other.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Error, ItemTrait, Result, TraitItem};

use crate::method::Method;

pub(crate) fn expand(mut seam: ItemTrait) -> Result<TokenStream> {
    let methods = seam.items.drain(..).map(|item| match item {
        TraitItem::Fn(declaration) => Method::parse(declaration),
        other => Err(Error::new_spanned(other, "a seam has only methods")),
    });
    let methods = methods.collect::<Result<Vec<Method>>>()?;
    seam.items = methods.iter().map(|m| TraitItem::Fn(m.declaration.clone())).collect();
    let (visibility, name) = (&seam.vis, &seam.ident);
    let layer = format_ident!("{name}Layer");
    let about = format!(
        "What stands in front of a [`{name}`] and is one: every call that is not written here goes through its middleware to the inner one."
    );
    let forwardings = methods.iter().map(Method::forwarding);
    let delegations = methods.iter().map(|method| method.delegation(&layer));
    Ok(quote! {
        #[::oarsman_seam::async_trait]
        #seam

        #[doc = #about]
        #[::oarsman_seam::async_trait]
        #visibility trait #layer: ::std::marker::Send + ::std::marker::Sync + 'static {
            /// What is done around every call.
            type Middleware: ::oarsman_seam::Middleware;

            /// Where calls go.
            fn inner(&self) -> &::std::sync::Arc<dyn #name>;

            /// What is done around every call.
            fn middleware(&self) -> &Self::Middleware;

            #(#forwardings)*
        }

        #[::oarsman_seam::async_trait]
        impl<L: #layer> #name for L {
            #(#delegations)*
        }

        impl<M: ::oarsman_seam::Middleware> #layer for ::oarsman_seam::WithMiddleware<dyn #name, M> {
            type Middleware = M;

            fn inner(&self) -> &::std::sync::Arc<dyn #name> {
                ::oarsman_seam::WithMiddleware::inner(self)
            }

            fn middleware(&self) -> &M {
                ::oarsman_seam::WithMiddleware::middleware(self)
            }
        }
    })
}
