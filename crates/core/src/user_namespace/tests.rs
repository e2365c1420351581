//! Ranges that never overlap, and the file that keeps them.

use proptest::prelude::*;

use super::*;

fn settings(ids_per_pod: u32, max_pods: u32) -> UserNamespaceSettings {
    UserNamespaceSettings::new(ids_per_pod, max_pods)
}

fn pod(number: u32) -> PodUid {
    PodUid::from(number.to_string())
}

#[test]
fn ids_are_given_from_65536_upward_kept_and_given_again() {
    let mut ids = AllocatedIds::new(settings(65536, 3));
    let first: Vec<u32> =
        (0..3).map(|number| ids.get_or_allocate(&pod(number)).unwrap().first).collect();
    assert_eq!(first, [65536, 131_072, 196_608]);
    assert_eq!(ids.get_or_allocate(&pod(1)).unwrap().first, 131_072, "it keeps what it has");
    let said = ids.get_or_allocate(&pod(3)).unwrap_err().to_string();
    assert!(said.ends_with("3 pods have 65536 each"), "{said}");
    ids.release(&pod(1));
    assert_eq!(ids.get_or_allocate(&pod(3)).unwrap().first, 131_072);
    assert_eq!(ids.get(&pod(1)), None);
}

#[test]
fn what_a_pod_had_before_is_given_to_no_other_whatever_its_length() {
    let mut ids = AllocatedIds::new(settings(65536, 110));
    ids.record(pod(1), HostIds { first: 65536, length: 3 * 65536 });
    ids.record(pod(2), HostIds { first: 5 * 65536, length: 65536 });
    assert_eq!(ids.get_or_allocate(&pod(3)).unwrap().first, 4 * 65536);
    assert_eq!(ids.get_or_allocate(&pod(4)).unwrap().first, 6 * 65536);
}

#[test]
fn agents_beside_each_other_have_other_ids() {
    let first = |root: &str| {
        let mut ids = AllocatedIds::new(UserNamespaceSettings::of_root(root, 110));
        let all = (0..110).map(|number| ids.get_or_allocate(&pod(number)).unwrap());
        let all: Vec<HostIds> = all.collect();
        assert!(all.iter().all(|ids| ids.first >= 1 << 26), "{root}: below are those of kubelets");
        all[0].first
    };
    let roots = ["/run/a", "/run/b", "/home/rower/.local/share/oarsman"];
    let firsts: std::collections::BTreeSet<u32> = roots.into_iter().map(first).collect();
    assert_eq!(firsts.len(), roots.len());
}

#[test]
fn the_runtime_gets_one_range_for_users_and_groups() {
    let namespace = HostIds { first: 131_072, length: 65536 }.user_namespace();
    assert_eq!(namespace.mode(), NamespaceMode::Pod);
    assert_eq!(namespace.uids, [IdMapping { host_id: 131_072, container_id: 0, length: 65536 }]);
    assert_eq!(namespace.uids, namespace.gids);
}

#[test]
fn the_file_is_that_of_the_go_kubelet() {
    let ids = HostIds { first: 65536, length: 65536 };
    let text = r#"{"uidMappings":[{"hostId":65536,"containerId":0,"length":65536}],"gidMappings":[{"hostId":65536,"containerId":0,"length":65536}]}"#;
    assert_eq!(mappings_file(ids), text);
    assert_eq!(parse_mappings_file(text), Ok(ids));
}

#[test]
fn a_file_that_could_be_the_nodes_own_ids_is_refused() {
    let range = |host: u64, container: u64, length: u64| {
        format!(r#"{{"hostId":{host},"containerId":{container},"length":{length}}}"#)
    };
    let file =
        |uids: &str, gids: &str| format!(r#"{{"uidMappings":[{uids}],"gidMappings":[{gids}]}}"#);
    let good = range(65536, 0, 65536);
    let both = |one: &str| file(one, one);
    let rows = [
        (both(&good), true),
        (both(&range(u64::from(u32::MAX) - 65535, 0, 65536)), true),
        (both(&range(0, 0, 65536)), false),
        (both(&range(1, 0, 65536)), false),
        (both(&range(65537, 0, 65536)), false),
        (both(&range(65536, 1, 65536)), false),
        (both(&range(65536, 0, 0)), false),
        (both(&range(65536, 0, 1000)), false),
        (both(&range(u64::from(u32::MAX) - 65535, 0, 131_072)), false),
        (both(&range(1 << 32, 0, 65536)), false),
        (file(&good, &range(131_072, 0, 65536)), false),
        (file(&good, ""), false),
        (file("", ""), false),
        (both(&format!("{good},{good}")), false),
        (String::new(), false),
        ("{}".to_owned(), false),
        ("null".to_owned(), false),
    ];
    for (text, is_good) in rows {
        assert_eq!(parse_mappings_file(&text).is_ok(), is_good, "{text}");
    }
}

proptest! {
    /// Whatever comes and goes, no two pods share an id, none has an id of the node, and every file reads back.
    #[test]
    fn no_two_pods_ever_share_an_id(
        steps in prop::collection::vec((0u32..40, any::<bool>(), 1u32..8), 1..120),
        ids_per_pod in (1u32..4).prop_map(|count| count * 65536),
        max_pods in 1u32..30,
    ) {
        let mut ids = AllocatedIds::new(settings(ids_per_pod, max_pods));
        for (number, comes, recorded) in steps {
            match comes {
                false => ids.release(&pod(number)),
                true if number > 35 => {
                    let before = HostIds { first: recorded * 65536, length: 65536 };
                    if ids.get(&pod(number)).is_none() && !ids.is_taken(before) {
                        ids.record(pod(number), before);
                    }
                }
                true => drop(ids.get_or_allocate(&pod(number))),
            }
            let all: Vec<HostIds> = ids.by_pod.values().copied().collect();
            for (index, one) in all.iter().enumerate() {
                prop_assert!(one.first >= FIRST_ID);
                prop_assert_eq!(parse_mappings_file(&mappings_file(*one)), Ok(*one));
                prop_assert!(all[index + 1..].iter().all(|other| !one.overlaps(*other)));
            }
        }
    }
}
