//! Containers on a machine whose control groups are one tree (v2). This one is made such a machine, in a mount namespace of these tests' own: its
//! tree may have no controllers there, so that nothing is limited, but devices are controlled and groups are killed.

use std::path::Path;

use libtest_mimic::{Failed, Trial};
use oarsman_host::{device_control, namespaces};
use rustix::mount::{MountFlags, mount};
use serde_json::json;

use crate::pod::{DEADLINE, Pod, case};

/// Set for the process that has one tree.
const INSIDE: &str = "OARSMAN_TEST_CONTAINERS_ON_ONE_TREE";
const PLACE: &str = "/sys/fs/cgroup";

pub(crate) fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Shows this process one tree, in place of what there is.
pub(crate) fn enter() {
    namespaces::detach(Path::new(PLACE)).unwrap();
    mount("cgroup2", PLACE, "cgroup2", MountFlags::NOSUID | MountFlags::NODEV, None).unwrap();
}

/// What holds only there.
pub(crate) fn inside_cases() -> Vec<Trial> {
    vec![case("a_container_whose_devices_cannot_be_controlled_is_refused", uncontrolled)]
}

/// What needs a controller, and what measures times while all others run.
const SKIPPED: [&str; 4] = [
    "a_container_that_ran_out_of_memory_says_so",
    "limits_can_be_changed",
    "a_helper_killed_at_any_step_leaves_nothing",
    "how_long_a_container_takes",
];

/// All other cases, in a process of their own.
pub(crate) fn cases() -> Vec<Trial> {
    let name = "what_needs_no_controller_is_the_same_on_one_tree";
    // Why the kernel cannot do it is told by the tests of the crate `host`.
    let is_impossible = device_control::probe().is_err();
    vec![Trial::test(name, run_inside).with_ignored_flag(is_impossible)]
}

fn run_inside() -> Result<(), Failed> {
    let mut command = tokio::process::Command::new(std::env::current_exe()?);
    command.env(INSIDE, "1").kill_on_drop(true);
    for skipped in SKIPPED {
        command.args(["--skip", skipped]);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let output = runtime
        .block_on(async { tokio::time::timeout(DEADLINE * 8, command.output()).await })??;
    let said = String::from_utf8_lossy(&output.stdout);
    match output.status.success() && said.contains("a_container_whose_devices") {
        true => Ok(()),
        false => Err(format!("{said}\n{}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

async fn uncontrolled(pod: Pod) {
    let rules = json!([{"allow": false}, {"allow": true, "type": "c", "major": 1_i64 << 40, "access": "r"}]);
    let container = pod.container("one", "true").with("/linux/resources/devices", rules);
    let error = pod.client.create(container.request()).await.unwrap_err().to_string();
    assert!(error.contains("there is no such rule for devices: c 1099511627776:* r"), "{error}");
    // Nothing is left of what was made before.
    assert_eq!(pod.processes(), [0; 0]);
    assert_eq!(pod.groups(), [""; 0]);
    assert!(pod.client.list().await.unwrap().is_empty());
    pod.close().await;
}
