//! Whether a ConfigMap or a Secret may be created.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};

use super::{metadata, names};
use crate::api::error::{Errors, FieldError};
use crate::api::path::Path;

/// All values of one object together.
const MAX_BYTES: usize = 1 << 20;

/// Everything that is wrong with a ConfigMap that has a namespace.
pub fn validate_config_map(map: &ConfigMap) -> Vec<FieldError> {
    let mut errors = Errors::default();
    metadata::check(&Path::root("metadata"), &map.metadata, &mut errors);
    let (text, bytes) = (map.data.iter().flatten(), map.binary_data.iter().flatten());
    check_keys("data", text.clone().map(|(key, _)| key), &mut errors);
    check_keys("binaryData", bytes.clone().map(|(key, _)| key), &mut errors);
    let twice = |key: &&String| map.data.as_ref().is_some_and(|data| data.contains_key(*key));
    for key in bytes.clone().map(|(key, _)| key).filter(twice) {
        let at = Path::root("binaryData").key(key);
        errors.invalid(&at, key.as_str(), "is in data, too: keep one of the two");
    }
    let sizes = text.map(|(_, value)| value.len());
    check_size(sizes.chain(bytes.map(|(_, value)| value.0.len())).sum(), &mut errors);
    errors.into_list()
}

/// Everything that is wrong with a Secret that has a namespace.
pub fn validate_secret(secret: &Secret) -> Vec<FieldError> {
    let mut errors = Errors::default();
    metadata::check(&Path::root("metadata"), &secret.metadata, &mut errors);
    let data = secret.data.iter().flatten();
    check_keys("data", data.clone().map(|(key, _)| key), &mut errors);
    check_size(data.map(|(_, value)| value.0.len()).sum(), &mut errors);
    errors.into_list()
}

fn check_keys<'a>(field: &str, keys: impl Iterator<Item = &'a String>, errors: &mut Errors) {
    for key in keys {
        errors.invalid_for(&Path::root(field).key(key), key, names::config_key(key));
    }
}

fn check_size(bytes: usize, errors: &mut Errors) {
    if bytes > MAX_BYTES {
        errors.too_long(&Path::root("data"), MAX_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::ByteString;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    fn named(name: &str) -> ObjectMeta {
        let namespace = Some("default".to_owned());
        ObjectMeta { name: Some(name.to_owned()), namespace, ..ObjectMeta::default() }
    }

    fn error_texts(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_keys_and_sizes_are_those_of_the_api() {
        let good = ConfigMap {
            metadata: named("a.b"),
            data: Some(BTreeMap::from([("a".to_owned(), "x".repeat(1 << 20))])),
            ..ConfigMap::default()
        };
        assert_eq!(error_texts(&validate_config_map(&good)), [""; 0]);
        let bytes = BTreeMap::from([("a".to_owned(), ByteString(vec![0]))]);
        let both = ConfigMap { binary_data: Some(bytes), ..good };
        let want = [
            "binaryData[a]: Invalid value: \"a\": is in data, too: keep one of the two",
            "data: Too long: may not be longer than 1048576 bytes",
        ];
        assert_eq!(error_texts(&validate_config_map(&both)), want);
        let data = BTreeMap::from([("a b".to_owned(), ByteString(b"hunter2".to_vec()))]);
        let secret = Secret { metadata: named("A"), data: Some(data), ..Secret::default() };
        let error_texts = error_texts(&validate_secret(&secret));
        assert_eq!(error_texts.len(), 2, "{error_texts:?}");
        assert!(
            error_texts[0].starts_with("metadata.name: ")
                && error_texts[1].starts_with("data[a b]: ")
        );
    }
}
