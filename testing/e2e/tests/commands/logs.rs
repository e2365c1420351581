//! `oarsman logs` on real containers.

use anyhow::{Result, ensure};
use oarsman_e2e::agent_process::{AgentProcess, wait_for_output};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::ChildStdout;
use tokio::time::timeout;

use super::MAX_WAIT;
use super::shows::until_shown;

async fn logs(agent: &AgentProcess, arguments: &[&str]) -> Result<(String, String)> {
    let said = agent.command(&[&["logs"], arguments].concat()).await?;
    ensure!(said.code == Some(0), "{said:#?}");
    Ok((said.out, said.err))
}

pub(super) async fn logs_are_shown_in_parts(cx: &ScenarioContext) -> Result<()> {
    let agent = cx.agent()?;
    let main = script_container("main", &["out:one", "out:two", "out:three", "exit:1"]);
    // The order of two streams is not defined: each stream has a container of its own.
    let side = script_container("side", &["out:beside", "forever"]);
    let loud = script_container("loud", &["err:bad", "forever"]);
    agent.apply("web", &pod("web").container(main).container(side).container(loud))?;
    until_shown(&agent, &[&["web-node", "CrashLoopBackOff"]]).await?;
    let (out, err) = logs(&agent, &["web", "-c", "main"]).await?;
    ensure!(out == "one\ntwo\nthree\n" && err.is_empty(), "{out} {err}");
    let (out, err) = logs(&agent, &["web", "-c", "loud"]).await?;
    ensure!(out.is_empty() && err == "bad\n", "{out} {err}");
    let (out, err) = logs(&agent, &["web"]).await?;
    ensure!(
        out == "one\ntwo\nthree\n" && err.contains("\"main\" out of: main, side, loud"),
        "{err}"
    );
    let (out, _) = logs(&agent, &["web", "-c", "main", "--tail", "2"]).await?;
    ensure!(out == "two\nthree\n", "{out}");
    let (out, _) = logs(&agent, &["web", "-c", "main", "--previous"]).await?;
    ensure!(out == "one\ntwo\nthree\n", "{out}");
    let (out, _) = logs(&agent, &["web", "--all-containers", "--prefix", "--tail=1"]).await?;
    ensure!(out == "[main] three\n[side] beside\n", "{out}");
    let (out, _) = logs(&agent, &["web", "-c", "side", "--timestamps"]).await?;
    ensure!(out.starts_with("20") && out.ends_with(" beside\n"), "{out}");
    let (out, _) = logs(&agent, &["web", "-c", "side", "--since", "1ms"]).await?;
    ensure!(out.is_empty(), "{out}");
    Ok(())
}

async fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> Result<Option<String>> {
    Ok(timeout(MAX_WAIT, lines.next_line()).await??)
}

pub(super) async fn logs_are_followed_over_a_restart_to_the_end(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    let scratch = cx.scratch().display().to_string();
    let script = ["out:begin", "wait-file:/s/go", "out:end", "exit:1"];
    let web = pod("web").container(script_container("main", &script).mount("s", "/s"));
    agent.apply("web", &web.with("terminationGracePeriodSeconds", 1).host_path("s", &scratch))?;
    until_shown(&agent, &[&["web-node", "Running"]]).await?;
    let mut follows = agent.begin(&["logs", "-f", "web"])?;
    let Some(out) = follows.stdout.take() else { anyhow::bail!("nothing to read from") };
    let mut lines = BufReader::new(out).lines();
    ensure!(next(&mut lines).await?.as_deref() == Some("begin"));
    std::fs::write(cx.scratch().join("go"), "")?;
    // The first restart comes at once, and is over at once as well.
    for want in ["end", "begin", "end"] {
        let line = next(&mut lines).await?;
        ensure!(line.as_deref() == Some(want), "{want}: {line:?}");
    }
    agent.manifests().remove("web")?;
    ensure!(next(&mut lines).await?.is_none(), "what goes on after the pod is gone?");
    let ended = timeout(MAX_WAIT, wait_for_output(follows)).await??;
    ensure!(ended.code == Some(0) && ended.err.is_empty(), "{ended:#?}");
    let gone = async || agent.command(&["ps"]).await?.success();
    eventually(MAX_WAIT, "no pod is left", gone, |text| text.contains("No pods")).await?;
    Ok(())
}
