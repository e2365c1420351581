//! Logs whose pods or containers are gone.

use std::collections::BTreeSet;

use crate::ids::PodUid;
use crate::view::{ContainerState, PodView};

/// The names among `directories`, each `<namespace>_<pod>_<uid>`, whose pod is known to nobody.
///
/// Until every source has spoken none is: a pod may only be late.
pub fn directories<'a>(
    directories: impl IntoIterator<Item = &'a str>,
    known: &BTreeSet<PodUid>,
    sources_ready: bool,
) -> Vec<&'a str> {
    let unknown = |name: &&str| uid_of(name).is_some_and(|uid| !known.contains(&uid));
    directories.into_iter().filter(|name| sources_ready && unknown(name)).collect()
}

/// The names among `dangling`, symlinks `<pod>_<namespace>_<container>-<container id>.log` that point to no
/// file, whose container has ended or is gone.
///
/// Of a container that may still write, the log is only being rotated.
pub fn symlinks<'a>(
    dangling: impl IntoIterator<Item = &'a str>,
    views: &[PodView],
) -> Vec<&'a str> {
    let containers = || views.iter().flat_map(|view| &view.containers);
    let ended = |state: &ContainerState| matches!(state, ContainerState::Exited(_));
    let live = |id: &str| containers().any(|c| c.id.as_str() == id && !ended(&c.state));
    dangling.into_iter().filter(|name| container_of(name).is_some_and(|id| !live(id))).collect()
}

/// A directory named otherwise is not ours to remove.
fn uid_of(directory: &str) -> Option<PodUid> {
    match directory.split('_').collect::<Vec<_>>()[..] {
        [_namespace, _pod, uid] if !uid.is_empty() => Some(PodUid::from(uid)),
        _ => None,
    }
}

fn container_of(symlink: &str) -> Option<&str> {
    let (_, id) = symlink.strip_suffix(".log")?.rsplit_once('-')?;
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{pod, view};

    #[test]
    fn a_log_directory_goes_when_nobody_knows_its_pod_and_all_sources_have_spoken() {
        let known = BTreeSet::from([PodUid::from("u1")]);
        let names = ["default_web_u1", "default_web_u2", "lost+found", "a_b_", "a_b_c_u3"];
        assert_eq!(directories(names, &known, true), ["default_web_u2"]);
        assert!(directories(names, &known, false).is_empty());
    }

    #[test]
    fn a_dangling_symlink_goes_unless_its_container_may_still_write() {
        let rows = [("exited", true), ("running", false), ("created", false), ("unknown", false)];
        for (state, goes) in rows {
            let view = view(&pod().regular("main").build());
            let view = match state {
                "exited" => view.exited("main", 0),
                "running" => view.running("main"),
                "created" => view.created("main"),
                _ => view.unknown("main"),
            };
            let got = symlinks(["web_default_main-main0.log"], &[with_id(view.build(), "main0")]);
            assert_eq!(!got.is_empty(), goes, "{state}");
        }
        let gone = symlinks(["web_default_main-c9.log", "other.txt"], &[]);
        assert_eq!(gone, ["web_default_main-c9.log"]);
    }

    /// No runtime has a dash in its ids.
    fn with_id(mut view: PodView, id: &str) -> PodView {
        view.containers[0].id = id.into();
        view
    }
}
