//! Runs the contract suite on a runtime of the rig, directly or through our own CRI server.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use libtest_mimic::{Arguments, Conclusion, Trial};
use oarsman_contract::{Harness, ImageNames, PrivateImage};
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::AuthConfig;
use oarsman_rig::images::{self, ImageConfig};
use oarsman_rig::leaks::{HostResource, Snapshot};
use oarsman_rig::{ContainerdFlavour, Registry, RegistryCredentials, RepositoryBehaviour, Rig};

use crate::proxy::CriProxy;
use crate::scenario::rig_options;

/// How long what cases have made may take to be gone.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// Runs the suite on a runtime by these routes, each under a name of its own, and compares the machine before and after.
///
/// # Errors
/// When the runtime does not come up, or something is left behind.
pub fn run_contract(
    arguments: &Arguments,
    flavour: ContainerdFlavour,
    routes: &[(&str, Route)],
) -> Result<Conclusion> {
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let _inside = tokio.enter();
    let runtime = tokio.block_on(ContainerdFixture::start(flavour))?;
    let before = tokio.block_on(Snapshot::take(&runtime.rig))?;
    let mut trials = Vec::<Trial>::new();
    for (name, route) in routes {
        let subject = tokio.block_on(runtime.via(*route))?;
        trials.extend(oarsman_contract::trials(name, &subject, tokio.handle()));
    }
    let conclusion = libtest_mimic::run(arguments, trials);
    // `oarsman cri` keeps the bridge and its rules until it ends.
    let may_stay = |thing: &HostResource| {
        flavour == ContainerdFlavour::OarsmanCri && thing.is_of_embedded_network()
    };
    tokio.block_on(before.compare_until_clean_but(MAX_WAIT, may_stay))?;
    tokio.block_on(runtime.rig.stop())?;
    Ok(conclusion)
}

/// How calls reach containerd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// From our client straight to its socket.
    Direct,
    /// From our client to our server, which calls containerd through the scenarios' proxy.
    ThroughOurServer,
}

impl Route {
    /// The repository that needs no credentials.
    fn public(self) -> String {
        format!("public/{self:?}").to_lowercase()
    }

    /// The repository that needs credentials.
    fn private(self) -> String {
        format!("private/{self:?}").to_lowercase()
    }
}

/// A rig, a registry, and the images that the contract uses.
pub struct ContainerdFixture {
    /// The rig itself.
    pub rig: Rig,
    /// The registry that pulls go to.
    pub registry: Registry,
}

impl ContainerdFixture {
    /// Starts both. The registry has one public image and one that needs credentials.
    ///
    /// # Errors
    /// When the runtime does not come up.
    pub async fn start(flavour: ContainerdFlavour) -> Result<Self> {
        let rig = Rig::start(rig_options(flavour)?).await?;
        // Each is another image than the script image on the node: removing one must not remove that. And each route has its own, so that cases
        // on both may run in parallel.
        let names =
            [Route::Direct, Route::ThroughOurServer].map(|route| [route.public(), route.private()]);
        let served = names.concat().into_iter().map(|name| {
            let config =
                ImageConfig { env: vec![format!("NAME={name}")], ..ImageConfig::default() };
            images::script_image(rig.parts(), &format!("{name}:1"), config)
        });
        let registry = Registry::start(served.collect::<Result<_>>()?)?;
        rig.allow_registry(registry.address())?;
        for route in [Route::Direct, Route::ThroughOurServer] {
            let credentials =
                RegistryCredentials { username: "me".to_owned(), password: "secret".to_owned() };
            let private = RepositoryBehaviour {
                credentials: Some(credentials),
                ..RepositoryBehaviour::default()
            };
            registry.set(&route.private(), private);
        }
        Ok(Self { rig, registry })
    }

    /// The harness for that route.
    ///
    /// # Errors
    /// When the server in between cannot listen.
    pub async fn via(&self, route: Route) -> Result<Arc<dyn Harness>> {
        let straight: Arc<dyn Runtime> = Arc::new(self.rig.client()?);
        let (runtime, proxy): (Arc<dyn Runtime>, _) = match route {
            Route::Direct => (straight, None),
            Route::ThroughOurServer => {
                let socket = self.rig.directory().join("ours.sock");
                let proxy = CriProxy::start(straight, &socket).await?;
                (Arc::new(proxy.client()?), Some(proxy))
            }
        };
        let directory = self.rig.directory().join(format!("contract-{route:?}"));
        Ok(Arc::new(ContainerdHarness {
            runtime,
            _proxy: proxy,
            images: self.images(route),
            directory,
            cgroup_parent: self.rig.cgroup_parent(),
            flavour: self.rig.flavour(),
        }))
    }

    fn images(&self, route: Route) -> ImageNames {
        let credentials = AuthConfig {
            username: "me".to_owned(),
            password: "secret".to_owned(),
            ..AuthConfig::default()
        };
        ImageNames {
            script: images::SCRIPT.to_owned(),
            script_as_user: images::SCRIPT_AS_USER.to_owned(),
            pullable: self.registry.name(&format!("{}:1", route.public())),
            private: PrivateImage {
                image: self.registry.name(&format!("{}:1", route.private())),
                credentials,
            },
            missing: self.registry.name("public/nobody:1"),
        }
    }
}

struct ContainerdHarness {
    runtime: Arc<dyn Runtime>,
    /// Kept because it ends when it is dropped.
    _proxy: Option<CriProxy>,
    images: ImageNames,
    directory: PathBuf,
    cgroup_parent: String,
    flavour: ContainerdFlavour,
}

#[async_trait]
impl Harness for ContainerdHarness {
    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.runtime)
    }

    fn images(&self) -> &ImageNames {
        &self.images
    }

    fn may_lack(&self) -> &[&'static str] {
        match self.flavour {
            ContainerdFlavour::Built
            | ContainerdFlavour::OarsmanCri
            | ContainerdFlavour::Absent => &[],
            ContainerdFlavour::Debian => &["GetContainerEvents", "RealContainers"],
        }
    }

    fn has_real_containers(&self) -> bool {
        // The table says what the containerd of the rig answers, which is newer than Debian's.
        self.flavour != ContainerdFlavour::Debian
    }

    fn directory(&self) -> PathBuf {
        self.directory.clone()
    }

    fn cgroup_parent(&self) -> String {
        self.cgroup_parent.clone()
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
