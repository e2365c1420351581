//! The shim as a program: started by the agent, and serving a pod from then on.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use oarsman_host::inherited_descriptors;
use oarsman_host::read_only_file::open_read_only;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{getpid, set_child_subreaper, setsid};

use crate::directory::ShimDirectory;
use crate::server::ShimServer;
use crate::{pod_init, socket, user_namespace};

/// The program's first argument that makes it a shim.
pub const ARGUMENT: &str = "shim";

/// The line that a shim writes when it can be connected to.
const READY: &str = "ready";

/// Serves a pod. The arguments are those after [`ARGUMENT`]; to be called first thing in `main`, before there are threads.
///
/// - `launch DIRECTORY` starts a shim, waits until it listens, and ends: the shim is then a child of init.
/// - `serve DIRECTORY` is the shim.
/// - `init` is the first process of a pid namespace that containers share.
/// - `init-inside USER-NAMESPACE` starts that process inside of a user namespace, and waits for it.
/// - `namespaces` makes a user namespace with others in it, and waits in them.
pub fn main(arguments: &[String]) -> ExitCode {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["launch", directory] => launch(&ShimDirectory::new(*directory)),
        ["serve", directory] => serve(&ShimDirectory::new(*directory)),
        ["init"] => pod_init::run(),
        [pod_init::INSIDE, namespace] => pod_init::run_inside(Path::new(namespace)),
        [user_namespace::CALL] => user_namespace::run(),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("a shim has no arguments {arguments:?}"),
        )),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            use io::Write;
            // The agent reads it; the shim itself has nowhere to write to.
            writeln!(io::stderr(), "{error}").unwrap_or_default();
            ExitCode::FAILURE
        }
    }
}

/// Executes the shim from a read-only mount of our own file: a container that gets at `/proc/PID/exe` of shim, helper or its own first process
/// before it executes its program cannot write to it (CVE-2019-5736), and no memory is spent on a copy.
///
/// The shim lives as long as its pod, so it gets nothing that the program which started the agent left open: a lock would be held, and a pipe have no
/// end, for as long.
fn launch(directory: &ShimDirectory) -> io::Result<()> {
    let program = open_read_only(Path::new("/proc/self/exe")).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot mount our own program read-only: {error}"))
    })?;
    let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
    command.arg0("oarsman-shim").arg(ARGUMENT).arg("serve").arg(directory.path());
    command.env_clear().current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped());
    // The threads of logs need no memory of their own to allocate from.
    command.env("MALLOC_ARENA_MAX", "1");
    inherited_descriptors::close_on_exec()?;
    let mut shim = command.spawn()?;
    let mut said = String::new();
    if let Some(stdout) = shim.stdout.take() {
        io::BufRead::read_line(&mut io::BufReader::new(stdout), &mut said)?;
    }
    if said.trim_end() == READY {
        return Ok(());
    }
    let status = shim.wait()?;
    Err(io::Error::other(format!(
        "the shim of {} ended at once: {status}",
        directory.path().display()
    )))
}

fn serve(directory: &ShimDirectory) -> io::Result<()> {
    rustix::thread::set_name(c"oarsman-shim")?;
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    std::fs::create_dir_all(directory.path())?;
    // Nothing is made beside it before: a shim that lives there may be about to remove the directory.
    let _lock = lock(directory)?;
    for part in [directory.containers(), directory.libcontainer()] {
        std::fs::create_dir_all(part)?;
    }
    let listener = socket::listen(directory.path(), ShimDirectory::SOCKET)?;
    let server = ShimServer::new(directory.clone(), listener)?;
    tell_ready()?;
    server.run()?;
    directory.remove()
}

/// Held as long as the shim lives.
pub(crate) fn lock(directory: &ShimDirectory) -> io::Result<File> {
    let path = directory.lock();
    let file = File::options().create(true).truncate(false).write(true).open(&path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
        let shown = directory.path().display();
        io::Error::new(
            io::Error::from(error).kind(),
            format!("the shim of {shown} lives already: {error}"),
        )
    })?;
    refuse_removed(&file, &path)?;
    Ok(file)
}

/// A shim that ended between our opening and our locking has removed the file that we have. The next one would lock another file, and both
/// would live.
fn refuse_removed(file: &File, path: &Path) -> io::Result<()> {
    let (ours, there) = (file.metadata()?, std::fs::metadata(path));
    if there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
        return Ok(());
    }
    let message = format!("the shim that held {} has just ended: try again", path.display());
    Err(io::Error::new(io::ErrorKind::WouldBlock, message))
}

/// Tells the launcher, and closes what it could still read.
fn tell_ready() -> io::Result<()> {
    use io::Write;
    let mut stdout = io::stdout();
    writeln!(stdout, "{READY}")?;
    stdout.flush()?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(rustix::stdio::dup2_stderr(&null)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_another_shim_has_removed_or_replaced_is_not_ours() {
        let files = tempfile::tempdir().unwrap();
        let directory = ShimDirectory::new(files.path());
        let path = directory.lock();
        let opened = File::create(&path).unwrap();
        refuse_removed(&opened, &path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(refuse_removed(&opened, &path).is_err());
        let _next = lock(&directory).unwrap();
        let error = refuse_removed(&opened, &path).unwrap_err().to_string();
        assert!(error.contains("has just ended"), "{error}");
        assert!(lock(&directory).unwrap_err().to_string().contains("lives already"));
    }
}
