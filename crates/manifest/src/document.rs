//! A document together with what its reader would otherwise not notice: keys that it says twice.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// What a document says, and which of its keys it says more than once.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedDocument {
    /// What it says; of a key that is repeated, the last word.
    pub value: Value,
    /// The paths of the keys that are repeated, such as `spec.containers[0].image`.
    pub repeated: Vec<String>,
}

impl ParsedDocument {
    fn plain(value: impl Into<Value>) -> Self {
        Self { value: value.into(), repeated: Vec::new() }
    }
}

impl<'de> Deserialize<'de> for ParsedDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = ParsedDocument;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything that JSON can say")
    }

    fn visit_bool<E>(self, value: bool) -> Result<ParsedDocument, E> {
        Ok(ParsedDocument::plain(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<ParsedDocument, E> {
        Ok(ParsedDocument::plain(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<ParsedDocument, E> {
        Ok(ParsedDocument::plain(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<ParsedDocument, E> {
        Ok(ParsedDocument::plain(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<ParsedDocument, E> {
        Ok(ParsedDocument::plain(value))
    }

    fn visit_unit<E>(self) -> Result<ParsedDocument, E> {
        Ok(ParsedDocument::plain(Value::Null))
    }

    fn visit_none<E>(self) -> Result<ParsedDocument, E> {
        Ok(ParsedDocument::plain(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<ParsedDocument, D::Error> {
        Deserialize::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ParsedDocument, A::Error> {
        let (mut values, mut repeated) = (Vec::new(), Vec::new());
        while let Some(item) = items.next_element::<ParsedDocument>()? {
            let place = format!("[{}]", values.len());
            repeated.extend(item.repeated.into_iter().map(|path| joined(&place, &path)));
            values.push(item.value);
        }
        Ok(ParsedDocument { value: Value::Array(values), repeated })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<ParsedDocument, A::Error> {
        let (mut fields, mut repeated) = (Map::new(), Vec::new());
        while let Some((key, field)) = entries.next_entry::<String, ParsedDocument>()? {
            repeated.extend(field.repeated.into_iter().map(|path| joined(&key, &path)));
            if fields.insert(key.clone(), field.value).is_some() {
                repeated.push(key);
            }
        }
        Ok(ParsedDocument { value: Value::Object(fields), repeated })
    }
}

fn joined(place: &str, path: &str) -> String {
    if path.starts_with('[') { format!("{place}{path}") } else { format!("{place}.{path}") }
}
