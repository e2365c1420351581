//! Findings about the machine: cgroups, kernel, disk, resolver, limits, names.

use std::collections::BTreeSet;

use oarsman_host::cgroups::CgroupLayout;

use super::super::{cgroups, disk, host, kernel, limits, permissions, ports, resolver, root, swap};
use super::{ExpectedFindings, assert_findings, node, run_mode};
use crate::check::facts::cgroups::CgroupFacts;
use crate::check::facts::disk::{DirectoryFacts, FreeSpace, MemoryFacts};
use crate::check::facts::kernel::KernelFacts;
use crate::check::facts::limits::LimitFacts;
use crate::check::facts::permissions::PermissionFacts;
use crate::check::facts::ports::{PortFacts, PortHolder};
use crate::check::facts::resolver::ResolverFacts;
use crate::check::facts::root::RootFacts;
use crate::check::finding::FindingSeverity::{Problem, Warning};
use crate::check::requirements::Requirements;
use crate::machine::swap::SwapDevice;

fn names(words: &str) -> BTreeSet<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn cgroups_must_be_there_whole_and_writable() {
    let all = "cpu cpuset memory pids hugetlb io";
    let rows: [(Option<CgroupLayout>, &str, &str, Requirements, ExpectedFindings<'_>); 8] = [
        (Some(CgroupLayout::V2), all, "", node(), &[]),
        (Some(CgroupLayout::V2), "cpu cpuset memory pids", "", node(), &[]),
        (None, "", "", run_mode(), &[(Problem, "none are mounted")]),
        (Some(CgroupLayout::V1), all, "", run_mode(), &[(Warning, "oarsman run takes it")]),
        (Some(CgroupLayout::Hybrid), all, "", node(), &[(Problem, "hybrid")]),
        (
            Some(CgroupLayout::V1),
            all,
            "",
            Requirements { fails_on_cgroup_v1: false, ..node() },
            &[],
        ),
        (
            Some(CgroupLayout::V2),
            "cpu cpuset pids",
            "",
            node(),
            &[(Problem, "no memory controller")],
        ),
        (
            Some(CgroupLayout::V2),
            all,
            "memory",
            node(),
            &[(Problem, "memory controller cannot be written")],
        ),
    ];
    for (layout, controllers, unwritable, requirements, want) in rows {
        let found =
            CgroupFacts { layout, controllers: names(controllers), unwritable: names(unwritable) };
        assert_findings(&cgroups::evaluate(&found, &requirements), want, &format!("{found:?}"));
    }
}

#[test]
fn swap_is_refused_by_kubelets_only() {
    let swaps = [SwapDevice { name: "/swapfile".to_owned(), kilobytes: 2 << 20 }];
    let rows: [(&[SwapDevice], Requirements, ExpectedFindings<'_>); 4] = [
        (&[], node(), &[]),
        (&swaps, node(), &[(Problem, "/swapfile (2048 MiB) is on")]),
        (&swaps, run_mode(), &[(Warning, "oarsman run takes it")]),
        (&swaps, Requirements { fails_on_swap: false, ..node() }, &[]),
    ];
    for (swaps, requirements, want) in rows {
        assert_findings(&swap::evaluate(swaps, &requirements), want, &format!("{swaps:?}"));
    }
}

fn root_held_by(holder: Option<&str>) -> RootFacts {
    RootFacts {
        path: "/var/lib/kubelet".into(),
        is_there: true,
        unwritable: None,
        holder: holder.map(str::to_owned),
        unshared_mount: None,
    }
}

#[test]
fn a_port_held_by_a_process_other_than_the_agent_is_a_problem() {
    let kubelet = || PortHolder::Process("kubelet".to_owned(), 12);
    let rows: [(PortHolder, Option<&str>, Requirements, ExpectedFindings<'_>); 5] = [
        (PortHolder::Free, None, node(), &[]),
        (kubelet(), None, node(), &[(Problem, "kubelet (process 12) listens at 10250")]),
        (kubelet(), None, run_mode(), &[(Warning, "oarsman run does not")]),
        (PortHolder::Unknown, None, node(), &[(Problem, "somebody listens at 10250")]),
        (kubelet(), Some("process 12"), node(), &[]),
    ];
    for (holder, agent, requirements, want) in rows {
        let found = [PortFacts { field: "port", number: 10250, holder }];
        let findings = ports::evaluate(&found, &root_held_by(agent), &requirements);
        assert_findings(&findings, want, &format!("{found:?}"));
    }
}

#[test]
fn a_root_directory_held_by_an_agent_is_ok() {
    let rows: [(RootFacts, ExpectedFindings<'_>); 5] = [
        (root_held_by(None), &[]),
        (root_held_by(Some("process 7")), &[]),
        (RootFacts { is_there: false, ..root_held_by(None) }, &[]),
        (
            RootFacts { unshared_mount: Some("/data".into()), ..root_held_by(None) },
            &[(Warning, "lies on the mount /data, which is not shared")],
        ),
        (
            RootFacts {
                unwritable: Some("/var: Read-only file system".to_owned()),
                ..root_held_by(None)
            },
            &[(Problem, "nothing can be written below /var/lib/kubelet: /var: Read-only")],
        ),
    ];
    for (found, want) in rows {
        assert_findings(&root::evaluate(&found), want, &format!("{found:?}"));
    }
    let living = root::evaluate(&root_held_by(Some("process 7")));
    assert!(living[0].what.contains("an agent lives in /var/lib/kubelet (process 7)"));
}

/// The facts of Debian 12 as installed, with br_netfilter loaded.
fn debian() -> KernelFacts {
    let settings = [
        ("net/ipv4/ip_forward", 1),
        ("net/bridge/bridge-nf-call-iptables", 1),
        ("vm/overcommit_memory", 0),
        ("vm/panic_on_oom", 0),
        ("kernel/panic", 0),
        ("kernel/panic_on_oops", 0),
        ("kernel/keys/root_maxkeys", 1_000_000),
        ("kernel/keys/root_maxbytes", 25_000_000),
    ];
    KernelFacts {
        release: "6.1.0-18-amd64".to_owned(),
        has_overlay: true,
        lacking: BTreeSet::new(),
        settings: settings.into(),
    }
}

#[test]
fn the_kernel_must_have_the_features_that_containers_need() {
    let with = |path, value| {
        let mut kernel = debian();
        kernel.settings.insert(path, value);
        kernel
    };
    let mut unbridged = debian();
    unbridged.settings.remove("net/bridge/bridge-nf-call-iptables");
    let protecting = Requirements { protects_kernel: true, ..node() };
    let rows: Vec<(KernelFacts, Requirements, ExpectedFindings<'_>)> = vec![
        (debian(), node(), &[]),
        (debian(), run_mode(), &[]),
        (KernelFacts { release: "6.18.5".to_owned(), ..debian() }, node(), &[]),
        (
            KernelFacts { release: "4.9.0-6-amd64".to_owned(), ..debian() },
            node(),
            &[(Warning, "Linux 4.9.0-6-amd64 is older")],
        ),
        (KernelFacts { has_overlay: false, ..debian() }, node(), &[(Warning, "overlay")]),
        (
            KernelFacts { lacking: ["cgroup", "pid"].into(), ..debian() },
            node(),
            &[(Problem, "no namespaces of these kinds: cgroup, pid")],
        ),
        (
            KernelFacts { release: "5.10.0-32-amd64".to_owned(), ..debian() },
            run_mode(),
            &[(Problem, "Linux 5.10.0-32-amd64 is older than what the embedded runtime needs")],
        ),
        (KernelFacts { release: "5.10.0-32-amd64".to_owned(), ..debian() }, node(), &[]),
        (with("net/ipv4/ip_forward", 0), node(), &[(Warning, "does not forward packets")]),
        (with("net/ipv4/ip_forward", 0), run_mode(), &[]),
        (with("net/bridge/bridge-nf-call-iptables", 0), node(), &[(Warning, "pass iptables by")]),
        (unbridged.clone(), node(), &[(Warning, "br_netfilter is not loaded")]),
        (unbridged, run_mode(), &[]),
        (
            debian(),
            protecting,
            &[
                (
                    Problem,
                    "vm.overcommit_memory is 0, and protectKernelDefaults forbids to make it 1",
                ),
                (Problem, "kernel.panic is 0"),
                (Problem, "kernel.panic_on_oops is 0"),
            ],
        ),
    ];
    for (found, requirements, want) in rows {
        assert_findings(&kernel::evaluate(&found, &requirements), want, &format!("{found:?}"));
    }
    let told = kernel::evaluate(&with("net/ipv4/ip_forward", 0), &run_mode());
    assert!(told.iter().any(|it| it.what.contains("switches net.ipv4.ip_forward on")), "{told:?}");
}

#[test]
fn root_needs_its_capabilities() {
    let rows: [(bool, &[&'static str], ExpectedFindings<'_>); 4] = [
        (true, &[], &[]),
        (false, &[], &[(Problem, "not root")]),
        (true, &["CAP_SYS_RESOURCE"], &[(Warning, "no oom_score_adj can be lowered")]),
        (
            true,
            &["CAP_SYS_ADMIN", "CAP_KILL", "CAP_SYS_RESOURCE"],
            &[(Problem, "root lacks CAP_KILL, CAP_SYS_ADMIN"), (Warning, "CAP_SYS_RESOURCE")],
        ),
    ];
    for (is_root, lacking, want) in rows {
        let found = PermissionFacts { is_root, lacking: lacking.iter().copied().collect() };
        assert_findings(&permissions::evaluate(&found), want, &format!("{found:?}"));
    }
}

const GIB: u64 = 1 << 30;

fn directory(bytes: FreeSpace, inodes: FreeSpace, options: &str) -> DirectoryFacts {
    DirectoryFacts {
        what: "root directory",
        path: "/var/lib/oarsman".into(),
        bytes,
        inodes,
        options: options.split(',').map(str::to_owned).collect(),
        mount_point: "/var".into(),
    }
}

#[test]
fn low_disk_space_and_restrictive_mount_options_are_found() {
    let plenty = FreeSpace { all: 100 * GIB, free: 50 * GIB };
    let inodes = FreeSpace { all: 1000, free: 900 };
    let rows: Vec<(DirectoryFacts, ExpectedFindings<'_>)> = vec![
        (directory(plenty, inodes, "rw"), &[]),
        (directory(plenty, FreeSpace::default(), "rw"), &[]),
        (
            directory(FreeSpace { free: 9 * GIB, ..plenty }, inodes, "rw"),
            &[(Warning, "9 % of the room and 90 % of the inodes are free")],
        ),
        (
            directory(plenty, FreeSpace { free: 40, ..inodes }, "rw"),
            &[(Warning, "4 % of the inodes")],
        ),
        (
            directory(plenty, FreeSpace { free: 0, ..inodes }, "rw"),
            &[(Problem, "0 % of the inodes")],
        ),
        (directory(FreeSpace { free: 99 << 20, ..plenty }, inodes, "rw"), &[(Problem, "99 MiB")]),
        (
            directory(plenty, inodes, "ro"),
            &[(Problem, "/var, for the root directory, is mounted read-only")],
        ),
        (
            directory(plenty, inodes, "rw,noexec,nodev"),
            &[(Warning, "nothing in an emptyDir can be executed"), (Warning, "nodev")],
        ),
    ];
    for (found, want) in rows {
        let found = [found];
        assert_findings(
            &disk::evaluate(&found, MemoryFacts::default()),
            want,
            &format!("{found:?}"),
        );
    }
    let scarce = directory(FreeSpace { free: GIB, ..plenty }, inodes, "rw");
    let both = [scarce.clone(), DirectoryFacts { what: "pod logs", ..scarce }];
    let want = [(Warning, "root directory /var/lib/oarsman: 1 %")];
    assert_findings(
        &disk::evaluate(&both, MemoryFacts::default()),
        &want,
        "one file system is told of once",
    );
    let logs = DirectoryFacts { what: "pod logs", ..directory(plenty, inodes, "rw,noexec,nodev") };
    assert_findings(
        &disk::evaluate(&[logs], MemoryFacts::default()),
        &[],
        "logs need not be executed",
    );
}

#[test]
fn low_memory_is_found() {
    let memory = |available| MemoryFacts { total: Some(4 * GIB), available: Some(available) };
    assert_findings(&disk::evaluate(&[], memory(GIB)), &[], "plenty");
    let want = [(Warning, "50 MiB of 4096 MiB are available")];
    assert_findings(&disk::evaluate(&[], memory(50 << 20)), &want, "little");
}

#[test]
fn pods_must_reach_their_name_servers() {
    let rows: [(Result<&[&str], &str>, ExpectedFindings<'_>); 6] = [
        (Ok(&["10.0.0.2"]), &[]),
        (Ok(&["127.0.0.1", "10.0.0.2"]), &[]),
        (Ok(&["127.0.0.53"]), &[(Warning, "names only 127.0.0.53")]),
        (
            Ok(&["1.0.0.1", "1.0.0.2", "1.0.0.3", "1.0.0.4"]),
            &[(Warning, "4 name servers, of which 3 count")],
        ),
        (Ok(&[]), &[(Warning, "names no name server")]),
        (
            Err("No such file"),
            &[(Warning, "cannot be read, so pods have no resolver: No such file")],
        ),
    ];
    for (servers, want) in rows {
        let servers = servers
            .map(|servers| servers.iter().map(|server| (*server).to_owned()).collect())
            .map_err(str::to_owned);
        let found = ResolverFacts { path: "/etc/resolv.conf".into(), servers };
        assert_findings(&resolver::evaluate(Some(&found)), want, &format!("{found:?}"));
    }
    assert_findings(&resolver::evaluate(None), &[], "none is wanted");
}

#[test]
fn low_limits_are_found() {
    let fine = LimitFacts {
        open_files: Some(20_000),
        inotify_instances: Some(128),
        inotify_watches: Some(8_192),
    };
    let rows: [(LimitFacts, ExpectedFindings<'_>); 4] = [
        (fine, &[]),
        (LimitFacts { open_files: None, inotify_instances: None, inotify_watches: None }, &[]),
        (LimitFacts { open_files: Some(1024), ..fine }, &[(Warning, "1024 files only")]),
        (
            LimitFacts { inotify_instances: Some(64), inotify_watches: Some(100), ..fine },
            &[(Warning, "max_user_instances is 64"), (Warning, "max_user_watches is 100")],
        ),
    ];
    for (found, want) in rows {
        assert_findings(&limits::evaluate(found), want, &format!("{found:?}"));
    }
}

#[test]
fn a_clock_that_was_never_set_is_found() {
    let rows: [(&str, ExpectedFindings<'_>); 2] = [
        ("1970-01-01T00:02:00Z", &[(Problem, "1970-01-01T00:02:00Z is in the past")]),
        ("2026-11-16T04:00:00Z", &[]),
    ];
    for (now, want) in rows {
        assert_findings(&[host::clock(now.parse().unwrap())], want, now);
    }
}

#[test]
fn a_host_name_must_be_a_valid_node_name() {
    let rows: [(&str, ExpectedFindings<'_>); 4] = [
        ("Node-1.example.com\n", &[]),
        ("web_1", &[(Problem, "\"web_1\" cannot be the name of a node")]),
        ("", &[(Problem, "cannot be the name of a node")]),
        ("-a", &[(Problem, "cannot be the name of a node")]),
    ];
    for (name, want) in rows {
        assert_findings(&[host::name(name)], want, name);
    }
}
