//! Containers by another OCI runtime: a program such as runc, which is called with the commands that all of them have.
//!
//! It makes the first process of a container as a child that the shim inherits, with our own streams as its streams. Everything else that a
//! shim does, to signal a container, to read its output and to notice its end, is the same as for libcontainer's.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use oarsman_host::files::{FileContents, read_regular};
use oarsman_host::processes;
use oci_spec::runtime::Spec;
use rustix::fs::{Mode, OFlags, open};
use serde::Deserialize;

use super::create::{read_request, write_bundle};
use super::{ExecStep, HelperError, held_spec};
use crate::directory::{ContainerDirectory, ShimDirectory};
use crate::file_io::{read_json, write_json};
use crate::protocol::CreateRequest;

/// Where the program and the hooks that it runs find other programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// More than any program writes about one step.
const MOST_LOG: u64 = 1 << 20;
const MOST_PID: u64 = 64;

/// The OCI runtime of a container.
#[derive(Debug)]
pub(super) struct OciRuntime<'a> {
    program: PathBuf,
    /// Where it keeps what it knows of this shim's containers.
    root: PathBuf,
    directory: &'a ContainerDirectory,
    id: &'a str,
}

impl<'a> OciRuntime<'a> {
    /// That of a container; none if that is libcontainer's.
    pub(super) fn of(
        shim: &ShimDirectory,
        directory: &'a ContainerDirectory,
        id: &'a str,
    ) -> Result<Option<Self>, HelperError> {
        // A create that failed early has left none.
        let request: Option<CreateRequest> =
            read_json(&directory.request()).map_err(HelperError::io("cannot read the request"))?;
        let program = request.and_then(|request| request.oci_runtime);
        Ok(program.map(|program| Self { program, root: shim.libcontainer(), directory, id }))
    }

    /// Makes the container up to the moment before its program runs.
    pub(super) fn create(&self) -> Result<u32, HelperError> {
        let mut spec: Spec = read_request(self.directory)?.spec;
        let mut has_terminal = false;
        if let Some(process) = spec.process_mut() {
            has_terminal = process.terminal() == Some(true);
            held_spec::clamp_to_held(process)?;
        }
        let bundle = self.directory.bundle();
        fs::create_dir_all(&bundle).map_err(HelperError::io("cannot make the bundle"))?;
        write_bundle(&bundle, &spec)?;
        let pid_file = self.directory.of_step("create", "pid");
        let mut command = self.command("create");
        command.arg("create").arg("--bundle").arg(&bundle).arg("--pid-file").arg(&pid_file);
        self.run(command, "create", has_terminal)?;
        read_pid(&pid_file)
    }

    /// Runs the program of a container that was created.
    pub(super) fn start(&self) -> Result<(), HelperError> {
        let mut command = self.command("start");
        command.arg("start");
        self.run(command, "start", false)
    }

    /// Runs a further process. It is in the container's control group for a moment, so what it starts at once is looked for, too.
    pub(super) fn exec(&self, name: &str) -> Result<u32, HelperError> {
        let step: Option<ExecStep> = read_json(&self.directory.of_step(name, "process"))
            .map_err(HelperError::io("cannot read the process"))?;
        let ExecStep { mut process, group } =
            step.ok_or_else(|| HelperError::Invalid("there is no process".into()))?;
        held_spec::clamp_to_held(&mut process)?;
        let file = self.directory.of_step(name, "bundle");
        write_json(&file, &process).map_err(HelperError::io("cannot write the process"))?;
        let pid_file = self.directory.of_step(name, "pid");
        let mut command = self.command(name);
        command.args(["exec", "--detach", "--process"]).arg(&file);
        command.arg("--pid-file").arg(&pid_file);
        self.run(command, name, process.terminal() == Some(true))?;
        let pid = read_pid(&pid_file)?;
        if let Some(group) = group {
            move_family(pid, &group);
        }
        Ok(pid)
    }

