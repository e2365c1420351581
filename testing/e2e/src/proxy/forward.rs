//! The runtime of the proxy: each call is recorded, meets its rule, and is forwarded.
//!
//! The layer of the seam forwards all calls through [`CallRecorder`]. Calls are written here only where the proxy has to read the request or
//! the answer: to tell the pod of a call that names no id, and to learn which pod an id belongs to.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use oarsman_cri::{CriError, Result, Runtime, RuntimeLayer};
use oarsman_cri_types::v1 as cri;
use oarsman_seam::{Call, CallFault, Middleware, SeamError};

use super::calls::CallJournal;
use super::rules::RuleSet;
use super::subject::{CallSubject, PodIndex};

pub(super) struct ForwardingRuntime {
    runtime: Arc<dyn Runtime>,
    recorder: CallRecorder,
}

/// Records every call and applies the rule that fits it.
#[derive(Default)]
pub(super) struct CallRecorder {
    journal: CallJournal,
    pod_index: PodIndex,
    rules: Arc<RuleSet>,
}

impl ForwardingRuntime {
    pub(super) fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self { runtime, recorder: CallRecorder::default() }
    }

    pub(super) fn journal(&self) -> &CallJournal {
        &self.recorder.journal
    }

    pub(super) fn rules(&self) -> &Arc<RuleSet> {
        &self.recorder.rules
    }

    fn pod_index(&self) -> &PodIndex {
        &self.recorder.pod_index
    }
}

impl CallRecorder {
    async fn record<T, E>(
        &self,
        name: &'static str,
        subject: CallSubject,
        answer: impl Future<Output = std::result::Result<T, E>> + Send,
    ) -> std::result::Result<T, E>
    where
        T: Send,
        E: SeamError,
    {
        let number = self.journal.begin(name, &subject);
        let outcome = self.apply_rule(name, &subject, answer).await;
        self.journal.end(number, outcome.as_ref().err().and_then(as_cri_error));
        outcome
    }

    async fn apply_rule<T, E>(
        &self,
        name: &'static str,
        subject: &CallSubject,
        answer: impl Future<Output = std::result::Result<T, E>> + Send,
    ) -> std::result::Result<T, E>
    where
        T: Send,
        E: SeamError,
    {
        let Some(rule) = self.rules.find(name, subject) else { return answer.await };
        let fail = |error| -> E { into_seam_error(name, error) };
        rule.before(name).await.map_err(fail)?;
        let outcome = answer.await;
        rule.after(name).await.map_err(fail)?;
        outcome
    }
}

impl Middleware for CallRecorder {
    async fn around<T, E>(
        &self,
        call: Call,
        answer: impl Future<Output = std::result::Result<T, E>> + Send + 'static,
    ) -> std::result::Result<T, E>
    where
        T: Send + 'static,
        E: SeamError,
    {
        self.record(call.name, self.pod_index.of_id(&call.object), answer).await
    }
}

/// A middleware does not know which seam it is used for. This one is used for `Runtime` only, whose error it is.
fn as_cri_error<E: SeamError>(error: &E) -> Option<&CriError> {
    let error: &dyn Any = error;
    error.downcast_ref()
}

/// The same the other way round: a rule fails a call with a code of its own, which no [`CallFault`] has.
fn into_seam_error<E: SeamError>(name: &'static str, error: CriError) -> E {
    let mut error = Some(error);
    let any: &mut dyn Any = &mut error;
    let of_seam = any.downcast_mut::<Option<E>>().and_then(Option::take);
    let call = Call { name, object: String::new() };
    of_seam.unwrap_or_else(|| E::of_fault(&call, CallFault::Unknown))
}

#[async_trait]
impl RuntimeLayer for ForwardingRuntime {
    type Middleware = CallRecorder;

    fn inner(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }

    fn middleware(&self) -> &CallRecorder {
        &self.recorder
    }

    async fn run_pod_sandbox(&self, request: cri::RunPodSandboxRequest) -> Result<String> {
        let metadata = request.config.as_ref().and_then(|config| config.metadata.clone());
        let subject = PodIndex::of_config(request.config.as_ref());
        let answer = async {
            let id = self.runtime.run_pod_sandbox(request).await?;
            self.pod_index().learn_sandbox(&id, metadata.as_ref());
            Ok(id)
        };
        self.recorder.record("RunPodSandbox", subject, answer).await
    }

    async fn list_pod_sandboxes(
        &self,
        filter: Option<cri::PodSandboxFilter>,
    ) -> Result<Vec<cri::PodSandbox>> {
        let subject = self.pod_index().of_sandbox_filter(filter.as_ref());
        let answer = async {
            let sandboxes = self.runtime.list_pod_sandboxes(filter).await?;
            self.pod_index().learn_sandboxes(&sandboxes);
            Ok(sandboxes)
        };
        self.recorder.record("ListPodSandbox", subject, answer).await
    }

    async fn create_container(&self, request: cri::CreateContainerRequest) -> Result<String> {
        let sandbox = request.pod_sandbox_id.clone();
        let subject = self.pod_index().of_new_container(&request);
        let answer = async {
            let id = self.runtime.create_container(request).await?;
            self.pod_index().learn_container(&id, &sandbox);
            Ok(id)
        };
        self.recorder.record("CreateContainer", subject, answer).await
    }

    async fn list_containers(
        &self,
        filter: Option<cri::ContainerFilter>,
    ) -> Result<Vec<cri::Container>> {
        let subject = self.pod_index().of_container_filter(filter.as_ref());
        let answer = async {
            let containers = self.runtime.list_containers(filter).await?;
            self.pod_index().learn_containers(&containers);
            Ok(containers)
        };
        self.recorder.record("ListContainers", subject, answer).await
    }

    async fn list_container_stats(
        &self,
        filter: Option<cri::ContainerStatsFilter>,
    ) -> Result<Vec<cri::ContainerStats>> {
        let asked = filter.clone().unwrap_or_default();
        let ids = [asked.id.as_str(), &asked.pod_sandbox_id];
        let subject = self.pod_index().of_filter(&ids, &asked.label_selector);
        let answer = self.runtime.list_container_stats(filter);
        self.recorder.record("ListContainerStats", subject, answer).await
    }

    async fn list_pod_sandbox_stats(
        &self,
        filter: Option<cri::PodSandboxStatsFilter>,
    ) -> Result<Vec<cri::PodSandboxStats>> {
        let asked = filter.clone().unwrap_or_default();
        let subject = self.pod_index().of_filter(&[&asked.id], &asked.label_selector);
        let answer = self.runtime.list_pod_sandbox_stats(filter);
        self.recorder.record("ListPodSandboxStats", subject, answer).await
    }

    async fn pull_image(&self, request: cri::PullImageRequest) -> Result<String> {
        let image = request.image.as_ref().map_or("", |image| &image.image);
        let subject = PodIndex::of_config(request.sandbox_config.as_ref()).named(image);
        self.recorder.record("PullImage", subject, self.runtime.pull_image(request)).await
    }
}
