//! Create, start, wait, kill, delete.

use libtest_mimic::Trial;
use oarsman_shim::client::ShimError;
use oarsman_shim::protocol::{ContainerPhase, RefusalKind};
use serde_json::json;

use crate::pod::{Pod, case};

pub(crate) fn cases() -> Vec<Trial> {
    vec![
        case("exit_codes_are_those_of_the_program", exit_codes),
        case("a_signal_ends_a_container_with_its_number", signals),
        case("lines_of_both_streams_are_in_the_log", log_lines),
        case("the_states_of_a_container_are_told", states),
        case("what_is_wrong_is_refused_with_its_reason", refusals),
        case("a_container_that_ran_out_of_memory_says_so", out_of_memory),
        case("limits_can_be_changed", update),
        case("how_long_a_container_takes", measure),
    ]
}

async fn exit_codes(pod: Pod) {
    for code in [0, 1, 42, 255] {
        let id = format!("code{code}");
        let exit = pod.run_to_end(&id, &format!("exit {code}")).await;
        assert_eq!(
            (exit.exit_code, exit.signal, exit.oom_killed, exit.unknown),
            (code, None, false, false)
        );
    }
    let reports = oarsman_shim::client::read_reports(&pod.directory).unwrap();
    let codes: Vec<i32> =
        reports.iter().map(|report| report.exit.as_ref().unwrap().exit_code).collect();
    assert_eq!(codes, [0, 1, 255, 42]);
    for report in &reports {
        let exit = report.exit.as_ref().unwrap();
        assert!(report.created_at.unwrap() <= report.started_at.unwrap(), "{report:?}");
        assert!(report.started_at.unwrap() <= exit.finished_at, "{report:?}");
    }
    pod.close().await;
}

async fn signals(pod: Pod) {
    pod.run(pod.container(
        "handles",
        "trap 'echo got it; exit 3' USR1; echo ready; while true; do sleep 0.01; done",
    ))
    .await;
    pod.until_said("handles", "ready").await;
    pod.client.kill("handles", 10, false).await.unwrap();
    let exit = pod.client.wait("handles").await.unwrap();
    assert_eq!((exit.exit_code, exit.signal), (3, None));
    assert_eq!(pod.output("handles"), "ready\ngot it\n");
    pod.run(pod.container("killed", "sleep 1000")).await;
    pod.client.kill("killed", 9, false).await.unwrap();
    let exit = pod.client.wait("killed").await.unwrap();
    assert_eq!((exit.exit_code, exit.signal), (137, Some(9)));
    pod.run(pod.container("all", "sleep 1000 & echo ready; sleep 1000")).await;
    pod.until_said("all", "ready").await;
    pod.client.kill("all", 9, true).await.unwrap();
    assert_eq!(pod.client.wait("all").await.unwrap().exit_code, 137);
    let error = pod.client.kill("all", 9, false).await.unwrap_err();
    assert!(matches!(error, ShimError::Refused { kind: RefusalKind::WrongState, .. }), "{error}");
    pod.close().await;
}

