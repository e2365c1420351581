//! Checks that the trait of a seam is declared in the crate of its real implementation, and not in the agent.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{ItemStruct, ItemTrait, TypeParamBound, TypeTraitObject};

/// The crate that may declare none of its seams' traits.
pub(super) const AGENT: &str = "oarsman-agent";

/// The traits that the agent declares, and those that its seams hold.
#[derive(Default)]
pub(super) struct SeamTraits {
    /// The files of traits, by the traits' names.
    traits: BTreeMap<String, String>,
    /// The traits that fields of the struct `Seams` hold.
    held: BTreeSet<String>,
    shown: String,
}

impl SeamTraits {
    /// Reads a file of the agent; `shown` is how complaints name it.
    pub(super) fn read(&mut self, shown: &str, text: &str) -> syn::Result<()> {
        shown.clone_into(&mut self.shown);
        self.visit_file(&syn::parse_file(text)?);
        Ok(())
    }

    pub(super) fn complaints(&self) -> Vec<String> {
        let misplaced = self.traits.iter().filter(|(name, _)| self.held.contains(*name));
        let complaint = |(name, file): (&String, &String)| {
            format!(
                "{file}: the seam {name} is declared in the agent; its trait belongs in the crate of its real implementation"
            )
        };
        misplaced.map(complaint).collect()
    }
}

impl Visit<'_> for SeamTraits {
    fn visit_item_trait(&mut self, item: &ItemTrait) {
        self.traits.insert(item.ident.to_string(), self.shown.clone());
    }

    fn visit_item_struct(&mut self, item: &ItemStruct) {
        if item.ident == "Seams" {
            visit::visit_item_struct(self, item);
        }
    }

    /// Reached only within the struct `Seams`, however deep in `Arc` and `Option`.
    fn visit_type_trait_object(&mut self, object: &TypeTraitObject) {
        for bound in &object.bounds {
            if let TypeParamBound::Trait(bound) = bound
                && let Some(last) = bound.path.segments.last()
            {
                self.held.insert(last.ident.to_string());
            }
        }
    }

    /// Functions are skipped: what they name is no field.
    fn visit_item_fn(&mut self, _: &syn::ItemFn) {}

    fn visit_item_impl(&mut self, _: &syn::ItemImpl) {}

    fn visit_item_type(&mut self, _: &syn::ItemType) {}
}
