//! The node's address: on a bridge without ports, because an API server refuses loopback.

use std::net::Ipv4Addr;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::parts::print_progress;

/// A bridge with one address. It is removed when this is dropped.
pub(super) struct NodeAddress {
    link: String,
    address: Ipv4Addr,
}

impl NodeAddress {
    /// Makes the address of the rig of that number.
    pub(super) fn create(number: u8) -> Result<Self> {
        let made =
            Self { link: format!("node{number}"), address: Ipv4Addr::new(10, 78, number, 1) };
        let own = format!("{}/24", made.address);
        ip(&["link", "add", &made.link, "type", "bridge"])?;
        ip(&["address", "add", &own, "dev", &made.link])?;
        ip(&["link", "set", &made.link, "up"])?;
        Ok(made)
    }

    pub(super) fn get(&self) -> Ipv4Addr {
        self.address
    }

    pub(super) fn link(&self) -> &str {
        &self.link
    }
}

impl Drop for NodeAddress {
    fn drop(&mut self) {
        if let Err(error) = ip(&["link", "delete", &self.link]) {
            print_progress(&format!("{error:#}"));
        }
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output = Command::new("ip").args(arguments).output().context("cannot run ip")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {}: {}", arguments.join(" "), complaint.trim());
    Ok(())
}
