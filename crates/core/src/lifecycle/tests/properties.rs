//! What holds for every pod, whatever happens to it.

use proptest::prelude::*;

use super::*;

/// Something that happens to the pod, or to the work under way.
#[derive(Clone, Debug)]
enum Occurrence {
    Event(Event),
    WorkEnds(WorkEnd),
    TimePasses(u64),
}

/// How the work under way ends, whichever it is.
#[derive(Clone, Copy, Debug)]
enum WorkEnd {
    Succeeds,
    Fails,
    EndsOtherwise,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Job {
    Read,
    Sync,
    Kill,
    Leftovers,
    Release,
    Record,
    Cleanup,
}

impl Job {
    fn done(self, answer: WorkEnd, now: Mono) -> Event {
        let error = || "no luck".to_owned();
        let plain = |answer| match answer {
            WorkEnd::Succeeds => Ok(()),
            WorkEnd::Fails | WorkEnd::EndsOtherwise => Err(error()),
        };
        match (self, answer) {
            (Self::Read, answer) => {
                Event::ReadDone(plain(answer).map(|()| now.0.as_secs().is_multiple_of(2)))
            }
            (Self::Sync, WorkEnd::Succeeds) => synced(SyncOutcome::Ok),
            (Self::Sync, WorkEnd::Fails) => synced(SyncOutcome::Failed(error())),
            (Self::Sync, WorkEnd::EndsOtherwise) => match now.0.as_secs() % 5 {
                0 => synced(SyncOutcome::CgroupGone),
                1 => synced(SyncOutcome::NetworkNotReady),
                2 => synced(SyncOutcome::Terminal),
                3 => synced(SyncOutcome::Cancelled),
                _ => synced(SyncOutcome::BackOff { until: now }),
            },
            (Self::Kill | Self::Leftovers, WorkEnd::Succeeds) => killed(),
            (Self::Kill | Self::Leftovers, WorkEnd::Fails) => {
                Event::KillDone(KillOutcome::Failed(error()))
            }
            (Self::Kill | Self::Leftovers, WorkEnd::EndsOtherwise) => {
                Event::KillDone(KillOutcome::StillRunning)
            }
            (Self::Release, answer) => Event::ReleaseDone(plain(answer)),
            (Self::Record, answer) => Event::RecordDone(plain(answer)),
            (Self::Cleanup, answer) => Event::CleanupDone(plain(answer)),
        }
    }
}

/// A pod worker that keeps its part of the contract, and checks the state machine's part at every step.
struct WorkerModel {
    state: State,
    now: Mono,
    job: Option<Job>,
    timer: Option<Mono>,
    held: bool,
    /// Whether the source dropped the pod once: it gets no second life from the same worker.
    dropped: bool,
    forgotten: bool,
    graces: Vec<Grace>,
}

impl WorkerModel {
    fn begin(how: WorkerStart) -> Self {
        let held = how != WorkerStart::Orphan;
        let (state, effects) = begin(how);
        let (now, graces) = (second(0), Vec::new());
        let (dropped, forgotten) = (!held, false);
        let mut worker =
            Self { state, now, job: None, timer: None, held, dropped, forgotten, graces };
        worker.carry_out(effects);
        worker
    }

    fn apply(&mut self, occurrence: Occurrence) {
        match occurrence {
            Occurrence::Event(event) => self.tell(event),
            Occurrence::WorkEnds(answer) => self.finish_job(answer),
            Occurrence::TimePasses(seconds) => self.pass(Duration::from_secs(seconds)),
        }
    }

    fn finish_job(&mut self, answer: WorkEnd) {
        if let Some(job) = self.job.take() {
            self.tell(job.done(answer, self.now));
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        if self.timer.is_some_and(|at| at <= self.now) {
            self.timer = None;
            self.tell(Event::Wake);
        }
    }

    fn tell(&mut self, event: Event) {
        match event {
            Event::Wanted(_) => self.held = true,
            Event::Removed => (self.held, self.dropped) = (false, true),
            _ => {}
        }
        if self.forgotten {
            return;
        }
        let before = self.state.stage();
        let (state, effects) = step(self.state.clone(), event, &context(self.now));
        assert!(state.stage() >= before, "went back from {before:?} to {:?}", state.stage());
        self.state = state;
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.check(&effect);
            match effect {
                Effect::StartRead { .. } => self.start(Job::Read),
                Effect::StartSync { .. } => self.start(Job::Sync),
                Effect::StartKill { .. } => self.start(Job::Kill),
                Effect::StartKillLeftovers { .. } => self.start(Job::Leftovers),
                Effect::StartRelease(_) => self.start(Job::Release),
                Effect::StartRecord => self.start(Job::Record),
                Effect::StartCleanup => self.start(Job::Cleanup),
                Effect::Forget => self.forgotten = true,
                Effect::WakeAt(at) => self.timer = Some(at),
                _ => {}
            }
        }
        self.check_something_is_pending();
    }

    fn start(&mut self, job: Job) {
        assert_eq!(self.job, None, "{job:?} was started beside other work");
        self.job = Some(job);
    }

