//! The queue between the agent and its log: lines are written by a thread of their own, so that a terminal, pipe or disk that takes none
//! stops no task of the agent.
//!
//! The queue is bounded. Lines that find no room are dropped and counted, and the count is logged once lines can be written again.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use oarsman_clock::Clock;
use oarsman_core::healthz::LogProgress;
use oarsman_core::time::Mono;
use tracing_subscriber::fmt::MakeWriter;

/// What lines that wait to be written take at most.
const MAX_BYTES: usize = 4 << 20;
/// What a line takes beside its text.
const LINE_OVERHEAD: usize = 64;
/// How long the end of the program waits for the last lines to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The queue; a writer made of it queues whole lines.
#[derive(Clone, Debug)]
pub(super) struct LogQueue(Arc<QueueState>);

/// Waits, when it is dropped, until queued lines are written.
#[derive(Debug)]
#[must_use = "the last lines are lost when nothing waits for them"]
pub(crate) struct LogFlush(LogQueue);

#[derive(Debug)]
struct QueueState {
    lines: Mutex<QueuedLines>,
    clock: Arc<dyn Clock>,
    /// Signalled when a line is queued.
    queued: Condvar,
    /// Signalled when the last queued line is written.
    written: Condvar,
}

#[derive(Debug, Default)]
struct QueuedLines {
    waiting: VecDeque<Vec<u8>>,
    /// What those that wait take.
    bytes: usize,
    /// A line that was taken from the queue is being written.
    is_writing: bool,
    /// Lines that found no room since that was last logged.
    dropped: u64,
    progress: LogProgress,
}

/// What the writing thread does next.
enum NextWrite {
    Line(Vec<u8>),
    /// All lines are written; so many were dropped before.
    Dropped(u64),
}

