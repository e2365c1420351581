//! Where values come from, and which of them counts.

use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapEnvSource, ConfigMapKeySelector, FileKeySelector, ObjectFieldSelector,
    ResourceFieldSelector, ResourceRequirements, Secret, SecretEnvSource, SecretKeySelector,
    Service, ServicePort, ServiceSpec,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

use super::*;
use crate::cri_spec::tests::node;
use crate::fixture::{PodBuilder, pod};
use crate::ids::FullName;
use crate::pod::SOURCE_ANNOTATION;

fn text(text: &str) -> String {
    text.to_owned()
}

fn full_name(name: &str) -> FullName {
    FullName { namespace: text("default"), name: text(name) }
}

fn lookup() -> Lookup {
    let data = [("a", "map-a"), ("b", "map-b")].map(|(key, value)| (text(key), text(value)));
    let map = ConfigMap { data: Some(data.into()), ..ConfigMap::default() };
    let data = [("b", &b"secret-b"[..]), ("raw", &[0xff, 0xfe])];
    let data = data.map(|(key, value)| (text(key), ByteString(value.to_vec())));
    let secret = Secret { data: Some(data.into()), ..Secret::default() };
    let mut service = Service::default();
    (service.metadata.name, service.metadata.namespace) = (Some(text("db")), Some(text("default")));
    let ports = Some(vec![ServicePort { port: 1, ..ServicePort::default() }]);
    let cluster_ip = Some(text("10.0.0.1"));
    service.spec = Some(ServiceSpec { cluster_ip, ports, ..ServiceSpec::default() });
    Lookup {
        config_maps: [(full_name("map"), Arc::new(map))].into(),
        secrets: [(full_name("secret"), Arc::new(secret))].into(),
        services: Some(vec![service]),
        files: [((text("vol"), text("env")), text("KEY='of file'\nEMPTY=''\n"))].into(),
        ..Lookup::default()
    }
}

fn plain(name: &str, value: &str) -> EnvVar {
    EnvVar { name: text(name), value: Some(text(value)), value_from: None }
}

fn from(name: &str, edit: impl FnOnce(&mut EnvVarSource)) -> EnvVar {
    let mut source = EnvVarSource::default();
    edit(&mut source);
    EnvVar { name: text(name), value: None, value_from: Some(source) }
}

fn of_map(name: &str, map: &str, key: &str, optional: Option<bool>) -> EnvVar {
    let selector = ConfigMapKeySelector { name: text(map), key: text(key), optional };
    from(name, |source| source.config_map_key_ref = Some(selector))
}

fn of_secret(name: &str, secret: &str, key: &str, optional: Option<bool>) -> EnvVar {
    let selector = SecretKeySelector { name: text(secret), key: text(key), optional };
    from(name, |source| source.secret_key_ref = Some(selector))
}

fn of_file(path: &str, key: &str, optional: bool) -> EnvVar {
    let selector = FileKeySelector {
        volume_name: text("vol"),
        path: text(path),
        key: text(key),
        optional: Some(optional),
    };
    from("V", |source| source.file_key_ref = Some(selector))
}

fn whole_map(name: &str, prefix: Option<&str>, optional: Option<bool>) -> EnvFromSource {
    let map = ConfigMapEnvSource { name: text(name), optional };
    EnvFromSource {
        config_map_ref: Some(map),
        prefix: prefix.map(str::to_owned),
        ..EnvFromSource::default()
    }
}

fn whole_secret(name: &str, optional: Option<bool>) -> EnvFromSource {
    let secret = SecretEnvSource { name: text(name), optional };
    EnvFromSource { secret_ref: Some(secret), ..EnvFromSource::default() }
}

/// The environment of the first container.
fn made(pod: PodBuilder, lookup: &Lookup) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let (pod, node) = (pod.build(), node());
    let node = node.context();
    let ips = [text("10.0.0.7"), text("fd00::7")];
    let source = EnvContext { pod: &pod, spec: &pod.regular()[0], ips: &ips, lookup, node: &node };
    Environment::of(&source).map(|made| made.values).map_err(|error| error.to_string())
}

