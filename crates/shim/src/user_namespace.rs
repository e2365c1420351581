//! User namespaces with other namespaces inside of them. A process with threads cannot make them, so a child does, and waits in them until they are
//! held in another way.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use oarsman_host::namespaces::{NamespaceKind, die_with_parent, enter_new};
use oci_spec::runtime::LinuxIdMapping;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Gid, Uid};
use rustix::system::sethostname;
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};
use serde::{Deserialize, Serialize};

use crate::shim;

/// The call of a shim's program that makes the namespaces.
pub(crate) const CALL: &str = "namespaces";
const UNSHARED: &str = "unshared";
const MAPPED: &str = "mapped";
const READY: &str = "ready";
/// How long the child has for one step: the kernel takes long to make a network namespace while it ends others.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest line that a child says.
const MOST_LINE: usize = 4096;

/// What is made inside of a new user namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InnerNamespaces {
    /// Namespaces of these kinds: [`NamespaceKind::Network`], [`NamespaceKind::Ipc`] and [`NamespaceKind::Uts`].
    pub kinds: Vec<InnerKind>,
    /// The host name of the UTS namespace.
    pub hostname: Option<String>,
    /// Files below `/proc/sys` of these namespaces that only their own root may write, with what is written.
    pub settings: Vec<(PathBuf, String)>,
}

/// The kinds of namespace that a user namespace can hold for its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InnerKind {
    /// [`NamespaceKind::Network`]
    Network,
    /// [`NamespaceKind::Ipc`]
    Ipc,
    /// [`NamespaceKind::Uts`]
    Uts,
}

impl InnerKind {
    /// The kind of namespace.
    pub fn kind(self) -> NamespaceKind {
        match self {
            Self::Network => NamespaceKind::Network,
            Self::Ipc => NamespaceKind::Ipc,
            Self::Uts => NamespaceKind::Uts,
        }
    }
}

/// A process in a new user namespace. It ends when this is dropped, and with it all of its namespaces that nothing else holds.
#[derive(Debug)]
pub struct UserNamespaceProcess {
    child: Child,
}

impl UserNamespaceProcess {
    /// Makes namespaces, in which users and groups are those of the host by these mappings. Blocks.
    ///
    /// # Errors
    /// When the kernel refuses: for mappings that overlap, or because there are too many user namespaces.
    pub fn start(
        program: &Path,
        uids: &[LinuxIdMapping],
        gids: &[LinuxIdMapping],
        inner: &InnerNamespaces,
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg0("oarsman-namespaces").args([shim::ARGUMENT, CALL]);
        command.env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Self { child: command.spawn()? };
        process.tell(&serde_json::to_string(inner)?)?;
        process.expect(UNSHARED)?;
        let pid = process.child.id();
        write_map(pid, "uid_map", uids)?;
        write_map(pid, "gid_map", gids)?;
        process.tell(MAPPED)?;
        process.expect(READY)?;
        Ok(process)
    }

    /// The file of one of its namespaces, as long as this lives.
    pub fn namespace(&self, kind: NamespaceKind) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/{}", self.child.id(), kind.file_name()))
    }

    fn tell(&mut self, line: &str) -> io::Result<()> {
        let stdin = self.child.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(stdin, "{line}")
    }

    fn expect(&mut self, wanted: &str) -> io::Result<()> {
        let said = self.hear()?;
        if said == wanted {
            return Ok(());
        }
        // It has ended, and said why.
        let mut why = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            stderr.read_to_string(&mut why)?;
        }
        Err(io::Error::other(format!("cannot make a user namespace: {}", why.trim())))
    }

    fn hear(&mut self) -> io::Result<String> {
        let stdout = self.child.stdout.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        read_line(stdout, STEP_TIMEOUT)
    }
}

/// The next line of a child, or what it has said before its end.
pub(crate) fn read_line(from: &mut ChildStdout, limit: Duration) -> io::Result<String> {
    let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
    let mut said = Vec::new();
    while said.len() < MOST_LINE {
        let mut waited = [PollFd::new(&*from, PollFlags::IN)];
        if poll(&mut waited, Some(&limit))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut byte = [0];
        match from.read(&mut byte)? {
            1 if byte != *b"\n" => said.push(byte[0]),
            _ => break,
        }
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

impl Drop for UserNamespaceProcess {
    fn drop(&mut self) {
        // One that has ended already is only waited for.
        self.child.kill().unwrap_or_default();
        drop(self.child.wait());
    }
}

fn write_map(pid: u32, file: &str, mappings: &[LinuxIdMapping]) -> io::Result<()> {
    let written = fs::write(format!("/proc/{pid}/{file}"), map_text(mappings));
    written.map_err(|error| io::Error::new(error.kind(), format!("cannot write {file}: {error}")))
}

/// As the kernel reads it.
fn map_text(mappings: &[LinuxIdMapping]) -> String {
    mappings.iter().fold(String::new(), |mut text, one| {
        // Writing to a string does not fail.
        writeln!(text, "{} {} {}", one.container_id(), one.host_id(), one.size())
            .unwrap_or_default();
        text
    })
}

/// The child: reads what is wanted, makes it, and waits for the end of its stdin.
pub(crate) fn run() -> io::Result<()> {
    die_with_parent()?;
    let mut heard = io::stdin().lines();
    let mut next = || heard.next().unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()));
    let inner: InnerNamespaces = serde_json::from_str(&next()?)?;
    enter_new(&[NamespaceKind::User])?;
    say(UNSHARED)?;
    if next()? != MAPPED {
        return Err(io::ErrorKind::InvalidData.into());
    }
    become_root()?;
    inner.make()?;
    say(READY)?;
    // The end of our stdin is that of our parent, or of its need.
    drop(next());
    Ok(())
}

/// Becomes the root of the user namespace that this process has entered.
pub(crate) fn become_root() -> io::Result<()> {
    set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT)?;
    set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?;
    // Each change of user takes the death signal away.
    die_with_parent()
}

fn say(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

impl InnerNamespaces {
    fn make(&self) -> io::Result<()> {
        let kinds: Vec<NamespaceKind> = self.kinds.iter().map(|kind| kind.kind()).collect();
        enter_new(&kinds)?;
        if let Some(hostname) = &self.hostname {
            sethostname(hostname.as_bytes()).map_err(|error| {
                io::Error::other(format!("cannot set the host name {hostname:?}: {error}"))
            })?;
        }
        for (path, value) in &self.settings {
            fs::write(path, value).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot set {}: {error}", path.display()))
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use oci_spec::runtime::LinuxIdMappingBuilder;

    use super::*;

    #[test]
    fn mappings_are_written_as_the_kernel_reads_them() {
        let mapping = |container: u32, host: u32, size: u32| {
            let mapping = LinuxIdMappingBuilder::default().container_id(container).host_id(host);
            mapping.size(size).build().unwrap()
        };
        let text = map_text(&[mapping(0, 100_000, 65_536), mapping(70_000, 5, 1)]);
        assert_eq!(text, "0 100000 65536\n70000 5 1\n");
    }
}
