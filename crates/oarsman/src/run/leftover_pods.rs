//! Pods of this root directory that an earlier run has left on another runtime of this machine: this run does not see them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use oarsman_core::labels::ROOT_ANNOTATION;
use oarsman_cri::{Deadlines, RemoteRuntime, Runtime};
use oarsman_cri_types::v1::PodSandbox;
use oarsman_host::blocking;
use oarsman_runtime::EmbeddedRuntimeSettings;
use tokio::time::timeout;

use crate::runtime_endpoint::{RuntimeEndpoint, all_remote, embedded_directory};
use crate::settings::AgentSettings;

/// What does not answer by then is left out: this is only told to be helpful.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// A line for every other runtime that has such pods.
pub(super) async fn find(settings: &AgentSettings) -> Vec<String> {
    let (ours, root) = (settings.runtime_endpoint.clone(), settings.root.clone());
    let mark = root.display().to_string();
    let others = blocking::run(move || Ok::<_, anyhow::Error>(others(&ours, &root)), Into::into);
    let found = timeout(MAX_WAIT, async {
        let (embedded, others) = others.await?;
        let mut lines = Vec::from_iter(embedded);
        for endpoint in others {
            lines.extend(on_remote(&endpoint, &mark).await?);
        }
        Ok::<_, anyhow::Error>(lines)
    });
    match found.await {
        Ok(Ok(lines)) => lines,
        Ok(Err(error)) => {
            tracing::debug!(error = format!("{error:#}"), "pods on other runtimes not looked for");
            Vec::new()
        }
        Err(_) => Vec::new(),
    }
}

/// What is told of the embedded runtime, and the other runtimes that listen. Blocks.
fn others(ours: &RuntimeEndpoint, root: &Path) -> (Option<String>, Vec<RuntimeEndpoint>) {
    let remote = all_remote().filter(|other| other.socket() != ours.socket());
    let embedded = match ours {
        RuntimeEndpoint::Embedded => None,
        RuntimeEndpoint::Socket(_) => on_embedded(root),
    };
    (embedded, remote.collect())
}

fn on_embedded(root: &Path) -> Option<String> {
    let sandboxes = EmbeddedRuntimeSettings::sandbox_directory(&embedded_directory(root));
    let count = std::fs::read_dir(sandboxes).ok()?.count();
    (count > 0).then(|| line(&RuntimeEndpoint::Embedded, &format!("{count} pods")))
}

async fn on_remote(endpoint: &RuntimeEndpoint, mark: &str) -> Result<Option<String>> {
    let client = RemoteRuntime::new(&endpoint.to_string(), None, Deadlines { request: MAX_WAIT });
    let client = client.context("not the address of a runtime")?;
    let sandboxes = client.list_pod_sandboxes(None).await?;
    let names = names_of(&sandboxes, mark);
    Ok((!names.is_empty()).then(|| line(endpoint, &names.join(", "))))
}

/// The names of the pods with the mark of our root directory, each once.
fn names_of(sandboxes: &[PodSandbox], mark: &str) -> Vec<String> {
    let ours = sandboxes
        .iter()
        .filter(|it| it.annotations.get(ROOT_ANNOTATION).is_some_and(|it| it == mark));
    let mut names: Vec<String> =
        ours.filter_map(|it| Some(it.metadata.as_ref()?.name.clone())).collect();
    names.sort();
    names.dedup();
    names
}

fn line(endpoint: &RuntimeEndpoint, pods: &str) -> String {
    format!(
        "an earlier run has left pods on the runtime {endpoint}: {pods}; `oarsman run --runtime {endpoint} FILE`, ended with Ctrl-C, removes them"
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use oarsman_cri_types::v1::PodSandboxMetadata;

    use super::*;

    #[test]
    fn only_pods_of_the_same_root_directory_are_named() {
        let sandbox = |name: &str, mark: Option<&str>| PodSandbox {
            metadata: Some(PodSandboxMetadata { name: name.to_owned(), ..Default::default() }),
            annotations: mark
                .map(|mark| (ROOT_ANNOTATION.to_owned(), mark.to_owned()))
                .into_iter()
                .collect(),
            ..PodSandbox::default()
        };
        let sandboxes = [
            sandbox("web", Some("/ours")),
            sandbox("foreign", None),
            sandbox("other", Some("/elsewhere")),
            sandbox("web", Some("/ours")),
            sandbox("db", Some("/ours")),
        ];
        assert_eq!(names_of(&sandboxes, "/ours"), ["db", "web"]);
    }

    #[test]
    fn pods_that_are_left_on_the_embedded_runtime_are_counted() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(on_embedded(root.path()), None);
        let sandboxes =
            EmbeddedRuntimeSettings::sandbox_directory(&embedded_directory(root.path()));
        fs::create_dir_all(sandboxes.join("a")).unwrap();
        let said = on_embedded(root.path()).unwrap();
        assert!(said.contains("on the runtime embedded: 1 pods"), "{said}");
        assert!(said.contains("--runtime embedded FILE"), "{said}");
    }
}
