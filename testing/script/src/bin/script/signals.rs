//! Handles signals of a script's process.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use oarsman_script::{EXIT_FAILED_STEP, ScriptStep};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::run_steps;

/// The current handler of SIGTERM: a script, or none for the default.
#[derive(Clone, Default)]
pub(crate) struct TermHandler(Arc<Mutex<Option<Vec<ScriptStep>>>>);

impl TermHandler {
    pub(crate) fn set(&self, steps: Vec<ScriptStep>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(steps);
    }

    fn get(&self) -> Option<Vec<ScriptStep>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Handles signals on a thread of their own from now on, so that they take effect whatever step the script is at.
pub(crate) fn watch(on_term: &TermHandler) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2])?;
    let on_term = on_term.clone();
    thread::Builder::new().spawn(move || {
        for signal in signals.forever() {
            react(signal, &on_term);
        }
    })?;
    Ok(())
}

fn react(signal: i32, on_term: &TermHandler) {
    match on_term.get() {
        Some(steps) if signal == SIGTERM => {
            if run_steps::run_all(&steps, on_term).is_err() {
                run_steps::leave(EXIT_FAILED_STEP);
            }
        }
        _ => run_steps::leave(128 + u8::try_from(signal).unwrap_or_default()),
    }
}
