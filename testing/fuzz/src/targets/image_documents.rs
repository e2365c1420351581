//! Indexes, manifests and configurations of images.

use oarsman_image_store::fuzz_documents;

use super::texts;
use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget =
    FuzzTarget { name: "image-documents", max_len: 8192, run, seeds };

fn run(bytes: &[u8]) {
    fuzz_documents(bytes);
}

fn seeds() -> Vec<Vec<u8>> {
    let digest = format!("sha256:{}", "0f".repeat(32));
    let descriptor = format!(r#"{{"mediaType":"application/x","digest":"{digest}","size":7}}"#);
    let platform = r#"{"os":"linux","architecture":"arm64","variant":"v8"}"#;
    let manifest =
        format!(r#"{{"schemaVersion":2,"config":{descriptor},"layers":[{descriptor}]}}"#);
    let index = format!(
        r#"{{"manifests":[{{"digest":"{digest}","size":1,"platform":{platform},"annotations":null}}]}}"#
    );
    let config = format!(
        r#"{{"os":"linux","architecture":"amd64","rootfs":{{"type":"layers","diff_ids":["{digest}"]}},
        "config":{{"User":"1:2","Env":null,"Cmd":["a"],"Labels":{{"a":"b"}},"Volumes":{{"/v":{{}}}}}}}}"#
    );
    texts(&[
        &manifest,
        &index,
        &config,
        r#"[{"Config":"x.json","RepoTags":["a:1"],"Layers":["x/layer.tar"]}]"#,
        r#"{"schemaVersion":1}"#,
    ])
}
