//! A panic ends one task and no other.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio::time::{Instant, timeout};

use super::*;

/// How often a task was started, which panics the first times.
#[derive(Clone, Default)]
struct Starts(Arc<AtomicU32>);

impl Starts {
    fn panic_until(&self, starts: u32) {
        assert!(self.0.fetch_add(1, Ordering::Relaxed) >= starts, "a panic on purpose");
    }

    fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_is_restarted_after_a_second_and_others_are_not_affected() {
    let (panics, began) = (TaskPanics::default(), Instant::now());
    let (failing, steady) = (Starts::default(), Starts::default());
    let mut tasks = Tasks::new(panics.clone());
    let starts = failing.clone();
    tasks.spawn(TaskName::Relist, move || {
        let starts = starts.clone();
        async move {
            starts.panic_until(2);
            std::future::pending::<()>().await;
        }
    });
    let ticks = steady.clone();
    tasks.spawn(TaskName::NodeLease, move || {
        let ticks = ticks.clone();
        async move {
            loop {
                sleep(Duration::from_millis(500)).await;
                ticks.panic_until(0);
            }
        }
    });
    tasks.spawn(TaskName::FileSource, || async {});
    timeout(Duration::from_secs(10), tasks.restart_panicked()).await.unwrap_err();
    assert_eq!(began.elapsed().as_secs(), 10);
    assert_eq!(failing.count(), 3, "two panics, then it goes on");
    assert!(steady.count() >= 19);
    assert_eq!(panics.counts(), [(TaskName::Relist, 2)].into());
}

#[tokio::test(start_paused = true)]
async fn a_panic_before_the_first_poll_of_a_task_is_that_tasks_too() {
    let (panics, starts) = (TaskPanics::default(), Starts::default());
    let mut tasks = Tasks::new(panics.clone());
    let counted = starts.clone();
    tasks.spawn(TaskName::ApiSource, move || {
        counted.panic_until(1);
        std::future::pending::<()>()
    });
    timeout(Duration::from_secs(10), tasks.restart_panicked()).await.unwrap_err();
    assert_eq!((starts.count(), panics.counts()), (2, [(TaskName::ApiSource, 1)].into()));
}

#[tokio::test(start_paused = true)]
async fn a_future_with_a_result_is_started_again_until_it_has_one() {
    let (panics, starts, began) = (TaskPanics::default(), Starts::default(), Instant::now());
    let ended = restarted(TaskName::ClientCertificate, panics.clone(), || async {
        starts.panic_until(2);
        "denied"
    });
    assert_eq!(ended.await, "denied");
    assert_eq!(began.elapsed(), RESTART_AFTER * 2);
    assert_eq!(panics.counts(), [(TaskName::ClientCertificate, 2)].into());
}
