//! Every named task panics once, at a call through its seam: it is back within five seconds, the lease is renewed, and no container is
//! restarted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use oarsman_agent::sources::{ManifestUrl, PodSource};
use oarsman_agent::{
    ActivePodsReader, AgentMetrics, ContainerHooks, Decisions, Inputs, NodeAddresses, ReportStore,
    SharedAdmitHandler, SyncLoopMonitor,
};
use oarsman_core::admission::{AdmitHandler, AdmitRefusal, PodAdmitAttributes};
use oarsman_core::lifecycle::{self, Context, Event, State, Transition};
use oarsman_core::pod::{HASH_ANNOTATION, PodExt, SOURCE_ANNOTATION};
use oarsman_core::report::NodeReport;
use oarsman_core::sources::Source;
use oarsman_sim::scenario::{container, pod};
use oarsman_world::faults::FaultPlan;
use oarsman_world::network::{FakeResponse, FakeServer, ServerProtocol};
use oarsman_world::runtime::ImageSource;
use oarsman_world::trace::TraceEntry;
use oarsman_world::{World, simulate};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

/// How often the URL of manifests is fetched.
const URL_PERIOD: Duration = Duration::from_secs(2);

const MANIFEST: &str = "{apiVersion: v1, kind: Pod, metadata: {name: url}, spec: {containers: [{name: main, image: 'world/script:1', args: [forever]}]}}";

/// A task is back within this time.
const BACK_WITHIN: Duration = Duration::from_secs(5);

/// Panics once when it is armed: in the supervisor, which calls it, or in a pod worker.
#[derive(Default)]
struct PanicTrap(AtomicBool);

impl PanicTrap {
    fn pass(&self) {
        assert!(!self.0.swap(false, Ordering::Relaxed), "a panic on purpose");
    }
}

struct PanickingAdmitHandler(Arc<PanicTrap>);

impl AdmitHandler for PanickingAdmitHandler {
    fn admit(&self, _: &PodAdmitAttributes<'_>) -> Result<(), AdmitRefusal> {
        self.0.pass();
        Ok(())
    }
}

struct PanickingDecisions(Arc<PanicTrap>);

impl Decisions for PanickingDecisions {
    fn step(&self, state: State, event: Event, cx: &Context) -> Transition {
        self.0.pass();
        lifecycle::step(state, event, cx)
    }
}

/// A pod that runs forever: of the API server, or a static one.
fn named(name: &str, is_static: bool) -> Pod {
    let mut pod = pod(vec![], vec![container("main", &["forever"])], 2);
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.uid = Some(format!("uid-{name}"));
    if is_static {
        let annotations = [(SOURCE_ANNOTATION, "file"), (HASH_ANNOTATION, name)];
        let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned()));
        pod.metadata.annotations = Some(annotations.into());
    }
    pod
}

struct PanicFixture {
    world: World,
    files: watch::Sender<Vec<Pod>>,
    metrics: Arc<AgentMetrics>,
    admit_handler: Arc<PanicTrap>,
    decisions: Arc<PanicTrap>,
    source: Arc<PanicTrap>,
}

impl PanicFixture {
    fn new(world: World) -> Self {
        world.runtime.preload(ImageSource::script("world/script:1"));
        let (admit_handler, decisions, source) =
            (Arc::<PanicTrap>::default(), Arc::default(), Arc::<PanicTrap>::default());
        let (files, metrics) = (watch::Sender::new(Vec::new()), Arc::<AgentMetrics>::default());
        let seams = oarsman_sim::seams(&world, 1);
        let (_, commands) = mpsc::channel(1);
        world.network.serve(
            "web",
            80,
            FakeServer::new(ServerProtocol::Http).with("/", FakeResponse::new(200, MANIFEST)),
        );
        let report_store = ReportStore::new(Arc::clone(&seams.clock), NodeReport::default());
        let (network, name) = (Arc::clone(&seams.network), "node".to_owned());
        let url = ManifestUrl::new("http://web/", Vec::new(), name, network);
        let Ok(url) = url else { panic!("the URL is not taken") };
        let of_url = Arc::clone(&report_store);
        let of_url = PodSource::new(Source::Http, move || url.follow(URL_PERIOD, &of_url));
        let trap = Arc::clone(&source);
        let of_files = oarsman_sim::file_source(&files).map(move |_, sets| {
            let trap = Arc::clone(&trap);
            sets.inspect(move |_| trap.pass()).boxed()
        });
        let inputs = Inputs {
            sources: vec![of_files, of_url],
            admit_handler: Arc::new(PanickingAdmitHandler(Arc::clone(&admit_handler)))
                as SharedAdmitHandler,
            decisions: Arc::new(PanickingDecisions(Arc::clone(&decisions))),
            metrics: Arc::clone(&metrics),
            report_store,
            pods: ActivePodsReader::default(),
            node_addresses: NodeAddresses::default(),
            sync_loop_monitor: SyncLoopMonitor::default(),
            container_lifecycle: ContainerHooks::default(),
            commands,
        };
        tokio::spawn(oarsman_agent::run(seams, oarsman_sim::config(), inputs));
        Self { world, files, metrics, admit_handler, decisions, source }
    }

    /// Creates a pod of the API server and a static one, so that all tasks make calls.
    fn provoke(&self, round: u32) {
        self.world.cluster.create(named(&format!("api-{round}"), false));
        self.files.send_modify(|files| files.push(named(&format!("file-{round}"), true)));
    }

    /// How often the agent has made that call on such an object.
    fn calls(&self, name: &str, object: &str) -> usize {
        let is = |entry: &TraceEntry| matches!(entry, TraceEntry::Called { call, subject, .. } if *call == name && subject.contains(object));
        self.world.trace.records().iter().filter(|record| is(&record.entry)).count()
    }

