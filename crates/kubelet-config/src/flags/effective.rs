//! The value that every flag has in the end, for `/flagz`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{ProgramFlags, table};
use crate::field_path::FieldPath;

/// The effective value of every flag, by its name: what the field has that it sets, wherever that was set, or the program's own.
/// `configuration` is shown as it is; what is secret in it has to be masked before.
pub fn effective_values(configuration: &Value, program: &ProgramFlags) -> BTreeMap<String, String> {
    let own = serde_json::to_value(program).unwrap_or_default();
    let value = |name: &str, field: &str| match field {
        "" => own.get(name).map(spelled),
        field => Some(FieldPath::at(field).get(configuration).map(spelled).unwrap_or_default()),
    };
    let flags = table::all();
    flags.filter_map(|flag| Some((flag.name.to_owned(), value(flag.name, flag.field)?))).collect()
}

/// As it stands on a command line, as far as that is one word.
fn spelled(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => items.iter().map(spelled).collect::<Vec<_>>().join(","),
        Value::Object(fields) => {
            let pair = |(name, value): (&String, &Value)| format!("{name}={}", spelled(value));
            fields.iter().map(pair).collect::<Vec<_>>().join(",")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::parse;

    #[test]
    fn a_flag_has_the_value_of_the_field_that_it_sets_or_of_the_program() {
        let words = ["--max-pods=7", "--root-dir=/r", "--feature-gates=EnvFiles=false"];
        let words = words.map(str::to_owned);
        let given = parse(&words).unwrap();
        let loaded = crate::load(None, &[], &given.layers).unwrap();
        let configuration = serde_json::to_value(&loaded.configuration).unwrap();
        let values = effective_values(&configuration, &given.program);
        let rows = [
            ("max-pods", "7"),
            ("root-dir", "/r"),
            ("feature-gates", "EnvFiles=false"),
            ("port", "10250"),
            ("config", ""),
        ];
        for (name, expected) in rows {
            assert_eq!(values.get(name).map(String::as_str), Some(expected), "{name}");
        }
    }
}
