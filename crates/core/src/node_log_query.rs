//! A query of the node's logs (`/logs/?query=`): which services or which file, and what of them.

use jiff::Timestamp;

#[cfg(test)]
mod tests;

/// Services of one query.
const MAX_SERVICES: usize = 4;
/// Bytes of a service's name.
const MAX_SERVICE_LENGTH: usize = 256;
/// Lines from the end of the journal.
const MAX_TAIL_LINES: u32 = 100_000;
/// Bytes of a pattern. The time that one takes is bounded by the query's deadline.
const MAX_PATTERN_LENGTH: usize = 1024;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLogQuery {
    /// Whose logs.
    pub target: NodeLogTarget,
    /// What of them; of services only.
    pub options: JournalOptions,
}

/// Whose logs are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeLogTarget {
    /// A file below the log directory.
    File(String),
    /// Services by their names, without `.service`.
    Services(Vec<String>),
}

/// What of the journal is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalOptions {
    /// Only what was written since.
    pub since: Option<Timestamp>,
    /// Only what was written until then.
    pub until: Option<Timestamp>,
    /// Only the last so many lines.
    pub tail_lines: Option<u32>,
    /// Only entries that this expression matches.
    pub pattern: Option<String>,
    /// Only of this boot: 0 is the current one, -1 the one before.
    pub boot: Option<i32>,
}

/// Why a query is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeLogQueryError {
    /// A value cannot be read (400).
    Malformed(String),
    /// The values are not allowed, or not together (406).
    Invalid(String),
}

impl NodeLogQuery {
    /// Reads it from the names and values of a URL's query; none if no name of a log query is among them.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn read(query: &[(String, String)]) -> Result<Option<Self>, NodeLogQueryError> {
        let named = |wanted: &'static str| {
            let values = query.iter().filter(move |(name, _)| name == wanted);
            values.map(|(_, value)| value.as_str())
        };
        let (mut files, mut services) = (Vec::new(), Vec::new());
        for value in named("query") {
            match value {
                file if file.contains(['/', '\\']) => files.push(file.to_owned()),
                service if !service.trim().is_empty() => services.push(service.to_owned()),
                _ => {}
            }
        }
        if named("query").next().is_some() && files.is_empty() && services.is_empty() {
            return Err(malformed("query", "", "the name of a service or a file"));
        }
        let options = JournalOptions::read(named)?;
        if files.is_empty() && services.is_empty() && options == JournalOptions::default() {
            return Ok(None);
        }
        let target = target(files, services, &options)?;
        options.check()?;
        Ok(Some(Self { target, options }))
    }
}

fn target(
    mut files: Vec<String>,
    services: Vec<String>,
    options: &JournalOptions,
) -> Result<NodeLogTarget, NodeLogQueryError> {
    match (files.len(), services.len()) {
        (0, 0) => return Err(invalid("query", "is missing: options need the name of a service")),
        (0, _) => {}
        (1, 0) if *options == JournalOptions::default() => {
            let file = files.remove(0);
            check_file(&file)?;
            return Ok(NodeLogTarget::File(file));
        }
        (1, 0) => return Err(invalid("query", "names a file: write it without options")),
        (_, 0) => {
            return Err(invalid("query", "names more than one file: ask for them one by one"));
        }
        _ => return Err(invalid("query", "names a file and a service: ask for them one by one")),
    }
    if services.len() > MAX_SERVICES {
        return Err(invalid("query", &format!("names more than {MAX_SERVICES} services")));
    }
    services.iter().try_for_each(|service| check_service(service))?;
    Ok(NodeLogTarget::Services(services))
}

/// The name of a file is resolved below the log directory; what would lead out of it is refused at once, with a reason.
fn check_file(file: &str) -> Result<(), NodeLogQueryError> {
    let is_up = file.split(['/', '\\']).any(|part| part == "..");
    let said = format!("{file:?} is not below the log directory");
    if is_up { Err(invalid("query", &said)) } else { Ok(()) }
}

fn check_service(service: &str) -> Result<(), NodeLogQueryError> {
    let is_allowed =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '@');
    // A dot would let a name be a file's, and a dash at the beginning an option's.
    if !service.chars().all(is_allowed) || service.starts_with('-') {
        let said = format!("{service:?} has other characters than letters, digits, -, _ and @");
        return Err(invalid("query", &said));
    }
    if service.len() > MAX_SERVICE_LENGTH {
        let said = format!("names a service with more than {MAX_SERVICE_LENGTH} characters");
        return Err(invalid("query", &said));
    }
    Ok(())
}

impl JournalOptions {
    fn read<'q, I: Iterator<Item = &'q str>>(
        named: impl Fn(&'static str) -> I,
    ) -> Result<Self, NodeLogQueryError> {
        let value = |name| named(name).next().filter(|value| !value.is_empty());
        let time = |name: &'static str| {
            let fix = "a time such as 2026-01-31T12:00:00Z";
            let read = |text: &str| text.parse().map_err(|_| malformed(name, text, fix));
            value(name).map(read).transpose()
        };
        let lines = |text: &str| text.parse().map_err(|_| malformed("tailLines", text, "a number"));
        let boot = |text: &str| text.parse().map_err(|_| malformed("boot", text, "0, -1, -2 …"));
        Ok(Self {
            since: time("sinceTime")?,
            until: time("untilTime")?,
            tail_lines: value("tailLines").map(lines).transpose()?,
            pattern: value("pattern").map(str::to_owned),
            boot: value("boot").map(boot).transpose()?,
        })
    }

    fn check(&self) -> Result<(), NodeLogQueryError> {
        if self.since.zip(self.until).is_some_and(|(since, until)| since > until) {
            return Err(invalid("untilTime", "is before sinceTime"));
        }
        if self.tail_lines.is_some_and(|lines| lines > MAX_TAIL_LINES) {
            return Err(invalid("tailLines", &format!("is more than {MAX_TAIL_LINES}")));
        }
        if self.boot.is_some_and(|boot| boot > 0) {
            return Err(invalid("boot", "is more than 0, the current one"));
        }
        let pattern = self.pattern.as_deref().unwrap_or_default();
        if pattern.len() > MAX_PATTERN_LENGTH {
            return Err(invalid("pattern", &format!("has more than {MAX_PATTERN_LENGTH} bytes")));
        }
        if pattern.contains(char::is_control) {
            return Err(invalid("pattern", "has control characters"));
        }
        Ok(())
    }

    /// The arguments of journalctl for these services.
    pub fn journalctl_arguments(&self, services: &[String]) -> Vec<String> {
        let mut arguments = vec!["--utc".to_owned(), "--no-pager".to_owned()];
        // Without a zone journalctl reads them as local times.
        let time = |time: &Timestamp| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
        arguments.extend(self.since.iter().map(|since| format!("--since={}", time(since))));
        arguments.extend(self.until.iter().map(|until| format!("--until={}", time(until))));
        arguments.extend(self.tail_lines.map(|lines| format!("--lines={lines}")));
        arguments.extend(services.iter().map(|service| format!("--unit={service}")));
        arguments.extend(self.pattern.iter().map(|pattern| format!("--grep={pattern}")));
        arguments.extend(self.boot.map(|boot| format!("--boot={boot}")));
        arguments.push("--output=short-precise".to_owned());
        arguments
    }
}

fn malformed(name: &str, value: &str, fix: &str) -> NodeLogQueryError {
    NodeLogQueryError::Malformed(format!("{name}={value:?} cannot be read; write {fix}"))
}

fn invalid(name: &str, why: &str) -> NodeLogQueryError {
    NodeLogQueryError::Invalid(format!("{name} {why}"))
}
