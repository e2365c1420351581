//! What registries and their token servers answer: headers, tokens and errors. Manifests are among the documents of images.

use oarsman_registry::fuzz_answers;

use super::texts;
use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget =
    FuzzTarget { name: "registry-answers", max_len: 2048, run: fuzz_answers, seeds };

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:library/busybox:pull,push""#,
        r#"Basic realm="Registry""#,
        r#"bearer realm=https://a/t?x=y, service=s, error="insufficient_scope\"""#,
        r#"{"token":"abc","access_token":"def","expires_in":300,"issued_at":"2026-11-18T00:00:00Z"}"#,
        r#"{"errors":[{"code":"DENIED","message":"no\naccess","detail":{}}]}"#,
        r#"{"details":"incorrect username or password"}"#,
        "https://storage.example/a/b?X-Amz-Signature=0a#c",
        "//other.example/a",
        "../c",
        "http://[::1]:5000/x",
        "bytes 5-9/10",
    ])
}
