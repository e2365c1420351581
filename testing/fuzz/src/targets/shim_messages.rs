//! What a shim and an agent say to each other, in two pieces.

use oarsman_shim::fuzz_messages;

use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget =
    FuzzTarget { name: "shim-messages", max_len: 4096, run, seeds };

fn run(bytes: &[u8]) {
    if let Some((cut, messages)) = bytes.split_first() {
        fuzz_messages(messages, usize::from(*cut).min(messages.len()));
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let messages = [
        r#"{"protocol":1,"program":"0.1.0","pid":4711}"#,
        r#"{"number":1,"request":{"call":"list"}}"#,
        r#"{"number":2,"request":{"call":"kill","container":"c","signal":9,"all":true}}"#,
        r#"{"number":3,"request":{"call":"exec","container":"c","process":{"user":{"uid":0,"gid":0},"args":["true"],"cwd":"/"},"streams":{"stdin":true},"timeout_ms":5}}"#,
        r#"{"number":4,"request":{"call":"create","container":"c","spec":{"ociVersion":"1.0.2"}}}"#,
        r#"{"number":5,"reply":{"answer":"exited","container":"c","exit":{"exit_code":137,"signal":9,"finished_at":"2026-11-18T08:00:02.5Z"}}}"#,
        r#"{"number":6,"reply":{"answer":"refused","kind":"too_tired","message":"no"}}"#,
    ];
    let framed = |json: &&str| {
        let length = u32::try_from(json.len()).unwrap_or_default();
        [&length.to_be_bytes(), json.as_bytes()].concat()
    };
    let each = messages.iter().map(|json| [vec![3], framed(json)].concat());
    let all = [vec![9], messages.iter().flat_map(framed).collect()].concat();
    each.chain([all]).collect()
}
