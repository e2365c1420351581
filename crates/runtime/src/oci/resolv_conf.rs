//! The `/etc/resolv.conf` of a pod.

use std::fmt::Write;

use oarsman_cri_types::v1::DnsConfig;

/// The text of the file.
pub(crate) fn text(dns: &DnsConfig) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    if !dns.searches.is_empty() {
        writeln!(text, "search {}", dns.searches.join(" ")).unwrap_or_default();
    }
    for server in &dns.servers {
        writeln!(text, "nameserver {server}").unwrap_or_default();
    }
    if !dns.options.is_empty() {
        writeln!(text, "options {}", dns.options.join(" ")).unwrap_or_default();
    }
    text
}

/// Whether the configuration says anything; else the pod gets the node's file.
pub(crate) fn is_given(dns: &DnsConfig) -> bool {
    !(dns.searches.is_empty() && dns.servers.is_empty() && dns.options.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_becomes_lines() {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let dns = DnsConfig {
            servers: owned(&["10.0.0.10", "fd00::a"]),
            searches: owned(&["default.svc.cluster.local", "cluster.local"]),
            options: owned(&["ndots:5"]),
        };
        assert_eq!(
            text(&dns),
            "search default.svc.cluster.local cluster.local\nnameserver 10.0.0.10\nnameserver fd00::a\noptions ndots:5\n"
        );
        assert!(is_given(&dns));
        assert_eq!(text(&DnsConfig::default()), "");
        assert!(!is_given(&DnsConfig::default()));
    }
}
