//! Makes the settings of the node's registration and status from the configuration.

use std::path::Path;
use std::time::Duration;

use oarsman_agent::NodeStatusConfig;
use oarsman_core::node::NodeProfile;
use oarsman_core::node::amounts::{EvictionThreshold, ReservedResources};
use oarsman_kubelet_config::enums::TaintEffect;
use oarsman_kubelet_config::flags::ProgramFlags;
use oarsman_kubelet_config::sections::Taint;
use oarsman_kubelet_config::threshold::ThresholdValue;
use oarsman_kubelet_config::{KubeletConfiguration, is_enabled};

use crate::machine::{cpus, facts};

/// Feature gates that the node declares to the scheduler and the API server, because not every node of this version has them.
const DECLARED: [&str; 2] = ["ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits"];

/// Percentages that switch an eviction signal off.
const OFF: [f64; 2] = [0.0, 100.0];

pub(super) fn node_status_config(
    kubelet: &KubeletConfiguration,
    flags: &ProgramFlags,
    name: &str,
) -> NodeStatusConfig {
    NodeStatusConfig {
        machine: facts::read(Path::new(&flags.root_dir)),
        profile: profile(kubelet, flags, name),
        registers: kubelet.register_node,
        look: kubelet.node_status_update_frequency.or_zero(),
        report: kubelet.node_status_report_frequency.or_zero(),
        lease: Duration::from_secs(kubelet.node_lease_duration_seconds.unsigned_abs().into()),
    }
}

fn profile(kubelet: &KubeletConfiguration, flags: &ProgramFlags, name: &str) -> NodeProfile {
    let given = flags.node_ips().into_iter().filter(|ip| !ip.is_unspecified());
    let is_on = |name: &str| is_enabled(&kubelet.feature_gates, name);
    let declared = DECLARED.iter().filter(|name| is_on("NodeDeclaredFeatures") && is_on(name));
    NodeProfile {
        name: name.to_owned(),
        labels: flags.node_labels.clone(),
        taints: kubelet.register_with_taints.iter().map(taint).collect(),
        provider_id: Some(kubelet.provider_id.clone()).filter(|id| !id.is_empty()),
        has_cloud: flags.cloud_provider == "external",
        controller_attaches: kubelet.enable_controller_attach_detach,
        given_addresses: given.collect(),
        port: if kubelet.enable_server { kubelet.port } else { 0 },
        version: super::kubernetes_version().to_owned(),
        max_pods: u32::try_from(kubelet.max_pods).unwrap_or_default(),
        pods_per_core: u32::try_from(kubelet.pods_per_core).ok().filter(|pods| *pods > 0),
        max_images: usize::try_from(kubelet.node_status_max_images).ok(),
        reserved: reserved(kubelet),
        counts_storage: kubelet.local_storage_capacity_isolation,
        declared_features: declared.map(|name| (*name).to_owned()).collect(),
    }
}

fn taint(taint: &Taint) -> k8s_openapi::api::core::v1::Taint {
    k8s_openapi::api::core::v1::Taint {
        key: taint.key.clone(),
        value: Some(taint.value.clone()).filter(|value| !value.is_empty()),
        effect: match taint.effect {
            TaintEffect::NoSchedule => "NoSchedule",
            TaintEffect::PreferNoSchedule => "PreferNoSchedule",
            TaintEffect::NoExecute => "NoExecute",
        }
        .to_owned(),
        time_added: None,
    }
}

fn reserved(kubelet: &KubeletConfiguration) -> ReservedResources {
    let level = |signal: &str| kubelet.eviction_hard.get(signal).and_then(level);
    ReservedResources {
        system: kubelet.system_reserved.clone(),
        kube: kubelet.kube_reserved.clone(),
        cpus: cpus::count(&kubelet.reserved_system_cpus),
        free_memory: level("memory.available"),
        free_disk: level("nodefs.available"),
    }
}

fn level(threshold: &ThresholdValue) -> Option<EvictionThreshold> {
    match threshold {
        ThresholdValue::Amount(amount) => Some(EvictionThreshold::Amount(amount.clone())),
        ThresholdValue::Percent(percent) if OFF.contains(percent) => None,
        #[expect(clippy::cast_possible_truncation, reason = "the precision of the Go kubelet")]
        ThresholdValue::Percent(percent) => Some(EvictionThreshold::Percent(*percent as f32)),
    }
}

#[cfg(test)]
mod tests {
    use oarsman_kubelet_config::flags;

    use super::*;

