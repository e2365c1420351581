//! Names of things, each a type of its own so that a sandbox id never lands where a container id belongs.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The id as the runtime or the API server spells it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(value: String) -> Self {
                Self(value)
            }
        }

        impl From<&str> for $name {
            fn from(value: &str) -> Self {
                Self(value.to_owned())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// A pod's UID: given by the API server, by the manifest, or made from a static pod's content.
    PodUid
}
id! {
    /// The runtime's id of a sandbox.
    SandboxId
}
id! {
    /// The runtime's id of a container.
    ContainerId
}

/// `<name>_<namespace>`: what two pods may not share at one time on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FullName {
    /// `metadata.name` of the pod.
    pub name: String,
    /// `metadata.namespace` of the pod.
    pub namespace: String,
}

impl fmt::Display for FullName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.name, self.namespace)
    }
}
