//! Cases on the version, status and configuration of the runtime itself.

use anyhow::Result;

use super::cases;
use crate::{CaseContext, ContractCase};

pub(super) fn all() -> Vec<ContractCase> {
    cases![
        the_runtime_reports_its_name_and_api_version,
        the_runtime_and_its_network_are_ready,
        the_pod_address_range_can_be_set_more_than_once,
    ]
}

async fn the_runtime_reports_its_name_and_api_version(cx: &CaseContext) -> Result<()> {
    let version = cx.runtime().version().await?;
    assert_eq!(version.runtime_api_version, "v1");
    assert!(!version.runtime_name.is_empty(), "{version:?}");
    assert!(!version.runtime_version.is_empty(), "{version:?}");
    Ok(())
}

async fn the_runtime_and_its_network_are_ready(cx: &CaseContext) -> Result<()> {
    let status = cx.runtime().status().await?.status.unwrap_or_default();
    for wanted in ["RuntimeReady", "NetworkReady"] {
        let condition = status.conditions.iter().find(|c| c.r#type == wanted);
        assert!(condition.is_some_and(|c| c.status), "{wanted}: {condition:?}");
    }
    Ok(())
}

async fn the_pod_address_range_can_be_set_more_than_once(cx: &CaseContext) -> Result<()> {
    for _ in 0..2 {
        cx.runtime().update_runtime_config(oarsman_cri_types::v1::RuntimeConfig::default()).await?;
    }
    Ok(())
}
