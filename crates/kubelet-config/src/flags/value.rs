//! The kinds of flags' values, and how each is parsed to the value of a field.

use serde_json::{Map, Value};

use crate::go_duration::GoDuration;

/// The kind of a flag's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagKind {
    /// A boolean; without a value it is true.
    Switch,
    /// A whole number.
    Number,
    /// A duration.
    Duration,
    /// Any text.
    Text,
    /// Texts with commas between them.
    List,
    /// `key=value`, with commas between them.
    Pairs,
    /// One `key=value`.
    Pair,
    /// `signal<amount`, with commas between them.
    Thresholds,
    /// `Gate=true`, with commas between them.
    Gates,
    /// `Name:value`, with commas between them.
    Headers,
    /// `key=value:Effect`, with commas between them.
    Taints,
    /// `node:kind=amount,...`, with semicolons between them.
    Memory,
    /// `pattern=number`, with commas between them.
    Modules,
}

impl FlagKind {
    /// The placeholder of its value in the help.
    pub(super) fn placeholder(self) -> &'static str {
        match self {
            Self::Switch => "",
            Self::Number => "N",
            Self::Duration => "DURATION",
            Self::Text => "TEXT",
            Self::List => "A,B",
            Self::Pairs | Self::Pair => "KEY=VALUE",
            Self::Thresholds => "SIGNAL<AMOUNT",
            Self::Gates => "GATE=true",
            Self::Headers => "NAME:VALUE",
            Self::Taints => "KEY=VALUE:EFFECT",
            Self::Memory => "NODE:KIND=AMOUNT",
            Self::Modules => "PATTERN=N",
        }
    }

    /// Parses a value, given the value of earlier occurrences of the flag.
    pub(super) fn parse(self, text: &str, before: Option<Value>) -> Result<Value, String> {
        match self {
            Self::Switch => parse_bool(text).map(Value::Bool),
            Self::Number => number(text),
            Self::Duration => GoDuration::parse(text)
                .map(|_| Value::from(if text == "0" { "0s" } else { text }))
                .map_err(|wrong| wrong.to_string()),
            Self::Text => Ok(Value::from(text)),
            Self::List => Ok(append_list(before, parts(text).map(Value::from))),
            Self::Pairs => extend_map(before, parts(text), '=', |value| Ok(Value::from(value))),
            Self::Pair => {
                extend_map(before, [text].into_iter(), '=', |value| Ok(Value::from(value)))
            }
            Self::Thresholds => {
                extend_map(before, parts(text), '<', |value| Ok(Value::from(value)))
            }
            Self::Gates => {
                extend_map(before, parts(text), '=', |value| parse_bool(value).map(Value::Bool))
            }
            Self::Headers => headers(text, before),
            Self::Taints => taints(text),
            Self::Memory => memory(text, before),
            Self::Modules => modules(text),
        }
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|part| !part.is_empty())
}

/// The spellings of booleans that Go accepts.
fn parse_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("{text:?} is neither true nor false")),
    }
}

fn number(text: &str) -> Result<Value, String> {
    let wrong = || format!("{text:?} is no whole number");
    text.parse::<i64>().map(Value::from).map_err(|_| wrong())
}

fn append_list(before: Option<Value>, more: impl Iterator<Item = Value>) -> Value {
    let mut items = match before {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    items.extend(more);
    Value::Array(items)
}

fn extend_map<'t>(
    before: Option<Value>,
    pairs: impl Iterator<Item = &'t str>,
    between: char,
    read: impl Fn(&str) -> Result<Value, String>,
) -> Result<Value, String> {
    let mut fields = match before {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    for pair in pairs {
        let (key, value) = split(pair, between)?;
        fields.insert(key.to_owned(), read(value)?);
    }
    Ok(Value::Object(fields))
}

fn split(pair: &str, between: char) -> Result<(&str, &str), String> {
    let (key, value) = pair
        .split_once(between)
        .ok_or_else(|| format!("{pair:?} has no {between:?}; write it as key{between}value"))?;
    Ok((key.trim(), value.trim()))
}

/// A name may occur several times, and all its values are kept.
fn headers(text: &str, before: Option<Value>) -> Result<Value, String> {
    let mut all = match before {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    for pair in parts(text) {
        let (name, value) = split(pair, ':')?;
        let values = all.remove(name);
        all.insert(name.to_owned(), append_list(values, [Value::from(value)].into_iter()));
    }
    Ok(Value::Object(all))
}

fn taints(text: &str) -> Result<Value, String> {
    let taint = |text: &str| {
        let wrong = || format!("{text:?} is no taint; write it as key=value:Effect or key:Effect");
        let (name, effect) = text.rsplit_once(':').ok_or_else(wrong)?;
        let (key, value) = name.split_once('=').unwrap_or((name, ""));
        Ok(serde_json::json!({"key": key, "value": value, "effect": effect}))
    };
    parts(text).map(taint).collect()
}

fn memory(text: &str, before: Option<Value>) -> Result<Value, String> {
    let node = |text: &str| {
        let wrong =
            || format!("{text:?} is no reservation; write it as node:kind=amount,kind=amount");
        let (node, limits) = text.split_once(':').ok_or_else(wrong)?;
        let node: i32 = node.trim().parse().map_err(|_| wrong())?;
        let limits = FlagKind::Pairs.parse(limits, None)?;
        Ok(serde_json::json!({"numaNode": node, "limits": limits}))
    };
    let nodes = text.split(';').filter(|part| !part.is_empty()).map(node);
    Ok(append_list(before, nodes.collect::<Result<Vec<Value>, String>>()?.into_iter()))
}

fn modules(text: &str) -> Result<Value, String> {
    let module = |text: &str| {
        let (pattern, verbosity) = split(text, '=')?;
        Ok(serde_json::json!({"filePattern": pattern, "verbosity": number(verbosity)?}))
    };
    parts(text).map(module).collect()
}
