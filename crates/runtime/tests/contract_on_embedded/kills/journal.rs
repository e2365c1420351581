//! What agents have begun and were told, line by line, in a file that survives them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use anyhow::Result;

/// A container that an agent has made, or has begun to make.
#[derive(Clone, Debug)]
pub(super) struct KnownContainer {
    pub(super) name: String,
    pub(super) pod: String,
    /// How many lines it writes before its last one.
    pub(super) count: u64,
    pub(super) code: i32,
    pub(super) id: Option<String>,
    pub(super) is_started: bool,
    /// A stop was begun, and its removal.
    pub(super) is_stopped: bool,
    pub(super) is_removed: bool,
    lasts: bool,
}

impl KnownContainer {
    pub(super) fn new(name: &str, pod: &str, count: u64, code: i32) -> Self {
        Self {
            name: name.to_owned(),
            pod: pod.to_owned(),
            count,
            code,
            id: None,
            is_started: false,
            is_stopped: false,
            is_removed: false,
            lasts: false,
        }
    }

    /// One that does not end by itself.
    pub(super) fn lasting(mut self) -> Self {
        self.lasts = true;
        self
    }

    /// All that it writes.
    pub(super) fn lines(&self) -> Vec<String> {
        let numbered = (1..=self.count).map(|number| format!("line {number}"));
        numbered.chain(["end".to_owned()]).collect()
    }

    /// What it does.
    pub(super) fn script(&self) -> Vec<String> {
        let mut steps: Vec<String> =
            self.lines().iter().map(|line| format!("out:{line}")).collect();
        let pause = format!("sleep:{}ms", 20 * self.count);
        steps.insert(steps.len() - 1, pause);
        steps.push(if self.lasts { "forever".to_owned() } else { format!("exit:{}", self.code) });
        steps
    }
}

/// The lines of a journal.
#[derive(Debug, Default)]
pub(super) struct Journal(Vec<String>);

impl Journal {
    /// Those that are complete; none before there is a file.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read?,
        };
        let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
        Ok(Self(complete.lines().map(str::to_owned).collect()))
    }

    pub(super) fn has(&self, line: &str) -> bool {
        self.0.iter().any(|known| known == line)
    }

    /// What an agent was told that is wrong.
    pub(super) fn complaints(&self) -> Vec<&str> {
        self.0.iter().filter_map(|line| line.strip_prefix("wrong ")).collect()
    }

    pub(super) fn containers(&self) -> Vec<KnownContainer> {
        let mut all: BTreeMap<String, KnownContainer> = BTreeMap::new();
        for line in &self.0 {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["create", name, pod, count, code] => {
                    let (count, code) = (count.parse().unwrap(), code.parse().unwrap());
                    all.insert((*name).to_owned(), KnownContainer::new(name, pod, count, code));
                }
                ["created", name, id] => all.get_mut(*name).unwrap().id = Some((*id).to_owned()),
                ["started", name] => all.get_mut(*name).unwrap().is_started = true,
                ["stop", name] => all.get_mut(*name).unwrap().is_stopped = true,
                ["remove", name] => all.get_mut(*name).unwrap().is_removed = true,
                ["remove-pod", pod] => {
                    let of_pod = all.values_mut().filter(|container| container.pod == *pod);
                    of_pod.for_each(|container| container.is_removed = true);
                }
                _ => {}
            }
        }
        all.into_values().collect()
    }
}

/// Writes to a journal. A line is there, whole, once the call is over: a kill takes nothing back from the kernel.
pub(super) struct JournalWriter(File);

impl JournalWriter {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(File::options().create(true).append(true).open(path)?))
    }

    pub(super) fn add(&mut self, line: &str) -> io::Result<()> {
        self.0.write_all(format!("{line}\n").as_bytes())
    }
}
