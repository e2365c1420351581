//! What a text says. The answers are those of `sigs.k8s.io/yaml` v1.6.0, which kubectl and the Go kubelet read with.

use serde_json::json;

use super::*;

#[test]
fn values_are_what_kubectl_reads() {
    let rows = [
        ("0400", json!(256)),
        ("0o400", json!(256)),
        ("0_400", json!(256)),
        ("-0400", json!(-256)),
        ("0x10", json!(16)),
        ("0b11", json!(3)),
        ("08", json!(8)),
        ("00", json!(0)),
        ("0", json!(0)),
        ("1_000", json!(1000)),
        ("+5", json!(5)),
        ("yes", json!(true)),
        ("YES", json!(true)),
        ("y", json!(true)),
        ("On", json!(true)),
        ("True", json!(true)),
        ("no", json!(false)),
        ("N", json!(false)),
        ("off", json!(false)),
        ("'yes'", json!("yes")),
        ("\"on\"", json!("on")),
        ("\"0400\"", json!("0400")),
        ("!!str 1", json!("1")),
        ("~", json!(null)),
        ("Null", json!(null)),
        ("", json!(null)),
        ("1.5", json!(1.5)),
        ("1.0", json!(1)),
        ("1e3", json!(1000)),
        ("-2.0", json!(-2)),
        ("1e-3", json!(0.001)),
        ("100m", json!("100m")),
        ("12:30", json!("12:30")),
        ("2001-01-01", json!("2001-01-01")),
        ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
        ("[1, 2,]", json!([1, 2])),
    ];
    for (written, want) in rows {
        let read = one_document(format!("a: {written}\n").as_bytes()).unwrap();
        assert_eq!(read, json!({ "a": want }), "{written}");
    }
}

#[test]
fn the_last_of_two_fields_of_one_name_counts_and_merges_are_unfolded() {
    assert_eq!(one_document(b"a: 1\na: 2\n").unwrap(), json!({ "a": 2 }));
    let read = one_document(b"x: &x {b: 1}\na:\n  <<: *x\n  c: 2\n").unwrap();
    assert_eq!(read["a"], json!({ "b": 1, "c": 2 }));
}

#[test]
fn marks_around_a_document_and_empty_ones_do_not_count() {
    let one = json!({ "a": 1 });
    let rows = [
        "a: 1",
        "---\na: 1\n",
        "---\na: 1\n---\n",
        "a: 1\n...\n",
        "---\n---\na: 1\n",
        "# said\n---\na: 1\n---\n# said\n",
        "\u{feff}a: 1",
        "{\"a\": 1}",
        "\n  {\"a\": 1}\n",
    ];
    for text in rows {
        assert_eq!(one_document(text.as_bytes()).unwrap(), one, "{text:?}");
    }
    assert_eq!(documents(b"a: 1\n---\nb: 2\n").unwrap(), [one, json!({ "b": 2 })]);
}

#[test]
fn an_invalid_manifest_is_described_in_one_line_with_the_fix() {
    let rows: [(&[u8], &str); 8] = [
        (b"", "it is empty or has nothing but comments; write a Pod into it, or remove it"),
        (b"# a\n\n# b\n", "it is empty or has nothing but comments"),
        (b"a: 1\n---\nb: 2\n", "it has 2 documents; a manifest here holds one Pod"),
        (b"a: \xff\xfe", "it is not text: byte 4 is none that UTF-8 has there"),
        (b"\x7fELF\x02\0", "it is not text: byte 6 is none that UTF-8 has there"),
        (b"a: [1, 2", "it is not YAML: "),
        (b"{\"a\": 1", "it is not JSON: EOF while parsing an object at line 1 column 7"),
        (b"a: .inf", "it is not YAML: non-finite float"),
    ];
    for (bytes, want) in rows {
        let said = one_document(bytes).unwrap_err().to_string();
        assert!(said.starts_with(want), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn an_error_does_not_repeat_the_text_around_it() {
    let text = "a: hunter2\nb: {c: hunter2\nd: hunter2: hunter2\n";
    let said = one_document(text.as_bytes()).unwrap_err().to_string();
    assert!(!said.contains("hunter2"), "{said}");
}

/// Nine times ten of the one before: unfolded, a thousand million words.
fn billion_laughs() -> String {
    let line = |i: usize| {
        let before = vec![format!("*a{}", i - 1); 10].join(",");
        format!("a{i}: &a{i} [{before}]\n")
    };
    "a0: &a0 lol\n".to_owned() + &(1..=9).map(line).collect::<String>()
}

#[test]
fn an_alias_bomb_is_refused() {
    let long = "x".repeat(1 << 20);
    let echoes = format!("a: &a {long}\nb: [{}]\n", vec!["*a"; 1_000].join(","));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let json = format!("{}{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    for (name, bomb) in
        [("laughs", billion_laughs()), ("echoes", echoes), ("deep", deep), ("json", json)]
    {
        let refused = one_document(bomb.as_bytes());
        assert!(matches!(refused, Err(ManifestError::Syntax { .. })), "{name}");
    }
}

#[test]
fn usual_aliases_and_comments_are_accepted() {
    let comments = "# one of many\n".repeat(200);
    let uses = "- *a\n".repeat(300);
    let text = format!("{comments}a: &a {{b: 1}}\n{comments}c:\n{comments}{uses}");
    assert_eq!(one_document(text.as_bytes()).unwrap()["c"].as_array().unwrap().len(), 300);
}

#[test]
fn repeated_keys_are_named_and_the_last_value_counts() {
    let yaml = b"a: 1\nb:\n  - {c: 1, d: {e: 1, e: 2}}\na: 2\n".as_slice();
    let json = br#"{"a": 1, "b": [{"c": 1, "d": {"e": 1, "e": 2}}], "a": 2}"#.as_slice();
    for text in [yaml, json] {
        let document = parsed_documents(text).unwrap().remove(0);
        assert_eq!(document.value, json!({"a": 2, "b": [{"c": 1, "d": {"e": 2}}]}));
        assert_eq!(document.repeated, ["b[0].d.e", "a"]);
    }
}

/// Row H7 of docs/security.md: with each path as long as the keys above it, this would take 150 GB.
#[test]
fn of_keys_that_are_repeated_without_end_the_first_are_named() {
    let key = "a".repeat(1 << 20);
    let inner = ["\"b\":1"; 150_000].join(",");
    let text = format!("{{\"{key}\":{{{inner}}},\"c\":[{{{inner}}}]}}");
    let document = parsed_documents(text.as_bytes()).unwrap().remove(0);
    assert_eq!(document.repeated.len(), 32);
    assert!(document.repeated.iter().all(|path| path.len() <= 256), "{:?}", document.repeated);
    assert_eq!(document.value["c"][0]["b"], 1);
}
