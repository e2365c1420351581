//! Sessions, spoken to by the relays that the server uses, on real containers.

mod client;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use libtest_mimic::Trial;
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::{
    AttachRequest, ContainerConfig, ContainerMetadata, CreateContainerRequest, ExecRequest,
    ExecSyncRequest, ImageSpec, PortForwardRequest,
};
use oarsman_rig::images;
use oarsman_runtime::EmbeddedRuntime;
use oarsman_streaming::relay::{self, ForwardRelay};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::runtime::Handle;
use tokio::time::sleep;

use crate::harness::Node;
use crate::reconnect::{remove, run_pod, trial, until_exited};
use client::{LONGEST_IDLE, StreamsClient, opened};

const FAMILY: &str = "streaming";
const QUESTION: &str = "GET / HTTP/1.0\r\n\r\n";
/// Connections to one port at once: busybox's server resets what finds no place in its queue of nine.
const CONNECTIONS: usize = 8;
const ROUNDS: usize = 5;

pub(crate) fn trials(node: &Node, tokio: &Handle) -> Vec<Trial> {
    vec![
        trial(
            node,
            tokio,
            FAMILY,
            "a_command_reads_and_writes_its_streams_and_its_end_is_told",
            commands,
        ),
        trial(node, tokio, FAMILY, "a_command_that_cannot_be_begun_is_told", missing),
        trial(node, tokio, FAMILY, "large_outputs_of_commands_are_whole", large),
        trial(node, tokio, FAMILY, "a_command_has_a_terminal_with_a_size", terminal),
        trial(node, tokio, FAMILY, "a_client_that_goes_away_kills_its_command", gone),
        trial(node, tokio, FAMILY, "clients_attach_to_a_container", attach),
        trial(
            node,
            tokio,
            FAMILY,
            "clients_attach_to_a_container_with_a_terminal",
            attach_terminal,
        ),
        trial(node, tokio, FAMILY, "ports_of_a_pod_are_forwarded_to", forward),
        trial(node, tokio, FAMILY, "a_refused_port_is_told", refused),
        trial(node, tokio, FAMILY, "requests_that_make_no_sense_are_refused", invalid),
    ]
}

/// A pod with one container that executes a shell script.
struct Streamed {
    node: Node,
    runtime: EmbeddedRuntime,
    pod: String,
    id: String,
}

impl Streamed {
    async fn new(node: Node, name: &'static str, script: &str) -> Result<Self> {
        Self::with(node, name, script, |_| {}).await
    }

    async fn with(
        node: Node,
        name: &'static str,
        script: &str,
        change: impl FnOnce(&mut ContainerConfig),
    ) -> Result<Self> {
        let runtime = node.with_images(name).await?;
        let (pod, _) = run_pod(&runtime).await?;
        let mut config = ContainerConfig {
            metadata: Some(ContainerMetadata { name: "main".to_owned(), attempt: 0 }),
            image: Some(ImageSpec { image: images::BUSYBOX.to_owned(), ..ImageSpec::default() }),
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            ..ContainerConfig::default()
        };
        change(&mut config);
        let pod_sandbox_id = pod.clone();
        let request =
            CreateContainerRequest { pod_sandbox_id, config: Some(config), sandbox_config: None };
        let id = runtime.create_container(request).await?;
        runtime.start_container(&id).await?;
        Ok(Self { node, runtime, pod, id })
    }

    async fn exec(&self, script: &str, tty: bool) -> Result<StreamsClient> {
        self.exec_words(&["sh", "-c", script], tty).await
    }

    async fn exec_words(&self, words: &[&str], tty: bool) -> Result<StreamsClient> {
        let request = ExecRequest {
            container_id: self.id.clone(),
            cmd: words.iter().map(|word| (*word).to_owned()).collect(),
            tty,
            stdin: true,
            stdout: true,
            stderr: !tty,
        };
        StreamsClient::new(&self.runtime.exec(request).await?, tty)
    }

