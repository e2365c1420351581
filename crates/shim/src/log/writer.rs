//! The thread that writes one container's log. A file system that hangs holds up this thread and the lines of its container, and never the shim.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use oarsman_core::time::Mono;

use super::CriLogFile;

#[cfg(test)]
mod tests;

/// How many bytes wait for the thread. While there are so many and it gets on, nothing more is read of the container; when it does not get on, what
/// comes is dropped and counted.
const MOST_WAITING: usize = 256 << 10;
/// A thread that has written nothing for so long is taken to hang.
const STALLED_AFTER: Duration = Duration::from_secs(2);
/// How often a file is tried again that could not be written, such as one on a full disk.
const RETRY: Duration = Duration::from_secs(1);
/// The thread calls the kernel and nothing else.
const STACK: usize = 128 << 10;

/// What shim and thread share.
#[derive(Debug, Default)]
struct LogQueue {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Dropped because the queue was full.
    lost: u64,
    /// Dropped because the file could not be written.
    lost_in_file: u64,
    /// Lines are being written.
    is_busy: bool,
    /// Lines wait that the file does not take.
    is_behind: bool,
    /// Rounds that the thread has done.
    rounds: u64,
    opened: Option<Result<(), String>>,
    reopen: bool,
    reopened: Option<Result<(), String>>,
    is_closed: bool,
    /// The shim waits for something, and is to be woken up after the next round.
    is_awaited: bool,
}

#[derive(Debug, Default)]
struct SharedLog {
    queue: Mutex<LogQueue>,
    changed: Condvar,
}

impl SharedLog {
    fn lock(&self) -> MutexGuard<'_, LogQueue> {
        // Each change is complete when the lock is released.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The log of a container, as the shim sees it.
#[derive(Debug)]
pub(crate) struct LogWriter {
    shared: Arc<SharedLog>,
    /// When the thread was last seen to get on, and with which round.
    seen: (Mono, u64),
    /// The thread does not get on, so that there is no waiting for it.
    is_stuck: bool,
}

impl LogWriter {
    /// Starts the thread, which opens the file first. `notify` gets a byte when something that was waited for has happened.
    pub(crate) fn start(
        open: impl FnOnce() -> io::Result<CriLogFile> + Send + 'static,
        notify: UnixStream,
        now: Mono,
    ) -> io::Result<Self> {
        let shared = Arc::new(SharedLog::default());
        let of_thread = Arc::clone(&shared);
        let builder = thread::Builder::new().name("log".to_owned()).stack_size(STACK);
        // It ends with the file: nothing may wait for it, because it may hang.
        drop(builder.spawn(move || write_log(open, &of_thread, &notify))?);
        Ok(Self { shared, seen: (now, 0), is_stuck: false })
    }

    /// Whether the file is open, or why it is not; none while that is not known.
    pub(crate) fn opened(&self) -> Option<Result<(), String>> {
        let mut queue = self.shared.lock();
        queue.is_awaited |= queue.opened.is_none();
        queue.opened.clone()
    }

    /// Adds a line, which is written after [`LogWriter::kick`].
    pub(crate) fn add(&mut self, line: &[u8]) {
        let mut queue = self.shared.lock();
        if self.is_stuck && queue.bytes + line.len() > MOST_WAITING {
            queue.lost += u64::try_from(line.len()).unwrap_or(u64::MAX);
            return;
        }
        queue.bytes += line.len();
        queue.lines.push_back(line.to_vec());
    }

    /// Has the thread write what was added.
    pub(crate) fn kick(&self) {
        if !self.shared.lock().lines.is_empty() {
            self.shared.changed.notify_one();
        }
    }

    /// Whether more of the container's output can be taken in, which is to be asked before some is. It cannot when lines wait for a thread that gets
    /// on; for one that does not, nothing waits.
    pub(crate) fn has_room(&mut self, now: Mono) -> bool {
        let is_stuck = self.look(now);
        let mut queue = self.shared.lock();
        let has_room = queue.bytes < MOST_WAITING || is_stuck;
        queue.is_awaited |= !has_room;
        has_room
    }

