//! Who comes in, in which order, and who is in the way.

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
fn the_gate_sees_pods_as_they_are_wanted_now() {
    struct Labelled;
    impl AdmitHandler for Labelled {
        fn check(&self, _: &Pod, present: &[&Pod]) -> Result<(), Rejection> {
            let labels = present.iter().filter(|pod| pod.metadata.labels.is_some()).count();
            let message = format!("{labels} labelled");
            Err(Rejection { reason: "Seen".to_owned(), message })
        }
    }
    let mut admission = admission();
    admit(&mut admission, 1, [pod("1", 1)]);
    let mut changed = pod("1", 1);
    changed.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    admission.update(&Arc::new(changed));
    let got = admission.admit(vec![Arc::new(pod("2", 2))], &Labelled);
    assert_eq!(brief(&got[0]), "2 rejected: 1 labelled");
}

#[test]
fn an_update_of_a_pod_that_was_not_let_in_takes_no_room() {
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
