//! The supervisor with real workers over the simulated world, in virtual time.

mod admission;
mod metrics;

use futures::stream;
use oarsman_core::admission::{AdmitRefusal, PodAdmitAttributes, Rejection};
use oarsman_core::pod::PodExt;
use oarsman_core::report::StageReport;
use oarsman_cri::Runtime;
use tokio::task::JoinHandle;

use super::pleg::{HostRecord, PodRecord};
use super::*;
use crate::AdmitAll;
use crate::active_pods::ActivePodsReader;
use crate::testing::{TestNode, from_file, pod, seconds};

/// A supervisor that runs, and both ends of what it listens to.
struct SupervisorFixture {
    test: TestNode,
    files: mpsc::UnboundedSender<Vec<Arc<Pod>>>,
    api: mpsc::UnboundedSender<Vec<Arc<Pod>>>,
    commands: mpsc::Sender<AgentCommand>,
    task: JoinHandle<()>,
}

impl SupervisorFixture {
    async fn new() -> Self {
        Self::with(TestNode::new(), Arc::new(AdmitAll)).await
    }

    async fn with(mut test: TestNode, admit_handler: SharedAdmitHandler) -> Self {
        let (_, none) = mpsc::channel(1);
        let notices = std::mem::replace(&mut test.notices, none);
        let (files, file_sets) = source(Source::File);
        let (api, api_sets) = source(Source::Api);
        let (commands, received) = mpsc::channel(8);
        let inputs = SyncLoopInputs {
            sources: stream::select_all([file_sets, api_sets]),
            restored_pods: stream::pending().boxed(),
            objects: stream::pending().boxed(),
            notices,
            pleg_events: mpsc::channel(1).1,
            commands: Arc::new(tokio::sync::Mutex::new(received)).lock_owned().await,
            admission_node: test.admission_node.subscribe(),
        };
        let updates = test.node.pod_updates.clone();
        let pods = ActivePodsWriter::new(test.node.active_pods.clone(), updates);
        let sources = [Source::File, Source::Api];
        let supervisor = Supervisor::new(Arc::clone(&test.node), &sources, admit_handler, pods);
        let task = tokio::spawn(supervisor.sync_loop(inputs));
        Self { test, files, api, commands, task }
    }

    /// Both sources say what they hold, and are given time to get there.
    async fn set_sources(&self, files: &[&Pod], api: &[&Pod]) {
        let shared = |pods: &[&Pod]| pods.iter().map(|&pod| Arc::new(pod.clone())).collect();
        self.files.send(shared(files)).unwrap();
        self.api.send(shared(api)).unwrap();
        seconds(5).await;
    }

    fn stage(&self, uid: &str) -> Option<StageReport> {
        let pods = self.test.node.report_store.report().pods.into_iter();
        pods.into_iter().find(|report| report.pod.uid().as_str() == uid).map(|report| report.stage)
    }

    fn starts(&self, uid: &str) -> usize {
        self.test.starts(&uid.into()).len()
    }

    fn begins(&self, uid: &str) -> Vec<Duration> {
        self.test.log.times(uid, "Begin Wanted")
    }

    /// Whether the supervisor answers within a second.
    async fn answers(&self) -> bool {
        let (reply, answer) = oneshot::channel();
        self.commands.send(AgentCommand::Ping(reply)).await.unwrap();
        tokio::time::timeout(Duration::from_secs(1), answer).await.is_ok_and(|told| told.is_ok())
    }
}

type Sets = BoxStream<'static, (Source, Vec<Arc<Pod>>)>;

fn source(source: Source) -> (mpsc::UnboundedSender<Vec<Arc<Pod>>>, Sets) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let sets = stream::unfold(receiver, move |mut receiver| async move {
        Some(((source, receiver.recv().await?), receiver))
    });
    (sender, sets.boxed())
}

/// A pod that takes nine seconds to stop.
fn slow_to_stop(name: &str) -> Pod {
    pod(name, &["on-term:sleep:9s,exit:0", "forever"])
}

fn labelled(pod: &Pod, label: &str) -> Pod {
    let mut pod = pod.clone();
    pod.metadata.labels = Some([("label".to_owned(), label.to_owned())].into());
    pod
}

