//! Frames and messages, among them recorded ones of version 1.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;
use std::time::Duration;

use super::frame::{MOST_FRAME, encode, take};
use super::*;
use crate::ShimDirectory;
use crate::client::{ShimClient, ShimError};

/// What the first shim said to the first agent, byte for byte. Never change these: shims that say so may run.
const HELLO: &[u8] = b"\x00\x00\x00\x2b{\"protocol\":1,\"program\":\"0.1.0\",\"pid\":4711}";
const LIST: &[u8] = br#"{"number":1,"reply":{"answer":"containers","containers":[{"container":"c1","phase":"running","pid":4720,"created_at":"2026-11-18T08:00:00Z","started_at":"2026-11-18T08:00:01Z","exit":null,"lost_log_bytes":0},{"container":"c2","phase":"exited","pid":null,"created_at":"2026-11-18T08:00:00Z","started_at":"2026-11-18T08:00:01Z","exit":{"exit_code":137,"signal":9,"finished_at":"2026-11-18T08:00:02.5Z","oom_killed":true,"timed_out":false,"unknown":false},"lost_log_bytes":12}]}}"#;
/// The same from a shim that is newer in what an agent need not know, and older in what it may miss.
const OTHER_LIST: &[u8] = br#"{"number":1,"new":[1],"reply":{"answer":"containers","more":{"x":1},"containers":[{"container":"c1","phase":"running","color":"red"}]}}"#;

fn framed(json: &[u8]) -> Vec<u8> {
    let length = u32::try_from(json.len()).unwrap();
    [&length.to_be_bytes(), json].concat()
}

/// A shim that says these bytes, the second after it has got a request; it gives the request.
fn recorded(directory: &std::path::Path, hello: Vec<u8>, reply: Vec<u8>) -> JoinHandle<Vec<u8>> {
    let listener = UnixListener::bind(directory.join("socket")).unwrap();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(&hello).unwrap();
        let mut request = vec![0; 4096];
        let count = socket.read(&mut request).unwrap();
        socket.write_all(&reply).unwrap_or_default();
        request.truncate(count);
        request
    })
}

fn ask(hello: &[u8], reply: &[u8]) -> (Result<Vec<ContainerReport>, ShimError>, Vec<u8>) {
    let directory = tempfile::tempdir().unwrap();
    let shim = recorded(directory.path(), hello.to_vec(), framed(reply));
    let client = ShimClient::new(ShimDirectory::new(directory.path()), Duration::from_secs(30));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(client.list());
    (answer, shim.join().unwrap())
}

#[test]
fn the_first_shims_bytes_are_understood() {
    let (reports, request) = ask(HELLO, LIST);
    let reports = reports.unwrap();
    // What the first shims understand.
    assert_eq!(request, framed(br#"{"number":1,"request":{"call":"list"}}"#));
    assert_eq!(
        (reports[0].phase, reports[0].pid, &reports[0].exit),
        (ContainerPhase::Running, Some(4720), &None)
    );
    let exit = reports[1].exit.as_ref().unwrap();
    assert_eq!(
        (exit.exit_code, exit.signal, exit.oom_killed, reports[1].lost_log_bytes),
        (137, Some(9), true, 12)
    );
}

#[test]
fn fields_that_are_unknown_or_missing_do_no_harm() {
    let (reports, _) = ask(&framed(br#"{"protocol":1,"new":true}"#), OTHER_LIST);
    let reports = reports.unwrap();
    assert_eq!((reports.len(), reports[0].pid, &reports[0].exit), (1, None, &None));
}

#[test]
fn versions_that_are_not_ours_are_told() {
    for (version, is_understood) in [(0, false), (1, true), (2, false), (99, false)] {
        let (reports, _) = ask(&framed(format!(r#"{{"protocol":{version}}}"#).as_bytes()), LIST);
        match reports {
            Ok(_) => assert!(is_understood, "{version}"),
            Err(ShimError::Version { theirs, .. }) => {
                assert!(!is_understood && theirs == version, "{version}");
            }
            Err(other) => panic!("{version}: {other}"),
        }
    }
}

#[test]
fn requests_of_a_newer_agent_are_not_understood_rather_than_misunderstood() {
    let known: ShimRequest =
        serde_json::from_str(r#"{"call":"kill","container":"c","signal":9,"politely":true}"#)
            .unwrap();
    assert_eq!(known, ShimRequest::Kill { container: "c".into(), signal: 9, all: false });
    serde_json::from_str::<ShimRequest>(r#"{"call":"fly","container":"c"}"#).unwrap_err();
    let refusal: ShimReply =
        serde_json::from_str(r#"{"answer":"refused","kind":"too_tired","message":"no"}"#).unwrap();
    assert_eq!(refusal, ShimReply::Refused { kind: RefusalKind::Other, message: "no".into() });
}

#[test]
fn frames_are_taken_when_they_are_complete_and_never_when_too_long() {
    let hello = ShimHello { protocol: 1, program: "0.1.0".into(), pid: 4711 };
    let bytes = encode(&hello).unwrap();
    let mut received = Vec::new();
    for byte in &bytes {
        assert!(take::<ShimHello>(&mut received).unwrap().is_none());
        received.push(*byte);
    }
    received.extend_from_slice(&bytes[..5]);
    assert_eq!(take::<ShimHello>(&mut received).unwrap(), Some(hello));
    assert_eq!(received, bytes[..5]);
    let mut long = u32::try_from(MOST_FRAME + 1).unwrap().to_be_bytes().to_vec();
    assert!(take::<ShimHello>(&mut long).is_err());
    assert!(encode(&"x".repeat(MOST_FRAME)).is_err());
}