    async fn attach(&self, tty: bool) -> Result<StreamsClient> {
        let request = AttachRequest {
            container_id: self.id.clone(),
            stdin: true,
            tty,
            stdout: true,
            stderr: !tty,
        };
        StreamsClient::new(&self.runtime.attach(request).await?, tty)
    }

    /// What a command in the container says, past any session.
    async fn said(&self, script: &str) -> Result<String> {
        let cmd = ["sh", "-c", script].map(str::to_owned).to_vec();
        let request = ExecSyncRequest { container_id: self.id.clone(), cmd, timeout: 20 };
        Ok(String::from_utf8(self.runtime.exec_sync(request).await?.stdout)?)
    }

    /// Until a command says so; the deadline is the trial's.
    async fn until_said(&self, script: &str, wanted: &str) -> Result<()> {
        while self.said(script).await?.trim() != wanted {
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    async fn close(self) -> Result<()> {
        remove(&self.node, self.runtime, &self.pod).await
    }
}

async fn commands(node: Node, name: &'static str) -> Result<()> {
    let it = Streamed::new(node, name, "sleep 1000").await?;
    let mut client = it.exec("cat; echo bad >&2; exit 3", false).await?;
    client.input("hello\n").await?;
    client.end_input().await?;
    let ended = client.rest().await?;
    ensure!((ended.stdout.as_str(), ended.stderr.as_str()) == ("hello\n", "bad\n"), "{ended:?}");
    ensure!(ended.status["details"]["causes"][0]["message"] == "3", "{ended:?}");
    let ended = it.exec("exit 0", false).await?.rest().await?;
    ensure!(ended.status["status"] == "Success", "{ended:?}");
    let ended = it.exec("kill -9 $$", false).await?.rest().await?;
    ensure!(ended.status["details"]["causes"][0]["message"] == "137", "{ended:?}");
    // What is left behind holds the outputs, and is not waited for.
    let ended = it.exec("sleep 1000 & echo begun", false).await?.rest().await?;
    ensure!(ended.stdout == "begun\n" && ended.status["status"] == "Success", "{ended:?}");
    // A container that ends takes its commands with it.
    let client = it.exec("echo begun; sleep 1000", false).await?;
    it.runtime.stop_container(&it.id, Duration::ZERO).await?;
    let ended = client.rest().await?;
    ensure!(ended.status["status"] == "Failure", "{ended:?}");
    it.close().await
}

async fn missing(node: Node, name: &'static str) -> Result<()> {
    let it = Streamed::new(node, name, "sleep 1000").await?;
    let rows = [
        ("no-such", "exec: \"no-such\": executable file not found in $PATH"),
        ("/no/such", "exec: \"/no/such\": stat /no/such: no such file or directory"),
        ("/etc/passwd", "exec: \"/etc/passwd\": permission denied"),
    ];
    for (program, words) in rows {
        let ended = it.exec_words(&[program], false).await?.rest().await?;
        let message = ended.status["message"].as_str().unwrap_or_default();
        let begin = "Internal error occurred: error executing command in container: failed to exec in container: ";
        ensure!(message.starts_with(begin) && message.contains(words), "{ended:?}");
        ensure!(ended.status["reason"] == "InternalError", "{ended:?}");
    }
    it.close().await
}

async fn large(node: Node, name: &'static str) -> Result<()> {
    const BYTES: usize = 8 << 20;
    let it = Streamed::new(node, name, "sleep 1000").await?;
    let mut client = it.exec("tee /dev/stderr | cat", false).await?;
    let text = "0123456789abcde\n".repeat(BYTES / 16);
    client.input_while_reading(text.as_bytes()).await?;
    client.end_input().await?;
    let ended = client.rest().await?;
    ensure!(ended.stdout == text, "{} bytes of output", ended.stdout.len());
    ensure!(ended.stderr == text, "{} bytes of errors", ended.stderr.len());
    it.close().await
}

async fn terminal(node: Node, name: &'static str) -> Result<()> {
    let it = Streamed::new(node, name, "sleep 1000").await?;
    let mut client = it.exec("tty; read line; echo got $line; stty size; exit 5", true).await?;
    client.resize(132, 50).await?;
    client.until_output("/dev/pts/").await?;
    client.input("hello\n").await?;
    let ended = client.rest().await?;
    ensure!(ended.stdout.contains("got hello\r\n50 132\r\n"), "{ended:?}");
    ensure!(ended.status["details"]["causes"][0]["message"] == "5", "{ended:?}");
    it.close().await
}

async fn gone(node: Node, name: &'static str) -> Result<()> {
    let it = Streamed::new(node, name, "sleep 1000").await?;
    let count = "ps | grep -c 'sleep 123[4]' || true";
    for tty in [false, true] {
        let script = "trap '' HUP; echo begun; setsid sleep 1234 & sleep 1234";
        let mut client = it.exec(script, tty).await?;
        client.until_output("begun").await?;
        it.until_said(count, "2").await?;
        drop(client);
        it.until_said(count, "0").await?;
    }
    // Also while nothing reads what it sends.
    let mut client = it.exec("sleep 1234", false).await?;
    client.flood().await?;
    it.until_said(count, "1").await?;
    drop(client);
    it.until_said(count, "0").await?;
    it.close().await
}

async fn attach(node: Node, name: &'static str) -> Result<()> {
    let script = "while read line; do echo got $line; echo bad $line >&2; done; echo end; sleep 1";
    let once = |config: &mut ContainerConfig| (config.stdin, config.stdin_once) = (true, true);
    let it = Streamed::with(node.clone(), name, script, once).await?;
    let (mut first, mut second) = (it.attach(false).await?, it.attach(false).await?);
    first.until_ready().await?;
    second.input("two\n").await?;
    first.until_output("got two\n").await?;
    second.until_output("got two\n").await?;
    first.input("one\n").await?;
    second.until_output("got one\n").await?;
    // One that goes away disturbs neither the other nor the container; with stdinOnce its input is the container's.
    second.end_input().await?;
    for client in [first, second] {
        let ended = client.rest().await?;
        ensure!(ended.stdout.ends_with("got one\nend\n"), "{ended:?}");
        ensure!(ended.stderr == "bad two\nbad one\n", "{ended:?}");
        ensure!(ended.status["status"] == "Success", "{ended:?}");
    }
    ensure!(until_exited(&it.runtime, &it.id).await?.exit_code == 0);
    it.close().await?;

    let open = |config: &mut ContainerConfig| config.stdin = true;
    let it = Streamed::with(node, "attach_again", script, open).await?;
    for word in ["one", "two"] {
        let mut client = it.attach(false).await?;
        client.input(&format!("{word}\n")).await?;
        client.until_output(&format!("got {word}\n")).await?;
        client.end_input().await?;
        // The container goes on, and the client is let go.
        ensure!(client.rest().await?.status["status"] == "Success");
    }
    it.close().await
}

async fn attach_terminal(node: Node, name: &'static str) -> Result<()> {
    let script = "while read line; do stty size; echo got $line; done";
    let tty = |config: &mut ContainerConfig| (config.stdin, config.tty) = (true, true);
    let it = Streamed::with(node, name, script, tty).await?;
    let mut client = it.attach(true).await?;
    client.resize(100, 40).await?;
    client.until_ready().await?;
    client.input("word\n").await?;
    client.until_output("40 100\r\ngot word\r\n").await?;
    it.runtime.stop_container(&it.id, Duration::ZERO).await?;
    ensure!(client.rest().await?.status["status"] == "Success");
    let request = AttachRequest { container_id: it.id.clone(), stdout: true, ..Default::default() };
    let refused = it.runtime.attach(request).await.unwrap_err();
    ensure!(refused.to_string().contains("not running"), "{refused}");
    it.close().await
}

/// What a connection to a port answers, and why not otherwise.
async fn ask(it: &Streamed, port: u16, question: &str) -> Result<(String, Option<String>)> {
    let request =
        PortForwardRequest { pod_sandbox_id: it.pod.clone(), port: vec![i32::from(port)] };
    let stream = opened(&it.runtime.port_forward(request).await?)?;
    let (mut client, server) = duplex(4096);
    let (forward, failure) = ForwardRelay::new(port);
    let relayed = tokio::spawn(relay::run(server, stream, Box::new(forward), LONGEST_IDLE));
    client.write_all(question.as_bytes()).await?;
    client.shutdown().await?;
    let mut said = String::new();
    client.read_to_string(&mut said).await?;
    relayed.await?.outcome?;
    Ok((said, failure.get().cloned()))
}

async fn forward(node: Node, name: &'static str) -> Result<()> {
    // One server on IPv4, and one on IPv6 alone; both answer after the end of the question.
    let script = "mkdir /four /six; echo four > /four/index.html; echo six > /six/index.html; \
                  httpd -p 127.0.0.1:8080 -h /four; httpd -p [::1]:8081 -h /six; exec sleep 1000";
    let it = Streamed::new(node, name, script).await?;
    for (port, family) in [(8080, "four\n"), (8081, "six\n")] {
        loop {
            let (said, failure) = ask(&it, port, QUESTION).await?;
            if said.ends_with(family) {
                break;
            }
            // Until the program listens.
            ensure!(failure.is_some_and(|why| why.contains("refused")), "{said:?}");
            sleep(Duration::from_millis(50)).await;
        }
    }
    for _ in 0..ROUNDS {
        let answers = try_join_all((0..CONNECTIONS).map(|_| ask(&it, 8080, QUESTION))).await?;
        ensure!(answers.iter().all(|(said, _)| said.ends_with("four\n")), "{answers:?}");
    }
    it.close().await
}

async fn refused(node: Node, name: &'static str) -> Result<()> {
    let it = Streamed::new(node, name, "sleep 1000").await?;
    let (said, why) = ask(&it, 9, "hello").await?;
    let why = why.context("a reason")?;
    let begin =
        format!("error forwarding port 9 to pod {}: failed to connect to 127.0.0.1:9", it.pod);
    ensure!(said.is_empty() && why.starts_with(&begin) && why.contains("[::1]:9"), "{why}");
    it.runtime.stop_pod_sandbox(&it.pod).await?;
    let request = PortForwardRequest { pod_sandbox_id: it.pod.clone(), port: Vec::new() };
    let refused = it.runtime.port_forward(request).await.unwrap_err();
    ensure!(refused.to_string().contains("not ready"), "{refused}");
    it.close().await
}

async fn invalid(node: Node, name: &'static str) -> Result<()> {
    let it = Streamed::new(node, name, "sleep 1000").await?;
    let request = ExecRequest {
        container_id: it.id.clone(),
        cmd: vec!["true".to_owned()],
        ..ExecRequest::default()
    };
    let both = ExecRequest { tty: true, stdout: true, stderr: true, ..request.clone() };
    let other = ExecRequest { container_id: "x".to_owned(), stdout: true, ..request.clone() };
    for (request, words) in [
        (request, "one of stdin, stdout, or stderr must be set"),
        (both, "tty and stderr cannot both be true"),
        (other, "does not exist"),
    ] {
        let refused = it.runtime.exec(request).await.unwrap_err();
        ensure!(refused.to_string().contains(words), "{refused}");
    }
    // Nothing is begun, and nothing is kept, for a session that is never opened.
    let cmd = ["sleep", "1234"].map(str::to_owned).to_vec();
    let request =
        ExecRequest { container_id: it.id.clone(), cmd, stdout: true, ..ExecRequest::default() };
    let session = it.runtime.exec(request).await?;
    ensure!(it.said("ps | grep -c 'sleep 123[4]' || true").await?.trim() == "0");
    drop(session);
    it.close().await
}
