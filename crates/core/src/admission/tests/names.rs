//! Static pods of one name.

use proptest::prelude::*;

use super::*;

#[test]
fn static_pods_of_one_name_go_one_after_the_other() {
    let mut admission = admission();
    let web = |uid| [from_file(uid, "web")];
    assert_eq!(admit(&mut admission, 9, web("1")), ["1 admitted"]);
    assert_eq!(admit(&mut admission, 9, web("2")), ["2 waits"]);
    assert_eq!(admit(&mut admission, 9, web("3")), ["3 waits"]);
    assert_eq!(admit(&mut admission, 9, [from_file("4", "db")]), ["4 admitted"], "another name");
    admission.free_resources(&"1".into());
    assert_eq!(admit(&mut admission, 9, web("5")), ["5 waits"], "stopped is not finished");
    assert_eq!(finish(&mut admission, 9, "1").as_deref(), Some("2 admitted"));
    assert_eq!(finish(&mut admission, 9, "4"), None);
    assert_eq!(finish(&mut admission, 9, "2").as_deref(), Some("3 admitted"));
    assert_eq!(finish(&mut admission, 9, "3").as_deref(), Some("5 admitted"));
    assert_eq!(finish(&mut admission, 9, "5"), None);
    assert!(admission.is_empty());
}

#[test]
fn pods_of_the_api_do_not_wait_for_their_name() {
    let mut admission = admission();
    let namesake = |uid| {
        let mut pod = pod(uid, 1);
        pod.metadata.name = Some("web".to_owned());
        pod
    };
    let got = admit(&mut admission, 9, [namesake("1"), namesake("2"), from_file("3", "web")]);
    assert_eq!(got, ["3 admitted", "1 admitted", "2 admitted"]);
}

#[test]
fn a_pod_is_measured_only_when_its_predecessor_has_made_room() {
    let mut admission = admission();
    admit(&mut admission, 1, [from_file("1", "web")]);
    assert_eq!(admit(&mut admission, 1, [from_file("2", "web")]), ["2 waits"]);
    assert_eq!(finish(&mut admission, 1, "1").as_deref(), Some("2 admitted"));
}

#[test]
fn a_rejected_pod_has_its_name_until_its_worker_is_through() {
    let mut admission = admission();
    assert_eq!(admit(&mut admission, 0, [from_file("1", "web")]), ["1 rejected: 0 are there"]);
    assert_eq!(admit(&mut admission, 9, [from_file("2", "web")]), ["2 waits"]);
    assert_eq!(finish(&mut admission, 9, "1").as_deref(), Some("2 admitted"));
}

#[test]
fn a_pod_that_is_withdrawn_while_it_waits_is_never_started() {
    let mut admission = admission();
    admit(&mut admission, 9, [from_file("1", "web")]);
    admit(&mut admission, 9, [from_file("2", "web")]);
    assert!(admission.remove_waiting(&"2".into()));
    assert!(!admission.remove_waiting(&"2".into()), "no longer in line");
    assert!(!admission.remove_waiting(&"1".into()), "this one has a worker");
    assert_eq!(finish(&mut admission, 9, "1"), None);
    assert!(admission.is_empty());
}

#[test]
fn a_pod_that_waits_is_started_as_it_is_wanted_by_then() {
    let mut admission = admission();
    admit(&mut admission, 9, [from_file("1", "web")]);
    admit(&mut admission, 9, [from_file("2", "web")]);
    let newer = Arc::new(in_phase(from_file("2", "web"), "Pending"));
    admission.update(&newer);
    let (handler, node) = (Capacity(9), AdmissionNode::default());
    let next = admission.release_name(&"1".into(), &cx(&handler, &node));
    assert_eq!(next, [PodAdmitResult::Admitted(newer)]);
}

#[test]
fn a_pod_that_comes_back_is_queued_behind_the_waiting_pods() {
    let mut admission = admission();
    admit(&mut admission, 9, [from_file("1", "web")]);
    admit(&mut admission, 9, [from_file("2", "web")]);
    assert_eq!(finish(&mut admission, 9, "1").as_deref(), Some("2 admitted"));
    assert_eq!(admit(&mut admission, 9, [from_file("1", "web")]), ["1 waits"]);
    assert_eq!(finish(&mut admission, 9, "2").as_deref(), Some("1 admitted"));
}

/// UIDs and the name that goes with each.
const PODS: [(&str, &str); 5] =
    [("1", "web"), ("2", "web"), ("3", "web"), ("4", "db"), ("5", "db")];

/// The admission of static pods beside a simple model of it.
struct Model {
    admission: PodAdmission,
    at_work: Vec<(&'static str, &'static str)>,
    waiting: Vec<(&'static str, &'static str)>,
}

impl Model {
    fn arrives(&mut self, pod: (&'static str, &'static str)) {
        let got = admit(&mut self.admission, 9, [from_file(pod.0, pod.1)]);
        let holder = self.at_work.iter().find(|(_, name)| *name == pod.1);
        if holder.is_none_or(|holder| *holder == pod) {
            assert_eq!(got, [format!("{} admitted", pod.0)]);
            self.at_work.retain(|other| *other != pod);
            self.at_work.push(pod);
        } else {
            assert_eq!(got, [format!("{} waits", pod.0)]);
            let is_new = !self.waiting.contains(&pod);
            self.waiting.extend(is_new.then_some(pod));
        }
    }

    fn finishes(&mut self, pod: (&'static str, &'static str)) {
        let Some(index) = self.at_work.iter().position(|other| *other == pod) else { return };
        self.at_work.remove(index);
        let next = self.waiting.iter().position(|(_, name)| *name == pod.1);
        let next = next.map(|index| self.waiting.remove(index));
        self.at_work.extend(next);
        let want = next.map(|(uid, _)| format!("{uid} admitted"));
        assert_eq!(finish(&mut self.admission, 9, pod.0), want);
    }

    fn is_withdrawn(&mut self, pod: (&'static str, &'static str)) {
        let waits = self.waiting.contains(&pod);
        self.waiting.retain(|other| *other != pod);
        assert_eq!(self.admission.remove_waiting(&pod.0.into()), waits);
    }
}

proptest! {
    #[test]
    fn a_name_has_one_pod_at_a_time_and_no_waiting_pod_is_lost(
        doings in proptest::collection::vec((0..3, 0..PODS.len()), 0..40),
    ) {
        let mut model = Model { admission: admission(), at_work: Vec::new(), waiting: Vec::new() };
        for (what, pod) in doings {
            match what {
                0 => model.arrives(PODS[pod]),
                1 => model.finishes(PODS[pod]),
                _ => model.is_withdrawn(PODS[pod]),
            }
        }
        while let Some(pod) = model.at_work.first().copied() {
            model.finishes(pod);
        }
        prop_assert!(model.waiting.is_empty());
        prop_assert!(model.admission.is_empty());
    }
}
