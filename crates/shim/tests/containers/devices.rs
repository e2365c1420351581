//! Which devices a container may use, wherever the kernel controls that.

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::pod::{Pod, case, process};

pub(crate) fn cases() -> Vec<Trial> {
    vec![
        case("a_disk_cannot_be_used_by_a_node_that_the_container_makes", disk),
        case("a_device_that_is_allowed_can_be_used_as_it_is_allowed", allowed),
        case("a_privileged_container_uses_all_devices", privileged),
    ]
}

/// Makes a node of a disk, of a number that no machine has, and tries to use it: what is allowed fails in its driver.
const TRY: &str = "mknod /tmp/$$ b 240 0 && echo made; \
    r=$(cat /tmp/$$ 2>&1); echo read ${r##*: }; w=$( (echo x > /tmp/$$) 2>&1); echo write ${w##*: }; rm /tmp/$$";

fn said(read: bool, write: bool) -> String {
    let answer = |allowed| match allowed {
        true => "No such device or address",
        false => "Operation not permitted",
    };
    format!("made\nread {}\nwrite {}\n", answer(read), answer(write))
}

async fn run(pod: &Pod, id: &str, script: &str, rules: Value) -> String {
    pod.run(pod.container(id, script).with("/linux/resources/devices", rules)).await;
    let exit = pod.client.wait(id).await.unwrap();
    assert_eq!(exit.exit_code, 0, "{:?}", pod.lines(id));
    pod.output(id)
}

async fn disk(pod: Pod) {
    let rules = || json!([{"allow": false, "access": "rwm"}]);
    assert_eq!(run(&pod, "one", TRY, rules()).await, said(false, false));
    let script = "cat /dev/null; echo x > /dev/null; head -c 5 /dev/zero | wc -c; test -c /dev/pts/ptmx && echo terminals";
    assert_eq!(run(&pod, "two", script, rules()).await, "5\nterminals\n");
    // What is executed in it later may do no more.
    pod.run(pod.container("three", "sleep 1000").with("/linux/resources/devices", rules())).await;
    let output = pod.client.exec_sync("three", process(TRY), None).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), said(false, false));
    pod.close().await;
}

async fn allowed(pod: Pod) {
    let rule = json!({"allow": true, "type": "b", "major": 240, "minor": 0, "access": "r"});
    let rules = json!([{"allow": false, "access": "rwm"}, rule]);
    assert_eq!(run(&pod, "one", TRY, rules).await, said(true, false));
    pod.close().await;
}

async fn privileged(pod: Pod) {
    let rules = json!([{"allow": true, "access": "rwm"}]);
    assert_eq!(run(&pod, "one", TRY, rules).await, said(true, true));
    pod.close().await;
}
