//! Hooks of resource managers around the lives of containers that a pod worker starts and stops in the simulated world.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use oarsman_sync::Guarded;

use super::*;
use crate::testing::{TestNode, TestWorker, deleted, pod, seconds};

type Log = Arc<Guarded<Vec<String>>>;

/// Records its calls. Refuses in one of the hooks a given number of times.
struct RecordingManager {
    name: &'static str,
    log: Log,
    refuses: Guarded<(&'static str, u32)>,
}

impl RecordingManager {
    fn called(&self, hook: &'static str) -> Result<(), ContainerRefused> {
        self.log.lock().push(format!("{} {hook}", self.name));
        let (refuses, left) = &mut *self.refuses.lock();
        if *refuses != hook || *left == 0 {
            return Ok(());
        }
        *left -= 1;
        Err(ContainerRefused { manager: self.name, why: "no cpu is free".to_owned() })
    }
}

#[async_trait]
impl ContainerLifecycle for RecordingManager {
    async fn pre_create(
        &self,
        container: &ContainerRef<'_>,
        request: &mut CreateContainerRequest,
    ) -> Result<(), ContainerRefused> {
        assert_eq!(container.id, None);
        let config = request.config.get_or_insert_default();
        config.annotations.insert("manager".to_owned(), self.name.to_owned());
        self.called("pre_create")
    }

    async fn pre_start(&self, container: &ContainerRef<'_>) -> Result<(), ContainerRefused> {
        assert!(container.id.is_some());
        self.called("pre_start")
    }

    async fn pre_stop(&self, _: &ContainerRef<'_>) {
        self.called("pre_stop").ok();
    }

    async fn post_stop(&self, container: &ContainerRef<'_>) {
        assert_eq!((container.pod.as_str(), container.name), ("uid-web", "main"));
        self.called("post_stop").ok();
    }
}

/// Managers of these names that log to one place; the last refuses.
fn managers(names: &[&'static str], refuses: (&'static str, u32)) -> (Log, ContainerHooks) {
    let log = Log::default();
    let manager = |(index, name): (usize, &&'static str)| {
        let refuses = if index + 1 == names.len() { refuses } else { ("", 0) };
        let manager =
            RecordingManager { name, log: Arc::clone(&log), refuses: Guarded::new(refuses) };
        Arc::new(manager) as Arc<dyn ContainerLifecycle>
    };
    let hooks = ContainerHooks::new(names.iter().enumerate().map(manager).collect());
    (log, hooks)
}

fn start(hooks: ContainerHooks, pod: &Arc<Pod>) -> (TestNode, TestWorker) {
    let test = TestNode::with(|node| node.container_lifecycle = hooks);
    let worker = test.start(pod);
    (test, worker)
}

/// What was logged since the last call.
fn new_entries(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock())
}

#[tokio::test(start_paused = true)]
async fn every_manager_is_called_once_before_and_after_start_and_stop_in_the_given_order() {
    let (log, hooks) = managers(&["cpu", "memory"], ("", 0));
    let pod = Arc::new(pod("web", &["forever"]));
    let (test, worker) = start(hooks, &pod);
    seconds(5).await;
    assert_eq!(
        new_entries(&log),
        ["cpu pre_create", "memory pre_create", "cpu pre_start", "memory pre_start"]
    );
    let containers = oarsman_cri::Runtime::list_containers(&test.world.runtime, None).await;
    let annotation = containers.unwrap()[0].annotations.get("manager").cloned();
    assert_eq!(annotation.as_deref(), Some("memory"), "what a hook changes is created");
    worker.mailbox.update_pod(deleted(&pod, 5));
    seconds(10).await;
    worker.mailbox.remove_pod();
    seconds(10).await;
    assert!(worker.task.is_finished());
    assert_eq!(
        new_entries(&log),
        ["cpu pre_stop", "memory pre_stop", "cpu post_stop", "memory post_stop"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_the_waiting_reason_until_the_next_try() {
    for (hook, reason) in
        [("pre_create", "CreateContainerConfigError"), ("pre_start", "RunContainerError")]
    {
        let (log, hooks) = managers(&["cpu", "memory"], (hook, 1));
        let (test, _worker) = start(hooks, &Arc::new(pod("web", &["forever"])));
        seconds(5).await;
        let status = test.report(&"uid-web".into()).pod.status.unwrap_or_default();
        let container = status.container_statuses.unwrap_or_default().remove(0);
        let waiting = container.state.and_then(|state| state.waiting).unwrap_or_default();
        assert_eq!(waiting.reason.as_deref(), Some(reason), "{hook}");
        assert_eq!(waiting.message.as_deref(), Some("memory: no cpu is free"), "{hook}");
        assert_eq!(test.starts(&"uid-web".into()).len(), 0, "{hook}");
        seconds(20).await;
        assert_eq!(test.starts(&"uid-web".into()).len(), 1, "{hook}");
        let tries = new_entries(&log).into_iter().filter(|call| call.ends_with(hook)).count();
        assert_eq!(tries, 4, "{hook}: both managers, twice");
    }
}

#[tokio::test(start_paused = true)]
async fn post_stop_is_called_once_for_a_container_that_ended_by_itself() {
    let (log, hooks) = managers(&["cpu"], ("", 0));
    let mut once = pod("web", &["sleep:5s", "exit:0"]);
    once.spec.get_or_insert_default().restart_policy = Some("Never".to_owned());
    let (_test, worker) = start(hooks, &Arc::new(once));
    seconds(10).await;
    for _ in 0..3 {
        worker.mailbox.hint(oarsman_core::lifecycle::Hint::Runtime);
        seconds(5).await;
    }
    assert_eq!(new_entries(&log), ["cpu pre_create", "cpu pre_start", "cpu post_stop"]);
}

#[tokio::test(start_paused = true)]
async fn a_restarted_agent_calls_post_stop_for_containers_that_ended_before() {
    // The script, and what the next agent calls: nothing for a container that runs on.
    for (script, calls) in
        [(&["sleep:8s", "exit:0"][..], &["cpu post_stop"][..]), (&["forever"], &[])]
    {
        let mut once = pod("web", script);
        once.spec.get_or_insert_default().restart_policy = Some("Never".to_owned());
        let once = Arc::new(once);
        let (test, worker) = start(ContainerHooks::default(), &once);
        seconds(5).await;
        worker.task.abort();
        seconds(5).await;
        let (log, hooks) = managers(&["cpu"], ("", 0));
        let next =
            TestNode::with_incarnation(test.world, 2, |node| node.container_lifecycle = hooks);
        let _worker = next.start(&once);
        seconds(5).await;
        assert_eq!(new_entries(&log), calls, "{script:?}");
    }
}
