//! Results of every version, and answers that are none.

use serde_json::json;

use super::*;

fn parse(value: &Value, version: CniVersion) -> Result<CniResult, ResultError> {
    CniResult::parse(value.to_string().as_bytes(), version)
}

fn addresses(value: &Value) -> Vec<String> {
    let result = parse(value, CniVersion::V1_0_0).unwrap();
    result.pod_addresses("eth0").iter().map(ToString::to_string).collect()
}

#[test]
fn the_pods_addresses_are_the_first_of_each_family_in_order() {
    let bridge = json!({
        "cniVersion": "1.0.0",
        "interfaces": [
            { "name": "cni0", "mac": "0a:0b" },
            { "name": "veth1" },
            { "name": "eth0", "sandbox": "/run/netns/x" },
        ],
        "ips": [
            { "address": "fd00::7/64", "interface": 2 },
            { "address": "10.0.0.1/24", "interface": 0 },
            { "address": "10.0.0.2/24", "gateway": "10.0.0.1", "interface": 2 },
            { "address": "10.0.0.3/24", "interface": 2 },
            { "address": "fd00::8/64" },
        ],
        "routes": [{ "dst": "0.0.0.0/0" }],
        "dns": {},
    });
    assert_eq!(addresses(&bridge), ["fd00::7", "10.0.0.2"]);
    // Without interfaces, addresses are the pod's.
    assert_eq!(addresses(&json!({ "ips": [{ "address": "10.0.0.2/32" }] })), ["10.0.0.2"]);
    let other = json!({
        "interfaces": [{ "name": "net1" }], "ips": [{ "address": "10.0.0.2/8", "interface": 0 }]
    });
    assert!(addresses(&other).is_empty());
    for empty in [json!({}), json!(null), json!({ "ips": null, "interfaces": null })] {
        assert!(addresses(&empty).is_empty(), "{empty}");
    }
}

#[test]
fn a_result_is_passed_on_in_the_form_of_the_networks_version() {
    let of = |version: &str, address_version: Option<&str>| {
        let mut address = json!({ "address": "10.0.0.2/24", "gateway": "10.0.0.1" });
        if let Some(family) = address_version {
            address["version"] = family.into();
        }
        json!({ "cniVersion": version, "ips": [address], "own": { "kept": 1 } })
    };
    for version in CniVersion::ALL {
        let family = version.has_address_versions().then_some("4");
        let wanted = of(version.as_str(), family);
        for (answer, given) in
            [("0.3.1", Some("4")), ("0.4.0", Some("6")), ("1.0.0", None), ("", None)]
        {
            let result = parse(&of(answer, given), version).unwrap();
            assert_eq!(Value::Object(result.fields().clone()), wanted, "{answer} for {version}");
            let again = CniResult::of_fields(result.fields().clone(), version).unwrap();
            assert_eq!(again, result);
        }
    }
}

#[test]
fn what_is_no_result_is_refused() {
    let ips = |value: Value| json!({ "interfaces": [{ "name": "eth0" }], "ips": value });
    let rows = [
        (json!([]), "no JSON object"),
        (json!("text"), "no JSON object"),
        (json!({ "cniVersion": "0.2.0" }), "cniVersion \"0.2.0\" is not"),
        (json!({ "cniVersion": 1 }), "cniVersion 1 is not"),
        (json!({ "interfaces": {} }), "interfaces {} is not a list"),
        (json!({ "interfaces": [{}] }), "an object with a name"),
        (json!({ "interfaces": [{ "name": 1 }] }), "an object with a name"),
        (ips(json!(7)), "ips 7 is not a list"),
        (ips(json!([7])), "ips 7 is not an object"),
        (ips(json!([{ "address": "10.0.0.2" }])), "is not an object with an address"),
        (ips(json!([{ "address": "10.0.0.2/33" }])), "is not an object with an address"),
        (ips(json!([{ "address": "fd00::1/129" }])), "is not an object with an address"),
        (ips(json!([{ "address": "/24" }])), "is not an object with an address"),
        (ips(json!([{ "address": "10.0.0.2/24", "interface": 1 }])), "interface 1 is not"),
        (ips(json!([{ "address": "10.0.0.2/24", "interface": -1 }])), "interface -1 is not"),
        (ips(json!([{ "address": "10.0.0.2/24", "interface": "0" }])), "interface \"0\" is not"),
    ];
    for (value, wanted) in rows {
        let error = parse(&value, CniVersion::V1_1_0).unwrap_err().to_string();
        assert!(error.contains(wanted), "{value}: {error}");
        assert!(error.len() < 300, "{error}");
    }
    for rubbish in ["", "ok", "{", "{} {}", "\u{0}"] {
        assert!(CniResult::parse(rubbish.as_bytes(), CniVersion::V1_0_0).is_err(), "{rubbish}");
    }
}
