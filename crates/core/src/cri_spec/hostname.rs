//! What a pod calls itself.

use k8s_openapi::api::core::v1::Pod;

use super::error::ConfigError;
use crate::pod::PodExt;

/// The longest name a host may have.
const LONGEST_NAME: usize = 63;
/// The longest name the kernel takes.
const LONGEST_FQDN: usize = 64;

/// A pod's name in its own network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hostname {
    /// The host name; it has dots only if `hostnameOverride` has.
    pub name: String,
    /// What comes after it, for pods of a subdomain.
    pub domain: Option<String>,
}

/// The pod's host name and domain.
pub fn hostname(pod: &Pod, cluster_domain: &str) -> Hostname {
    let full = pod.full_name();
    let non_empty = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let spec = pod.spec();
    if let Some(name) = spec.and_then(|spec| non_empty(&spec.hostname_override)) {
        return Hostname { name: cut(&name), domain: None };
    }
    let name = spec.and_then(|spec| non_empty(&spec.hostname)).unwrap_or(full.name);
    let subdomain = spec.and_then(|spec| non_empty(&spec.subdomain));
    let domain = subdomain
        .map(|sub| format!("{sub}.{namespace}.svc.{cluster_domain}", namespace = full.namespace));
    Hostname { name: cut(&name), domain }
}

impl Hostname {
    /// What the kernel is told.
    pub fn for_kernel(self, pod: &Pod) -> Result<String, ConfigError> {
        let whole = pod.spec().and_then(|spec| spec.set_hostname_as_fqdn).unwrap_or_default();
        match self.domain.filter(|_| whole) {
            None => Ok(self.name),
            Some(domain) => {
                let fqdn = format!("{}.{domain}", self.name);
                match fqdn.len() <= LONGEST_FQDN {
                    true => Ok(fqdn),
                    false => Err(ConfigError::HostnameTooLong { fqdn, max: LONGEST_FQDN }),
                }
            }
        }
    }
}

fn cut(name: &str) -> String {
    if name.len() <= LONGEST_NAME {
        return name.to_owned();
    }
    name[..name.floor_char_boundary(LONGEST_NAME)].trim_end_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodSpec;

    use super::*;
    use crate::fixture::pod;

    fn of(
        edit: impl FnOnce(&mut PodSpec),
    ) -> (String, Option<String>, Result<String, ConfigError>) {
        let pod = pod().spec(edit).build();
        let hostname = hostname(&pod, "cluster.local");
        (hostname.name.clone(), hostname.domain.clone(), hostname.for_kernel(&pod))
    }

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_pod_is_called_what_it_asks_for_or_by_its_name() {
        let domain = || text("sub.default.svc.cluster.local");
        type Edit = fn(&mut PodSpec);
        let rows: [(Edit, &str, Option<String>); 5] = [
            (|_| (), "web", None),
            (|s| s.hostname = text(""), "web", None),
            (|s| s.hostname = text("db"), "db", None),
            (|s| s.subdomain = text("sub"), "web", domain()),
            (
                |s| (s.hostname_override, s.subdomain) = (text("a.example.com"), text("sub")),
                "a.example.com",
                None,
            ),
        ];
        for (edit, name, domain) in rows {
            assert_eq!(of(edit), (name.to_owned(), domain, Ok(name.to_owned())));
        }
    }

    #[test]
    fn a_long_name_is_cut_and_ends_in_neither_dash_nor_dot() {
        let rows = [
            ("x".repeat(63), "x".repeat(63)),
            ("x".repeat(64), "x".repeat(63)),
            (format!("{}-.tail", "x".repeat(61)), "x".repeat(61)),
        ];
        for (name, expected) in rows {
            assert_eq!(of(|spec| spec.hostname_override = Some(name)).0, expected);
        }
    }

    #[test]
    fn the_kernel_host_name_has_the_domain_when_the_pod_asks_for_it_and_it_fits() {
        let long = "h".repeat(34);
        let rows = [
            ("db", Ok("db.sub.default.svc.cluster.local".to_owned())),
            (&long[..], Ok(format!("{long}.sub.default.svc.cluster.local"))),
        ];
        for (name, expected) in rows {
            let (.., told) = of(|spec| {
                spec.hostname = text(name);
                spec.subdomain = text("sub");
                spec.set_hostname_as_fqdn = Some(true);
            });
            assert_eq!(told, expected);
        }
        let (.., told) = of(|spec| {
            spec.hostname = text(&"h".repeat(35));
            spec.subdomain = text("sub");
            spec.set_hostname_as_fqdn = Some(true);
        });
        assert!(told.unwrap_err().to_string().contains("is 65 characters long"));
        let (.., told) = of(|spec| spec.set_hostname_as_fqdn = Some(true));
        assert_eq!(told, Ok("web".to_owned()), "a pod without a domain");
    }
}
