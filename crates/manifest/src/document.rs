//! A document together with what its reader would otherwise not notice: keys that it says twice.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Paths that are told. A document of others could otherwise have millions, each as long as all keys above it.
const MAX_REPEATED: usize = 32;
/// The characters of a path, and of one key in it.
const MAX_PATH: usize = 256;
const MAX_PLACE: usize = 64;

/// What a document says, and which of its keys it says more than once.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedDocument {
    /// What it says; of a key that is repeated, the last word.
    pub value: Value,
    /// The paths of the first keys that are repeated, such as `spec.containers[0].image`.
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
            add(&mut repeated, &format!("[{}]", values.len()), item.repeated);
            values.push(item.value);
        }
        Ok(ParsedDocument { value: Value::Array(values), repeated })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<ParsedDocument, A::Error> {
        let (mut fields, mut repeated) = (Map::new(), Vec::new());
        while let Some((key, field)) = entries.next_entry::<String, ParsedDocument>()? {
            add(&mut repeated, &key, field.repeated);
            if fields.contains_key(&key) && repeated.len() < MAX_REPEATED {
                repeated.push(cut(&key, MAX_PATH));
            }
            fields.insert(key, field.value);
        }
        Ok(ParsedDocument { value: Value::Object(fields), repeated })
    }
}

/// Adds the paths of what lies below a place, as long as there is room.
fn add(repeated: &mut Vec<String>, place: &str, below: Vec<String>) {
    let room = MAX_REPEATED.saturating_sub(repeated.len());
    repeated.extend(below.into_iter().take(room).map(|path| joined(&cut(place, MAX_PLACE), &path)));
}

fn joined(place: &str, path: &str) -> String {
    let dot = if path.starts_with('[') { "" } else { "." };
    cut(&format!("{place}{dot}{path}"), MAX_PATH)
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
