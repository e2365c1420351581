//! The network fields of a pod: host name, DNS settings and host aliases.

use std::net::{IpAddr, Ipv6Addr};

use k8s_openapi::api::core::v1::{HostAlias, PodDNSConfig, PodSpec};

use super::names;
use crate::api::error::Errors;
use crate::api::path::Path;

const DNS_POLICIES: [&str; 4] = ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCHES_MAX_BYTES: usize = 2048;
const HOSTNAME_MAX: usize = 64;

pub(super) fn check(at: &Path, spec: &PodSpec, errors: &mut Errors) {
    let policy = spec.dns_policy.as_deref().unwrap_or_default();
    errors.check_choice(&at.child("dnsPolicy"), policy, &DNS_POLICIES);
    check_dns(&at.child("dnsConfig"), policy, spec.dns_config.as_ref(), errors);
    check_aliases(&at.child("hostAliases"), spec.host_aliases.as_deref(), errors);
    for (field, name) in [("hostname", &spec.hostname), ("subdomain", &spec.subdomain)] {
        if let Some(name) = name {
            errors.invalid_for(&at.child(field), name, names::dns_label(name));
        }
    }
    check_hostname_override(&at.child("hostnameOverride"), spec, errors);
}

fn check_hostname_override(at: &Path, spec: &PodSpec, errors: &mut Errors) {
    let Some(hostname) = &spec.hostname_override else { return };
    if spec.set_hostname_as_fqdn == Some(true) {
        errors.forbidden(at, "setHostnameAsFQDN already says what the hostname is");
    }
    if spec.host_network == Some(true) {
        errors.forbidden(at, "on the host's network the hostname is the host's");
    }
    if hostname.len() > HOSTNAME_MAX {
        errors.too_long(at, HOSTNAME_MAX);
    }
    errors.invalid_for(at, hostname, names::dns_subdomain(hostname));
}

fn check_dns(at: &Path, policy: &str, config: Option<&PodDNSConfig>, errors: &mut Errors) {
    let servers = config.and_then(|config| config.nameservers.as_deref()).unwrap_or_default();
    let Some(config) = config else {
        if policy == "None" {
            errors.required(at, "with dnsPolicy None nobody else says whom to ask");
        }
        return;
    };
    let servers_at = at.child("nameservers");
    if policy == "None" && servers.is_empty() {
        return errors.required(&servers_at, "with dnsPolicy None nobody else says whom to ask");
    }
    if servers.len() > NAMESERVERS_MAX {
        errors.invalid(&servers_at, servers, "there may be 3 of them");
    }
    for (i, server) in servers.iter().enumerate() {
        check_address(&servers_at.index(i), server, errors);
    }
    check_searches(&at.child("searches"), config, errors);
    for (i, option) in config.options.iter().flatten().enumerate() {
        let name = option.name.as_deref().unwrap_or_default();
        errors.check_present(&at.child("options").index(i), name);
    }
}

fn check_searches(at: &Path, config: &PodDNSConfig, errors: &mut Errors) {
    let searches = config.searches.as_deref().unwrap_or_default();
    if searches.len() > SEARCHES_MAX {
        errors.invalid(at, searches, "there may be 32 of them");
    }
    if searches.join(" ").len() > SEARCHES_MAX_BYTES {
        errors.invalid(at, searches, "together they may have 2048 characters, with blanks between");
    }
    for (i, search) in searches.iter().enumerate().filter(|(_, search)| *search != ".") {
        let bare = search.strip_suffix('.').unwrap_or(search);
        errors.invalid_for(&at.index(i), bare, names::dns_subdomain_with_underscores(bare));
    }
}

fn check_aliases(at: &Path, aliases: Option<&[HostAlias]>, errors: &mut Errors) {
    for (i, alias) in aliases.into_iter().flatten().enumerate() {
        let at = at.index(i);
        check_address(&at.child("ip"), &alias.ip, errors);
        for (j, hostname) in alias.hostnames.iter().flatten().enumerate() {
            let at = at.child("hostnames").index(j);
            errors.invalid_for(&at, hostname, names::dns_subdomain(hostname));
        }
    }
}

/// An IP address in unambiguous form: no leading zeros, no IPv4-mapped IPv6.
fn check_address(at: &Path, address: &str, errors: &mut Errors) {
    let mapped = |ip: Ipv6Addr| ip.to_ipv4_mapped().is_some();
    match address.parse::<IpAddr>() {
        Ok(IpAddr::V6(ip)) if mapped(ip) => {
            errors.invalid(at, address, "must not be an IPv4 address written as IPv6");
        }
        Ok(_) => {}
        Err(_) => errors.invalid(at, address, "must be an address such as 10.9.8.7 or 2001:db8::1"),
    }
}
