//! How a command ended, as clients of `v4.channel.k8s.io` read it: a Status object with the words of other runtimes.

use serde_json::{Value, json};

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandOutcome {
    /// Well, or as far as an attached client is concerned.
    Success,
    /// With an exit code that is not zero.
    ExitCode(i32),
    /// It was not begun, or its end is not known.
    Failed(String),
}

impl CommandOutcome {
    /// That of a process with this exit code.
    pub fn of_exit(code: i32) -> Self {
        if code == 0 { Self::Success } else { Self::ExitCode(code) }
    }

    pub(super) fn status(&self) -> String {
        self.object().to_string()
    }

    fn object(&self) -> Value {
        match self {
            Self::Success => json!({ "metadata": {}, "status": "Success" }),
            Self::ExitCode(code) => json!({
                "metadata": {},
                "status": "Failure",
                "message": format!("command terminated with non-zero exit code: command terminated with exit code {code}"),
                "reason": "NonZeroExitCode",
                "details": { "causes": [{ "reason": "ExitCode", "message": code.to_string() }] },
            }),
            Self::Failed(message) => json!({
                "metadata": {},
                "status": "Failure",
                "message": format!("Internal error occurred: {message}"),
                "reason": "InternalError",
                "details": { "causes": [{ "message": message }] },
                "code": 500,
            }),
        }
    }
}
