//! kubectl talks to containers: v1.36 by WebSocket, and Debian's v1.20 by SPDY.

use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use oarsman_e2e::cluster::{MAX_WAIT, TestCluster};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{PodManifest, image, pod};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_e2e::terminal::Terminal;
use oarsman_rig::{Kubectl, images};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Connections through one port-forward at once.
const CONNECTIONS: usize = 50;
const COPIED_BYTES: usize = 100 * 1024 * 1024;
const SHORT: Duration = Duration::from_secs(30);

pub(super) async fn kubectl_executes_attaches_copies_and_forwards_by_websocket(
    cx: &ScenarioContext,
) -> Result<()> {
    let cluster = TestCluster::start(cx).await?;
    let kubectl = cluster.plane.admin().clone();
    talk(cx, &cluster, &kubectl).await?;
    debugs(&kubectl).await.context("debug")?;
    let log = fs::read_to_string(cluster.agent.log())?;
    ensure!(log.contains("v5.channel.k8s.io"), "no exec by v5.channel.k8s.io");
    ensure!(log.contains("SPDY/3.1+portforward.k8s.io"), "no tunnelled port-forward");
    Ok(())
}

pub(super) async fn kubectl_executes_attaches_copies_and_forwards_by_spdy(
    cx: &ScenarioContext,
) -> Result<()> {
    let debian = cx.rig().parts().debian.as_ref();
    let debian = debian.context("kubectl 1.20 comes from Debian's packages")?;
    let cluster = TestCluster::start(cx).await?;
    let kubectl = cluster.plane.admin().clone().with_program(&debian.kubectl);
    talk(cx, &cluster, &kubectl).await?;
    let log = fs::read_to_string(cluster.agent.log())?;
    ensure!(log.contains("SPDY/3.1") && !log.contains("channel.k8s.io"), "SPDY alone was used");
    ensure!(!log.contains("SPDY/3.1+portforward.k8s.io"), "nothing was tunnelled");
    Ok(())
}

async fn talk(cx: &ScenarioContext, cluster: &TestCluster, kubectl: &Kubectl) -> Result<()> {
    cluster.run(&web()).await?;
    cluster.run(&reader()).await?;
    cluster.wait_until_ready(2).await?;
    executes(kubectl).await.context("exec")?;
    attaches(kubectl).await.context("attach")?;
    copies(cx, kubectl).await.context("cp")?;
    forwards(kubectl).await.context("port-forward")?;
    follows(kubectl).await.context("logs -f")?;
    types(cx, kubectl).await.context("exec -it")
}

fn web() -> PodManifest {
    let script =
        "mkdir /www; echo hello > /www/index.html; httpd -p 8080 -h /www; exec sleep 100000";
    let main = image("main", images::BUSYBOX).with("command", json!(["sh", "-c", script]));
    pod("web").with("terminationGracePeriodSeconds", 1).container(main)
}

/// Writes what it reads, and ends with its input.
fn reader() -> PodManifest {
    let main = image("main", images::BUSYBOX)
        .with("command", json!(["cat"]))
        .with("stdin", json!(true))
        .with("stdinOnce", json!(true));
    pod("reader").with("restartPolicy", "Never").container(main)
}

/// Input, both outputs and the exit code.
async fn executes(kubectl: &Kubectl) -> Result<()> {
    let command = "cat; echo failed >&2; exit 3";
    let arguments = ["exec", "-i", "web", "--", "sh", "-c", command];
    let ended = output(kubectl, &arguments, b"typed\n").await?;
    let (out, err) = (text(&ended.stdout), text(&ended.stderr));
    ensure!(ended.status.code() == Some(3), "{:?}: {out:?} {err:?}", ended.status);
    ensure!(out == "typed\n" && err.contains("failed"), "{out:?} {err:?}");
    let quiet = output(kubectl, &["exec", "web", "--", "true"], b"").await?;
    ensure!(quiet.status.success() && quiet.stdout.is_empty(), "{quiet:?}");
    let missing = output(kubectl, &["exec", "web", "-c", "main", "--", "no-such"], b"").await?;
    ensure!(!missing.status.success(), "{missing:?}");
    Ok(())
}

async fn attaches(kubectl: &Kubectl) -> Result<()> {
    let ended = output(kubectl, &["attach", "-i", "reader"], b"ahoy\n").await?;
    ensure!(text(&ended.stdout).contains("ahoy"), "{ended:?}");
    Ok(())
}

