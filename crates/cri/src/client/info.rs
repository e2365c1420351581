//! Details of the runtime and its objects: the verbose forms of the status calls.

use std::collections::BTreeMap;

use oarsman_cri_types::v1::{
    ContainerStatusRequest, ImageSpec, ImageStatusRequest, PodSandboxStatusRequest, StatusRequest,
};

use super::RemoteRuntime;
use super::pending_call::send;
use crate::deadline::DeadlineClass;
use crate::{InfoTarget, Result};

type Info = BTreeMap<String, String>;

impl RemoteRuntime {
    pub(super) async fn details(&self, about: InfoTarget<'_>) -> Result<Info> {
        match about {
            InfoTarget::Runtime => self.runtime_details().await,
            InfoTarget::Sandbox(id) => self.sandbox_details(id).await,
            InfoTarget::Container(id) => self.container_details(id).await,
            InfoTarget::Image(reference) => self.image_details(reference).await,
        }
    }

    async fn runtime_details(&self) -> Result<Info> {
        let attempt = self.attempt("Status", "", DeadlineClass::Ordinary);
        let message = StatusRequest { verbose: true };
        let answer = send!(self.runtime.status(message), attempt)?;
        Ok(answer.info)
    }

    async fn sandbox_details(&self, id: &str) -> Result<Info> {
        let attempt = self.attempt("PodSandboxStatus", id, DeadlineClass::Ordinary);
        let message = PodSandboxStatusRequest { pod_sandbox_id: id.to_owned(), verbose: true };
        let answer = send!(self.runtime.pod_sandbox_status(message), attempt)?;
        Ok(answer.info)
    }

    async fn container_details(&self, id: &str) -> Result<Info> {
        let attempt = self.attempt("ContainerStatus", id, DeadlineClass::Ordinary);
        let message = ContainerStatusRequest { container_id: id.to_owned(), verbose: true };
        let answer = send!(self.runtime.container_status(message), attempt)?;
        Ok(answer.info)
    }

    async fn image_details(&self, reference: &str) -> Result<Info> {
        let attempt = self.attempt("ImageStatus", reference, DeadlineClass::Ordinary);
        let image = ImageSpec { image: reference.to_owned(), ..ImageSpec::default() };
        let message = ImageStatusRequest { image: Some(image), verbose: true };
        let answer = send!(self.images.image_status(message), attempt)?;
        Ok(answer.info)
    }
}
