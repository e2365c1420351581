//! Which resources count as leaks, on made-up scans.

use super::*;

fn cgroup(group: &str) -> HostResource {
    HostResource::Cgroup { hierarchy: "memory".to_owned(), group: group.into() }
}

fn file(path: &str) -> HostResource {
    HostResource::File { path: path.into() }
}

fn leaks(before: &[HostResource], after: &[HostResource]) -> Vec<HostResource> {
    let set = |things: &[HostResource]| things.iter().cloned().collect();
    leaked(&set(before), &set(after), "oarsman-rig-abc")
}

#[test]
fn a_new_cgroup_is_a_leak_unless_it_belongs_to_another_run() {
    let before = [cgroup("/process_api"), cgroup("/oarsman-rig-abc-1")];
    let rows = [
        ("/kubepods", true),
        ("/kubepods/pod1", true),
        ("/process_api/f00", false),
        ("/process_api", false),
        ("/oarsman-rig-abc-1", false),
        ("/oarsman-rig-abc-1/pod1", true),
        ("/oarsman-rig-abc-2", true),
        ("/oarsman-rig-xyz-1", false),
        ("/oarsman-rig-xyz-1/pod1", false),
        ("/oarsman-var-lib-oarsman/kubepods", false),
        ("/oarsman-var-lib-other", true),
        ("/oarsman-test-runtime-1/pod", false),
    ];
    for (group, counts) in rows {
        let after = [&before[..], &[cgroup(group)]].concat();
        let expected = if counts { vec![cgroup(group)] } else { vec![] };
        assert_eq!(leaks(&before, &after), expected, "{group}");
    }
}

#[test]
fn a_group_known_in_one_hierarchy_is_new_in_another() {
    let elsewhere = HostResource::Cgroup { hierarchy: "cpu".to_owned(), group: "/x".into() };
    let before = [cgroup("/x")];
    assert_eq!(leaks(&before, &[cgroup("/x"), elsewhere.clone()]), [elsewhere]);
}

#[test]
fn of_a_new_tree_of_files_the_top_is_named() {
    let before = [file("/logs")];
    let after = [file("/logs"), file("/logs/a"), file("/logs/a/b"), file("/logs/a/b/c")];
    assert_eq!(leaks(&before, &after), [file("/logs/a")]);
}

#[test]
fn what_is_gone_is_no_leak() {
    assert_eq!(leaks(&[file("/a"), cgroup("/b")], &[]), []);
}

#[test]
fn resources_are_printed_with_their_kind() {
    let rows = [
        (cgroup("/a/b"), "cgroup /a/b (memory)"),
        (file("/a b"), "file /a b"),
        (HostResource::Process { pid: 7, command: "sleep 9".to_owned() }, "process 7 (sleep 9)"),
        (
            HostResource::Mount { point: "/mnt".into(), fs_type: "tmpfs".to_owned(), id: 9 },
            "mount /mnt (tmpfs)",
        ),
    ];
    for (thing, text) in rows {
        assert_eq!(thing.to_string(), text);
    }
}
