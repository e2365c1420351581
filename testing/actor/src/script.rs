//! Steps, and reading them from arguments.

use std::path::PathBuf;
use std::time::Duration;

use crate::ScriptError;
use crate::values::{bytes, duration};

#[cfg(test)]
mod tests;

/// One step of a script; the crate's own page says what each does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table on the crate's page tells of all steps in one place")]
pub enum Step {
    Out(String),
    Err(String),
    Raw(String),
    Fill(u64),
    Cat(PathBuf),
    Env(String),
    Id,
    Pwd,
    Write { path: PathBuf, text: String },
    Touch(PathBuf),
    WaitFile(PathBuf),
    Sleep(Duration),
    Forever,
    Alloc(u64),
    Child(Duration),
    Listen(u16),
    OnTerm(Vec<Step>),
    Exit(u8),
}

/// Reads a whole script.
///
/// # Errors
/// At the first argument that is not a step.
pub fn parse<A: AsRef<str>>(
    arguments: impl IntoIterator<Item = A>,
) -> Result<Vec<Step>, ScriptError> {
    arguments.into_iter().map(|argument| parse_step(argument.as_ref())).collect()
}

fn parse_step(argument: &str) -> Result<Step, ScriptError> {
    let needs = |needs| ScriptError::Value { argument: argument.to_owned(), needs };
    let a_duration = || needs("a duration such as 250ms, 3s or 2m");
    let a_size = || needs("a number of bytes such as 4096, 64Ki or 8Mi");
    let (name, value) = match argument.split_once(':') {
        Some((name, value)) => (name, Some(value)),
        None => (argument, None),
    };
    Ok(match (name, value) {
        ("out", Some(text)) => Step::Out(text.to_owned()),
        ("err", Some(text)) => Step::Err(text.to_owned()),
        ("raw", Some(text)) => Step::Raw(text.to_owned()),
        ("fill", Some(size)) => Step::Fill(bytes(size).ok_or_else(a_size)?),
        ("cat", Some(path)) => Step::Cat(path.into()),
        ("env", Some(name)) => Step::Env(name.to_owned()),
        ("id", None) => Step::Id,
        ("pwd", None) => Step::Pwd,
        ("write", Some(value)) => {
            let (path, text) = value.split_once('=').ok_or_else(|| needs("PATH=TEXT"))?;
            Step::Write { path: path.into(), text: text.to_owned() }
        }
        ("touch", Some(path)) => Step::Touch(path.into()),
        ("wait-file", Some(path)) => Step::WaitFile(path.into()),
        ("sleep", Some(time)) => Step::Sleep(duration(time).ok_or_else(a_duration)?),
        ("forever", None) => Step::Forever,
        ("alloc", Some(size)) => Step::Alloc(bytes(size).ok_or_else(a_size)?),
        ("child", Some(time)) => Step::Child(duration(time).ok_or_else(a_duration)?),
        ("listen", Some(port)) => {
            Step::Listen(port.parse().map_err(|_| needs("a port from 0 to 65535"))?)
        }
        ("on-term", Some("ignore")) => Step::OnTerm(Vec::new()),
        ("on-term", Some(steps)) => Step::OnTerm(parse_reaction(steps)?),
        ("exit", Some(code)) => {
            Step::Exit(code.parse().map_err(|_| needs("an exit code from 0 to 255"))?)
        }
        _ => {
            return Err(ScriptError::Unknown { argument: argument.to_owned() });
        }
    })
}

/// What SIGTERM does is a script of its own, except that it does not change what SIGTERM does.
fn parse_reaction(steps: &str) -> Result<Vec<Step>, ScriptError> {
    let unknown = |step: &str| ScriptError::Unknown { argument: step.to_owned() };
    match steps.split(',').find(|step| step.starts_with("on-term")) {
        Some(nested) => Err(unknown(nested)),
        None => parse(steps.split(',')),
    }
}
