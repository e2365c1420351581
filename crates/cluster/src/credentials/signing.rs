//! Certificate signing requests: create, wait for approval, store the certificate.

use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use kube::api::PostParams;
use oarsman_clock::Clock;
use oarsman_core::backoff::{Backoff, Failures};
use oarsman_core::certificates::{CertificateTemplate, CsrOutcome, csr_outcome};
use tokio::time::{Instant, sleep, timeout};

use super::certificate_store::{CertificateStore, key_error};
use super::key::SigningRequest;
use super::{CredentialsError, Result, certificate};

/// The deadline of one call.
const LONGEST_CALL: Duration = Duration::from_secs(20);
/// The poll interval grows: controllers approve at once, people do not.
const POLL_BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));

/// Requests a certificate, waits for it, and stores it as the current one.
pub(super) async fn request_certificate(
    client: &kube::Client,
    store: &CertificateStore,
    template: &CertificateTemplate,
    patience: Duration,
    clock: &dyn Clock,
) -> Result<()> {
    let key = store.pending_key()?;
    let request = key.request(template).map_err(|error| key_error(&error))?;
    let signed = wait_for_signature(client, template, &request, patience).await;
    if matches!(signed, Err(CredentialsError::Denied { .. })) {
        // The same request would be denied for ever.
        store.remove_pending_key()?;
    }
    let signed = signed?;
    let now = clock.wall();
    let is_over = certificate::read(&signed).is_ok_and(|found| found.not_after <= now);
    if !is_over {
        store.write(&signed, &key, now)?;
    }
    store.remove_pending_key()?;
    match is_over {
        false => Ok(()),
        true => Err(CredentialsError::Server {
            what: format!("certificate signing request {}", request.name),
            why: "its certificate has expired already; is this machine's clock right?".to_owned(),
        }),
    }
}

async fn wait_for_signature(
    client: &kube::Client,
    template: &CertificateTemplate,
    request: &SigningRequest,
    patience: Duration,
) -> Result<Vec<u8>> {
    let api: Api<CertificateSigningRequest> = Api::all(client.clone());
    let object = template.request(&request.name, request.text.clone().into_bytes());
    create_signing_request(&api, &object, request).await?;
    let begin = Instant::now();
    tracing::info!(
        object = request.name,
        detail = format!("kubectl certificate approve {}", request.name),
        "certificate signing request waits for approval"
    );
    let mut polls = Failures::new(POLL_BACKOFF);
    let mut trouble = None;
    while begin.elapsed() < patience {
        match get_answer(&api, request).await {
            Ok(CsrOutcome::Signed(text)) => return Ok(text),
            Ok(CsrOutcome::Denied(why) | CsrOutcome::Failed(why)) => {
                return Err(CredentialsError::Denied { name: request.name.clone(), why });
            }
            Ok(CsrOutcome::Waiting) => trouble = None,
            Err(error @ CredentialsError::Gone { .. }) => return Err(error),
            Err(error) => trouble = Some(error),
        }
        sleep(polls.next_wait()).await;
    }
    let late = || CredentialsError::Unanswered { name: request.name.clone(), patience };
    Err(trouble.unwrap_or_else(late))
}

/// Creates the request, unless it exists already.
async fn create_signing_request(
    api: &Api<CertificateSigningRequest>,
    object: &CertificateSigningRequest,
    request: &SigningRequest,
) -> Result<()> {
    let params = PostParams::default();
    match timeout(LONGEST_CALL, api.create(&params, object)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(kube::Error::Api(status))) if status.code == 409 => Ok(()),
        Ok(Err(error)) => Err(server(request, &error.to_string())),
        Err(_) => Err(server(request, "it was not answered in time")),
    }
}

async fn get_answer(
    api: &Api<CertificateSigningRequest>,
    request: &SigningRequest,
) -> Result<CsrOutcome> {
    match timeout(LONGEST_CALL, api.get(&request.name)).await {
        Ok(Ok(found)) => Ok(csr_outcome(&found)),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => {
            Err(CredentialsError::Gone { name: request.name.clone() })
        }
        Ok(Err(error)) => Err(server(request, &error.to_string())),
        Err(_) => Err(server(request, "it was not answered in time")),
    }
}

fn server(request: &SigningRequest, why: &str) -> CredentialsError {
    let what = format!("certificate signing request {}", request.name);
    CredentialsError::Server { what, why: why.to_owned() }
}
