//! Where a test can end a change half-way, as a crash would.

use crate::error::PodNetworkError;
#[cfg(test)]
use crate::error::refused;

/// Marks the end of a step of [`crate::PodNetwork::set_up`].
#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "it fails in tests")]
pub(crate) fn after_step(_step: &'static str) -> Result<(), PodNetworkError> {
    Ok(())
}

/// Marks the end of a step, and fails when the test of this thread wants it.
#[cfg(test)]
pub(crate) fn after_step(step: &'static str) -> Result<(), PodNetworkError> {
    injected::count(step).map_err(refused(format!("go on after step {step:?}")))
}

#[cfg(test)]
pub(crate) mod injected {
    use std::cell::{Cell, RefCell};
    use std::io;

    thread_local! {
        static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
        static SEEN: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
    }

    /// Does `work` with an error after its step `number`, counted from 0. Returns the steps that were taken too.
    pub(crate) fn failing_after<T>(
        number: usize,
        work: impl FnOnce() -> T,
    ) -> (T, Vec<&'static str>) {
        LEFT.set(Some(number));
        SEEN.take();
        let result = work();
        LEFT.set(None);
        (result, SEEN.take())
    }

    pub(super) fn count(step: &'static str) -> io::Result<()> {
        let Some(left) = LEFT.get() else {
            return Ok(());
        };
        SEEN.with_borrow_mut(|seen| seen.push(step));
        LEFT.set(left.checked_sub(1));
        if left == 0 { Err(io::Error::other("injected")) } else { Ok(()) }
    }
}
