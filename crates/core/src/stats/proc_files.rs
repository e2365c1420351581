//! Reads files of `/proc`: memory, interfaces, devices, processes.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::cgroup_stats::DeviceNumber;

/// Interfaces that are no way out of the machine: the loopback, and ends of links to containers.
const INNER_INTERFACES: [&str; 4] = ["lo", "veth", "docker", "nerdctl"];

/// The memory of the machine, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryInfo {
    /// All memory.
    pub total: u64,
    /// What is not used for anything.
    pub free: u64,
    /// File pages that have not been used for some time.
    pub inactive_file: u64,
    /// Anonymous memory.
    pub anonymous: u64,
    /// Pages of files.
    pub cached: u64,
    /// Pages of files that processes have mapped.
    pub mapped: u64,
    /// The size of all swap devices.
    pub swap_total: u64,
    /// What is free of it.
    pub swap_free: u64,
}

/// `/proc/meminfo`.
pub fn memory_info(text: &str) -> MemoryInfo {
    let mut found = MemoryInfo::default();
    for (name, rest) in text.lines().filter_map(|line| line.split_once(':')) {
        let field = match name {
            "MemTotal" => &mut found.total,
            "MemFree" => &mut found.free,
            "Inactive(file)" => &mut found.inactive_file,
            "AnonPages" => &mut found.anonymous,
            "Cached" => &mut found.cached,
            "Mapped" => &mut found.mapped,
            "SwapTotal" => &mut found.swap_total,
            "SwapFree" => &mut found.swap_free,
            _ => continue,
        };
        let kibibytes = rest.trim().strip_suffix("kB").and_then(|it| it.trim().parse::<u64>().ok());
        *field = kibibytes.unwrap_or_default().saturating_mul(1024);
    }
    found
}

/// What an interface has received and sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Its name.
    pub name: String,
    /// Received bytes.
    pub rx_bytes: u64,
    /// Received packets.
    pub rx_packets: u64,
    /// Errors while receiving.
    pub rx_errors: u64,
    /// Received packets that were dropped.
    pub rx_dropped: u64,
    /// Sent bytes.
    pub tx_bytes: u64,
    /// Sent packets.
    pub tx_packets: u64,
    /// Errors while sending.
    pub tx_errors: u64,
    /// Packets to send that were dropped.
    pub tx_dropped: u64,
}

/// As many interfaces are shown of a machine or a pod: each is several series, and a privileged container can make thousands.
const MAX_INTERFACES: usize = 64;

/// The interfaces of `/proc/PID/net/dev` that lead somewhere, in the kernel's order.
pub fn interfaces(text: &str) -> Vec<InterfaceCounters> {
    let all = text.lines().filter_map(interface);
    let outer = all.filter(|it| !INNER_INTERFACES.iter().any(|inner| it.name.starts_with(inner)));
    outer.take(MAX_INTERFACES).collect()
}

fn interface(line: &str) -> Option<InterfaceCounters> {
    let (name, numbers) = line.split_once(':')?;
    let mut numbers = numbers.split_ascii_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok();
    let (rx_bytes, rx_packets, rx_errors, rx_dropped) = (next()?, next()?, next()?, next()?);
    // fifo, frame, compressed, multicast
    for _ in 0..4 {
        next()?;
    }
    Some(InterfaceCounters {
        name: name.trim().to_owned(),
        rx_bytes,
        rx_packets,
        rx_errors,
        rx_dropped,
        tx_bytes: next()?,
        tx_packets: next()?,
        tx_errors: next()?,
        tx_dropped: next()?,
    })
}

/// When the machine was started: `btime` of `/proc/stat`.
pub fn boot_time(text: &str) -> Option<Timestamp> {
    let seconds = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    Timestamp::from_second(seconds.trim().parse().ok()?).ok()
}

/// How many tasks there are: the number after the slash in `/proc/loadavg`.
pub fn tasks(text: &str) -> Option<u64> {
    let (_, tasks) = text.split_ascii_whitespace().nth(3)?.split_once('/')?;
    tasks.parse().ok()
}

/// The control group of a process by `/proc/PID/cgroup`: that of the memory controller, or of v2.
pub fn cgroup_of_process(text: &str) -> Option<&str> {
    let group = |wanted: fn(&str) -> bool| {
        text.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            wanted(controllers).then_some(path)
        })
    };
    group(|controllers| controllers.split(',').any(|name| name == "memory"))
        .or_else(|| group(str::is_empty))
}

/// The names of block devices by their numbers: `/proc/partitions`.
pub fn block_devices(text: &str) -> BTreeMap<DeviceNumber, String> {
    let line = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let number = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((number, format!("/dev/{}", words.nth(1)?)))
    };
    text.lines().filter_map(line).collect()
}
