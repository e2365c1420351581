//! A node of the tests: a directory with images, and embedded runtimes in it.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::Result;
use async_trait::async_trait;
use oarsman_clock::SystemClock;
use oarsman_contract::{Harness, ImageNames, PrivateImage};
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::AuthConfig;
use oarsman_host::cgroups::CgroupManager;
use oarsman_image_store::ImportOptions;
use oarsman_rig::images::{self, ImageConfig};
use oarsman_rig::parts::Parts;
use oarsman_rig::{Registry, RegistryCredentials, RepositoryBehaviour};
use oarsman_runtime::{EmbeddedRuntime, EmbeddedRuntimeSettings, PodNetworkChoice};
use tempfile::TempDir;

/// Tells an agent that is this program executed again which control group is its parent's.
pub(crate) const CGROUP: &str = "OARSMAN_TEST_CGROUP";

/// The control group of all pods of this test. Its name is that of a rig's, which leak checks that run beside this test leave alone.
pub(crate) fn cgroup() -> PathBuf {
    let own = || format!("/oarsman-rig-embedded-{}", std::process::id()).into();
    std::env::var_os(CGROUP).map_or_else(own, PathBuf::from)
}

#[derive(Clone)]
pub(crate) struct Node {
    directory: Arc<TempDir>,
    archive: Arc<Vec<u8>>,
    registry: Arc<Registry>,
    /// The directory of the CNI plugins.
    plugins: PathBuf,
    opened: Arc<Mutex<Vec<EmbeddedRuntime>>>,
}

impl Node {
    pub(crate) fn new(parts: &Parts) -> Result<Self> {
        let archive = Arc::new(images::archive(&images::standard(parts)?)?);
        let directory = Arc::new(tempfile::tempdir()?);
        let registry = Arc::new(registry(parts)?);
        let plugins = parts.cni.clone();
        Ok(Self { directory, archive, registry, plugins, opened: Arc::default() })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn plugins(&self) -> &Path {
        &self.plugins
    }

    /// Opens a runtime, as a new agent does.
    pub(crate) async fn open(&self, name: &str) -> Result<EmbeddedRuntime> {
        self.open_with(name, PodNetworkChoice::default()).await
    }

    /// Opens a runtime whose pods are connected in that way.
    pub(crate) async fn open_with(
        &self,
        name: &str,
        pod_networks: PodNetworkChoice,
    ) -> Result<EmbeddedRuntime> {
        let program = std::env::current_exe()?;
        let settings = EmbeddedRuntimeSettings {
            pod_networks,
            ..EmbeddedRuntimeSettings::new(self.path().join(name), program)
        };
        Ok(EmbeddedRuntime::open(settings, Arc::new(SystemClock::start())).await?)
    }

    /// Opens a runtime that has the images.
    pub(crate) async fn with_images(&self, name: &str) -> Result<EmbeddedRuntime> {
        let runtime = self.open(name).await?;
        self.import(&runtime).await?;
        Ok(runtime)
    }

    async fn import(&self, runtime: &EmbeddedRuntime) -> Result<()> {
        let (store, archive) = (runtime.images().clone(), Arc::clone(&self.archive));
        let import = move || -> Result<()> {
            let mut file: File = tempfile::tempfile()?;
            file.write_all(&archive)?;
            file.rewind()?;
            store.import_archive(
                file,
                "the test's images",
                &ImportOptions::default(),
                &mut |_| {},
            )?;
            Ok(())
        };
        tokio::task::spawn_blocking(import).await?
    }

    /// Has the network of a runtime removed at the end.
    pub(crate) fn close_later(&self, runtime: EmbeddedRuntime) {
        self.opened.lock().unwrap().push(runtime);
    }

    pub(crate) async fn contract(&self) -> Result<Arc<dyn Harness>> {
        self.contract_with("contract", PodNetworkChoice::default()).await
    }

    /// A harness for a runtime whose pods are connected in that way.
    pub(crate) async fn contract_with(
        &self,
        name: &str,
        pod_networks: PodNetworkChoice,
    ) -> Result<Arc<dyn Harness>> {
        let runtime = self.open_with(name, pod_networks).await?;
        self.import(&runtime).await?;
        self.close_later(runtime.clone());
        let directory = self.path().join(format!("{name}-pods"));
        Ok(Arc::new(EmbeddedHarness {
            runtime: Arc::new(runtime),
            images: names(&self.registry),
            directory,
        }))
    }

    pub(crate) async fn close(&self) -> Result<()> {
        let all = std::mem::take(&mut *self.opened.lock().unwrap());
        for runtime in all {
            runtime.remove_network().await?;
        }
        CgroupManager::discover(&cgroup())?.remove_if_empty(&cgroup())?;
        Ok(())
    }
}

fn credentials() -> RegistryCredentials {
    RegistryCredentials { username: "rower".to_owned(), password: "secret".to_owned() }
}

/// A registry on loopback, one of whose images wants credentials.
fn registry(parts: &Parts) -> Result<Registry> {
    let image = |name: &str| {
        // An image of its own: one that has the script image's id has its name, too.
        let env = vec![format!("NAME={name}")];
        images::script_image(parts, name, ImageConfig { env, ..ImageConfig::default() })
    };
    let registry = Registry::start(vec![image("pullable:1")?, image("private:1")?])?;
    let behaviour =
        RepositoryBehaviour { credentials: Some(credentials()), ..RepositoryBehaviour::default() };
    registry.set("private", behaviour);
    Ok(registry)
}

fn names(registry: &Registry) -> ImageNames {
    let RegistryCredentials { username, password } = credentials();
    let credentials = AuthConfig { username, password, ..AuthConfig::default() };
    ImageNames {
        script: images::SCRIPT.to_owned(),
        script_as_user: images::SCRIPT_AS_USER.to_owned(),
        pullable: registry.name("pullable:1"),
        private: PrivateImage { image: registry.name("private:1"), credentials },
        missing: registry.name("nobody:1"),
    }
}

struct EmbeddedHarness {
    runtime: Arc<dyn Runtime>,
    images: ImageNames,
    directory: PathBuf,
}

#[async_trait]
impl Harness for EmbeddedHarness {
    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.runtime)
    }

    fn images(&self) -> &ImageNames {
        &self.images
    }

    fn has_real_containers(&self) -> bool {
        true
    }

    fn directory(&self) -> PathBuf {
        self.directory.clone()
    }

    fn cgroup_parent(&self) -> String {
        cgroup().to_string_lossy().into_owned()
    }

    async fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        tokio::fs::read(path).await
    }

    async fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        if let Some(parent) = path.parent() {
            tokio::fs::create_dir_all(parent).await?;
        }
        tokio::fs::write(path, content).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        tokio::fs::rename(from, to).await
    }
}
