//! Row C13 of docs/security.md: who a client's certificate names, here and for Go. Go's own crypto/x509 issues the certificates and
//! judges them; no client may be another user here than there.
#![expect(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use std::io::Write;
use std::process::{Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use oarsman_cluster::credentials::certificate::client_subject;
use serde_json::{Value, json};

const VERIFIER: &str = "OARSMAN_GO_CLIENT_NAMES";

/// Object identifiers of attributes.
const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const ORGANIZATION: &[u8] = &[0x55, 4, 10];
/// Types of strings.
const UTF8: u8 = 12;
const NUMERIC: u8 = 18;
const PRINTABLE: u8 = 19;
const TELETEX: u8 = 20;
const IA5: u8 = 22;
const UNIVERSAL: u8 = 28;
const BMP: u8 = 30;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// An attribute: its identifier, the type of its string, and the bytes.
type Attribute = (&'static [u8], u8, &'static [u8]);

/// The user that a subject stands for, here and for Go.
#[derive(Debug, PartialEq, Eq)]
enum ExpectedClient {
    /// The same user here and for Go.
    User(&'static str),
    /// Refused here and by Go.
    Refused,
    /// Refused here, though Go takes it for this user.
    OnlyForGo(&'static str),
}

struct SubjectCase {
    name: &'static str,
    /// Each in a set of its own, unless `in_one_set`.
    attributes: &'static [Attribute],
    in_one_set: bool,
    want: ExpectedClient,
}

const fn case(
    name: &'static str,
    attributes: &'static [Attribute],
    want: ExpectedClient,
) -> SubjectCase {
    SubjectCase { name, attributes, in_one_set: false, want }
}

const OPS: Attribute = (ORGANIZATION, UTF8, b"ops");
const ANN: Attribute = (COMMON_NAME, UTF8, b"ann");
const BOB: Attribute = (COMMON_NAME, UTF8, b"bob");

const CASES: &[SubjectCase] = &[
    case("one", &[OPS, ANN], ExpectedClient::User("ann")),
    case("printable", &[OPS, (COMMON_NAME, PRINTABLE, b"ann")], ExpectedClient::User("ann")),
    case("IA5", &[OPS, (COMMON_NAME, IA5, b"ann")], ExpectedClient::User("ann")),
    case("numeric", &[(COMMON_NAME, NUMERIC, b"12")], ExpectedClient::User("12")),
    case("with blanks", &[(COMMON_NAME, UTF8, b" ann ")], ExpectedClient::User(" ann ")),
    case("with a zero byte", &[(COMMON_NAME, UTF8, b"ann\0bob")], ExpectedClient::User("ann\0bob")),
    case("other script", &[(COMMON_NAME, UTF8, "änn".as_bytes())], ExpectedClient::User("änn")),
    case("two", &[ANN, BOB], ExpectedClient::OnlyForGo("bob")),
    case("two equal", &[ANN, ANN], ExpectedClient::OnlyForGo("ann")),
    SubjectCase {
        name: "two in one set",
        attributes: &[ANN, BOB],
        in_one_set: true,
        want: ExpectedClient::OnlyForGo("bob"),
    },
    case("a name and an empty one", &[ANN, (COMMON_NAME, UTF8, b"")], ExpectedClient::Refused),
    case("none", &[OPS], ExpectedClient::Refused),
    case("no subject", &[], ExpectedClient::Refused),
    case("empty", &[OPS, (COMMON_NAME, UTF8, b"")], ExpectedClient::Refused),
    case("not UTF-8", &[OPS, (COMMON_NAME, UTF8, b"ann\xff\xfe")], ExpectedClient::Refused),
    case("overlong UTF-8", &[OPS, (COMMON_NAME, UTF8, b"ann\xc0\x80")], ExpectedClient::Refused),
    case(
        "a group that is not UTF-8",
        &[(ORGANIZATION, UTF8, b"\xff"), ANN],
        ExpectedClient::Refused,
    ),
    case("not printable", &[(COMMON_NAME, PRINTABLE, b"ann\x01")], ExpectedClient::Refused),
    case("not ASCII", &[(COMMON_NAME, IA5, b"ann\xe4")], ExpectedClient::Refused),
    case("IA5 in UTF-8", &[(COMMON_NAME, IA5, "änn".as_bytes())], ExpectedClient::Refused),
    case(
        "printable with a star",
        &[(COMMON_NAME, PRINTABLE, b"a*&n")],
        ExpectedClient::User("a*&n"),
    ),
    case("not numeric", &[(COMMON_NAME, NUMERIC, b"ann")], ExpectedClient::Refused),
    case("teletex", &[(COMMON_NAME, TELETEX, b"ann")], ExpectedClient::OnlyForGo("ann")),
    case(
        "two bytes a character",
        &[(COMMON_NAME, BMP, b"\0a\0n\0n")],
        ExpectedClient::OnlyForGo("ann"),
    ),
    case(
        "four bytes a character",
        &[(COMMON_NAME, UNIVERSAL, b"\0\0\0a")],
        ExpectedClient::Refused,
    ),
];

/// Tag, length and content; no content here has more than 127 bytes.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag, u8::try_from(content.len()).unwrap()], content].concat()
}

fn subject(case: &SubjectCase) -> Vec<u8> {
    let attribute = |(identifier, tag, value): &Attribute| {
        der(SEQUENCE, &[der(6, identifier), der(*tag, value)].concat())
    };
    let attributes = case.attributes.iter().map(attribute);
    let sets = match case.in_one_set {
        true => der(SET, &attributes.collect::<Vec<_>>().concat()),
        false => attributes.map(|it| der(SET, &it)).collect::<Vec<_>>().concat(),
    };
    der(SEQUENCE, &sets)
}

/// Go's answers, in the order of the cases.
fn ask_go() -> Vec<Value> {
    let program = std::env::var(VERIFIER)
        .unwrap_or_else(|_| panic!("set {VERIFIER} to the built testing/rig/go/client-names"));
    let row = |case: &SubjectCase| json!({ "name": case.name, "subject": STANDARD.encode(subject(case)) });
    let rows: Vec<Value> = CASES.iter().map(row).collect();
    let mut go = Command::new(program);
    let mut child = go.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&serde_json::to_vec(&rows).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The user and the groups that Go's authenticator would take a client for: one without a name is none.
fn user_of_go(answer: &Value) -> Option<(String, Vec<String>)> {
    let name = answer["commonName"].as_str().unwrap();
    let is_user = answer["error"] == "" && !name.is_empty();
    let groups = answer["organizations"].as_array().unwrap().iter();
    let groups = groups.map(|group| group.as_str().unwrap().to_owned()).collect();
    is_user.then(|| (name.to_owned(), groups))
}

/// Whether the client is who the case says, here and for Go.
fn is_as_wanted(
    want: &ExpectedClient,
    ours: Option<&(String, Vec<String>)>,
    go: Option<&(String, Vec<String>)>,
) -> bool {
    match want {
        ExpectedClient::User(name) => ours == go && go.is_some_and(|(user, _)| user == name),
        ExpectedClient::Refused => ours.is_none() && go.is_none(),
        ExpectedClient::OnlyForGo(name) => {
            ours.is_none() && go.is_some_and(|(user, _)| user == name)
        }
    }
}

#[test]
#[ignore = "needs OARSMAN_GO_CLIENT_NAMES; ./test sets it"]
fn a_client_is_who_go_takes_it_for_or_refused() {
    let answers = ask_go();
    assert_eq!(answers.len(), CASES.len());
    let mut wrong = Vec::new();
    for (case, answer) in CASES.iter().zip(answers) {
        let certificate = STANDARD.decode(answer["certificate"].as_str().unwrap()).unwrap();
        let ours = client_subject(&certificate).map(|it| (it.common_name, it.organizations));
        let go = user_of_go(&answer);
        if !is_as_wanted(&case.want, ours.as_ref().ok(), go.as_ref()) {
            wrong.push(format!("{}: ours {ours:?}, Go {go:?} {}", case.name, answer["error"]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
