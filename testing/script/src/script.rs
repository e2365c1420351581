//! The steps of a script, and their parser.

use std::path::PathBuf;
use std::time::Duration;

use crate::ScriptError;
use crate::values::{bytes, duration};

#[cfg(test)]
mod tests;

/// One step of a script; the documentation of the crate says what each does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table on the crate's page tells of all steps in one place")]
pub enum ScriptStep {
    Out(String),
    Err(String),
    Raw(String),
    Fill(u64),
    Numbers { per_second: u64, time: Duration },
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
    Grpc(u16),
    OnTerm(Vec<ScriptStep>),
    Exit(u8),
}

/// Parses a whole script.
///
/// # Errors
/// At the first argument that is not a step.
pub fn parse<A: AsRef<str>>(
    arguments: impl IntoIterator<Item = A>,
) -> Result<Vec<ScriptStep>, ScriptError> {
    arguments.into_iter().map(|argument| parse_step(argument.as_ref())).collect()
}

fn parse_step(argument: &str) -> Result<ScriptStep, ScriptError> {
    let needs = |needs| ScriptError::Value { argument: argument.to_owned(), needs };
    let a_duration = || needs("a duration such as 250ms, 3s or 2m");
    let a_size = || needs("a number of bytes such as 4096, 64Ki or 8Mi");
    let (name, value) = match argument.split_once(':') {
        Some((name, value)) => (name, Some(value)),
        None => (argument, None),
    };
    Ok(match (name, value) {
        ("out", Some(text)) => ScriptStep::Out(text.to_owned()),
        ("err", Some(text)) => ScriptStep::Err(text.to_owned()),
        ("raw", Some(text)) => ScriptStep::Raw(text.to_owned()),
        ("fill", Some(size)) => ScriptStep::Fill(bytes(size).ok_or_else(a_size)?),
        ("numbers", Some(value)) => {
            let (size, time) = value.split_once('/').ok_or_else(|| needs("BYTES/DURATION"))?;
            let per_second = bytes(size).ok_or_else(a_size)?;
            ScriptStep::Numbers { per_second, time: duration(time).ok_or_else(a_duration)? }
        }
        ("cat", Some(path)) => ScriptStep::Cat(path.into()),
        ("env", Some(name)) => ScriptStep::Env(name.to_owned()),
        ("id", None) => ScriptStep::Id,
        ("pwd", None) => ScriptStep::Pwd,
        ("write", Some(value)) => {
            let (path, text) = value.split_once('=').ok_or_else(|| needs("PATH=TEXT"))?;
            ScriptStep::Write { path: path.into(), text: text.to_owned() }
        }
        ("touch", Some(path)) => ScriptStep::Touch(path.into()),
        ("wait-file", Some(path)) => ScriptStep::WaitFile(path.into()),
        ("sleep", Some(time)) => ScriptStep::Sleep(duration(time).ok_or_else(a_duration)?),
        ("forever", None) => ScriptStep::Forever,
        ("alloc", Some(size)) => ScriptStep::Alloc(bytes(size).ok_or_else(a_size)?),
        ("child", Some(time)) => ScriptStep::Child(duration(time).ok_or_else(a_duration)?),
        ("listen", Some(port)) => {
            ScriptStep::Listen(port.parse().map_err(|_| needs("a port from 0 to 65535"))?)
        }
        ("grpc", Some(port)) => {
            ScriptStep::Grpc(port.parse().map_err(|_| needs("a port from 0 to 65535"))?)
        }
        ("on-term", Some("ignore")) => ScriptStep::OnTerm(Vec::new()),
        ("on-term", Some(steps)) => ScriptStep::OnTerm(parse_reaction(steps)?),
        ("exit", Some(code)) => {
            ScriptStep::Exit(code.parse().map_err(|_| needs("an exit code from 0 to 255"))?)
        }
        _ => {
            return Err(ScriptError::Unknown { argument: argument.to_owned() });
        }
    })
}

/// The handler of SIGTERM is a script of its own, except that it cannot replace itself.
fn parse_reaction(steps: &str) -> Result<Vec<ScriptStep>, ScriptError> {
    let unknown = |step: &str| ScriptError::Unknown { argument: step.to_owned() };
    match steps.split(',').find(|step| step.starts_with("on-term")) {
        Some(nested) => Err(unknown(nested)),
        None => parse(steps.split(',')),
    }
}
