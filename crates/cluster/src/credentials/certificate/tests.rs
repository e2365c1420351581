//! Subjects of client certificates, made by rcgen and changed byte by byte where rcgen refuses.

use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

use super::*;

/// As long as what takes its place, so that the lengths around it stay right.
const PLACEHOLDER: &str = "placeholder";
const NOT_UTF8: &[u8; 11] = b"ann\xff\xfe\x80bob\xc0!";

/// Types and values, in order.
type SubjectAttributes<'a> = &'a [(DnType, &'a str)];

fn certificate(attributes: SubjectAttributes<'_>) -> Vec<u8> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for (kind, value) in attributes {
        params.distinguished_name.push(kind.clone(), DnValue::Utf8String((*value).to_owned()));
    }
    let signed = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
    let mut bytes = signed.der().to_vec();
    while let Some(at) =
        bytes.windows(PLACEHOLDER.len()).position(|it| it == PLACEHOLDER.as_bytes())
    {
        bytes[at..at + NOT_UTF8.len()].copy_from_slice(NOT_UTF8);
    }
    bytes
}

/// rcgen keeps one value of each type; by its number the same type can be given again.
fn second_common_name() -> DnType {
    DnType::CustomDnType(vec![2, 5, 4, 3])
}

#[test]
fn a_client_has_exactly_one_name_and_it_is_text() {
    let (name, group) = (DnType::CommonName, DnType::OrganizationName);
    let rows: [(&str, SubjectAttributes<'_>, Option<&str>); 7] = [
        ("one", &[(group.clone(), "ops"), (name.clone(), "ann")], Some("ann")),
        // Go takes the last one, other programs the first.
        ("two", &[(name.clone(), "ann"), (second_common_name(), "bob")], None),
        ("two equal", &[(name.clone(), "ann"), (second_common_name(), "ann")], None),
        ("none", &[(group.clone(), "ops")], None),
        ("empty", &[(group.clone(), "ops"), (name.clone(), "")], None),
        ("not UTF-8", &[(group.clone(), "ops"), (name.clone(), PLACEHOLDER)], None),
        ("a group that is not UTF-8", &[(group, PLACEHOLDER), (name, "ann")], None),
    ];
    for (case, attributes, want) in rows {
        let found = client_subject(&certificate(attributes));
        assert_eq!(
            found.as_ref().ok().map(|it| it.common_name.as_str()),
            want,
            "{case}: {found:?}"
        );
    }
}
