//! The program of a container, with its environment, user, mounts and files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use oarsman_cri_types::v1::{ContainerConfig, LinuxContainerSecurityContext, Mount, Signal};

use super::images::ImageSource;

/// The one program in every image.
const SCRIPT: &str = "/script";

/// A program with its environment.
#[derive(Debug, Clone)]
pub(super) struct ContainerProgram {
    /// The program and its arguments.
    command: Vec<String>,
    environment: BTreeMap<String, String>,
    directory: PathBuf,
    security: LinuxContainerSecurityContext,
    image_user: Option<i64>,
    mounts: Vec<Mount>,
    /// The directory of the container's own files in the world's files.
    root: PathBuf,
    stop_signal: u8,
}

/// A file of the world, as a program sees it.
pub(super) struct ResolvedPath {
    pub(super) path: PathBuf,
    pub(super) read_only: bool,
}

impl ContainerProgram {
    pub(super) fn new(id: &str, config: &ContainerConfig, image: &ImageSource) -> Self {
        let security = config.linux.as_ref().and_then(|linux| linux.security_context.clone());
        let directory = [config.working_dir.as_str(), image.working_dir.as_str(), "/"];
        Self {
            command: command(config),
            environment: environment(config, image),
            directory: directory.iter().find(|path| !path.is_empty()).into_iter().collect(),
            security: security.unwrap_or_default(),
            image_user: image.user,
            mounts: config.mounts.clone(),
            root: Path::new("/run/world/containers").join(id),
            stop_signal: number(config.stop_signal()),
        }
    }

    /// Another program in the same container.
    pub(super) fn with_command(&self, command: Vec<String>) -> Self {
        Self { command, ..self.clone() }
    }

    pub(super) fn name(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }

    pub(super) fn exists(&self) -> bool {
        self.name() == SCRIPT
    }

    pub(super) fn arguments(&self) -> &[String] {
        self.command.get(1..).unwrap_or_default()
    }

    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn uid(&self) -> i64 {
        let asked = self.security.run_as_user.map(|user| user.value);
        asked.or(self.image_user).unwrap_or(0)
    }

    pub(super) fn gid(&self) -> i64 {
        self.security.run_as_group.map_or(0, |group| group.value)
    }

    pub(super) fn stop_signal(&self) -> u8 {
        self.stop_signal
    }

    /// Resolves a path of the program: to a mount, or to the container's own files.
    pub(super) fn resolve(&self, path: &Path) -> ResolvedPath {
        let path = self.directory.join(path);
        let mounts = self.mounts.iter().filter(|mount| path.starts_with(&mount.container_path));
        // The longest mount path covers the others.
        match mounts.max_by_key(|mount| Path::new(&mount.container_path).components().count()) {
            Some(mount) => through(mount, &path),
            None => ResolvedPath {
                path: self.root.join(path.strip_prefix("/").unwrap_or(&path)),
                read_only: self.security.readonly_rootfs,
            },
        }
    }
}

fn through(mount: &Mount, path: &Path) -> ResolvedPath {
    let source = match &mount.image {
        Some(image) => Path::new("/run/world/images").join(&image.image),
        None => PathBuf::from(&mount.host_path),
    };
    let below = path.strip_prefix(&mount.container_path).unwrap_or(Path::new(""));
    // Joining an empty path would add a slash.
    let path = if below.as_os_str().is_empty() { source } else { source.join(below) };
    ResolvedPath { path, read_only: mount.readonly || mount.image.is_some() }
}

/// A command replaces the image's entrypoint, which is the script program, and arguments its own, which are none.
fn command(config: &ContainerConfig) -> Vec<String> {
    let entrypoint = match config.command.as_slice() {
        [] => vec![SCRIPT.to_owned()],
        command => command.to_vec(),
    };
    [entrypoint, config.args.clone()].concat()
}

fn environment(config: &ContainerConfig, image: &ImageSource) -> BTreeMap<String, String> {
    let mut environment = image.environment.clone();
    for variable in &config.envs {
        let value = String::from_utf8_lossy(&variable.value).into_owned();
        environment.insert(variable.key.clone(), value);
    }
    environment
}

/// The kernel's number of a stop signal. The script program has no handler for other signals.
fn number(signal: Signal) -> u8 {
    match signal {
        Signal::RuntimeDefault | Signal::Sigterm => 15,
        Signal::Sighup => 1,
        Signal::Sigint => 2,
        Signal::Sigquit => 3,
        Signal::Sigkill => 9,
        Signal::Sigusr1 => 10,
        Signal::Sigusr2 => 12,
        _ => 18,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(container_path: &str, host_path: &str, readonly: bool) -> Mount {
        let (container_path, host_path) = (container_path.to_owned(), host_path.to_owned());
        Mount { container_path, host_path, readonly, ..Mount::default() }
    }

    #[test]
    fn paths_lead_to_the_nearest_mount_or_to_the_containers_own_files() {
        let mounts = vec![mount("/data", "/host/a", false), mount("/data/fixed", "/host/b", true)];
        let config = ContainerConfig { mounts, working_dir: "/data".into(), ..Default::default() };
        let program = ContainerProgram::new("1", &config, &ImageSource::script("a"));
        for (path, resolved, read_only) in [
            ("/data", "/host/a", false),
            ("/data/x", "/host/a/x", false),
            ("x", "/host/a/x", false),
            ("/data/fixed/x", "/host/b/x", true),
            ("/database", "/run/world/containers/1/database", false),
        ] {
            let found = program.resolve(Path::new(path));
            assert_eq!((found.path, found.read_only), (resolved.into(), read_only), "{path}");
        }
    }
}
