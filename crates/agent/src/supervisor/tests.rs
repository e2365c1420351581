//! The supervisor with real workers over the simulated world, in virtual time.

use futures::stream;
use oarsman_core::ledger::Rejection;
use oarsman_core::pod::PodExt;
use oarsman_core::report::StageReport;
use oarsman_cri::Runtime;
use tokio::task::JoinHandle;

use super::*;
use crate::OpenGate;
use crate::active_pods::ActivePodsReader;
use crate::testing::{TestNode, from_file, pod, seconds};

/// A supervisor that runs, and both ends of what it listens to.
struct Stage {
    test: TestNode,
    files: mpsc::UnboundedSender<Vec<Arc<Pod>>>,
    api: mpsc::UnboundedSender<Vec<Arc<Pod>>>,
    commands: mpsc::Sender<Command>,
    task: JoinHandle<()>,
}

impl Stage {
    async fn new() -> Self {
        Self::with(TestNode::new(), Arc::new(OpenGate)).await
    }

    async fn with(mut test: TestNode, gate: SharedGate) -> Self {
        let (_, none) = mpsc::channel(1);
        let notices = std::mem::replace(&mut test.notices, none);
        let (files, file_sets) = source(Source::File);
        let (api, api_sets) = source(Source::Api);
        let (commands, asked) = mpsc::channel(8);
        let ears = Ears {
            sources: stream::select_all([file_sets, api_sets]),
            recalled: stream::pending().boxed(),
            objects: stream::pending().boxed(),
            notices,
            news: mpsc::channel(1).1,
            commands: Arc::new(tokio::sync::Mutex::new(asked)).lock_owned().await,
        };
        let updates = test.node.pod_updates.clone();
        let pods = ActivePodsWriter::new(ActivePodsReader::default(), updates);
        let sources = [Source::File, Source::Api];
        let supervisor = Supervisor::new(Arc::clone(&test.node), &sources, gate, pods);
        let task = tokio::spawn(supervisor.run(ears));
        Self { test, files, api, commands, task }
    }

    /// Both sources say what they hold, and are given time to get there.
    async fn wants(&self, files: &[&Pod], api: &[&Pod]) {
        let shared = |pods: &[&Pod]| pods.iter().map(|&pod| Arc::new(pod.clone())).collect();
        self.files.send(shared(files)).unwrap();
        self.api.send(shared(api)).unwrap();
        seconds(5).await;
    }

