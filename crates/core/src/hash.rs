//! Hashes that others must be able to make again, so that a node changes hands without a container restarting.

use std::fmt::Write;

use k8s_openapi::api::core::v1::Container;
use sha2::{Digest, Sha256};

/// FNV-1a in 32 bits.
pub fn fnv32a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// FNV-1a in 64 bits.
pub fn fnv64a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// SHA-256 in lower-case hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a string does not fail.
        write!(text, "{byte:02x}").ok();
    }
    text
}

/// The hash of a container's definition. Only name and image are in it: a change to one of them is the only edit that
/// restarts a running container.
pub fn container_hash(spec: &Container) -> u32 {
    let image = spec.image.as_deref().unwrap_or_default();
    fnv32a(go_text_of_bytes(&definition_json(&spec.name, image)).as_bytes())
}

/// The fields that count, keys in order, as Go writes JSON.
fn definition_json(name: &str, image: &str) -> String {
    format!("{{\"image\":{},\"name\":{}}}", go_json_string(image), go_json_string(name))
}

/// A JSON string as Go writes it: what could be taken for HTML or would break a line of a script is escaped.
pub(crate) fn go_json_string(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted
        .replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// How the Go printer that the hash is taken over shows a slice of bytes.
fn go_text_of_bytes(text: &str) -> String {
    let bytes: Vec<String> = text.bytes().map(|byte| byte.to_string()).collect();
    format!("([]uint8)[{}]", bytes.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(name: &str, image: &str) -> Container {
        Container { name: name.to_owned(), image: Some(image.to_owned()), ..Container::default() }
    }

    #[test]
    fn fnv_gives_the_published_values() {
        let rows = [
            ("", 0x811c_9dc5, 0xcbf2_9ce4_8422_2325),
            ("a", 0xe40c_292c, 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0xbf9c_f968, 0x8594_4171_f739_67e8),
        ];
        for (text, short, long) in rows {
            assert_eq!(fnv32a(text.as_bytes()), short, "32 bits of {text:?}");
            assert_eq!(fnv64a(text.as_bytes()), long, "64 bits of {text:?}");
        }
    }

    #[test]
    fn the_checksum_of_a_state_file_is_the_one_a_go_kubelet_wrote() {
        assert_eq!(fnv32a(b"(string){\"entries\":{}}"), 1_057_365_947);
    }

    #[test]
    fn a_container_has_the_hash_a_go_kubelet_gave_it() {
        assert_eq!(format!("{:x}", container_hash(&container("foo", "busybox:1.36"))), "a6957f86");
    }

    #[test]
    fn only_name_and_image_are_in_the_hash() {
        let plain = container("foo", "busybox:1.36");
        let dressed = Container { command: Some(vec!["sh".to_owned()]), ..plain.clone() };
        assert_eq!(container_hash(&plain), container_hash(&dressed));
        assert_ne!(container_hash(&plain), container_hash(&container("bar", "busybox:1.36")));
        assert_ne!(container_hash(&plain), container_hash(&container("foo", "busybox:1.37")));
    }

    #[test]
    fn strings_are_escaped_as_go_escapes_them() {
        let rows = [
            ("a/b:c@sha256:0", r#""a/b:c@sha256:0""#),
            ("<&>", r#""\u003c\u0026\u003e""#),
            ("q\"\\", r#""q\"\\""#),
            ("\u{2028}\u{2029}", r#""\u2028\u2029""#),
            ("ü", "\"ü\""),
        ];
        for (text, expected) in rows {
            assert_eq!(go_json_string(text), expected);
        }
    }
}
