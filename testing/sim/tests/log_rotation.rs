//! Container logs are rotated under faults, kills of the agent and restarts of containers, and no line is lost.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use oarsman_agent::seams::Seams;
use oarsman_agent::{
    ActivePodsReader, AdmitAll, AgentConfig, ContainerHooks, CoreDecisions, Inputs, NodeAddresses,
    ReportStore, SyncLoopMonitor,
};
use oarsman_core::log_rotation::LogRotationPolicy;
use oarsman_core::report::NodeReport;
use oarsman_seam::{Call, Middleware, SeamError, WithMiddleware};
use oarsman_sim::scenario::{container, pod};
use oarsman_world::faults::FaultPlan;
use oarsman_world::runtime::ImageSource;
use oarsman_world::{World, simulate};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// The directory of the pod's logs.
const LOGS: &str = "/var/log/pods/default_p_uid-p";

const POLICY: LogRotationPolicy = LogRotationPolicy {
    max_size: 8_000,
    max_files: 4,
    workers: 1,
    interval: Duration::from_secs(3),
};

/// A pod of which one container writes 20 lines a second, and one as many and crashes now and then.
fn writers() -> Pod {
    let steady = container("steady", &["numbers:1280/200s", "forever"]);
    let crasher = container("crasher", &["numbers:1280/20s", "exit:1"]);
    pod(vec![], vec![steady, crasher], 2)
}

fn start(seams: Seams) -> JoinHandle<()> {
    let (_, commands) = mpsc::channel(1);
    let inputs = Inputs {
        sources: Vec::new(),
        admit_handler: Arc::new(AdmitAll),
        decisions: Arc::new(CoreDecisions),
        metrics: Arc::default(),
        report_store: ReportStore::new(Arc::clone(&seams.clock), NodeReport::default()),
        pods: ActivePodsReader::default(),
        node_addresses: NodeAddresses::default(),
        sync_loop_monitor: SyncLoopMonitor::default(),
        container_lifecycle: ContainerHooks::default(),
        tracer: None,
        commands,
    };
    let config = AgentConfig { log_rotation: Some(POLICY), ..oarsman_sim::config() };
    tokio::spawn(oarsman_agent::run(seams, config, inputs))
}

/// The names of a container's log files, by the start that they belong to, oldest file first.
fn files(world: &World, container: &str) -> BTreeMap<String, Vec<String>> {
    let mut starts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in world.files.below(&Path::new(LOGS).join(container)) {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let (start, _) = name.split_once('.').unwrap();
        starts.entry(start.to_owned()).or_default().push(name);
    }
    for names in starts.values_mut() {
        // What was compressed, and not removed yet, counts once.
        let all = names.clone();
        names.retain(|name| !name.ends_with(".tmp") && !all.contains(&format!("{name}.gz")));
        // The one that is written to has the shortest name, and comes last.
        names.sort_by_key(|name| (name.len() < "0.log.20260101".len(), name.clone()));
    }
    starts
}

/// The numbers in all files of a start.
fn numbers(world: &World, container: &str, names: &[String]) -> Vec<u64> {
    let directory = Path::new(LOGS).join(container);
    let text = |name: &String| String::from_utf8(world.files.read(&directory.join(name)).unwrap());
    let lines = names
        .iter()
        .flat_map(|name| text(name).unwrap().lines().map(str::to_owned).collect::<Vec<_>>());
    lines.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect()
}

/// Checks that nothing is missing between the first and the last line that are kept of each start.
fn check(world: &World, seed: u64, container: &str) -> usize {
    let mut rotated = 0;
    for (start, names) in files(world, container) {
        let numbers = numbers(world, container, &names);
        let first = numbers.first().copied().unwrap_or(1);
        let whole: Vec<u64> = (first..).take(numbers.len()).collect();
        assert_eq!(numbers, whole, "seed {seed}: {container} {start}: {names:?}");
        // Lines go only when there are as many files as may be; a rotation may have failed after the removal.
        let is_full = names.len() + 1 >= POLICY.max_files;
        assert!(first == 1 || is_full, "seed {seed}: {container} {start} begins at {first}");
        assert!(names.len() <= POLICY.max_files, "seed {seed}: {names:?}");
        rotated += names.len() - 1;
    }
    rotated
}

