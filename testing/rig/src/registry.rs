//! An image registry on loopback that serves images from memory, and can be made slow, private or failing.
//!
//! It has a thread and a runtime of its own, so that a test that blocks does not block it.

mod serve;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::images::{Blob, OciImage};

/// The credentials of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the two halves of basic authentication")]
pub struct RegistryCredentials {
    pub username: String,
    pub password: String,
}

/// How a repository behaves; by default it answers every request at once.
#[derive(Debug, Clone, Default)]
pub struct RepositoryBehaviour {
    /// The credentials that a request needs.
    pub credentials: Option<RegistryCredentials>,
    /// How long each answer takes.
    pub delay: Duration,
    /// The HTTP status with which every request fails.
    pub failure: Option<u16>,
}

/// How often a repository got requests of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Manifests, by tag or digest.
    pub manifests: usize,
    /// Blobs.
    pub blobs: usize,
    /// Requests of both kinds that were refused for lack of credentials.
    pub denied: usize,
}

/// A running registry; it ends when dropped.
pub struct Registry {
    address: SocketAddr,
    store: Arc<RegistryStore>,
    server: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Registry {
    /// Serves images by their names, which are `REPOSITORY:TAG` without a host.
    ///
    /// # Errors
    /// When no port is free, or a name has no tag.
    pub fn start(images: Vec<OciImage>) -> Result<Self> {
        let store = Arc::new(RegistryStore::from_images(images)?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let (stop, stopped) = oneshot::channel();
        let server = serve::serve(listener, Arc::clone(&store), stopped);
        let thread = std::thread::Builder::new()
            .name("registry".to_owned())
            .spawn(move || runtime.block_on(server))?;
        Ok(Self { address, store, server: Some((stop, thread)) })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The full name of an image that is served as `image`.
    pub fn name(&self, image: &str) -> String {
        format!("{}/{image}", self.address)
    }

    /// Changes how a repository behaves from now on.
    pub fn set(&self, repository: &str, behaviour: RepositoryBehaviour) {
        lock(&self.store.repositories).entry(repository.to_owned()).or_default().behaviour =
            behaviour;
    }

    /// The requests to a repository so far.
    pub fn requests(&self, repository: &str) -> RequestCounts {
        let repositories = lock(&self.store.repositories);
        repositories.get(repository).map(|repository| repository.requests).unwrap_or_default()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.server.take() {
            // Either fails only if the server has ended already.
            stop.send(()).ok();
            thread.join().ok();
        }
    }
}

/// The images, by repository.
struct RegistryStore {
    repositories: Mutex<BTreeMap<String, Repository>>,
}

#[derive(Default)]
struct Repository {
    /// By tag and by digest.
    manifests: BTreeMap<String, Blob>,
    blobs: BTreeMap<String, Blob>,
    behaviour: RepositoryBehaviour,
    requests: RequestCounts,
}

impl RegistryStore {
    fn from_images(images: Vec<OciImage>) -> Result<Self> {
        let mut repositories = BTreeMap::<String, Repository>::new();
        for image in images {
            let (repository, tag) = image
                .name
                .rsplit_once(':')
                .with_context(|| format!("the image {} has no tag", image.name))?;
            let repository = repositories.entry(repository.to_owned()).or_default();
            repository.manifests.insert(tag.to_owned(), image.manifest.clone());
            repository.manifests.insert(image.manifest.digest.clone(), image.manifest.clone());
            for blob in image.layers.into_iter().chain([image.config]) {
                repository.blobs.insert(blob.digest.clone(), blob);
            }
        }
        Ok(Self { repositories: Mutex::new(repositories) })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
