//! Namespaces that containers share, and user namespaces.

use std::path::Path;

use libtest_mimic::Trial;
use oarsman_host::namespaces::NamespaceKind;
use oarsman_shim::user_namespace::{InnerKind, InnerNamespaces, UserNamespaceProcess};
use oci_spec::runtime::LinuxIdMapping;
use serde_json::json;

use crate::pod::{Builder, Pod, case, process};

pub(crate) fn cases() -> Vec<Trial> {
    vec![
        case("containers_share_a_pid_namespace_with_a_process_that_reaps", pid_namespace),
        case("a_container_without_a_pid_namespace_ends_with_its_first_process", host_pid),
        case("a_chain_of_forks_ends_with_its_container", fork_chain),
        case("a_user_namespace_maps_the_users_of_container_and_exec", user_namespace),
        case("a_shared_pid_namespace_can_belong_to_a_user_namespace", shared_in_user_namespace),
    ]
}

fn namespaces(pid: &serde_json::Value) -> serde_json::Value {
    json!([pid, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}, {"type": "network"}])
}

async fn pid_namespace(pod: Pod) {
    let path = pod.client.pid_namespace(None).await.unwrap();
    assert_eq!(pod.client.pid_namespace(None).await.unwrap(), path);
    let shared = namespaces(&json!({"type": "pid", "path": path}));
    pod.run(pod.container("one", "sleep 1234").with("/linux/namespaces", shared.clone())).await;
    // An orphan that ends at once, one that lives on, and a look at what the others are.
    let script = "(sh -c 'sleep 0.01; exit 3' &); (sleep 4321 &); sleep 0.3; ps -o pid,stat,args; ls /proc/1/root/ | wc -l; ls /proc/1/cwd/ | wc -l; exit 9";
    pod.run(pod.container("two", script).with("/linux/namespaces", shared)).await;
    assert_eq!(pod.client.wait("two").await.unwrap().exit_code, 9);
    let output = pod.output("two");
    assert!(output.contains("sleep 1234") && output.contains("sleep 4321"), "{output}");
    assert!(
        output
            .lines()
            .any(|line| line.trim_start().starts_with("1 ") && line.contains("oarsman-pause")),
        "{output}"
    );
    assert!(!output.contains(" Z"), "{output}");
    assert!(output.ends_with("0\n0\n"), "{output}");
    // What the second left behind is ended with it; the first goes on.
    pod.until("only the first runs", || pod.processes().len() == 1).await;
    let first = pod.client.list().await.unwrap().remove(0);
    assert_eq!((first.container.as_str(), first.exit), ("one", None));
    pod.close().await;
}

async fn host_pid(pod: Pod) {
    let host = json!([{"type": "ipc"}, {"type": "uts"}, {"type": "mount"}, {"type": "network"}]);
    let script = "(setsid sleep 4242 &); echo begun; exit 2";
    pod.run(pod.container("one", script).with("/linux/namespaces", host)).await;
    assert_eq!(pod.client.wait("one").await.unwrap().exit_code, 2);
    pod.until("nothing of it runs", || pod.processes().is_empty()).await;
    pod.close().await;
}

/// Each process of the chain ends as soon as it has started the next one. It would last for minutes, and not for ever.
async fn fork_chain(pod: Pod) {
    let host = json!([{"type": "ipc"}, {"type": "uts"}, {"type": "mount"}, {"type": "network"}]);
    let chain = "case $1 in 0) ;; *) sh /chain $(($1 - 1)) & esac\n";
    std::fs::write(pod.root().join("chain"), chain).unwrap();
    let script = "for i in 1 2 3 4 5; do sh /chain 100000 & done; sleep 0.1; exit 2";
    pod.run(pod.container("one", script).with("/linux/namespaces", host)).await;
    assert_eq!(pod.client.wait("one").await.unwrap().exit_code, 2);
    // The exit is told only after all was killed.
    pod.until("nothing of it runs", || pod.processes().is_empty()).await;
    pod.close().await;
}

