//! Agents, shims and helpers that are killed.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use libtest_mimic::Trial;
use oarsman_host::processes;
use oarsman_shim::client::{ShimError, clean_dead_shim};
use oarsman_shim::protocol::ContainerPhase;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::Instant;

use crate::pod::{DEADLINE, Pod, case, spawn_shim};

pub(crate) fn cases() -> Vec<Trial> {
    vec![
        case("a_shim_outlives_the_agent_that_started_it", killed_agent),
        case("what_a_killed_shim_leaves_is_ended_and_reported", killed_shim),
        case("a_helper_killed_at_any_step_leaves_nothing", killed_helpers),
        case("a_second_shim_in_the_same_directory_is_refused", second_shim),
        case("a_shim_holds_no_descriptor_of_the_program_that_started_it", inherited_descriptors),
    ]
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap_or_default();
}

/// The agent here is a client whose connections all break in the middle of what they wait for; the shim is nobody's child already.
async fn killed_agent(pod: Pod) {
    let shim = processes::find(pod.shim).unwrap();
    assert_ne!(shim.parent, std::process::id());
    pod.run(pod.container("one", "echo begun; sleep 0.5; echo done; exit 11")).await;
    let (waiting, events) = (pod.client.wait("one"), pod.client.exits());
    // Both are dropped with their connections while the container runs.
    tokio::time::timeout(Duration::from_millis(50), async { tokio::join!(waiting, events) })
        .await
        .unwrap_err();
    let create = pod.client.create(pod.container("two", "exit 12").request());
    tokio::time::timeout(Duration::from_millis(1), create).await.ok();
    pod.until("the first has ended", || pod.output("one").ends_with("done\n")).await;
    let again = oarsman_shim::client::ShimClient::new(pod.directory.clone(), DEADLINE);
    assert_eq!(again.wait("one").await.unwrap().exit_code, 11);
    // The second was created all the same if its request had gone out, and can be used.
    let mut reports = again.list().await.unwrap();
    while reports.iter().any(|report| report.phase == ContainerPhase::Creating) {
        tokio::time::sleep(Duration::from_millis(5)).await;
        reports = again.list().await.unwrap();
    }
    if reports.len() == 2 {
        again.start("two").await.unwrap();
        assert_eq!(again.wait("two").await.unwrap().exit_code, 12);
    }
    pod.close().await;
}

async fn killed_shim(pod: Pod) {
    pod.run(pod.container("runs", "echo written; sleep 1000")).await;
    pod.run_to_end("ended", "exit 21").await;
    pod.until_said("runs", "written").await;
    let error = clean_dead_shim(&pod.directory, Timestamp::now()).unwrap_err();
    assert!(error.to_string().contains("lives already"), "{error}");
    let mut exits = pod.client.exits().await.unwrap();
    kill(pod.shim);
    let error = exits.next().await.unwrap_err();
    assert!(matches!(error, ShimError::Gone { .. }), "{error}");
    let shim = pod.shim;
    pod.until("the shim is dead", || {
        processes::find(shim).is_none_or(|process| process.state == 'Z')
    })
    .await;
    let reports = clean_dead_shim(&pod.directory, Timestamp::now()).unwrap();
    let told: Vec<_> = reports
        .iter()
        .map(|report| (report.container.as_str(), report.exit.as_ref().unwrap()))
        .collect();
    assert_eq!((told[0].0, told[0].1.exit_code, told[0].1.unknown), ("ended", 21, false));
    assert_eq!((told[1].0, told[1].1.exit_code, told[1].1.unknown), ("runs", 137, true));
    assert_eq!(pod.processes(), [0; 0]);
    assert_eq!(pod.groups(), [""; 0]);
    assert_eq!(pod.output("runs"), "written\n");
    // The agent removes the directory, and the pod can have a new shim.
    std::fs::remove_dir_all(pod.directory.path()).unwrap();
    std::fs::create_dir(pod.directory.path()).unwrap();
    spawn_shim(&pod.directory).await.unwrap();
    let mut pod = pod;
    pod.shim = pod.client.hello().await.unwrap().pid;
    assert_eq!(pod.run_to_end("ended", "exit 22").await.exit_code, 22);
    pod.close().await;
}

