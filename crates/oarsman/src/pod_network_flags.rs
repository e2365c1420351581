//! Flags of commands that open the embedded runtime: what connects its pods.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use oarsman_runtime::{CniSettings, PodNetworkChoice, PodNetworkMode};

/// What connects pods of the embedded runtime.
#[derive(Clone, Debug, Args)]
pub(crate) struct PodNetworkFlags {
    /// What connects pods of the embedded runtime: its own bridge, CNI plugins, or `auto` for these where a network is configured.
    #[arg(long, value_enum, default_value_t, value_name = "NETWORK")]
    pod_network: PodNetworkArgument,
    /// Where CNI networks are configured.
    #[arg(long, default_value = "/etc/cni/net.d", value_name = "DIR")]
    cni_conf_dir: PathBuf,
    /// Where CNI plugins lie; directories with commas between them.
    #[arg(long, default_value = "/opt/cni/bin", value_name = "DIR", value_delimiter = ',')]
    cni_bin_dir: Vec<PathBuf>,
}

/// What connects pods, as it is named on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum PodNetworkArgument {
    #[default]
    Bridge,
    Cni,
    Auto,
}

impl PodNetworkFlags {
    /// What was chosen. Other runtimes may use the same networks: what plugins keep for their pods is no garbage.
    pub(crate) fn choice(&self) -> PodNetworkChoice {
        let cni = CniSettings {
            configuration: self.cni_conf_dir.clone(),
            plugins: self.cni_bin_dir.clone(),
            ..CniSettings::default()
        };
        let mode = match self.pod_network {
            PodNetworkArgument::Bridge => PodNetworkMode::Bridge,
            PodNetworkArgument::Cni => PodNetworkMode::Cni,
            PodNetworkArgument::Auto => PodNetworkMode::CniIfConfigured,
        };
        PodNetworkChoice { mode, cni, collects_garbage: false }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        flags: PodNetworkFlags,
    }

    fn choice(words: &[&str]) -> PodNetworkChoice {
        let words = ["oarsman"].iter().chain(words);
        Command::try_parse_from(words).unwrap().flags.choice()
    }

    #[test]
    fn pods_are_on_the_bridge_unless_cni_is_asked_for() {
        assert_eq!(choice(&[]), PodNetworkChoice::default());
        let given = choice(&["--pod-network=cni", "--cni-conf-dir=/c", "--cni-bin-dir=/a,/b"]);
        assert_eq!(given.mode, PodNetworkMode::Cni);
        assert_eq!(given.cni.configuration, PathBuf::from("/c"));
        assert_eq!(given.cni.plugins, [PathBuf::from("/a"), PathBuf::from("/b")]);
        assert_eq!(choice(&["--pod-network=auto"]).mode, PodNetworkMode::CniIfConfigured);
        assert!(Command::try_parse_from(["oarsman", "--pod-network=kubenet"]).is_err());
    }
}
