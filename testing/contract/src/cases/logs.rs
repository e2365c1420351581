//! Cases on log files: the format of lines, and reopening.

use std::path::Path;

use anyhow::{Context, Result};

use super::cases;
use crate::{CaseContext, ContractCase};

pub(super) fn all() -> Vec<ContractCase> {
    cases![
        a_log_line_has_a_time_a_stream_and_a_tag,
        a_long_line_is_cut_into_partial_ones,
        a_reopened_log_goes_on_in_a_new_file,
        a_log_outlives_its_container,
    ]
}

/// Stream, tag and content of a line, after its time was checked.
fn parts(line: &str) -> Result<(&str, &str, &str)> {
    let mut words = line.splitn(4, ' ');
    let time = words.next().context("a time")?;
    assert!(time.contains('T') && time.len() >= 20, "{time:?} is RFC 3339");
    let stream = words.next().context("a stream")?;
    let tag = words.next().context("a tag")?;
    Ok((stream, tag, words.next().unwrap_or_default()))
}

async fn a_log_line_has_a_time_a_stream_and_a_tag(cx: &CaseContext) -> Result<()> {
    let (pod, id) = cx.run(&["out:one", "sleep:100ms", "err:two", "exit:0"]).await?;
    cx.until_exited(&id).await?;
    let log = cx.until_log(&pod, "main.log", "two").await?;
    let lines = log.lines().map(parts).collect::<Result<Vec<_>>>()?;
    assert_eq!(lines, [("stdout", "F", "one"), ("stderr", "F", "two")]);
    Ok(())
}

async fn a_long_line_is_cut_into_partial_ones(cx: &CaseContext) -> Result<()> {
    let long = format!("out:{}end", "x".repeat(40_000));
    let (pod, id) = cx.run(&[&long]).await?;
    cx.until_exited(&id).await?;
    let log = cx.until_log(&pod, "main.log", "end").await?;
    let lines = log.lines().map(parts).collect::<Result<Vec<_>>>()?;
    let (last, before) = lines.split_last().context("a line")?;
    assert_eq!(last.1, "F");
    assert!(!before.is_empty() && before.iter().all(|line| line.1 == "P"), "partial lines first");
    let joined: String = lines.iter().map(|line| line.2).collect();
    assert_eq!(joined.len(), 40_003);
    Ok(())
}

async fn a_reopened_log_goes_on_in_a_new_file(cx: &CaseContext) -> Result<()> {
    let go = cx.directory().join("go");
    let mut config =
        cx.script("main", &["out:before", "wait-file:/stage/go", "out:after", "forever"]);
    cx.harness().write(&cx.directory().join("here"), b"").await?;
    config.mounts = vec![oarsman_cri_types::v1::Mount {
        container_path: "/stage".to_owned(),
        host_path: cx.directory().to_string_lossy().into_owned(),
        ..Default::default()
    }];
    let pod = cx.pod().await?;
    let id = cx.start(&pod, config).await?;
    cx.until_log(&pod, "main.log", "before").await?;
    let directory = Path::new(&pod.config.log_directory);
    cx.harness().rename(&directory.join("main.log"), &directory.join("main.log.1")).await?;
    cx.runtime().reopen_container_log(&id).await?;
    cx.harness().write(&go, b"").await?;
    let new = cx.until_log(&pod, "main.log", "after").await?;
    assert!(!new.contains("before"), "{new}");
    assert!(cx.log(&pod, "main.log.1").await?.contains("before"));
    Ok(())
}

async fn a_log_outlives_its_container(cx: &CaseContext) -> Result<()> {
    let (pod, id) = cx.run(&["out:remembered"]).await?;
    cx.until_exited(&id).await?;
    cx.until_log(&pod, "main.log", "remembered").await?;
    cx.runtime().remove_container(&id).await?;
    assert!(cx.log(&pod, "main.log").await?.contains("remembered"));
    Ok(())
}
