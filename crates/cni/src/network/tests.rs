//! Configurations as administrators and installers write them.

use serde_json::json;

use super::*;

fn list(value: &Value) -> Parsed<CniNetwork> {
    CniNetwork::parse_list(value.to_string().as_bytes())
}

fn with(field: &str, value: &Value) -> Value {
    let mut all = json!({ "cniVersion": "1.0.0", "name": "net", "plugins": [{ "type": "a" }] });
    all[field] = value.clone();
    all
}

#[test]
fn a_list_has_its_plugins_in_order_with_all_their_fields() {
    let network = list(&json!({
        "cniVersion": "1.0.0",
        "name": "cbr0.x_1-a",
        "disableCheck": "True",
        "plugins": [
            { "type": "bridge", "ipam": { "type": "host-local" }, "capabilities": null },
            { "type": "portmap", "capabilities": { "portMappings": true, "x": false } },
        ],
    }))
    .unwrap();
    assert_eq!((network.name(), network.version()), ("cbr0.x_1-a", CniVersion::V1_0_0));
    assert!(network.disable_check && !network.disable_gc);
    assert_eq!(network.plugin_types().collect::<Vec<_>>(), ["bridge", "portmap"]);
    assert!(network.has_capability("portMappings") && !network.has_capability("x"));
    assert_eq!(network.plugins[0].fields["ipam"]["type"], "host-local");
    // What is kept for DEL is the same network.
    assert_eq!(list(&network.to_json()).unwrap(), network);
}

#[test]
fn a_file_with_one_plugin_is_a_network_of_its_own() {
    let single = json!({ "cniVersion": "0.3.1", "name": "n", "type": "ptp", "mtu": 1400 });
    let network = CniNetwork::parse_single(single.to_string().as_bytes()).unwrap();
    assert_eq!(network.plugin_types().collect::<Vec<_>>(), ["ptp"]);
    assert_eq!(network.plugins[0].fields["mtu"], 1400);
    assert_eq!(list(&network.to_json()).unwrap(), network);
    let no_type = br#"{ "cniVersion": "0.3.1", "name": "n", "plugins": [{ "type": "a" }] }"#;
    assert_eq!(CniNetwork::parse_single(no_type), Err(ConfigurationError::Missing("type")));
}

#[test]
fn the_newest_version_that_is_spoken_is_taken() {
    let rows = [
        (json!("1.0.0"), json!(null), "1.0.0"),
        (json!("1.0.0"), json!(["1.0.0", "1.1.0"]), "1.1.0"),
        (json!("0.4.0"), json!(["0.3.1"]), "0.4.0"),
        (json!("1.0.0"), json!(["9.0.0", "x"]), "1.0.0"),
        (json!(null), json!(["0.3.0", "0.3.1"]), "0.3.1"),
        (json!("9.0.0"), json!(["1.1.0"]), "1.1.0"),
    ];
    for (one, several, wanted) in rows {
        let mut all = with("cniVersion", &one);
        all["cniVersions"] = several;
        assert_eq!(list(&all).unwrap().version().as_str(), wanted, "{all}");
    }
    for version in [json!("0.2.0"), json!("0.1.0"), json!(""), json!(null), json!("2.0.0")] {
        let error = list(&with("cniVersion", &version)).unwrap_err();
        assert!(matches!(error, ConfigurationError::Version(_)), "{version}: {error}");
    }
}

#[test]
fn where_more_plugins_may_be_is_told() {
    let inlined = with("loadOnlyInlinedPlugins", &json!(true));
    let parsed = parse_list(inlined.to_string().as_bytes()).unwrap();
    assert!(matches!(parsed, ParsedFile::Whole(_)));
    let parsed = parse_list(br#"{ "cniVersion": "1.1.0", "name": "n" }"#).unwrap();
    let ParsedFile::WithDirectory(network) = parsed else { panic!("{parsed:?}") };
    assert_eq!(network.require_plugins(), Err(ConfigurationError::Plugins(0)));
    let nowhere = br#"{ "cniVersion": "1.1.0", "name": "n", "loadOnlyInlinedPlugins": true }"#;
    assert_eq!(parse_list(nowhere), Err(ConfigurationError::Missing("plugins")));
}

#[test]
fn what_is_wrong_is_named() {
    let rows = [
        (with("name", &json!(null)), "\"name\" is missing"),
        (with("name", &json!(7)), "\"name\" has to be a text"),
        (with("name", &json!("")), "network name \"\""),
        (with("name", &json!("../x")), "network name \"../x\""),
        (with("name", &json!("-x")), "network name \"-x\""),
        (with("name", &json!("x".repeat(129))), "network name"),
        (with("plugins", &json!([])), "it has 0 plugins"),
        (with("plugins", &json!({})), "\"plugins\" has to be a list"),
        (with("plugins", &json!([7])), "a list of objects"),
        (with("plugins", &json!([{}])), "\"type\" is missing"),
        (with("plugins", &json!([{ "type": "a/b" }])), "type \"a/b\""),
        (with("plugins", &json!([{ "type": ".." }])), "type \"..\""),
        (with("plugins", &json!([{ "type": "" }])), "type \"\""),
        (
            with("plugins", &json!([{ "type": "a", "capabilities": { "x": "yes" } }])),
            "\"capabilities\"",
        ),
        (with("plugins", &json!(vec![json!({ "type": "a" }); 65])), "it has 65 plugins"),
        (with("cniVersion", &json!(1)), "\"cniVersion\" has to be a text"),
        (with("cniVersions", &json!("1.0.0")), "\"cniVersions\" has to be a list of texts"),
        (with("cniVersions", &json!([1])), "\"cniVersions\" has to be a list of texts"),
        (with("disableCheck", &json!("no")), "\"disableCheck\" has to be true or false"),
        (with("disableGC", &json!(1)), "\"disableGC\" has to be true or false"),
        (json!([]), "no JSON object"),
    ];
    for (value, wanted) in rows {
        let error = list(&value).unwrap_err().to_string();
        assert!(error.contains(wanted), "{value}: {error}");
    }
    assert!(CniNetwork::parse_list(b"{").unwrap_err().to_string().contains("no JSON object"));
}
