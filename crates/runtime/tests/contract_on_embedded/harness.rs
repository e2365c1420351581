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
use oarsman_runtime::{EmbeddedRuntime, EmbeddedRuntimeSettings};
use tempfile::TempDir;

const PULLABLE: &str = "rig.local/pullable:1";
const MISSING: &str = "rig.local/nobody:1";

/// Tells an agent that is this program executed again which control group is its parent's.
pub(crate) const CGROUP: &str = "OARSMAN_TEST_CGROUP";

/// The control group of all pods of this test.
pub(crate) fn cgroup() -> PathBuf {
    let own = || format!("/oarsman-test-runtime-{}", std::process::id()).into();
    std::env::var_os(CGROUP).map_or_else(own, PathBuf::from)
}

#[derive(Clone)]
pub(crate) struct Node {
    directory: Arc<TempDir>,
    archive: Arc<Vec<u8>>,
    opened: Arc<Mutex<Vec<EmbeddedRuntime>>>,
}

impl Node {
    pub(crate) fn new(parts: &Parts) -> Result<Self> {
        let mut all = images::standard(parts)?;
        let other = ImageConfig { env: vec!["NAME=other".to_owned()], ..ImageConfig::default() };
        all.push(images::script_image(parts, PULLABLE, other)?);
        let archive = Arc::new(images::archive(&all)?);
        let directory = Arc::new(tempfile::tempdir()?);
        Ok(Self { directory, archive, opened: Arc::default() })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Opens a runtime, as a new agent does.
    pub(crate) async fn open(&self, name: &str) -> Result<EmbeddedRuntime> {
        let program = std::env::current_exe()?;
        let settings = EmbeddedRuntimeSettings::new(self.path().join(name), program);
        Ok(EmbeddedRuntime::open(settings, Arc::new(SystemClock::start())).await?)
    }

    /// Opens a runtime that has the images.
    pub(crate) async fn with_images(&self, name: &str) -> Result<EmbeddedRuntime> {
        let runtime = self.open(name).await?;
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
        tokio::task::spawn_blocking(import).await??;
        Ok(runtime)
    }

    /// Has the network of a runtime removed at the end.
    pub(crate) fn close_later(&self, runtime: EmbeddedRuntime) {
        self.opened.lock().unwrap().push(runtime);
    }

    pub(crate) async fn contract(&self) -> Result<Arc<dyn Harness>> {
        let runtime = self.with_images("contract").await?;
        self.close_later(runtime.clone());
        let directory = self.path().join("pods");
        Ok(Arc::new(EmbeddedHarness { runtime: Arc::new(runtime), images: names(), directory }))
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

fn names() -> ImageNames {
    ImageNames {
        script: images::SCRIPT.to_owned(),
        script_as_user: images::SCRIPT_AS_USER.to_owned(),
        pullable: PULLABLE.to_owned(),
        private: PrivateImage { image: MISSING.to_owned(), credentials: AuthConfig::default() },
        missing: MISSING.to_owned(),
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

    fn may_lack(&self) -> &[&'static str] {
        &["Exec", "Attach", "PortForward"]
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
