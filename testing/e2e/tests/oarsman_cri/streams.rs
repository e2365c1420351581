//! exec, attach and port-forward by URL.

use anyhow::{Context, Result, ensure};
use oarsman_cri::{Runtime, StreamingEndpoint};
use oarsman_cri_types::v1::ExecRequest;
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::scenario::ScenarioContext;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::MAX_WAIT;
use super::lives::lasting;

/// The head of the answer to an upgrade by WebSocket.
async fn upgrade(url: &str) -> Result<String> {
    let rest = url.strip_prefix("http://").context("a URL")?;
    let (address, path) = rest.split_once('/').context("a URL has a path")?;
    ensure!(address.starts_with("127.0.0.1:"), "{url}");
    let mut stream = TcpStream::connect(address).await?;
    let request = format!(
        "GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut bytes = vec![0; 512];
    let length = stream.read(&mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

pub(super) async fn sessions_are_reached_by_url_once(cx: &ScenarioContext) -> Result<()> {
    let agent = cx.agent()?;
    agent.apply("web", &lasting("web", &["forever"]))?;
    let look = async || cx.inspector().pod("web").await;
    let pod = eventually(MAX_WAIT, "the pod runs", look, |pod| pod.runs("main")).await?;
    let container_id = pod.container("main")?.id.clone();
    let cmd = vec!["/script".to_owned(), "out:hello".to_owned()];
    let request = ExecRequest { container_id, cmd, stdout: true, ..ExecRequest::default() };
    let StreamingEndpoint::Url(url) = cx.rig().client()?.exec(request).await? else {
        anyhow::bail!("a client in another process gets a URL");
    };
    let first = upgrade(&url).await?;
    ensure!(first.starts_with("HTTP/1.1 101 "), "{first}");
    let second = upgrade(&url).await?;
    ensure!(second.starts_with("HTTP/1.1 404 "), "{second}");
    // The agent reaches it in the same way.
    let said = agent.command(&["exec", "web", "--", "/script", "out:ahoy"]).await?.success()?;
    ensure!(said == "ahoy\n", "{said:?}");
    Ok(())
}
