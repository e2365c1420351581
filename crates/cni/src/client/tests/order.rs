//! The order of calls, and what each plugin is told.

use std::collections::BTreeSet;

use serde_json::json;

use super::fake_plugins::{FakePlugins, GOOD};

const NEVER: &str = r#"echo '{"code":11,"msg":"not now"}'; exit 1
"#;

fn fail_at(command: &str) -> String {
    format!("if [ \"$CNI_COMMAND\" = {command} ]; then {NEVER}fi\n{GOOD}")
}

fn none() -> BTreeSet<String> {
    BTreeSet::new()
}

#[tokio::test]
async fn plugins_are_added_in_order_and_deleted_in_reverse_with_the_last_result() {
    let machine = FakePlugins::new();
    machine.install("one", GOOD);
    let second = GOOD.replace("10.1.0.2/24", "10.1.0.3/24");
    machine.install("two", &second);
    let client = machine.client();
    let network = machine.configure("1.0.0", &["one", "two"]);
    assert_eq!(client.network().await.unwrap(), Some(network.clone()));
    let addresses = client.attach(&network, machine.request("abc")).await.unwrap();
    assert_eq!(addresses, ["10.1.0.3".parse::<std::net::IpAddr>().unwrap()]);
    assert_eq!(machine.kept(), ["abc.json"]);
    assert!(client.has_attachments());
    client.check(&machine.id("abc")).await.unwrap();
    // What is configured now does not matter.
    machine.remove_configuration();
    client.detach(&machine.id("abc")).await.unwrap();
    let wanted = [
        "ADD one abc",
        "ADD two abc",
        "CHECK one abc",
        "CHECK two abc",
        "DEL two abc",
        "DEL one abc",
    ];
    assert_eq!(machine.short_calls(), wanted);
    let calls = machine.calls();
    let address = |call: usize| calls[call].input["prevResult"]["ips"][0]["address"].clone();
    assert_eq!(calls[0].input.get("prevResult"), None);
    assert_eq!(address(1), "10.1.0.2/24");
    for call in 2..6 {
        assert_eq!(address(call), "10.1.0.3/24", "{call}");
    }
    assert_eq!(machine.kept(), Vec::<String>::new());
    assert!(!client.has_attachments());
    // Nothing is called for what is not connected.
    client.detach(&machine.id("abc")).await.unwrap();
    client.check(&machine.id("abc")).await.unwrap();
    client.detach(&machine.id("never")).await.unwrap();
    assert_eq!(machine.calls().len(), 6);
    client.remove_directory().await.unwrap();
}

#[tokio::test]
async fn another_client_on_the_same_directory_deletes_by_the_configuration_of_then() {
    let machine = FakePlugins::new();
    machine.install("one", GOOD);
    machine.install("other", GOOD);
    let old = machine.configure("0.4.0", &["one"]);
    machine.client().attach(&old, machine.request("abc")).await.unwrap();
    machine.configure("1.0.0", &["other"]);
    machine.forget_calls();
    let next = machine.client();
    next.resume(&[machine.id("abc")].into()).await.unwrap();
    assert!(next.has_attachments() && next.abandoned().is_empty());
    next.detach(&machine.id("abc")).await.unwrap();
    let [call] = machine.calls().try_into().unwrap();
    assert_eq!((call.command.as_str(), call.plugin.as_str()), ("DEL", "one"));
    let wanted = json!([{ "address": "10.1.0.2/24", "interface": 0, "version": "4" }]);
    assert_eq!(call.input["prevResult"]["ips"], wanted);
    assert_eq!(call.input["cniVersion"], "0.4.0");
}

#[tokio::test]
async fn versions_have_no_more_than_they_have() {
    let machine = FakePlugins::new();
    machine.install("one", GOOD);
    let client = machine.client();
    let old = machine.configure("0.3.1", &["one"]);
    client.attach(&old, machine.request("abc")).await.unwrap();
    client.check(&machine.id("abc")).await.unwrap();
    assert_eq!(client.trouble(&old).await, None);
    client.collect_garbage(&old).await.unwrap();
    client.detach(&machine.id("abc")).await.unwrap();
    assert_eq!(machine.short_calls(), ["ADD one abc", "DEL one abc"]);
    assert_eq!(machine.calls()[1].input.get("prevResult"), None);
    machine.forget_calls();
    let forbidden = machine.configure_as(&json!({
        "cniVersion": "1.1.0", "name": "net", "plugins": [{ "type": "one" }],
        "disableCheck": true, "disableGC": true,
    }));
    client.attach(&forbidden, machine.request("abc")).await.unwrap();
    client.check(&machine.id("abc")).await.unwrap();
    client.collect_garbage(&forbidden).await.unwrap();
    assert_eq!(machine.short_calls(), ["ADD one abc"]);
}

