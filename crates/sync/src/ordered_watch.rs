//! A watch channel: receivers wait for changes of a value, and are woken in a fixed order.
//!
//! tokio's `watch` wakes waiting tasks in a random order. Here they are woken in the order in which they began to wait, so
//! that the same simulated life can be lived twice.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

#[derive(Debug)]
struct Shared<T> {
    /// How often it changed, and what it is.
    value: Mutex<(u64, T)>,
    closed: AtomicBool,
    changed: Notify,
}

/// Sets the value. When it is dropped, waiting receivers get an error.
#[derive(Debug)]
pub struct Sender<T>(Arc<Shared<T>>);

/// Who waits for the value to change.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    seen: u64,
}

/// The sender is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// A sender and a receiver of a value.
pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(value);
    let receiver = sender.subscribe();
    (sender, receiver)
}

impl<T> Shared<T> {
    fn value(&self) -> MutexGuard<'_, (u64, T)> {
        // A panic in a caller's closure leaves the value as far as it came; nothing here depends on more.
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Sender<T> {
    /// Begins with that value.
    pub fn new(value: T) -> Self {
        let (value, closed, changed) =
            (Mutex::new((0, value)), AtomicBool::new(false), Notify::new());
        Self(Arc::new(Shared { value, closed, changed }))
    }

    /// A receiver that waits for the next change.
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver { shared: Arc::clone(&self.0), seen: self.0.value().0 }
    }

    /// Sets the value and wakes waiting tasks.
    pub fn send_replace(&self, value: T) {
        self.send_modify(|old| *old = value);
    }

    /// Changes the value and wakes waiting tasks.
    pub fn send_modify(&self, change: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            change(value);
            true
        });
    }

    /// Changes the value, and wakes waiting tasks if the closure returns true.
    pub fn send_if_modified(&self, change: impl FnOnce(&mut T) -> bool) {
        let modified = {
            let mut value = self.0.value();
            let modified = change(&mut value.1);
            value.0 += u64::from(modified);
            modified
        };
        if modified {
            self.0.changed.notify_waiters();
        }
    }
}

impl<T: Clone> Sender<T> {
    /// A copy of the value.
    pub fn get(&self) -> T {
        self.0.value().1.clone()
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
        self.0.changed.notify_waiters();
    }
}

impl<T: Clone> Receiver<T> {
    /// A copy of the value.
    pub fn get(&self) -> T {
        self.shared.value().1.clone()
    }

    /// Counts the value as looked at.
    pub fn mark_seen(&mut self) {
        self.seen = self.shared.value().0;
    }

    /// Waits until the value is another than when it was last looked at, and returns it.
    ///
    /// # Errors
    /// When the sender is gone.
    pub async fn changed(&mut self) -> Result<T, Closed> {
        loop {
            let changed = self.shared.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            {
                let value = self.shared.value();
                if value.0 != self.seen {
                    self.seen = value.0;
                    return Ok(value.1.clone());
                }
            }
            if self.shared.closed.load(Ordering::Acquire) {
                return Err(Closed);
            }
            changed.await;
        }
    }

    /// Waits until the value is one that will do, and returns it.
    ///
    /// # Errors
    /// When the sender is gone and the value does not match.
    pub async fn wait_for(&mut self, mut will_do: impl FnMut(&T) -> bool) -> Result<T, Closed> {
        loop {
            let now = self.get();
            if will_do(&now) {
                return Ok(now);
            }
            self.changed().await?;
        }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), seen: self.seen }
    }
}

impl<T: fmt::Debug> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shared.value().1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_before_and_during_the_wait_is_noticed() {
        let (sender, mut receiver) = channel(1);
        sender.send_replace(2);
        assert_eq!(receiver.changed().await, Ok(2));
        let (heard, ()) = tokio::join!(receiver.changed(), async { sender.send_replace(3) });
        assert_eq!(heard, Ok(3));
    }

    #[tokio::test]
    async fn only_the_latest_unseen_value_is_returned() {
        let (sender, mut receiver) = channel(1);
        sender.send_replace(2);
        sender.send_replace(3);
        assert_eq!(receiver.changed().await, Ok(3));
        drop(sender);
        assert_eq!(receiver.changed().await, Err(Closed));
        assert_eq!(receiver.wait_for(|value| *value == 3).await, Ok(3));
    }

    #[tokio::test]
    async fn receivers_are_woken_in_order() {
        let sender = Sender::new(0);
        let order = Arc::new(Mutex::new(Vec::new()));
        let waiters: Vec<_> = (0..32)
            .map(|number| {
                let (mut receiver, order) = (sender.subscribe(), Arc::clone(&order));
                tokio::spawn(async move {
                    receiver.changed().await.unwrap();
                    order.lock().unwrap().push(number);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        sender.send_replace(1);
        for waiter in waiters {
            waiter.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), (0..32).collect::<Vec<_>>());
    }
}
