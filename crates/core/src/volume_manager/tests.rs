//! Desired and actual states, and what comes of them.

use k8s_openapi::api::core::v1::{Container, PodSpec, VolumeMount};

use super::*;
use crate::cri_spec::PayloadFile;

const CONFIG_MAP: &str = "kubernetes.io/configmap";
const EMPTY_DIR: &str = "kubernetes.io/empty-dir";

fn payload(text: &str) -> Payload {
    let file = PayloadFile { bytes: text.as_bytes().into(), mode: 0o644, owner: None, keep: false };
    Payload::from([("file".to_owned(), file)])
}

fn wanted(name: &str, plugin: &str, text: Option<&str>) -> VolumeToMount {
    let payload = text.map(payload).map(Arc::new);
    let (name, plugin) = (name.to_owned(), plugin.to_owned());
    VolumeToMount { name, plugin, payload, claimed: None }
}

fn desired(volumes: &[VolumeToMount]) -> DesiredStateOfWorld {
    DesiredStateOfWorld(volumes.iter().map(|v| (v.key(), v.clone())).collect())
}

fn actual(volumes: &[VolumeToMount]) -> ActualStateOfWorld {
    let mut actual = ActualStateOfWorld::default();
    actual.mark_as_mounted(volumes.to_vec());
    actual
}

/// What is set up, refreshed and torn down, by name.
fn names(todo: &Reconciliation) -> [Vec<&str>; 3] {
    [
        todo.set_up.iter().map(|volume| volume.name.as_str()).collect(),
        todo.refresh.iter().map(|volume| volume.name.as_str()).collect(),
        todo.tear_down.iter().map(|volume| volume.name.as_str()).collect(),
    ]
}

#[test]
fn a_volume_is_set_up_once_refreshed_when_its_files_change_and_torn_down_when_unwanted() {
    let (dir, old, new) = (
        wanted("dir", EMPTY_DIR, None),
        wanted("map", CONFIG_MAP, Some("old")),
        wanted("map", CONFIG_MAP, Some("new")),
    );
    let unknown = wanted("map", CONFIG_MAP, None);
    let (none, dir_, old_, new_, unknown_) =
        (vec![], vec![dir], vec![old], vec![new], vec![unknown]);
    type Row<'a> = (&'a [VolumeToMount], &'a [VolumeToMount], [Vec<&'a str>; 3]);
    let rows: [Row<'_>; 10] = [
        (&none, &none, [vec![], vec![], vec![]]),
        (&dir_, &none, [vec!["dir"], vec![], vec![]]),
        (&dir_, &dir_, [vec![], vec![], vec![]]),
        (&none, &dir_, [vec![], vec![], vec!["dir"]]),
        (&new_, &dir_, [vec!["map"], vec![], vec!["dir"]]),
        (&new_, &old_, [vec![], vec!["map"], vec![]]),
        (&old_, &old_, [vec![], vec![], vec![]]),
        // Files that are unknown leave a volume as it is, and come when they are known.
        (&unknown_, &old_, [vec![], vec![], vec![]]),
        (&unknown_, &none, [vec!["map"], vec![], vec![]]),
        (&old_, &unknown_, [vec![], vec!["map"], vec![]]),
    ];
    for (want, have, expected) in rows {
        let todo = reconcile(&desired(want), &actual(have));
        assert_eq!(names(&todo), expected, "{want:?} {have:?}");
    }
}

#[test]
fn a_volume_that_was_left_as_it_is_keeps_the_files_it_had() {
    let mut state = actual(&[wanted("map", CONFIG_MAP, Some("old"))]);
    state.mark_as_mounted([wanted("map", CONFIG_MAP, None)]);
    let todo = reconcile(&desired(&[wanted("map", CONFIG_MAP, Some("old"))]), &state);
    assert_eq!(todo, Reconciliation::default());
}

#[test]
fn what_is_found_on_disk_is_refreshed_or_torn_down() {
    let found = || {
        let volume = |name: &str| MountedVolume::found(name.to_owned(), CONFIG_MAP.to_owned());
        ActualStateOfWorld::found(["map", "left"].map(volume))
    };
    let todo = reconcile(&desired(&[wanted("map", CONFIG_MAP, Some("old"))]), &found());
    assert_eq!(names(&todo), [vec![], vec!["map"], vec!["left"]]);
    let todo = reconcile(&DesiredStateOfWorld::default(), &found());
    assert_eq!(names(&todo), [vec![], vec![], vec!["left", "map"]]);
}

#[test]
fn volumes_that_may_hang_hold_up_nothing_but_themselves() {
    let rows: [(&[&str], usize); 5] = [
        (&[], 0),
        (&[EMPTY_DIR, CONFIG_MAP, "kubernetes.io/secret"], 1),
        (&["kubernetes.io/host-path", "kubernetes.io/host-path"], 2),
        (&[EMPTY_DIR, "kubernetes.io/csi", CONFIG_MAP], 2),
        (&["nfs", EMPTY_DIR, "kubernetes.io/csi"], 3),
    ];
    for (plugins, pieces) in rows {
        let parts = side_by_side(plugins.to_vec(), |plugin| plugin);
        assert_eq!(parts.len(), pieces, "{plugins:?}");
        assert_eq!(parts.concat().len(), plugins.len());
    }
}

#[test]
fn only_volumes_that_a_container_mounts_are_desired_each_with_its_plugin() {
    let mut pod = Pod::default();
    let mount = |name: &str| VolumeMount { name: name.to_owned(), ..VolumeMount::default() };
    let volume = |name: &str, edit: fn(&mut Volume)| {
        let mut volume = Volume { name: name.to_owned(), ..Volume::default() };
        edit(&mut volume);
        volume
    };
    pod.spec = Some(PodSpec {
        containers: vec![Container {
            volume_mounts: Some(["dir", "host", "nfs", "model"].map(mount).to_vec()),
            ..Container::default()
        }],
        volumes: Some(vec![
            volume("dir", |v| v.empty_dir = Some(Default::default())),
            volume("host", |v| v.host_path = Some(Default::default())),
            volume("nfs", |v| v.nfs = Some(Default::default())),
            // The runtime mounts it.
            volume("model", |v| v.image = Some(Default::default())),
            volume("unused", |v| v.empty_dir = Some(Default::default())),
        ]),
        ..PodSpec::default()
    });
    let desired = DesiredStateOfWorld::of(&pod, Payloads::new(), &ClaimedVolumes::new());
    let plugins: Vec<_> =
        desired.0.values().map(|v| (v.name.as_str(), v.plugin.as_str())).collect();
    let expected =
        [("dir", EMPTY_DIR), ("host", "kubernetes.io/host-path"), ("nfs", "kubernetes.io/nfs")];
    assert_eq!(plugins, expected);
}
