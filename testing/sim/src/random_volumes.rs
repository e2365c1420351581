//! Draws random volumes for pods: whole ones, and parts of them.

use k8s_openapi::api::core::v1::{
    EmptyDirVolumeSource, EnvVar, HostPathVolumeSource, Pod, Volume, VolumeMount,
};
use oarsman_world::rng::{Probability, Rng};

use crate::random_pods::pick;

/// The names of the volumes; the second is a directory of the host.
const NAMES: &[&str] = &["data", "host"];

/// Gives some pods volumes, which their containers mount whole or in part.
pub(crate) fn add(rng: &mut Rng, pod: &mut Pod) {
    if !rng.happens(Probability::percent(30)) {
        return;
    }
    let spec = pod.spec.get_or_insert_default();
    let data = Some(EmptyDirVolumeSource::default());
    let data = Volume { name: NAMES[0].to_owned(), empty_dir: data, ..Volume::default() };
    let host = Some(HostPathVolumeSource { path: "/srv".to_owned(), type_: None });
    let host = Volume { name: NAMES[1].to_owned(), host_path: host, ..Volume::default() };
    spec.volumes = Some(vec![data, host]);
    let containers = spec.init_containers.iter_mut().flatten().chain(&mut spec.containers);
    for container in containers {
        let mounts: Vec<_> = (0..rng.below(3)).map(|number| mount(rng, number)).collect();
        container.volume_mounts = Some(mounts).filter(|mounts| !mounts.is_empty());
        let value = Some(container.name.clone());
        container.env = Some(vec![EnvVar { name: "NAME".to_owned(), value, value_from: None }]);
    }
}

fn mount(rng: &mut Rng, number: u64) -> VolumeMount {
    let part = pick(rng, &["", "plain", "$(NAME)/deep"]);
    let part = Some(part.to_owned()).filter(|part| !part.is_empty());
    let (plain, expression) = match part {
        Some(part) if part.starts_with('$') => (None, Some(part)),
        part => (part, None),
    };
    VolumeMount {
        name: pick(rng, NAMES).to_owned(),
        mount_path: format!("/mnt/{number}"),
        sub_path: plain,
        sub_path_expr: expression,
        ..VolumeMount::default()
    }
}
