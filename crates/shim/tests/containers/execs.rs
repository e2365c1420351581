//! Further processes in containers.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use libtest_mimic::Trial;
use oarsman_shim::client::{AttachStreams, ExecLifetime, ShimError};
use oci_spec::runtime::Process;
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::{Value, json};

use crate::pod::{Pod, case, process};

pub(crate) fn cases() -> Vec<Trial> {
    vec![
        case("an_exec_has_streams_and_an_exit_code", streams),
        case("an_exec_with_a_terminal_can_be_resized", terminal),
        case("an_exec_that_is_too_slow_is_killed_with_all_it_started", too_slow),
        case("an_exec_of_a_connection_is_killed_with_all_it_started_when_that_ends", abandoned),
        case("output_of_an_exec_sync_is_bounded", bounded_output),
        case("what_an_exec_leaves_behind_goes_on", leftovers),
        case("an_exec_is_of_the_user_that_was_asked_for", user),
        case("an_exec_of_nothing_is_refused", refused),
    ]
}

pub(crate) fn changed(process: &Process, pointer: &str, value: Value) -> Process {
    let mut json = serde_json::to_value(process).unwrap();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    json.pointer_mut(parent).unwrap()[name] = value;
    serde_json::from_value(json).unwrap()
}

fn pipe() -> (OwnedFd, OwnedFd) {
    pipe_with(PipeFlags::CLOEXEC).unwrap()
}

async fn streams(pod: Pod) {
    pod.run(pod.container("one", "sleep 1000")).await;
    let ((stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr)) =
        (pipe(), pipe(), pipe());
    let streams = AttachStreams { stdin: Some(stdin), stdout: Some(stdout), stderr: Some(stderr) };
    let exec = pod.client.exec(
        "one",
        process("read x; echo out $x; echo err >&2; hostname; exit 7"),
        streams,
        ExecLifetime::Own,
    );
    let exec = exec.await.unwrap();
    File::from(to_stdin).write_all(b"put\n").unwrap();
    let exit = exec.wait().await.unwrap();
    assert_eq!((exit.exit_code, exit.timed_out), (7, false));
    let read = |from: OwnedFd| {
        let mut text = String::new();
        File::from(from).read_to_string(&mut text).unwrap();
        text
    };
    assert_eq!(
        (read(from_stdout).as_str(), read(from_stderr).as_str()),
        ("out put\npod\n", "err\n")
    );
    let output = pod.client.exec_sync("one", process("echo $A; kill -9 $$"), None).await.unwrap();
    assert_eq!((output.exit.exit_code, output.exit.signal), (137, Some(9)));
    assert_eq!(output.stdout, b"1=2\n");
    pod.close().await;
}

async fn terminal(pod: Pod) {
    pod.run(pod.container("one", "sleep 1000")).await;
    let shell = changed(&process("tty; read x; stty size; exit 4"), "/terminal", json!(true));
    let exec =
        pod.client.exec("one", shell, AttachStreams::default(), ExecLifetime::Own).await.unwrap();
    let terminal = exec.terminal.as_ref().unwrap();
    terminal.resize(111, 33).unwrap();
    rustix::io::write(terminal.descriptor(), b"go\n").unwrap();
    let mut said = Vec::new();
    let reading = terminal.descriptor().try_clone_to_owned().unwrap();
    let read = tokio::task::spawn_blocking(move || {
        let mut buffer = [0; 1024];
        // The end of a terminal is an error.
        while let Ok(count) = rustix::io::read(reading.as_fd(), &mut buffer) {
            said.extend_from_slice(&buffer[..count]);
        }
        String::from_utf8(said).unwrap()
    });
    assert_eq!(exec.wait().await.unwrap().exit_code, 4);
    let said = read.await.unwrap();
    assert!(said.contains("/dev/pts/") && said.contains("33 111"), "{said:?}");
    pod.close().await;
}

