//! Log messages can be searched for and alerted on: each is a plain text with fields of a closed list, and `docs/operating.md` has a
//! row for each at warning and above.
//!
//! The page is the list: its table of fields says which names there are, and which of them name an object.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::Package;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::paths;

/// The page for operators.
pub(super) const PAGE: &str = "docs/operating.md";

/// The headings below which the page has its tables.
const FIELDS: &str = "### Fields";
const ERRORS: &str = "### Errors";
const WARNINGS: &str = "### Warnings";

/// What the second column of the table of fields says of a field that names an object.
const OBJECT: &str = "object";

/// The level of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LogLevel {
    Error,
    Warning,
    /// Information and what is below it: these have no rows.
    Lower,
}

impl LogLevel {
    /// By the name of its macro.
    fn of_macro(name: &str) -> Option<Self> {
        match name {
            "error" => Some(Self::Error),
            "warn" => Some(Self::Warning),
            "info" | "debug" | "trace" => Some(Self::Lower),
            _ => None,
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Lower => "message",
        })
    }
}

/// One call of a macro that logs.
#[derive(Debug)]
struct LogCall {
    level: LogLevel,
    fields: Vec<String>,
    /// None when it is no string literal, or one with placeholders.
    message: Option<String>,
    line: usize,
}

/// The tables of the page, and the messages that were found in the code.
#[derive(Debug, Default)]
pub(super) struct Messages {
    objects: BTreeSet<String>,
    details: BTreeSet<String>,
    rows: BTreeMap<(LogLevel, String), usize>,
    found: BTreeSet<(LogLevel, String)>,
    complaints: Vec<String>,
}

impl Messages {
    /// With the tables of the page.
    pub(super) fn of_page(page: &str) -> Self {
        let mut messages = Self::default();
        let mut heading = "";
        for (number, line) in page.lines().enumerate() {
            if line.starts_with('#') {
                heading = line.trim();
            }
            let mut cells = line.split('|').skip(1).map(str::trim);
            let (first, second) = (cells.next().unwrap_or_default(), cells.next());
            let Some(quoted) = first.strip_prefix('`').and_then(|cell| cell.strip_suffix('`'))
            else {
                continue;
            };
            messages.take_row(heading, quoted, second.unwrap_or_default(), number + 1);
        }
        messages
    }

    fn take_row(&mut self, heading: &str, quoted: &str, second: &str, line: usize) {
        let level = match heading {
            FIELDS if second == OBJECT => {
                self.objects.insert(quoted.to_owned());
                return;
            }
            FIELDS => {
                self.details.insert(quoted.to_owned());
                return;
            }
            ERRORS => LogLevel::Error,
            WARNINGS => LogLevel::Warning,
            _ => return,
        };
        if self.rows.insert((level, quoted.to_owned()), line).is_some() {
            self.complaints.push(format!("{PAGE}:{line}: a second row for `{quoted}`"));
        }
    }

