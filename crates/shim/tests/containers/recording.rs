//! A conversation of an agent with a shim, recorded: `conversation-1.txt` is what a shim of version 1 of the protocol said, frame by frame. Shims of that
//! version may run beside a newer agent, so that the file is never changed; another version gets another file.
//!
//! Each line is a frame: `S` and what the shim said, or `A` and what the agent said. An empty line ends a connection.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use libtest_mimic::{Failed, Trial};
use oarsman_shim::ShimDirectory;
use oarsman_shim::client::{AttachStreams, ExecLifetime, ShimClient};
use oarsman_shim::protocol::{ContainerPhase, CreateRequest};
use serde_json::Value;

use crate::pod::{DEADLINE, Pod, case, process};

const RECORDED: &str = "tests/containers/conversation-1.txt";
/// With this in the environment the file is written.
const RECORD: &str = "OARSMAN_RECORD_SHIM";

pub(crate) fn cases() -> Vec<Trial> {
    vec![
        Trial::test("a_shim_of_version_1_is_understood", || replay().map_err(Failed::from)),
        case("a_shim_says_what_was_recorded_and_more", record),
    ]
}

fn recorded_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(RECORDED)
}

/// What an agent does with a pod of one container.
async fn converse(client: &ShimClient, container: CreateRequest) {
    assert_eq!(client.hello().await.unwrap().protocol, 1);
    assert_eq!(client.list().await.unwrap(), []);
    let id = container.container.clone();
    let pid = client.create(container).await.unwrap();
    client.start(&id).await.unwrap();
    let running = client.list().await.unwrap().remove(0);
    assert_eq!((running.phase, running.pid), (ContainerPhase::Running, Some(pid)));
    let exec = client
        .exec(&id, process("exit 7"), AttachStreams::default(), ExecLifetime::Own)
        .await
        .unwrap();
    let exit = exec.wait().await.unwrap();
    assert_eq!((exit.exit_code, exit.timed_out), (7, false));
    client.kill(&id, 9, true).await.unwrap();
    let exit = client.wait(&id).await.unwrap();
    assert_eq!((exit.exit_code, exit.signal, exit.unknown), (137, Some(9), false));
    let ended = client.list().await.unwrap().remove(0);
    assert_eq!((ended.phase, ended.exit), (ContainerPhase::Exited, Some(exit)));
    client.delete(&id).await.unwrap();
    client.shut_down().await.unwrap();
}

/// Bytes of a frame from a stream; none at its end.
fn read_frame(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut json = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
    from.read_exact(&mut json)?;
    Ok(Some(json))
}

fn write_frame(to: &mut impl Write, json: &[u8]) -> io::Result<()> {
    let length = u32::try_from(json.len()).unwrap();
    to.write_all(&[&length.to_be_bytes(), json].concat())
}

/// Whether all that was said before is still said: an object may have more.
fn has_all(now: &Value, before: &Value, compare_values: bool) -> bool {
    match (now, before) {
        (Value::Object(now), Value::Object(before)) => before.iter().all(|(name, before)| {
            now.get(name).is_some_and(|now| has_all(now, before, compare_values))
        }),
        // Some lists are sets, whose order means nothing.
        (Value::Array(now), Value::Array(before)) => {
            before.iter().all(|before| now.iter().any(|now| has_all(now, before, compare_values)))
        }
        (now, before) => !compare_values || now == before,
    }
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

/// Plays the shim's part of one connection.
fn play(mut socket: UnixStream, lines: &[&str]) {
    for line in lines {
        let (side, json) = line.split_once(' ').unwrap();
        if side == "S" {
            write_frame(&mut socket, json.as_bytes()).unwrap();
            continue;
        }
        let said = read_frame(&mut socket).unwrap().unwrap();
        let said: Value = serde_json::from_slice(&said).unwrap();
        assert!(
            has_all(&said, &parsed(json), true),
            "an old shim would miss something:\n{said}\n{json}"
        );
    }
}

fn replay() -> Result<(), String> {
    let text = fs::read_to_string(recorded_path()).map_err(|error| error.to_string())?;
    let is_create = |line: &&str| line.starts_with("A ") && line.contains("\"call\":\"create\"");
    let create = parsed(text.lines().find(is_create).unwrap().split_once(' ').unwrap().1);
    let request: CreateRequest = serde_json::from_value(create["request"].clone()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(directory.path().join("socket")).unwrap();
    let shim = thread::spawn(move || {
        for connection in text.split("\n\n").filter(|lines| !lines.trim().is_empty()) {
            let (socket, _) = listener.accept().unwrap();
            play(socket, &connection.lines().collect::<Vec<_>>());
        }
    });
    let client = ShimClient::new(ShimDirectory::new(directory.path()), DEADLINE);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(converse(&client, request));
    shim.join().map_err(|_| "the recorded shim did not get what it was told".to_owned())
}

/// Passes frames on, and keeps them. Descriptors are not passed: the container's end of them is closed.
fn pump(
    mut from: UnixStream,
    mut to: UnixStream,
    side: char,
    kept: mpsc::Sender<String>,
) -> JoinHandle<()> {
    thread::spawn(move || {
        while let Ok(Some(json)) = read_frame(&mut from) {
            kept.send(format!("{side} {}", String::from_utf8(json.clone()).unwrap())).unwrap();
            if write_frame(&mut to, &json).is_err() {
                break;
            }
        }
        to.shutdown(std::net::Shutdown::Write).unwrap_or_default();
    })
}

/// A shim's socket in between, which keeps all frames in the order in which they came.
fn proxy(listener: UnixListener, shim: PathBuf) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        loop {
            let (agent, _) = listener.accept().unwrap();
            let there = UnixStream::connect(&shim).unwrap();
            let (keep, kept) = mpsc::channel();
            let copy = |socket: &UnixStream| socket.try_clone().unwrap();
            let threads = [
                pump(copy(&there), copy(&agent), 'S', keep.clone()),
                pump(copy(&agent), copy(&there), 'A', keep),
            ];
            let lines: Vec<String> = kept.iter().collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            let is_last = lines.iter().any(|line| line.contains("\"call\":\"shutdown\""));
            text.push_str(&lines.join("\n"));
            text.push_str("\n\n");
            if is_last {
                return text;
            }
        }
    })
}

async fn record(pod: Pod) {
    let between = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(between.path().join("socket")).unwrap();
    // The path of the shim's own socket is too long.
    let link = between.path().join("shim");
    std::os::unix::fs::symlink(pod.directory.path(), &link).unwrap();
    let proxy = proxy(listener, link.join("socket"));
    let client = ShimClient::new(ShimDirectory::new(between.path()), DEADLINE);
    converse(&client, pod.container("one", "sleep 1000").request()).await;
    let said = tokio::task::spawn_blocking(|| proxy.join().unwrap()).await.unwrap();
    if std::env::var_os(RECORD).is_some() {
        fs::write(recorded_path(), &said).unwrap();
    }
    let recorded = fs::read_to_string(recorded_path()).unwrap();
    let of_shim = |text: &str| -> Vec<Value> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("S "));
        lines.map(parsed).collect()
    };
    let (now, before) = (of_shim(&said), of_shim(&recorded));
    assert_eq!(now.len(), before.len());
    for (now, before) in now.iter().zip(&before) {
        assert!(has_all(now, before, false), "an old agent would miss something:\n{now}\n{before}");
    }
    pod.until("the shim has ended", || !pod.directory.path().exists()).await;
}
