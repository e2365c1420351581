//! The user namespace of a container: which one it is, and the way to its files for a user that may be nobody on the host.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use oarsman_host::mount_trees::{self, MountChanges, Propagation};
use oarsman_host::namespaces::{NamespaceKind, cover_with_empty, enter_new};
use oci_spec::runtime::{LinuxIdMapping, LinuxNamespaceType, Mount, Spec};

use super::HelperError;
use crate::directory::ShimDirectory;
use crate::user_namespace::{InnerNamespaces, UserNamespaceProcess};

/// Directories of which one is covered, in the mounts of the container to be alone, to have a place that every user reaches.
const PLACES: [&str; 7] = ["/mnt", "/media", "/srv", "/opt", "/home", "/tmp", "/var"];

/// Mappings of users and groups.
type Mappings = (Vec<LinuxIdMapping>, Vec<LinuxIdMapping>);

/// A user namespace that is open, with the process that holds it if we have made it.
#[derive(Debug)]
struct OpenUserNamespace {
    mappings: Mappings,
    path: PathBuf,
    file: File,
    _holder: Option<UserNamespaceProcess>,
}

/// The user namespaces of a container and of its mounts.
#[derive(Debug, Default)]
pub(super) struct ContainerUsers {
    own: Option<OpenUserNamespace>,
    of_mounts: Vec<OpenUserNamespace>,
}

impl OpenUserNamespace {
    fn existing(path: &Path, mappings: Mappings) -> io::Result<Self> {
        let file = File::open(path)?;
        Ok(Self { mappings, path: path.to_owned(), file, _holder: None })
    }

    fn new(mappings: Mappings) -> io::Result<Self> {
        let (program, inner) = (Path::new("/proc/self/exe"), InnerNamespaces::default());
        let holder = UserNamespaceProcess::start(program, &mappings.0, &mappings.1, &inner)?;
        let path = holder.namespace(NamespaceKind::User);
        let file = File::open(&path)?;
        Ok(Self { mappings, path, file, _holder: Some(holder) })
    }
}

impl ContainerUsers {
    /// The namespace that a spec names or asks for. libcontainer is only told to join it: it would have one that it makes itself managed by systemd.
    pub(super) fn take(spec: &mut Spec) -> Result<Self, HelperError> {
        let failed = || HelperError::io("cannot open the user namespace");
        let Some(linux) = spec.linux_mut() else { return Ok(Self::default()) };
        let uids = linux.uid_mappings().clone().unwrap_or_default();
        let gids = linux.gid_mappings().clone().unwrap_or_default();
        let mut all = linux.namespaces().clone().unwrap_or_default();
        let Some(user) = all.iter_mut().find(|one| one.typ() == LinuxNamespaceType::User) else {
            return Ok(Self::default());
        };
        let own = match user.path() {
            Some(path) => OpenUserNamespace::existing(path, (uids, gids)).map_err(failed())?,
            None => OpenUserNamespace::new((uids, gids)).map_err(failed())?,
        };
        user.set_path(Some(own.path.clone()));
        linux.set_namespaces(Some(all)).set_uid_mappings(None).set_gid_mappings(None);
        Ok(Self { own: Some(own), of_mounts: Vec::new() })
    }