impl LogQueue {
    /// Starts the thread that writes to `log`.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(super) fn start(
        log: impl Write + Send + 'static,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        let queue = Self::new(clock);
        let writing = queue.clone();
        thread::Builder::new().name("log".to_owned()).spawn(move || writing.write_all_to(log))?;
        Ok(queue)
    }

    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(QueueState {
            lines: Mutex::default(),
            clock,
            queued: Condvar::default(),
            written: Condvar::default(),
        }))
    }

    /// How lines are written.
    pub(super) fn progress(&self) -> LogProgress {
        self.lock().progress
    }

    /// Has the end of the program wait for the last lines.
    pub(super) fn flush_at_end(&self) -> LogFlush {
        LogFlush(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, QueuedLines> {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &[u8]) {
        let now = self.0.clock.mono();
        if self.lock().push(line, now) {
            self.0.queued.notify_one();
        }
    }

    fn write_all_to(&self, mut log: impl Write) {
        loop {
            match self.next() {
                NextWrite::Line(line) => {
                    // A log that cannot be written is no reason to stop.
                    let is_written = log.write_all(&line).is_ok();
                    let now = self.0.clock.mono();
                    self.lock().end_write(is_written, now);
                }
                NextWrite::Dropped(count) => {
                    tracing::error!(object = "log", count, "log lines dropped, the log took none");
                }
            }
        }
    }

    /// Waits for something to write.
    fn next(&self) -> NextWrite {
        let mut lines = self.lock();
        loop {
            if let Some(line) = lines.take() {
                return NextWrite::Line(line);
            }
            if lines.dropped > 0 {
                return NextWrite::Dropped(std::mem::take(&mut lines.dropped));
            }
            self.0.written.notify_all();
            lines = self.0.queued.wait(lines).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn wait_until_written(&self, at_most: Duration) {
        let is_pending = |lines: &mut QueuedLines| {
            lines.is_writing || !lines.waiting.is_empty() || lines.dropped > 0
        };
        let waited = self.0.written.wait_timeout_while(self.lock(), at_most, is_pending);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl QueuedLines {
    /// Whether there was room for the line.
    fn push(&mut self, line: &[u8], now: Mono) -> bool {
        let bytes = line.len() + LINE_OVERHEAD;
        // A line that is larger than the whole queue is taken alone.
        if self.bytes + bytes > MAX_BYTES && !self.waiting.is_empty() {
            self.dropped += 1;
            return false;
        }
        self.bytes += bytes;
        self.waiting.push_back(line.to_vec());
        self.progress.waiting_since.get_or_insert(now);
        true
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        let line = self.waiting.pop_front()?;
        self.bytes -= line.len() + LINE_OVERHEAD;
        self.is_writing = true;
        Some(line)
    }

    /// The line that was taken is written, or lost.
    fn end_write(&mut self, is_written: bool, now: Mono) {
        self.is_writing = false;
        let first = self.progress.failures.map_or(now, |(first, _)| first);
        self.progress.failures = (!is_written).then_some((first, now));
        self.progress.waiting_since = (!self.waiting.is_empty()).then_some(now);
    }
}

impl Drop for LogFlush {
    fn drop(&mut self) {
        self.0.wait_until_written(FLUSH_TIMEOUT);
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

/// Lines come whole, one at a time.
impl Write for &LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use oarsman_clock::SystemClock;

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(30);

    /// A log that takes one line for each permit.
    struct HeldLog {
        permits: Receiver<()>,
        lines: SyncSender<String>,
    }

    impl Write for HeldLog {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            // Without permits any more it takes all.
            self.permits.recv().ok();
            self.lines.send(String::from_utf8_lossy(line).into_owned()).unwrap();
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn clock() -> Arc<dyn Clock> {
        Arc::new(SystemClock::start())
    }

    fn held() -> (LogQueue, SyncSender<()>, Receiver<String>) {
        let ((permit, permits), (lines, written)) = (sync_channel(0), sync_channel(1_000_000));
        (LogQueue::start(HeldLog { permits, lines }, clock()).unwrap(), permit, written)
    }

    #[test]
    fn lines_are_written_in_their_order() {
        let (queue, permit, written) = held();
        drop(permit);
        for number in 0..1000 {
            queue.push(number.to_string().as_bytes());
        }
        queue.wait_until_written(DEADLINE);
        let written: Vec<String> = written.try_iter().collect();
        assert_eq!(written, (0..1000).map(|number| number.to_string()).collect::<Vec<_>>());
    }

    /// D13 of the first review: a reader of stderr that stops reading stopped the agent.
    #[test]
    fn a_log_that_takes_nothing_holds_no_task_and_what_is_dropped_is_counted() {
        let (queue, permit, written) = held();
        let line = vec![b'x'; 1000];
        let room = MAX_BYTES / (line.len() + LINE_OVERHEAD);
        for _ in 0..room + 500 {
            queue.push(&line);
        }
        let dropped = queue.lock().dropped;
        // The thread may have taken one out of the queue by then, which makes room for another.
        assert!((499..=500).contains(&dropped), "{dropped} dropped");
        assert!(queue.lock().bytes <= MAX_BYTES);
        drop(permit);
        queue.wait_until_written(DEADLINE);
        let kept = u64::try_from(written.try_iter().count()).unwrap();
        assert_eq!(kept + dropped, u64::try_from(room).unwrap() + 500);
    }

    #[test]
    fn the_end_of_the_program_waits_for_the_last_line_and_not_for_ever() {
        let (queue, permit, written) = held();
        queue.push(b"last");
        queue.wait_until_written(Duration::from_millis(10));
        assert!(written.try_recv().is_err(), "it is held");
        let releasing = thread::spawn(move || permit.send(()));
        queue.wait_until_written(DEADLINE);
        releasing.join().unwrap().unwrap();
        assert_eq!(written.try_recv().as_deref(), Ok("last"));
    }

    #[test]
    fn how_many_lines_were_dropped_is_logged_after_those_that_were_kept() {
        let queue = LogQueue::new(clock());
        queue.push(b"kept");
        queue.lock().dropped = 7;
        assert!(matches!(queue.next(), NextWrite::Line(line) if line == b"kept"));
        assert!(matches!(queue.next(), NextWrite::Dropped(7)));
        assert_eq!(queue.lock().dropped, 0);
    }

    #[test]
    fn a_line_waits_from_when_it_finds_an_idle_log_or_the_line_before_it_is_written() {
        let at = |seconds| Mono(Duration::from_secs(seconds));
        let mut lines = QueuedLines::default();
        assert_eq!(lines.progress, LogProgress::default());
        lines.push(b"one", at(1));
        lines.push(b"two", at(2));
        assert_eq!(lines.progress.waiting_since, Some(at(1)));
        lines.take();
        lines.end_write(true, at(5));
        assert_eq!(lines.progress.waiting_since, Some(at(5)), "the second");
        lines.take();
        assert_eq!(lines.progress.waiting_since, Some(at(5)), "while it is written");
        lines.end_write(true, at(6));
        assert_eq!(lines.progress, LogProgress::default());
    }

    #[test]
    fn lines_that_are_lost_in_a_row_are_remembered_until_one_is_written() {
        let at = |seconds| Mono(Duration::from_secs(seconds));
        let mut lines = QueuedLines::default();
        for (now, is_written, expected) in [
            (1, true, None),
            (2, false, Some((at(2), at(2)))),
            (9, false, Some((at(2), at(9)))),
            (10, true, None),
        ] {
            lines.push(b"line", at(now));
            lines.take();
            lines.end_write(is_written, at(now));
            assert_eq!(lines.progress.failures, expected, "{now}");
        }
    }
}
