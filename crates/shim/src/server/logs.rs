//! What the threads of logs have done: files that are open now, or open anew.

use super::container::HeldContainer;
use super::{ReplyAddress, ShimServer};
use crate::log::LogWriter;
use crate::protocol::{RefusalKind, ShimReply};

impl ShimServer {
    /// Answers the creates and reopenings that waited for a log.
    pub(super) fn settle_logs(&mut self) {
        let now = self.now();
        let ids: Vec<String> = self.containers.keys().cloned().collect();
        for id in ids {
            let Some(container) = self.containers.get_mut(&id) else { continue };
            let answers = container.take_reopened();
            let created = container.take_created(now);
            for (to, answer) in answers {
                match answer {
                    Ok(()) => self.reply(to, ShimReply::Done),
                    Err(error) => {
                        let message = format!("cannot reopen the log of container {id}: {error}");
                        self.refuse(to, RefusalKind::Failed, message);
                    }
                }
            }
            match created {
                Some((to, Ok(pid))) => self.reply(to, ShimReply::Created { pid }),
                Some((to, Err(error))) => self.undo_create(to, &id, &error),
                None => {}
            }
        }
    }
}

impl HeldContainer {
    fn take_reopened(&mut self) -> Vec<(ReplyAddress, Result<(), String>)> {
        if self.reopening.is_empty() {
            return Vec::new();
        }
        let Some(answer) = self.log.as_ref().and_then(LogWriter::take_reopened) else {
            return Vec::new();
        };
        self.reopening.drain(..).map(|to| (to, answer.clone())).collect()
    }

    /// The create that can be answered now.
    fn take_created(
        &mut self,
        now: oarsman_core::time::Mono,
    ) -> Option<(ReplyAddress, Result<u32, String>)> {
        let (to, until) = self.unopened?;
        let opened = match self.log.as_ref().map(LogWriter::opened) {
            None => Ok(()),
            Some(Some(opened)) => opened.map_err(|error| format!("cannot open its log: {error}")),
            Some(None) if until <= now => {
                Err("its log was not opened in time: its file system may hang".to_owned())
            }
            Some(None) => return None,
        };
        self.unopened = None;
        Some((to, opened.map(|()| self.pid.unwrap_or_default())))
    }
}
