//! Plugins that hang, write without end, answer rubbish, lie about their success, or leave processes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use oarsman_host::processes;
use tokio::time::{Instant, sleep, timeout};

use super::fake_plugins::{FakePlugins, GOOD};
use crate::client::CniClient;

const LONG: Duration = Duration::from_secs(60);

/// Tries to connect a sandbox by one plugin, and gives the error.
async fn failing(machine: &FakePlugins, client: &CniClient, script: &str) -> String {
    machine.install("bad", script);
    let network = machine.configure("1.0.0", &["bad"]);
    let done = timeout(LONG, client.attach(&network, machine.request("abc"))).await.unwrap();
    done.unwrap_err().to_string()
}

/// What fails at ADD only, so that it can be undone.
fn at_add(script: &str) -> String {
    format!("if [ \"$CNI_COMMAND\" = ADD ]; then\n{script}\nfi\n")
}

async fn until_gone(pid: u32) {
    let gone = async {
        while processes::find(pid).is_some_and(|process| process.state != 'Z') {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, gone).await.unwrap();
}

fn pid_in(path: &Path) -> u32 {
    fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

#[tokio::test]
async fn a_plugin_that_hangs_is_killed_with_all_that_it_has_started() {
    let machine = FakePlugins::new();
    let client = machine.client_with(Duration::from_millis(700));
    let (near, far) = (machine.path("near"), machine.path("far"));
    // The second one has left the process group.
    let script = at_add(&format!(
        "sleep 600 & echo $! > {}; setsid sleep 600 & echo $! > {}; wait",
        near.display(),
        far.display()
    ));
    let error = failing(&machine, &client, &script).await;
    assert!(error.contains("plugin type=\"bad\" failed (add): the plugins of the network have not answered within 700ms"), "{error}");
    for path in [near, far] {
        until_gone(pid_in(&path)).await;
    }
    assert_eq!(machine.short_calls(), ["ADD bad abc", "DEL bad abc"]);
    assert!(machine.kept().is_empty());
}

#[tokio::test]
async fn a_plugin_that_hangs_in_del_too_is_tried_again_later() {
    let machine = FakePlugins::new();
    let client = machine.client_with(Duration::from_millis(500));
    let error = failing(&machine, &client, "exec sleep 600").await;
    assert!(error.contains("have not answered within 500ms"), "{error}");
    assert!(client.is_abandoned(&machine.id("abc")));
    assert_eq!(machine.kept(), ["abc.json"]);
    machine.install("bad", GOOD);
    assert_eq!(client.remove_abandoned().await.0, [machine.id("abc")]);
}

#[tokio::test]
async fn a_plugin_that_writes_a_gigabyte_is_killed() {
    let machine = FakePlugins::new();
    let client = machine.client();
    let script = at_add("head -c 1073741824 /dev/zero");
    let error = failing(&machine, &client, &script).await;
    assert!(error.contains("its answer is longer than 1048576 bytes"), "{error}");
    let script = at_add("head -c 100000000 /dev/zero >&2; exit 1");
    let error = failing(&machine, &client, &script).await;
    assert!(error.contains("ended with exit status: 1 and no error of CNI"), "{error}");
    assert!(machine.kept().is_empty());
}

#[tokio::test]
async fn answers_that_are_none_are_told_with_what_the_plugin_wrote() {
    let machine = FakePlugins::new();
    let client = machine.client();
    let rows = [
        ("echo rubbish; echo why >&2", "its answer cannot be used: it is no JSON object"),
        ("echo rubbish; echo why >&2", "(it wrote \"why\")"),
        ("exit 3", "it ended with exit status: 3 and no error of CNI"),
        ("kill -9 $$", "it ended with signal: 9"),
        ("echo '{\"code\":100,\"msg\":\"a lie\"}'", "a lie (code 100)"),
        ("echo '{}'", "gives pod default/web no address for its interface eth0"),
        ("printf '\\377\\376'", "its answer cannot be used"),
        (":", "its answer cannot be used"),
    ];
    for (script, wanted) in rows {
        let error = failing(&machine, &client, &at_add(script)).await;
        assert!(error.contains(wanted), "{script}: {error}");
        assert!(error.contains("\"net\"") && error.contains("default/web"), "{script}: {error}");
    }
    assert!(machine.kept().is_empty());
}

#[tokio::test]
async fn a_plugin_that_is_missing_or_no_program_is_told_with_where_it_was_looked_for() {
    let machine = FakePlugins::new();
    let client = machine.client();
    let network = machine.configure("1.0.0", &["absent-one"]);
    let error = client.attach(&network, machine.request("abc")).await.unwrap_err().to_string();
    let directories =
        format!("{} {}", machine.path("absent").display(), machine.path("bin").display());
    let wanted = format!("failed to find plugin \"absent-one\" in path [{directories}]");
    assert!(error.contains(&wanted), "{error}");
    fs::write(machine.path("bin/text"), "no program").unwrap();
    let network = machine.configure("1.0.0", &["text"]);
    let error = client.attach(&network, machine.request("def")).await.unwrap_err().to_string();
    assert!(error.contains("bin/text cannot be executed"), "{error}");
}

#[tokio::test]
async fn a_process_that_keeps_stdout_open_is_not_waited_for() {
    let machine = FakePlugins::new();
    let client = machine.client();
    let pid = machine.path("pid");
    machine.install("bad", &format!("{GOOD}sleep 600 & echo $! > {}", pid.display()));
    let network = machine.configure("1.0.0", &["bad"]);
    let begun = Instant::now();
    client.attach(&network, machine.request("abc")).await.unwrap();
    assert!(begun.elapsed() < LONG);
    processes::kill_by_variable("CNI_CONTAINERID", &machine.id("abc")).unwrap();
    client.detach(&machine.id("abc")).await.unwrap();
    processes::kill_by_variable("CNI_CONTAINERID", &machine.id("abc")).unwrap();
    until_gone(pid_in(&pid)).await;
}

#[tokio::test]
#[expect(clippy::mem_forget, reason = "an agent that is killed runs none of its destructors")]
async fn what_an_agent_that_was_killed_has_left_running_ends_before_anything_else() {
    let machine = FakePlugins::new();
    let (started, client) = (machine.path("started"), machine.client());
    // Ignores what asks it to end, and would connect the sandbox after its removal.
    let script = at_add(&format!(
        "trap '' TERM; echo $$ > {0}.new; mv {0}.new {0}; sleep 600; {GOOD}",
        started.display()
    ));
    machine.install("bad", &script);
    let network = machine.configure("1.0.0", &["bad"]);
    let request = machine.request("abc");
    // The agent is gone at once, and its plugins are not: nothing of it may run any more.
    let agent = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.spawn(async move { client.attach(&network, request).await.map(drop) });
        runtime.block_on(async {
            while !started.exists() {
                sleep(Duration::from_millis(5)).await;
            }
        });
        std::mem::forget(runtime);
        pid_in(&started)
    });
    let plugin = agent.join().unwrap();
    assert!(processes::find(plugin).is_some());
    let next = machine.client();
    next.resume(&std::collections::BTreeSet::new()).await.unwrap();
    until_gone(plugin).await;
    assert_eq!(next.remove_abandoned().await.0, [machine.id("abc")]);
    assert_eq!(machine.short_calls(), ["ADD bad abc", "DEL bad abc"]);
    assert!(machine.kept().is_empty());
}
