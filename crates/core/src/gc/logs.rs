//! Which pod a log directory belongs to.

use crate::ids::PodUid;

/// The pod that a log directory `<namespace>_<pod>_<uid>` belongs to. One named otherwise is not ours to remove.
pub fn pod_of(directory: &str) -> Option<PodUid> {
    match directory.split('_').collect::<Vec<_>>()[..] {
        [_namespace, _pod, uid] if !uid.is_empty() => Some(PodUid::from(uid)),
        _ => None,
    }
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
}
