//! An image's way from its registry into the store: its manifest by tag or digest, its blobs in parallel, its layers unpacked in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{StreamExt, TryStreamExt};
use oarsman_core::image_reference::{
    full_name, registry_and_path, repository_name, with_default_tag,
};
use oarsman_host::blocking;
use oarsman_image_store::{
    Descriptor, Digest, ImageStore, ImportProgress, ImportedImage, Lease, ManifestContent, Platform,
};

use crate::authentication::PullCredentials;
use crate::download::{Downloads, on_disk};
use crate::error::RegistryError;
use crate::host_session::{FetchedManifest, HostSession};
use crate::hosts::hosts_of;
use crate::settings::RegistrySettings;

/// Blobs that are downloaded at the same time, as many as with containerd.
const PARALLEL: usize = 3;
/// Indexes that lead to indexes; real ones do not.
const MAX_DEPTH: usize = 4;
/// Configurations are some kilobytes.
const MAX_CONFIG: u64 = 8 << 20;

/// What to pull, and as whom.
#[derive(Clone, Debug)]
pub struct ImagePull {
    /// The image's name.
    pub image: String,
    /// As whom its registry is asked.
    pub credentials: PullCredentials,
    /// Which image of an index is taken.
    pub platform: Platform,
}

/// How far a pull is; read while it goes on.
#[derive(Debug, Default)]
pub struct PullCounters {
    /// Bytes that are on the disk.
    pub done: AtomicU64,
    /// Bytes of all blobs; 0 until they are known.
    pub total: AtomicU64,
    /// Layers that are unpacked.
    pub unpacked: AtomicU64,
    /// All layers; 0 until they are known.
    pub layers: AtomicU64,
}

/// Pulls an image into the store, and gives its id and names. Dropped, it keeps what was downloaded for the next pull.
///
/// # Errors
/// When no host gives the image, or it cannot be stored; then the image is not in the store.
pub async fn pull_into(
    store: &ImageStore,
    pull: &ImagePull,
    settings: &Arc<RegistrySettings>,
    counters: &Arc<PullCounters>,
) -> Result<ImportedImage, RegistryError> {
    let name = full_name(&with_default_tag(&pull.image)?);
    let hosts = sessions(&name, pull, settings).await?;
    let root = resolve(&name, &pull.image, &hosts).await?;
    let lease = {
        let store = store.clone();
        on_disk(move || Ok(Arc::new(store.begin_lease()?))).await?
    };
    let able = hosts.into_iter().filter(|it| it.host.abilities.pull).collect();
    let downloads = Downloads {
        store: store.clone(),
        lease,
        hosts: Arc::new(able),
        counters: Arc::clone(counters),
        limits: settings.limits,
    };
    let descriptor = root.descriptor.clone();
    fetch_all(&downloads, root, pull).await?;
    unpack(downloads, descriptor, &name, pull).await
}

/// A session with each host that may have the image.
async fn sessions(
    name: &str,
    pull: &ImagePull,
    settings: &Arc<RegistrySettings>,
) -> Result<Vec<HostSession>, RegistryError> {
    let repository = repository_name(name);
    let (registry, path) = registry_and_path(&repository);
    let (registry, directories) = (registry.to_owned(), settings.hosts_directories.clone());
    let hosts = on_disk(move || hosts_of(&registry, &directories)).await?;
    let mut sessions = Vec::new();
    for host in hosts {
        sessions.push(HostSession::open(host, path, &pull.credentials, settings).await?);
    }
    Ok(sessions)
}

/// The manifest or index that the name means, of the first host that has it.
async fn resolve(
    name: &str,
    image: &str,
    hosts: &[HostSession],
) -> Result<FetchedManifest, RegistryError> {
    let digest = name.split_once('@').map(|(_, digest)| digest);
    let tag = name.rsplit_once(':').map_or("latest", |(_, tag)| tag);
    let mut failures = Vec::new();
    for session in hosts {
        let abilities = session.host.abilities;
        let can = if digest.is_some() { abilities.pull } else { abilities.resolve };
        if !can {
            continue;
        }
        match session.manifest(digest.unwrap_or(tag)).await {
            Ok(found) => return Ok(found),
            Err(error) => failures.push(error),
        }
    }
    Err(RegistryError::AllHosts { image: image.to_owned(), failures })
}

