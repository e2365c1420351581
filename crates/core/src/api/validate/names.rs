//! Forms that names and values have to have. Each check returns what is wrong, one line each.

const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;
const PORT_NAME_MAX: usize = 15;
const LABEL_FORM: &str =
    "use lower-case letters, digits and '-', with none of the last at the ends, as in my-name";
const SUBDOMAIN_FORM: &str =
    "use lower-case letters, digits and '-', in parts with dots between, as in example.com";

/// What is wrong with a value; nothing when it is right.
pub(super) type NameErrors = Vec<String>;

/// A DNS label: `my-name`.
pub(super) fn dns_label(value: &str) -> NameErrors {
    let mut complaints = too_long(value, LABEL_MAX);
    if !is_dns_label(value) {
        let dots = value.split('.').all(is_dns_label);
        complaints.push(if dots { "must not have dots".to_owned() } else { LABEL_FORM.to_owned() });
    }
    complaints
}

/// DNS labels joined by dots: `example.com`.
pub(super) fn dns_subdomain(value: &str) -> NameErrors {
    let mut complaints = too_long(value, SUBDOMAIN_MAX);
    if !value.split('.').all(is_dns_label) {
        complaints.push(SUBDOMAIN_FORM.to_owned());
    }
    complaints
}

/// The same, where labels may have underscores.
pub(super) fn dns_subdomain_with_underscores(value: &str) -> NameErrors {
    let mut complaints = too_long(value, SUBDOMAIN_MAX);
    let is_label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label);
        is_framed(label, is_lower_alphanumeric, |c| c == '-' || c == '_')
    };
    if !value.split('.').all(is_label) {
        complaints.push(
            "use lower-case letters, digits, '_', '-' and '.', as in _sip.example.com".to_owned(),
        );
    }
    complaints
}

/// A label's key, which may have a domain before it: `example.com/name`.
pub(crate) fn qualified_name(value: &str) -> NameErrors {
    let parts: Vec<&str> = value.split('/').collect();
    let (prefix, name) = match parts[..] {
        [name] => (None, name),
        [prefix, name] => (Some(prefix), name),
        _ => return vec!["may have one '/', as in example.com/name".to_owned()],
    };
    let mut complaints = match prefix {
        None => NameErrors::new(),
        Some("") => vec!["has nothing before the '/'".to_owned()],
        Some(prefix) => dns_subdomain(prefix),
    };
    if name.is_empty() {
        complaints.push("the name must not be empty".to_owned());
    } else {
        complaints.extend(too_long(name, LABEL_MAX));
    }
    if !is_label_text(name) {
        complaints.push(LABEL_RULE.to_owned());
    }
    complaints
}

pub(super) fn label_value(value: &str) -> NameErrors {
    let mut complaints = too_long(value, LABEL_MAX);
    if !value.is_empty() && !is_label_text(value) {
        complaints.push(LABEL_RULE.to_owned());
    }
    complaints
}

const LABEL_RULE: &str =
    "use letters, digits, '-', '_' and '.', with a letter or digit at both ends, as in My.name-1";

/// The name of a port: `http`.
pub(super) fn port_name(value: &str) -> NameErrors {
    let mut complaints = too_long(value, PORT_NAME_MAX);
    if value.is_empty() || !value.chars().all(|c| is_lower_alphanumeric(c) || c == '-') {
        complaints.push("use lower-case letters, digits and '-'".to_owned());
    }
    if !value.contains(|c: char| c.is_ascii_lowercase()) {
        complaints.push("must have a letter in it".to_owned());
    }
    if value.contains("--") {
        complaints.push("must not have two '-' in a row".to_owned());
    }
    if value.starts_with('-') || value.ends_with('-') {
        complaints.push("must not begin or end with '-'".to_owned());
    }
    complaints
}

/// The number of a port.
pub(super) fn port_number(port: i32) -> NameErrors {
    in_range(port.into(), 1, 65535)
}

/// The number of a user or a group.
pub(super) fn identity(id: i64) -> NameErrors {
    in_range(id, 0, i32::MAX.into())
}