    fn check(&mut self, effect: &Effect) {
        match effect {
            Effect::StartSync { .. } => {
                assert_eq!(self.state.stage(), Stage::Syncing, "a sync of a pod that goes");
                assert!(!self.dropped, "a sync of a pod that its source dropped");
            }
            Effect::StartKill { grace, why, .. } if *why != KillReason::CgroupGone => {
                self.graces.push(*grace);
            }
            Effect::ShortenKill { grace } => self.graces.push(*grace),
            Effect::StartCleanup => assert!(self.dropped, "a clean-up of a pod that is held"),
            Effect::Forget => assert_eq!(self.job, None, "forgotten while work is under way"),
            Effect::CancelSync => assert_eq!(self.job, Some(Job::Sync), "no sync to cancel"),
            Effect::Publish { termination, .. } if *termination > TerminationStage::Terminating => {
                assert_ne!(self.job, Some(Job::Kill), "a terminal status while something runs");
            }
            _ => {}
        }
        if let Effect::ShortenKill { .. } = effect {
            assert_eq!(self.job, Some(Job::Kill), "no kill to shorten");
        }
    }

    fn check_something_is_pending(&self) {
        let waits = self.job.is_some() || self.timer.is_some_and(|at| at >= self.now);
        let kept = self.state.stage() == Stage::Finished && !self.dropped;
        assert!(waits || kept || self.forgotten, "nothing will ever wake {:?}", self.state);
        let rests = self.state.waiting().map(Waiting::until);
        assert!(rests.is_none() || self.timer <= rests, "overslept in {:?}", self.state);
    }
}

fn pods() -> impl Strategy<Value = Pod> {
    prop_oneof![
        6 => Just(web()),
        2 => (0i64..40).prop_map(deleted),
        1 => Just(in_phase(web(), "Failed")),
    ]
}

fn occurrences() -> impl Strategy<Value = Occurrence> {
    let told = prop_oneof![
        4 => pods().prop_map(wanted),
        1 => Just(Event::Removed),
        1 => proptest::option::of(-1i64..60).prop_map(evict),
        4 => Just(Event::Hint(Hint::Runtime)),
        1 => Just(Event::Wake),
    ];
    let answered =
        prop_oneof![Just(WorkEnd::Succeeds), Just(WorkEnd::Fails), Just(WorkEnd::EndsOtherwise)];
    prop_oneof![
        3 => told.prop_map(Occurrence::Event),
        3 => answered.prop_map(Occurrence::WorkEnds),
        2 => (0u64..70).prop_map(Occurrence::TimePasses),
    ]
}

fn worker_starts() -> impl Strategy<Value = WorkerStart> {
    let failure = || PodFailure::rejected("OutOfcpu", "too big");
    prop_oneof![
        4 => pods().prop_map(|pod| WorkerStart::Wanted(Arc::new(pod))),
        2 => pods().prop_map(|pod| WorkerStart::Wanted(Arc::new(from_file(pod)))),
        1 => pods().prop_map(move |pod| WorkerStart::Rejected(Arc::new(pod), failure())),
        1 => Just(WorkerStart::Orphan),
    ]
}

fn live(how: WorkerStart, occurrences: Vec<Occurrence>) -> WorkerModel {
    let mut worker = WorkerModel::begin(how);
    for occurrence in occurrences {
        worker.apply(occurrence);
    }
    worker
}

/// Any event at all, also answers to work that was never started.
fn any_event() -> impl Strategy<Value = Event> {
    let answer =
        prop_oneof![Just(WorkEnd::Succeeds), Just(WorkEnd::Fails), Just(WorkEnd::EndsOtherwise)];
    let job = prop::sample::select(vec![
        Job::Read,
        Job::Sync,
        Job::Kill,
        Job::Release,
        Job::Record,
        Job::Cleanup,
    ]);
    let stray = (job, answer, 0u64..5).prop_map(|(job, how, now)| job.done(how, second(now)));
    prop_oneof![stray, pods().prop_map(wanted), Just(Event::Removed), Just(evict(None))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// One work at a time, no sync of an unwanted pod, no way back, always something that will wake it: the worker
    /// checks these at every step.
    #[test]
    fn the_machine_keeps_its_promises(
        how in worker_starts(),
        occurrences in proptest::collection::vec(occurrences(), 0..60),
    ) {
        live(how, occurrences);
    }

    #[test]
    fn grace_never_grows(
        how in worker_starts(),
        occurrences in proptest::collection::vec(occurrences(), 0..60),
    ) {
        let worker = live(how, occurrences);
        prop_assert!(worker.graces.is_sorted_by(|a, b| a >= b), "{:?}", worker.graces);
        prop_assert!(worker.graces.iter().all(|grace| *grace >= Grace::SHORTEST));
    }

    #[test]
    fn a_pod_that_must_go_is_finished_within_a_few_steps_once_work_succeeds(
        how in worker_starts(),
        occurrences in proptest::collection::vec(occurrences(), 0..60),
        removed in any::<bool>(),
    ) {
        let mut worker = live(how, occurrences);
        worker.tell(if removed { Event::Removed } else { evict(None) });
        for _ in 0..12 {
            match worker.job {
                Some(_) => worker.finish_job(WorkEnd::Succeeds),
                None => worker.pass(Duration::from_secs(16)),
            }
        }
        prop_assert_eq!(worker.state.stage(), Stage::Finished);
        prop_assert!(worker.forgotten || !worker.dropped);
    }

    #[test]
    fn terminated_is_final(
        pod in pods(),
        events in proptest::collection::vec(any_event(), 0..30),
    ) {
        let (pod_under_test, _) = PodUnderTest::begin(quiet(in_phase(pod, "Failed")));
        let mut state = pod_under_test.state;
        for event in events {
            let (next, effects) = step(state, event, &context(second(99)));
            prop_assert!(next.stage() >= Stage::Terminated);
            let started = effects.iter().map(brief).find(|e| e.starts_with("sync") || e.starts_with("kill"));
            prop_assert_eq!(started, None);
            state = next;
        }
    }
}
