//! The bytes of files that are made of the same key of the same object: one copy for all files of a pod.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::references::ObjectKind;

/// Kind and name of an object, and one of its keys; the namespace is the pod's.
type ObjectKey = (ObjectKind, String, String);

/// Values by object and key.
#[derive(Default)]
pub(super) struct SharedValues(RefCell<BTreeMap<ObjectKey, Arc<[u8]>>>);

impl SharedValues {
    /// The one copy of a value.
    pub(super) fn get(&self, kind: ObjectKind, name: &str, key: &str, bytes: &[u8]) -> Arc<[u8]> {
        let mut values = self.0.borrow_mut();
        let value = values.entry((kind, name.to_owned(), key.to_owned()));
        Arc::clone(value.or_insert_with(|| bytes.into()))
    }
}