    /// Reads one source file of a product crate; what tests log is theirs.
    pub(super) fn read_file(&mut self, root: &Path, package: &Package, path: &Path) -> Result<()> {
        let directory = package.manifest_path.parent().context("a manifest has a directory")?;
        let is_product = directory.strip_prefix(root).is_ok_and(|d| d.starts_with("crates"));
        match path.strip_prefix(directory) {
            Ok(file) if is_product && !paths::is_test(file) => {
                let text = std::fs::read_to_string(path)?;
                let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
                Ok(self.read(&shown, &text)?)
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Reads the text of one file; `shown` is how complaints name it.
    pub(super) fn read(&mut self, shown: &str, text: &str) -> syn::Result<()> {
        let mut scan = LogCallScan::default();
        scan.visit_file(&syn::parse_file(text)?);
        for call in scan.calls {
            self.check(shown, call);
        }
        Ok(())
    }

    fn check(&mut self, shown: &str, call: LogCall) {
        let LogCall { level, fields, message, line } = call;
        let at = format!("{shown}:{line}");
        let unknown =
            |field: &&String| !self.objects.contains(*field) && !self.details.contains(*field);
        for field in fields.iter().filter(unknown) {
            self.complaints.push(format!("{at}: `{field}` is no field of {PAGE}"));
        }
        let Some(message) = message else {
            self.complaints.push(format!(
                "{at}: the {level} is no string literal without placeholders; put what varies into fields"
            ));
            return;
        };
        if level == LogLevel::Lower {
            return;
        }
        if !fields.iter().any(|field| self.objects.contains(field)) {
            self.complaints.push(format!("{at}: the {level} `{message}` has no field that names an object ({PAGE} lists them)"));
        }
        let key = (level, message);
        if !self.rows.contains_key(&key) {
            self.complaints.push(format!("{at}: the {level} `{}` has no row in {PAGE}", key.1));
        }
        self.found.insert(key);
    }

    /// What is wrong, once all files were read.
    pub(super) fn complaints(mut self) -> Vec<String> {
        let stale = self.rows.iter().filter(|(key, _)| !self.found.contains(key));
        let stale = stale.map(|((level, message), line)| {
            format!("{PAGE}:{line}: no code logs the {level} `{message}`; remove its row")
        });
        self.complaints.extend(stale);
        self.complaints
    }
}

/// The calls of log macros in a file, those within other macros included.
#[derive(Default)]
struct LogCallScan {
    calls: Vec<LogCall>,
}

impl LogCallScan {
    /// Calls among the tokens of another macro, such as `tokio::select!`.
    fn scan(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut position = 0;
        while let Some(token) = tokens.get(position) {
            position += 1;
            match (token, tokens.get(position), tokens.get(position + 1)) {
                (
                    TokenTree::Ident(name),
                    Some(TokenTree::Punct(punct)),
                    Some(TokenTree::Group(arguments)),
                ) if punct.as_char() == '!'
                    && let Some(level) = LogLevel::of_macro(&name.to_string()) =>
                {
                    let line = name.span().start().line;
                    self.calls.push(log_call(level, line, arguments.stream()));
                    position += 2;
                }
                (TokenTree::Group(group), ..) => self.scan(group.stream()),
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for LogCallScan {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !paths::is_for_tests(paths::attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !paths::is_for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        let name = called.path.segments.last().map(|last| last.ident.clone());
        let level = name.as_ref().and_then(|name| LogLevel::of_macro(&name.to_string()));
        match (level, name) {
            (Some(level), Some(name)) => {
                let line = name.span().start().line;
                self.calls.push(log_call(level, line, called.tokens.clone()));
            }
            _ => self.scan(called.tokens.clone()),
        }
    }
}

/// Takes the arguments apart: fields, the message, and what the message is formatted with.
fn log_call(level: LogLevel, line: usize, arguments: TokenStream) -> LogCall {
    let tokens: Vec<TokenTree> = arguments.into_iter().collect();
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
    let arguments = tokens.split(is_comma).filter(|argument| !argument.is_empty());
    let (mut fields, mut message, mut formatted) = (Vec::new(), None, false);
    for argument in arguments {
        match (literal(argument), &message) {
            (_, Some(_)) => formatted = true,
            (Some(text), None) => message = Some(text),
            (None, None) => fields.push(field(argument)),
        }
    }
    let message = message.filter(|text| !formatted && !text.contains(['{', '}']));
    LogCall { level, fields, message, line }
}

/// The text of an argument that is nothing but a string literal.
fn literal(argument: &[TokenTree]) -> Option<String> {
    let [TokenTree::Literal(literal)] = argument else { return None };
    syn::parse_str::<syn::LitStr>(&literal.to_string()).ok().map(|text| text.value())
}

/// The name of a field, as `tracing` takes it: what stands before `=`, or the whole expression without `%` and `?`.
fn field(argument: &[TokenTree]) -> String {
    let is_equals = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == '=');
    let is_sigil = |token: &&TokenTree| matches!(token, TokenTree::Punct(p) if matches!(p.as_char(), '%' | '?'));
    let name = argument.split(is_equals).next().unwrap_or_default();
    name.iter().skip_while(is_sigil).map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = "
### Fields
| field | kind | names |
|---|---|---|
| `pod` | object | a pod |
| `path` | object | a path |
| `error` | detail | what failed |
### Errors
| message | what |
|---|---|
| `worker panicked` | a bug |
### Warnings
| message | what |
|---|---|
| `patch failed, will retry` | no answer |
## Other
| `anything` | else |
";

    fn complaints(text: &str) -> Vec<String> {
        // Both rows are used, unless the text is about that.
        let mut messages = Messages::of_page(TABLES);
        messages.read("a.rs", text).unwrap();
        messages.complaints().into_iter().filter(|it| !it.contains("remove its row")).collect()
    }

    #[test]
    fn a_warning_or_error_has_a_literal_message_an_object_and_a_row() {
        for (call, complaint) in [
            (r#"tracing::warn!(%pod, %error, "patch failed, will retry")"#, ""),
            (r#"warn!(pod = %self.name, "patch failed, will retry",)"#, ""),
            (r#"tracing::error!(path = ?self.path(a, b), "worker panicked")"#, ""),
            (r#"tracing::info!("started")"#, ""),
            (r#"tracing::debug!(error = e, "went on")"#, ""),
            (r#"compile_error!("x")"#, ""),
            (r#"tracing::warn!("patch failed, will retry")"#, "has no field that names an object"),
            (
                r#"tracing::warn!(%error, "patch failed, will retry")"#,
                "has no field that names an object",
            ),
            (
                r#"tracing::warn!(%pod, place = 1, "patch failed, will retry")"#,
                "`place` is no field",
            ),
            (r#"tracing::info!(%self.pod, "started")"#, "`self.pod` is no field"),
            (
                r#"tracing::warn!(%pod, "worker panicked")"#,
                "the warning `worker panicked` has no row",
            ),
            (r#"tracing::error!(%pod, "other")"#, "the error `other` has no row"),
            (r#"tracing::error!(%pod, "{error}")"#, "is no string literal"),
            (r#"tracing::warn!(%pod, "patch failed, will retry", error)"#, "is no string literal"),
            (r#"tracing::info!("{} started", name)"#, "is no string literal"),
            (r#"tracing::warn!(%pod, WORDS)"#, "is no string literal"),
            (r#"tracing::debug!(%pod)"#, "is no string literal"),
        ] {
            let complaints = complaints(&format!("fn f() {{\n    {call};\n}}"));
            assert_eq!(complaints.is_empty(), complaint.is_empty(), "{call}: {complaints:?}");
            let fits = |it: &String| it.starts_with("a.rs:2: ") && it.contains(complaint);
            assert!(complaint.is_empty() || complaints.iter().any(fits), "{call}: {complaints:?}");
        }
    }

    #[test]
    fn calls_are_found_within_other_macros_and_not_within_tests() {
        let bad = r#"tracing::warn!("x");"#;
        for (text, found) in [
            (format!("fn f() {{ tokio::select! {{ _ = a => {{ {bad} }} }} }}"), true),
            (format!("impl A {{ fn f() {{ {bad} }} }}"), true),
            (format!("fn f() {{ a.inspect_err(|_| {{ {bad} }}); }}"), true),
            (format!("#[cfg(test)] mod tests {{ fn f() {{ {bad} }} }}"), false),
        ] {
            assert_eq!(!complaints(&text).is_empty(), found, "{text}");
        }
    }

    #[test]
    fn a_row_without_a_message_and_a_second_row_are_refused() {
        let mut messages = Messages::of_page(TABLES);
        messages.read("a.rs", r#"fn f() { warn!(pod, "patch failed, will retry"); }"#).unwrap();
        let complaint =
            "docs/operating.md:11: no code logs the error `worker panicked`; remove its row";
        assert_eq!(messages.complaints(), [complaint]);
        let twice = "### Errors\n| `a` |\n| `a` |\n";
        assert_eq!(
            Messages::of_page(twice).complaints()[0],
            "docs/operating.md:3: a second row for `a`"
        );
    }
}
