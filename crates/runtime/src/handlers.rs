//! Runtime handlers: which OCI runtime makes the containers of a pod. The one without a name is ours, by libcontainer; others are programs that the
//! administrator names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::str::FromStr;
use std::time::Duration;

use oarsman_cri_types::v1::{RuntimeHandler, RuntimeHandlerFeatures};
use serde::Deserialize;
use tokio::process::Command;
use tokio::time::timeout;

use crate::error::{EmbeddedRuntimeError, Outcome};
use crate::inner::RuntimeInner;

/// How long a program may take to tell what it can do.
const ASKING: Duration = Duration::from_secs(5);
/// What a mount is called that is read-only with all below it.
const RECURSIVE_READ_ONLY: &str = "rro";

/// A runtime handler that is an OCI runtime, such as runc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciHandler {
    /// As a RuntimeClass names it.
    pub name: String,
    /// The program.
    pub program: PathBuf,
}

/// Why a text names no handler.
#[derive(Debug, thiserror::Error)]
pub enum OciHandlerError {
    /// There is no `=`.
    #[error("{0:?} has no path: write it as NAME=PATH")]
    NoPath(String),
    /// A RuntimeClass could not have it.
    #[error(
        "{0:?} is no name of a handler: use letters a to z, digits and dashes, with no dash at its ends"
    )]
    Name(String),
    /// It would depend on the working directory.
    #[error("{} is not an absolute path", .0.display())]
    RelativePath(PathBuf),
}

impl FromStr for OciHandler {
    type Err = OciHandlerError;

    /// As `NAME=PATH`.
    fn from_str(text: &str) -> Result<Self, OciHandlerError> {
        let parts = text.split_once('=');
        let (name, program) = parts.ok_or_else(|| OciHandlerError::NoPath(text.to_owned()))?;
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let has_dash_at_end = name.starts_with('-') || name.ends_with('-');
        if name.is_empty() || name.len() > 63 || !name.chars().all(allowed) || has_dash_at_end {
            return Err(OciHandlerError::Name(name.to_owned()));
        }
        let program = PathBuf::from(program);
        match program.is_absolute() {
            true => Ok(Self { name: name.to_owned(), program }),
            false => Err(OciHandlerError::RelativePath(program)),
        }
    }
}

/// The handlers of a runtime besides ours, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownHandlers(BTreeMap<String, KnownHandler>);

#[derive(Clone, Debug)]
struct KnownHandler {
    program: PathBuf,
    features: RuntimeHandlerFeatures,
}

impl KnownHandlers {
    /// Asks every program what it can do. One that does not tell is still used.
    pub(crate) async fn ask(handlers: &[OciHandler]) -> Self {
        let mut all = BTreeMap::new();
        for OciHandler { name, program } in handlers {
            let features = features(program).await.unwrap_or_else(|error| {
                let path = program.display();
                tracing::warn!(object = name, %path, error, "features of runtime handler not read");
                RuntimeHandlerFeatures::default()
            });
            all.insert(name.clone(), KnownHandler { program: program.clone(), features });
        }
        Self(all)
    }

    /// The program of a handler; none for ours.
    pub(crate) fn program(&self, name: &str) -> Outcome<Option<&Path>> {
        if name.is_empty() {
            return Ok(None);
        }
        let known = self.0.get(name).map(|handler| Some(handler.program.as_path()));
        known.ok_or_else(|| {
            let message = format!(
                "no runtime for {name:?} is configured: name its program with --runtime-handler {name}=PATH"
            );
            EmbeddedRuntimeError::Invalid(message)
        })
    }

    fn shown(&self) -> impl Iterator<Item = RuntimeHandler> {
        let shown = |(name, handler): (&String, &KnownHandler)| RuntimeHandler {
            name: name.clone(),
            features: Some(handler.features),
        };
        self.0.iter().map(shown)
    }
}

impl RuntimeInner {
    /// Ours, with these features, and the others.
    pub(crate) fn shown_handlers(&self, ours: RuntimeHandlerFeatures) -> Vec<RuntimeHandler> {
        let ours = RuntimeHandler { name: String::new(), features: Some(ours) };
        [ours].into_iter().chain(self.handlers.shown()).collect()
    }

    /// The program that makes the containers of a sandbox; none for libcontainer.
    pub(crate) fn oci_runtime(&self, sandbox: &str) -> Outcome<Option<PathBuf>> {
        let (sandbox, _) = self.sandbox(sandbox)?;
        Ok(self.handlers.program(&sandbox.handler)?.map(Path::to_owned))
    }
}

/// What `runc features` prints, as far as it matters here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ProgramFeatures {
    mount_options: Vec<String>,
}

async fn features(program: &Path) -> Result<RuntimeHandlerFeatures, String> {
    let mut command = Command::new(program);
    command.arg("features").env_clear().current_dir("/").kill_on_drop(true);
    let asked = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output =
        timeout(ASKING, asked).await.map_err(|_| format!("no answer within {ASKING:?}"))?;
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() {
        true => parse(&output.stdout),
        false => Err(format!("`{} features` ended with {}", program.display(), output.status)),
    }
}

/// Pods in user namespaces need what only libcontainer is given here, whatever the program can do.
fn parse(text: &[u8]) -> Result<RuntimeHandlerFeatures, String> {
    let told: ProgramFeatures = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let recursive_read_only_mounts = told.mount_options.iter().any(|it| it == RECURSIVE_READ_ONLY);
    Ok(RuntimeHandlerFeatures { recursive_read_only_mounts, user_namespaces: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_is_a_name_and_a_path() {
        let handler: OciHandler = "runc=/usr/bin/runc".parse().unwrap();
        let expected = OciHandler { name: "runc".to_owned(), program: "/usr/bin/runc".into() };
        assert_eq!(handler, expected);
        for wrong in ["runc", "=/runc", "Runc=/runc", "-r=/runc", "r-=/runc", "runc=", "runc=runc"]
        {
            assert!(wrong.parse::<OciHandler>().is_err(), "{wrong}");
        }
        assert!("a=/b=c".parse::<OciHandler>().is_ok_and(|it| it.program == Path::new("/b=c")));
    }

    #[test]
    fn features_are_those_that_the_program_names() {
        let rows = [
            (r#"{"ociVersionMin":"1.0.0","mountOptions":["ro","rro"]}"#, Some(true)),
            (r#"{"mountOptions":["ro"]}"#, Some(false)),
            ("{}", Some(false)),
            ("runc version 1.0", None),
        ];
        for (text, expected) in rows {
            let told = parse(text.as_bytes()).ok();
            assert_eq!(told.map(|it| it.recursive_read_only_mounts), expected, "{text}");
            assert!(told.is_none_or(|it| !it.user_namespaces), "{text}");
        }
    }

    #[tokio::test]
    async fn a_handler_is_known_by_its_name_and_others_are_refused_with_the_way_out() {
        let handlers = [OciHandler { name: "odd".to_owned(), program: "/nowhere/runc".into() }];
        let known = KnownHandlers::ask(&handlers).await;
        assert_eq!(known.program("").unwrap(), None);
        assert_eq!(known.program("odd").unwrap(), Some(Path::new("/nowhere/runc")));
        let told = known.program("kata").unwrap_err().to_string();
        assert!(told.contains("--runtime-handler kata=PATH"), "{told}");
        assert_eq!(known.shown().count(), 1);
    }
}
