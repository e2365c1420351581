//! A pod whose clean-up hangs for an hour: its worker handles events meanwhile, and other pods are not affected.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use oarsman_agent::{
    ActivePodsReader, AdmitAll, AgentCommand, AgentConfig, ContainerHooks, CoreDecisions, Inputs,
    NodeAddresses, ReportStore, SyncLoopMonitor,
};
use oarsman_core::explain::{ExplanationCause, explain};
use oarsman_core::lifecycle::{KillRequest, KillRequester};
use oarsman_core::pod::{HASH_ANNOTATION, PodExt, SOURCE_ANNOTATION};
use oarsman_core::report::{NodeReport, PodReport, StageReport};
use oarsman_seam::{Call, Middleware, SeamError, WithMiddleware};
use oarsman_sim::scenario::{container, pod};
use oarsman_world::faults::FaultPlan;
use oarsman_world::runtime::ImageSource;
use oarsman_world::{World, simulate};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

const HOUR: Duration = Duration::from_secs(3600);

/// Makes removals of pod directories hang while this is true.
struct HangingRemovals(watch::Receiver<bool>);

impl Middleware for HangingRemovals {
    async fn around<T, E>(
        &self,
        call: Call,
        answer: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: SeamError,
    {
        if call.name == "remove the directory of" {
            self.0.clone().wait_for(|hangs| !*hangs).await.ok();
        }
        answer.await
    }
}

/// A static pod of that name.
fn named(name: &str) -> Pod {
    let mut pod = pod(vec![], vec![container("main", &["forever"])], 2);
    let annotations = [(SOURCE_ANNOTATION, "file"), (HASH_ANNOTATION, name)];
    let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
    pod.metadata.annotations = Some(annotations.into());
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.uid = Some(format!("uid-{name}"));
    pod
}

/// An agent, its manifests, and the switch that makes removals hang.
struct CleanupFixture {
    world: World,
    files: watch::Sender<Vec<Pod>>,
    hangs: watch::Sender<bool>,
    report_store: Arc<ReportStore>,
    commands: mpsc::Sender<AgentCommand>,
}

impl CleanupFixture {
    fn new(world: World) -> Self {
        world.runtime.preload(ImageSource::script("world/script:1"));
        let (files, hangs) = (watch::Sender::new(Vec::new()), watch::Sender::new(false));
        let mut seams = oarsman_sim::seams(&world, 1);
        seams.pod_files =
            Arc::new(WithMiddleware::new(seams.pod_files, HangingRemovals(hangs.subscribe())));
        let report_store = ReportStore::new(Arc::clone(&seams.clock), NodeReport::default());
        let (commands, receiver) = mpsc::channel(8);
        let inputs = Inputs {
            sources: vec![oarsman_sim::file_source(&files)],
            admit_handler: Arc::new(AdmitAll),
            decisions: Arc::new(CoreDecisions),
            metrics: Arc::default(),
            report_store: Arc::clone(&report_store),
            pods: ActivePodsReader::default(),
            node_addresses: NodeAddresses::default(),
            sync_loop_monitor: SyncLoopMonitor::default(),
            container_lifecycle: ContainerHooks::default(),
            tracer: None,
            commands: receiver,
        };
        let config = AgentConfig { node_status_config: None, ..oarsman_sim::config() };
        tokio::spawn(oarsman_agent::run(seams, config, inputs));
        Self { world, files, hangs, report_store, commands }
    }

    fn report(&self, name: &str) -> Option<PodReport> {
        let pods = self.report_store.report().pods;
        pods.into_iter().find(|report| report.pod.full_name().name == name)
    }

    fn is_running(&self, name: &str) -> bool {
        self.report(name).is_some_and(|report| {
            let status = report.pod.status.unwrap_or_default();
            let runs = status.phase.as_deref() == Some("Running");
            runs && report.stage == StageReport::Syncing
        })
    }
}

async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

#[test]
fn a_pod_whose_clean_up_hangs_for_an_hour_still_takes_events_deletions_and_questions() {
    let lived = simulate(7, FaultPlan::quiet(), |world| async move {
        let fixture = CleanupFixture::new(world);
        fixture.files.send_replace(vec![named("web")]);
        seconds(5).await;
        assert!(fixture.is_running("web"));
        fixture.hangs.send_replace(true);
        fixture.files.send_replace(Vec::new());
        let began = fixture.world.clock.elapsed();
        seconds(60).await;
        // The report has the operation under way, and its duration.
        let report = fixture.report("web").unwrap();
        let explanation = explain(&fixture.report_store.report(), &report);
        assert_eq!(explanation.cause, ExplanationCause::GivingBack, "{explanation:?}");
        // Between two attempts, the report has the reason and the end of the wait.
        let mut waits = None;
        while waits.is_none() && fixture.world.clock.elapsed() - began < HOUR {
            seconds(1).await;
            waits = fixture.report("web").and_then(|report| report.waits_for);
        }
        let waits = waits.unwrap();
        assert!(waits.contains("no answer within"), "{waits}");
        // Another pod is not held up, a kill has no effect, and a pod that comes back waits for the end of the old one.
        let kill = KillRequest { by: KillRequester::Eviction, grace: Some(1), failure: None };
        fixture.commands.send(AgentCommand::Kill("uid-web".into(), kill)).await.unwrap();
        fixture.files.send_replace(vec![named("web"), named("other")]);
        seconds(10).await;
        assert!(fixture.is_running("other"));
        sleep((began + HOUR).saturating_sub(fixture.world.clock.elapsed())).await;
        let report = fixture.report("web").unwrap();
        assert_eq!(report.stage, StageReport::Finished, "{report:?}");
        fixture.hangs.send_replace(false);
        seconds(150).await;
        assert!(fixture.is_running("web"), "its new life begins once the old one is cleaned up");
        fixture.files.send_replace(Vec::new());
        seconds(30).await;
        assert_eq!(fixture.report("web").map(|report| report.stage), None);
        assert_eq!(fixture.world.disk.pods().len(), 0, "nothing is left of either pod");
    });
    assert!(lived.is_ok());
}
