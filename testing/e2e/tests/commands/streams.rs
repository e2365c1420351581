//! `oarsman exec`, `attach`, `cp` and `port-forward` on real containers, without a cluster.

use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use oarsman_e2e::agent_process::{AgentProcess, CommandOutput, wait_for_output};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{image, pod};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_e2e::terminal::Terminal;
use oarsman_rig::images;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::MAX_WAIT;
use super::shows::until_shown;

const CONNECTIONS: usize = 20;
const COPIED_BYTES: usize = 4 * 1024 * 1024;

pub(super) async fn commands_talk_to_containers_and_their_ports(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    let script =
        "mkdir /www; echo hello > /www/index.html; httpd -p 8080 -h /www; exec sleep 100000";
    let main = image("main", images::BUSYBOX).with("command", json!(["sh", "-c", script]));
    let web = pod("web").with("terminationGracePeriodSeconds", 1).container(main);
    agent.apply("web", &web)?;
    let cat = image("main", images::BUSYBOX)
        .with("command", json!(["cat"]))
        .with("stdin", json!(true))
        .with("stdinOnce", json!(true));
    agent.apply("reader", &pod("reader").with("restartPolicy", "Never").container(cat))?;
    until_shown(&agent, &[&["web-node", "Running"], &["reader-node", "Running"]]).await?;
    executes(&agent).await.context("exec")?;
    copies(cx, &agent).await.context("cp")?;
    forwards(&agent).await.context("port-forward")?;
    types(cx, &agent).await.context("exec -it")
}

async fn executes(agent: &AgentProcess) -> Result<()> {
    let command = ["exec", "-i", "web", "--", "sh", "-c", "cat; echo bad >&2; exit 3"];
    let ended = with_input(agent, &command, b"typed\n").await?;
    ensure!(ended.code == Some(3) && ended.out == "typed\n", "{ended:#?}");
    ensure!(ended.err == "bad\ncommand terminated with exit code 3\n", "{ended:#?}");
    let missing = agent.command(&["exec", "web", "--", "no-such-program"]).await?;
    ensure!(missing.code != Some(0) && missing.err.contains("no-such-program"), "{missing:#?}");
    let attached = with_input(agent, &["attach", "-i", "reader"], b"ahoy\n").await?;
    ensure!(attached.out == "ahoy\n", "{attached:#?}");
    until_shown(agent, &[&["web-node", "Running"], &["reader-node", "Completed"]]).await?;
    let refused = agent.command(&["attach", "reader"]).await?.failure()?;
    ensure!(refused.contains("container not found"), "{refused}");
    Ok(())
}

async fn with_input(agent: &AgentProcess, words: &[&str], input: &[u8]) -> Result<CommandOutput> {
    let mut child = agent.begin_with(words, Stdio::piped())?;
    let mut stdin = child.stdin.take().context("it has an input")?;
    stdin.write_all(input).await?;
    drop(stdin);
    timeout(MAX_WAIT, wait_for_output(child)).await.with_context(|| words.join(" "))?
}

async fn copies(cx: &ScenarioContext, agent: &AgentProcess) -> Result<()> {
    let (there, back) = (cx.scratch().join("there"), cx.scratch().join("back"));
    let bytes: Vec<u8> =
        (0..COPIED_BYTES).map(|index| (index * index / 7).to_le_bytes()[0]).collect();
    fs::create_dir_all(&there)?;
    fs::write(there.join("file"), &bytes)?;
    let (from, to) = (there.display().to_string(), back.display().to_string());
    agent.command(&["cp", &from, "web:/tmp"]).await?.success()?;
    agent.command(&["cp", "web:/tmp/there", &to]).await?.success()?;
    ensure!(fs::read(back.join("file"))? == bytes, "the copy came back changed");
    let missing = agent.command(&["cp", "web:/no/such", &to]).await?.failure()?;
    ensure!(missing.contains("tar in the container failed"), "{missing}");
    Ok(())
}

async fn forwards(agent: &AgentProcess) -> Result<()> {
    let mut child = agent.begin(&["port-forward", "web", ":8080"])?;
    let mut lines = BufReader::new(child.stdout.take().context("it has an output")?).lines();
    let line = timeout(MAX_WAIT, lines.next_line()).await??.context("it says where it listens")?;
    let address = line.split_whitespace().nth(2).context("Forwarding from ADDRESS")?;
    let address: SocketAddr = address.parse().with_context(|| line.clone())?;
    let answers = try_join_all((0..CONNECTIONS).map(|_| ask(address))).await?;
    ensure!(answers.iter().all(|answer| answer.ends_with("hello\n")), "{answers:?}");
    child.kill().await?;
    Ok(())
}

/// Half-closes the connection after the question: the answer still comes.
async fn ask(address: SocketAddr) -> Result<String> {
    let asked = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
        stream.shutdown().await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    timeout(MAX_WAIT, asked).await.context("no answer")?
}

async fn types(cx: &ScenarioContext, agent: &AgentProcess) -> Result<()> {
    let directory = cx.scratch();
    let terminal = Terminal::open(&directory.join("tmux"), &directory, &[]).await?;
    let (program, root) = (agent.program().display(), agent.root().display());
    terminal.type_line("0", &format!("{program} exec -it web --root-dir {root} -- sh"))?;
    terminal.see("0", "# ", MAX_WAIT).await?;
    terminal.type_line("0", "stty size")?;
    terminal.see("0", "50 160", MAX_WAIT).await?;
    terminal.resize("0", 100, 40)?;
    let resized = async || {
        terminal.type_line("0", "stty size")?;
        terminal.screen("0")
    };
    eventually(MAX_WAIT, "the new size", resized, |screen| screen.contains("40 100")).await?;
    terminal.type_line("0", "exit 7")?;
    terminal.see("0", "exit code 7", MAX_WAIT).await?;
    let code = terminal.exit_code("0", MAX_WAIT).await?;
    ensure!(code == 7, "the command ended with {code}");
    Ok(())
}
