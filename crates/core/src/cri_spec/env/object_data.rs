//! The data of a ConfigMap or Secret, borrowed: one that many fields refer to is never copied as a whole.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};

/// The values of an object by their keys.
pub(in crate::cri_spec) type Entries<'a> = BTreeMap<&'a str, &'a [u8]>;

/// An object that holds values by key.
#[derive(Clone, Copy)]
pub(in crate::cri_spec) enum ObjectData<'a> {
    /// A ConfigMap.
    ConfigMap(&'a ConfigMap),
    Secret(&'a Secret),
}

impl<'a> ObjectData<'a> {
    /// The values that variables may have: those of a ConfigMap are text.
    pub(in crate::cri_spec) fn for_variables(self) -> Entries<'a> {
        match self {
            Self::ConfigMap(map) => {
                let values = map.data.iter().flatten();
                values.map(|(key, value)| (key.as_str(), value.as_bytes())).collect()
            }
            Self::Secret(_) => self.for_files(),
        }
    }

    /// The value that a variable may have.
    pub(in crate::cri_spec) fn for_variable(self, key: &str) -> Option<&'a [u8]> {
        match self {
            Self::ConfigMap(map) => Some(map.data.as_ref()?.get(key)?.as_bytes()),
            Self::Secret(_) => self.for_file(key),
        }
    }

    /// The values that files may have.
    pub(in crate::cri_spec) fn for_files(self) -> Entries<'a> {
        let text = self.text().map(|(key, value)| (key.as_str(), value.as_bytes()));
        let binary = self.binary().map(|(key, value)| (key.as_str(), value.0.as_slice()));
        match self {
            Self::ConfigMap(_) => text.chain(binary).collect(),
            // The API server turns the former into the latter; a file that was never sent to it may still have it.
            Self::Secret(_) => binary.chain(text).collect(),
        }
    }

    /// The value that a file may have.
    pub(in crate::cri_spec) fn for_file(self, key: &str) -> Option<&'a [u8]> {
        let (text, binary) = match self {
            Self::ConfigMap(map) => (&map.data, &map.binary_data),
            Self::Secret(secret) => (&secret.string_data, &secret.data),
        };
        let text = text.as_ref().and_then(|values| values.get(key)).map(String::as_bytes);
        let binary = binary.as_ref().and_then(|values| values.get(key));
        let binary = binary.map(|value| value.0.as_slice());
        match self {
            Self::ConfigMap(_) => binary.or(text),
            Self::Secret(_) => text.or(binary),
        }
    }

    fn text(self) -> impl Iterator<Item = (&'a String, &'a String)> {
        let values = match self {
            Self::ConfigMap(map) => &map.data,
            Self::Secret(secret) => &secret.string_data,
        };
        values.iter().flatten()
    }

    fn binary(self) -> impl Iterator<Item = (&'a String, &'a k8s_openapi::ByteString)> {
        let values = match self {
            Self::ConfigMap(map) => &map.binary_data,
            Self::Secret(secret) => &secret.data,
        };
        values.iter().flatten()
    }
}
