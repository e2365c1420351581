//! Files of `/proc`, with lines that kernel 6.18 wrote and lines made up for the table.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::super::proc_files::*;

#[test]
fn meminfo_is_in_kibibytes() {
    let text = "MemTotal:       24682416 kB\nMemFree:        21429984 kB\nCached:          2551616 kB\n\
        Inactive(file):    40 kB\nAnonPages:   30 kB\nMapped:   20 kB\nSwapTotal:   8 kB\nSwapFree:   2 kB\nHugePages_Total:       0\n";
    let expected = MemoryInfo {
        total: 24_682_416 * 1024,
        free: 21_429_984 * 1024,
        inactive_file: 40 * 1024,
        anonymous: 30 * 1024,
        cached: 2_551_616 * 1024,
        mapped: 20 * 1024,
        swap_total: 8 * 1024,
        swap_free: 2 * 1024,
    };
    assert_eq!(memory_info(text), expected);
    assert_eq!(memory_info("nothing"), MemoryInfo::default());
}

#[test]
fn interfaces_that_lead_out_are_counted() {
    let text = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0       0          0
  eth0: 140059161    7132    1    2    3     4          5         6   457445    4663    7    8    9     10      11         12
vethab:       1       1    0    0    0     0          0         0        0       0    0    0    0     0       0          0
";
    let expected = InterfaceCounters {
        name: "eth0".to_owned(),
        rx_bytes: 140_059_161,
        rx_packets: 7132,
        rx_errors: 1,
        rx_dropped: 2,
        tx_bytes: 457_445,
        tx_packets: 4663,
        tx_errors: 7,
        tx_dropped: 8,
    };
    assert_eq!(interfaces(text), [expected]);
    assert_eq!(interfaces("eth0: 1 2 3\n"), []);
}

#[test]
fn boot_time_tasks_and_devices_are_found_in_their_files() {
    let stat = "cpu  46536 0 9210\nintr 365221 0\nbtime 1794977065\nprocesses 12231\n";
    assert_eq!(boot_time(stat), Some(Timestamp::from_second(1_794_977_065).unwrap()));
    assert_eq!(boot_time("cpu 1"), None);
    assert_eq!(tasks("1.80 1.30 0.61 3/94 12228\n"), Some(94));
    assert_eq!(tasks("1.80"), None);
    let partitions = "major minor  #blocks  name\n\n 254        0   33554432 vda\n 254        1   33553408 vda1\n";
    let expected =
        BTreeMap::from([((254, 0), "/dev/vda".to_owned()), ((254, 1), "/dev/vda1".to_owned())]);
    assert_eq!(block_devices(partitions), expected);
}

#[test]
fn the_group_of_a_process_is_that_of_the_memory_controller_or_of_v2() {
    let rows = [
        ("9:pids:/a\n4:memory:/system.slice/x:y\n0::/unified\n", Some("/system.slice/x:y")),
        ("3:cpu,memory:/both\n0::/\n", Some("/both")),
        ("0::/user.slice\n", Some("/user.slice")),
        ("1:name=systemd:/a\n", None),
        ("", None),
    ];
    for (text, expected) in rows {
        assert_eq!(cgroup_of_process(text), expected, "{text:?}");
    }
}
