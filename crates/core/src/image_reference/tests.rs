//! Names that are valid, and names that are not.

use super::*;

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

#[test]
fn only_a_name_with_neither_tag_nor_digest_gets_latest() {
    let with_digest = format!("busybox@{DIGEST}");
    let with_both = format!("reg.example/a/b:1@{DIGEST}");
    let rows = [
        ("busybox", "busybox:latest"),
        ("busybox:1.36", "busybox:1.36"),
        ("library/busybox", "library/busybox:latest"),
        ("localhost/busybox", "localhost/busybox:latest"),
        ("reg.example:5000/a/b", "reg.example:5000/a/b:latest"),
        ("reg.example:5000/a/b:v1", "reg.example:5000/a/b:v1"),
        ("[::1]:5000/a", "[::1]:5000/a:latest"),
        ("REG/a__b.c-d--e", "REG/a__b.c-d--e:latest"),
        ("host:5000", "host:5000"),
        (&with_digest, &with_digest),
        (&with_both, &with_both),
    ];
    for (image, expected) in rows {
        assert_eq!(with_default_tag(image).as_deref(), Ok(expected), "{image}");
    }
}

#[test]
fn what_no_registry_could_serve_is_refused_with_the_reason() {
    let hex = "0123456789abcdef".repeat(4);
    let short_digest = "busybox@sha256:0123";
    let long_path = "a".repeat(256);
    let long_tag = format!("a:{}", "t".repeat(129));
    let rows = [
        ("", MALFORMED),
        ("Busybox", NOT_LOWERCASE),
        ("reg.example/Busybox", NOT_LOWERCASE),
        ("busybox:", MALFORMED),
        ("busybox:-x", MALFORMED),
        (&long_tag, MALFORMED),
        ("busy box", MALFORMED),
        ("a..b", MALFORMED),
        ("a___b", MALFORMED),
        ("-a", MALFORMED),
        ("a/", MALFORMED),
        ("a//b", MALFORMED),
        ("/a", MALFORMED),
        ("reg_.example.com/a", MALFORMED),
        ("reg.example:port/a", MALFORMED),
        ("reg.-x.com/a", MALFORMED),
        ("[zz]:1/a", MALFORMED),
        ("bücher", MALFORMED),
        ("busybox@", MALFORMED),
        (short_digest, BAD_DIGEST),
        ("busybox@md5:0123456789abcdef0123456789abcdef", BAD_DIGEST),
        (&hex, BARE_ID),
        (&long_path, TOO_LONG),
    ];
    for (image, why) in rows {
        let expected = InvalidName { image: image.to_owned(), why };
        assert_eq!(with_default_tag(image), Err(expected), "{image}");
    }
}

#[test]
fn short_names_are_spelled_out() {
    let rows = [
        ("busybox", "docker.io/library/busybox", ":latest"),
        ("busybox:1", "docker.io/library/busybox", ":1"),
        ("docker.io/busybox", "docker.io/library/busybox", ":latest"),
        ("index.docker.io/team/app:2", "docker.io/team/app", ":2"),
        ("team/app", "docker.io/team/app", ":latest"),
        ("r.io:5000/app", "r.io:5000/app", ":latest"),
        ("r.io:5000/app:3@sha256:00", "r.io:5000/app", "@sha256:00"),
        ("localhost/app:4", "localhost/app", ":4"),
    ];
    for (image, repository, rest) in rows {
        assert_eq!(repository_name(image), repository, "{image}");
        assert_eq!(full_name(image), format!("{repository}{rest}"), "{image}");
    }
}
