//! Files of groups: `memory.stat` and `cpuacct.stat` of v1 as kernel 6.18 wrote them, the others after its documentation.

use super::super::cgroup_files::*;
use super::super::cgroup_stats::{CpuThrottling, CpuUsage, DeviceIo, MemoryUsage};
use super::super::pressure::{Pressure, PressureWindow, pressure};

const MEMORY_STAT_V1: &str = "\
cache 15269888
rss 7532544
mapped_file 9977856
swap 0
pgpgin 38870
pgfault 38808
pgmajfault 1
inactive_file 180224
hierarchical_memory_limit 9223372036854771712
total_cache 2643632128
total_rss 375709696
total_mapped_file 130834432
total_swap 4096
total_pgfault 12316740
total_pgmajfault 1453
total_inactive_anon 368058368
total_inactive_file 1534844928
total_active_file 1095704576
";

const MEMORY_STAT_V2: &str = "\
anon 376832
file 1048576
kernel 524288
shmem 0
file_mapped 65536
inactive_anon 368640
active_anon 8192
inactive_file 262144
active_file 786432
pgfault 1500
pgmajfault 3
";

#[test]
fn a_file_of_one_number_may_say_that_there_is_no_limit() {
    let rows = [
        ("564970243907\n", Some(564_970_243_907)),
        ("0\n", Some(0)),
        ("max\n", None),
        ("-1\n", None),
        ("9223372036854771712\n", None),
        ("4611686018427387903\n", Some((1 << 62) - 1)),
        ("", None),
    ];
    for (text, expected) in rows {
        assert_eq!(number(text), expected, "{text:?}");
    }
}

#[test]
fn a_number_is_found_by_its_key_alone() {
    let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
    for (key, expected) in [("oom_kill", Some(3)), ("under_oom", Some(0)), ("oom", None)] {
        assert_eq!(number_of(text, key), expected, "{key}");
    }
    assert_eq!(count_lines("1\n25\n300\n"), 3);
    assert_eq!(count_lines(""), 0);
}

#[test]
fn cpuacct_stat_counts_ticks() {
    let expected = V1CpuTicks { user: 470_500_000_000, system: 94_460_000_000 };
    assert_eq!(cpuacct_stat("user 47050\nsystem 9446\n"), Some(expected));
    assert_eq!(cpuacct_stat("user 47050\n"), None);
}

#[test]
fn cpu_stat_of_v1_tells_of_throttling() {
    let text = "nr_periods 10\nnr_throttled 4\nthrottled_time 123456789\nnr_bursts 0\n";
    let expected = CpuThrottling { periods: 10, throttled_periods: 4, throttled: 123_456_789 };
    assert_eq!(cpu_stat_v1(text), Some(expected));
    assert_eq!(cpu_stat_v1(""), None);
}

#[test]
fn cpu_stat_of_v2_tells_of_throttling_only_where_the_controller_is_on() {
    let usage = CpuUsage { total: 3_000_000, user: Some(2_000_000), system: Some(1_000_000) };
    let root = "usage_usec 3000\nuser_usec 2000\nsystem_usec 1000\n";
    assert_eq!(cpu_stat_v2(root), (Some(usage), None));
    let with_quota = format!("{root}nr_periods 5\nnr_throttled 2\nthrottled_usec 70\n");
    let throttling = CpuThrottling { periods: 5, throttled_periods: 2, throttled: 70_000 };
    assert_eq!(cpu_stat_v2(&with_quota), (Some(usage), Some(throttling)));
    assert_eq!(cpu_stat_v2("garbage"), (None, None));
}

#[test]
fn cpu_max_and_weights_of_v2_are_read_as_quotas_and_shares() {
    assert_eq!(cpu_max("max 100000\n"), (None, Some(100_000)));
    assert_eq!(cpu_max("50000 100000\n"), (Some(50_000), Some(100_000)));
    for (weight, shares) in [(1, 2), (100, 2597), (10_000, 262_144), (0, 2)] {
        assert_eq!(shares_of_weight(weight), shares, "{weight}");
    }
}

#[test]
fn memory_stat_of_v1_counts_the_groups_below() {
    let memory = memory_stat_v1(MEMORY_STAT_V1);
    let expected = MemoryUsage {
        inactive_file: 1_534_844_928,
        rss: 375_709_696,
        cache: 2_643_632_128,
        mapped_file: 130_834_432,
        swap: 4096,
        page_faults: 38_808,
        major_page_faults: 1,
        total_page_faults: 12_316_740,
        total_major_page_faults: 1453,
        ..MemoryUsage::default()
    };
    assert_eq!(memory, expected);
}

#[test]
fn memory_stat_of_v2_has_one_scope() {
    let expected = MemoryUsage {
        inactive_file: 262_144,
        rss: 376_832,
        cache: 1_048_576,
        mapped_file: 65_536,
        page_faults: 1500,
        major_page_faults: 3,
        total_page_faults: 1500,
        total_major_page_faults: 3,
        ..MemoryUsage::default()
    };
    assert_eq!(memory_stat_v2(MEMORY_STAT_V2), expected);
}

#[test]
fn the_working_set_is_never_negative() {
    for (usage, inactive_file, expected) in [(10, 4, 6), (4, 10, 0)] {
        let memory = MemoryUsage { usage, inactive_file, ..MemoryUsage::default() };
        assert_eq!(memory.working_set(), expected);
    }
}

#[test]
fn reads_and_writes_of_v1_are_in_two_files() {
    let bytes =
        "8:0 Read 4096\n8:0 Write 8192\n8:0 Sync 0\n8:0 Total 12288\n254:16 Read 1\nTotal 12289\n";
    let requests = "8:0 Read 1\n8:0 Write 2\n8:0 Total 3\n7:1 Write 9\nTotal 12\n";
    let io = |device, read_bytes, written_bytes, reads, writes| DeviceIo {
        device,
        read_bytes,
        written_bytes,
        reads,
        writes,
    };
    let expected =
        [io((8, 0), 4096, 8192, 1, 2), io((254, 16), 1, 0, 0, 0), io((7, 1), 0, 0, 0, 9)];
    assert_eq!(throttled_io(bytes, requests), expected);
    assert_eq!(throttled_io("Total 0\n", "Total 0\n"), []);
}

#[test]
fn io_stat_of_v2_has_a_line_for_each_device() {
    let text = "254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n7:0 \nnot a line\n";
    let first =
        DeviceIo { device: (254, 0), read_bytes: 4096, written_bytes: 8192, reads: 1, writes: 2 };
    let second = DeviceIo { device: (7, 0), ..DeviceIo::default() };
    assert_eq!(io_stat(text), [first, second]);
}

#[test]
fn pressure_has_a_line_for_some_tasks_and_one_for_all() {
    let some = "some avg10=1.50 avg60=0.25 avg300=0.00 total=123456\n";
    let full = "full avg10=0.00 avg60=0.00 avg300=0.10 total=99\n";
    let of_some = PressureWindow { avg10: 1.5, avg60: 0.25, avg300: 0.0, total: 123_456 };
    let of_full = PressureWindow { avg10: 0.0, avg60: 0.0, avg300: 0.1, total: 99 };
    let whole = Pressure { some: of_some, full: of_full };
    assert_eq!(pressure(&format!("{some}{full}")), Some(whole));
    let alone = Pressure { some: of_some, full: PressureWindow::default() };
    assert_eq!(pressure(some), Some(alone), "a CPU has no line full on older kernels");
    assert_eq!(pressure(""), None);
    assert_eq!(pressure("some avg10=x"), None);
}
