//! Reads the files of a control group, of cgroups v1 and v2. Lines and words that are not understood are passed over.

use super::cgroup_stats::{CpuThrottling, CpuUsage, DeviceIo, DeviceNumber, MemoryUsage};

/// A limit of v1 from which on there is none. The kernel rounds its highest number down to pages, of whatever size.
const UNLIMITED: u64 = 1 << 62;
/// Nanoseconds in a clock tick of `cpuacct.stat` and `/proc`: the kernel counts a hundred ticks a second there on every machine.
const NANOS_PER_TICK: u64 = 10_000_000;
const NANOS_PER_MICRO: u64 = 1000;
/// The bounds of v1 shares and v2 weights that are converted into each other.
const MIN_SHARES: u64 = 2;
const MAX_SHARES: u64 = 262_144;

/// The number that a file is; none for `max`, for what v1 has for no limit, and for what is no number.
pub fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|number| *number < UNLIMITED)
}

/// The number after a key, in a file of lines `KEY NUMBER`.
pub fn number_of(text: &str, key: &str) -> Option<u64> {
    pairs(text).find_map(|(name, number)| (name == key).then_some(number))
}

/// Lines of a file, such as the processes in `cgroup.procs`.
pub fn count_lines(text: &str) -> u64 {
    u64::try_from(text.lines().count()).unwrap_or(u64::MAX)
}

fn pairs(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (name, number) = line.split_once(' ')?;
        Some((name, number.trim().parse().ok()?))
    })
}

/// CPU time in user mode and in the kernel, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct V1CpuTicks {
    /// In user mode.
    pub user: u64,
    /// In the kernel.
    pub system: u64,
}

/// `cpuacct.stat` of v1.
pub fn cpuacct_stat(text: &str) -> Option<V1CpuTicks> {
    let nanos = |key| Some(number_of(text, key)?.saturating_mul(NANOS_PER_TICK));
    Some(V1CpuTicks { user: nanos("user")?, system: nanos("system")? })
}

/// `cpu.stat` of v1, which tells of throttling only.
pub fn cpu_stat_v1(text: &str) -> Option<CpuThrottling> {
    Some(CpuThrottling {
        periods: number_of(text, "nr_periods")?,
        throttled_periods: number_of(text, "nr_throttled")?,
        throttled: number_of(text, "throttled_time")?,
    })
}

/// `cpu.stat` of v2. The root group, and one without the controller `cpu`, tells nothing of throttling.
pub fn cpu_stat_v2(text: &str) -> (Option<CpuUsage>, Option<CpuThrottling>) {
    let nanos = |key| Some(number_of(text, key)?.saturating_mul(NANOS_PER_MICRO));
    let usage = nanos("usage_usec").map(|total| CpuUsage {
        total,
        user: nanos("user_usec"),
        system: nanos("system_usec"),
    });
    let throttling = || {
        Some(CpuThrottling {
            periods: number_of(text, "nr_periods")?,
            throttled_periods: number_of(text, "nr_throttled")?,
            throttled: nanos("throttled_usec")?,
        })
    };
    (usage, throttling())
}

/// `cpu.max` of v2: the quota, if there is one, and the period.
pub fn cpu_max(text: &str) -> (Option<u64>, Option<u64>) {
    let mut words = text.split_ascii_whitespace();
    (words.next().and_then(number), words.next().and_then(number))
}

/// The v1 shares that a v2 weight stands for.
pub fn shares_of_weight(weight: u64) -> u64 {
    MIN_SHARES + weight.clamp(1, 10_000).saturating_sub(1) * (MAX_SHARES - MIN_SHARES) / 9999
}

/// `memory.stat` of v1: the numbers of the group and all below it. What is in other files is left at zero.
pub fn memory_stat_v1(text: &str) -> MemoryUsage {
    let mut memory = MemoryUsage::default();
    for (name, number) in pairs(text) {
        let field = match name {
            "total_inactive_file" => &mut memory.inactive_file,
            "total_rss" => &mut memory.rss,
            "total_cache" => &mut memory.cache,
            "total_mapped_file" => &mut memory.mapped_file,
            "total_swap" => &mut memory.swap,
            "pgfault" => &mut memory.page_faults,
            "pgmajfault" => &mut memory.major_page_faults,
            "total_pgfault" => &mut memory.total_page_faults,
            "total_pgmajfault" => &mut memory.total_major_page_faults,
            _ => continue,
        };
        *field = number;
    }
    memory
}

/// `memory.stat` of v2, whose numbers are always those of the group and all below it.
pub fn memory_stat_v2(text: &str) -> MemoryUsage {
    let mut memory = MemoryUsage::default();
    for (name, number) in pairs(text) {
        let field = match name {
            "inactive_file" => &mut memory.inactive_file,
            "anon" => &mut memory.rss,
            "file" => &mut memory.cache,
            "file_mapped" => &mut memory.mapped_file,
            "pgfault" => &mut memory.page_faults,
            "pgmajfault" => &mut memory.major_page_faults,
            _ => continue,
        };
        *field = number;
    }
    MemoryUsage {
        total_page_faults: memory.page_faults,
        total_major_page_faults: memory.major_page_faults,
        ..memory
    }
}

/// `blkio.throttle.io_service_bytes_recursive` and `blkio.throttle.io_serviced_recursive` of v1.
pub fn throttled_io(bytes: &str, requests: &str) -> Vec<DeviceIo> {
    let mut all: Vec<DeviceIo> = Vec::new();
    for (device, direction, number) in operations(bytes) {
        match direction {
            "Read" => of_device(&mut all, device).read_bytes = number,
            "Write" => of_device(&mut all, device).written_bytes = number,
            _ => {}
        }
    }
    for (device, direction, number) in operations(requests) {
        match direction {
            "Read" => of_device(&mut all, device).reads = number,
            "Write" => of_device(&mut all, device).writes = number,
            _ => {}
        }
    }
    all
}

/// Lines such as `8:0 Read 4096`.
fn operations(text: &str) -> impl Iterator<Item = (DeviceNumber, &str, u64)> {
    text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        Some((device(words.next()?)?, words.next()?, words.next()?.parse().ok()?))
    })
}

/// `io.stat` of v2, with lines such as `8:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0`.
pub fn io_stat(text: &str) -> Vec<DeviceIo> {
    let line = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let mut io = DeviceIo { device: device(words.next()?)?, ..DeviceIo::default() };
        for (name, number) in words.filter_map(|word| word.split_once('=')) {
            let field = match name {
                "rbytes" => &mut io.read_bytes,
                "wbytes" => &mut io.written_bytes,
                "rios" => &mut io.reads,
                "wios" => &mut io.writes,
                _ => continue,
            };
            *field = number.parse().ok()?;
        }
        Some(io)
    };
    text.lines().filter_map(line).collect()
}

fn device(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn of_device(all: &mut Vec<DeviceIo>, device: DeviceNumber) -> &mut DeviceIo {
    let index = all.iter().position(|io| io.device == device).unwrap_or_else(|| {
        all.push(DeviceIo { device, ..DeviceIo::default() });
        all.len() - 1
    });
    &mut all[index]
}
