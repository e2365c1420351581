//! A value behind a lock, and a signal that it changed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// State that several tasks change and at most one waits for.
///
/// The lock is for short, synchronous access and is never held over an await. A panic of its holder leaves the value as far as the
/// change came, and the value stays usable: one failed task must not fail every other task that shares state with it. So a change has
/// to leave the value valid after each of its steps.
#[derive(Debug, Default)]
pub struct Guarded<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T> Guarded<T> {
    /// Begins with that value.
    pub fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Notify::new() }
    }

    /// The value, to read it or to change it without a signal.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the value and signals that.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_one();
        result
    }

    /// Waits for an [`update`](Self::update) since the last call of this; several updates count as one.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Waits until `take` finds something in the value.
    pub async fn take_when<R>(&self, mut take: impl FnMut(&mut T) -> Option<R>) -> R {
        loop {
            // An update between the look and the wait leaves a signal behind.
            if let Some(found) = take(&mut self.lock()) {
                return found;
            }
            self.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn several_updates_are_one_signal_and_a_change_without_signal_is_none() {
        let guarded = Guarded::new(0);
        let waits = || timeout(Duration::from_secs(1), guarded.changed());
        guarded.update(|value| *value += 1);
        guarded.update(|value| *value += 1);
        assert!(waits().await.is_ok());
        assert!(waits().await.is_err());
        *guarded.lock() += 1;
        assert!(waits().await.is_err());
        assert_eq!(*guarded.lock(), 3);
    }

    #[tokio::test]
    async fn a_value_set_before_or_during_the_wait_is_taken() {
        let guarded = Guarded::new(vec![1]);
        assert_eq!(guarded.take_when(Vec::pop).await, 1);
        let (taken, ()) = tokio::join!(guarded.take_when(Vec::pop), async {
            guarded.update(|value| value.push(2));
        });
        assert_eq!(taken, 2);
    }

    #[test]
    fn a_panic_of_one_holder_does_not_fail_the_others() {
        let guarded = Guarded::new(1);
        let failed = catch_unwind(AssertUnwindSafe(|| {
            guarded.update(|value| {
                *value = 2;
                panic!("a mistake");
            })
        }));
        assert!(failed.is_err());
        assert_eq!(*guarded.lock(), 2);
    }
}
