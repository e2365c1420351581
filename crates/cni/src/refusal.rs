//! The error that a plugin writes to stdout.

use std::fmt;

use serde_json::Value;

/// No message of a plugin is shown with more characters.
const MAX_SHOWN: usize = 1024;

/// The error that a plugin writes to stdout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginRefusal {
    /// Which error; below 100 the specification's, else the plugin's own.
    pub code: u64,
    /// What is wrong.
    pub message: String,
    /// The same at length.
    pub details: String,
}

impl PluginRefusal {
    /// Reads an error; none if it is none.
    pub fn parse(output: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(output).ok()?;
        let fields = value.as_object()?;
        let text = |name| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let is_error = fields.contains_key("code") || fields.contains_key("msg");
        is_error.then(|| Self {
            code: fields.get("code").and_then(Value::as_u64).unwrap_or_default(),
            message: shown(text("msg")),
            details: shown(text("details")),
        })
    }

    /// Whether it stands for nothing: a program that has succeeded may say so.
    pub(crate) fn is_none(&self) -> bool {
        self.code == 0 && self.message.is_empty()
    }

    /// What the specification says of the code.
    fn meaning(&self) -> Option<&'static str> {
        Some(match self.code {
            1 => "incompatible CNI version",
            2 => "unsupported field in the network configuration",
            3 => "container unknown or does not exist",
            4 => "invalid environment variables",
            5 => "I/O failure",
            6 => "content not decoded",
            7 => "invalid network configuration",
            8 => "invalid network namespace",
            11 => "try again later",
            50 => "the plugin is not available",
            51 => "the plugin is not available, and pods of the network may be cut off",
            _ => return None,
        })
    }
}

impl fmt::Display for PluginRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = [&self.message, &self.details].map(|text| text.trim());
        let said: Vec<&str> = said.into_iter().filter(|text| !text.is_empty()).collect();
        match said.is_empty() {
            true => f.write_str("it gives no reason")?,
            false => f.write_str(&said.join("; "))?,
        }
        match self.meaning() {
            Some(meaning) => write!(f, " (code {}: {meaning})", self.code),
            None => write!(f, " (code {})", self.code),
        }
    }
}

/// What a plugin has written, for people: in one line, without control characters, and not too long.
pub(crate) fn shown(text: &str) -> String {
    let one_line = text.trim().replace(|c: char| c == '\n' || c == '\t', " ");
    let mut shown: String =
        one_line.chars().filter(|c| !c.is_control()).take(MAX_SHOWN + 1).collect();
    if let Some((cut, _)) = shown.char_indices().nth(MAX_SHOWN) {
        shown.truncate(cut);
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_read_and_shown_with_what_its_code_means() {
        let rows: [(&str, &str); 6] = [
            (
                r#"{"cniVersion":"1.0.0","code":11,"msg":"busy","details":"by another"}"#,
                "busy; by another (code 11: try again later)",
            ),
            (r#"{"code":100,"msg":"own"}"#, "own (code 100)"),
            (r#"{"code":7}"#, "it gives no reason (code 7: invalid network configuration)"),
            (r#"{"msg":"a\nb\u001b[31m"}"#, "a b[31m (code 0)"),
            (
                r#"{"code":50,"msg":7,"details":[]}"#,
                "it gives no reason (code 50: the plugin is not available)",
            ),
            (r#"{"code":-1,"msg":"m"}"#, "m (code 0)"),
        ];
        for (output, wanted) in rows {
            assert_eq!(PluginRefusal::parse(output.as_bytes()).unwrap().to_string(), wanted);
        }
        for none in ["", "{}", "[]", "null", "rubbish", r#"{"cniVersion":"1.0.0"}"#] {
            assert_eq!(PluginRefusal::parse(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn a_long_message_is_cut_and_no_success_is_an_error() {
        let long = format!(r#"{{"code":1,"msg":"{}"}}"#, "ä".repeat(5000));
        let refusal = PluginRefusal::parse(long.as_bytes()).unwrap();
        assert_eq!(refusal.message.chars().count(), MAX_SHOWN + 1);
        assert!(PluginRefusal::parse(br#"{"code":0,"msg":""}"#).unwrap().is_none());
        assert!(!refusal.is_none());
    }
}
