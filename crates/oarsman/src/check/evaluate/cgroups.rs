//! Checks that the cgroup controllers that limit pods are there.

use oarsman_host::cgroups::CgroupLayout;

use crate::check::facts::cgroups::CgroupFacts;
use crate::check::finding::Finding;
use crate::check::requirements::Requirements;

const CHECK: &str = "cgroups";
/// Without these a pod's limits do not hold.
const NEEDED: [&str; 4] = ["cpu", "cpuset", "memory", "pids"];
/// Only pods that use huge pages need this one.
const OPTIONAL: &str = "hugetlb";

pub(super) fn evaluate(cgroups: &CgroupFacts, requirements: &Requirements) -> Vec<Finding> {
    let Some(layout) = cgroups.layout else {
        return vec![Finding::problem(
            CHECK,
            "none are mounted",
            "mount -t cgroup2 none /sys/fs/cgroup",
        )];
    };
    let mut findings = vec![version(layout, requirements)];
    findings.extend(NEEDED.iter().filter_map(|name| controller(cgroups, layout, name)));
    if !cgroups.controllers.contains(OPTIONAL) {
        findings.push(Finding::ok(
            CHECK,
            "there is no hugetlb controller: huge pages are not limited, everything else is",
        ));
    }
    findings
}

fn version(layout: CgroupLayout, requirements: &Requirements) -> Finding {
    let name = match layout {
        CgroupLayout::V2 => return Finding::ok(CHECK, "version 2"),
        CgroupLayout::V1 => "version 1",
        CgroupLayout::Hybrid => "version 1, with a version 2 tree beside (hybrid)",
    };
    if !requirements.fails_on_cgroup_v1 {
        return Finding::ok(CHECK, format!("{name}, which the configuration allows"));
    }
    Finding::problem_if(
        requirements.is_node,
        CHECK,
        format!("{name}: oarsman run takes it, a kubelet refuses it by default"),
        "boot with systemd.unified_cgroup_hierarchy=1 on the kernel's command line, or write failCgroupV1: false into \
         the kubelet's configuration",
    )
}

fn controller(cgroups: &CgroupFacts, layout: CgroupLayout, name: &str) -> Option<Finding> {
    if !cgroups.controllers.contains(name) {
        return Some(Finding::problem(
            CHECK,
            format!("there is no {name} controller"),
            controller_fix(layout, name),
        ));
    }
    cgroups.unwritable.contains(name).then(|| {
        Finding::problem(
            CHECK,
            format!("the groups of the {name} controller cannot be written"),
            "run as root; in a container, start that with --privileged --cgroupns=host",
        )
    })
}

fn controller_fix(layout: CgroupLayout, name: &str) -> String {
    match (layout, name) {
        (_, "memory") => {
            "boot with cgroup_enable=memory on the kernel's command line (on a Raspberry Pi it stands in \
             /boot/firmware/cmdline.txt)"
                .to_owned()
        }
        (CgroupLayout::V2, _) => {
            format!("use a kernel with it, and see that cgroup_disable={name} is not on its command line (/proc/cmdline)")
        }
        (CgroupLayout::V1 | CgroupLayout::Hybrid, _) => {
            format!("mount -t cgroup -o {name} {name} /sys/fs/cgroup/{name} (make the directory first)")
        }
    }
}
