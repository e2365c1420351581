//! `docs/commands.md` is what the commands say of themselves.

use std::fs;
use std::path::Path;

use clap::{Command, Subcommand};

use super::ClientCommand;

const HEAD: &str = "\
# Commands

What a person asks of a running agent. Each of these finds the agent by its root directory and asks it over the socket
`oarsman.sock` in there, which only root and the agent's own user may use; `curl --unix-socket` works as well:

```console
# curl -s --unix-socket /var/lib/oarsman/oarsman.sock http://localhost/v1/report
# curl -s --unix-socket /var/lib/oarsman/oarsman.sock http://localhost/v1/stop -d '{\"pods\":[{\"namespace\":\"default\",\"name\":\"web\"}]}'
```

Pods are named by `NAME`, by `NAMESPACE/NAME`, by a name without the node's at its end, or by how their name begins. What
goes wrong is told on stderr with exit code 1; what was typed wrong with exit code 2. Colours are for terminals, and
`NO_COLOR` turns them off.

This page is what the commands say of themselves, put here by a test:
`OARSMAN_RENEW=1 cargo test -p oarsman --bin oarsman manual`.
";

/// The page.
fn page() -> String {
    let mut program = ClientCommand::augment_subcommands(Command::new("oarsman"));
    program.build();
    let visible = program.get_subcommands_mut().filter(|command| command.get_name() != "help");
    let sections = visible.map(|command| {
        let (name, help) = (command.get_name().to_owned(), command.render_help());
        let lines: Vec<String> =
            help.to_string().trim_end().lines().map(|line| line.trim_end().to_owned()).collect();
        format!("\n## oarsman {name}\n\n```text\n{}\n```\n", lines.join("\n"))
    });
    format!("{HEAD}{}", sections.collect::<String>())
}

#[test]
fn the_page_of_commands_says_what_the_commands_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    if std::env::var_os("OARSMAN_RENEW").is_some() {
        fs::write(&path, page()).unwrap();
    }
    let renew = "renew it: OARSMAN_RENEW=1 cargo test -p oarsman --bin oarsman manual";
    assert!(fs::read_to_string(&path).unwrap_or_default() == page(), "{path:?} is stale; {renew}");
}
