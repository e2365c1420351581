//! Variables that tell a container what it may use.

use k8s_openapi::api::core::v1::{Container, ResourceFieldSelector, ResourceRequirements};

use super::EnvContext;
use crate::cri_spec::error::{ConfigError, VariableError};
use crate::pod::PodExt;
use crate::quantity::Quantity;

/// A request or limit in multiples of the divisor, rounded up, as `valueFrom.resourceFieldRef` names it.
pub(in crate::cri_spec) fn value(
    source: &EnvContext<'_>,
    wanted: &ResourceFieldSelector,
) -> Result<String, ConfigError> {
    let unknown = || VariableError::Resource(wanted.resource.clone());
    let (list, resource) = wanted.resource.split_once('.').ok_or_else(unknown)?;
    let hugepages = resource.starts_with("hugepages-");
    if !matches!(resource, "cpu" | "memory" | "ephemeral-storage") && !hugepages {
        return Err(unknown().into());
    }
    let container = container(source, wanted)?;
    let amount = match list {
        "requests" => request(&container, resource)?,
        // Huge pages cannot be used without a limit, so there is no fallback to the node.
        "limits" if hugepages => limit(&container, resource)?,
        "limits" => match limit(&container, resource)? {
            amount if amount.is_zero() => enclosing_limit(source, resource)?,
            amount => amount,
        },
        _ => return Err(unknown().into()),
    };
    let divisor = wanted.divisor.as_ref().map(|divisor| divisor.0.as_str()).unwrap_or("0");
    let divisor = parse(&container.name, "divisor", divisor)?;
    Ok(divide(resource, &amount, &divisor).to_string())
}

fn container(
    source: &EnvContext<'_>,
    wanted: &ResourceFieldSelector,
) -> Result<Container, ConfigError> {
    match wanted.container_name.as_deref().filter(|name| !name.is_empty()) {
        None => Ok(source.spec.clone()),
        Some(name) => {
            let container = source.pod.container(name).map(|wanted| wanted.spec.into_owned());
            container.ok_or_else(|| VariableError::NoContainer(name.to_owned()).into())
        }
    }
}

/// What holds where the container has no limit of its own: the pod's, else all that the node has.
fn enclosing_limit(source: &EnvContext<'_>, resource: &str) -> Result<Quantity, ConfigError> {
    let of_pod = source.pod.spec().and_then(|spec| spec.resources.as_ref());
    let of_pod = of_pod.and_then(|resources| resources.limits.as_ref()?.get(resource));
    let of_pod = of_pod.map(|amount| parse("", resource, &amount.0)).transpose()?;
    let of_pod = of_pod.filter(|amount| !amount.is_zero());
    let of_node = || source.node.settings.allocatable.get(resource).cloned();
    Ok(of_pod.or_else(of_node).unwrap_or(Quantity::ZERO))
}

fn request(container: &Container, resource: &str) -> Result<Quantity, ConfigError> {
    amount(container, resource, |resources| &resources.requests)
}

fn limit(container: &Container, resource: &str) -> Result<Quantity, ConfigError> {
    amount(container, resource, |resources| &resources.limits)
}

type WireAmounts = Option<
    std::collections::BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>,
>;

fn amount(
    container: &Container,
    resource: &str,
    list: impl Fn(&ResourceRequirements) -> &WireAmounts,
) -> Result<Quantity, ConfigError> {
    let resources = container.resources.as_ref();
    let amount = resources.and_then(|resources| list(resources).as_ref()?.get(resource));
    match amount {
        Some(amount) => parse(&container.name, resource, &amount.0),
        None => Ok(Quantity::ZERO),
    }
}

fn parse(container: &str, resource: &str, amount: &str) -> Result<Quantity, ConfigError> {
    Quantity::parse(amount).map_err(|why| ConfigError::Amount {
        resource: resource.to_owned(),
        amount: amount.to_owned(),
        container: container.to_owned(),
        why,
    })
}

/// CPU is counted in thousandths, everything else in whole units. A divisor of nothing stands for one.
fn divide(resource: &str, amount: &Quantity, divisor: &Quantity) -> i64 {
    let one = Quantity::from_units(1, crate::quantity::Format::DecimalSi);
    let divisor = if divisor.is_zero() { &one } else { divisor };
    let count = |quantity: &Quantity| match resource {
        "cpu" => quantity.millis(),
        _ => quantity.units(),
    };
    let (amount, divisor) = (count(amount), count(divisor).max(1));
    amount / divisor + i64::from(amount % divisor > 0)
}