    /// Removes what the program knows of the container, and runs the hooks for that. What it leaves is removed without it.
    pub(super) fn delete(&self) {
        let mut command = self.command("delete");
        command.args(["delete", "--force"]);
        self.run(command, "delete", false).unwrap_or_default();
    }

    fn command(&self, step: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--root").arg(&self.root).arg("--log").arg(self.log(step));
        command.args(["--log-format", "json"]).env_clear().env("PATH", PATH).current_dir("/");
        command
    }

    fn log(&self, step: &str) -> PathBuf {
        self.directory.of_step(step, "log")
    }

    /// Runs a command of the program to its end, and says what it has said when it fails. The shim kills both when it takes too long.
    fn run(&self, mut command: Command, step: &str, terminal: bool) -> Result<(), HelperError> {
        let shown = self.program.display();
        // A path of a socket has at most 108 bytes, so the directory is named by a descriptor of ours.
        let directory = terminal.then(|| self.open_directory()).transpose()?;
        if let Some(directory) = &directory {
            let (pid, number) = (std::process::id(), directory.as_raw_fd());
            command.arg("--console-socket");
            command.arg(format!("/proc/{pid}/fd/{number}/{step}.console"));
        }
        let status = command.arg(self.id).status();
        let status = status.map_err(HelperError::io(format!("cannot execute {shown}")))?;
        let said = failure(&self.log(step)).unwrap_or_else(|| status.to_string());
        fs::remove_file(self.log(step)).unwrap_or_default();
        match status.success() {
            true => Ok(()),
            false => Err(HelperError::Invalid(format!("{shown}: {said}"))),
        }
    }

    fn open_directory(&self) -> Result<std::os::fd::OwnedFd, HelperError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = open(self.directory.path(), flags, Mode::empty()).map_err(io::Error::from);
        opened.map_err(HelperError::io("cannot open the container's directory"))
    }
}

/// A line of the log.
#[derive(Deserialize)]
struct LogLine {
    #[serde(default)]
    level: String,
    #[serde(default)]
    msg: String,
}

/// The last error in a log.
fn failure(log: &Path) -> Option<String> {
    let Ok(FileContents::Bytes(bytes)) = read_regular(log, MOST_LOG) else { return None };
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines().filter_map(|line| serde_json::from_str::<LogLine>(line).ok());
    lines.rfind(|line| line.level == "error" || line.level == "fatal").map(|line| line.msg)
}

fn read_pid(file: &Path) -> Result<u32, HelperError> {
    let text = match read_regular(file, MOST_PID) {
        Ok(FileContents::Bytes(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        _ => String::new(),
    };
    fs::remove_file(file).unwrap_or_default();
    let pid = text.trim().parse().map_err(|_| "the OCI runtime tells no process".to_owned());
    pid.map_err(HelperError::Invalid)
}

/// Moves a process, and those that it has started by now, into a group given by its directory. One that has ended needs no group.
fn move_family(pid: u32, group: &Path) {
    let list = group.join("cgroup.procs");
    fs::write(&list, pid.to_string()).unwrap_or_default();
    for member in processes::family(&processes::list().unwrap_or_default(), &[pid]) {
        fs::write(&list, member.to_string()).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_of_a_log_is_told() {
        let scratch = tempfile::tempdir().unwrap();
        let log = scratch.path().join("log");
        assert_eq!(failure(&log), None);
        let text = "{\"level\":\"warning\",\"msg\":\"odd\"}\nno json\n\
                    {\"level\":\"error\",\"msg\":\"runc create failed: no such file\",\"time\":\"x\"}\n";
        fs::write(&log, text).unwrap();
        assert_eq!(failure(&log).as_deref(), Some("runc create failed: no such file"));
    }

    #[test]
    fn a_process_is_told_by_a_file_that_has_nothing_else() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("pid");
        assert!(read_pid(&file).is_err());
        for (text, expected) in [("17", Some(17)), ("17\n", Some(17)), ("x", None), ("", None)] {
            fs::write(&file, text).unwrap();
            assert_eq!(read_pid(&file).ok(), expected, "{text:?}");
        }
    }
}
