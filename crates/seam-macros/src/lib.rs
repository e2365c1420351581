//! The attribute `seam`: from a trait that is written once, the layer that forwards its calls.

mod layer;
mod method;

use proc_macro::TokenStream;
use syn::{ItemTrait, parse_macro_input};

/// Makes a trait of asynchronous methods a seam: object safe, and with a layer that forwards every call through a middleware.
///
/// For a trait `Volumes` it writes a trait `VolumesLayer`. A type that implements the layer is a `Volumes` too; each method that it
/// does not write itself is forwarded to the inner one. `WithMiddleware<dyn Volumes, M>` is such a type for any `M: Middleware`.
///
/// A method may say more about its calls: `#[seam(call = "...")]` gives the name that errors and traces show, which otherwise is the
/// method's own in CamelCase; `#[seam(object = pod.uid())]` what the call is about; `#[seam(direct)]` forwards without middleware, as
/// methods that are not asynchronous are always.
#[proc_macro_attribute]
pub fn seam(_: TokenStream, item: TokenStream) -> TokenStream {
    let seam = parse_macro_input!(item as ItemTrait);
    layer::expand(seam).unwrap_or_else(syn::Error::into_compile_error).into()
}
