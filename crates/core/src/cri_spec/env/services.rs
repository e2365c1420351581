//! Variables that tell a container where services are.

use k8s_openapi::api::core::v1::{Service, ServicePort};

use super::lookup::Values;

/// The variables of all services that a pod of that namespace gets: those of its namespace when it wants links to them,
/// and always the API server.
pub fn service_variables(services: &[Service], namespace: &str, links: bool) -> Values {
    let is_master = |service: &&Service| is_named(service, "default", "kubernetes");
    let is_beside = |service: &&Service| {
        links && service.metadata.namespace.as_deref() == Some(namespace) && !is_master(service)
    };
    let beside: Vec<&Service> = services.iter().filter(is_beside).collect();
    // A namesake beside the pod hides the API server, as it always has.
    let hidden =
        beside.iter().any(|service| service.metadata.name.as_deref() == Some("kubernetes"));
    let master = services.iter().filter(is_master).filter(|_| !hidden);
    let variables = master.chain(beside).flat_map(of_service);
    variables.map(|(name, value)| (name, value.into_bytes())).collect()
}

fn is_named(service: &Service, namespace: &str, name: &str) -> bool {
    let metadata = &service.metadata;
    metadata.namespace.as_deref() == Some(namespace) && metadata.name.as_deref() == Some(name)
}

/// Nothing for a service that has no address or no port.
fn of_service(service: &Service) -> Vec<(String, String)> {
    let spec = service.spec.as_ref();
    let ip = spec.and_then(|spec| spec.cluster_ip.as_deref()).unwrap_or_default();
    let ports = spec.and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
    let (Some(first), false) = (ports.first(), matches!(ip, "" | "None")) else {
        return Vec::new();
    };
    let name = variable(service.metadata.name.as_deref().unwrap_or_default());
    let mut variables = vec![
        (format!("{name}_SERVICE_HOST"), ip.to_owned()),
        (format!("{name}_SERVICE_PORT"), first.port.to_string()),
        (format!("{name}_PORT"), url(ip, first)),
    ];
    for port in ports {
        if let Some(port_name) = port.name.as_deref().filter(|name| !name.is_empty()) {
            let key = format!("{name}_SERVICE_PORT_{}", variable(port_name));
            variables.push((key, port.port.to_string()));
        }
        variables.extend(of_port(&name, ip, port));
    }
    variables
}

fn of_port(name: &str, ip: &str, port: &ServicePort) -> [(String, String); 4] {
    let key = format!("{name}_PORT_{}_{}", port.port, protocol(port).to_uppercase());
    [
        (format!("{key}_PROTO"), protocol(port)),
        (format!("{key}_PORT"), port.port.to_string()),
        (format!("{key}_ADDR"), ip.to_owned()),
        (key, url(ip, port)),
    ]
}

fn url(ip: &str, port: &ServicePort) -> String {
    let host = if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() };
    format!("{}://{host}:{}", protocol(port), port.port)
}

fn protocol(port: &ServicePort) -> String {
    port.protocol.as_deref().filter(|text| !text.is_empty()).unwrap_or("TCP").to_lowercase()
}

fn variable(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ServiceSpec;

    use super::*;

    fn service(namespace: &str, name: &str, ip: &str, ports: Vec<ServicePort>) -> Service {
        let mut service = Service::default();
        service.metadata.namespace = Some(namespace.to_owned());
        service.metadata.name = Some(name.to_owned());
        let cluster_ip = Some(ip.to_owned());
        service.spec = Some(ServiceSpec { cluster_ip, ports: Some(ports), ..Default::default() });
        service
    }

    fn port(port: i32, name: Option<&str>, protocol: &str) -> ServicePort {
        let (name, protocol) = (name.map(str::to_owned), Some(protocol.to_owned()));
        ServicePort { port, name, protocol, ..ServicePort::default() }
    }

    fn names(services: &[Service], namespace: &str, links: bool) -> Vec<(String, String)> {
        let hosts = service_variables(services, namespace, links).into_iter();
        let hosts = hosts.filter(|(name, _)| name.ends_with("_SERVICE_HOST"));
        hosts.map(|(name, value)| (name, String::from_utf8(value).unwrap())).collect()
    }

    #[test]
    fn a_service_has_variables_for_host_port_and_link() {
        let ports = vec![port(80, Some("web-ui"), "TCP"), port(53, Some("dns"), "UDP")];
        let services = [service("ns", "my-svc", "10.0.0.1", ports)];
        let expected = [
            ("MY_SVC_PORT", "tcp://10.0.0.1:80"),
            ("MY_SVC_PORT_53_UDP", "udp://10.0.0.1:53"),
            ("MY_SVC_PORT_53_UDP_ADDR", "10.0.0.1"),
            ("MY_SVC_PORT_53_UDP_PORT", "53"),
            ("MY_SVC_PORT_53_UDP_PROTO", "udp"),
            ("MY_SVC_PORT_80_TCP", "tcp://10.0.0.1:80"),
            ("MY_SVC_PORT_80_TCP_ADDR", "10.0.0.1"),
            ("MY_SVC_PORT_80_TCP_PORT", "80"),
            ("MY_SVC_PORT_80_TCP_PROTO", "tcp"),
            ("MY_SVC_SERVICE_HOST", "10.0.0.1"),
            ("MY_SVC_SERVICE_PORT", "80"),
            ("MY_SVC_SERVICE_PORT_DNS", "53"),
            ("MY_SVC_SERVICE_PORT_WEB_UI", "80"),
        ];
        let variables = service_variables(&services, "ns", true);
        let variables: Vec<(&str, &str)> = variables
            .iter()
            .map(|(name, value)| (name.as_str(), str::from_utf8(value).unwrap()))
            .collect();
        assert_eq!(variables, expected);
        let six = [service("ns", "six", "fd00::1", vec![port(80, None, "")])];
        let variables = service_variables(&six, "ns", true);
        assert_eq!(variables["SIX_PORT"], b"tcp://[fd00::1]:80");
    }

    #[test]
    fn variables_cover_services_of_the_namespace_and_always_the_api_server() {
        let ports = || vec![port(443, None, "TCP")];
        let services = [
            service("default", "kubernetes", "10.0.0.1", ports()),
            service("default", "other", "10.0.0.2", ports()),
            service("ns", "mine", "10.0.0.3", ports()),
            service("ns", "headless", "None", ports()),
            service("ns", "pending", "", ports()),
            service("ns", "portless", "10.0.0.4", Vec::new()),
            service("own", "kubernetes", "10.0.0.5", ports()),
        ];
        let master = ("KUBERNETES_SERVICE_HOST", "10.0.0.1");
        let rows = [
            ("ns", true, &[master, ("MINE_SERVICE_HOST", "10.0.0.3")][..]),
            ("ns", false, &[master]),
            ("default", true, &[master, ("OTHER_SERVICE_HOST", "10.0.0.2")]),
            ("default", false, &[master]),
            ("own", true, &[("KUBERNETES_SERVICE_HOST", "10.0.0.5")]),
            ("own", false, &[master]),
        ];
        for (namespace, links, expected) in rows {
            let expected: Vec<_> = expected
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            assert_eq!(names(&services, namespace, links), expected, "{namespace} {links}");
        }
    }
}
