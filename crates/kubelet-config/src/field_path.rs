//! The path of a field in a configuration.

use std::fmt;

use serde_json::{Map, Value};
use serde_path_to_error::{Path, Segment};

/// One element of a path: a key or an index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PathElement {
    Key(String),
    Index(usize),
}

/// The path of a field: `evictionHard["memory.available"]`, `reservedMemory[0].limits.memory`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(Vec<PathElement>);

impl FieldPath {
    /// The path whose keys, without dots of their own, are joined by dots in `path`.
    pub fn at(path: &str) -> Self {
        Self(path.split('.').map(|key| PathElement::Key(key.to_owned())).collect())
    }

    /// The path of a key of this field.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        self.0.push(PathElement::Key(key.to_owned()));
        self
    }

    /// The path of an item of this field.
    #[must_use]
    pub fn item(mut self, index: usize) -> Self {
        self.0.push(PathElement::Index(index));
        self
    }

    /// The path at which a deserializer failed.
    pub(crate) fn from_serde_path(path: &Path) -> Self {
        let step = |segment: &Segment| match segment {
            Segment::Seq { index } => Some(PathElement::Index(*index)),
            Segment::Map { key } => Some(PathElement::Key(key.clone())),
            Segment::Enum { .. } | Segment::Unknown => None,
        };
        Self(path.iter().filter_map(step).collect())
    }

    /// The top-level field that this is or belongs to.
    pub fn top(&self) -> &str {
        match self.0.first() {
            Some(PathElement::Key(key)) => key,
            Some(PathElement::Index(_)) | None => "",
        }
    }

    /// The value at this path.
    pub fn get<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(value, |value, step| match step {
            PathElement::Key(key) => value.get(key),
            PathElement::Index(index) => value.get(index),
        })
    }

    /// Removes the value at this path; of a list, all of it, so that the indexes of other paths stay valid.
    pub(crate) fn remove(&self, value: &mut Value) -> Option<Value> {
        let list = self.0.iter().position(|step| matches!(step, PathElement::Index(_)));
        let (last, way) = self.0[..list.unwrap_or(self.0.len())].split_last()?;
        let parent = way.iter().try_fold(value, |value, step| match step {
            PathElement::Key(key) => value.get_mut(key),
            PathElement::Index(index) => value.get_mut(index),
        })?;
        match (last, parent) {
            (PathElement::Key(key), Value::Object(fields)) => fields.remove(key),
            _ => None,
        }
    }

    /// Sets the value at this path, and replaces what is not an object on the way; items of lists are not created.
    pub(crate) fn set(&self, value: &mut Value, new: Value) {
        let mut place = value;
        for step in &self.0 {
            let PathElement::Key(key) = step else { return };
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            let Value::Object(fields) = place else { return };
            place = fields.entry(key.clone()).or_insert(Value::Null);
        }
        *place = new;
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain =
            |key: &str| !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_');
        for (number, step) in self.0.iter().enumerate() {
            match step {
                PathElement::Index(index) => write!(f, "[{index}]")?,
                PathElement::Key(key) if number == 0 => f.write_str(key)?,
                PathElement::Key(key) if is_plain(key) => write!(f, ".{key}")?,
                PathElement::Key(key) => write!(f, "[{key:?}]")?,
            }
        }
        Ok(())
    }
}
