//! Which pods are admitted, in which order, and beside which others.

use super::*;

#[test]
fn the_oldest_is_asked_first_and_static_pods_before_all() {
    let pods = [pod("young", 30), pod("old", 10), from_file("static", "s"), pod("middle", 20)];
    let want =
        ["static admitted", "old admitted", "middle admitted", "young rejected: 3 are there"];
    assert_eq!(admit(&mut admission(), 3, pods), want);
}

#[test]
fn pods_of_one_second_come_in_the_order_of_their_names() {
    let named = |uid, name: &str| {
        let mut pod = pod(uid, 10);
        pod.metadata.name = Some(name.to_owned());
        pod
    };
    let pods = [named("1", "b"), named("2", "a"), named("3", "a")];
    let want = ["2 admitted", "3 admitted", "1 admitted"];
    assert_eq!(admit(&mut admission(), 9, pods), want);
}

#[test]
fn room_is_taken_until_a_pod_has_stopped() {
    let mut admission = admission();
    assert_eq!(admit(&mut admission, 1, [pod("1", 1)]), ["1 admitted"]);
    assert_eq!(admit(&mut admission, 1, [pod("2", 2)]), ["2 rejected: 1 are there"]);
    admission.free_resources(&"1".into());
    assert_eq!(
        admit(&mut admission, 1, [pod("3", 3)]),
        ["3 admitted"],
        "a rejected one takes none"
    );
}

#[test]
fn a_pod_that_is_admitted_again_is_not_counted_twice() {
    let mut admission = admission();
    admit(&mut admission, 1, [pod("1", 1)]);
    assert_eq!(admit(&mut admission, 1, [pod("1", 1)]), ["1 admitted"]);
}

#[test]
fn pods_on_their_way_out_are_not_asked() {
    let mut deleted = pod("deleted", 1);
    deleted.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    let failed = in_phase(pod("failed", 2), "Failed");
    let completed = in_phase(pod("completed", 3), "Succeeded");
    let mut admission = admission();
    let want = ["deleted admitted", "failed admitted", "completed admitted"];
    assert_eq!(admit(&mut admission, 0, [deleted, failed, completed]), want);
    let next = admit(&mut admission, 1, [pod("1", 4)]);
    assert_eq!(next, ["1 rejected: 1 are there"], "only the deleted one may still run");
}

#[test]
fn the_admit_handler_sees_pods_as_they_are_wanted_now() {
    struct Labelled;
    impl AdmitHandler for Labelled {
        fn admit(&self, attributes: &PodAdmitAttributes<'_>) -> Result<(), AdmitRefusal> {
            let labels =
                attributes.others.iter().filter(|pod| pod.metadata.labels.is_some()).count();
            Err(Rejection::new("Seen", format!("{labels} labelled")).into())
        }
    }
    let mut admission = admission();
    admit(&mut admission, 1, [pod("1", 1)]);
    let mut changed = pod("1", 1);
    changed.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    admission.update(&Arc::new(changed));
    let got =
        admission.admit(vec![Arc::new(pod("2", 2))], &cx(&Labelled, &AdmissionNode::default()));
    assert_eq!(brief(&got[0]), "2 rejected: 1 labelled");
}

#[test]
fn an_update_of_a_pod_that_was_not_admitted_takes_no_room() {
    let mut admission = admission();
    admit(&mut admission, 0, [pod("1", 1)]);
    admission.update(&Arc::new(pod("1", 1)));
    assert!(admission.is_empty());
}

#[test]
fn a_rejection_becomes_the_failure_in_the_status() {
    let rejection = Rejection { reason: "OutOfcpu".to_owned(), message: "too big".to_owned() };
    let failure = PodFailure::from(rejection);
    assert_eq!(
        (failure.reason.as_str(), failure.message.as_str()),
        ("OutOfcpu", "Pod was rejected: too big")
    );
}

#[test]
fn a_rejection_is_an_event_with_its_reason_and_message() {
    let rejection = Rejection { reason: "OutOfcpu".to_owned(), message: "too big".to_owned() };
    let expected = PodEvent::warning("OutOfcpu", "too big");
    assert_eq!(rejection.event(), expected);
}

/// Admits one pod on a node.
fn admit_on(
    admission: &mut PodAdmission,
    node: &AdmissionNode,
    pods: impl IntoIterator<Item = Pod>,
) -> Vec<String> {
    let pods = pods.into_iter().map(Arc::new).collect();
    let handlers = NodeAdmitHandlers::default();
    admission.admit(pods, &cx(&handlers, node)).iter().map(brief).collect()
}

#[test]
fn a_pod_that_ran_before_is_counted_first_and_not_asked() {
    let (mut admission, node) = (admission(), AdmissionNode::default());
    let pods = [pod("old", 10), pod("running", 20)].map(Arc::new).to_vec();
    let context = AdmitContext {
        handler: &Capacity(1),
        node: &node,
        ran_before: &|pod| pod.uid().as_str() == "running",
    };
    let results: Vec<String> = admission.admit(pods, &context).iter().map(brief).collect();
    assert_eq!(results, ["running admitted", "old rejected: 1 are there"]);
    let more = vec![Arc::new(pod("running-too", 5))];
    let context = AdmitContext { handler: &Capacity(0), ran_before: &|_| true, ..context };
    assert_eq!(brief(&admission.admit(more, &context)[0]), "running-too admitted", "full or not");
}