/// A number between two others, or one of them.
pub(super) fn in_range(value: i64, lowest: i64, highest: i64) -> NameErrors {
    if (lowest..=highest).contains(&value) {
        NameErrors::new()
    } else {
        vec![format!("must be from {lowest} to {highest}")]
    }
}

/// The name of an HTTP header.
pub(super) fn header_name(value: &str) -> NameErrors {
    let valid = !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    unless(valid, "use letters, digits and '-', as in X-Header")
}

/// The name of an environment variable; any printable ASCII will do but the equals sign.
pub(super) fn variable_name(value: &str) -> NameErrors {
    let valid = value.chars().all(|c| (c.is_ascii_graphic() || c == ' ') && c != '=');
    unless(valid, "use printable ASCII characters other than '='")
}

/// A key of a config map or a secret.
pub(super) fn config_key(value: &str) -> NameErrors {
    let mut complaints = too_long(value, SUBDOMAIN_MAX);
    if value.is_empty()
        || !value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    {
        complaints.push("use letters, digits, '-', '_' and '.', as in key.name".to_owned());
    }
    if value == "." || value.starts_with("..") {
        complaints.push("must be neither '.' nor begin with '..'".to_owned());
    }
    complaints
}

fn too_long(value: &str, most: usize) -> NameErrors {
    unless(value.len() <= most, &format!("must not be longer than {most} characters"))
}

fn unless(valid: bool, complaint: &str) -> NameErrors {
    if valid { NameErrors::new() } else { vec![complaint.to_owned()] }
}

fn is_dns_label(value: &str) -> bool {
    is_framed(value, is_lower_alphanumeric, |c| c == '-')
}

fn is_label_text(value: &str) -> bool {
    is_framed(value, |c| c.is_ascii_alphanumeric(), |c| matches!(c, '-' | '_' | '.'))
}

/// Of outer characters at both ends, and of outer and inner ones in between.
pub(super) fn is_framed(value: &str, outer: fn(char) -> bool, inner: fn(char) -> bool) -> bool {
    value.starts_with(outer)
        && value.ends_with(outer)
        && value.chars().all(|c| outer(c) || inner(c))
}

pub(super) fn is_lower_alphanumeric(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(form: fn(&str) -> NameErrors, rows: &[(&str, usize)]) {
        for (value, complaints) in rows {
            let found = form(value);
            assert_eq!(found.len(), *complaints, "{value:?}: {found:?}");
        }
    }

    #[test]
    fn dns_names_are_lower_case_and_have_no_dash_at_their_ends() {
        let long = "a".repeat(64);
        let both = format!("{}-", "A".repeat(63));
        check(dns_label, &[("a", 0), ("a-1", 0), ("", 1), ("-a", 1), ("A", 1), ("a.b", 1)]);
        check(dns_label, &[(&long, 1), (&both, 2)]);
        check(dns_subdomain, &[("a.b", 0), ("a..b", 1), ("a.-b", 1), (".", 1), ("", 1)]);
        check(dns_subdomain_with_underscores, &[("_a.b_c", 0), ("__a", 1), ("a_", 1)]);
    }

    #[test]
    fn a_qualified_name_has_at_most_one_domain_before_it() {
        let rows =
            [("a", 0), ("x.y/A_b", 0), ("", 2), ("/a", 1), ("x/", 2), ("a/b/c", 1), ("X/a", 1)];
        check(qualified_name, &rows);
        check(label_value, &[("", 0), ("a", 0), ("-a", 1), ("a b", 1)]);
    }

    #[test]
    fn a_port_name_breaks_several_rules_at_once() {
        let rows = [("http", 0), ("a-1", 0), ("", 2), ("80", 1), ("-a--b-", 2), ("UPPER", 2)];
        check(port_name, &rows);
    }

    #[test]
    fn keys_and_variables_have_their_own_characters() {
        check(config_key, &[("a.b-C_d", 0), ("", 1), (".", 1), ("..a", 1), ("a b", 1)]);
        check(variable_name, &[("odd (name)", 0), ("a=b", 1), ("tab\t", 1), ("ü", 1)]);
        check(header_name, &[("X-A", 0), ("", 1), ("a_b", 1)]);
    }
}