    /// Whether all lines are in the file, or will not be soon.
    pub(crate) fn is_settled(&mut self, now: Mono) -> bool {
        let is_stuck = self.look(now);
        let mut queue = self.shared.lock();
        let is_done = queue.lines.is_empty() && !queue.is_busy && queue.opened.is_some();
        queue.is_awaited |= !is_done;
        is_done || is_stuck
    }

    /// When a thread that does not get on is taken to hang; none when it has nothing to do.
    pub(crate) fn stalled_at(&self) -> Option<Mono> {
        let queue = self.shared.lock();
        let has_work = !queue.lines.is_empty() || queue.is_busy;
        (has_work && queue.is_awaited).then_some(self.seen.0 + STALLED_AFTER)
    }

    /// Looks whether the thread gets on; one that had nothing to do until now does.
    fn look(&mut self, now: Mono) -> bool {
        let (rounds, is_idle, is_behind) = {
            let queue = self.shared.lock();
            let is_idle = queue.lines.is_empty() && !queue.is_busy && queue.opened.is_some();
            (queue.rounds, is_idle, queue.is_behind)
        };
        if is_idle || rounds != self.seen.1 {
            self.seen = (now, rounds);
        }
        self.is_stuck = is_behind || self.seen.0 + STALLED_AFTER <= now;
        self.is_stuck
    }

    /// Has the thread continue in a new file; [`LogWriter::take_reopened`] tells when that is done.
    pub(crate) fn reopen(&self) {
        let mut queue = self.shared.lock();
        (queue.reopen, queue.is_awaited) = (true, true);
        drop(queue);
        self.shared.changed.notify_one();
    }

    /// What came of the last reopening; none as long as it is not done.
    pub(crate) fn take_reopened(&self) -> Option<Result<(), String>> {
        let mut queue = self.shared.lock();
        queue.is_awaited |= queue.reopen;
        queue.reopened.take()
    }

    /// Bytes that were dropped.
    pub(crate) fn lost(&self) -> u64 {
        let queue = self.shared.lock();
        queue.lost + queue.lost_in_file
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_one();
    }
}

/// What the thread does next.
struct LogRound {
    lines: VecDeque<Vec<u8>>,
    reopen: bool,
    is_last: bool,
}

fn write_log(
    open: impl FnOnce() -> io::Result<CriLogFile>,
    shared: &SharedLog,
    notify: &UnixStream,
) {
    let opened = open();
    let told = opened.as_ref().map(drop).map_err(ToString::to_string);
    finish_round(shared, notify, |queue| queue.opened = Some(told));
    let Ok(mut file) = opened else { return };
    loop {
        let round = next_round(shared);
        for line in &round.lines {
            file.add(line);
        }
        file.flush();
        let reopened = round.reopen.then(|| file.reopen().map_err(|error| error.to_string()));
        finish_round(shared, notify, |queue| {
            queue.is_behind = file.is_behind();
            queue.lost_in_file = file.lost();
            if let Some(reopened) = reopened {
                (queue.reopened, queue.reopen) = (Some(reopened), false);
            }
        });
        if round.is_last {
            return;
        }
    }
}

/// Waits for work, or until a file is to be tried again.
fn next_round(shared: &SharedLog) -> LogRound {
    let mut queue = shared.lock();
    while queue.lines.is_empty() && !queue.reopen && !queue.is_closed {
        if !queue.is_behind {
            queue = shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        let (after, waited) =
            shared.changed.wait_timeout(queue, RETRY).unwrap_or_else(PoisonError::into_inner);
        queue = after;
        if waited.timed_out() {
            break;
        }
    }
    queue.is_busy = true;
    queue.bytes = 0;
    let (reopen, is_last) = (queue.reopen, queue.is_closed);
    LogRound { lines: std::mem::take(&mut queue.lines), reopen, is_last }
}

fn finish_round(shared: &SharedLog, notify: &UnixStream, change: impl FnOnce(&mut LogQueue)) {
    let mut queue = shared.lock();
    change(&mut queue);
    queue.is_busy = false;
    queue.rounds += 1;
    let is_awaited = std::mem::take(&mut queue.is_awaited);
    drop(queue);
    if is_awaited {
        // A full socket wakes the shim as well, and one that is closed has no shim.
        (&*notify).write(b"l").unwrap_or_default();
    }
}
