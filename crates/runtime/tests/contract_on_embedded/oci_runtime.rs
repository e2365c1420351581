//! Runtime handlers: the contract suite with containers that runc makes, and what is particular to handlers.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use oarsman_cri::{Result as CriResult, Runtime, RuntimeLayer};
use oarsman_cri_types::v1::RunPodSandboxRequest;
use oarsman_rig::parts::Parts;
use oarsman_runtime::OciHandler;
use oarsman_seam::{NoMiddleware, async_trait};
use tokio::runtime::Handle;

use crate::harness::Node;
use crate::reconnect::{pod_config, run_pod, trial};

/// The name of the handler.
pub(crate) const HANDLER: &str = "runc";
/// Cases with these words are about what only the default handler has.
const OURS_ALONE: &str = "user_namespace";

pub(crate) fn handler(parts: &Parts) -> OciHandler {
    OciHandler { name: HANDLER.to_owned(), program: parts.runc.join("runc") }
}

pub(crate) fn trials(node: &Node, tokio: &Handle) -> Result<Vec<Trial>> {
    let contract = tokio.block_on(node.contract_with_handler())?;
    let mut trials = oarsman_contract::trials(HANDLER, &contract, tokio);
    trials.retain(|trial| !trial.name().contains(OURS_ALONE));
    trials.push(trial(
        node,
        tokio,
        "handlers",
        "handlers_are_told_with_what_they_can_do_and_others_are_refused",
        told,
    ));
    Ok(trials)
}

/// A runtime all of whose sandboxes have the handler.
pub(crate) struct OnHandler {
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) none: NoMiddleware,
}

#[async_trait]
impl RuntimeLayer for OnHandler {
    type Middleware = NoMiddleware;

    fn inner(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }

    fn middleware(&self) -> &NoMiddleware {
        &self.none
    }

    async fn run_pod_sandbox(&self, request: RunPodSandboxRequest) -> CriResult<String> {
        let runtime_handler = HANDLER.to_owned();
        self.runtime.run_pod_sandbox(RunPodSandboxRequest { runtime_handler, ..request }).await
    }
}

async fn told(node: Node, name: &'static str) -> Result<()> {
    let runtime = node.open_with_handler(name).await?;
    let handlers = runtime.status().await?.runtime_handlers;
    let names: Vec<&str> = handlers.iter().map(|handler| handler.name.as_str()).collect();
    ensure!(names == ["", HANDLER], "{names:?}");
    let features = handlers[1].features.context("it tells its features")?;
    ensure!(features.recursive_read_only_mounts, "runc knows rro");
    ensure!(!features.user_namespaces, "they are for the default handler");
    let config = Some(pod_config());
    let runtime_handler = "kata".to_owned();
    let request = RunPodSandboxRequest { config, runtime_handler };
    let refused = runtime.run_pod_sandbox(request).await.unwrap_err().to_string();
    ensure!(refused.contains("no runtime for \"kata\" is configured"), "{refused}");
    // The name that was refused is free.
    let (pod, _) = run_pod(&runtime).await?;
    runtime.remove_pod_sandbox(&pod).await?;
    node.close_later(runtime);
    Ok(())
}
