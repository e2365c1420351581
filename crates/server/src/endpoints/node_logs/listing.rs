//! The list of a directory, as a page of links.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::log_file::DirectoryNames;

/// A page as Go's file server writes it.
pub(super) fn page(found: &DirectoryNames) -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], text(found)).into_response()
}

fn text(found: &DirectoryNames) -> String {
    let mut text =
        "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n"
            .to_owned();
    for name in &found.names {
        let shown = escaped_html(&name.to_string_lossy());
        let link = escaped_bytes(name.as_bytes());
        // Without it a name with a colon would be read as a scheme.
        let prefix = if link.contains(':') { "./" } else { "" };
        // Writing to a text cannot fail.
        writeln!(text, "<a href=\"{prefix}{link}\">{shown}</a>").ok();
    }
    if found.is_cut {
        writeln!(text, "There are more files, which are not listed.").ok();
    }
    text.push_str("</pre>\n");
    text
}

fn escaped_html(text: &str) -> String {
    let escaped = |letter: char| match letter {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&#34;".to_owned(),
        '\'' => "&#39;".to_owned(),
        other => other.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// A path as it stands in a URL.
pub(super) fn escaped_path(path: &str) -> String {
    escaped_bytes(path.as_bytes())
}

fn escaped_bytes(bytes: &[u8]) -> String {
    let escaped = |byte: &u8| match byte {
        b'a'..=b'z'
        | b'A'..=b'Z'
        | b'0'..=b'9'
        | b'-'
        | b'_'
        | b'.'
        | b'~'
        | b'/'
        | b':'
        | b'@' => char::from(*byte).to_string(),
        other => format!("%{other:02X}"),
    };
    bytes.iter().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_links_that_cannot_be_anything_else() {
        let names = ["a b.log", "<script>", "pods/", "x:y"].map(Into::into).into();
        let text = text(&DirectoryNames { names, is_cut: false });
        let expected = "<pre>\n<a href=\"a%20b.log\">a b.log</a>\n\
                        <a href=\"%3Cscript%3E\">&lt;script&gt;</a>\n\
                        <a href=\"pods/\">pods/</a>\n\
                        <a href=\"./x:y\">x:y</a>\n</pre>\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn a_list_that_is_cut_says_so() {
        let text = text(&DirectoryNames { names: vec!["a".into()], is_cut: true });
        assert!(text.contains("There are more files"), "{text}");
    }
}