async fn copies(cx: &ScenarioContext, kubectl: &Kubectl) -> Result<()> {
    let (there, back) = (cx.scratch().join("there"), cx.scratch().join("back"));
    fs::create_dir_all(cx.scratch())?;
    // Bytes without a pattern that a codec could hide behind.
    let bytes: Vec<u8> = (0u64..)
        .map(|number| (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
        .take(COPIED_BYTES)
        .collect();
    fs::write(&there, &bytes)?;
    let (there, back) = (there.display().to_string(), back.display().to_string());
    kubectl.run_for(MAX_WAIT, &["cp", &there, "web:/tmp/copied"], None).await?;
    let size = kubectl.run(&["exec", "web", "--", "wc", "-c", "/tmp/copied"]).await?;
    ensure!(size.starts_with(&COPIED_BYTES.to_string()), "{size}");
    kubectl.run_for(MAX_WAIT, &["cp", "web:/tmp/copied", &back], None).await?;
    ensure!(fs::read(&back)? == bytes, "the copy came back changed");
    Ok(())
}

async fn forwards(kubectl: &Kubectl) -> Result<()> {
    let mut command = kubectl.command(&["port-forward", "pod/web", ":8080"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("it has an output")?).lines();
    let line = timeout(SHORT, lines.next_line()).await??.context("it says where it listens")?;
    let address = line.split_whitespace().nth(2).context("Forwarding from ADDRESS")?;
    let address: SocketAddr = address.parse().with_context(|| line.clone())?;
    // All of them are open before the first one asks.
    let streams = try_join_all((0..CONNECTIONS).map(|_| TcpStream::connect(address))).await?;
    let answers = try_join_all(streams.into_iter().map(ask)).await?;
    ensure!(answers.iter().all(|answer| answer.ends_with("hello\n")), "{answers:?}");
    child.kill().await?;
    Ok(())
}

async fn ask(mut stream: TcpStream) -> Result<String> {
    let asked = async {
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    timeout(SHORT, asked).await.context("no answer")?
}

/// A line that is written while the log is followed is seen.
async fn follows(kubectl: &Kubectl) -> Result<()> {
    let mut child = kubectl.command(&["logs", "-f", "web"]).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("it has an output")?).lines();
    kubectl.run(&["exec", "web", "--", "sh", "-c", "echo logged > /proc/1/fd/1"]).await?;
    let line = timeout(SHORT, lines.next_line()).await??;
    ensure!(line.as_deref() == Some("logged"), "{line:?}");
    child.kill().await?;
    Ok(())
}

/// An ephemeral container is made and attached to. With the end of its input an attached client gets no more output.
async fn debugs(kubectl: &Kubectl) -> Result<()> {
    let image = format!("--image={}", images::BUSYBOX);
    let arguments = ["debug", "-i", "web", &image, "--image-pull-policy=IfNotPresent", "--", "cat"];
    let mut command = kubectl.command(&arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().context("it has an input")?;
    stdin.write_all(b"ahoy\n").await?;
    let mut lines = BufReader::new(child.stdout.take().context("it has an output")?).lines();
    while timeout(SHORT, lines.next_line()).await??.context("it ends early")? != "ahoy" {}
    child.kill().await?;
    Ok(())
}

/// A terminal is typed into; its size is that of the window, also after that has changed.
async fn types(cx: &ScenarioContext, kubectl: &Kubectl) -> Result<()> {
    let directory = cx.scratch();
    fs::create_dir_all(&directory)?;
    let terminal =
        Terminal::open(&directory.join("tmux"), &directory, &kubectl.variables()).await?;
    terminal.type_line("0", &format!("{} exec -it web -- sh", kubectl.program().display()))?;
    terminal.see("0", "# ", SHORT).await?;
    terminal.type_line("0", "stty size; tty")?;
    terminal.see("0", "50 160", SHORT).await?;
    terminal.resize("0", 100, 40)?;
    let resized = async || {
        terminal.type_line("0", "stty size")?;
        terminal.screen("0")
    };
    eventually(SHORT, "the new size", resized, |screen| screen.contains("40 100")).await?;
    terminal.type_line("0", "exit 7")?;
    terminal.see("0", "exit code 7", SHORT).await?;
    let code = terminal.exit_code("0", SHORT).await?;
    ensure!(code == 7, "kubectl ended with {code}");
    Ok(())
}

async fn output(
    kubectl: &Kubectl,
    arguments: &[&str],
    input: &[u8],
) -> Result<std::process::Output> {
    let mut command = kubectl.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take().context("it has an input")?;
    stdin.write_all(input).await?;
    drop(stdin);
    Ok(timeout(SHORT, child.wait_with_output()).await.with_context(|| arguments.join(" "))??)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
