//! The shim as a process: forked for the agent, and serving a pod from then on.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;

use oarsman_host::process_title;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{getpid, set_child_subreaper, setsid};

use crate::directory::ShimDirectory;
use crate::server::{ContainerCgroups, ShimServer};
use crate::spawner::{self, FAILED, READY};
use crate::{pod_init, socket, user_namespace};

/// The program's first argument that makes it a shim.
pub const ARGUMENT: &str = "shim";

/// The call that starts the process which shims are forked from.
pub(crate) const SPAWNER: &str = "spawner";

/// Runs one of our processes. The arguments are those after [`ARGUMENT`]; to be called first thing in `main`, before there are threads.
///
/// - `spawner` starts shims until the end of its stdin, a socket.
/// - `init` is the first process of a pid namespace that containers share.
/// - `init-inside USER-NAMESPACE` starts that process inside of a user namespace, and waits for it.
/// - `namespaces` makes a user namespace with others in it, and waits in them.
pub fn main(arguments: &[String]) -> ExitCode {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        [SPAWNER] => spawner::execute(),
        [spawner::FORKING, _] => spawner::run(),
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
            // The agent reads it.
            writeln!(io::stderr(), "{error}").unwrap_or_default();
            ExitCode::FAILURE
        }
    }
}

/// The shim of a directory, in the child of a spawner. What it has to say is written to `told`, which is closed when it can be connected to.
pub(crate) fn run_forked(directory: &ShimDirectory, told: File, cgroups: ContainerCgroups) -> u8 {
    let mut told = Some(told);
    match serve(directory, &mut told, cgroups) {
        Ok(()) => 0,
        Err(error) => {
            // Once it is closed, there is nobody to tell.
            told.map(|mut told| write!(told, "{error}").ok());
            FAILED
        }
    }
}

fn serve(
    directory: &ShimDirectory,
    told: &mut Option<File>,
    cgroups: ContainerCgroups,
) -> io::Result<()> {
    rustix::thread::set_name(c"oarsman-shim")?;
    // Only people read it.
    process_title::set(["oarsman-shim", ARGUMENT, "serve", &directory.path().to_string_lossy()])
        .unwrap_or_default();
    // It was the spawner's socket.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    std::fs::create_dir_all(directory.path())?;
    // Nothing is made beside it before: a shim that lives there may be about to remove the directory.
    let _lock = lock(directory)?;
    for part in [directory.containers(), directory.libcontainer()] {
        std::fs::create_dir_all(part)?;
    }
    let listener = socket::listen(directory.path(), ShimDirectory::SOCKET)?;
    let server = ShimServer::new(directory.clone(), listener, cgroups)?;
    if let Some(mut told) = told.take() {
        told.write_all(READY.as_bytes())?;
    }
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