    /// A user namespace with the mappings of a mount; without any, the container's.
    pub(super) fn namespace_for(&mut self, mount: &Mount) -> io::Result<BorrowedFd<'_>> {
        let uids = mount.uid_mappings().clone().unwrap_or_default();
        let wanted = (uids, mount.gid_mappings().clone().unwrap_or_default());
        let is_any = wanted.0.is_empty() && wanted.1.is_empty();
        if let Some(own) = self.own.as_ref().filter(|own| is_any || own.mappings == wanted) {
            return Ok(own.file.as_fd());
        }
        if is_any {
            return Err(io::Error::other("neither it nor the container has mappings"));
        }
        let known = self.of_mounts.iter().position(|one| one.mappings == wanted);
        let at = match known {
            Some(at) => at,
            None => {
                self.of_mounts.push(OpenUserNamespace::new(wanted)?);
                self.of_mounts.len() - 1
            }
        };
        self.of_mounts.get(at).map(|one| one.file.as_fd()).ok_or(io::ErrorKind::NotFound.into())
    }

    /// libcontainer looks for the root file system and for namespaces with the rights of the namespace's root, who may go nowhere on the host. So
    /// they get paths that every user reaches, in mounts that only this process and the container to be see. Gives the path of the root as it was.
    pub(super) fn make_reachable(
        &self,
        spec: &mut Spec,
        shim: &ShimDirectory,
    ) -> Result<Option<PathBuf>, HelperError> {
        let root = spec.root().as_ref().map(|root| root.path().clone());
        let Some(root) = root.filter(|_| self.own.is_some()) else { return Ok(None) };
        let place = place(shim.path())?;
        let moved = MovedPaths::of(spec, &root);
        let moved = moved.map_err(HelperError::io("cannot open the container's namespaces"))?;
        moved
            .mount(place)
            .map_err(HelperError::io("cannot make the container's root reachable"))?;
        moved.rewrite(spec, place);
        Ok(Some(root))
    }
}

fn place(shim: &Path) -> Result<&'static Path, HelperError> {
    let is_usable = |place: &&Path| {
        !shim.starts_with(place) && fs::symlink_metadata(place).is_ok_and(|found| found.is_dir())
    };
    PLACES.into_iter().map(Path::new).find(is_usable).ok_or_else(|| {
        HelperError::Invalid(format!("containers in user namespaces need one of {PLACES:?}"))
    })
}

/// What gets another path.
struct MovedPaths {
    root: OwnedFd,
    namespaces: Vec<(LinuxNamespaceType, OwnedFd)>,
}

impl MovedPaths {
    fn of(spec: &Spec, root: &Path) -> io::Result<Self> {
        let linux = spec.linux().as_ref();
        let all = linux.and_then(|linux| linux.namespaces().clone()).unwrap_or_default();
        // The way to the user namespace is gone by the host's root.
        let moved = all.iter().filter(|one| one.typ() != LinuxNamespaceType::User);
        let open = |kind, path: &Path| Ok((kind, mount_trees::copy(path, false)?));
        let moved = moved.filter_map(|one| Some(open(one.typ(), one.path().as_deref()?)));
        let namespaces = moved.collect::<io::Result<_>>()?;
        Ok(Self { root: mount_trees::copy(root, true)?, namespaces })
    }

    fn mount(&self, place: &Path) -> io::Result<()> {
        enter_new(&[NamespaceKind::Mount])?;
        let propagation = Some(Propagation::Slave);
        let changes = MountChanges { propagation, recursive: true, ..MountChanges::default() };
        mount_trees::change_at(Path::new("/"), changes)?;
        cover_with_empty(place)?;
        fs::create_dir(root_at(place))?;
        mount_trees::attach_at(self.root.as_fd(), &root_at(place))?;
        for (kind, tree) in &self.namespaces {
            File::create(namespace_at(place, *kind))?;
            mount_trees::attach_at(tree.as_fd(), &namespace_at(place, *kind))?;
        }
        Ok(())
    }

    fn rewrite(&self, spec: &mut Spec, place: &Path) {
        if let Some(root) = spec.root_mut() {
            root.set_path(root_at(place));
        }
        let Some(linux) = spec.linux_mut() else { return };
        let mut all = linux.namespaces().clone().unwrap_or_default();
        let is_moved = |kind| self.namespaces.iter().any(|(moved, _)| *moved == kind);
        for one in all.iter_mut().filter(|one| is_moved(one.typ())) {
            let path = namespace_at(place, one.typ());
            one.set_path(Some(path));
        }
        linux.set_namespaces(Some(all));
    }
}

fn root_at(place: &Path) -> PathBuf {
    place.join("root")
}

fn namespace_at(place: &Path, kind: LinuxNamespaceType) -> PathBuf {
    place.join(format!("namespace-{kind}"))
}