#[test]
fn a_critical_pod_waits_until_its_victims_have_stopped_and_its_room_is_kept_meanwhile() {
    let (mut admission, node) = (admission(), node(&[("pods", "9"), ("cpu", "2")]));
    let small = |uid, created| requesting(pod(uid, created), &[("cpu", "1")]);
    let pods = [small("a", 1), small("b", 2)];
    assert_eq!(admit_on(&mut admission, &node, pods), ["a admitted", "b admitted"]);
    let big = critical(requesting(pod("big", 3), &[("cpu", "2")]));
    assert_eq!(admit_on(&mut admission, &node, [big]), ["big preempts [b a]"]);
    let late = admit_on(&mut admission, &node, [small("late", 4)]);
    assert!(
        late[0].starts_with("late rejected: Node didn't have enough resource: cpu"),
        "{late:?}"
    );
    assert!(admission.free_resources(&"a".into()).is_empty());
    let ready: Vec<String> = admission.free_resources(&"b".into()).iter().map(brief).collect();
    assert_eq!(ready, ["big admitted"]);
    assert!(admission.free_resources(&"big".into()).is_empty() && admission.is_empty());
}

#[test]
fn the_room_of_a_victim_is_promised_only_once_and_what_is_left_of_it_is_for_others() {
    let (mut admission, node) = (admission(), node(&[("pods", "9"), ("cpu", "4")]));
    let of = |uid, created, cpu| requesting(pod(uid, created), &[("cpu", cpu)]);
    admit_on(&mut admission, &node, [of("victim", 1, "3"), of("other", 2, "1")]);
    let first = critical(of("first", 3, "1"));
    assert_eq!(admit_on(&mut admission, &node, [first]), ["first preempts [other]"]);
    let second = critical(of("second", 4, "2"));
    assert_eq!(admit_on(&mut admission, &node, [second]), ["second preempts [victim]"]);
    let third = of("third", 5, "1");
    assert_eq!(admit_on(&mut admission, &node, [third]), ["third preempts []"], "it waits, too");
    let ready = |admission: &mut PodAdmission, uid: &str| -> Vec<String> {
        admission.free_resources(&uid.into()).iter().map(brief).collect()
    };
    assert_eq!(ready(&mut admission, "other"), ["first admitted"]);
    assert_eq!(ready(&mut admission, "victim"), ["second admitted", "third admitted"]);
}

#[test]
fn a_pod_that_waits_for_room_can_itself_be_preempted_removed_or_admitted_early() {
    let (mut admission, node) = (admission(), node(&[("pods", "9"), ("cpu", "3")]));
    let of = |uid, created, cpu| requesting(pod(uid, created), &[("cpu", cpu)]);
    admit_on(&mut admission, &node, [of("victim", 1, "3")]);
    admit_on(&mut admission, &node, [critical(of("first", 2, "1"))]);
    assert_eq!(admit_on(&mut admission, &node, [of("waits", 3, "2")]), ["waits preempts []"]);
    let second = critical(of("second", 4, "2"));
    let results = admit_on(&mut admission, &node, [second]);
    let preempted = "waits rejected: Preempted in order to admit critical pod";
    assert_eq!(results, [preempted, "second preempts []"]);
    assert!(admission.remove_pending(&"first".into()), "it was not started yet");
    admission.release_name(&"first".into(), &cx(&Capacity(0), &node));
    let early = admission.stop_waiting_for_room(&"second".into());
    assert_eq!(early.as_ref().map(brief).as_deref(), Some("second admitted"));
    assert_eq!(admission.stop_waiting_for_room(&"second".into()), None, "only once");
    assert!(admission.free_resources(&"victim".into()).is_empty());
}

#[test]
fn a_pod_that_only_labels_are_against_is_asked_again_with_a_fresh_node() {
    let mut admission = admission();
    let mut watched = node(&[("pods", "9")]);
    watched.object_state = NodeObjectState::Watched;
    let mut selective = pod("1", 1);
    let selector = [("disk".to_owned(), "ssd".to_owned())];
    selective.spec.get_or_insert_default().node_selector = Some(selector.clone().into());
    assert_eq!(admit_on(&mut admission, &watched, [selective.clone()]), ["1 needs the node"]);
    let handlers = NodeAdmitHandlers::default();
    let with = AdmissionNode {
        labels: selector.into(),
        object_state: NodeObjectState::Fresh,
        ..watched.clone()
    };
    let again = admission.ask_again(&cx(&handlers, &with));
    assert_eq!(again.iter().map(brief).collect::<Vec<_>>(), ["1 admitted"]);
    selective.metadata.uid = Some("2".to_owned());
    admit_on(&mut admission, &watched, [selective]);
    let without = AdmissionNode { object_state: NodeObjectState::Fresh, ..watched };
    let again = admission.ask_again(&cx(&handlers, &without));
    let failed = "2 rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
    assert_eq!(again.iter().map(brief).collect::<Vec<_>>(), [failed]);
}