    fn settings_for(words: &[&str]) -> NodeStatusConfig {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let given = flags::parse(&words).unwrap();
        let loaded = oarsman_kubelet_config::load(None, &[], &given.layers).unwrap();
        node_status_config(&loaded.configuration, &given.program, "n1")
    }

    #[test]
    fn by_default_a_node_registers_and_reports_as_the_go_kubelet_does() {
        let NodeStatusConfig { profile, registers, look, report, lease, .. } = settings_for(&[]);
        let seconds = [look, report, lease].map(|time| time.as_secs());
        assert_eq!((registers, seconds), (true, [10, 300, 40]));
        let expected = NodeProfile {
            name: "n1".to_owned(),
            controller_attaches: true,
            port: 10250,
            version: format!("v1.36.3+oarsman.{}", env!("CARGO_PKG_VERSION")),
            max_pods: 110,
            max_images: Some(50),
            counts_storage: true,
            declared_features: DECLARED.map(str::to_owned).to_vec(),
            ..NodeProfile::default()
        };
        assert_eq!(profile, expected);
    }

    #[test]
    fn features_are_declared_where_their_gates_and_the_declaration_itself_are_on() {
        let rows: [(&str, &[&str]); 3] = [
            ("NodeDeclaredFeatures", &[]),
            ("RestartAllContainersOnContainerExits", &DECLARED[..1]),
            ("ExtendWebSocketsToKubelet", &DECLARED[1..]),
        ];
        for (gate, want) in rows {
            let declared = settings_for(&[&format!("--feature-gates={gate}=false")]);
            assert_eq!(declared.profile.declared_features, want, "{gate}");
        }
    }

    #[test]
    fn configured_values_are_used() {
        let NodeStatusConfig { profile, registers, look, report, lease, .. } = settings_for(&[
            "--register-node=false",
            "--node-status-update-frequency=4s",
            "--node-labels=a=b,node.kubernetes.io/pool=c",
            "--register-with-taints=k=v:NoExecute,l:NoSchedule",
            "--provider-id=cloud://1",
            "--cloud-provider=external",
            "--node-ip=192.0.2.1,2001:db8::1",
            "--pods-per-core=4",
            "--max-pods=7",
            "--node-status-max-images=-1",
            "--enable-controller-attach-detach=false",
            "--enable-server=false",
            "--system-reserved=memory=1Gi",
            "--kube-reserved=cpu=100m",
            "--reserved-cpus=0-1,3",
            "--eviction-hard=memory.available<200Mi,nodefs.available<12%",
            "--feature-gates=RestartAllContainersOnContainerExits=false",
        ]);
        assert_eq!(
            (registers, look.as_secs(), report.as_secs(), lease.as_secs()),
            (false, 4, 4, 40)
        );
        assert_eq!(profile.labels.len(), 2);
        let taints: Vec<String> = profile
            .taints
            .iter()
            .map(|t| format!("{}={}:{}", t.key, t.value.as_deref().unwrap_or("-"), t.effect))
            .collect();
        assert_eq!(taints, ["k=v:NoExecute", "l=-:NoSchedule"]);
        assert_eq!(profile.provider_id.as_deref(), Some("cloud://1"));
        assert!(profile.has_cloud && !profile.controller_attaches);
        assert_eq!(profile.given_addresses.len(), 2);
        assert_eq!((profile.pods_per_core, profile.max_pods), (Some(4), 7));
        assert_eq!((profile.max_images, profile.port), (None, 0));
        assert_eq!(profile.declared_features, DECLARED[..1]);
        let ReservedResources { system, kube, cpus, free_memory, free_disk } = profile.reserved;
        assert_eq!(
            (system["memory"].to_string(), kube["cpu"].to_string()),
            ("1Gi".to_owned(), "100m".to_owned())
        );
        assert_eq!(cpus, Some(3));
        let amount = oarsman_core::quantity::Quantity::parse("200Mi").unwrap();
        assert_eq!(
            (free_memory, free_disk),
            (Some(EvictionThreshold::Amount(amount)), Some(EvictionThreshold::Percent(12.0)))
        );
    }

    #[test]
    fn thresholds_of_0_and_100_percent_switch_a_signal_off() {
        let rows = [(0.0, None), (100.0, None), (10.0, Some(EvictionThreshold::Percent(10.0)))];
        for (percent, expected) in rows {
            assert_eq!(level(&ThresholdValue::Percent(percent)), expected, "{percent}");
        }
    }
}