async fn log_lines(pod: Pod) {
    let script = "echo out; echo err >&2; printf 'no end'; head -c 40000 /dev/zero | tr '\\0' x >&2; echo >&2; printf last";
    pod.run_to_end("lines", script).await;
    let lines = pod.lines("lines");
    let of = |stream: &str| -> Vec<String> {
        let lines = lines.iter().filter_map(|line| line.strip_prefix(stream));
        lines.map(|line| line.trim_start().to_owned()).collect()
    };
    assert_eq!(of("stdout"), ["F out", "P no endlast"]);
    let x = |count: usize| "x".repeat(count);
    let expected = [
        "F err".to_owned(),
        format!("P {}", x(16384)),
        format!("P {}", x(16384)),
        format!("F {}", x(40000 - 2 * 16384)),
    ];
    assert_eq!(of("stderr"), expected);
    let text = std::fs::read_to_string(pod.log("lines")).unwrap();
    for line in text.lines() {
        let time = line.split_once(' ').unwrap().0;
        assert!(time.len() == 30 && time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    }
    pod.close().await;
}

async fn states(pod: Pod) {
    let pid = pod.client.create(pod.container("one", "sleep 1000").request()).await.unwrap();
    let one = || async { pod.client.list().await.unwrap().remove(0) };
    let report = one().await;
    assert_eq!(
        (report.phase, report.pid, report.started_at),
        (ContainerPhase::Created, Some(pid), None)
    );
    pod.client.start("one").await.unwrap();
    let mut exits = pod.client.exits().await.unwrap();
    let report = one().await;
    assert_eq!((report.phase, report.pid, report.exit), (ContainerPhase::Running, Some(pid), None));
    pod.client.kill("one", 9, false).await.unwrap();
    let (container, exit) = exits.next().await.unwrap();
    assert_eq!((container.as_str(), exit.exit_code), ("one", 137));
    let report = one().await;
    assert_eq!((report.phase, report.pid, report.exit), (ContainerPhase::Exited, None, Some(exit)));
    // A created container and a running one can be deleted, too.
    pod.client.create(pod.container("two", "true").request()).await.unwrap();
    pod.client.delete("two").await.unwrap();
    pod.run(pod.container("three", "sleep 1000")).await;
    pod.client.delete("three").await.unwrap();
    assert_eq!(pod.client.list().await.unwrap().len(), 1);
    pod.close().await;
}

async fn refusals(pod: Pod) {
    let kind_of = |error: ShimError| match error {
        ShimError::Refused { kind, message } => (kind, message),
        other => panic!("{other}"),
    };
    let (kind, _) = kind_of(pod.client.start("none").await.unwrap_err());
    assert_eq!(kind, RefusalKind::NotFound);
    let (kind, _) =
        kind_of(pod.client.create(pod.container("../x", "true").request()).await.unwrap_err());
    assert_eq!(kind, RefusalKind::Invalid);
    let missing =
        pod.container("missing", "true").with("/process/args", json!(["no-such-program"]));
    let (kind, message) = kind_of(pod.client.create(missing.request()).await.unwrap_err());
    assert_eq!(kind, RefusalKind::Failed);
    assert!(
        message.contains("\"no-such-program\"") && message.contains("not found in $PATH"),
        "{message}"
    );
    let directory = pod.container("directory", "true").with("/process/args", json!(["/etc"]));
    let (_, message) = kind_of(pod.client.create(directory.request()).await.unwrap_err());
    assert!(message.contains("is a directory"), "{message}");
    let rootless = pod.container("rootless", "true").with("/root/path", json!("/no/such/root"));
    let (_, message) = kind_of(pod.client.create(rootless.request()).await.unwrap_err());
    assert!(message.contains("/no/such/root") || message.contains("No such file"), "{message}");
    // Nothing of them is left, and their names are free.
    assert_eq!(pod.client.list().await.unwrap(), []);
    assert_eq!(pod.groups(), [""; 0]);
    pod.client.create(pod.container("missing", "true").request()).await.unwrap();
    let (kind, _) =
        kind_of(pod.client.create(pod.container("missing", "true").request()).await.unwrap_err());
    assert_eq!(kind, RefusalKind::Exists);
    let (kind, _) = kind_of(pod.client.shut_down().await.unwrap_err());
    assert_eq!(kind, RefusalKind::WrongState);
    pod.close().await;
}

async fn out_of_memory(pod: Pod) {
    let script = "x=y; while true; do x=$x$x; done";
    let container = pod
        .container("big", script)
        .with("/linux/resources/memory", json!({"limit": 16 << 20, "swap": 16 << 20}));
    pod.run(container).await;
    let exit = pod.client.wait("big").await.unwrap();
    assert_eq!((exit.exit_code, exit.oom_killed), (137, true));
    pod.close().await;
}

async fn update(pod: Pod) {
    pod.run(pod.container("one", "sleep 1000").with("/linux/resources/pids", json!({"limit": 50})))
        .await;
    let files: Vec<std::path::PathBuf> = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"]
        .iter()
        .map(|root| {
            std::path::Path::new(root)
                .join(pod.cgroup.strip_prefix("/").unwrap())
                .join("one/pids.max")
        })
        .collect();
    let limit = || files.iter().find_map(|file| std::fs::read_to_string(file).ok()).unwrap();
    assert_eq!(limit().trim(), "50");
    let resources = serde_json::from_value(json!({"pids": {"limit": 60}})).unwrap();
    pod.client.update("one", resources).await.unwrap();
    assert_eq!(limit().trim(), "60");
    pod.close().await;
}

/// Prints figures and asserts nothing about them.
async fn measure(pod: Pod) {
    let mut times = Vec::new();
    for number in 0..10 {
        let id = format!("c{number}");
        let begin = std::time::Instant::now();
        pod.run(pod.container(&id, "sleep 1000")).await;
        times.push(begin.elapsed());
    }
    times.sort();
    let pss = oarsman_host::processes::pss(pod.shim).unwrap();
    println!(
        "create and start: median {:?}, most {:?}; shim with 10 containers: PSS {} KiB",
        times[5],
        times[9],
        pss / 1024
    );
    let begin = std::time::Instant::now();
    for _ in 0..10 {
        pod.client.exec_sync("c0", crate::pod::process("true"), None).await.unwrap();
    }
    println!("exec-sync: {:?} each", begin.elapsed() / 10);
    pod.close().await;
}