    fn panics(&self, task: &str) -> u64 {
        self.metrics.panics.counts().get(task).copied().unwrap_or_default()
    }

    /// Starts of containers that are not the first of their name.
    fn restarts(&self) -> usize {
        let is = |entry: &TraceEntry| match entry {
            TraceEntry::Container { target, .. } => target.attempt > 0,
            _ => false,
        };
        self.world.trace.records().iter().filter(|record| is(&record.entry)).count()
    }

    /// Waits until the task has panicked, with a deadline.
    async fn await_panic(&self, task: &str, within: Duration) {
        let began = self.world.clock.elapsed();
        while self.panics(task) == 0 {
            assert!(self.world.clock.elapsed() - began < within, "{task} did not panic");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Checks what holds after any panic: the lease is renewed, a new pod starts, and no container is restarted.
    async fn check_the_rest(&self, task: &str) {
        let renewals = self.world.cluster.node_history().renewals.len();
        self.provoke(2);
        sleep(Duration::from_secs(15)).await;
        assert!(self.world.cluster.node_history().renewals.len() > renewals, "{task}: no lease");
        for name in ["api-1", "api-2"] {
            let pod =
                self.world.cluster.list().into_iter().find(|pod| pod.full_name().name == name);
            let phase = pod.and_then(|pod| pod.status).and_then(|status| status.phase);
            assert_eq!(phase.as_deref(), Some("Running"), "{task}: {name}");
        }
        assert_eq!(self.restarts(), 0, "{task}");
    }
}

#[test]
fn a_task_that_panics_at_a_call_is_back_within_five_seconds_and_nothing_else_notices() {
    let rows = [
        ("status manager", "the status", ""),
        ("mirror manager", "the mirror", ""),
        ("event recorder", "an event", "pod"),
        ("node events", "an event", "node"),
        ("node status", "the creation", "node"),
        ("node lease", "the renewal", "lease"),
        ("runtime events", "GetContainerEvents", ""),
        ("runtime health", "Status", ""),
        ("image list", "ListImages", ""),
        ("pod checkpoints", "write the checkpoint", ""),
        ("relist", "list the records of pods", ""),
        ("api source", "ListPods", ""),
        ("url source", "get", "web"),
    ];
    for (task, call, object) in rows {
        let lived = simulate(3, FaultPlan::quiet(), |world| async move {
            world.links.panics().arm(call, object);
            let fixture = PanicFixture::new(world);
            fixture.provoke(1);
            fixture.await_panic(task, Duration::from_secs(120)).await;
            let calls = fixture.calls(call, object);
            sleep(BACK_WITHIN).await;
            assert!(fixture.calls(call, object) > calls, "{task} is not back");
            assert_eq!(fixture.panics(task), 1, "{task}");
            fixture.check_the_rest(task).await;
        });
        assert!(lived.is_ok(), "{task}");
    }
}

#[test]
fn a_source_of_files_that_panics_is_read_anew_and_no_pod_is_lost() {
    let lived = simulate(3, FaultPlan::quiet(), |world| async move {
        let fixture = PanicFixture::new(world);
        fixture.provoke(1);
        sleep(Duration::from_secs(10)).await;
        fixture.source.0.store(true, Ordering::Relaxed);
        fixture.files.send_modify(|files| files.push(named("trigger", true)));
        fixture.await_panic("file source", BACK_WITHIN).await;
        sleep(BACK_WITHIN).await;
        for name in ["file-1", "trigger"] {
            let found = fixture.world.cluster.list().into_iter();
            let mut mirrors = found.filter(|pod| pod.full_name().name.starts_with(name));
            assert!(mirrors.next().is_some(), "{name} has no mirror pod");
        }
        fixture.check_the_rest("file source").await;
    });
    assert!(lived.is_ok());
}

#[test]
fn after_a_panic_of_the_supervisor_everything_is_built_again_and_no_container_restarts() {
    let lived = simulate(3, FaultPlan::quiet(), |world| async move {
        let fixture = PanicFixture::new(world);
        fixture.provoke(1);
        sleep(Duration::from_secs(10)).await;
        fixture.admit_handler.0.store(true, Ordering::Relaxed);
        fixture.world.cluster.create(named("trigger", false));
        fixture.await_panic("supervisor", BACK_WITHIN).await;
        sleep(BACK_WITHIN).await;
        let pods = fixture.world.cluster.list().into_iter();
        let trigger = pods.filter(|pod| pod.full_name().name == "trigger");
        let phases: Vec<_> = trigger.filter_map(|pod| pod.status?.phase).collect();
        assert_eq!(phases, ["Running"], "the pod that made it panic runs too");
        fixture.check_the_rest("supervisor").await;
    });
    assert!(lived.is_ok());
}

#[test]
fn a_pod_worker_that_panics_is_replaced_within_five_seconds_and_its_containers_go_on() {
    let lived = simulate(3, FaultPlan::quiet(), |world| async move {
        let fixture = PanicFixture::new(world);
        fixture.provoke(1);
        sleep(Duration::from_secs(10)).await;
        fixture.decisions.0.store(true, Ordering::Relaxed);
        fixture.world.cluster.update(&named("api-1", false).full_name(), |pod| {
            pod.metadata.labels.get_or_insert_default().insert("a".to_owned(), "b".to_owned());
        });
        fixture.await_panic("pod worker", BACK_WITHIN).await;
        sleep(BACK_WITHIN).await;
        fixture.check_the_rest("pod worker").await;
    });
    assert!(lived.is_ok());
}
