//! Which control groups are read of each pod, and whose group a directory is.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ContainerStatus;

use crate::active_pods::{ActivePod, PodStage};
use crate::ids::PodUid;
use crate::pod::PodExt;
use crate::resources::names::CgroupNames;

use super::cgroup_stats::CgroupStats;
use super::proc_files::InterfaceCounters;
use super::snapshot::{MeasuredCgroup, MeasuredContainer, MeasuredPod};

/// A pod that is to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodToMeasure {
    /// Its UID.
    pub uid: PodUid,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Since when it is on this node.
    pub started: Option<Timestamp>,
    /// The path of its control group.
    pub cgroup: String,
    /// Whether it has a network namespace of its own.
    pub has_network: bool,
    /// Its running containers.
    pub containers: Vec<ContainerToMeasure>,
}

/// A running container of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerToMeasure {
    /// The runtime's id of it.
    pub id: String,
    /// Its name in the pod.
    pub name: String,
    /// Its image.
    pub image: String,
    /// Since when it runs.
    pub started: Option<Timestamp>,
}

/// What was read of a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct PodReading {
    /// Its own group.
    pub own: CgroupStats,
    /// The groups below it, by the names of their directories.
    pub below: Vec<(String, CgroupStats)>,
    /// Its interfaces, if they were asked for.
    pub interfaces: Option<Vec<InterfaceCounters>>,
}

/// The pods that may have a control group.
pub fn pods_to_measure(pods: &[Arc<ActivePod>], names: &CgroupNames) -> Vec<PodToMeasure> {
    let here = pods.iter().filter(|pod| pod.stage != PodStage::Waiting);
    here.map(|pod| pod_to_measure(pod, names)).collect()
}

fn pod_to_measure(pod: &ActivePod, names: &CgroupNames) -> PodToMeasure {
    let full_name = pod.pod.full_name();
    let started = pod.status().and_then(|status| status.start_time.as_ref());
    let lists = pod.status().into_iter().flat_map(|status| {
        let (init, ephemeral) =
            (&status.init_container_statuses, &status.ephemeral_container_statuses);
        [init, &status.container_statuses, ephemeral]
    });
    PodToMeasure {
        uid: pod.pod.uid(),
        name: full_name.name,
        namespace: full_name.namespace,
        started: started.map(|at| at.0),
        cgroup: names.of_pod(&pod.pod),
        has_network: !pod.pod.host_network(),
        containers: lists.flatten().flatten().filter_map(running).collect(),
    }
}

fn running(status: &ContainerStatus) -> Option<ContainerToMeasure> {
    let state = status.state.as_ref()?.running.as_ref()?;
    let id = status.container_id.as_deref()?;
    Some(ContainerToMeasure {
        // The API has the runtime's name before the id: containerd://….
        id: id.split_once("://").map_or(id, |(_, id)| id).to_owned(),
        name: status.name.clone(),
        image: status.image.clone(),
        started: state.started_at.as_ref().map(|at| at.0),
    })
}

/// The id of the container or sandbox whose group is called so, without the path to it: runtimes put a prefix before the id, and under
/// systemd `.scope` after it. None for the group of CRI-O's monitor of a container.
pub fn container_id_of_cgroup(directory: &str) -> Option<&str> {
    let name = directory.strip_suffix(".scope").unwrap_or(directory);
    let (prefix, id) = name.rsplit_once('-').unwrap_or(("", name));
    (!prefix.ends_with("conmon") && !id.is_empty()).then_some(id)
}

/// A pod with what was read of it. `nano_cores` tells the CPU rate of a path.
pub fn measured_pod(
    pod: PodToMeasure,
    reading: PodReading,
    nano_cores: impl Fn(&str) -> Option<u64>,
) -> MeasuredPod {
    let measured = |path: String, stats: CgroupStats, started: Option<Timestamp>| MeasuredCgroup {
        nano_cores: nano_cores(&path),
        path,
        stats,
        started,
    };
    let (mut containers, mut sandboxes) = (Vec::new(), Vec::new());
    for (directory, stats) in reading.below {
        let Some(id) = container_id_of_cgroup(&directory) else { continue };
        let path = format!("{}/{directory}", pod.cgroup);
        match pod.containers.iter().position(|it| it.id == id) {
            Some(index) => {
                let ContainerToMeasure { id, name, image, started } = pod.containers[index].clone();
                let cgroup = measured(path, stats, started);
                let (writable_layer, logs) = (None, None);
                let container = MeasuredContainer { name, id, image, cgroup, writable_layer, logs };
                containers.push((index, container));
            }
            None => sandboxes.push(measured(path, stats, pod.started)),
        }
    }
    containers.sort_by_key(|(index, _)| *index);
    MeasuredPod {
        cgroup: measured(pod.cgroup, reading.own, pod.started),
        uid: pod.uid,
        name: pod.name,
        namespace: pod.namespace,
        started: pod.started,
        containers: containers.into_iter().map(|(_, container)| container).collect(),
        sandboxes,
        interfaces: reading.interfaces,
        volumes: None,
        claims: Vec::new(),
        other_files: None,
        counted: None,
    }
}