/// How long the helper of a create lives when nothing disturbs it: the shortest of a few, so that a kill within it comes before its end on a
/// machine of any speed and load.
async fn undisturbed_helper(pod: &Pod) -> Duration {
    let mut shortest = Duration::MAX;
    for _ in 0..5 {
        let shim = pod.shim;
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&is_done);
        let watcher = watch(move || helper_lifetime(shim, &done));
        pod.client.create(pod.container("one", "exit 1").request()).await.unwrap();
        is_done.store(true, Ordering::Release);
        shortest = shortest.min(watcher.join().unwrap());
        pod.client.delete("one").await.unwrap();
    }
    shortest
}

/// Does that on a thread, which runs already when this comes back: one that sees the helper too late sees the container's process in its place.
fn watch<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let (ready, is_ready) = mpsc::channel();
    let watcher = std::thread::spawn(move || {
        ready.send(()).unwrap();
        what()
    });
    is_ready.recv().unwrap();
    watcher
}

fn children(shim: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{shim}/task/{shim}/children")).unwrap();
    children.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

/// The helper that the shim starts next.
fn next_helper(shim: u32) -> u32 {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(helper) = children(shim).first() {
            return *helper;
        }
        assert!(Instant::now() < deadline, "the shim started no helper");
    }
}

/// The longest duration for a helper that was seen too late: then it was the container's process.
fn helper_lifetime(shim: u32, is_done: &AtomicBool) -> Duration {
    let helper = next_helper(shim);
    let begun = Instant::now();
    while children(shim).contains(&helper) {
        if is_done.load(Ordering::Acquire) {
            return Duration::MAX;
        }
    }
    begun.elapsed()
}

/// Kills the shim's helper that long after it is seen.
fn kill_helper(shim: u32, delay: Duration) {
    let helper = next_helper(shim);
    std::thread::sleep(delay);
    let arguments = processes::arguments(helper);
    if arguments.iter().any(|argument| argument == oarsman_shim::helper::ARGUMENT) {
        kill(helper);
    }
}

async fn killed_helpers(pod: Pod) {
    const ROUNDS: u32 = 60;
    let shortest = undisturbed_helper(&pod).await;
    let (mut refused, mut created) = (0, 0);
    for round in 0..ROUNDS {
        let shim = pod.shim;
        // From right after its start to its end, or a little later.
        let delay = shortest * round / (ROUNDS - 10);
        let killer = watch(move || kill_helper(shim, delay));
        match pod.client.create(pod.container("one", "exit 1").request()).await {
            Ok(_) => created += 1,
            Err(ShimError::Refused { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
        killer.join().unwrap();
        for report in pod.client.list().await.unwrap() {
            pod.client.delete(&report.container).await.unwrap();
        }
        assert_eq!((pod.processes(), pod.groups()), (vec![], vec![]), "round {round}");
        pod.until(&format!("round {round} has left no children"), || children(shim).is_empty())
            .await;
    }
    println!("{refused} refused, {created} created, {shortest:?} undisturbed");
    assert!(refused > 10, "{refused} refused, {created} created, {shortest:?} undisturbed");
    pod.close().await;
}

/// The files that a process has open.
fn open_files(pid: u32) -> Vec<PathBuf> {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let files = descriptors.map(|descriptor| std::fs::read_link(descriptor.unwrap().path()));
    files.filter_map(Result::ok).collect()
}

/// A shell script with a lock file, for one, starts programs like this.
async fn inherited_descriptors(first: Pod) {
    let path = first.files.path().join("lock-of-another-program");
    let file = File::create(&path).unwrap();
    fcntl_setfd(&file, FdFlags::empty()).unwrap();
    let pod = Pod::new().await;
    fcntl_setfd(&file, FdFlags::CLOEXEC).unwrap();
    let container = pod.run(pod.container("one", "sleep 1000")).await;
    for process in [pod.shim, container] {
        let files = open_files(process);
        assert!(!files.is_empty() && !files.contains(&path), "{process}: {files:?}");
    }
    pod.close().await;
    first.close().await;
}

async fn second_shim(pod: Pod) {
    let error =
        spawn_shim(&pod.directory).await.unwrap_err();
    assert!(error.to_string().contains("lives already"), "{error}");
    assert_eq!(pod.run_to_end("one", "exit 3").await.exit_code, 3);
    pod.close().await;
}