/// Brings all blobs of an image into the store, as far as its layers are not unpacked already.
async fn fetch_all(
    downloads: &Downloads,
    root: FetchedManifest,
    pull: &ImagePull,
) -> Result<(), RegistryError> {
    let mut at = root;
    for _ in 0..MAX_DEPTH {
        let (bytes, descriptor) = (at.bytes.clone(), at.descriptor.clone());
        keep(downloads, &descriptor, at.bytes).await?;
        let malformed = |why| RegistryError::Malformed {
            url: format!("{} ({})", pull.image, descriptor.digest),
            why,
        };
        match ManifestContent::parse(&bytes, &pull.platform).map_err(malformed)? {
            ManifestContent::Index(next) => at = fetch_manifest(downloads, next).await?,
            ManifestContent::Image { config, layers } => {
                return fetch_image(downloads, config, layers, pull).await;
            }
        }
    }
    let (url, why) = (pull.image.clone(), "its indexes are nested too deep".to_owned());
    Err(RegistryError::Malformed { url, why })
}

async fn keep(
    downloads: &Downloads,
    descriptor: &Descriptor,
    bytes: Vec<u8>,
) -> Result<(), RegistryError> {
    let (store, lease) = (downloads.store.clone(), Arc::clone(&downloads.lease));
    let descriptor = descriptor.clone();
    on_disk(move || Ok(store.add_blob(&lease, &descriptor, bytes.as_slice())?)).await
}

/// A manifest that an index names, of the first host that has it.
async fn fetch_manifest(
    downloads: &Downloads,
    wanted: Descriptor,
) -> Result<FetchedManifest, RegistryError> {
    let mut failures = Vec::new();
    for session in downloads.hosts.iter() {
        match session.manifest(&wanted.digest.to_string()).await {
            Ok(found) => return Ok(found),
            Err(error) => failures.push(error),
        }
    }
    Err(RegistryError::AllHosts { image: wanted.digest.to_string(), failures })
}

async fn fetch_image(
    downloads: &Downloads,
    config: Descriptor,
    layers: Vec<Descriptor>,
    pull: &ImagePull,
) -> Result<(), RegistryError> {
    if config.size > MAX_CONFIG {
        let why = format!("its configuration has {} bytes", config.size);
        return Err(RegistryError::Malformed { url: pull.image.clone(), why });
    }
    let counters = &downloads.counters;
    counters.layers.store(layers.len() as u64, Ordering::Relaxed);
    downloads.fetch(&config).await?;
    let missing = missing_layers(downloads, config.digest, layers).await?;
    let total = missing.iter().map(|layer| layer.size).sum::<u64>() + config.size;
    counters.total.store(total, Ordering::Relaxed);
    let fetches = missing.into_iter().map(|layer| {
        let downloads = downloads.clone();
        async move { downloads.fetch(&layer).await }
    });
    futures::stream::iter(fetches).buffer_unordered(PARALLEL).try_collect::<Vec<()>>().await?;
    Ok(())
}

/// The layers that are not unpacked, each once.
async fn missing_layers(
    downloads: &Downloads,
    config: Digest,
    layers: Vec<Descriptor>,
) -> Result<Vec<Descriptor>, RegistryError> {
    let (store, lease) = (downloads.store.clone(), Arc::clone(&downloads.lease));
    on_disk(move || {
        let config = store.read_blob(&config, MAX_CONFIG)?;
        let mut missing = store.layers_to_fetch(&lease, &config, &layers)?;
        missing.sort_by_key(|layer| layer.digest);
        missing.dedup_by_key(|layer| layer.digest);
        Ok(missing)
    })
    .await
}

/// Unpacks what is downloaded, and adds the image with its name.
async fn unpack(
    downloads: Downloads,
    root: Descriptor,
    name: &str,
    pull: &ImagePull,
) -> Result<ImportedImage, RegistryError> {
    let Downloads { store, lease, counters, .. } = downloads;
    let pruned = store.clone();
    let (names, platform) = (vec![name.to_owned()], pull.platform.clone());
    let work = move || -> Result<ImportedImage, RegistryError> {
        let on_progress = &mut |progress: ImportProgress<'_>| {
            if matches!(progress, ImportProgress::Unpacked { .. } | ImportProgress::Present { .. })
            {
                counters.unpacked.fetch_add(1, Ordering::Relaxed);
            }
        };
        let added = store.add_image(&mut &store, &root, &names, &platform, on_progress)?;
        drop::<Arc<Lease>>(lease);
        Ok(added)
    };
    let added = blocking::run(work, |error| RegistryError::Panicked(error.to_string())).await?;
    // What the layers were unpacked from is not needed any more.
    on_disk(move || Ok(pruned.prune().map(drop)?)).await?;
    Ok(added)
}