async fn user_namespace(pod: Pod) {
    // The way to the root file system is closed to all but root, and so to the users that are mapped.
    let with_user = json!([{"type": "user"}, {"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}, {"type": "network"}]);
    let mapping = json!([{"containerID": 0, "hostID": 200_000, "size": 65536}]);
    let container = pod
        .container("one", "id -u; cat /proc/self/uid_map; sleep 1000")
        .with("/linux/namespaces", with_user);
    let container =
        container.with("/linux/uidMappings", mapping.clone()).with("/linux/gidMappings", mapping);
    let pid = pod.run(container).await;
    let ended = pod.client.wait("one");
    tokio::select! {
        exit = ended => panic!("{exit:?} {:?}", pod.lines("one")),
        () = pod.until("its id is told", || pod.lines("one").len() >= 2) => {}
    }
    let said = pod.output("one");
    assert_eq!(said.split_whitespace().collect::<Vec<_>>(), ["0", "0", "200000", "65536"]);
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.contains("Uid:\t200000\t200000"), "{status}");
    // An exec is in it, and has no rights outside of it.
    let output = pod.client.exec_sync(
        "one",
        process(
            "readlink /proc/self/ns/user; cat /proc/self/uid_map; grep CapEff /proc/self/status",
        ),
        None,
    );
    let output = String::from_utf8(output.await.unwrap().stdout).unwrap();
    let namespace = std::fs::read_link(format!("/proc/{pid}/ns/user")).unwrap();
    assert!(output.starts_with(&format!("{}\n", namespace.display())), "{output}");
    assert!(output.contains("200000"), "{output}");
    pod.close().await;
}

/// A user namespace with the namespaces of a pod in it.
fn make_namespaces() -> UserNamespaceProcess {
    let mapping: Vec<LinuxIdMapping> =
        serde_json::from_value(json!([{"containerID": 0, "hostID": 200_000, "size": 65536}]))
            .unwrap();
    let inner = InnerNamespaces {
        kinds: vec![InnerKind::Network, InnerKind::Ipc, InnerKind::Uts],
        hostname: Some("mapped".to_owned()),
        settings: vec![("/proc/sys/kernel/shmmni".into(), "77".to_owned())],
    };
    let program = std::env::current_exe().unwrap();
    UserNamespaceProcess::start(&program, &mapping, &mapping, &inner).unwrap()
}

/// In these namespaces, with that one of processes.
fn inside(container: Builder, held: &UserNamespaceProcess, pid: Option<&Path>) -> Builder {
    let path = |kind| held.namespace(kind);
    let mapping = json!([{"containerID": 0, "hostID": 200_000, "size": 65536}]);
    let namespaces = json!([
        {"type": "user", "path": path(NamespaceKind::User)},
        {"type": "network", "path": path(NamespaceKind::Network)},
        {"type": "ipc", "path": path(NamespaceKind::Ipc)},
        {"type": "uts", "path": path(NamespaceKind::Uts)},
        {"type": "mount"},
        {"type": "pid", "path": pid},
    ]);
    container
        .with("/linux/namespaces", namespaces)
        .with("/linux/uidMappings", mapping.clone())
        .with("/linux/gidMappings", mapping)
}

async fn shared_in_user_namespace(pod: Pod) {
    let held = make_namespaces();
    let users = held.namespace(NamespaceKind::User);
    let pid = pod.client.pid_namespace(Some(users)).await.unwrap();
    pod.run(inside(pod.container("one", "sleep 1234"), &held, Some(&pid))).await;
    let script = "hostname; cat /proc/sys/kernel/shmmni; ps -o pid,args; exit 4";
    pod.run(inside(pod.container("two", script), &held, Some(&pid))).await;
    // What shares the namespaces keeps them.
    drop(held);
    let exit = pod.client.wait("two").await.unwrap();
    let output = pod.output("two");
    assert_eq!(exit.exit_code, 4, "{:?}", pod.lines("two"));
    assert!(output.starts_with("mapped\n77\n"), "{output}");
    assert!(output.contains("oarsman-pause") && output.contains("sleep 1234"), "{output}");
    pod.close().await;
}
