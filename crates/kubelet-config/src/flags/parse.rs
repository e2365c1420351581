//! From the words of a command line to what they say.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::program::ProgramFlags;
use super::removed::removed;
use super::{Flag, Kind, Standing, table};
use crate::field::Field;
use crate::layers::Layer;
use crate::nearest::suggestion;
use crate::problem::{Problem, Problems};

/// What somebody wants of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// That it runs.
    Run,
    /// To know how it is used.
    Help,
    /// To know which one it is.
    Version,
}

/// What a command line says.
#[derive(Clone, Debug)]
pub struct Given {
    /// What it is for.
    pub wish: Wish,
    /// What it says about the configuration, a layer for each flag.
    pub layers: Vec<Layer>,
    /// What it says to the program itself.
    pub program: ProgramFlags,
    /// Flags in it that should not be used any more.
    pub deprecated: Vec<Flag>,
}

/// Reads a command line, without the program's name.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(words: &[String]) -> Result<Given, Problems> {
    let mut reading = Reading::default();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if let Err(problem) = reading.word(word, &mut words) {
            reading.problems.push(problem);
        }
    }
    reading.done()
}

#[derive(Default)]
struct Reading {
    /// The flags in the order they first came in, with what was made of their values.
    values: Vec<(&'static Flag, Value)>,
    problems: Vec<Problem>,
}

impl Reading {
    fn word<'w>(
        &mut self,
        word: &'w str,
        rest: &mut impl Iterator<Item = &'w str>,
    ) -> Result<(), Problem> {
        let (name, value) = match word.strip_prefix("--") {
            Some("") => return rest.try_for_each(stray),
            Some(long) => divided(long),
            None => short(word)?,
        };
        let name = name.replace('_', "-");
        let flag = table::find(&name).ok_or_else(|| unknown(&name))?;
        let value = match (value, flag.kind) {
            (Some("raw"), Kind::Switch) if flag.name == "version" => "true",
            (Some(value), _) => value,
            (None, Kind::Switch) => "true",
            (None, _) => rest.next().ok_or_else(|| wrong(flag, "needs a value"))?,
        };
        self.take(flag, value)
    }

    fn take(&mut self, flag: &'static Flag, text: &str) -> Result<(), Problem> {
        let place = self.values.iter().position(|(known, _)| known.name == flag.name);
        let before = place.map(|place| self.values[place].1.clone());
        let value = flag.kind.read(text, before).map_err(|why| wrong(flag, &why))?;
        match place {
            Some(place) => self.values[place].1 = value,
            None => self.values.push((flag, value)),
        }
        Ok(())
    }

    fn done(mut self) -> Result<Given, Problems> {
        let mut layers = Vec::new();
        let mut program = BTreeMap::new();
        for (flag, value) in &self.values {
            if flag.field.is_empty() {
                program.insert(flag.name, value.clone());
            } else {
                let mut document = json!({});
                Field::at(flag.field).set(&mut document, value.clone());
                layers.push(Layer { source: format!("--{}", flag.name), value: document });
            }
        }
        let asked = |name| program.get(name) == Some(&Value::Bool(true));
        let wish = match (asked("help"), asked("version")) {
            (true, _) => Wish::Help,
            (false, true) => Wish::Version,
            (false, false) => Wish::Run,
        };
        let program = match ProgramFlags::of(program) {
            Ok(program) => program,
            Err(problems) => {
                self.problems.extend(problems);
                ProgramFlags::default()
            }
        };
        if !self.problems.is_empty() && wish == Wish::Run {
            return Err(Problems(self.problems));
        }
        let is_deprecated =
            |flag: &&Flag| matches!(flag.standing, Standing::Deprecated | Standing::Useless);
        let flags = self.values.iter().map(|(flag, _)| *flag);
        Ok(Given {
            wish,
            layers,
            program,
            deprecated: flags.filter(is_deprecated).copied().collect(),
        })
    }
}

fn divided(word: &str) -> (&str, Option<&str>) {
    word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)))
}

/// `-h`, and `-v 2`, `-v=2` and `-v2`, are all that there is with one dash.
fn short(word: &str) -> Result<(&str, Option<&str>), Problem> {
    let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
        return Err(stray(word).err().unwrap_or_else(|| unknown(word)));
    };
    match letters.split_at_checked(1) {
        Some(("h", "")) => Ok(("help", None)),
        Some(("v", "")) => Ok(("v", None)),
        Some(("v", number)) if number.starts_with(|c: char| c == '=' || c.is_ascii_digit()) => {
            Ok(("v", Some(number.trim_start_matches('='))))
        }
        _ => Err(said(word, format!("has one dash too few; write -{word}"))),
    }
}

fn stray(word: &str) -> Result<(), Problem> {
    let hint = match word {
        "true" | "false" => {
            "; a switch takes its value after an equals sign, as in --fail-swap-on=false"
        }
        _ => "; every word is a flag or the value of one",
    };
    Err(said(word, format!("is no flag{hint}")))
}

fn unknown(name: &str) -> Problem {
    if let Some(gone) = removed(name) {
        return said(&format!("--{name}"), gone);
    }
    let meant = suggestion(name, table::all().map(|flag| flag.name));
    let meant = meant.replace("mean ", "mean --");
    said(&format!("--{name}"), format!("is no flag of the kubelet{meant}; see --help"))
}

fn wrong(flag: &Flag, why: &str) -> Problem {
    said(&format!("--{}", flag.name), why.to_owned())
}

fn said(word: &str, message: String) -> Problem {
    Problem::of_all(message).in_source(word)
}