fn of(
    wholesale: Vec<EnvFromSource>,
    variables: Vec<EnvVar>,
) -> Result<Vec<(String, String)>, String> {
    let pod = pod().spec(|spec| spec.enable_service_links = Some(false));
    let pod = pod.regular_with("app", |spec| {
        spec.env_from = Some(wholesale);
        spec.env = Some(variables);
    });
    let made = made(pod, &lookup())?.into_iter();
    Ok(made.map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned())).collect())
}

fn pairs(pairs: &[(&str, &str)]) -> Result<Vec<(String, String)>, String> {
    Ok(pairs.iter().map(|(name, value)| (text(name), text(value))).collect())
}

#[test]
fn later_ones_count_and_own_variables_most() {
    let rows = [
        (vec![], vec![plain("A", "1"), plain("A", "2")], pairs(&[("A", "2")])),
        (vec![], vec![plain("A", "")], pairs(&[("A", "")])),
        (
            vec![whole_map("map", None, None)],
            vec![plain("a", "own")],
            pairs(&[("a", "own"), ("b", "map-b")]),
        ),
        (
            vec![whole_map("map", Some("P_"), None)],
            vec![],
            pairs(&[("P_a", "map-a"), ("P_b", "map-b")]),
        ),
        (
            vec![whole_map("map", None, None), whole_secret("secret", None)],
            vec![plain("raw", "-")],
            pairs(&[("a", "map-a"), ("b", "secret-b"), ("raw", "-")]),
        ),
        (
            vec![whole_secret("secret", None), whole_map("map", None, None)],
            vec![plain("raw", "-")],
            pairs(&[("a", "map-a"), ("b", "map-b"), ("raw", "-")]),
        ),
        (vec![whole_map("none", None, Some(true))], vec![], pairs(&[])),
        (vec![whole_secret("none", Some(true))], vec![], pairs(&[])),
        (vec![whole_map("none", None, None)], vec![], Err(text("configmap \"none\" not found"))),
        (vec![whole_secret("none", Some(false))], vec![], Err(text("secret \"none\" not found"))),
    ];
    for (wholesale, variables, expected) in rows {
        assert_eq!(of(wholesale, variables), expected);
    }
}

#[test]
fn references_see_what_came_before_them() {
    let rows = [
        (vec![plain("A", "a"), plain("B", "$(A)b")], pairs(&[("A", "a"), ("B", "ab")])),
        (vec![plain("B", "$(A)b"), plain("A", "a")], pairs(&[("A", "a"), ("B", "$(A)b")])),
        (vec![plain("A", "$$(A)")], pairs(&[("A", "$(A)")])),
        (
            vec![of_map("A", "map", "a", None), plain("B", "<$(A)>")],
            pairs(&[("A", "map-a"), ("B", "<map-a>")]),
        ),
    ];
    for (variables, expected) in rows {
        assert_eq!(of(vec![], variables), expected);
    }
    let wholesale = vec![whole_map("map", None, None)];
    let expected = pairs(&[("X", "map-a"), ("a", "map-a"), ("b", "map-b")]);
    assert_eq!(of(wholesale, vec![plain("X", "$(a)")]), expected);
}

