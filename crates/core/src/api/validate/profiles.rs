//! Profiles of seccomp and AppArmor.

use k8s_openapi::api::core::v1::{AppArmorProfile, SeccompProfile};

use super::paths;
use crate::api::error::Errors;
use crate::api::path::Path;

const TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
/// The longest path Linux takes, without its end.
pub(in crate::api) const MAX_PROFILE_LENGTH: usize = 4095;
const LOCALHOST_ONLY: &str = "goes with type Localhost only";
const NEEDED: &str = "type Localhost needs to know which profile";

pub(super) fn check_seccomp(at: &Path, profile: Option<&SeccompProfile>, errors: &mut Errors) {
    let Some(profile) = profile else { return };
    let at = at.child("seccompProfile");
    errors.check_choice(&at.child("type"), &profile.type_, &TYPES);
    let file_at = at.child("localhostProfile");
    match (profile.type_.as_str(), &profile.localhost_profile) {
        ("Localhost", Some(file)) => paths::check_descending(&file_at, file, errors),
        ("Localhost", None) => errors.required(&file_at, NEEDED),
        (_, Some(file)) => errors.invalid(&file_at, file.as_str(), LOCALHOST_ONLY),
        (_, None) => {}
    }
}

pub(super) fn check_app_armor(at: &Path, profile: Option<&AppArmorProfile>, errors: &mut Errors) {
    let Some(profile) = profile else { return };
    let at = at.child("appArmorProfile");
    errors.check_choice(&at.child("type"), &profile.type_, &TYPES);
    let name_at = at.child("localhostProfile");
    match (profile.type_.as_str(), &profile.localhost_profile) {
        ("Localhost", Some(name)) => check_app_armor_name(&name_at, name, errors),
        ("Localhost", None) => errors.required(&name_at, NEEDED),
        ("RuntimeDefault" | "Unconfined", Some(name)) => {
            errors.invalid(&name_at, name.as_str(), LOCALHOST_ONLY);
        }
        _ => {}
    }
}

fn check_app_armor_name(at: &Path, name: &str, errors: &mut Errors) {
    if name.trim() != name {
        errors.invalid(at, name, "must not have blanks before or after it");
    } else if name.is_empty() {
        errors.required(at, NEEDED);
    }
    if name.len() > MAX_PROFILE_LENGTH {
        errors.too_long(at, MAX_PROFILE_LENGTH);
    }
}
