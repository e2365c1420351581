//! Certificate signing requests: create, wait for approval, store the certificate.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use kube::api::PostParams;
use oarsman_clock::Clock;
use oarsman_core::backoff::{Backoff, Failures};
use oarsman_core::certificates::{CertificateTemplate, CsrOutcome, csr_outcome};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::sign::CertifiedKey;

use super::certificate_store::{CertificateStore, key_error};
use super::key::{Key, SigningRequest};
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
    let (signed, now) = (signed?, clock.wall());
    let checked = check_certificate(&signed, &key, template, now);
    if checked.is_ok() {
        store.write(&signed, &key, now)?;
    }
    // The same request would have the same answer.
    store.remove_pending_key()?;
    checked.map_err(|why| server(&request, &why))
}

/// Checks that a certificate is the one that was asked for: one that is not would take the place of one that can be used.
fn check_certificate(
    signed: &[u8],
    key: &Key,
    template: &CertificateTemplate,
    now: Timestamp,
) -> std::result::Result<(), String> {
    let found = certificate::read(signed)?;
    if found.not_after <= now {
        let why = "its certificate has expired already; is this machine's clock right?";
        return Err(why.to_owned());
    }
    if found.subject != template.subject {
        return Err(format!("its certificate is one of {:?}", found.subject.common_name));
    }
    let unfit = |error: &dyn std::error::Error| format!("its certificate cannot be used: {error}");
    let chain: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(signed).collect();
    let chain = chain.map_err(|error| unfit(&error))?;
    let key =
        PrivateKeyDer::from_pem_slice(key.text().as_bytes()).map_err(|error| unfit(&error))?;
    let pair = CertifiedKey::from_der(chain, key, &ring::default_provider());
    pair.map(drop).map_err(|error| unfit(&error))
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

#[cfg(test)]
mod tests {
    use super::super::tests::authority::Authority;
    use super::*;

    #[test]
    fn only_the_certificate_that_was_asked_for_is_taken() {
        let authority = Authority::new();
        let (certificate, key) = authority.client("a", 100);
        let (key, other) = (Key::read(&key).unwrap(), Key::generate().unwrap());
        let (a, b) = (CertificateTemplate::client("a"), CertificateTemplate::client("b"));
        let now = Timestamp::now();
        let late = now.checked_add(Duration::from_secs(200)).unwrap();
        let text = certificate.as_str();
        let half = &text[..text.len() / 2];
        let rows = [
            (text, &key, &a, now, None),
            (text, &key, &a, late, Some("expired already")),
            (text, &key, &b, now, Some("one of \"system:node:a\"")),
            (text, &other, &a, now, Some("cannot be used")),
            (half, &key, &a, now, Some("")),
            ("garbage", &key, &a, now, Some("no certificate")),
        ];
        for (text, key, template, now, want) in rows {
            let checked = check_certificate(text.as_bytes(), key, template, now);
            match want {
                None => checked.unwrap(),
                Some(want) => assert!(checked.clone().unwrap_err().contains(want), "{checked:?}"),
            }
        }
    }
}
