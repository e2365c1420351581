//! A terminal that a test types into: tmux.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::inspect::eventually;

/// How long a shell may take to start.
const OPENING: Duration = Duration::from_secs(10);
/// The prompt of bash, by which the end of a command is seen.
const PROMPT: &str = "oarsman-test> ";

/// A tmux server. It and all that runs in it end when this is dropped.
pub struct Terminal {
    socket: PathBuf,
    /// How many exit codes were asked for.
    commands: AtomicU32,
}

impl Terminal {
    /// Starts a server whose windows start in `directory` with these variables.
    ///
    /// # Errors
    /// When there is no tmux.
    pub async fn open(
        socket: &Path,
        directory: &Path,
        variables: &[(&str, String)],
    ) -> Result<Self> {
        Self::start(Command::new("tmux"), socket, directory, variables).await
    }

    /// The same in a network namespace of its own, in which nothing is up.
    ///
    /// # Errors
    /// When there is no tmux.
    pub async fn open_without_network(
        socket: &Path,
        directory: &Path,
        variables: &[(&str, String)],
    ) -> Result<Self> {
        let mut unshare = Command::new("unshare");
        unshare.args(["--net", "tmux"]);
        Self::start(unshare, socket, directory, variables).await
    }

    /// The first command becomes the server, from which all windows come.
    async fn start(
        program: Command,
        socket: &Path,
        directory: &Path,
        variables: &[(&str, String)],
    ) -> Result<Self> {
        let terminal = Self { socket: socket.to_owned(), commands: AtomicU32::new(0) };
        let session = ["new-session", "-d", "-x", "160", "-y", "50", "-n", "0"];
        let mut tmux = terminal.prepare(program, &session);
        tmux.arg("-c").arg(directory).env("PS1", PROMPT).env("HISTFILE", "/dev/null");
        tmux.envs(variables.iter().map(|(name, value)| (name, value)));
        tmux.args(["bash", "--noprofile", "--norc"]);
        run(&mut tmux)?;
        terminal.see("0", PROMPT.trim_end(), OPENING).await?;
        Ok(terminal)
    }

    /// Opens one more window of that name.
    ///
    /// # Errors
    /// When tmux does not make it.
    pub async fn window(&self, name: &str, directory: &Path) -> Result<()> {
        let mut tmux = self.tmux(&["new-window", "-d", "-n", name]);
        tmux.arg("-c").arg(directory).args(["bash", "--noprofile", "--norc"]);
        run(&mut tmux)?;
        self.see(name, PROMPT.trim_end(), OPENING).await.map(drop)
    }

    /// Types a line and the return key.
    ///
    /// # Errors
    /// When there is no such window.
    pub fn type_line(&self, window: &str, line: &str) -> Result<()> {
        run(&mut self.tmux(&["send-keys", "-t", window, "-l", line]))?;
        self.press(window, "Enter")
    }

    /// Presses a key, by the name that tmux has for it.
    ///
    /// # Errors
    /// When there is no such window.
    pub fn press(&self, window: &str, key: &str) -> Result<()> {
        run(&mut self.tmux(&["send-keys", "-t", window, key])).map(drop)
    }

    /// Changes the size of a window.
    ///
    /// # Errors
    /// When there is no such window.
    pub fn resize(&self, window: &str, columns: u16, rows: u16) -> Result<()> {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        run(&mut self.tmux(&["resize-window", "-t", window, "-x", &columns, "-y", &rows])).map(drop)
    }

    /// All text of a window, scrolled lines included.
    ///
    /// # Errors
    /// When there is no such window.
    pub fn screen(&self, window: &str) -> Result<String> {
        run(&mut self.tmux(&["capture-pane", "-p", "-J", "-S", "-", "-t", window]))
    }

    /// Waits until a window shows a text.
    ///
    /// # Errors
    /// With all its text when the time is over.
    pub async fn see(&self, window: &str, what: &str, max_wait: Duration) -> Result<String> {
        self.see_that(window, what, max_wait, |screen| screen.contains(what)).await
    }

    /// Waits until the command that was typed last has ended, and returns its exit code.
    ///
    /// # Errors
    /// With all text of the window when the time is over.
    pub async fn exit_code(&self, window: &str, max_wait: Duration) -> Result<u8> {
        // With a number of its own: what an earlier command ended with may still be on the screen.
        let number = self.commands.fetch_add(1, Ordering::Relaxed);
        self.type_line(window, &format!("echo command {number} ended with $?."))?;
        let told = format!("\ncommand {number} ended with ");
        let code =
            |screen: &str| screen.rsplit_once(&told)?.1.split('.').next()?.parse::<u8>().ok();
        let is_told = |screen: &str| code(screen).is_some();
        let screen = self.see_that(window, "the command's exit code", max_wait, is_told).await?;
        run(&mut self.tmux(&["send-keys", "-t", window, "-l", "clear"]))?;
        self.press(window, "Enter")?;
        run(&mut self.tmux(&["clear-history", "-t", window]))?;
        code(&screen).context("the exit code was there")
    }

    async fn see_that(
        &self,
        window: &str,
        what: &str,
        max_wait: Duration,
        is_so: impl Fn(&str) -> bool,
    ) -> Result<String> {
        let what = format!("window {window} shows {what:?}");
        eventually(max_wait, &what, async || self.screen(window), |screen| is_so(screen)).await
    }

    fn tmux(&self, arguments: &[&str]) -> Command {
        self.prepare(Command::new("tmux"), arguments)
    }

    fn prepare(&self, mut tmux: Command, arguments: &[&str]) -> Command {
        // The shell must not see cargo's variables of this test, nor the tmux that the test itself may run in.
        oarsman_rig::without_package(&mut tmux)
            .env_remove("TMUX")
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8");
        tmux.arg("-S").arg(&self.socket).args(["-f", "/dev/null"]).args(arguments);
        tmux
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.tmux(&["kill-server"]).output().ok();
    }
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output().context("cannot run tmux: install it")?;
    ensure!(output.status.success(), "tmux: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn typed_commands_run_and_give_their_exit_codes() {
        let directory = tempfile::tempdir().unwrap();
        let variables = [("GREETING", "ahoy".to_owned())];
        let socket = directory.path().join("tmux");
        let terminal = Terminal::open(&socket, directory.path(), &variables).await.unwrap();
        let max_wait = Duration::from_secs(10);
        terminal.type_line("0", "echo $GREETING-$((6 * 7)); (exit 3)").unwrap();
        terminal.see("0", "ahoy-42", max_wait).await.unwrap();
        assert_eq!(terminal.exit_code("0", max_wait).await.unwrap(), 3);
        terminal.window("other", directory.path()).await.unwrap();
        terminal.type_line("other", "echo begun; sleep 60").unwrap();
        terminal.see("other", "\nbegun", max_wait).await.unwrap();
        terminal.press("other", "C-c").unwrap();
        assert_eq!(terminal.exit_code("other", max_wait).await.unwrap(), 130);
    }
}
