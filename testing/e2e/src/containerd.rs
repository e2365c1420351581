//! A containerd of the rig as the subject of the contract suite, by one road or another.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use oarsman_contract::{Harness, Images, Private};
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::AuthConfig;
use oarsman_rig::images::{self, Config};
use oarsman_rig::{Behaviour, Credentials, Flavour, Options, Registry, Rig};

use crate::proxy::Proxy;

/// How calls reach containerd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Road {
    /// From our client straight to its socket.
    Direct,
    /// From our client to our server, which asks our client by way of the scenarios' proxy.
    ThroughOurServer,
}

impl Road {
    /// The repository that everybody may pull from.
    fn public(self) -> String {
        format!("public/{self:?}").to_lowercase()
    }

    /// The repository that wants credentials.
    fn private(self) -> String {
        format!("private/{self:?}").to_lowercase()
    }
}

/// A rig, a registry, and the images the contract speaks of.
pub struct Containerd {
    /// The rig itself.
    pub rig: Rig,
    /// The registry that pulls go to.
    pub registry: Registry,
}

impl Containerd {
    /// Starts both. The registry has one image for everybody and one for who has credentials.
    ///
    /// # Errors
    /// When containerd does not come up.
    pub async fn start(flavour: Flavour) -> Result<Self> {
        let rig = Rig::start(Options { flavour, ..Options::default() }).await?;
        // Each is another image than the actor on the node: removing one must not remove that. And each road has its own,
        // so that cases on both may run side by side.
        let names =
            [Road::Direct, Road::ThroughOurServer].map(|road| [road.public(), road.private()]);
        let served = names.concat().into_iter().map(|name| {
            let config = Config { env: vec![format!("NAME={name}")], ..Config::default() };
            images::actor(rig.parts(), &format!("{name}:1"), config)
        });
        let registry = Registry::start(served.collect::<Result<_>>()?)?;
        rig.allow_registry(registry.address())?;
        for road in [Road::Direct, Road::ThroughOurServer] {
            let credentials =
                Credentials { username: "me".to_owned(), password: "secret".to_owned() };
            let private = Behaviour { credentials: Some(credentials), ..Behaviour::default() };
            registry.set(&road.private(), private);
        }
        Ok(Self { rig, registry })
    }

    /// The subject by that road.
    ///
    /// # Errors
    /// When the server in between cannot listen.
    pub async fn by(&self, road: Road) -> Result<Arc<dyn Harness>> {
        let straight: Arc<dyn Runtime> = Arc::new(self.rig.client()?);
        let (runtime, proxy): (Arc<dyn Runtime>, _) = match road {
            Road::Direct => (straight, None),
            Road::ThroughOurServer => {
                let socket = self.rig.directory().join("ours.sock");
                let proxy = Proxy::start(straight, &socket).await?;
                (Arc::new(proxy.client()?), Some(proxy))
            }
        };
        let directory = self.rig.directory().join(format!("contract-{road:?}"));
        Ok(Arc::new(Subject {
            runtime,
            _proxy: proxy,
            images: self.images(road),
            directory,
            cgroup_parent: self.rig.cgroup_parent(),
            flavour: self.rig.flavour(),
        }))
    }

    fn images(&self, road: Road) -> Images {
        let credentials = AuthConfig {
            username: "me".to_owned(),
            password: "secret".to_owned(),
            ..AuthConfig::default()
        };
        Images {
            actor: images::ACTOR.to_owned(),
            actor_as_user: images::ACTOR_AS_USER.to_owned(),
            pullable: self.registry.name(&format!("{}:1", road.public())),
            private: Private {
                image: self.registry.name(&format!("{}:1", road.private())),
                credentials,
            },
            missing: self.registry.name("public/nobody:1"),
        }
    }
}

struct Subject {
    runtime: Arc<dyn Runtime>,
    /// Kept because it ends when it is dropped.
    _proxy: Option<Proxy>,
    images: Images,
    directory: PathBuf,
    cgroup_parent: String,
    flavour: Flavour,
}

#[async_trait]
impl Harness for Subject {
    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.runtime)
    }

    fn images(&self) -> &Images {
        &self.images
    }

    fn may_lack(&self) -> &[&'static str] {
        match self.flavour {
            Flavour::Built => &[],
            Flavour::Debian => &["GetContainerEvents"],
        }
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
