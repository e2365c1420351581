//! One method of a seam: its declaration, and the ways in which a layer forwards it.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Attribute, Error, Expr, FnArg, Ident, LitStr, Pat, Result, Signature, TraitItemFn, Type,
};

pub(crate) struct Method {
    /// As the author wrote it, without what only this macro reads.
    pub(crate) declaration: TraitItemFn,
    docs: Vec<Attribute>,
    signature: Signature,
    arguments: Vec<Argument>,
    call: Option<LitStr>,
    object: Option<Expr>,
    direct: bool,
}

struct Argument {
    name: Ident,
    is_borrowed: bool,
}

impl Method {
    pub(crate) fn parse(mut declaration: TraitItemFn) -> Result<Self> {
        let (own, others) = declaration.attrs.into_iter().partition(|a| a.path().is_ident("seam"));
        declaration.attrs = others;
        let mut signature = declaration.sig.clone();
        let arguments = signature.inputs.iter_mut().filter_map(argument).collect::<Result<_>>()?;
        let is_doc = |attribute: &&Attribute| attribute.path().is_ident("doc");
        let docs = declaration.attrs.iter().filter(is_doc).cloned().collect();
        let direct = signature.asyncness.is_none();
        let mut method =
            Self { declaration, docs, signature, arguments, call: None, object: None, direct };
        Vec::into_iter(own).try_for_each(|attribute| method.read(&attribute))?;
        Ok(method)
    }

    fn read(&mut self, attribute: &Attribute) -> Result<()> {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("direct") {
                self.direct = true;
            } else if meta.path.is_ident("call") {
                self.call = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("object") {
                self.object = Some(meta.value()?.parse()?);
            } else {
                return Err(meta.error("a seam's method knows call, object and direct"));
            }
            Ok(())
        })
    }

    /// The method of the layer, which forwards to the inner one.
    pub(crate) fn forwarding(&self) -> TokenStream {
        let Self { docs, signature, .. } = self;
        let body = if self.direct { self.directly() } else { self.through_middleware() };
        quote! { #(#docs)* #signature { #body } }
    }

    /// The method of the seam for everything that implements the layer.
    pub(crate) fn delegation(&self, layer: &Ident) -> TokenStream {
        let Self { signature, .. } = self;
        let (name, wait, arguments) = (&signature.ident, self.wait(), self.names());
        quote! { #signature { #layer::#name(self, #(#arguments),*) #wait } }
    }

    fn directly(&self) -> TokenStream {
        let (name, wait, arguments) = (&self.signature.ident, self.wait(), self.names());
        quote! { self.inner().#name(#(#arguments),*) #wait }
    }

    /// The call owns what it needs: a middleware may carry it out elsewhere, also after its caller is gone.
    fn through_middleware(&self) -> TokenStream {
        let name = &self.signature.ident;
        let call = self.call.as_ref().map_or_else(|| camel_case(name), LitStr::value);
        let object = self.object.as_ref().map_or_else(
            || quote! { ::std::string::String::new() },
            |object| quote! { ::std::string::ToString::to_string(&#object) },
        );
        let borrowed = self.arguments.iter().filter(|argument| argument.is_borrowed);
        let borrowed: Vec<&Ident> = borrowed.map(|argument| &argument.name).collect();
        let passed = self.arguments.iter().map(|Argument { name, is_borrowed }| {
            if *is_borrowed {
                quote! { &#name }
            } else {
                quote! { #name }
            }
        });
        quote! {
            let call = ::oarsman_seam::Call { name: #call, object: #object };
            let inner = ::std::sync::Arc::clone(self.inner());
            #(let #borrowed = ::std::borrow::ToOwned::to_owned(#borrowed);)*
            let answer = async move { inner.#name(#(#passed),*).await };
            ::oarsman_seam::Middleware::around(self.middleware(), call, answer).await
        }
    }

    fn names(&self) -> impl Iterator<Item = &Ident> {
        self.arguments.iter().map(|argument| &argument.name)
    }

    fn wait(&self) -> TokenStream {
        if self.signature.asyncness.is_some() {
            quote! { .await }
        } else {
            quote! {}
        }
    }
}

/// An argument by its name. An underscore in front says only that a default body does not read it.
fn argument(input: &mut FnArg) -> Option<Result<Argument>> {
    let FnArg::Typed(typed) = input else { return None };
    let Pat::Ident(pattern) = typed.pat.as_mut() else {
        return Some(Err(Error::new_spanned(typed, "an argument of a seam needs a name")));
    };
    let plain = pattern.ident.to_string().trim_start_matches('_').to_owned();
    pattern.ident = Ident::new(&plain, pattern.ident.span());
    let is_borrowed = matches!(typed.ty.as_ref(), Type::Reference(_));
    Some(Ok(Argument { name: pattern.ident.clone(), is_borrowed }))
}

fn camel_case(name: &Ident) -> String {
    let capitalised = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
    };
    name.to_string().split('_').map(capitalised).collect::<Vec<String>>().concat()
}
