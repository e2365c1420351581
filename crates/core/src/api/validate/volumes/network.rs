//! Disks and directories over the network.

use k8s_openapi::api::core::v1::{
    CephFSVolumeSource, FCVolumeSource, FlockerVolumeSource, GlusterfsVolumeSource,
    ISCSIVolumeSource, NFSVolumeSource, QuobyteVolumeSource, RBDVolumeSource, Volume,
};

use crate::api::error::Errors;
use crate::api::path::Path;
use crate::api::validate::names;

const TENANT_MAX: usize = 64;
/// The longest `<volume>:<portal>` an interface of its own can be named after.
const INTERFACE_NAME_MAX: usize = 64;

pub(super) fn check_nfs(at: &Path, source: &NFSVolumeSource, errors: &mut Errors) {
    errors.check_present(&at.child("server"), &source.server);
    errors.check_present(&at.child("path"), &source.path);
    if !source.path.starts_with('/') {
        errors.invalid(&at.child("path"), source.path.as_str(), "must be an absolute path");
    }
}

pub(super) fn check_iscsi(at: &Path, source: &ISCSIVolumeSource, errors: &mut Errors) {
    errors.check_present(&at.child("targetPortal"), &source.target_portal);
    errors.check_present(&at.child("iqn"), &source.iqn);
    if !source.iqn.is_empty() {
        check_iscsi_id(&at.child("iqn"), &source.iqn, errors);
    }
    check_lun(&at.child("lun"), source.lun, errors);
    let secret_needed =
        [source.chap_auth_discovery, source.chap_auth_session].contains(&Some(true));
    if secret_needed && source.secret_ref.is_none() {
        errors.required(&at.child("secretRef"), "CHAP needs a secret");
    }
    if let Some(initiator) = &source.initiator_name {
        check_iscsi_id(&at.child("initiatorname"), initiator, errors);
    }
}

fn check_iscsi_id(at: &Path, id: &str, errors: &mut Errors) {
    let valid = match id.get(..3) {
        Some("iqn") => is_iqn(id),
        Some("eui") => is_hex_like(&id[3..], 16),
        Some("naa") => is_hex_like(&id[3..], 32),
        _ => false,
    };
    if !valid {
        let detail =
            "is of the form iqn.2001-04.com.example:name, eui.<16 digits> or naa.<32 digits>";
        errors.invalid(at, id, detail);
    }
}

/// A dot and so many letters or digits; any character passes for the dot.
fn is_hex_like(rest: &str, digits: usize) -> bool {
    let mut characters = rest.chars();
    let dot = characters.next().is_some_and(|c| c != '\n');
    let rest = characters.as_str();
    dot && rest.len() == digits && rest.chars().all(|c| c.is_ascii_alphanumeric())
}

/// `iqn.`, a year and a month, a domain, and a name after a colon; what stands before does not
/// matter.
fn is_iqn(id: &str) -> bool {
    id.match_indices("iqn.").any(|(i, found)| is_iqn_rest(&id[i + found.len()..]))
}

fn is_iqn_rest(rest: &str) -> bool {
    let Some((date, rest)) = rest.split_at_checked(8) else { return false };
    let is_date = date.bytes().enumerate().all(|(i, byte)| match i {
        4 => byte == b'-',
        7 => byte == b'.',
        _ => byte.is_ascii_digit(),
    });
    let Some((domain, name)) = rest.split_once(':') else { return false };
    let is_domain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let is_name =
        |c: char| !",;*&$|".contains(c) && !matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c');
    is_date
        && !domain.is_empty()
        && domain.chars().all(is_domain)
        && !name.is_empty()
        && name.chars().all(is_name)
}

fn check_lun(at: &Path, lun: i32, errors: &mut Errors) {
    for complaint in names::in_range(lun.into(), 0, 255) {
        errors.invalid(at, lun, complaint);
    }
}

/// An interface made for one initiator is named after volume and portal.
pub(super) fn check_iscsi_name(at: &Path, volume: &Volume, errors: &mut Errors) {
    let Some(source) = volume.iscsi.as_ref().filter(|iscsi| iscsi.initiator_name.is_some()) else {
        return;
    };
    if volume.name.len() + 1 + source.target_portal.len() > INTERFACE_NAME_MAX {
        let detail =
            "with an initiatorName, volume name and portal are at most 63 characters together";
        errors.invalid(at, volume.name.as_str(), detail);
    }
}

pub(super) fn check_glusterfs(at: &Path, source: &GlusterfsVolumeSource, errors: &mut Errors) {
    errors.check_present(&at.child("endpoints"), &source.endpoints);
    errors.check_present(&at.child("path"), &source.path);
}

pub(super) fn check_flocker(at: &Path, source: &FlockerVolumeSource, errors: &mut Errors) {
    let name = source.dataset_name.as_deref().unwrap_or_default();
    match (&source.dataset_name, &source.dataset_uuid) {
        (None, None) => errors.required(at, "say datasetName or datasetUUID"),
        (Some(_), Some(_)) => errors.invalid(at, name, "say one of datasetName and datasetUUID"),
        _ => {}
    }
    if name.contains('/') {
        errors.invalid(&at.child("datasetName"), name, "must not have a '/'");
    }
}

pub(super) fn check_rbd(at: &Path, source: &RBDVolumeSource, errors: &mut Errors) {
    check_monitors(&at.child("monitors"), &source.monitors, errors);
    errors.check_present(&at.child("image"), &source.image);
}

pub(super) fn check_cephfs(at: &Path, source: &CephFSVolumeSource, errors: &mut Errors) {
    check_monitors(&at.child("monitors"), &source.monitors, errors);
}

fn check_monitors(at: &Path, monitors: &[String], errors: &mut Errors) {
    if monitors.is_empty() {
        errors.required(at, "");
    }
}

pub(super) fn check_quobyte(at: &Path, source: &QuobyteVolumeSource, errors: &mut Errors) {
    let tenant = source.tenant.as_deref().unwrap_or_default();
    if source.registry.is_empty() {
        errors.required(&at.child("registry"), "say host:port, or several with commas between");
    } else if tenant.len() > TENANT_MAX {
        errors.required(&at.child("tenant"), "a UUID of at most 64 characters");
    } else {
        for _ in source.registry.split(',').filter(|pair| !is_host_and_port(pair)) {
            let detail = "say host:port, or several with commas between";
            errors.invalid(&at.child("registry"), source.registry.as_str(), detail);
        }
    }
    errors.check_present(&at.child("volume"), &source.volume);
}

/// `host:port`, where a host with colons stands in brackets.
fn is_host_and_port(pair: &str) -> bool {
    let Some((host, port)) = pair.rsplit_once(':') else { return false };
    let bare = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').unwrap_or(host),
        None if host.contains(':') => return false,
        None => host,
    };
    !bare.contains(['[', ']']) && !port.contains(['[', ']'])
}

pub(super) fn check_fc(at: &Path, source: &FCVolumeSource, errors: &mut Errors) {
    let names_at = at.child("targetWWNs");
    match (&source.target_wwns, &source.wwids) {
        (None, None) => errors.required(&names_at, "say targetWWNs or wwids"),
        (Some(names), Some(_)) => {
            errors.invalid(&names_at, names.as_slice(), "say one of targetWWNs and wwids");
        }
        _ => {}
    }
    match (&source.target_wwns, source.lun) {
        (Some(_), None) => errors.required(&at.child("lun"), "targetWWNs need a lun"),
        (Some(_), Some(lun)) => check_lun(&at.child("lun"), lun, errors),
        (None, _) => {}
    }
}
