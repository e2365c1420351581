//! One run: from the start of the program to the first answer of the pod, and to its end.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout};
use tokio::time::{Instant, timeout};

use super::command::FirstCommand;

/// What the program prints before the address of the pod.
const RUNNING: &str = "hello: running at ";
const ANSWER: &str = "hello from hello\n";
const MAX_WAIT: Duration = Duration::from_secs(60);

/// When the pod answered, and what the program had printed when.
pub(super) struct FirstAnswer {
    pub(super) after: Duration,
    pub(super) lines: Vec<(Duration, String)>,
}

impl FirstAnswer {
    /// Starts the program, waits for the answer, and ends it by Ctrl-C.
    pub(super) async fn measure(first: &FirstCommand) -> Result<Self> {
        let begun = Instant::now();
        let mut program = first.command().stdout(Stdio::piped()).stdin(Stdio::null()).spawn()?;
        let stdout = program.stdout.take().context("its output is a pipe")?;
        let mut output = BufReader::new(stdout).lines();
        let answer = timeout(MAX_WAIT, Self::wait(begun, &mut output));
        let answer = answer.await.context("the pod did not answer in time")??;
        interrupt(&program)?;
        let rest = async {
            while output.next_line().await?.is_some() {}
            Ok::<_, anyhow::Error>(())
        };
        timeout(MAX_WAIT, rest).await.context("the program did not end in time")??;
        let status =
            timeout(MAX_WAIT, program.wait()).await.context("the program did not end")??;
        ensure!(status.success(), "the program ended with {status}");
        Ok(answer)
    }

    async fn wait(begun: Instant, output: &mut Lines<BufReader<ChildStdout>>) -> Result<Self> {
        let mut lines = Vec::new();
        loop {
            let line = output.next_line().await?;
            let line = line.with_context(|| format!("the program ended early: {lines:?}"))?;
            lines.push((begun.elapsed(), line.clone()));
            if let Some(address) = line.strip_prefix(RUNNING) {
                ask(address).await?;
                return Ok(Self { after: begun.elapsed(), lines });
            }
        }
    }
}

async fn ask(address: &str) -> Result<()> {
    let mut server = TcpStream::connect(address).await.context(address.to_owned())?;
    server.write_all(b"GET / HTTP/1.1\r\nHost: hello\r\n\r\n").await?;
    let mut answer = String::new();
    server.read_to_string(&mut answer).await?;
    ensure!(answer.ends_with(ANSWER), "the pod answered {answer:?}");
    Ok(())
}

fn interrupt(program: &Child) -> Result<()> {
    let pid = program.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    Ok(kill_process(pid.context("it runs")?, Signal::INT)?)
}
