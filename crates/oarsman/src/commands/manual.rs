//! Checks that `docs/commands.md` has the help text of every command for an agent, and of `oarsman cri`.

use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory, Subcommand};

use super::ClientCommand;

const HEAD: &str = "\
# Commands

Commands for a running agent. Each of them finds the agent by its root directory and sends a request to the socket
`oarsman.sock` in that directory, which only root and the agent's own user may use; `curl --unix-socket` works as well:

```console
# curl -s --unix-socket /var/lib/oarsman/oarsman.sock http://localhost/v1/report
# curl -s --unix-socket /var/lib/oarsman/oarsman.sock http://localhost/v1/stop -d '{\"pods\":[{\"namespace\":\"default\",\"name\":\"web\"}]}'
```

A pod is given as `NAME`, as `NAMESPACE/NAME`, as a name without the node's name at its end, or as the beginning of its name. Errors
are printed to stderr with exit code 1, wrong arguments with exit code 2. Output is coloured on terminals only, and
`NO_COLOR` turns colours off.

This page is generated from the help texts of the commands, and a test compares the two:
`OARSMAN_RENEW=1 cargo test -p oarsman --bin oarsman manual` generates it again.
";

const RUNTIME: &str = "
# The container runtime

[operating.md](operating.md#the-runtime-in-a-process-of-its-own) says how it is operated.
";

/// The content of `docs/commands.md`.
fn page() -> String {
    let mut program = ClientCommand::augment_subcommands(Command::new("oarsman"));
    program.build();
    let visible = program.get_subcommands_mut().filter(|command| command.get_name() != "help");
    let sections = visible.map(section);
    format!("{HEAD}{}{RUNTIME}{}", sections.collect::<String>(), section(&mut cri()))
}

fn section(command: &mut Command) -> String {
    let (name, help) = (command.get_name().to_owned(), command.render_help());
    let lines: Vec<String> =
        help.to_string().trim_end().lines().map(|line| line.trim_end().to_owned()).collect();
    format!("\n## oarsman {name}\n\n```text\n{}\n```\n", lines.join("\n"))
}

fn cri() -> Command {
    let mut program = crate::Arguments::command();
    program.build();
    program.find_subcommand("cri").unwrap().clone()
}

#[test]
fn the_page_of_commands_has_the_help_of_every_command() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    if std::env::var_os("OARSMAN_RENEW").is_some() {
        fs::write(&path, page()).unwrap();
    }
    let renew = "renew it: OARSMAN_RENEW=1 cargo test -p oarsman --bin oarsman manual";
    assert!(fs::read_to_string(&path).unwrap_or_default() == page(), "{path:?} is stale; {renew}");
}
