//! Parses the arguments of a command line.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::program::ProgramFlags;
use super::removed::removed;
use super::{Flag, FlagKind, FlagStatus, table};
use crate::field_path::FieldPath;
use crate::layers::ConfigLayer;
use crate::problem::{Problem, Problems};
use crate::suggestion::suggestion;

/// What the program is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedAction {
    /// Run the kubelet.
    Run,
    /// Print the help.
    Help,
    /// Print the version.
    Version,
}

/// A parsed command line.
#[derive(Clone, Debug)]
pub struct ParsedFlags {
    /// What the program is to do.
    pub action: RequestedAction,
    /// Fields of the configuration, a layer for each flag.
    pub layers: Vec<ConfigLayer>,
    /// Flags of the program itself.
    pub program: ProgramFlags,
    /// Deprecated flags that were given.
    pub deprecated: Vec<Flag>,
}

/// Parses a command line, without the program's name.
///
/// # Errors
/// Every problem of the command line.
pub fn parse(words: &[String]) -> Result<ParsedFlags, Problems> {
    let mut reading = FlagParser::default();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if let Err(problem) = reading.parse_word(word, &mut words) {
            reading.problems.push(problem);
        }
    }
    reading.finish()
}

#[derive(Default)]
struct FlagParser {
    /// The flags in the order in which they were first given, with their parsed values.
    values: Vec<(&'static Flag, Value)>,
    problems: Vec<Problem>,
}

impl FlagParser {
    fn parse_word<'w>(
        &mut self,
        word: &'w str,
        rest: &mut impl Iterator<Item = &'w str>,
    ) -> Result<(), Problem> {
        let (name, value) = match word.strip_prefix("--") {
            Some("") => return rest.try_for_each(positional_argument),
            Some(long) => split_value(long),
            None => short(word)?,
        };
        let name = name.replace('_', "-");
        let flag = table::find(&name).ok_or_else(|| unknown(&name))?;
        let value = match (value, flag.kind) {
            (Some("raw"), FlagKind::Switch) if flag.name == "version" => "true",
            (Some(value), _) => value,
            (None, FlagKind::Switch) => "true",
            (None, _) => rest.next().ok_or_else(|| invalid_value(flag, "needs a value"))?,
        };
        self.set(flag, value)
    }

    fn set(&mut self, flag: &'static Flag, text: &str) -> Result<(), Problem> {
        let index = self.values.iter().position(|(known, _)| known.name == flag.name);
        let before = index.map(|index| self.values[index].1.clone());
        let value = flag.kind.parse(text, before).map_err(|why| invalid_value(flag, &why))?;
        match index {
            Some(index) => self.values[index].1 = value,
            None => self.values.push((flag, value)),
        }
        Ok(())
    }

    fn finish(mut self) -> Result<ParsedFlags, Problems> {
        let mut layers = Vec::new();
        let mut program = BTreeMap::new();
        for (flag, value) in &self.values {
            if flag.field.is_empty() {
                program.insert(flag.name, value.clone());
            } else {
                let mut document = json!({});
                FieldPath::at(flag.field).set(&mut document, value.clone());
                layers.push(ConfigLayer { source: format!("--{}", flag.name), value: document });
            }
        }
        let asked = |name| program.get(name) == Some(&Value::Bool(true));
        let action = match (asked("help"), asked("version")) {
            (true, _) => RequestedAction::Help,
            (false, true) => RequestedAction::Version,
            (false, false) => RequestedAction::Run,
        };
        let program = match ProgramFlags::of(program) {
            Ok(program) => program,
            Err(problems) => {
                self.problems.extend(problems);
                ProgramFlags::default()
            }
        };
        if !self.problems.is_empty() && action == RequestedAction::Run {
            return Err(Problems(self.problems));
        }
        let is_deprecated =
            |flag: &&Flag| matches!(flag.status, FlagStatus::Deprecated | FlagStatus::NoOp);
        let flags = self.values.iter().map(|(flag, _)| *flag);
        Ok(ParsedFlags {
            action,
            layers,
            program,
            deprecated: flags.filter(is_deprecated).copied().collect(),
        })
    }
}

fn split_value(word: &str) -> (&str, Option<&str>) {
    word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)))
}

/// The only short flags: `-h`, and `-v 2`, `-v=2` and `-v2`.
fn short(word: &str) -> Result<(&str, Option<&str>), Problem> {
    let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
        return Err(positional_argument(word).err().unwrap_or_else(|| unknown(word)));
    };
    match letters.split_at_checked(1) {
        Some(("h", "")) => Ok(("help", None)),
        Some(("v", "")) => Ok(("v", None)),
        Some(("v", number)) if number.starts_with(|c: char| c == '=' || c.is_ascii_digit()) => {
            Ok(("v", Some(number.trim_start_matches('='))))
        }
        _ => Err(flag_problem(word, format!("has one dash too few; write -{word}"))),
    }
}

fn positional_argument(word: &str) -> Result<(), Problem> {
    let hint = match word {
        "true" | "false" => {
            "; a switch takes its value after an equals sign, as in --fail-swap-on=false"
        }
        _ => "; every word is a flag or the value of one",
    };
    Err(flag_problem(word, format!("is no flag{hint}")))
}

fn unknown(name: &str) -> Problem {
    if let Some(gone) = removed(name) {
        return flag_problem(&format!("--{name}"), gone);
    }
    let meant = suggestion(name, table::all().map(|flag| flag.name));
    let meant = meant.replace("mean ", "mean --");
    flag_problem(&format!("--{name}"), format!("is no flag of the kubelet{meant}; see --help"))
}

fn invalid_value(flag: &Flag, why: &str) -> Problem {
    flag_problem(&format!("--{}", flag.name), why.to_owned())
}

fn flag_problem(word: &str, message: String) -> Problem {
    Problem::of_all(message).in_source(word)
}
