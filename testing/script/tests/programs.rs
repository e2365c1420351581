//! Runs the two programs: the output of scripts, their exit codes, and their reaction to signals.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

fn script_command(script: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_script"));
    command.args(script).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(script: &[&str]) -> Output {
    script_command(script).output().unwrap()
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Starts the script and waits for its first line, by which time the steps before it are done.
fn start(script: &[&str]) -> Child {
    let mut child = script_command(script).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

#[test]
fn scripts_print_and_end_as_they_say() {
    let rows: &[(&[&str], &str, &str, i32)] = &[
        (&[], "", "", 0),
        (&["out:a", "err:b", "raw:c", "out:d"], "a\ncd\n", "b\n", 0),
        (&["out:a", "exit:3", "out:b"], "a\n", "", 3),
        (&["env:ACTOR_TEST"], "yes\n", "", 0),
        (&["pwd"], "/\n", "", 0),
        (&["fill:65"], &format!("{}\n.", ".".repeat(63)), "", 0),
        (&["alloc:8Mi", "sleep:1ms", "out:x"], "x\n", "", 0),
        (&["out:a", "dance"], "", "script: \"dance\" is not a step\n", 2),
    ];
    for (script, stdout, stderr, code) in rows {
        let output =
            script_command(script).env("ACTOR_TEST", "yes").current_dir("/").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), *stdout, "{script:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), *stderr, "{script:?}");
        assert_eq!(output.status.code(), Some(*code), "{script:?}");
    }
}

#[test]
fn files_are_written_read_and_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (a, b) = (path("a"), path("b"));
    let mut waiting = start(&["out:ready", &format!("wait-file:{b}"), "exit:7"]);
    assert!(waiting.try_wait().unwrap().is_none());
    let script = [format!("write:{a}=text"), format!("touch:{a}"), format!("cat:{a}")];
    let script: Vec<&str> = script.iter().map(String::as_str).collect();
    assert_eq!(String::from_utf8_lossy(&run(&script).stdout), "text");
    assert_eq!(run(&[&format!("touch:{b}")]).status.code(), Some(0));
    assert_eq!(end(&mut waiting).code(), Some(7));
}

#[test]
fn a_step_that_fails_ends_the_script_and_says_why() {
    let output = run(&["out:a", "cat:/no/such/file", "out:b"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/file"));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(run(&["env:NO_SUCH_VARIABLE_HERE"]).status.code(), Some(1));
}

#[test]
fn signals_end_a_script_unless_it_says_otherwise() {
    let rows: &[(&[&str], Signal, &str, i32)] = &[
        (&["out:ready", "forever"], Signal::TERM, "", 143),
        (&["out:ready", "sleep:1m"], Signal::INT, "", 130),
        (&["out:ready", "forever"], Signal::USR1, "", 138),
        (&["on-term:exit:5", "out:ready", "forever"], Signal::TERM, "", 5),
        (&["on-term:exit:5", "out:ready", "forever"], Signal::HUP, "", 129),
        (&["on-term:sleep:1ms,out:bye,exit:0", "out:ready", "forever"], Signal::TERM, "bye\n", 0),
        (&["on-term:cat:/none", "out:ready", "forever"], Signal::TERM, "", 1),
    ];
    for (script, signal, stdout, code) in rows {
        let mut child = start(script);
        send(&child, *signal);
        assert_eq!(end(&mut child).code(), Some(*code), "{script:?}");
        let mut rest = String::new();
        child.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, *stdout, "{script:?}");
    }
}

#[test]
fn a_reaction_that_does_not_exit_lets_the_script_go_on() {
    let mut child = start(&["on-term:out:heard", "out:ready", "forever"]);
    for _ in 0..2 {
        send(&child, Signal::TERM);
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "heard\n");
    }
    send(&child, Signal::KILL);
    assert_eq!(end(&mut child).code(), None);
}

#[test]
fn an_ignored_sigterm_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("go");
    let wait = format!("wait-file:{}", file.display());
    let mut child = start(&["on-term:ignore", "out:ready", &wait, "exit:9"]);
    send(&child, Signal::TERM);
    std::fs::write(&file, "").unwrap();
    assert_eq!(end(&mut child).code(), Some(9));
}

#[test]
fn a_child_is_started_and_the_script_goes_on() {
    let mut parent = start(&["child:1m", "out:ready", "forever"]);
    let pid = parent.id();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let arguments = arguments_of(children.trim());
    for pid in children.split_ascii_whitespace() {
        kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    }
    send(&parent, Signal::TERM);
    assert_eq!(end(&mut parent).code(), Some(143));
    assert_eq!(arguments, b"/proc/self/exe\0sleep:60000ms\0");
}

/// A program that has just been started has no arguments for a moment.
fn arguments_of(pid: &str) -> Vec<u8> {
    loop {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        if !arguments.is_empty() {
            return arguments;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_listener_answers_each_connection() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut child = start(&[&format!("listen:{}", free.port()), "out:ready", "forever"]);
    for _ in 0..2 {
        let mut connection = TcpStream::connect(free).unwrap();
        connection.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer:?}");
    }
    send(&child, Signal::TERM);
    assert_eq!(end(&mut child).code(), Some(143));
}

#[test]
fn pause_ends_cleanly_when_asked_to() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pause")).spawn().unwrap();
        // A signal before the handler is installed would kill it or be missed: wait until it sleeps in its read.
        until("it listens", || {
            assert!(child.try_wait().unwrap().is_none());
            listens_to(&child, signal).then_some(())
        });
        send(&child, signal);
        assert_eq!(end(&mut child).code(), Some(0));
    }
}

fn end(child: &mut Child) -> ExitStatus {
    until("it ends", || child.try_wait().unwrap())
}

/// Polls for as long as a busy machine may need.
#[expect(clippy::disallowed_methods, reason = "nobody tells of a death and gives up after a time")]
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(30) {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("not within half a minute: {what}");
}

/// Whether the child sleeps and has a handler for the signal. The kernel has a handler a moment before the child can act on it.
fn listens_to(child: &Child, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let caught = u64::from_str_radix(field("SigCgt:\t"), 16).unwrap();
    field("State:\t").starts_with('S') && caught & (1 << (signal.as_raw() - 1)) != 0
}
