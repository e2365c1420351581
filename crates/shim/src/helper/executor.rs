//! What a container's first process does when it is told to start: it takes from itself what it shall not have, and executes the program.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use libcontainer::workload::{
    Executor, ExecutorError, ExecutorSetEnvsError, ExecutorValidationError,
};
use oarsman_host::keyring;
use oci_spec::runtime::{Process, Spec};
use rustix::process::{chdir, getcwd};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space, set_no_new_privs};

use super::container_root::ContainerRoot;
use super::identity;
use crate::seccomp::SeccompFilters;

/// Where programs are looked for if the environment does not say.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The most that is read of a container's own list of users.
const MOST_USERS: u64 = 1 << 20;

/// Executes the process of a spec, which libcontainer itself has never seen.
#[derive(Clone)]
pub(super) struct ProcessExecutor {
    process: Rc<Process>,
    filters: Rc<SeccompFilters>,
    /// The user namespace to join first.
    pub(super) user_namespace: Option<Rc<File>>,
    /// The list of processes of the control group to join first.
    pub(super) group: Option<Rc<File>>,
    /// What is to be done to the root directory of a container's first process.
    pub(super) root: Option<Rc<ContainerRoot>>,
}

impl ProcessExecutor {
    pub(super) fn new(process: Process, filters: SeccompFilters) -> Self {
        Self {
            process: Rc::new(process),
            filters: Rc::new(filters),
            user_namespace: None,
            group: None,
            root: None,
        }
    }

    /// The order is the kernel's. Without `no_new_privs` a filter needs `CAP_SYS_ADMIN`, so it comes first, and it has to allow what follows. With
    /// it the filter comes last, and may forbid all but the execution.
    fn take_away(&self) -> io::Result<()> {
        if let Some(group) = &self.group {
            group.as_ref().write_all(b"0")?;
        }
        if let Some(namespace) = &self.user_namespace {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::User))?;
        }
        // Keys of the agent are not the container's.
        keyring::leave()?;
        let no_new_privs = self.process.no_new_privileges() == Some(true);
        if no_new_privs {
            set_no_new_privs(true)?;
        } else {
            self.filters.install()?;
        }
        let entered = self.enter_directory();
        identity::assume(&self.process)?;
        if entered.is_err() {
            // A directory that root may not enter, such as one of a file server, may be the user's.
            self.enter_directory()?;
        }
        if no_new_privs { self.filters.install() } else { Ok(()) }
    }

    /// Goes to the working directory. A descriptor of this process may lead out of the container, and so may a link to one.
    fn enter_directory(&self) -> io::Result<()> {
        let wanted = self.process.cwd();
        let named = |error: io::Error| {
            let message =
                format!("cannot enter the working directory {}: {error}", wanted.display());
            io::Error::new(error.kind(), message)
        };
        chdir(wanted).map_err(|error| named(error.into()))?;
        let found = getcwd(Vec::new()).map_err(|error| named(error.into()))?;
        match found.to_bytes().starts_with(b"/") {
            true => Ok(()),
            false => Err(named(io::Error::other("it is not in the container"))),
        }
    }

    fn arguments(&self) -> Option<(&String, &[String])> {
        self.process.args().as_ref()?.split_first()
    }

    fn environment(&self) -> impl Iterator<Item = (&str, &str)> {
        self.process
            .env()
            .iter()
            .flatten()
            .filter_map(|entry| entry.split_once('='))
            .filter(|(name, _)| !name.is_empty())
    }

    fn variable(&self, wanted: &str) -> Option<&str> {
        // The last one counts, as it does for the program.
        self.environment().filter(|(name, _)| *name == wanted).last().map(|(_, value)| value)
    }

    /// The program's path in the container, or why there is none.
    fn find(&self, program: &str) -> Result<PathBuf, String> {
        if program.contains('/') {
            let path = self.process.cwd().join(program);
            return check(&path)
                .map(|()| PathBuf::from(program))
                .map_err(|error| format!("exec: {program:?}: {}", words(&path, &error)));
        }
        let path = self.variable("PATH").unwrap_or(DEFAULT_PATH);
        let places = path
            .split(':')
            .map(|place| Path::new(if place.is_empty() { "." } else { place }).join(program));
        let found = places.into_iter().find(|place| check(place).is_ok());
        found.ok_or_else(|| format!("exec: {program:?}: executable file not found in $PATH"))
    }

    fn command(&self) -> Result<Command, String> {
        let (program, rest) = self.arguments().ok_or("the process has no arguments")?;
        let mut command = Command::new(self.find(program)?);
        command.arg0(program).args(rest).env_clear().envs(self.environment());
        if self.variable("HOME").is_none_or(str::is_empty) {
            command.env("HOME", home_of(self.process.user().uid()));
        }
        Ok(command)
    }
}

impl Executor for ProcessExecutor {
    fn exec(&self, _: &Spec) -> Result<(), ExecutorError> {
        let mut command = self.command().map_err(ExecutorError::Other)?;
        let error = match self.take_away() {
            Ok(()) => command.exec(),
            Err(error) => {
                io::Error::new(error.kind(), format!("cannot give up privileges: {error}"))
            }
        };
        let message = format!("cannot execute {:?}: {error}", command.get_program());
        // Nothing reads our result any more when a container has started, so its log tells.
        writeln!(io::stderr(), "{message}").unwrap_or_default();
        Err(ExecutorError::Other(message))
    }

    fn validate(&self, _: &Spec) -> Result<(), ExecutorValidationError> {
        let invalid = ExecutorValidationError::ArgValidationError;
        self.root.as_ref().map_or(Ok(()), |root| root.finish()).map_err(invalid)?;
        match self.enter_directory() {
            // Its user may be allowed to.
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {
                return Err(invalid(error.to_string()));
            }
            _ => {}
        }
        let (program, _) =
            self.arguments().ok_or_else(|| invalid("the process has no arguments".into()))?;
        self.find(program).map(drop).map_err(invalid)
    }

    /// The environment is set for the program alone: what we do before does not depend on it.
    #[expect(
        clippy::disallowed_types,
        reason = "the trait has it, and nothing here depends on its order"
    )]
    fn setup_envs(
        &self,
        _: std::collections::HashMap<String, String>,
    ) -> Result<(), ExecutorSetEnvsError> {
        Ok(())
    }
}

/// The words of other runtimes, which users and tools look for.
fn words(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("stat {}: no such file or directory", path.display()),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "is a directory".to_owned(),
        _ => error.to_string(),
    }
}

fn check(path: &Path) -> io::Result<()> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

/// The home directory that the container's `/etc/passwd` says.
fn home_of(uid: u32) -> String {
    use oarsman_host::files::{FileContents, read_regular};
    let Ok(FileContents::Bytes(users)) = read_regular(Path::new("/etc/passwd"), MOST_USERS) else {
        return default_home(uid);
    };
    let users = String::from_utf8_lossy(&users);
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let home = fields
        .filter(|fields| fields.get(2).is_some_and(|id| id.parse() == Ok(uid)))
        .find_map(|fields| fields.get(5).map(|home| (*home).to_owned()));
    home.filter(|home| !home.is_empty()).unwrap_or_else(|| default_home(uid))
}

fn default_home(uid: u32) -> String {
    if uid == 0 { "/root".to_owned() } else { "/".to_owned() }
}