#[tokio::test]
async fn what_was_half_added_is_deleted_by_all_plugins() {
    let machine = FakePlugins::new();
    machine.install("one", GOOD);
    machine.install("two", &fail_at("ADD"));
    machine.install("three", GOOD);
    let client = machine.client();
    let network = machine.configure("1.0.0", &["one", "two", "three"]);
    let error = client.attach(&network, machine.request("abc")).await.unwrap_err().to_string();
    assert_eq!(
        error.replace(&machine.id("abc"), "abc"),
        "failed to setup network for sandbox \"abc\": plugin type=\"two\" failed (add): not now (code 11: try again later), on network \"net\" of pod default/web"
    );
    let wanted = ["ADD one abc", "ADD two abc", "DEL three abc", "DEL two abc", "DEL one abc"];
    assert_eq!(machine.short_calls(), wanted);
    assert!(machine.kept().is_empty() && client.abandoned().is_empty());
}

#[tokio::test]
async fn what_cannot_be_deleted_is_kept_until_it_can() {
    let machine = FakePlugins::new();
    machine.install("one", GOOD);
    machine.install("two", &fail_at("DEL"));
    let client = machine.client();
    let network = machine.configure("1.0.0", &["one", "two"]);
    client.attach(&network, machine.request("abc")).await.unwrap();
    let error = client.detach(&machine.id("abc")).await.unwrap_err().to_string();
    let error = error.replace(&machine.id("abc"), "abc");
    assert!(error.starts_with("failed to destroy network for sandbox \"abc\": plugin type=\"two\" failed (delete): not now"), "{error}");
    // The address stays taken as long as something may lead to it.
    assert!(!machine.short_calls().contains(&"DEL one abc".to_owned()));
    assert_eq!(machine.kept(), ["abc.json"]);
    client.abandon(&machine.id("abc"));
    assert!(client.is_abandoned(&machine.id("abc")) && !client.has_attachments());
    assert_eq!(client.remove_abandoned().await.1.len(), 1);
    // After a restart, too.
    let next = machine.client();
    next.resume(&none()).await.unwrap();
    assert!(next.is_abandoned(&machine.id("abc")));
    machine.install("two", GOOD);
    machine.forget_calls();
    let (removed, failed) = next.remove_abandoned().await;
    assert_eq!((removed, failed.len()), (vec![machine.id("abc")], 0));
    assert_eq!(machine.short_calls(), ["DEL two abc", "DEL one abc"]);
    assert!(machine.kept().is_empty() && next.abandoned().is_empty());
}

#[tokio::test]
async fn garbage_is_what_belongs_to_none_of_our_sandboxes() {
    let machine = FakePlugins::new();
    machine.install("one", GOOD);
    machine.install("two", &fail_at("GC"));
    let client = machine.client();
    let network = machine.configure("1.1.0", &["two", "one"]);
    for sandbox in ["a", "b", "c"] {
        client.attach(&network, machine.request(sandbox)).await.unwrap();
    }
    client.abandon(&machine.id("b"));
    machine.forget_calls();
    let failed = client.collect_garbage(&network).await.unwrap_err();
    assert_eq!(
        failed.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["network \"net\": plugin type=\"two\" failed (gc): not now (code 11: try again later)"]
    );
    assert_eq!(machine.short_calls(), ["GC two", "GC one"]);
    let valid = json!([
        { "containerID": machine.id("a"), "ifname": "eth0" },
        { "containerID": machine.id("c"), "ifname": "eth0" },
    ]);
    assert_eq!(machine.calls()[1].input["cni.dev/valid-attachments"], valid);
}

#[tokio::test]
async fn plugins_are_asked_whether_they_are_ready_and_not_each_time() {
    let machine = FakePlugins::new();
    machine.install("one", GOOD);
    let client = machine.client();
    let network = machine.configure("1.1.0", &["one"]);
    assert_eq!(client.trouble(&network).await, None);
    assert_eq!(client.trouble(&network).await, None);
    assert_eq!(machine.short_calls(), ["STATUS one"]);
    // Another configuration is another question.
    machine.install("two", r#"echo '{"code":50,"msg":"daemon away"}'; exit 1"#);
    let other = machine.configure("1.1.0", &["one", "two"]);
    let wanted = "network \"net\": plugin type=\"two\" failed (status): daemon away (code 50: the plugin is not available)";
    assert_eq!(client.trouble(&other).await.as_deref(), Some(wanted));
    // A pod that could not be connected is one, too.
    machine.forget_calls();
    machine.install("one", &fail_at("ADD"));
    client.trouble(&network).await;
    client.attach(&network, machine.request("abc")).await.unwrap_err();
    client.trouble(&network).await;
    let statuses = machine.short_calls().into_iter().filter(|call| call == "STATUS one").count();
    assert_eq!(statuses, 2);
}
