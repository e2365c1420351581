//! A firewall that drops what pods send is told by a condition.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use oarsman_core::node::runtime::traffic_obstacle;
use oarsman_cri::Runtime;
use tokio::runtime::Handle;

use crate::harness::Node;
use crate::reconnect::trial;

pub(crate) fn trials(node: &Node, tokio: &Handle) -> Vec<Trial> {
    vec![trial(
        node,
        tokio,
        "traffic",
        "a_firewall_that_drops_is_a_condition_of_the_status",
        firewall,
    )]
}

/// Changes the rules of this test's own network namespace.
fn nft(rules: &str) -> Result<()> {
    let done = Command::new("nft").arg(rules).output().context("cannot run nft")?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

async fn firewall(node: Node, name: &'static str) -> Result<()> {
    let runtime = node.open(name).await?;
    ensure!(traffic_obstacle(&runtime.status().await?).is_none());
    nft(
        "add table inet strict; add chain inet strict forward { type filter hook forward priority 0; policy drop; }",
    )?;
    let told = traffic_obstacle(&runtime.status().await?);
    nft("delete table inet strict")?;
    let told = told.context("the firewall was not told")?;
    ensure!(told.problem.contains("inet strict forward"), "{told:?}");
    ensure!(told.fix.contains("nft insert rule inet strict forward iifname"), "{told:?}");
    ensure!(traffic_obstacle(&runtime.status().await?).is_none());
    node.close_later(runtime);
    Ok(())
}