#[test]
fn a_key_must_be_there_unless_it_is_optional() {
    let rows = [
        (of_map("V", "map", "a", None), pairs(&[("V", "map-a")])),
        (of_secret("V", "secret", "b", None), pairs(&[("V", "secret-b")])),
        (of_map("V", "map", "x", Some(true)), pairs(&[])),
        (of_secret("V", "none", "x", Some(true)), pairs(&[])),
        (of_map("V", "none", "x", None), Err(text("configmap \"none\" not found"))),
        (of_secret("V", "none", "x", None), Err(text("secret \"none\" not found"))),
        (of_map("V", "map", "x", None), Err(text("couldn't find key x in ConfigMap default/map"))),
        (
            of_secret("V", "secret", "x", Some(false)),
            Err(text("couldn't find key x in Secret default/secret")),
        ),
        (of_file("env", "KEY", false), pairs(&[("V", "of file")])),
        (of_file("env", "NONE", true), pairs(&[])),
        (of_file("none", "KEY", true), pairs(&[])),
        (
            of_file("env", "EMPTY", false),
            Err(text("environment variable key \"EMPTY\" not found in file \"env\"")),
        ),
        (
            of_file("none", "KEY", false),
            Err(text("variable V: no file \"none\" in volume \"vol\" (valueFrom.fileKeyRef)")),
        ),
    ];
    for (variable, expected) in rows {
        assert_eq!(of(vec![], vec![variable]), expected);
    }
}

#[test]
fn a_secret_may_be_any_bytes_but_not_in_a_command() {
    let pod = pod().regular_with("app", |spec| {
        spec.env = Some(vec![of_secret("RAW", "secret", "raw", None), plain("X", "<$(RAW)>")]);
    });
    let made = made(pod.clone(), &lookup()).unwrap();
    assert_eq!(made["RAW"], [0xff, 0xfe]);
    assert_eq!(made["X"], [b'<', 0xff, 0xfe, b'>']);
    let mut made = Environment { values: made, limits: ProcessLimits::default() };
    let error =
        made.expand_texts(&pod.build().regular()[0], "args", &[text("$(RAW)")]).unwrap_err();
    assert_eq!(error, VariableError::NotText { container: text("app") }.into());
}

#[test]
fn what_is_looked_up_is_never_printed() {
    let printed = format!("{:?}", lookup());
    assert!(printed.contains("secret") && !printed.contains("secret-b"), "{printed}");
}

#[test]
fn fields_of_the_pod_become_values() {
    let rows = [
        ("metadata.name", Ok("web")),
        ("metadata.namespace", Ok("default")),
        ("metadata.uid", Ok("uid-web")),
        ("metadata.labels['app']", Ok("shop")),
        ("metadata.labels['none']", Ok("")),
        ("metadata.annotations['example.com/a[b]']", Ok("note")),
        ("spec.nodeName", Ok("node-1")),
        ("spec.serviceAccountName", Ok("robot")),
        ("status.hostIP", Ok("192.0.2.1")),
        ("status.hostIPs", Ok("192.0.2.1")),
        ("status.podIP", Ok("10.0.0.7")),
        ("status.podIPs", Ok("10.0.0.7,fd00::7")),
        ("status.phase", Err("field label not supported: status.phase")),
        ("metadata.labels", Err("field label not supported: metadata.labels")),
        ("spec.labels['a']", Err("field label not supported: spec.labels['a']")),
    ];
    for (path, expected) in rows {
        let field = ObjectFieldSelector { field_path: text(path), api_version: None };
        let variable = from("V", |source| source.field_ref = Some(field));
        let pod = pod().regular_with("app", |spec| spec.env = Some(vec![variable]));
        let pod = pod.spec(|spec| {
            spec.node_name = Some(text("node-1"));
            spec.service_account_name = Some(text("robot"));
        });
        let pod = pod.edit(|pod| {
            pod.metadata.labels = Some([(text("app"), text("shop"))].into());
            pod.metadata.annotations = Some([(text("example.com/a[b]"), text("note"))].into());
        });
        let value = made(pod, &Lookup::default());
        let value = value.map(|mut values| String::from_utf8(values.remove("V").unwrap()).unwrap());
        assert_eq!(value.as_deref(), expected.map_err(text).as_ref().map(|value| *value), "{path}");
    }
}

