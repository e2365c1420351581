//! Logs, stdin, terminals and attached clients.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libtest_mimic::Trial;
use oarsman_shim::client::AttachStreams;
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::json;

use crate::pod::{Pod, case, read_lines};

pub(crate) fn cases() -> Vec<Trial> {
    vec![
        case("stdin_ends_with_the_first_client_if_asked", stdin_once),
        case("stdin_stays_open_for_the_next_client", stdin_open),
        case("several_clients_write_to_one_stdin", several_inputs),
        case("stdin_is_empty_without_being_asked_for", stdin_closed),
        case("clients_see_the_output_and_a_slow_one_stops_nothing", attach),
        case("a_terminal_has_a_size", terminal),
        case("no_line_is_lost_when_a_log_is_reopened", reopen),
        case("a_log_that_cannot_be_written_stops_nothing", full_disk),
        case("a_log_whose_disk_hangs_holds_up_nothing", frozen_disk)
            .with_ignored_flag(!can_freeze()),
    ]
}

fn pipe() -> (OwnedFd, File) {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    (reader, File::from(writer))
}

fn stdin(reader: OwnedFd) -> AttachStreams {
    AttachStreams { stdin: Some(reader), ..AttachStreams::default() }
}

async fn stdin_once(pod: Pod) {
    pod.run(pod.container("one", "cat; echo end").with_stdin(true)).await;
    let (reader, mut writer) = pipe();
    pod.client.attach("one", &stdin(reader)).await.unwrap();
    writer.write_all(b"hello\n").unwrap();
    drop(writer);
    assert_eq!(pod.client.wait("one").await.unwrap().exit_code, 0);
    assert_eq!(pod.output("one"), "hello\nend\n");
    pod.close().await;
}

async fn stdin_open(pod: Pod) {
    pod.run(pod.container("one", "read a; echo got $a; read b; echo got $b").with_stdin(false))
        .await;
    for word in ["first", "second"] {
        let (reader, mut writer) = pipe();
        pod.client.attach("one", &stdin(reader)).await.unwrap();
        writeln!(writer, "{word}").unwrap();
        drop(writer);
        pod.until_said("one", &format!("got {word}")).await;
    }
    assert_eq!(pod.client.wait("one").await.unwrap().exit_code, 0);
    pod.close().await;
}

async fn several_inputs(pod: Pod) {
    let script = "while read x; do echo got $x; done";
    pod.run(pod.container("one", script).with_stdin(true)).await;
    let mut inputs = Vec::new();
    // More than are read at once, of which the first ones are let go.
    for _ in 0..34 {
        let (reader, writer) = pipe();
        pod.client.attach("one", &stdin(reader)).await.unwrap();
        inputs.push(writer);
    }
    for (number, at) in [33, 2, 33, 2].into_iter().enumerate() {
        writeln!(inputs[at], "{number}").unwrap();
        pod.until_said("one", &format!("got {number}")).await;
    }
    assert!(writeln!(inputs[0], "no").is_err());
    drop(inputs);
    assert_eq!(pod.client.wait("one").await.unwrap().exit_code, 0);
    pod.close().await;
}

async fn stdin_closed(pod: Pod) {
    pod.run(pod.container("one", "cat; echo end")).await;
    assert_eq!(pod.client.wait("one").await.unwrap().exit_code, 0);
    assert_eq!(pod.output("one"), "end\n");
    pod.run(pod.container("two", "sleep 1000")).await;
    let (reader, _writer) = pipe();
    let error = pod.client.attach("two", &stdin(reader)).await.unwrap_err();
    assert!(error.to_string().contains("no open stdin"), "{error}");
    pod.close().await;
}

