//! Calls cargo from programs that cargo runs.

use std::env;
use std::process::Command;

/// The prefixes of environment variables that cargo sets for a program of its own package.
const PACKAGE_VARIABLE_PREFIXES: [&str; 4] =
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];

/// cargo, as called at a shell prompt.
///
/// Without the variables of the package whose program this is: the build scripts of some crates would take the difference for a change, and they
/// and all that depends on them would be built anew for each caller.
pub fn cargo() -> Command {
    let mut command = Command::new("cargo");
    without_package(&mut command);
    command
}

/// Removes the variables of the package whose program this is.
pub fn without_package(command: &mut Command) -> &mut Command {
    for (name, _) in env::vars_os() {
        if PACKAGE_VARIABLE_PREFIXES
            .iter()
            .any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
        {
            command.env_remove(name);
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_gets_no_variables_of_the_package_that_calls_it() {
        let command = cargo();
        let removed: Vec<_> =
            command.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "CARGO_PKG_VERSION_PRE"] {
            assert!(removed.contains(&name.as_ref()), "{name} is not in {removed:?}");
        }
        assert!(!removed.contains(&"CARGO_HOME".as_ref()));
    }
}
