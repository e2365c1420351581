//! The runner of every work queue: takes jobs that are due, performs several at a time, and reports their outcomes.

use std::future::Future;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use oarsman_clock::Clock;
use oarsman_core::queue::JobQueue;
use oarsman_sync::Guarded;

/// Performs jobs of the queue until it is dropped, at most `limit` at a time.
pub(crate) async fn run<W, F>(
    queue: &Guarded<W>,
    clock: &dyn Clock,
    limit: usize,
    perform: impl Fn(W::Job) -> F,
) where
    W: JobQueue,
    F: Future<Output = W::Outcome>,
{
    // Jobs of a runner that panicked are not in flight any more.
    queue.update(JobQueue::recover);
    let mut in_flight = FuturesUnordered::new();
    loop {
        while in_flight.len() < limit
            && let Some(job) = next(queue, clock)
        {
            in_flight.push(perform(job));
        }
        // With the limit reached, the next outcome is waited for, not the next job that is due.
        let due = queue.lock().next_due(clock.mono()).filter(|_| in_flight.len() < limit);
        tokio::select! {
            biased;
            Some(outcome) = in_flight.next() => queue.lock().done(outcome, clock.mono()),
            () = queue.changed() => {}
            () = clock.until(due) => {}
        }
    }
}

/// Apart from the loop, so that the lock is not held over an await.
fn next<W: JobQueue>(queue: &Guarded<W>, clock: &dyn Clock) -> Option<W::Job> {
    queue.lock().next(clock.mono())
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::time::Duration;

    use oarsman_core::backoff::Backoff;
    use oarsman_core::queue::{AT_ONCE, Outcome, Priority, WorkQueue};
    use oarsman_core::time::Mono;
    use tokio::time::{Instant, sleep, timeout};

    use super::*;
    use oarsman_clock::SystemClock;

    struct NumberQueue(WorkQueue<u32>);

    impl JobQueue for NumberQueue {
        type Job = u32;
        type Outcome = (u32, Outcome);

        fn next(&mut self, now: Mono) -> Option<u32> {
            self.0.next(now)
        }

        fn done(&mut self, (number, outcome): (u32, Outcome), now: Mono) {
            self.0.done(&number, outcome, now);
        }

        fn next_due(&self, now: Mono) -> Option<Mono> {
            self.0.next_due(now)
        }

        fn recover(&mut self) {
            self.0.recover();
        }
    }

    fn numbers(count: u32) -> Guarded<NumberQueue> {
        let mut queue =
            WorkQueue::new(Backoff::new(Duration::from_secs(1), Duration::from_secs(4)));
        (0..count).for_each(|number| queue.add(&number, AT_ONCE, Priority::Normal));
        Guarded::new(NumberQueue(queue))
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_are_performed_side_by_side_up_to_the_limit() {
        let (queue, clock) = (numbers(5), SystemClock::start());
        let (began, now, most) = (Instant::now(), Cell::new(0), Cell::new(0));
        let done = RefCell::new(Vec::new());
        let running = run(&queue, &clock, 2, async |number| {
            now.set(now.get() + 1);
            most.set(most.get().max(now.get()));
            sleep(Duration::from_secs(1)).await;
            now.set(now.get() - 1);
            done.borrow_mut().push((number, began.elapsed().as_secs()));
            (number, Outcome::Done)
        });
        assert!(timeout(Duration::from_secs(60), running).await.is_err(), "it never ends");
        assert_eq!(most.get(), 2);
        assert_eq!(*done.borrow(), [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3)]);
    }

    #[tokio::test(start_paused = true)]
    async fn failed_jobs_are_retried_after_back_off_and_new_jobs_are_started() {
        let (queue, clock) = (numbers(1), SystemClock::start());
        let (began, tries) = (Instant::now(), RefCell::new(Vec::new()));
        let running = run(&queue, &clock, 2, async |number| {
            tries.borrow_mut().push((number, began.elapsed().as_secs()));
            let outcome = if number == 0 { Outcome::Failed } else { Outcome::Done };
            (number, outcome)
        });
        let adding = async {
            sleep(Duration::from_secs(2)).await;
            queue.update(|numbers| numbers.0.add(&7, AT_ONCE, Priority::Normal));
        };
        let both = async { tokio::join!(running, adding) };
        assert!(timeout(Duration::from_millis(11_500), both).await.is_err(), "it never ends");
        assert_eq!(*tries.borrow(), [(0, 0), (0, 1), (7, 2), (0, 3), (0, 7), (0, 11)]);
    }
}
