//! Every named task panics once, at a call through its seam: it is back within five seconds, the lease is renewed, and no container is
//! restarted. [`panic_test`] has a row for each task, so that a new task without one does not compile.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ExecAction, Pod, Probe};
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
use oarsman_sync::TaskName;
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

/// How the panic of a task is tested.
#[derive(Clone, Copy)]
enum PanicTest {
    /// At the first call of that name on such an object.
    AtFirstCall(&'static str, &'static str),
    /// At such a call while the agent runs: the first one is made before the task starts.
    AtLaterCall(&'static str, &'static str),
    /// By a function in this file, because no call is the task's alone.
    Here(&'static str),
    /// By a function in a file of the workspace, because the task is not part of what is simulated.
    In(&'static str, &'static str),
}

/// Tasks that are a loop of [`oarsman_sync::Tasks`] or [`oarsman_sync::restarted`] around a socket, a certificate or a file of the real machine.
const OF_PROGRAM: &str = "crates/sync/src/tasks/tests.rs";
const OF_OBJECTS: &str = "crates/cluster/src/api/objects/tests/panics.rs";
const REFRESH: &str = "a_refresh_that_panics_is_counted_and_started_again";
const LOOP: &str = "a_task_that_panics_is_restarted_after_a_second_and_others_are_not_affected";
const FUTURE: &str = "a_future_with_a_result_is_started_again_until_it_has_one";

fn panic_test(task: TaskName) -> PanicTest {
    use PanicTest::{AtFirstCall, AtLaterCall, Here, In};
    match task {
        TaskName::StatusManager => AtFirstCall("the status", ""),
        TaskName::MirrorManager => AtFirstCall("the mirror", ""),
        TaskName::EventRecorder => AtFirstCall("an event", "pod"),
        TaskName::NodeEvents => AtFirstCall("an event", "node"),
        TaskName::NodeStatus => AtFirstCall("the creation", "node"),
        TaskName::NodeLease => AtFirstCall("the renewal", "lease"),
        TaskName::NodeAddresses => AtLaterCall("look for the addresses of", "n1"),
        TaskName::RuntimeEvents => AtFirstCall("GetContainerEvents", ""),
        TaskName::ContainerLogManager => AtFirstCall("read the sizes of logs", ""),
        TaskName::RuntimeHealth => AtFirstCall("Status", ""),
        TaskName::ImageList => AtFirstCall("ListImages", ""),
        TaskName::ImageGc => AtFirstCall("ImageFsInfo", ""),
        TaskName::PodCheckpoints => AtFirstCall("write the checkpoint", ""),
        TaskName::Relist => AtFirstCall("list the records of pods", ""),
        TaskName::ApiSource => AtFirstCall("ListPods", ""),
        TaskName::UrlSource => AtFirstCall("get", "web"),
        TaskName::BackgroundTask => AtFirstCall("ExecSync", ""),
        TaskName::FileSource => {
            Here("a_source_of_files_that_panics_is_read_anew_and_no_pod_is_lost")
        }
        TaskName::Supervisor => Here(
            "after_a_panic_of_the_supervisor_everything_is_built_again_and_no_container_restarts",
        ),
        TaskName::PodWorker => Here(
            "a_pod_worker_that_panics_is_replaced_within_five_seconds_and_its_containers_go_on",
        ),
        TaskName::ObjectRefresh
        | TaskName::TokenRefresh
        | TaskName::ServiceWatch
        | TaskName::TrustBundleWatch
        | TaskName::PodCertificateWatch
        | TaskName::PodCertificateRefresh => In(OF_OBJECTS, REFRESH),
        TaskName::KubeletServer | TaskName::SpanExporter | TaskName::SystemdWatchdog => {
            In(OF_PROGRAM, LOOP)
        }
        TaskName::LogWatch
        | TaskName::HttpsServer
        | TaskName::ReadOnlyServer
        | TaskName::HealthServer
        | TaskName::ServingCertificate
        | TaskName::ClientCertificate
        | TaskName::LocalApi
        | TaskName::CriServer
        | TaskName::SandboxMonitor => In(OF_PROGRAM, FUTURE),
    }
}

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

/// A pod that runs forever and is probed: of the API server, or a static one.
fn named(name: &str, is_static: bool) -> Pod {
    let mut main = container("main", &["forever"]);
    let command = ["/script", "exit:0"].map(str::to_owned).to_vec();
    let exec = Some(ExecAction { command: Some(command) });
    main.readiness_probe = Some(Probe { exec, period_seconds: Some(2), ..Probe::default() });
    let mut pod = pod(vec![], vec![main], 2);
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
            tracer: None,
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

    fn panics(&self, task: TaskName) -> u64 {
        self.metrics.panics.counts().get(&task).copied().unwrap_or_default()
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
    async fn await_panic(&self, task: TaskName, within: Duration) {
        let began = self.world.clock.elapsed();
        while self.panics(task) == 0 {
            assert!(self.world.clock.elapsed() - began < within, "{task} did not panic");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Checks what holds after any panic: the lease is renewed, a new pod starts, and no container is restarted.
    async fn check_the_rest(&self, task: TaskName) {
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

/// Makes the task panic at a call and checks what holds afterwards; `delay` is how long the agent runs before.
fn check_panic_at(task: TaskName, delay: Duration, call: &'static str, object: &'static str) {
    let lived = simulate(3, FaultPlan::quiet(), |world| async move {
        let panics = world.links.panics();
        if delay.is_zero() {
            panics.arm(call, object);
        }
        let fixture = PanicFixture::new(world);
        fixture.provoke(1);
        if !delay.is_zero() {
            sleep(delay).await;
            panics.arm(call, object);
        }
        fixture.await_panic(task, Duration::from_secs(120)).await;
        let calls = fixture.calls(call, object);
        sleep(BACK_WITHIN).await;
        assert!(fixture.calls(call, object) > calls, "{task} is not back");
        assert_eq!(fixture.panics(task), 1, "{task}");
        fixture.check_the_rest(task).await;
    });
    assert!(lived.is_ok(), "{task}");
}

#[test]
fn a_task_that_panics_at_a_call_is_back_within_five_seconds_and_nothing_else_notices() {
    for task in TaskName::ALL {
        match panic_test(*task) {
            PanicTest::AtFirstCall(call, object) => {
                check_panic_at(*task, Duration::ZERO, call, object);
            }
            PanicTest::AtLaterCall(call, object) => {
                check_panic_at(*task, Duration::from_secs(10), call, object);
            }
            PanicTest::Here(_) | PanicTest::In(..) => {}
        }
    }
}

#[test]
fn every_panic_test_that_is_named_exists() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for task in TaskName::ALL {
        let (file, function) = match panic_test(*task) {
            PanicTest::AtFirstCall(..) | PanicTest::AtLaterCall(..) => continue,
            PanicTest::Here(function) => (file!(), function),
            PanicTest::In(file, function) => (file, function),
        };
        let text = std::fs::read_to_string(workspace.join(file)).unwrap();
        assert!(text.contains(&format!("fn {function}(")), "{task}: {file} has no {function}");
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
        fixture.await_panic(TaskName::FileSource, BACK_WITHIN).await;
        sleep(BACK_WITHIN).await;
        for name in ["file-1", "trigger"] {
            let found = fixture.world.cluster.list().into_iter();
            let mut mirrors = found.filter(|pod| pod.full_name().name.starts_with(name));
            assert!(mirrors.next().is_some(), "{name} has no mirror pod");
        }
        fixture.check_the_rest(TaskName::FileSource).await;
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
        fixture.await_panic(TaskName::Supervisor, BACK_WITHIN).await;
        sleep(BACK_WITHIN).await;
        let pods = fixture.world.cluster.list().into_iter();
        let trigger = pods.filter(|pod| pod.full_name().name == "trigger");
        let phases: Vec<_> = trigger.filter_map(|pod| pod.status?.phase).collect();
        assert_eq!(phases, ["Running"], "the pod that made it panic runs too");
        fixture.check_the_rest(TaskName::Supervisor).await;
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
        fixture.await_panic(TaskName::PodWorker, BACK_WITHIN).await;
        sleep(BACK_WITHIN).await;
        fixture.check_the_rest(TaskName::PodWorker).await;
    });
    assert!(lived.is_ok());
}
