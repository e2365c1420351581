//! The identity at the start: that of the kubeconfig, a newer certificate of our own, or an earlier one where the newest is damaged.

use std::path::Path;

use jiff::Timestamp;
use oarsman_core::certificates::Certificate;

use super::super::certificate_store::CertificateStore;
use super::super::client_service::ClientService;
use super::super::kubeconfig::ApiAccess;
use super::super::{CredentialsConfig, Result, certificate};
use super::ActiveIdentity;

/// The identity at the start; none if it has to be requested first.
pub(super) async fn initial_identity(
    config: &CredentialsConfig,
    store: &CertificateStore,
    now: Timestamp,
) -> Result<Option<ActiveIdentity>> {
    let found = ApiAccess::read(&config.kubeconfig)
        .await
        .map(|access| choose_certificate(config, store, access, now));
    let Some(bootstrap) = &config.bootstrap else { return Ok(Some(ActiveIdentity::new(found?))) };
    let why = match &found {
        Err(_) if !config.kubeconfig.exists() => None,
        Err(error) => Some(error.to_string()),
        Ok(access) => access.unusable_reason(now).or_else(|| defect(access)),
    };
    let found = match (found, why) {
        (Ok(access), None) => return Ok(Some(ActiveIdentity::new(access))),
        (found, Some(error)) => {
            let path = config.kubeconfig.display();
            tracing::warn!(
                certificate = "client",
                %path,
                error,
                "kubeconfig not usable, a new client certificate is requested"
            );
            found
        }
        (found, None) => found,
    };
    // Errors in the bootstrap kubeconfig are reported at the start, unless there is a certificate of ours that is only damaged: a node
    // that has joined long ago has no bootstrap kubeconfig any more, and its pods must run all the same.
    match (ApiAccess::read(bootstrap).await, found) {
        (Ok(_), _) => Ok(None),
        (Err(_), Ok(access)) if is_ours(store, &access) => Ok(Some(ActiveIdentity::new(access))),
        (Err(error), _) => Err(error),
    }
}

/// Sets the identity on a client that has none yet. One of our own certificates that is damaged does not stop the start: requests fail
/// until the file is replaced.
pub(super) fn set_first_identity(
    client_service: &ClientService,
    store: &CertificateStore,
    access: &ApiAccess,
) -> Result<()> {
    match client_service.set_identity(access) {
        // Nothing is connected yet that would have to be closed.
        Ok(_) => Ok(()),
        Err(error) if is_ours(store, access) => {
            let path = store.current();
            tracing::error!(
                certificate = "client",
                path = %path.display(),
                %error,
                "client certificate damaged, no request is sent until it is replaced"
            );
            client_service.set_unavailable("our client certificate is damaged: replace its file");
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Whether an identity is the certificate that we keep ourselves.
fn is_ours(store: &CertificateStore, access: &ApiAccess) -> bool {
    let (files, current) = (access.files(), store.current());
    !files.is_empty() && files.iter().all(|file| *file == current)
}

/// Why no connection can be made with an identity.
fn defect(access: &ApiAccess) -> Option<String> {
    ClientService::default().set_identity(access).err().map(|error| error.to_string())
}

/// A certificate that we rotated ourselves if it is newer than the one in the kubeconfig; an earlier one if that is damaged.
fn choose_certificate(
    config: &CredentialsConfig,
    store: &CertificateStore,
    access: ApiAccess,
    now: Timestamp,
) -> ApiAccess {
    let renewed = renewed(config, store, &access);
    let preferred = renewed.as_ref().unwrap_or(&access);
    let Some(error) = defect(preferred) else { return renewed.unwrap_or(access) };
    let earlier = store.earlier().into_iter().map(|file| access.clone().with_identity(&file));
    let of_kubeconfig = renewed.is_some().then(|| access.clone());
    let usable =
        |access: &ApiAccess| access.unusable_reason(now).or_else(|| defect(access)).is_none();
    let Some(other) = of_kubeconfig.into_iter().chain(earlier).find(usable) else { return access };
    let path = store.current();
    tracing::error!(
        certificate = "client",
        path = %path.display(),
        error,
        "client certificate damaged, an earlier one is used"
    );
    other
}

/// Our own certificate, if it is newer than the one in the kubeconfig.
fn renewed(
    config: &CredentialsConfig,
    store: &CertificateStore,
    access: &ApiAccess,
) -> Option<ApiAccess> {
    let current = store.current();
    let (named, ours) = (access.certificate()?, read(&current)?);
    let is_ours =
        config.rotate && ours.subject == named.subject && ours.not_after > named.not_after;
    is_ours.then(|| access.clone().with_identity(&current))
}

fn read(file: &Path) -> Option<Certificate> {
    certificate::read(&std::fs::read(file).ok()?).ok()
}
