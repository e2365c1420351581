//! Checks that the root directory can be written and is not held by another agent.

use crate::check::facts::root::RootFacts;
use crate::check::finding::Finding;

const CHECK: &str = "root directory";

pub(super) fn evaluate(root: &RootFacts) -> Vec<Finding> {
    let path = root.path.display();
    let finding = match (&root.holder, &root.unwritable) {
        (Some(holder), _) => Finding::ok(
            CHECK,
            format!("an agent lives in {path} ({holder}); another one needs another --root-dir"),
        ),
        (None, Some(why)) => Finding::problem(
            CHECK,
            format!("nothing can be written below {path}: {why}"),
            format!(
                "choose another with --root-dir, or see that root may write there: mount | grep {path}"
            ),
        ),
        (None, None) if root.is_there => Finding::ok(CHECK, format!("{path} can be written")),
        (None, None) => Finding::ok(CHECK, format!("{path} is made when it is needed")),
    };
    let unshared = root.unshared_mount.as_ref().map(|point| {
        let point = point.display();
        Finding::warning(
            "mount propagation",
            format!("{path} lies on the mount {point}, which is not shared: pods with mountPropagation do not start"),
            format!("mount --make-rshared {point} (systemd does so for / at boot)"),
        )
    });
    std::iter::once(finding).chain(unshared).collect()
}
