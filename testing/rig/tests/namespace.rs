//! The namespaces of a run: what is visible inside, the exit code, and that no process survives.
//!
//! These tests run outside of any namespace, and start this same binary anew; an environment variable says what it then is to do.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use oarsman_host::{cgroups, mounts, processes};
use oarsman_rig::namespace;
use rustix::process::{Pid, Signal, kill_process};

const ROLE: &str = "RIG_TEST_ROLE";
/// How long the test's processes would sleep; no other process sleeps just that long.
const SLEEP: &str = "98765.4321";

fn main() -> ExitCode {
    match env::var(ROLE) {
        Ok(role) => namespace::run(|| run_role(&role)),
        Err(_) => run_tests(),
    }
}

fn run_tests() -> ExitCode {
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    let tests: [(&str, fn()); 8] = [
        ("the_exit_code_comes_out", exit_code_comes_out),
        ("inside_there_is_loopback_and_an_empty_run_directory", inside),
        ("what_is_still_running_dies_with_the_tests", orphaned_processes_are_killed),
        ("missing_tools_are_named_in_one_line", missing_tools),
        ("a_mount_stays_inside", mounts_stay_inside),
        ("a_control_group_left_outside_fails_the_run_and_is_removed", left_group),
        ("a_signal_is_passed_on", signal),
        ("when_the_outer_process_is_killed_all_dies_and_the_next_run_sweeps", killed),
    ];
    let trials = tests.map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.into()).exit_code()
}

/// What the started copy does inside of the namespaces.
fn run_role(role: &str) -> ExitCode {
    match role {
        "exit 7" => return ExitCode::from(7),
        "look" => print_surroundings(),
        "leave a process" => drop(sleep()),
        "leave a mount" => {
            let status = Command::new("mount").args(["-t", "tmpfs", "none", "/mnt"]).status();
            assert!(status.unwrap().success());
        }
        "leave a group" => {
            for hierarchy in hierarchies() {
                hierarchy.create(&group_of_run()).unwrap();
            }
        }
        "stay" => {
            let mut child = sleep();
            print_line(&run_directory().to_string_lossy());
            child.wait().unwrap();
        }
        other => panic!("no such role: {other}"),
    }
    ExitCode::SUCCESS
}

#[expect(clippy::print_stdout, reason = "the test that started us reads it")]
fn print_line(text: &str) {
    println!("{text}");
}

fn print_surroundings() {
    assert_ne!(std::process::id(), 1);
    assert_eq!(processes::find(std::process::id()).unwrap().parent, 1);
    assert_eq!(processes::list().unwrap().len(), 2);
    let links = fs::read_to_string("/proc/net/dev").unwrap();
    let links: Vec<&str> =
        links.lines().skip(2).map(|line| line.split_once(':').unwrap().0.trim()).collect();
    assert_eq!(links, ["lo"]);
    std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(fs::read_to_string("/proc/net/route").unwrap().lines().count(), 1);
    for directory in ["/run", "/var/lib", "/var/log"] {
        assert_eq!(fs::read_dir(directory).unwrap().count(), 0, "{directory}");
    }
    print_line("looked");
}

fn sleep() -> Child {
    Command::new("sleep").arg(SLEEP).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn hierarchies() -> Vec<cgroups::Hierarchy> {
    cgroups::hierarchies(&mounts::current().unwrap())
}

fn run_directory() -> PathBuf {
    env::var_os("OARSMAN_RIG_RUN").unwrap().into()
}

/// A cgroup with the prefix of the run.
fn group_of_run() -> PathBuf {
    let run = run_directory();
    let name = run.extension().unwrap().to_string_lossy().into_owned();
    format!("/oarsman-rig-{name}-left").into()
}

fn copy(role: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.env(ROLE, role).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a copy to its end: its exit code, and what it printed on stdout and stderr.
fn run(role: &str) -> (i32, String, String) {
    let output = copy(role).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn sleepers() -> Vec<u32> {
    let all = processes::list().unwrap().into_iter().map(|process| process.pid);
    all.filter(|pid| processes::arguments(*pid) == ["sleep", SLEEP]).collect()
}

fn exit_code_comes_out() {
    assert_eq!(run("exit 7").0, 7);
}

fn inside() {
    assert_eq!(run("look"), (0, "looked\n".to_owned(), String::new()));
}

fn orphaned_processes_are_killed() {
    assert_eq!(run("leave a process").0, 0);
    assert_eq!(sleepers(), [0; 0]);
}

fn missing_tools() {
    let output = copy("exit 7").env("PATH", "/nowhere").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    for named in ["go (golang-go", "ip (iproute2)", "nft (nftables)"] {
        assert!(complaint.contains(named), "{complaint}");
    }
}

fn mounts_stay_inside() {
    let before = mounts::current().unwrap();
    assert_eq!(run("leave a mount").0, 0);
    assert_eq!(mounts::current().unwrap(), before);
}

fn left_group() {
    let (code, _, complaint) = run("leave a group");
    assert_eq!(code, 1);
    assert!(complaint.contains("left behind outside of the namespaces: cgroup /oarsman-rig-"));
    let name = complaint.split("cgroup ").nth(1).unwrap().split(' ').next().unwrap();
    for hierarchy in hierarchies() {
        assert!(!hierarchy.directory(Path::new(name)).exists(), "{name}");
    }
}

/// Starts a copy that stays, waits until it is ready, and returns it with its run's directory.
fn start_staying() -> (Child, PathBuf) {
    let mut child = copy("stay").spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    // A program that has just been started has no arguments for a moment.
    eventually("the sleeper sleeps", || sleepers().len() == 1);
    (child, line.trim_end().into())
}

fn signal() {
    let (mut child, run) = start_staying();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert_eq!(sleepers(), [0; 0]);
    assert!(!run.exists());
}

fn killed() {
    let (mut child, killed_run) = start_staying();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(killed_run.exists());
    eventually("the sleeper dies", || sleepers().is_empty());
    assert_eq!(run("exit 7").0, 7);
    assert!(!killed_run.exists());
}

#[expect(clippy::disallowed_methods, reason = "the kernel tells nobody but its parent of a death")]
fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let in_time = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        is_so()
    });
    assert!(in_time, "{what}");
}
