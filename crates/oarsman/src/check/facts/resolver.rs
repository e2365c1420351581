//! Facts about the resolv.conf that pods get.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The content of a resolv.conf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolverFacts {
    pub(crate) path: PathBuf,
    /// The name servers in it, or why it cannot be read.
    pub(crate) servers: Result<Vec<String>, String>,
}

impl ResolverFacts {
    pub(super) fn read(path: &Path) -> Self {
        let servers = fs::read_to_string(path).map(|text| servers(&text));
        Self { path: path.to_owned(), servers: servers.map_err(|error| error.to_string()) }
    }
}

fn servers(text: &str) -> Vec<String> {
    let server = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next()).flatten().map(str::to_owned)
    };
    text.lines().filter_map(server).collect()
}

/// Whether a name server can be reached from this machine only.
pub(crate) fn is_loopback(server: &str) -> bool {
    server.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_are_read_and_comments_are_not() {
        let text = "# nameserver 1.1.1.1\nnameserver 127.0.0.53\nsearch lan\n  nameserver  ::1\nnameserver\n";
        let found = servers(text);
        assert_eq!(found, ["127.0.0.53", "::1"]);
        assert!(found.iter().all(|server| is_loopback(server)));
        assert!(!is_loopback("10.0.0.10"));
    }
}
