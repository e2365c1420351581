//! Queries, what they mean, and why some are refused.

use super::*;

/// Names and values of a query.
type QueryPairs<'q> = &'q [(&'q str, &'q str)];

fn read(pairs: QueryPairs<'_>) -> Result<Option<NodeLogQuery>, NodeLogQueryError> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    NodeLogQuery::read(&pairs.iter().map(owned).collect::<Vec<_>>())
}

#[test]
fn a_query_names_services_or_a_file_and_other_requests_are_none() {
    let services = |names: &[&str]| {
        NodeLogTarget::Services(names.iter().map(|name| (*name).to_owned()).collect())
    };
    let rows: [(QueryPairs<'_>, Option<NodeLogTarget>); 6] = [
        (&[], None),
        (&[("other", "x"), ("tailLines", "")], None),
        (&[("query", "kubelet")], Some(services(&["kubelet"]))),
        (&[("query", "a"), ("query", " "), ("query", "b@1")], Some(services(&["a", "b@1"]))),
        (&[("query", "/apt/history.log")], Some(NodeLogTarget::File("/apt/history.log".into()))),
        (&[("query", r"apt\history.log")], Some(NodeLogTarget::File(r"apt\history.log".into()))),
    ];
    for (query, expected) in rows {
        assert_eq!(read(query).unwrap().map(|query| query.target), expected, "{query:?}");
    }
}

#[test]
fn a_value_that_cannot_be_read_is_told_from_one_that_is_not_allowed() {
    use NodeLogQueryError::{Invalid, Malformed};
    let long_name = "x".repeat(257);
    let long_pattern = "x".repeat(1025);
    let rows: [(QueryPairs<'_>, NodeLogQueryError); 18] = [
        (
            &[("query", " ")],
            Malformed("query=\"\" cannot be read; write the name of a service or a file".into()),
        ),
        (
            &[("query", "a"), ("sinceTime", "now")],
            Malformed(
                "sinceTime=\"now\" cannot be read; write a time such as 2026-01-31T12:00:00Z"
                    .into(),
            ),
        ),
        (
            &[("query", "a"), ("untilTime", "1")],
            Malformed(
                "untilTime=\"1\" cannot be read; write a time such as 2026-01-31T12:00:00Z".into(),
            ),
        ),
        (
            &[("query", "a"), ("tailLines", "-1")],
            Malformed("tailLines=\"-1\" cannot be read; write a number".into()),
        ),
        (
            &[("query", "a"), ("boot", "x")],
            Malformed("boot=\"x\" cannot be read; write 0, -1, -2 …".into()),
        ),
        (
            &[("tailLines", "1")],
            Invalid("query is missing: options need the name of a service".into()),
        ),
        (
            &[("query", "a/b"), ("tailLines", "1")],
            Invalid("query names a file: write it without options".into()),
        ),
        (
            &[("query", "a/b"), ("query", "a/c")],
            Invalid("query names more than one file: ask for them one by one".into()),
        ),
        (
            &[("query", "a/b"), ("query", "c")],
            Invalid("query names a file and a service: ask for them one by one".into()),
        ),
        (
            &[("query", "/../etc/shadow")],
            Invalid("query \"/../etc/shadow\" is not below the log directory".into()),
        ),
        (
            &[("query", "a"), ("query", "b"), ("query", "c"), ("query", "d"), ("query", "e")],
            Invalid("query names more than 4 services".into()),
        ),
        (
            &[("query", "a;reboot")],
            Invalid(
                "query \"a;reboot\" has other characters than letters, digits, -, _ and @".into(),
            ),
        ),
        (
            &[("query", "--file=x")],
            Invalid(
                "query \"--file=x\" has other characters than letters, digits, -, _ and @".into(),
            ),
        ),
        (
            &[("query", &long_name)],
            Invalid("query names a service with more than 256 characters".into()),
        ),
        (
            &[("query", "a"), ("tailLines", "100001")],
            Invalid("tailLines is more than 100000".into()),
        ),
        (&[("query", "a"), ("boot", "1")], Invalid("boot is more than 0, the current one".into())),
        (
            &[("query", "a"), ("pattern", &long_pattern)],
            Invalid("pattern has more than 1024 bytes".into()),
        ),
        (&[("query", "a"), ("pattern", "a\0b")], Invalid("pattern has control characters".into())),
    ];
    for (query, expected) in rows {
        assert_eq!(read(query), Err(expected), "{query:?}");
    }
    let reversed = [
        ("query", "a"),
        ("sinceTime", "2026-01-02T00:00:00Z"),
        ("untilTime", "2026-01-01T00:00:00Z"),
    ];
    assert_eq!(read(&reversed), Err(Invalid("untilTime is before sinceTime".into())));
}

#[test]
fn journalctl_gets_one_argument_for_each_option() {
    let query = read(&[
        ("query", "kubelet"),
        ("query", "containerd"),
        ("sinceTime", "2026-01-31T12:00:00+02:00"),
        ("untilTime", "2026-02-01T00:00:00Z"),
        ("tailLines", "100000"),
        ("pattern", "a b; $(reboot)"),
        ("boot", "-1"),
    ]);
    let query = query.unwrap().unwrap();
    let NodeLogTarget::Services(services) = &query.target else { panic!("services") };
    let expected = [
        "--utc",
        "--no-pager",
        "--since=2026-01-31 10:00:00 UTC",
        "--until=2026-02-01 00:00:00 UTC",
        "--lines=100000",
        "--unit=kubelet",
        "--unit=containerd",
        "--grep=a b; $(reboot)",
        "--boot=-1",
        "--output=short-precise",
    ];
    assert_eq!(query.options.journalctl_arguments(services), expected);
}
