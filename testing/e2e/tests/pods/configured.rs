//! An agent that is configured by files.

use std::fs;

use anyhow::{Context, Result, ensure};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;

use super::starts::MAX_WAIT;

const HEAD: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

pub(super) async fn an_agent_is_configured_by_its_file_and_drop_ins(
    cx: &ScenarioContext,
) -> Result<()> {
    let scratch = cx.scratch();
    let (file, drop_ins) = (scratch.join("kubelet.yaml"), scratch.join("kubelet.d"));
    fs::create_dir_all(&drop_ins)?;
    fs::write(&file, format!("{HEAD}podPidsLimit: 77\nvolumeStatsAggPeriod: 3m\nmaxPod: 3\n"))?;
    fs::write(drop_ins.join("10-pids.conf"), format!("{HEAD}podPidsLimit: 88\n"))?;
    let setup = cx.setup()?.flag("config", &file.display().to_string());
    let agent = cx.start(setup.flag("config-dir", &drop_ins.display().to_string()))?;
    agent.apply("web", &pod("web").container(script_container("main", &["forever"])))?;
    let look = async || cx.inspector().pod("web").await;
    let seen = eventually(MAX_WAIT, "the pod runs", look, |pod| pod.runs("main")).await?;
    let groups = cx.inspector().groups(seen.uid())?;
    let own = groups.iter().min_by_key(|group| group.as_os_str().len());
    let limit = cx.inspector().group_value(own.context("the pod has no cgroup")?, "pids.max")?;
    ensure!(limit == "88", "{limit}");
    let said = fs::read_to_string(agent.log())?;
    ensure!(
        said.contains("maxPod: is no field that the kubelet has (did you mean maxPods?)"),
        "{said}"
    );
    ensure!(said.contains("without effect yet setting=volumeStatsAggPeriod"), "{said}");
    Ok(())
}
