//! Details for people: the verbose forms of the status calls.

use std::collections::BTreeMap;

use oarsman_cri_types::v1::{
    ContainerStatusRequest, ImageSpec, ImageStatusRequest, PodSandboxStatusRequest, StatusRequest,
};

use super::Client;
use super::attempt::send;
use crate::deadline::Effort;
use crate::{Result, Subject};

type Info = BTreeMap<String, String>;

impl Client {
    pub(super) async fn details(&self, about: Subject<'_>) -> Result<Info> {
        match about {
            Subject::Runtime => self.runtime_details().await,
            Subject::Sandbox(id) => self.sandbox_details(id).await,
            Subject::Container(id) => self.container_details(id).await,
            Subject::Image(reference) => self.image_details(reference).await,
        }
    }

    async fn runtime_details(&self) -> Result<Info> {
        let attempt = self.attempt("Status", "", Effort::Ordinary);
        let message = StatusRequest { verbose: true };
        let answer = send!(self.runtime.status(message), attempt)?;
        Ok(answer.info)
    }

    async fn sandbox_details(&self, id: &str) -> Result<Info> {
        let attempt = self.attempt("PodSandboxStatus", id, Effort::Ordinary);
        let message = PodSandboxStatusRequest { pod_sandbox_id: id.to_owned(), verbose: true };
        let answer = send!(self.runtime.pod_sandbox_status(message), attempt)?;
        Ok(answer.info)
    }

    async fn container_details(&self, id: &str) -> Result<Info> {
        let attempt = self.attempt("ContainerStatus", id, Effort::Ordinary);
        let message = ContainerStatusRequest { container_id: id.to_owned(), verbose: true };
        let answer = send!(self.runtime.container_status(message), attempt)?;
        Ok(answer.info)
    }

    async fn image_details(&self, reference: &str) -> Result<Info> {
        let attempt = self.attempt("ImageStatus", reference, Effort::Ordinary);
        let image = ImageSpec { image: reference.to_owned(), ..ImageSpec::default() };
        let message = ImageStatusRequest { image: Some(image), verbose: true };
        let answer = send!(self.images.image_status(message), attempt)?;
        Ok(answer.info)
    }
}
