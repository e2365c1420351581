//! Cases on the version, status and configuration of the runtime itself.

use anyhow::Result;

use super::cases;
use crate::{CaseContext, ContractCase};

pub(super) fn all() -> Vec<ContractCase> {
    cases![
        it_names_itself_and_its_api_version,
        it_is_ready_for_containers_and_networks,
        it_takes_a_pod_range_more_than_once,
    ]
}

async fn it_names_itself_and_its_api_version(cx: &CaseContext) -> Result<()> {
    let version = cx.runtime().version().await?;
    assert_eq!(version.runtime_api_version, "v1");
    assert!(!version.runtime_name.is_empty(), "{version:?}");
    assert!(!version.runtime_version.is_empty(), "{version:?}");
    Ok(())
}

async fn it_is_ready_for_containers_and_networks(cx: &CaseContext) -> Result<()> {
    let status = cx.runtime().status().await?.status.unwrap_or_default();
    for wanted in ["RuntimeReady", "NetworkReady"] {
        let condition = status.conditions.iter().find(|c| c.r#type == wanted);
        assert!(condition.is_some_and(|c| c.status), "{wanted}: {condition:?}");
    }
    Ok(())
}

async fn it_takes_a_pod_range_more_than_once(cx: &CaseContext) -> Result<()> {
    for _ in 0..2 {
        cx.runtime().update_runtime_config(oarsman_cri_types::v1::RuntimeConfig::default()).await?;
    }
    Ok(())
}
