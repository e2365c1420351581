//! The helper: one process for one step, which may block, and may be killed at any moment.
//!
//! libcontainer clones without exec and changes its caller (its oom_score_adj, its working directory, whether it can be dumped), so it is called
//! here and nowhere else. The helper's own stdin, stdout and stderr become the container's. What it has to tell is in a file.

use std::path::PathBuf;
use std::process::ExitCode;

use oci_spec::runtime::Process;
use serde::{Deserialize, Serialize};

use crate::directory::{ContainerDirectory, ShimDirectory};
use crate::file_io::write_json;

mod binds;
mod cgroup_mount;
mod container_root;
mod create;
mod delete;
mod executor;
mod held_spec;
mod identity;
mod user_namespace;

pub(crate) use delete::{kill_container, remove_files};

/// The program's first argument that makes it a helper.
pub const ARGUMENT: &str = "shim-helper";

/// What a helper tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StepResult {
    Done {
        /// The process that it has made.
        pid: Option<u32>,
    },
    Failed {
        message: String,
    },
}

impl std::fmt::Display for StepResult {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Done { .. } => to.write_str("the helper did not tell which process it has made"),
            Self::Failed { message } => to.write_str(message),
        }
    }
}

/// What a shim tells a helper about an exec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ExecStep {
    pub(crate) process: Process,
    /// The directory of its control group.
    pub(crate) group: Option<PathBuf>,
}

/// Why a step was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HelperError {
    #[error("{0}")]
    Invalid(String),
    #[error("{what}: {source}")]
    Io { what: String, source: std::io::Error },
    #[error("{}", chain(.0))]
    Libcontainer(#[from] libcontainer::error::LibcontainerError),
    #[error(transparent)]
    Seccomp(#[from] crate::seccomp::SeccompError),
    #[error(transparent)]
    Cgroup(#[from] oarsman_host::cgroups::CgroupError),
}

impl HelperError {
    fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// libcontainer's errors tell their cause only when asked.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        next = cause.source();
    }
    text
}

/// Does one step. The arguments are those after [`ARGUMENT`]; to be called first thing in `main`, before there are threads.
pub fn main(arguments: &[String]) -> ExitCode {
    let [directory, call, container, name] = arguments else {
        return ExitCode::from(2);
    };
    let shim = ShimDirectory::new(directory);
    let Some(directory) = shim.container(container) else {
        return ExitCode::from(2);
    };
    let result = match call.as_str() {
        "create" => create::create(&shim, &directory, container).map(Some),
        "exec" => create::exec(&shim, &directory, container, name).map(Some),
        "delete" => delete::delete(&shim, &directory, container).map(|()| None),
        _ => return ExitCode::from(2),
    };
    tell(&directory, name, result)
}

fn tell(
    directory: &ContainerDirectory,
    name: &str,
    result: Result<Option<u32>, HelperError>,
) -> ExitCode {
    let result = match result {
        Ok(pid) => StepResult::Done { pid },
        Err(error) => StepResult::Failed { message: error.to_string() },
    };
    let is_done = matches!(result, StepResult::Done { .. });
    // A container that was deleted has no directory any more, which tells the same.
    let told = write_json(&directory.of_step(name, "result"), &result).is_ok()
        || !directory.path().exists();
    if is_done && told { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
