//! Panics on purpose: the agent's next call of a given name panics in the task that makes it.

use std::sync::{Arc, Mutex};

use crate::lock;

/// Makes calls panic; clones are the same switch.
#[derive(Clone, Debug, Default)]
pub struct PanicSwitch(Arc<Mutex<Option<ArmedPanic>>>);

#[derive(Clone, Debug)]
struct ArmedPanic {
    call: String,
    object: String,
}

impl PanicSwitch {
    /// The next call of that name on an object whose name contains this panics, once.
    pub fn arm(&self, call: &str, object: &str) {
        *lock(&self.0) = Some(ArmedPanic { call: call.to_owned(), object: object.to_owned() });
    }

    /// Whether the panic is still to come.
    pub fn is_armed(&self) -> bool {
        lock(&self.0).is_some()
    }

    /// Called for every call.
    pub(crate) fn pass(&self, call: &str, object: &str) {
        let fits = |armed: &mut ArmedPanic| armed.call == call && object.contains(&armed.object);
        let fired = lock(&self.0).take_if(fits);
        assert!(fired.is_none(), "a panic on purpose in {call} {object}");
    }
}
