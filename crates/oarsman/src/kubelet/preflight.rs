//! Refuses to start on a machine that the configuration rules out, such as one that swaps.

use anyhow::{Context, Result, bail};
use oarsman_core::resources::CgroupVersion;
use oarsman_host::cgroups::CgroupManager;
use oarsman_host::host_info::unusable_reason;
use oarsman_kubelet_config::KubeletConfiguration;
use oarsman_kubelet_config::flags::ProgramFlags;

use crate::machine;

/// The state of the machine that is checked.
struct MachineState {
    cgroups: CgroupVersion,
    /// The devices and files it swaps to.
    swaps: Vec<String>,
}

/// Fails on such a machine, with every reason and its fix.
pub(super) fn check(kubelet: &KubeletConfiguration) -> Result<()> {
    let cgroups =
        CgroupManager::discover("/".as_ref()).context("this machine's cgroups cannot be used")?;
    let machine = MachineState { cgroups: cgroups.version(), swaps: machine::swaps()? };
    let reasons = reasons(kubelet, &machine);
    if !reasons.is_empty() {
        bail!("this machine is refused:\n  {}", reasons.join("\n  "));
    }
    Ok(())
}

/// Fails on addresses at which a node of a cluster cannot be reached.
pub(super) fn check_addresses(flags: &ProgramFlags) -> Result<()> {
    if flags.kubeconfig.is_empty() && flags.bootstrap_kubeconfig.is_empty() {
        return Ok(());
    }
    let given = flags.node_ips().into_iter().filter(|ip| !ip.is_unspecified());
    let complaints: Vec<String> = given.filter_map(unusable_reason).collect();
    if !complaints.is_empty() {
        bail!("--node-ip: {}", complaints.join("; "));
    }
    Ok(())
}

fn reasons(kubelet: &KubeletConfiguration, machine: &MachineState) -> Vec<String> {
    let mut reasons = Vec::new();
    let is_v1 = machine.cgroups == CgroupVersion::V1;
    if kubelet.fail_cgroup_v1 && is_v1 {
        reasons.push(
            "failCgroupV1: its control groups are v1; boot it with systemd.unified_cgroup_hierarchy=1, \
             or set failCgroupV1: false (--fail-cgroupv1=false)"
                .to_owned(),
        );
    }
    if is_v1 && kubelet.single_process_oom_kill == Some(false) {
        reasons.push(
            "singleProcessOOMKill: false is not possible with control groups v1; leave it out"
                .to_owned(),
        );
    }
    if kubelet.fail_swap_on && !machine.swaps.is_empty() {
        reasons.push(format!(
            "failSwapOn: it swaps to {}; switch that off with `swapoff -a` and in /etc/fstab, \
             or set failSwapOn: false (--fail-swap-on=false)",
            machine.swaps.join(", ")
        ));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_machine_is_named_with_the_field_and_the_fix() {
        let v1 =
            || MachineState { cgroups: CgroupVersion::V1, swaps: vec!["/dev/sda2".to_owned()] };
        let both = reasons(&KubeletConfiguration::default(), &v1());
        assert_eq!(both.len(), 2);
        assert!(both[0].starts_with("failCgroupV1: ") && both[0].contains("--fail-cgroupv1=false"));
        assert!(
            both[1].starts_with("failSwapOn: it swaps to /dev/sda2") && both[1].contains("swapoff")
        );
        let lenient = KubeletConfiguration {
            fail_cgroup_v1: false,
            fail_swap_on: false,
            ..KubeletConfiguration::default()
        };
        assert!(reasons(&lenient, &v1()).is_empty());
        let whole = KubeletConfiguration { single_process_oom_kill: Some(false), ..lenient };
        assert!(reasons(&whole, &v1())[0].starts_with("singleProcessOOMKill"));
        let v2 = MachineState { cgroups: CgroupVersion::V2, swaps: Vec::new() };
        assert!(reasons(&KubeletConfiguration::default(), &v2).is_empty());
        assert!(reasons(&whole, &v2).is_empty());
    }
}