    fn stage(&self, uid: &str) -> Option<StageReport> {
        let pods = self.test.node.book.report().pods.into_iter();
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
        let (who, answer) = oneshot::channel();
        self.commands.send(Command::Answer(who)).await.unwrap();
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
    let (stage, web) = (Stage::new().await, pod("web", &["forever"]));
    for label in ["a", "b", "b"] {
        stage.wants(&[], &[&labelled(&web, label), &pod("other", &["forever"])]).await;
    }
    for uid in ["uid-web", "uid-other"] {
        assert_eq!((stage.begins(uid).len(), stage.starts(uid)), (1, 1), "{uid}");
    }
    assert_eq!(
        stage.test.log.times("uid-web", "Wanted").len(),
        1,
        "only what changed is passed on"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_comes_back_waits_for_the_end_of_its_earlier_life_and_starts_once() {
    for second in ["uid-web", "uid-new"] {
        let (stage, first) = (Stage::new().await, from_file(slow_to_stop("web")));
        let mut again = slow_to_stop("web");
        again.metadata.uid = Some(second.to_owned());
        let again = from_file(again);
        stage.wants(&[&first], &[]).await;
        stage.wants(&[], &[]).await;
        for label in ["a", "b"] {
            stage.wants(&[&labelled(&again, label)], &[]).await;
        }
        seconds(30).await;
        let log = &stage.test.log;
        let [.., begun] = stage.begins(second)[..] else { panic!("{second} did not begin") };
        let [finished] = log.times("uid-web", "Finished")[..] else { panic!("{second}") };
        assert!(begun >= finished && finished >= Duration::from_secs(14), "{begun:?} {finished:?}");
        let lives = if second == "uid-web" { 2 } else { 1 };
        assert_eq!((stage.begins(second).len(), stage.starts(second)), (lives, lives), "{second}");
        assert_eq!(stage.stage(second), Some(StageReport::Syncing));
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_panics_is_replaced_after_a_while_and_its_containers_go_on() {
    let (stage, web) = (Stage::new().await, pod("web", &["forever"]));
    stage.wants(&[], &[&web, &pod("other", &["forever"])]).await;
    stage.test.log.panic_at("Wanted");
    stage.wants(&[], &[&labelled(&web, "a"), &pod("other", &["forever"])]).await;
    assert_eq!(stage.test.node.measures.task_panics(), [("pod worker", 1)].into());
    let panicked = Duration::from_secs(5);
    assert_eq!(stage.begins("uid-web"), [Duration::ZERO, panicked + AFTER_A_MISTAKE]);
    assert_eq!(stage.begins("uid-other").len(), 1);
    assert_eq!((stage.starts("uid-web"), stage.starts("uid-other")), (1, 1));
    stage.wants(&[], &[]).await;
    seconds(10).await;
    assert_eq!(stage.stage("uid-web"), None, "the new worker brings it down");
}

/// Admits no pod.
struct Full;

impl Gate for Full {
    fn check(&self, _: &Pod, _: &[&Pod]) -> Result<(), Rejection> {
        Err(Rejection { reason: "OutOfcpu".to_owned(), message: "no cpu is left".to_owned() })
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
        let stage = Stage::with(test, Arc::new(Full)).await;
        stage.wants(&[], &[&web]).await;
        seconds(10).await;
        let shown = stage.test.world.cluster.get(&web.full_name()).unwrap().status.unwrap();
        let told = (shown.phase.as_deref(), shown.reason.as_deref());
        assert_eq!(told, (Some("Failed"), Some("OutOfcpu")), "{panics}");
        assert_eq!(stage.test.called("RunPodSandbox"), [""; 0], "{panics}");
        let lives = stage.test.log.times("uid-web", "Begin Rejected").len();
        assert_eq!(lives, 1 + usize::from(panics));
    }
}

#[tokio::test(start_paused = true)]
async fn a_relist_that_panics_is_repeated_soon_and_one_that_fails_when_the_next_is_due() {
    const CALL: &str = "list the records of pods";
    // In which second a pod that no source knows is still there, and in which it is gone.
    for (panics, there, gone) in [(true, 59, 65), (false, 119, 125)] {
        let stage = Stage::new().await;
        stage.wants(&[], &[]).await;
        let unknown = stage.test.start(&Arc::new(pod("unknown", &["forever"])));
        seconds(5).await;
        unknown.task.abort();
        let world = &stage.test.world;
        match panics {
            true => world.links.panics().arm(CALL, ""),
            false => stage.test.calls.fail(CALL, 1),
        }
        for (at, left) in [(there, 1), (gone, 0)] {
            seconds(at - world.clock.elapsed().as_secs()).await;
            let sandboxes = world.runtime.list_pod_sandboxes(None).await.unwrap();
            assert_eq!(sandboxes.len(), left, "panics: {panics}, second {at}");
        }
        let counted = stage.test.node.measures.task_panics().get("relist").copied();
        assert_eq!(counted, panics.then_some(1));
    }
}

#[tokio::test(start_paused = true)]
async fn commands_are_answered_while_every_worker_is_busy() {
    let stage = Stage::new().await;
    let calls = ["ListPodSandbox", "RunPodSandbox", "StopContainer", "remove the directory of"];
    calls.into_iter().for_each(|call| stage.test.calls.hold(call));
    let web = pod("web", &["forever"]);
    for (held, wanted) in calls.into_iter().zip([&[&web][..], &[&web], &[], &[]]) {
        stage.wants(&[], wanted).await;
        assert!(stage.answers().await, "{held}");
        let (who, mut empty) = oneshot::channel();
        stage.commands.send(Command::TellWhenEmpty(who)).await.unwrap();
        seconds(1).await;
        assert!(empty.try_recv().is_err(), "{held}: there is a pod");
        stage.test.calls.release(held);
        seconds(5).await;
    }
    let (who, empty) = oneshot::channel();
    stage.commands.send(Command::TellWhenEmpty(who)).await.unwrap();
    assert!(empty.await.is_ok());
    assert!(!stage.task.is_finished());
}