async fn attach(pod: Pod) {
    let lines = |count: usize| {
        format!(
            "i=0; while [ $i -lt {count} ]; do echo line $i of a text that is long enough; i=$((i+1)); done"
        )
    };
    let script = format!("read x; {}; echo e >&2; read x; {}", lines(15_000), lines(60_000));
    let text = |count: usize| {
        (0..count).map(|i| format!("line {i} of a text that is long enough\n")).collect::<String>()
    };
    pod.run(pod.container("one", &script).with_stdin(true)).await;
    let ((out, to_out), (err, to_err), (slow, to_slow)) = (pipe(), pipe(), pipe());
    let (reader, mut writer) = pipe();
    let first = AttachStreams {
        stdin: Some(reader),
        stdout: Some(to_out.into()),
        stderr: Some(to_err.into()),
    };
    pod.client.attach("one", &first).await.unwrap();
    drop(first);
    let read = |from: OwnedFd, length: usize| {
        tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            File::from(from)
                .take(u64::try_from(length).unwrap())
                .read_to_string(&mut text)
                .unwrap();
            text
        })
    };
    // As much as a client may be behind: it gets all of it, however slowly it reads.
    let (out, err) = (read(out, text(15_000).len()), read(err, 2));
    writer.write_all(b"go\n").unwrap();
    assert!(out.await.unwrap() == text(15_000));
    assert_eq!(err.await.unwrap(), "e\n");
    let second = AttachStreams { stdout: Some(to_slow.into()), ..AttachStreams::default() };
    pod.client.attach("one", &second).await.unwrap();
    drop(second);
    // And more than that, which is not read.
    writer.write_all(b"go\n").unwrap();
    assert_eq!(pod.client.wait("one").await.unwrap().exit_code, 0);
    assert!(pod.output("one") == text(15_000) + &text(60_000));
    let seen = read(slow, usize::MAX).await.unwrap();
    assert!(text(60_000).starts_with(&seen) && seen.len() < text(60_000).len(), "{}", seen.len());
    pod.close().await;
}

async fn terminal(pod: Pod) {
    let script = "tty; echo ready; read x; stty size; echo $x";
    pod.run(pod.container("one", script).with("/process/terminal", json!(true)).with_stdin(false))
        .await;
    pod.until_said("one", "ready").await;
    pod.client.resize("one", 132, 50).await.unwrap();
    let (reader, mut writer) = pipe();
    pod.client.attach("one", &stdin(reader)).await.unwrap();
    writer.write_all(b"typed\n").unwrap();
    assert_eq!(pod.client.wait("one").await.unwrap().exit_code, 0);
    let output = pod.output("one");
    // A terminal ends lines with both characters, and repeats what is typed.
    assert!(output.contains("/dev/pts/0\r\n") && output.contains("50 132\r\n"), "{output:?}");
    assert_eq!(output.matches("typed").count(), 2, "{output:?}");
    let error = pod.client.resize("one", 1, 1).await.unwrap_err();
    assert!(error.to_string().contains("no terminal"), "{error}");
    pod.close().await;
}

async fn reopen(pod: Pod) {
    const LINES: usize = 30_000;
    pod.run(pod.container("one", &format!("seq 1 {LINES}"))).await;
    let log = pod.log("one");
    let mut rotated = Vec::new();
    let mut number = 0;
    while pod.client.list().await.unwrap()[0].exit.is_none() || number < 5 {
        let old = log.with_extension(format!("log.{number}"));
        std::fs::rename(&log, &old).unwrap();
        pod.client.reopen_log("one").await.unwrap();
        rotated.push(old);
        number += 1;
    }
    assert_eq!(pod.client.wait("one").await.unwrap().exit_code, 0);
    rotated.push(log);
    let lines: Vec<String> = rotated.iter().flat_map(|file| read_lines(file)).collect();
    let expected: Vec<String> = (1..=LINES).map(|line| format!("stdout F {line}")).collect();
    assert!(lines == expected, "{} lines in {} files", lines.len(), rotated.len());
    pod.close().await;
}

