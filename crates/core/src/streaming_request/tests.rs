//! Queries of exec, attach and port-forward.

use serde_json::json;

use super::*;

fn query(text: &str) -> Vec<(String, String)> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (name.to_owned(), value.to_owned())
    };
    text.split('&').filter(|part| !part.is_empty()).map(pair).collect()
}

#[test]
fn a_flag_is_on_when_it_is_exactly_1() {
    let streams = |text: &str| {
        RemoteCommandOptions::read(&query(text))
            .map(|it| [it.stdin, it.stdout, it.stderr, it.tty])
            .ok()
    };
    let rows = [
        ("input=1&output=1&error=1", Some([true, true, true, false])),
        ("output=1", Some([false, true, false, false])),
        ("output=true", None),
        ("output=0&output=1", None),
        ("output=1&output=0", Some([false, true, false, false])),
        ("input=1&tty=1", Some([true, false, false, true])),
        ("output=1&error=1&tty=1", Some([false, true, false, true])),
        ("error=1&tty=1", None),
        ("tty=1", None),
        ("", None),
    ];
    for (text, want) in rows {
        assert_eq!(streams(text), want, "{text}");
    }
    let options = RemoteCommandOptions::read(&query("command=sh&command=-c&command=&output=1"));
    assert_eq!(options.unwrap().command, ["sh", "-c", ""]);
}

#[test]
fn attach_has_the_terminal_that_the_container_was_made_with() {
    let pod = serde_json::from_value(json!({
        "metadata": { "name": "web" },
        "spec": {
            "containers": [{ "name": "shell", "tty": true }, { "name": "plain" }],
            "ephemeralContainers": [{ "name": "debugger", "tty": true }],
        },
    }))
    .unwrap();
    let rows = [("shell", true), ("plain", false), ("debugger", true), ("other", false)];
    for (name, want) in rows {
        assert_eq!(has_terminal(&pod, name), want, "{name}");
    }
    let asked = RemoteCommandOptions::read(&query("output=1&error=1")).unwrap();
    let attached = asked.clone().of_attach(true).unwrap();
    assert!(attached.tty && attached.stdout && !attached.stderr);
    let only_errors = RemoteCommandOptions { stdout: false, ..asked };
    assert!(only_errors.of_attach(true).is_err());
}

#[test]
fn ports_are_numbers_above_zero() {
    let rows: [(&str, Option<&[u16]>); 10] = [
        ("port=80", Some(&[80])),
        ("port=80&port=443", Some(&[80, 443])),
        ("port=80,8080", Some(&[80, 8080])),
        ("", None),
        ("port=", None),
        ("port=80,", None),
        ("port=0", None),
        ("port=65536", None),
        ("port=+80", None),
        ("port=http", None),
    ];
    for (text, want) in rows {
        assert_eq!(read_ports(&query(text)).ok().as_deref(), want, "{text}");
    }
    let many = vec!["80"; MAX_PORTS + 1].join(",");
    assert!(read_ports(&query(&format!("port={many}"))).is_err());
}