#[test]
fn resources_are_counted_in_divisors_and_rounded_up() {
    let rows = [
        ("requests.cpu", "0", Ok("1")),
        ("requests.cpu", "1m", Ok("250")),
        ("limits.cpu", "1", Ok("2")),
        ("requests.memory", "1Mi", Ok("65")),
        ("requests.memory", "0", Ok("67108865")),
        ("limits.memory", "1Mi", Ok("512")),
        ("limits.ephemeral-storage", "1Gi", Ok("10")),
        ("requests.ephemeral-storage", "1Gi", Ok("0")),
        ("limits.hugepages-2Mi", "1Mi", Ok("4")),
        ("limits.hugepages-1Gi", "1Mi", Ok("0")),
        ("limits.pods", "0", Err("unsupported container resource : limits.pods")),
        ("cpu", "0", Err("unsupported container resource : cpu")),
    ];
    let amounts = |pairs: &[(&str, &str)]| {
        Some(pairs.iter().map(|(name, amount)| (text(name), WireQuantity(text(amount)))).collect())
    };
    for (resource, divisor, expected) in rows {
        let wanted = ResourceFieldSelector {
            resource: text(resource),
            divisor: Some(WireQuantity(text(divisor))),
            container_name: None,
        };
        let variable = from("V", |source| source.resource_field_ref = Some(wanted));
        let pod = pod().regular_with("app", |spec| {
            spec.env = Some(vec![variable]);
            spec.resources = Some(ResourceRequirements {
                requests: amounts(&[("cpu", "250m"), ("memory", "67108865")]),
                limits: amounts(&[("cpu", "1500m"), ("hugepages-2Mi", "4Mi")]),
                ..ResourceRequirements::default()
            });
        });
        let pod = pod.spec(|spec| {
            let limits = amounts(&[("memory", "512Mi")]);
            spec.resources = Some(ResourceRequirements { limits, ..Default::default() });
        });
        let value = made(pod, &Lookup::default());
        let value = value.map(|mut values| String::from_utf8(values.remove("V").unwrap()).unwrap());
        assert_eq!(value.as_deref(), expected.map_err(text).as_ref().map(|v| *v), "{resource}");
    }
}

#[test]
fn limits_that_are_not_set_are_the_allocatable_of_the_node() {
    let of_container = |container: &str, resource: &str| {
        let wanted = ResourceFieldSelector {
            resource: text(resource),
            divisor: None,
            container_name: Some(text(container)),
        };
        let variable = from("V", |source| source.resource_field_ref = Some(wanted));
        let pod = pod().regular_with("app", |spec| spec.env = Some(vec![variable])).init("setup");
        made(pod, &Lookup::default()).map(|mut values| values.remove("V").unwrap())
    };
    assert_eq!(of_container("app", "limits.cpu"), Ok(b"4".to_vec()));
    assert_eq!(of_container("setup", "limits.memory"), Ok(b"1073741824".to_vec()));
    assert_eq!(of_container("none", "limits.cpu"), Err(text("container none not found")));
}

#[test]
fn services_come_first_and_must_have_been_read() {
    let with =
        |variables: Vec<EnvVar>| pod().regular_with("app", |spec| spec.env = Some(variables));
    let made_of = made(with(vec![plain("X", "$(DB_SERVICE_HOST)")]), &lookup()).unwrap();
    assert_eq!(
        (&made_of["X"][..], &made_of["DB_SERVICE_HOST"][..]),
        (&b"10.0.0.1"[..], &b"10.0.0.1"[..])
    );
    let made_of = made(with(vec![plain("DB_SERVICE_HOST", "own")]), &lookup()).unwrap();
    assert_eq!(made_of["DB_SERVICE_HOST"], b"own");
    let unread = Lookup { services: None, ..Lookup::default() };
    let error = made(with(vec![]), &unread).unwrap_err();
    assert_eq!(error, "services have not yet been read at least once, cannot construct envvars");
    let of_file = with(vec![]).edit(|pod| {
        pod.metadata.annotations = Some([(text(SOURCE_ANNOTATION), text("file"))].into());
    });
    assert_eq!(made(of_file, &unread), Ok(BTreeMap::new()));
}
