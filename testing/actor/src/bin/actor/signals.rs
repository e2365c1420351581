//! What signals do.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use oarsman_actor::{EXIT_FAILED_STEP, Step};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::perform;

/// What SIGTERM does at this moment: a script, or none for the default.
#[derive(Clone, Default)]
pub(crate) struct OnTerm(Arc<Mutex<Option<Vec<Step>>>>);

impl OnTerm {
    pub(crate) fn set(&self, steps: Vec<Step>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(steps);
    }

    fn get(&self) -> Option<Vec<Step>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Handles signals on a thread of their own from now on, so that they are heard whatever step the
/// script is at.
pub(crate) fn watch(on_term: &OnTerm) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2])?;
    let on_term = on_term.clone();
    thread::Builder::new().spawn(move || {
        for signal in signals.forever() {
            react(signal, &on_term);
        }
    })?;
    Ok(())
}

fn react(signal: i32, on_term: &OnTerm) {
    match on_term.get() {
        Some(steps) if signal == SIGTERM => {
            if perform::all(&steps, on_term).is_err() {
                perform::leave(EXIT_FAILED_STEP);
            }
        }
        _ => perform::leave(128 + u8::try_from(signal).unwrap_or_default()),
    }
}
