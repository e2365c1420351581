//! Certificate signing requests: create, wait for approval, store the certificate.

use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use kube::api::PostParams;
use oarsman_clock::Clock;
use oarsman_core::backoff::{Backoff, Failures};
use oarsman_core::certificates::{Answer, Wanted, answer};
use tokio::time::{Instant, sleep, timeout};

use super::key::Request;
use super::store::{Store, cannot_sign};
use super::{CredentialsError, Result, certificate};

/// The deadline of one call.
const LONGEST_CALL: Duration = Duration::from_secs(20);
/// The poll interval grows: controllers approve at once, people do not.
const LOOKS: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));

/// Requests a certificate, waits for it, and stores it as the current one.
pub(super) async fn obtain(
    client: &kube::Client,
    store: &Store,
    wanted: &Wanted,
    patience: Duration,
    clock: &dyn Clock,
) -> Result<()> {
    let key = store.waiting_key()?;
    let request = key.request(wanted).map_err(|error| cannot_sign(&error))?;
    let signed = sign(client, wanted, &request, patience).await;
    if matches!(signed, Err(CredentialsError::Denied { .. })) {
        // The same request would be denied for ever.
        store.forget_waiting_key()?;
    }
    let signed = signed?;
    let now = clock.wall();
    let is_over = certificate::read(&signed).is_ok_and(|found| found.not_after <= now);
    if !is_over {
        store.write(&signed, &key, now)?;
    }
    store.forget_waiting_key()?;
    match is_over {
        false => Ok(()),
        true => Err(CredentialsError::Server {
            what: format!("certificate signing request {}", request.name),
            why: "its certificate has expired already; is this machine's clock right?".to_owned(),
        }),
    }
}

async fn sign(
    client: &kube::Client,
    wanted: &Wanted,
    request: &Request,
    patience: Duration,
) -> Result<Vec<u8>> {
    let api: Api<CertificateSigningRequest> = Api::all(client.clone());
    let object = wanted.request(&request.name, request.text.clone().into_bytes());
    ask(&api, &object, request).await?;
    let begin = Instant::now();
    tracing::info!(
        object = request.name,
        detail = format!("kubectl certificate approve {}", request.name),
        "certificate signing request waits for approval"
    );
    let mut looks = Failures::new(LOOKS);
    let mut trouble = None;
    while begin.elapsed() < patience {
        match look(&api, request).await {
            Ok(Answer::Signed(text)) => return Ok(text),
            Ok(Answer::Denied(why) | Answer::Failed(why)) => {
                return Err(CredentialsError::Denied { name: request.name.clone(), why });
            }
            Ok(Answer::Waiting) => trouble = None,
            Err(error @ CredentialsError::Gone { .. }) => return Err(error),
            Err(error) => trouble = Some(error),
        }
        sleep(looks.next_wait()).await;
    }
    let late = || CredentialsError::Unanswered { name: request.name.clone(), patience };
    Err(trouble.unwrap_or_else(late))
}

/// Creates the request, unless it exists already.
async fn ask(
    api: &Api<CertificateSigningRequest>,
    object: &CertificateSigningRequest,
    request: &Request,
) -> Result<()> {
    let params = PostParams::default();
    match timeout(LONGEST_CALL, api.create(&params, object)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(kube::Error::Api(status))) if status.code == 409 => Ok(()),
        Ok(Err(error)) => Err(server(request, &error.to_string())),
        Err(_) => Err(server(request, "it was not answered in time")),
    }
}

async fn look(api: &Api<CertificateSigningRequest>, request: &Request) -> Result<Answer> {
    match timeout(LONGEST_CALL, api.get(&request.name)).await {
        Ok(Ok(found)) => Ok(answer(&found)),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => {
            Err(CredentialsError::Gone { name: request.name.clone() })
        }
        Ok(Err(error)) => Err(server(request, &error.to_string())),
        Err(_) => Err(server(request, "it was not answered in time")),
    }
}

fn server(request: &Request, why: &str) -> CredentialsError {
    let what = format!("certificate signing request {}", request.name);
    CredentialsError::Server { what, why: why.to_owned() }
}
