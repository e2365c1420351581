//! The handlers of a node, in the order of the Go kubelet. The first one that does not admit a pod decides.

use k8s_openapi::api::core::v1::{Pod, Taint};

use super::handler::{AdmitHandler, AdmitRefusal, PodAdmitAttributes, Rejection};
use super::predicates;
use super::sysctls::SysctlAllowlist;
use crate::api::create::container_app_armor;
use crate::node::conditions::Pressures;
use crate::pod::PodExt;
use crate::qos::{self, QosClass};

/// What the handlers of a node depend on besides its object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeAdmitHandlers {
    /// Which sysctls pods may set.
    pub sysctls: SysctlAllowlist,
    /// Whether the kernel of this machine has AppArmor switched on.
    pub app_armor: bool,
}

impl AdmitHandler for NodeAdmitHandlers {
    fn admit(&self, attributes: &PodAdmitAttributes<'_>) -> Result<(), AdmitRefusal> {
        let pod = attributes.pod;
        check_pressures(pod, attributes.node.pressures)?;
        self.sysctls.check(pod)?;
        check_claims(pod)?;
        predicates::admit(attributes)?;
        check_app_armor(pod, self.app_armor)?;
        Ok(())
    }
}

/// Under pressure only critical pods are admitted; under memory pressure alone, also pods that requested memory.
fn check_pressures(pod: &Pod, pressures: Pressures) -> Result<(), Rejection> {
    let rows = [
        (pressures.memory, "MemoryPressure"),
        (pressures.disk, "DiskPressure"),
        (pressures.pids, "PIDPressure"),
    ];
    let conditions: Vec<&str> =
        rows.into_iter().filter(|(is_short, _)| *is_short).map(|(_, name)| name).collect();
    if conditions.is_empty() || pod.is_critical() {
        return Ok(());
    }
    let takes_memory = qos::class(pod) != QosClass::BestEffort || tolerates_memory_pressure(pod);
    if conditions == ["MemoryPressure"] && takes_memory {
        return Ok(());
    }
    let message = format!("The node had condition: [{}]. ", conditions.join(" "));
    Err(Rejection::new("Evicted", message))
}

fn tolerates_memory_pressure(pod: &Pod) -> bool {
    let taint = Taint {
        key: "node.kubernetes.io/memory-pressure".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    };
    let tolerations = pod.spec().and_then(|spec| spec.tolerations.as_deref());
    let mut tolerations = tolerations.unwrap_or_default().iter();
    tolerations.any(|toleration| predicates::tolerates(toleration, &taint))
}

/// Nothing on this node allocates what a resource claim names. A pod that runs without its device is worse than one that is refused.
fn check_claims(pod: &Pod) -> Result<(), Rejection> {
    let claims = pod.spec().and_then(|spec| spec.resource_claims.as_ref());
    let names: Vec<&str> = claims.into_iter().flatten().map(|claim| claim.name.as_str()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let message = format!(
        "Pod has resource claims, which this node does not allocate yet: {}",
        names.join(", ")
    );
    Err(Rejection::new("PodFeatureUnsupported", message))
}

fn check_app_armor(pod: &Pod, is_available: bool) -> Result<(), Rejection> {
    let is_confined = |kind: &str| kind != "Unconfined";
    let containers = pod.all_containers();
    let mut profiles =
        containers.iter().filter_map(|wanted| container_app_armor(pod, &wanted.spec));
    if is_available || !profiles.any(|profile| is_confined(&profile.type_)) {
        return Ok(());
    }
    let message = "Cannot enforce AppArmor: AppArmor is not enabled on the host";
    Err(Rejection::new("AppArmor", message))
}
