//! Which parts of volumes a container mounts, and what is refused.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    EmptyDirVolumeSource, EnvVar, HostPathVolumeSource, Pod, Volume, VolumeMount,
};

use super::*;
use crate::cri_spec::tests::node;
use crate::cri_spec::{ContainerHostPaths, ImageUser, ImageVolume, Lookup, PodGrants, VolumePath};
use crate::fixture::pod;

fn mount(volume: &str, plain: Option<&str>, expression: Option<&str>) -> VolumeMount {
    VolumeMount {
        name: volume.to_owned(),
        mount_path: "/mnt".to_owned(),
        sub_path: plain.map(str::to_owned),
        sub_path_expr: expression.map(str::to_owned),
        ..VolumeMount::default()
    }
}

/// A pod with an emptyDir `data` and a hostPath `host`, and the variables A, B, EMPTY, UP and ROOT.
fn pod_with(mounts: Vec<VolumeMount>) -> Pod {
    let data = EmptyDirVolumeSource::default();
    let data = Volume { name: "data".to_owned(), empty_dir: Some(data), ..Volume::default() };
    let host = HostPathVolumeSource { path: "/srv".to_owned(), type_: None };
    let host = Volume { name: "host".to_owned(), host_path: Some(host), ..Volume::default() };
    let variables = [("A", "a"), ("B", "b/c"), ("EMPTY", ""), ("UP", ".."), ("ROOT", "/")];
    let variables = variables.map(|(name, value)| EnvVar {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        value_from: None,
    });
    let edit = |spec: &mut k8s_openapi::api::core::v1::Container| {
        spec.env = Some(variables.to_vec());
        spec.volume_mounts = Some(mounts);
    };
    pod().regular_with("app", edit).spec(|spec| spec.volumes = Some(vec![data, host])).build()
}

fn of(mounts: Vec<VolumeMount>) -> Result<ContainerSubPaths, ConfigError> {
    let (pod, node) = (pod_with(mounts), node());
    let place = |path: &str| VolumePath { path: path.into(), ..VolumePath::default() };
    let volumes = [("data", place("/r/data")), ("host", place("/srv"))];
    let volumes = volumes.map(|(name, place)| (name.to_owned(), place));
    let volumes = BTreeMap::from(volumes);
    let images = BTreeMap::from([("model".to_owned(), ImageVolume::default())]);
    sub_paths(&ContainerConfigRequest {
        pod: &pod,
        spec: &pod.regular()[0],
        restart_count: 0,
        image: "",
        image_user: &ImageUser::default(),
        ips: &[],
        target: None,
        host_paths: &ContainerHostPaths { volumes, images, ..ContainerHostPaths::default() },
        lookup: &Lookup::default(),
        grants: &PodGrants::default(),
        node: &node.context(),
    })
}

#[test]
fn parts_are_numbered_as_their_mounts_and_whole_volumes_are_none() {
    let mounts = vec![
        mount("data", None, None),
        mount("data", Some("x/y"), None),
        mount("host", Some(""), Some("")),
        mount("host", None, Some("$(A)/$(B)-$$(A)")),
        mount("model", None, Some("$(A)/weights")),
    ];
    let part = |volume: &str, plugin: &str, index, volume_path: &str, sub_path: &str| {
        let (volume, plugin) = (volume.to_owned(), format!("kubernetes.io/{plugin}"));
        let (volume_path, sub_path) = (volume_path.into(), sub_path.into());
        let container = "app".to_owned();
        SubPathToMount { volume, plugin, container, index, volume_path, sub_path }
    };
    let expected = [
        part("data", "empty-dir", 1, "/r/data", "x/y"),
        part("host", "host-path", 3, "/srv", "a/b/c-$(A)"),
    ];
    let found = of(mounts).unwrap();
    assert_eq!(found.to_mount, expected);
    assert_eq!(found.of_images, BTreeMap::from([(4, "a/weights".into())]));
}

#[test]
fn a_part_that_could_lie_elsewhere_is_refused_with_container_volume_and_path() {
    let plain = |path: &str| mount("data", Some(path), None);
    let expression = |path: &str| mount("data", None, Some(path));
    let long = format!("$(A){}", "x".repeat(4096));
    let rows = [
        (plain("/etc"), "subPath \"/etc\" must not be an absolute path"),
        (plain("a/../b"), "subPath \"a/../b\" must not contain '..'"),
        (expression("$(NONE)/$(A)/$(EMPTY)"), "is missing value for EMPTY, NONE"),
        (expression("$(UP)/etc"), "subPathExpr \"$(UP)/etc\" must not contain '..'"),
        (expression("$(ROOT)etc"), "subPathExpr \"$(ROOT)etc\" must not be an absolute path"),
        (expression(&long), "has more than 4096 bytes once it is expanded"),
    ];
    for (mount, end) in rows {
        let error = of(vec![mount]).unwrap_err().to_string();
        let begin = "failed to prepare subPath for volumeMount \"data\" of container \"app\": ";
        assert!(error.starts_with(begin) && error.ends_with(end), "{error}");
    }
    let missing = of(vec![mount("none", Some("a"), None)]).unwrap_err().to_string();
    assert_eq!(missing, "cannot find volume \"none\" to mount into container \"app\"");
}
