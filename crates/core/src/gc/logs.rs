//! Which pod a log directory belongs to.

use crate::ids::PodUid;

/// The pod that a log directory `<namespace>_<pod>_<uid>` belongs to. One named otherwise is not ours to remove.
pub fn pod_of(directory: &str) -> Option<PodUid> {
    match directory.split('_').collect::<Vec<_>>()[..] {
        [_namespace, _pod, uid] if !uid.is_empty() => Some(PodUid::from(uid)),
        _ => None,
    }
}

/// The same for a pod of which nothing is known but its logs: its uid must be one that API servers or static pods have. Directories of
/// others are named alike, and a container that has the logs mounted can give any name.
pub fn unknown_pod_of(directory: &str) -> Option<PodUid> {
    let is_hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let has_form = |uid: &PodUid| {
        let parts: Vec<&str> = uid.as_str().split('-').collect();
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        matches!(lengths[..], [8, 4, 4, 4, 12] | [32]) && parts.into_iter().all(is_hex)
    };
    pod_of(directory).filter(has_form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_directory_has_the_pod_uid_in_its_name() {
        let rows = [
            ("default_web_u1", Some("u1")),
            ("lost+found", None),
            ("a_b_", None),
            ("a_b_c_u3", None),
        ];
        for (name, uid) in rows {
            assert_eq!(pod_of(name), uid.map(PodUid::from), "{name}");
        }
    }

    #[test]
    fn a_pod_is_known_by_its_logs_alone_when_its_uid_has_the_form_of_one() {
        let uuid = "0b1ab2c8-7a8f-4b0c-9d6e-1f2a3b4c5d6e";
        let of_content = "d41d8cd98f00b204e9800998ecf8427e";
        let rows = [(uuid, true), (of_content, true), ("data", false), ("0b1ab2c8-7a8f", false)];
        for (uid, expected) in rows {
            let found = unknown_pod_of(&format!("shop_db_{uid}"));
            assert_eq!(found, expected.then(|| PodUid::from(uid)), "{uid}");
        }
        assert_eq!(unknown_pod_of(&"x".repeat(32)), None);
    }
}
