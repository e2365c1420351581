//! How groups are called.

use serde_json::json;

use super::super::names::{CgroupDriver, CgroupNames};
use super::{containers, pod};
use crate::ids::PodUid;
use crate::qos::QosClass;

const UID: &str = "8a1f-22";

#[test]
fn a_pod_s_group_stands_below_its_class() {
    use CgroupDriver::{Cgroupfs, Systemd};
    use QosClass::{BestEffort, Burstable, Guaranteed};
    let rows = [
        (Cgroupfs, "/", Guaranteed, "/kubepods/pod8a1f-22"),
        (Cgroupfs, "/", Burstable, "/kubepods/burstable/pod8a1f-22"),
        (Cgroupfs, "/", BestEffort, "/kubepods/besteffort/pod8a1f-22"),
        (Cgroupfs, "", BestEffort, "/kubepods/besteffort/pod8a1f-22"),
        (Cgroupfs, "/my-root", Burstable, "/my-root/kubepods/burstable/pod8a1f-22"),
        (Cgroupfs, "/a/b/", Guaranteed, "/a/b/kubepods/pod8a1f-22"),
        (Systemd, "/", Guaranteed, "/kubepods.slice/kubepods-pod8a1f_22.slice"),
        (
            Systemd,
            "/",
            Burstable,
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8a1f_22.slice",
        ),
        (
            Systemd,
            "/my-root",
            Guaranteed,
            "/my_root.slice/my_root-kubepods.slice/my_root-kubepods-pod8a1f_22.slice",
        ),
        (
            Systemd,
            "/a.slice/a-b.slice",
            Guaranteed,
            "/a.slice/a-b.slice/a-b-kubepods.slice/a-b-kubepods-pod8a1f_22.slice",
        ),
    ];
    for (driver, root, class, expected) in rows {
        let names = CgroupNames::new(driver, root);
        assert_eq!(names.pod(class, &PodUid::from(UID)), expected, "{driver:?} {root}");
    }
}

#[test]
fn the_groups_above_pods_have_names_too() {
    let rows = [
        (
            CgroupDriver::Cgroupfs,
            "/",
            ["/", "/kubepods", "/kubepods", "/kubepods/burstable", "/kubepods/besteffort"],
        ),
        (
            CgroupDriver::Systemd,
            "/x",
            [
                "/x.slice",
                "/x.slice/x-kubepods.slice",
                "/x.slice/x-kubepods.slice",
                "/x.slice/x-kubepods.slice/x-kubepods-burstable.slice",
                "/x.slice/x-kubepods.slice/x-kubepods-besteffort.slice",
            ],
        ),
    ];
    for (driver, root, expected) in rows {
        let names = CgroupNames::new(driver, root);
        let found = [vec![names.root(), names.all_pods()], names.parents().to_vec()].concat();
        assert_eq!(found, expected);
    }
}

#[test]
fn the_class_and_uid_of_a_pod_name_its_group() {
    let burstable = pod(&containers(&[json!({"requests": {"cpu": "1"}})]));
    let names = CgroupNames::new(CgroupDriver::Cgroupfs, "/");
    assert_eq!(names.of_pod(&burstable), "/kubepods/burstable/podu-1");
}

#[test]
fn the_name_of_a_cgroup_has_the_pod_uid() {
    use CgroupDriver::{Cgroupfs, Systemd};
    let rows = [
        (Cgroupfs, "pod8a1f-22", Some("8a1f-22")),
        (Cgroupfs, "pod0123456789abcdef0123456789abcdef", Some("0123456789abcdef0123456789abcdef")),
        (Cgroupfs, "pod", None),
        (Cgroupfs, "burstable", None),
        (Cgroupfs, "cri-containerd-8a1f", None),
        (Systemd, "kubepods-pod8a1f_22.slice", Some("8a1f-22")),
        (Systemd, "kubepods-burstable-pod8a1f_22.slice", Some("8a1f-22")),
        (Systemd, "a-b-kubepods-besteffort-pod8a1f_22.slice", Some("8a1f-22")),
        (Systemd, "kubepods-burstable.slice", None),
        (Systemd, "kubepods-pod8a1f_22", None),
        (Systemd, "cri-containerd-pod8a1f.scope", None),
        (Systemd, "kubepods-pod.slice", None),
    ];
    for (driver, directory, expected) in rows {
        let found = CgroupNames::new(driver, "/").pod_uid(directory);
        assert_eq!(found, expected.map(PodUid::from), "{directory}");
    }
}
