//! A UID made from a manifest's content.
//!
//! The Go kubelet hashes a dump of its own in-memory structs. No other program can reproduce that text, so the same manifest
//! has another UID here than there; [`super::Adoptions`] is how a node changes hands all the same.

use k8s_openapi::api::core::v1::Pod;

use crate::ids::PodUid;

use super::ManifestOrigin;

/// 32 lower-case hex digits, the same for the same content, node and place, and other ones for others.
pub(super) fn uid_from_content(
    pod: &Pod,
    origin: &ManifestOrigin,
    node: &str,
) -> Result<PodUid, serde_json::Error> {
    let content = serde_json::to_string(pod)?;
    let place = match origin {
        ManifestOrigin::File(path) => format!("file:{path}"),
        ManifestOrigin::Url(url) => format!("url:{url}"),
    };
    let text = format!("{content}host:{node}{place}");
    Ok(PodUid::from(format!("{:032x}", fnv128a(text.as_bytes()))))
}

/// FNV-1a in 128 bits.
fn fnv128a(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv_gives_the_published_values() {
        assert_eq!(fnv128a(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv128a(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(fnv128a(b"foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }
}
