//! What becomes of a configuration.

use oarsman_kubelet_config::flags;

use super::*;

fn planned(words: &[&str]) -> Plan {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let given = flags::parse(&words).unwrap();
    let loaded = oarsman_kubelet_config::load(None, &[], &given.layers).unwrap();
    Plan::new(&loaded.configuration, &given.program, "a", &["10.0.0.1".to_owned()])
}

#[test]
fn servers_listen_where_they_are_told_to() {
    let plan =
        planned(&["--address=127.0.0.1", "--port=1", "--read-only-port=2", "--healthz-port=3"]);
    let address = |port| Some(SocketAddr::from(([127, 0, 0, 1], port)));
    let settings = plan.settings;
    assert_eq!(
        (settings.secure, settings.read_only, settings.health),
        (address(1), address(2), address(3))
    );
    let none =
        planned(&["--enable-server=false", "--read-only-port=0", "--healthz-port=0"]).settings;
    assert_eq!((none.secure, none.read_only, none.health), (None, None, None));
}

#[test]
fn certificates_come_from_files_from_the_cluster_or_from_ourselves() {
    let files = ["--tls-cert-file=/c", "--tls-private-key-file=/k"];
    let origin = planned(&files).origin(None);
    assert!(
        matches!(origin, Origin::Files { certificate, key } if certificate == Path::new("/c") && key == Path::new("/k"))
    );
    let origin = planned(&["--cert-dir=/pki"]).origin(None);
    assert!(
        matches!(origin, Origin::SelfSigned { cert_dir, host } if cert_dir == Path::new("/pki") && host == "a")
    );
    assert!(!planned(&files).by_cluster);
}

#[test]
fn a_server_is_known_by_the_addresses_of_its_node() {
    let all = (planned(&[]).addresses())();
    let all: Vec<_> = all.iter().map(|it| (it.type_.as_str(), it.address.as_str())).collect();
    assert_eq!(all, [("InternalIP", "10.0.0.1"), ("Hostname", "a")]);
}
