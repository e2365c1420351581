//! What the containers of a pod ask for together.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

use crate::pod::{ContainerKind, init_kind};
use crate::quantity::Quantity;

/// Amounts by the name of their resource.
pub type ResourceList = BTreeMap<String, Quantity>;

/// The most the containers request at any one time.
pub fn container_requests(spec: &PodSpec) -> ResourceList {
    at_the_most(spec, |container| {
        read(container.resources.as_ref().and_then(|resources| resources.requests.as_ref()))
    })
}

/// The most the containers may use at any one time, as far as they are limited.
pub fn container_limits(spec: &PodSpec) -> ResourceList {
    at_the_most(spec, |container| {
        read(container.resources.as_ref().and_then(|resources| resources.limits.as_ref()))
    })
}

/// Amounts of an API object; one that cannot be read counts as not there.
pub fn read(wire: Option<&BTreeMap<String, WireQuantity>>) -> ResourceList {
    let parsed = |(name, amount)| Some((String::clone(name), Quantity::try_from(amount).ok()?));
    wire.into_iter().flatten().filter_map(parsed).collect()
}

/// Regular containers and sidecars run beside each other; an init container runs alone but for
/// the sidecars before it.
fn at_the_most(spec: &PodSpec, of: impl Fn(&Container) -> ResourceList) -> ResourceList {
    let mut running = ResourceList::new();
    for container in &spec.containers {
        add(&mut running, &of(container));
    }
    let mut sidecars = ResourceList::new();
    let mut starting = ResourceList::new();
    for container in spec.init_containers.iter().flatten() {
        let mut own = of(container);
        if init_kind(container) == ContainerKind::Sidecar {
            add(&mut running, &own);
            add(&mut sidecars, &own);
            raise(&mut starting, &sidecars);
        } else {
            add(&mut own, &sidecars);
            raise(&mut starting, &own);
        }
    }
    raise(&mut running, &starting);
    running
}

fn add(total: &mut ResourceList, more: &ResourceList) {
    for (name, amount) in more {
        let sum = total.get(name).map_or_else(|| amount.clone(), |so_far| so_far.plus(amount));
        total.insert(name.clone(), sum);
    }
}

fn raise(total: &mut ResourceList, at_least: &ResourceList) {
    for (name, amount) in at_least {
        if total.get(name).is_none_or(|so_far| amount > so_far) {
            total.insert(name.clone(), amount.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::container_requests;
    use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

    fn asking(cpu: &str, restart_policy: Option<&str>) -> Container {
        let requests = [("cpu".to_owned(), WireQuantity(cpu.to_owned()))].into();
        Container {
            resources: Some(ResourceRequirements {
                requests: Some(requests),
                ..ResourceRequirements::default()
            }),
            restart_policy: restart_policy.map(str::to_owned),
            ..Container::default()
        }
    }

    #[test]
    fn a_pod_needs_the_most_of_starting_and_running() {
        let (once, always) = (None, Some("Always"));
        let rows: [(&[Container], &[Container], &str); 5] = [
            (&[], &[asking("100m", once), asking("200m", once)], "300m"),
            (&[asking("1", once)], &[asking("200m", once)], "1"),
            (&[asking("100m", always)], &[asking("200m", once)], "300m"),
            (&[asking("100m", always), asking("1", once)], &[asking("200m", once)], "1100m"),
            (&[asking("1", once), asking("100m", always)], &[asking("200m", once)], "1"),
        ];
        for (init, regular, total) in rows {
            let spec = PodSpec {
                init_containers: Some(init.to_vec()),
                containers: regular.to_vec(),
                ..PodSpec::default()
            };
            assert_eq!(container_requests(&spec)["cpu"].to_string(), total);
        }
    }
}
