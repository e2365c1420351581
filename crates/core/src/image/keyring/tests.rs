//! Files as tools write them, and images as pods name them.

use super::*;

fn users(keyring: &Keyring, image: &str) -> Vec<String> {
    keyring.for_image(image).into_iter().map(|found| found.auth.username).collect()
}

fn with(names: &[&str]) -> Keyring {
    let entries =
        names.iter().map(|name| format!(r#""{name}": {{"username": "{name}", "password": "p"}}"#));
    let entries: Vec<String> = entries.collect();
    Keyring::parse(&format!(r#"{{"auths": {{{}}}}}"#, entries.join(","))).unwrap()
}

#[test]
fn an_entry_opens_its_registry_and_what_is_below_its_path() {
    let rows = [
        ("reg.io", "reg.io/a/b:1", true),
        ("reg.io", "reg.io:5000/a", false),
        ("reg.io:5000", "reg.io:5000/a", true),
        ("reg.io/team", "reg.io/team/app@sha256:00", true),
        ("reg.io/team", "reg.io/team:2", true),
        ("reg.io/team", "reg.io/teams/app", false),
        ("*.reg.io", "eu.reg.io/a", true),
        ("*.reg.io", "reg.io/a", false),
        ("*.reg.io", "a.b.reg.io/a", false),
        ("pre*x.reg.io", "prefix.reg.io/a", true),
        ("https://reg.io/v2/", "reg.io/a", true),
        ("https://index.docker.io/v1/", "busybox", true),
        ("https://index.docker.io/v1/", "library/busybox:1", true),
        ("docker.io", "reg.io/a", false),
        ("127.0.0.1:5000", "127.0.0.1:5000/private:1", true),
    ];
    for (name, image, opens) in rows {
        assert_eq!(!with(&[name]).for_image(image).is_empty(), opens, "{name} for {image}");
    }
}

#[test]
fn all_that_fit_are_tried_the_most_particular_first() {
    let keyring = with(&["reg.io", "reg.io/team", "other.io", "*.io"]);
    assert_eq!(users(&keyring, "reg.io/team/app"), ["reg.io/team", "reg.io", "*.io"]);
}

#[test]
fn credentials_are_read_however_they_are_written() {
    let rows = [
        (r#"{"auths": {"r.io": {"auth": "dXNlcjpwYTpzcw=="}}}"#, ("user", "pa:ss", "")),
        (
            r#"{"r.io": {"username": "user", "password": "pass", "email": "x"}}"#,
            ("user", "pass", ""),
        ),
        (r#"{"auths": {"r.io": {"identitytoken": "t"}}}"#, ("", "", "t")),
    ];
    for (text, (username, password, identity_token)) in rows {
        let found = Keyring::parse(text).unwrap().for_image("r.io/a");
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(
            (
                found[0].auth.username.as_str(),
                found[0].auth.password.as_str(),
                found[0].auth.identity_token.as_str()
            ),
            (username, password, identity_token)
        );
    }
}

#[test]
fn a_file_that_is_none_is_refused_without_repeating_a_secret() {
    let rows = [
        ("not json", "it is not a Docker configuration"),
        (r#"["auths"]"#, "it is not a Docker configuration"),
        (r#"{"auths": {"r.io": {"auth": "s3cret!"}}}"#, "r.io"),
    ];
    for (text, told) in rows {
        let error = Keyring::parse(text).unwrap_err().to_string();
        assert!(error.contains(told) && !error.contains("s3cret"), "{error}");
    }
    assert_eq!(Keyring::parse("{}").unwrap(), Keyring::default());
}

#[test]
fn an_entry_without_credentials_opens_nothing_and_voids_no_other() {
    let text = r#"{"auths": {"r.io": {}, "s.io": {"email": "x"}, "t.io": {"username": "t", "password": "p"}}, "credsStore": "desktop"}"#;
    let keyring = Keyring::parse(text).unwrap();
    assert!(keyring.for_image("r.io/a").is_empty() && keyring.for_image("s.io/a").is_empty());
    assert_eq!(users(&keyring, "t.io/a"), ["t"]);
}

#[test]
fn stars_stand_for_any_text() {
    let rows = [
        ("", "", true),
        ("", "a", false),
        ("*", "", true),
        ("*", "abc", true),
        ("**", "abc", true),
        ("a*", "abc", true),
        ("*c", "abc", true),
        ("a*c", "abc", true),
        ("a*c", "ac", true),
        ("a*c", "abcd", false),
        ("a*b*c", "a-b-b-c", true),
        ("*ab", "aab", true),
        ("*aab*", "aaaabaaa", true),
        ("a*a", "a", false),
        ("abc", "abc", true),
        ("abc", "ab", false),
        ("ä*ß", "äöüß", true),
    ];
    for (pattern, text, expected) in rows {
        assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
    }
}

#[test]
fn a_pattern_takes_no_more_steps_than_it_and_the_text_have_characters_multiplied() {
    let text = "a".repeat(250);
    for piece in ["*a", "a*", "*", "*aa", "*a*"] {
        let pattern = format!("{}b", piece.repeat(30));
        let (matched, steps) = matches_in_steps(pattern.as_bytes(), text.as_bytes());
        assert!(!matched && steps <= pattern.len() * text.len(), "{pattern}: {steps}");
    }
}