async fn too_slow(pod: Pod) {
    pod.run(pod.container("one", "sleep 1000")).await;
    let before = pod.processes();
    let groups = pod.groups();
    let script = "echo begun; setsid sleep 1000 & (sleep 1000 &); while true; do sleep 0.01 & done";
    let output = pod
        .client
        .exec_sync("one", process(script), Some(Duration::from_millis(400)))
        .await
        .unwrap();
    assert!(output.exit.timed_out);
    assert_eq!((output.exit.exit_code, output.stdout.as_slice()), (137, b"begun\n".as_slice()));
    assert_eq!(pod.processes(), before);
    assert_eq!(pod.groups(), groups);
    // One that is fast enough is not killed.
    let output = pod
        .client
        .exec_sync("one", process("exit 5"), Some(Duration::from_secs(30)))
        .await
        .unwrap();
    assert_eq!((output.exit.exit_code, output.exit.timed_out), (5, false));
    pod.close().await;
}

async fn abandoned(pod: Pod) {
    pod.run(pod.container("one", "sleep 1000")).await;
    let (before, groups) = (pod.processes(), pod.groups());
    let script = || process("trap '' HUP TERM; setsid sleep 1000 & while true; do sleep 1; done");
    let terminal = changed(&script(), "/terminal", json!(true));
    for process in [script(), terminal] {
        let none = AttachStreams::default();
        let exec = pod.client.exec("one", process, none, ExecLifetime::Connection).await.unwrap();
        pod.until("the exec has begun", || pod.processes().len() > before.len() + 1).await;
        drop(exec);
        pod.until("nothing of it is left", || pod.processes() == before).await;
        pod.until("its group is removed", || pod.groups() == groups).await;
    }
    // One that is waited for ends by itself.
    let streams = AttachStreams::default();
    let exec = pod.client.exec("one", process("exit 5"), streams, ExecLifetime::Connection);
    assert_eq!(exec.await.unwrap().wait().await.unwrap().exit_code, 5);
    pod.close().await;
}

async fn bounded_output(pod: Pod) {
    pod.run(pod.container("one", "sleep 1000")).await;
    let output = pod
        .client
        .exec_sync("one", process("head -c 17000000 /dev/zero; echo end >&2"), None)
        .await
        .unwrap();
    assert_eq!(
        (output.exit.exit_code, output.stdout.len(), output.stderr.as_slice()),
        (0, 16 << 20, b"end\n".as_slice())
    );
    pod.close().await;
}

async fn leftovers(pod: Pod) {
    pod.run(pod.container("one", "sleep 1000")).await;
    let script = "setsid sleep 1000 </dev/null >/dev/null 2>&1 & exit 0";
    pod.client.exec_sync("one", process(script), None).await.unwrap();
    pod.until("the exec's process is in the container's group", || pod.processes().len() == 2)
        .await;
    let below = oarsman_host::cgroups::hierarchies(&oarsman_host::mounts::current().unwrap());
    let below = below.iter().flat_map(|h| h.below(&pod.cgroup.join("one")).unwrap()).count();
    assert_eq!(below, 0);
    pod.close().await;
}

async fn user(pod: Pod) {
    pod.run(pod.container("one", "sleep 1000")).await;
    let asked = changed(
        &process("id; echo $HOME; grep Cap /proc/self/status"),
        "/user",
        json!({"uid": 1000, "gid": 1001, "additionalGids": [5, 6]}),
    );
    let output = pod.client.exec_sync("one", asked, None).await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("uid=1000(user) gid=1001 groups=5,6"), "{said}");
    assert!(said.contains("\n/home\n"), "{said}");
    assert!(said.contains("CapEff:\t0000000000000000"), "{said}");
    pod.close().await;
}

async fn refused(pod: Pod) {
    pod.run(pod.container("one", "sleep 1000")).await;
    // The words of other runtimes, which users look for.
    let rows = [
        (
            "/no/such/program",
            "exec: \"/no/such/program\": stat /no/such/program: no such file or directory",
        ),
        ("no-such-program", "exec: \"no-such-program\": executable file not found in $PATH"),
        ("/etc/passwd", "exec: \"/etc/passwd\": permission denied"),
        ("/etc", "exec: \"/etc\": is a directory"),
    ];
    for (program, words) in rows {
        let asked = changed(&process(""), "/args", json!([program]));
        let error = pod.client.exec_sync("one", asked, None).await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    pod.client.create(pod.container("two", "true").request()).await.unwrap();
    let error = pod.client.exec_sync("two", process("true"), None).await.unwrap_err();
    assert!(matches!(&error, ShimError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("does not run"), "{error}");
    pod.close().await;
}
