//! The kernel's numbers in the messages of CRI. What the kernel does not tell is absent.

use oarsman_core::stats::{CgroupStats, InterfaceCounters, Pressure, PressureWindow};
use oarsman_cri_types::v1 as cri;

use crate::inner::nanoseconds;

/// The interface that a pod's address is on.
const DEFAULT_INTERFACE: &str = "eth0";

pub(super) fn number(value: u64) -> Option<cri::UInt64Value> {
    Some(cri::UInt64Value { value })
}

pub(super) fn cpu(stats: &CgroupStats) -> Option<cri::CpuUsage> {
    Some(cri::CpuUsage {
        timestamp: nanoseconds(stats.at.wall),
        usage_core_nano_seconds: number(stats.cpu.as_ref()?.total),
        // Clients that want a rate read twice.
        usage_nano_cores: None,
        psi: psi(stats.pressure.cpu),
    })
}

pub(super) fn memory(stats: &CgroupStats) -> Option<cri::MemoryUsage> {
    let memory = stats.memory.as_ref()?;
    let available = memory.limit.map(|limit| limit.saturating_sub(memory.working_set()));
    Some(cri::MemoryUsage {
        timestamp: nanoseconds(stats.at.wall),
        working_set_bytes: number(memory.working_set()),
        available_bytes: available.and_then(number),
        usage_bytes: number(memory.usage),
        rss_bytes: number(memory.rss),
        page_faults: number(memory.total_page_faults),
        major_page_faults: number(memory.total_major_page_faults),
        psi: psi(stats.pressure.memory),
    })
}

pub(super) fn swap(stats: &CgroupStats) -> Option<cri::SwapUsage> {
    let memory = stats.memory.as_ref()?;
    let available = memory.swap_limit.map(|limit| limit.saturating_sub(memory.swap));
    Some(cri::SwapUsage {
        timestamp: nanoseconds(stats.at.wall),
        swap_available_bytes: available.and_then(number),
        swap_usage_bytes: number(memory.swap),
    })
}

pub(super) fn io(stats: &CgroupStats) -> Option<cri::IoUsage> {
    let psi = Some(psi(stats.pressure.io)?);
    Some(cri::IoUsage { timestamp: nanoseconds(stats.at.wall), psi })
}

pub(super) fn network(timestamp: i64, interfaces: Vec<InterfaceCounters>) -> cri::NetworkUsage {
    let (default, others): (Vec<_>, Vec<_>) =
        interfaces.into_iter().partition(|it| it.name == DEFAULT_INTERFACE);
    let usage = |it: InterfaceCounters| cri::NetworkInterfaceUsage {
        name: it.name,
        rx_bytes: number(it.rx_bytes),
        rx_errors: number(it.rx_errors),
        tx_bytes: number(it.tx_bytes),
        tx_errors: number(it.tx_errors),
    };
    cri::NetworkUsage {
        timestamp,
        default_interface: default.into_iter().next().map(usage),
        interfaces: others.into_iter().map(usage).collect(),
    }
}

fn psi(pressure: Option<Pressure>) -> Option<cri::PsiStats> {
    let Pressure { some, full } = pressure?;
    let data = |window: PressureWindow| {
        let PressureWindow { avg10, avg60, avg300, total } = window;
        Some(cri::PsiData { total, avg10, avg60, avg300 })
    };
    Some(cri::PsiStats { full: data(full), some: data(some) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_of_a_pods_address_comes_first_and_others_apart() {
        let counters = |name: &str, rx_bytes| InterfaceCounters {
            name: name.to_owned(),
            rx_bytes,
            ..Default::default()
        };
        let usage = network(7, vec![counters("net1", 1), counters("eth0", 2)]);
        let default = usage.default_interface.unwrap();
        assert_eq!((default.name.as_str(), default.rx_bytes), ("eth0", number(2)));
        assert_eq!(
            usage.interfaces.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(),
            ["net1"]
        );
        assert_eq!(network(7, Vec::new()).default_interface, None);
    }

    #[test]
    fn pressure_that_the_kernel_does_not_tell_is_absent() {
        assert_eq!(psi(None), None);
        let some = PressureWindow { avg10: 1.5, total: 9, ..PressureWindow::default() };
        let told = psi(Some(Pressure { some, ..Pressure::default() })).unwrap();
        assert_eq!(told.some.map(|it| (it.avg10, it.total)), Some((1.5, 9)));
    }
}