#[test]
fn no_line_is_lost_between_rotations_faults_kills_and_restarts() {
    let mut rotated = 0;
    for seed in 0..12 {
        let faults = FaultPlan::rough(Duration::from_secs(150));
        let lived = simulate(seed, faults, |world| async move {
            world.runtime.preload(ImageSource::script("world/script:1"));
            world.cluster.create(writers());
            for incarnation in 1..=5_u32 {
                let agent = start(oarsman_sim::seams(&world, incarnation));
                // Each is killed somewhere else in its rotations.
                sleep(Duration::from_millis(30_000 + 137 * (seed + u64::from(incarnation)))).await;
                agent.abort();
                agent.await.ok();
            }
            let _agent = start(oarsman_sim::seams(&world, 6));
            sleep(Duration::from_secs(200)).await;
            check(&world, seed, "steady") + check(&world, seed, "crasher")
        });
        rotated += lived.unwrap();
    }
    assert!(rotated > 60, "{rotated}");
}

#[test]
fn without_faults_a_log_is_rotated_as_its_size_asks_and_nothing_grows_beyond() {
    let lived = simulate(1, FaultPlan::quiet(), |world| async move {
        world.runtime.preload(ImageSource::script("world/script:1"));
        world.cluster.create(writers());
        let _agent = start(oarsman_sim::seams(&world, 1));
        sleep(Duration::from_secs(230)).await;
        let steady = files(&world, "steady");
        let names = &steady["0"];
        assert_eq!(numbers(&world, "steady", names).last(), Some(&4000));
        let plain = names.iter().filter(|name| !name.ends_with(".gz")).count();
        assert_eq!((names.len(), plain), (POLICY.max_files, 2), "{names:?}");
        for name in names {
            let size = world.files.read(&Path::new(LOGS).join("steady").join(name)).unwrap().len();
            // What is written within the second until the next check comes on top.
            assert!(size < 8_000 + 5_000, "{name}: {size}");
        }
        check(&world, 1, "crasher");
    });
    assert!(lived.is_ok());
}

#[test]
fn an_agent_that_never_lives_for_one_interval_rotates_too() {
    let lived = simulate(1, FaultPlan::quiet(), |world| async move {
        world.runtime.preload(ImageSource::script("world/script:1"));
        world.cluster.create(writers());
        for incarnation in 1..=40_u32 {
            let agent = start(oarsman_sim::seams(&world, incarnation));
            sleep(POLICY.interval - Duration::from_millis(700)).await;
            agent.abort();
            agent.await.ok();
        }
        let names = &files(&world, "steady")["0"];
        assert_eq!(names.len(), POLICY.max_files, "{names:?}");
        for name in names {
            let size = world.files.read(&Path::new(LOGS).join("steady").join(name)).unwrap().len();
            assert!(size < 8_000 + 8_000, "{name}: {size}");
        }
        check(&world, 1, "steady");
    });
    assert!(lived.is_ok());
}

/// Lets the first container whose log is reopened wait for ever.
#[derive(Default)]
struct HangingReopen(Arc<Mutex<Option<String>>>);

impl Middleware for HangingReopen {
    async fn around<T, E>(
        &self,
        call: Call,
        answer: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: SeamError,
    {
        let hangs = call.name == "ReopenContainerLog" && {
            let mut first = self.0.lock().unwrap();
            *first.get_or_insert_with(|| call.object.clone()) == call.object
        };
        if hangs {
            std::future::pending::<()>().await;
        }
        answer.await
    }
}

#[test]
fn a_runtime_that_does_not_reopen_one_log_holds_up_no_other() {
    let lived = simulate(1, FaultPlan::quiet(), |world| async move {
        world.runtime.preload(ImageSource::script("world/script:1"));
        let writer = |name: &str| container(name, &["numbers:1280/200s", "forever"]);
        world.cluster.create(pod(vec![], vec![writer("a"), writer("b")], 2));
        let mut seams = oarsman_sim::seams(&world, 1);
        seams.runtime = Arc::new(WithMiddleware::new(seams.runtime, HangingReopen::default()));
        let _agent = start(seams);
        sleep(Duration::from_secs(230)).await;
        let count = |container: &str| files(&world, container)["0"].len();
        let (a, b) = (count("a"), count("b"));
        assert_eq!(a.min(b), 1, "one waits, and all its lines are in the rotated file");
        assert_eq!(a.max(b), POLICY.max_files, "the other is rotated");
        for name in ["a", "b"] {
            let names = &files(&world, name)["0"];
            assert_eq!(numbers(&world, name, names).last(), Some(&4000), "{name}");
        }
    });
    assert!(lived.is_ok());
}
