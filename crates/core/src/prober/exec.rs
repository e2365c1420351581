//! Commands in containers.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, ExecAction};

use super::outcome::ProbeOutcome;
use crate::cri_spec::expand;
use crate::duration::spell;

/// The longest argument after the expansion of variables: the kernel refuses longer ones.
const LONGEST_ARGUMENT: usize = 128 * 1024;

/// The command of a probe. Only variables whose value stands in the spec are known: the others were made when the container was.
pub fn command(container: &Container, action: &ExecAction) -> Vec<String> {
    let values = container.env.iter().flatten().filter(|variable| variable.value_from.is_none());
    let values = values.map(|variable| {
        let value = variable.value.clone().unwrap_or_default();
        (variable.name.as_str(), value.into_bytes())
    });
    let values: std::collections::BTreeMap<_, _> = values.collect();
    let expanded = |argument: &String| {
        let bytes = expand(argument, LONGEST_ARGUMENT, |name| values.get(name));
        bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| argument.clone())
    };
    action.command.iter().flatten().map(expanded).collect()
}

/// What a command that ended says: 0 is a success, anything else a failure.
pub fn judge(exit_code: i32, stdout: &[u8], stderr: &[u8]) -> ProbeOutcome {
    let output = [stdout, stderr].concat();
    match exit_code {
        0 => ProbeOutcome::success(output),
        _ => ProbeOutcome::failure(output),
    }
}

/// A command that did not end in time and was killed.
pub fn timed_out(command: &[String], timeout: Duration) -> ProbeOutcome {
    ProbeOutcome::failure(format!(
        "command timed out: {command:?} did not end within {}",
        spell(timeout)
    ))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource};

    use super::*;
    use crate::prober::OUTPUT_LIMIT;

    #[test]
    fn only_variables_with_a_value_in_the_spec_are_expanded() {
        let variable = |name: &str, value: Option<&str>, value_from| EnvVar {
            name: name.to_owned(),
            value: value.map(str::to_owned),
            value_from,
        };
        let env = vec![
            variable("PORT", Some("80"), None),
            variable("EMPTY", None, None),
            variable("SECRET", None, Some(EnvVarSource::default())),
        ];
        let container = Container { env: Some(env), ..Container::default() };
        let rows = [
            ("a", "a"),
            ("$(PORT)/x", "80/x"),
            ("[$(EMPTY)]", "[]"),
            ("$(SECRET)", "$(SECRET)"),
            ("$(UNKNOWN)", "$(UNKNOWN)"),
            ("$$(PORT)", "$(PORT)"),
        ];
        for (given, expected) in rows {
            let action = ExecAction { command: Some(vec![given.to_owned()]) };
            assert_eq!(command(&container, &action), [expected]);
        }
    }

    #[test]
    fn exit_code_0_is_a_success_and_every_other_a_failure() {
        assert_eq!(judge(0, b"a", b"b"), ProbeOutcome::success("ab"));
        for code in [1, 2, 126, 137, -1] {
            assert_eq!(judge(code, b"a", b"b"), ProbeOutcome::failure("ab"), "{code}");
        }
        let long = judge(1, &[b'a'; OUTPUT_LIMIT], b"b");
        assert_eq!(long.output().len(), OUTPUT_LIMIT);
    }

    #[test]
    fn a_command_that_did_not_end_in_time_is_a_failure() {
        let outcome = timed_out(&["sleep".to_owned(), "9".to_owned()], Duration::from_secs(2));
        let told = "command timed out: [\"sleep\", \"9\"] did not end within 2s";
        assert_eq!(outcome, ProbeOutcome::failure(told));
    }
}
