//! Paths in volumes and on disks: where they may lead.

use crate::api::error::Errors;
use crate::api::path::Path;

/// Permission bits of a file.
pub(super) fn check_mode(at: &Path, mode: Option<i32>, errors: &mut Errors) {
    if let Some(mode) = mode.filter(|mode| !(0..=0o777).contains(mode)) {
        errors.invalid(at, mode, "must be from 0 to 0777 (octal)");
    }
}

/// A path that never goes up.
pub(super) fn check_no_dots(at: &Path, path: &str, errors: &mut Errors) {
    if has_dots(path) {
        errors.invalid(at, path, "must not go up by '..'");
    }
}

/// Whether a path goes up somewhere.
pub(super) fn has_dots(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// A path below something.
pub(super) fn check_descending(at: &Path, path: &str, errors: &mut Errors) {
    if path.starts_with('/') {
        errors.invalid(at, path, "must be a relative path");
    }
    check_no_dots(at, path, errors);
}

/// A path below something whose name is not one the volume keeps for itself.
pub(super) fn check_unreserved(at: &Path, path: &str, errors: &mut Errors) {
    check_descending(at, path, errors);
    if path.starts_with("..") && !path.starts_with("../") {
        errors.invalid(at, path, "must not begin with '..'");
    }
}
