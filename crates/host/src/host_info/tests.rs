//! Files that change, and addresses of this machine.

use std::fs;
use std::net::IpAddr;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[tokio::test]
async fn the_files_of_names_are_read_anew_each_time() {
    let directory = tempfile::tempdir().unwrap();
    let (resolv_conf, hosts) =
        (directory.path().join("resolv.conf"), directory.path().join("hosts"));
    let info = MachineHostInfo::with_files(Some(resolv_conf.clone()), hosts.clone());
    let none = NameFiles { resolv_conf: Some(String::new()), hosts: String::new() };
    assert_eq!(info.name_files().await.unwrap(), none, "files that are not there are empty");
    for text in ["nameserver 192.0.2.1\n", "nameserver 192.0.2.2\n"] {
        fs::write(&resolv_conf, text).unwrap();
        fs::write(&hosts, format!("{text}h")).unwrap();
        let files = info.name_files().await.unwrap();
        assert_eq!(files.resolv_conf.as_deref(), Some(text));
        assert_eq!(files.hosts, format!("{text}h"));
    }
    let without = MachineHostInfo::with_files(None, hosts);
    assert_eq!(without.name_files().await.unwrap().resolv_conf, None);
}

#[tokio::test]
async fn a_file_of_names_that_cannot_be_read_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().to_owned();
    let info = MachineHostInfo::with_files(Some(place.clone()), place.join("hosts"));
    let error = info.name_files().await.unwrap_err().to_string();
    assert_eq!(error, format!("cannot read {}: it is a directory", place.display()));
    let long = place.join("long");
    fs::File::create(&long).unwrap().set_len(FILE_LIMIT + 1).unwrap();
    let info = MachineHostInfo::with_files(Some(long), place.join("hosts"));
    let error = info.name_files().await.unwrap_err().to_string();
    assert!(error.ends_with("it is longer than 10 MiB"), "{error}");
}

#[tokio::test]
async fn the_resolver_gives_only_addresses_of_this_machine() {
    let info = MachineHostInfo::new(None);
    let found = info.address_candidates("localhost").await.unwrap();
    let by_name = found.by_name.unwrap();
    assert!(by_name.iter().all(IpAddr::is_loopback), "{by_name:?}");
    let foreign = info.address_candidates("192.0.2.77").await.unwrap();
    assert_eq!(foreign.by_name, Some(Vec::new()), "no interface has it");
}

#[test]
fn unusable_addresses_of_a_node_have_a_reason() {
    let rows = [
        ("127.0.0.1", "loopback"),
        ("fe80::1", "only for one link"),
        ("192.0.2.77", "on no interface"),
    ];
    for (text, expected) in rows {
        let complaint = unusable_reason(ip(text)).unwrap();
        assert!(complaint.contains(expected), "{complaint}");
    }
}
