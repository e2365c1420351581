//! Queries and states, and the log that is meant.

use serde_json::{Value, json};

use super::*;

fn read(query: &[(&str, &str)]) -> Result<ContainerLogOptions, LogError> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    ContainerLogOptions::read(&query.iter().map(owned).collect::<Vec<_>>())
}

#[test]
fn queries_are_read_as_the_api_server_writes_them() {
    let all = read(&[
        ("follow", "true"),
        ("previous", "false"),
        ("tailLines", "10"),
        ("timestamps", "1"),
        ("limitBytes", "5"),
        ("sinceTime", "2026-01-01T00:00:00Z"),
        ("insecureSkipTLSVerifyBackend", "true"),
    ]);
    let want = ContainerLogOptions {
        follow: true,
        timestamps: true,
        tail: Some(10),
        limit: Some(5),
        since_time: Some("2026-01-01T00:00:00Z".parse().unwrap()),
        ..ContainerLogOptions::default()
    };
    assert_eq!(all, Ok(want));
    assert_eq!(read(&[("tail", "all"), ("tailLines", "3")]).unwrap().tail, None);
    assert_eq!(read(&[("tail", "0")]).unwrap().tail, Some(0));
    let now = "2026-01-01T00:01:00Z".parse().unwrap();
    let since = read(&[("sinceSeconds", "30")]).unwrap().since(now).unwrap();
    assert_eq!(since.to_string(), "2026-01-01T00:00:30Z");
}

#[test]
fn senseless_queries_are_refused() {
    for query in [
        vec![("tailLines", "-1")],
        vec![("tailLines", "x")],
        vec![("sinceSeconds", "0")],
        vec![("limitBytes", "0")],
        vec![("sinceTime", "yesterday")],
        vec![("follow", "perhaps")],
        vec![("sinceSeconds", "1"), ("sinceTime", "2026-01-01T00:00:00Z")],
    ] {
        assert!(matches!(read(&query), Err(LogError::Invalid(_))), "{query:?}");
    }
}

fn pod(restarts: i32, state: &Value, last: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": { "name": "web", "namespace": "default" },
        "spec": { "containers": [{ "name": "c" }, { "name": "new" }] },
        "status": { "containerStatuses": [{
            "name": "c", "image": "", "imageID": "", "ready": false, "restartCount": restarts,
            "state": state, "lastState": last,
        }]},
    }))
    .unwrap()
}

#[test]
fn the_log_that_is_meant_depends_on_the_state() {
    let running = json!({ "running": {} });
    let ended = json!({ "terminated": { "exitCode": 1 } });
    let crashed = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
    let creating = json!({ "waiting": { "reason": "ContainerCreating" } });
    let none = json!({});
    let absent = |text: &str| Err(LogError::Absent(text.to_owned()));
    let rows = [
        (0, &running, &none, false, Ok(0)),
        (2, &running, &ended, false, Ok(2)),
        (2, &running, &ended, true, Ok(1)),
        (2, &ended, &ended, false, Ok(2)),
        (2, &ended, &ended, true, Ok(1)),
        (2, &crashed, &ended, false, Ok(2)),
        (2, &crashed, &ended, true, Ok(2)),
        (
            0,
            &running,
            &none,
            true,
            absent("previous terminated container \"c\" in pod \"web\" not found"),
        ),
        (
            0,
            &creating,
            &none,
            false,
            absent("container \"c\" in pod \"web\" is waiting to start: ContainerCreating"),
        ),
        (
            0,
            &none,
            &none,
            false,
            absent("container \"c\" in pod \"web\" is waiting to start - no logs yet"),
        ),
    ];
    for (restarts, state, last, previous, want) in rows {
        let pod = pod(restarts, state, last);
        let found = log_restart_count(&pod, pod.status.as_ref(), "c", previous);
        assert_eq!(found, want, "{restarts} {state} {last} {previous}");
    }
    let pod = pod(0, &running, &none);
    assert_eq!(
        log_restart_count(&pod, pod.status.as_ref(), "x", false),
        Err(LogError::Unknown("container \"x\" not found in pod \"web\"".to_owned()))
    );
    assert_eq!(
        log_restart_count(&pod, pod.status.as_ref(), "new", false),
        absent("container \"new\" in pod \"web\" is not available")
    );
}

#[test]
fn a_log_is_over_when_its_container_runs_no_more() {
    let running = json!({ "running": {} });
    let rows = [
        (pod(1, &running, &json!({})), 1, false),
        (pod(1, &running, &json!({})), 0, true),
        (pod(1, &json!({ "terminated": { "exitCode": 0 } }), &json!({})), 1, true),
        (pod(1, &json!({ "waiting": {} }), &json!({})), 1, true),
        (Pod::default(), 0, true),
    ];
    for (pod, start, want) in rows {
        assert_eq!(is_log_complete(pod.status.as_ref(), "c", start), want, "{pod:?} {start}");
    }
}