#[tokio::test(start_paused = true)]
async fn a_pod_has_one_worker_however_often_its_source_sends_it() {
    let (fixture, web) = (SupervisorFixture::new().await, pod("web", &["forever"]));
    for label in ["a", "b", "b"] {
        fixture.set_sources(&[], &[&labelled(&web, label), &pod("other", &["forever"])]).await;
    }
    for uid in ["uid-web", "uid-other"] {
        assert_eq!((fixture.begins(uid).len(), fixture.starts(uid)), (1, 1), "{uid}");
    }
    assert_eq!(
        fixture.test.log.times("uid-web", "Wanted").len(),
        1,
        "only what changed is passed on"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_comes_back_waits_until_its_worker_has_ended_and_starts_once() {
    for second in ["uid-web", "uid-new"] {
        let (fixture, first) = (SupervisorFixture::new().await, from_file(slow_to_stop("web")));
        let mut again = slow_to_stop("web");
        again.metadata.uid = Some(second.to_owned());
        let again = from_file(again);
        fixture.set_sources(&[&first], &[]).await;
        fixture.set_sources(&[], &[]).await;
        for label in ["a", "b"] {
            fixture.set_sources(&[&labelled(&again, label)], &[]).await;
        }
        seconds(30).await;
        let log = &fixture.test.log;
        let [.., begun] = fixture.begins(second)[..] else { panic!("{second} did not begin") };
        let [finished] = log.times("uid-web", "Finished")[..] else { panic!("{second}") };
        assert!(begun >= finished && finished >= Duration::from_secs(14), "{begun:?} {finished:?}");
        let lives = if second == "uid-web" { 2 } else { 1 };
        assert_eq!(
            (fixture.begins(second).len(), fixture.starts(second)),
            (lives, lives),
            "{second}"
        );
        assert_eq!(fixture.stage(second), Some(StageReport::Syncing));
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_panics_is_replaced_after_a_while_and_its_containers_go_on() {
    let (fixture, web) = (SupervisorFixture::new().await, pod("web", &["forever"]));
    fixture.set_sources(&[], &[&web, &pod("other", &["forever"])]).await;
    fixture.test.log.panic_at("Wanted");
    fixture.set_sources(&[], &[&labelled(&web, "a"), &pod("other", &["forever"])]).await;
    assert_eq!(fixture.test.node.metrics.panics.counts(), [(TaskName::PodWorker, 1)].into());
    let panicked = Duration::from_secs(5);
    assert_eq!(fixture.begins("uid-web"), [Duration::ZERO, panicked + WORKER_RESTART_DELAY]);
    assert_eq!(fixture.begins("uid-other").len(), 1);
    assert_eq!((fixture.starts("uid-web"), fixture.starts("uid-other")), (1, 1));
    fixture.set_sources(&[], &[]).await;
    seconds(10).await;
    assert_eq!(fixture.stage("uid-web"), None, "the new worker brings it down");
}

/// Admits no pod.
struct RejectAll;

impl AdmitHandler for RejectAll {
    fn admit(&self, _: &PodAdmitAttributes<'_>) -> Result<(), AdmitRefusal> {
        Err(Rejection::new("OutOfcpu", "no cpu is left").into())
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_rejected_is_published_as_failed_and_not_started_even_after_a_panic() {
    for panics in [false, true] {
        let test = TestNode::new();
        if panics {
            test.log.panic_at("ReadDone");
        }
        let web = pod("web", &["forever"]);
        test.world.cluster.create(web.clone());
        let fixture = SupervisorFixture::with(test, Arc::new(RejectAll)).await;
        fixture.set_sources(&[], &[&web]).await;
        seconds(10).await;
        let shown = fixture.test.world.cluster.get(&web.full_name()).unwrap().status.unwrap();
        let told = (shown.phase.as_deref(), shown.reason.as_deref());
        assert_eq!(told, (Some("Failed"), Some("OutOfcpu")), "{panics}");
        assert_eq!(fixture.test.called("RunPodSandbox"), [""; 0], "{panics}");
        let counted = fixture.test.node.metrics.rejections.snapshot();
        assert_eq!(counted, [("OutOfcpu", 1)].into(), "{panics}");
        let lives = fixture.test.log.times("uid-web", "Begin Rejected").len();
        assert_eq!(lives, 1 + usize::from(panics));
    }
}

#[tokio::test(start_paused = true)]
async fn a_relist_that_panics_is_repeated_soon_and_one_that_fails_when_the_next_is_due() {
    const CALL: &str = "list the records of pods";
    // In which second a pod that no source knows is still there, and in which it is gone.
    for (panics, there, gone) in [(true, 59, 65), (false, 119, 125)] {
        let fixture = SupervisorFixture::new().await;
        fixture.set_sources(&[], &[]).await;
        let unknown = fixture.test.start(&Arc::new(pod("unknown", &["forever"])));
        seconds(5).await;
        unknown.task.abort();
        let world = &fixture.test.world;
        match panics {
            true => world.links.panics().arm(CALL, ""),
            false => fixture.test.calls.fail(CALL, 1),
        }
        for (at, left) in [(there, 1), (gone, 0)] {
            seconds(at - world.clock.elapsed().as_secs()).await;
            let sandboxes = world.runtime.list_pod_sandboxes(None).await.unwrap();
            assert_eq!(sandboxes.len(), left, "panics: {panics}, second {at}");
        }
        let counted = fixture.test.node.metrics.panics.counts().get(&TaskName::Relist).copied();
        assert_eq!(counted, panics.then_some(1));
    }
}

#[tokio::test(start_paused = true)]
async fn an_orphan_is_killed_once_every_source_has_sent_its_pods_and_not_before() {
    let fixture = SupervisorFixture::new().await;
    let orphan = fixture.test.start(&Arc::new(pod("orphan", &["forever"])));
    seconds(5).await;
    orphan.task.abort();
    let runtime = &fixture.test.world.runtime;
    for (source, left) in [(&fixture.files, 1), (&fixture.api, 0)] {
        source.send(Vec::new()).unwrap();
        // There is a relist every minute.
        seconds(125).await;
        let sandboxes = runtime.list_pod_sandboxes(None).await.unwrap();
        assert_eq!(sandboxes.len(), left);
    }
    assert_eq!(fixture.test.called("StopContainer").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn commands_are_answered_while_every_worker_is_busy() {
    let fixture = SupervisorFixture::new().await;
    let calls = ["ListPodSandbox", "RunPodSandbox", "StopContainer", "remove the directory of"];
    calls.into_iter().for_each(|call| fixture.test.calls.hold(call));
    let web = pod("web", &["forever"]);
    for (held, wanted) in calls.into_iter().zip([&[&web][..], &[&web], &[], &[]]) {
        fixture.set_sources(&[], wanted).await;
        assert!(fixture.answers().await, "{held}");
        let (reply, mut empty) = oneshot::channel();
        fixture.commands.send(AgentCommand::NotifyWhenEmpty(reply)).await.unwrap();
        seconds(1).await;
        assert!(empty.try_recv().is_err(), "{held}: there is a pod");
        fixture.test.calls.release(held);
        seconds(5).await;
    }
    let (reply, empty) = oneshot::channel();
    fixture.commands.send(AgentCommand::NotifyWhenEmpty(reply)).await.unwrap();
    assert!(empty.await.is_ok());
    assert!(!fixture.task.is_finished());
}

/// `oarsman run`, interrupted before its first relist has ended.
#[tokio::test(start_paused = true)]
async fn empty_is_signalled_when_pods_are_removed_before_the_first_relist() {
    let fixture = SupervisorFixture::new().await;
    fixture.test.calls.hold("ListPodSandbox");
    let (one, two) = (pod("one", &["forever"]), pod("two", &["forever"]));
    fixture.set_sources(&[&one, &two], &[]).await;
    let (reply, mut empty) = oneshot::channel();
    fixture.commands.send(AgentCommand::NotifyWhenEmpty(reply)).await.unwrap();
    fixture.set_sources(&[&two], &[]).await;
    assert!(empty.try_recv().is_err(), "one pod is held");
    fixture.set_sources(&[], &[]).await;
    assert_eq!(empty.try_recv(), Ok(()));
}

/// Events are not delivered here: only a relist tells.
#[tokio::test(start_paused = true)]
async fn a_relist_that_finds_what_a_worker_has_acted_on_causes_no_read_and_another_state_does() {
    let (fixture, job) = (SupervisorFixture::new().await, pod("job", &["sleep:210s", "exit:3"]));
    let reads = || fixture.test.called("PodSandboxStatus").len();
    fixture.set_sources(&[], &[&job]).await;
    // The first relist after the start is the first that the worker can act on.
    seconds(70).await;
    let started = reads();
    assert!(started > 0 && fixture.starts("uid-job") == 1);
    seconds(120).await;
    assert!(fixture.test.node.metrics.relists.durations.snapshot().count >= 3);
    assert_eq!(reads(), started, "two relists, which found the pod as it was");
    seconds(60).await;
    assert!(reads() > started, "the container has ended");
}

/// The event of the sidecar's start is lost, and the sync that started it has read it already.
#[tokio::test(start_paused = true)]
async fn a_relist_goes_on_with_a_pod_whose_sidecar_was_read_but_not_acted_on() {
    let (fixture, mut web) = (SupervisorFixture::new().await, pod("web", &["forever"]));
    let spec = web.spec.as_mut().unwrap();
    let mut sidecar = spec.containers[0].clone();
    sidecar.name = "sidecar".to_owned();
    sidecar.restart_policy = Some("Always".to_owned());
    spec.init_containers = Some(vec![sidecar]);
    fixture.set_sources(&[], &[&web]).await;
    seconds(10).await;
    assert_eq!(fixture.starts("uid-web"), 1, "the sidecar");
    seconds(60).await;
    assert_eq!(fixture.starts("uid-web"), 2, "and the container after it");
}

/// A sync that finds the cgroup and makes one again after it was removed would hide that from every later sync.
#[tokio::test(start_paused = true)]
async fn a_cgroup_removed_in_the_middle_of_a_sync_is_noticed_by_the_next_relist() {
    const CALL: &str = "make the directories of";
    let (fixture, web) = (SupervisorFixture::new().await, pod("web", &["forever"]));
    fixture.set_sources(&[], &[&web]).await;
    seconds(30).await;
    fixture.test.calls.hold(CALL);
    seconds(40).await;
    let calls = |name| fixture.test.called(name).len();
    assert_eq!((calls("update the cgroup of"), calls(CALL)), (1, 1), "the second sync waits");
    fixture.test.world.disk.remove_cgroup(&PodUid::from("uid-web"));
    fixture.test.calls.release(CALL);
    assert_eq!(fixture.starts("uid-web"), 1);
    seconds(120).await;
    assert_eq!(fixture.starts("uid-web"), 2, "it was started again, in a cgroup");
    assert!(fixture.test.world.disk.has_cgroup(&PodUid::from("uid-web")));
}

/// Row H8 of docs/security.md.
#[tokio::test(start_paused = true)]
async fn what_looks_like_logs_of_many_pods_gets_a_bounded_number_of_workers() {
    let fixture = SupervisorFixture::new().await;
    let record = |own: bool| PodRecord {
        on_disk: Some(HostRecord { cgroup: false, own }),
        ours: true,
        ..PodRecord::default()
    };
    let logs = (0..10_000).map(|n| (PodUid::from(format!("a{n}").as_str()), record(false)));
    let own = (0..100).map(|n| (PodUid::from(format!("z{n}").as_str()), record(true)));
    let records = PlegRecords::from_iter(logs.chain(own));
    let (pods, node) = (ActivePodsReader::default(), Arc::clone(&fixture.test.node));
    let pods = ActivePodsWriter::new(pods, node.pod_updates.clone());
    let mut supervisor = Supervisor::new(node, &[Source::File], Arc::new(AdmitAll), pods);
    supervisor.on_source_update(Source::File, Vec::new());
    supervisor.handle_pod_cleanups(Ok(Some(Relist { records, views: Vec::new() })));
    assert_eq!(supervisor.workers.len(), 64);
    let are_own = supervisor.workers.keys().all(|uid| uid.as_str().starts_with('z'));
    assert!(are_own && supervisor.orphans_wait, "those that have more than logs come first");
}