async fn full_disk(pod: Pod) {
    // A file system of 1 MiB.
    let small = pod.files.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("tmpfs", &small, "tmpfs", flags, Some(c"size=1m")).unwrap();
    let log = small.join("one.log");
    let mut container =
        pod.container("one", "yes 'a line that fills the disk' | head -c 4000000; exit 6");
    container.log = Some(log.clone());
    pod.run(container).await;
    assert_eq!(pod.client.wait("one").await.unwrap().exit_code, 6);
    let lost = pod.client.list().await.unwrap()[0].lost_log_bytes;
    assert!(lost > 3_000_000, "{lost}");
    for line in read_lines(&log).iter().rev().skip(1) {
        assert_eq!(line, "stdout F a line that fills the disk");
    }
    pod.client.delete("one").await.unwrap();
    rustix::mount::unmount(&small, rustix::mount::UnmountFlags::DETACH).unwrap();
    pod.close().await;
}

const TOOLS: [&str; 4] =
    ["/usr/sbin/mkfs.ext4", "/usr/bin/mount", "/usr/bin/umount", "/usr/sbin/fsfreeze"];

/// Without a loop device and these tools there is no disk to hang.
fn can_freeze() -> bool {
    TOOLS.iter().chain(&["/dev/loop-control"]).all(|path| Path::new(path).exists())
}

fn tool(at: usize, arguments: &[&str]) -> bool {
    let mut command = Command::new(TOOLS[at]);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

/// A disk of its own that can be made to hang. It is thawed whatever happens to the test.
struct Disk(PathBuf);

impl Disk {
    fn make(pod: &Pod) -> Self {
        let (image, point) = (pod.files.path().join("image"), pod.files.path().join("disk"));
        File::create(&image).unwrap().set_len(8 << 20).unwrap();
        std::fs::create_dir(&point).unwrap();
        let (image, path) = (image.to_str().unwrap(), point.to_str().unwrap());
        assert!(tool(0, &["-q", image]) && tool(1, &["-o", "loop", image, path]));
        Self(point)
    }

    fn freeze(&self, option: &str) -> bool {
        tool(3, &[option, self.0.to_str().unwrap()])
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.freeze("-u");
        tool(2, &["-l", self.0.to_str().unwrap()]);
    }
}

async fn frozen_disk(pod: Pod) {
    let disk = Disk::make(&pod);
    let log = disk.0.join("one.log");
    let mut one = pod.container("one", "echo first; read x; echo second; exit 6").with_stdin(true);
    one.log = Some(log.clone());
    pod.run(one).await;
    pod.until("its first line is written", || read_lines(&log) == ["stdout F first"]).await;
    assert!(disk.freeze("-f"));
    let (reader, mut writer) = pipe();
    pod.client.attach("one", &stdin(reader)).await.unwrap();
    writer.write_all(b"go\n").unwrap();
    // Its end is told, and others go on meanwhile.
    assert_eq!(pod.run_to_end("two", "echo other; exit 7").await.exit_code, 7);
    assert_eq!(pod.output("two"), "other\n");
    assert_eq!(pod.client.wait("one").await.unwrap().exit_code, 6);
    // One that cannot be opened is held up alone.
    let mut three = pod.container("three", "exit 8");
    three.log = Some(disk.0.join("three.log"));
    let (created, other) = {
        let create = pod.client.create(three.request());
        tokio::pin!(create);
        let other = tokio::select! {
            created = &mut create => panic!("{created:?}"),
            exit = pod.run_to_end("four", "exit 9") => exit,
        };
        assert!(disk.freeze("-u"));
        (create.await, other)
    };
    created.unwrap();
    assert_eq!(other.exit_code, 9);
    pod.until("its last line is written", || {
        read_lines(&log) == ["stdout F first", "stdout F second"]
    })
    .await;
    assert_eq!(pod.client.list().await.unwrap()[0].lost_log_bytes, 0);
    pod.close().await;
    drop(disk);
}
