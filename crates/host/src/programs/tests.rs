//! Real programs that behave and misbehave.

use std::fs;
use std::path::Path;

use tokio::time::Instant;

use super::*;

const LIMITS: ProgramLimits =
    ProgramLimits { deadline: Duration::from_secs(60), output: 1 << 20, errors: 16 };

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

async fn run_shell(script: &str) -> Result<ProgramOutput, ProgramError> {
    run(&mut shell(script), b"the question", &LIMITS).await
}

fn is_gone(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat"));
    stat.map_or(true, |stat| stat.contains(") Z "))
}

async fn until_gone(pid: &str) {
    let gone = async {
        while !is_gone(pid) {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(60), gone).await.unwrap();
}

#[tokio::test]
async fn a_program_has_input_output_and_an_exit_code() {
    let done = run_shell("cat; echo trouble, and more of it >&2; exit 3").await.unwrap();
    assert_eq!(done.status.code(), Some(3));
    assert_eq!(done.output, b"the question");
    assert_eq!(done.errors, b"trouble, and mor");
    let large = vec![b'x'; 1 << 20];
    let done = run(&mut shell("cat"), &large, &LIMITS).await.unwrap();
    assert_eq!(done.output, large);
    let missing = run(&mut Command::new("/nowhere/at-all"), b"", &LIMITS).await.unwrap_err();
    assert!(matches!(missing, ProgramError::Start(_)), "{missing}");
}

#[tokio::test]
async fn a_program_that_writes_without_end_is_killed() {
    let error = run_shell("exec yes").await.unwrap_err();
    assert_eq!(error.to_string(), "its answer is longer than 1048576 bytes");
    let done = run_shell("head -c 30000000 /dev/zero >&2; echo answer").await.unwrap();
    assert_eq!(done.output, b"answer\n");
}

#[tokio::test]
async fn a_program_that_is_late_ends_with_all_that_it_has_started() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("pid");
    let script = format!("sleep 600 & echo $! > {}; wait", file.display());
    let limits = ProgramLimits { deadline: Duration::from_millis(500), ..LIMITS };
    let error = run(&mut shell(&script), b"", &limits).await.unwrap_err();
    assert_eq!(error.to_string(), "no answer within 500ms");
    until_gone(&fs::read_to_string(&file).unwrap()).await;
}

#[tokio::test]
async fn a_caller_that_waits_no_more_ends_it_too() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("pid");
    let script = format!("sleep 600 & echo $! > {0}.new; mv {0}.new {0}; wait", file.display());
    let mut command = shell(&script);
    let started = async {
        while !file.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        done = run(&mut command, b"", &LIMITS) => panic!("{done:?}"),
        () = started => {}
    }
    until_gone(&fs::read_to_string(&file).unwrap()).await;
}

#[tokio::test]
async fn a_process_that_keeps_the_output_open_is_not_waited_for() {
    let begun = Instant::now();
    let done = run_shell("sleep 600 & echo $!").await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert!(done.status.success());
    let pid = String::from_utf8(done.output).unwrap();
    // It belongs to the program that has left it, and is none of ours to end.
    assert!(!is_gone(&pid), "{pid}");
    let pid = pid.trim().parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
