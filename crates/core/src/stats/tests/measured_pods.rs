//! Which groups belong to a pod, and to which of its containers.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::*;
use super::fixture::{stats, wall};
use crate::active_pods::{ActivePod, ActivePods, PodStage};
use crate::lifecycle::Stage;
use crate::resources::names::{CgroupDriver, CgroupNames};

fn active(
    uid: &str,
    stage: PodStage,
    host_network: bool,
    states: &[(&str, Value)],
) -> Arc<ActivePod> {
    let status = |(name, state): &(&str, Value)| {
        json!({
            "name": name, "image": "i", "imageID": "", "ready": true, "restartCount": 0,
            "containerID": format!("containerd://id-of-{name}"), "state": state,
        })
    };
    let pod = json!({
        "metadata": { "name": "web", "namespace": "shop", "uid": uid },
        "spec": { "hostNetwork": host_network, "containers": [{ "name": "main" }] },
        "status": {
            "startTime": "1970-01-01T00:08:20Z",
            "containerStatuses": states.iter().map(status).collect::<Vec<_>>(),
        },
    });
    let mut pods = ActivePods::default();
    pods.set_pod(&Arc::new(serde_json::from_value(pod).unwrap()), stage);
    Arc::clone(pods.all().next().unwrap())
}

#[test]
fn running_containers_of_pods_that_have_a_worker_are_measured() {
    let running = json!({ "running": { "startedAt": "1970-01-01T00:10:00Z" } });
    let ended = json!({ "terminated": { "exitCode": 0 } });
    let states = [("main", running), ("job", ended)];
    let pods = [
        active("u1", PodStage::Worker(Stage::Syncing), false, &states),
        active("u2", PodStage::Waiting, false, &states),
        active("u3", PodStage::Worker(Stage::Terminating), true, &[]),
    ];
    let rows = [
        (CgroupDriver::Cgroupfs, "/kubepods/besteffort/podu1"),
        (
            CgroupDriver::Systemd,
            "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podu1.slice",
        ),
    ];
    for (driver, cgroup) in rows {
        let measured = pods_to_measure(&pods, &CgroupNames::new(driver, "/"));
        assert_eq!(measured.len(), 2);
        assert_eq!((measured[0].cgroup.as_str(), measured[0].has_network), (cgroup, true));
        assert_eq!(measured[0].started, Some(wall(500)));
        let main = ContainerToMeasure {
            id: "id-of-main".to_owned(),
            name: "main".to_owned(),
            image: "i".to_owned(),
            started: Some(wall(600)),
        };
        assert_eq!(measured[0].containers, [main]);
        assert_eq!((measured[1].uid.as_str(), measured[1].has_network), ("u3", false));
    }
}

#[test]
fn the_id_of_a_container_is_found_in_the_name_of_its_group() {
    let rows = [
        ("0a1b", Some("0a1b")),
        ("cri-containerd-0a1b.scope", Some("0a1b")),
        ("crio-0a1b.scope", Some("0a1b")),
        ("crio-0a1b", Some("0a1b")),
        ("crio-conmon-0a1b.scope", None),
        ("", None),
    ];
    for (directory, expected) in rows {
        assert_eq!(container_id_of_cgroup(directory), expected, "{directory}");
    }
}

#[test]
fn groups_below_a_pod_are_its_containers_and_its_sandbox() {
    let container = |id: &str, name: &str| ContainerToMeasure {
        id: id.to_owned(),
        name: name.to_owned(),
        image: String::new(),
        started: None,
    };
    let pod = PodToMeasure {
        uid: "1".into(),
        name: "web".to_owned(),
        namespace: "shop".to_owned(),
        started: Some(wall(5)),
        cgroup: "/kubepods/pod1".to_owned(),
        has_network: true,
        containers: vec![
            container("zz", "first"),
            container("aa", "second"),
            container("gone", "third"),
        ],
    };
    let below = ["aa", "crio-conmon-zz", "sandbox", "zz"];
    let reading = PodReading {
        own: stats(1),
        below: below.iter().map(|name| ((*name).to_owned(), stats(2))).collect(),
        interfaces: None,
    };
    let measured = measured_pod(pod, reading, |path| (path == "/kubepods/pod1/aa").then_some(7));
    let names: Vec<_> = measured.containers.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(
        names,
        ["first", "second"],
        "in the order of the status, without the one that is gone"
    );
    assert_eq!(measured.containers[0].cgroup.nano_cores, None);
    assert_eq!(measured.containers[1].cgroup.nano_cores, Some(7));
    let sandboxes: Vec<_> = measured.sandboxes.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(sandboxes, ["/kubepods/pod1/sandbox"]);
    assert_eq!(
        (measured.cgroup.path.as_str(), measured.cgroup.started),
        ("/kubepods/pod1", Some(wall(5)))
    );
}
