//! Which endpoints of the node server show the node and its agent: from the configuration, the flags and the feature gates.

use jiff::Timestamp;
use oarsman_core::zpages::StatusFacts;
use oarsman_kubelet_config::flags::{ProgramFlags, effective_values};
use oarsman_kubelet_config::{KubeletConfiguration, is_enabled};
use oarsman_server::{NodeEndpointSettings, NodeLogSettings};

use super::kubernetes_version;
use super::server::{MASKED, shown_configuration, without_secrets};

/// Where the services of a node write their logs.
const NODE_LOG_DIRECTORY: &str = "/var/log";

/// Flags whose values carry passwords and tokens.
const SECRET_FLAGS: [&str; 2] = ["manifest-url", "manifest-url-header"];

pub(super) fn settings(
    kubelet: &KubeletConfiguration,
    flags: &ProgramFlags,
    started: Timestamp,
) -> NodeEndpointSettings {
    let is_on = |gate: &str| is_enabled(&kubelet.feature_gates, gate);
    NodeEndpointSettings {
        node_logs: kubelet.enable_system_log_handler.then(|| NodeLogSettings {
            directory: NODE_LOG_DIRECTORY.into(),
            query: kubelet.enable_system_log_query && is_on("NodeLogQuery"),
        }),
        flags: is_on("ComponentFlagz")
            .then(|| effective_values(&shown_configuration(kubelet), flags)),
        status: is_on("ComponentStatusz").then(|| status(started)),
        checkpoint_root: is_on("ContainerCheckpoint").then(|| flags.root_dir.clone().into()),
        command_line: kubelet.enable_profiling_handler.then(|| {
            shown_command_line(std::env::args_os().map(|word| word.to_string_lossy().into_owned()))
        }),
        debug_flags: kubelet.enable_debug_flags_handler,
    }
}

fn status(started: Timestamp) -> StatusFacts {
    let kubernetes = kubernetes_version().trim_start_matches('v');
    let minor = kubernetes.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    StatusFacts {
        started,
        rust_version: env!("CARGO_PKG_RUST_VERSION").to_owned(),
        binary_version: kubernetes.to_owned(),
        emulation_version: minor,
    }
}

/// The words of the command line, with what is secret in them masked.
fn shown_command_line(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut is_secret = false;
    let shown = |word: String| {
        if std::mem::take(&mut is_secret) {
            return MASKED.to_owned();
        }
        let (flag, value) =
            word.split_once('=').map_or((word.as_str(), None), |(flag, value)| (flag, Some(value)));
        let name = flag.trim_start_matches('-').replace('_', "-");
        match value {
            _ if !SECRET_FLAGS.contains(&name.as_str()) => word,
            Some(url) if name == "manifest-url" => format!("{flag}={}", without_secrets(url)),
            Some(_) => format!("{flag}={MASKED}"),
            None => {
                is_secret = true;
                word
            }
        }
    };
    words.map(shown).collect()
}

#[cfg(test)]
mod tests {
    use oarsman_kubelet_config::flags;

    use super::*;

    fn of(words: &[&str]) -> NodeEndpointSettings {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let given = flags::parse(&words).unwrap();
        let loaded = oarsman_kubelet_config::load(None, &[], &given.layers).unwrap();
        settings(&loaded.configuration, &given.program, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn by_default_all_are_served_but_queries_of_logs() {
        let endpoints = of(&["--root-dir=/r"]);
        let logs = endpoints.node_logs.unwrap();
        assert_eq!((logs.directory.to_str(), logs.query), (Some("/var/log"), false));
        assert_eq!(endpoints.checkpoint_root.unwrap().to_str(), Some("/r"));
        assert!(endpoints.flags.is_some() && endpoints.status.is_some());
        assert!(endpoints.command_line.is_some() && endpoints.debug_flags);
    }

    #[test]
    fn gates_switch_them_off() {
        let gates = "ComponentFlagz=false,ComponentStatusz=false,ContainerCheckpoint=false";
        let endpoints = of(&[&format!("--feature-gates={gates}")]);
        assert!(endpoints.flags.is_none() && endpoints.status.is_none());
        assert!(endpoints.checkpoint_root.is_none());
    }

    #[test]
    fn fields_switch_them() {
        let file = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n\
                    enableSystemLogHandler: true\nenableSystemLogQuery: true\n\
                    enableProfilingHandler: false\nenableDebugFlagsHandler: false\n";
        let file =
            oarsman_kubelet_config::ConfigFile { path: "/f".as_ref(), bytes: file.as_bytes() };
        let loaded = oarsman_kubelet_config::load(Some(file), &[], &[]).unwrap();
        let program = ProgramFlags::default();
        let endpoints = settings(&loaded.configuration, &program, Timestamp::UNIX_EPOCH);
        assert!(endpoints.node_logs.unwrap().query);
        assert!(endpoints.command_line.is_none() && !endpoints.debug_flags);
    }

    #[test]
    fn flags_are_shown_without_secrets() {
        let words = [
            "--manifest-url-header=Authorization:s3cret",
            "--manifest-url=https://me:s3cret@h/p?token=s3cret",
        ];
        let flags = of(&words).flags.unwrap();
        assert_eq!(flags["manifest-url-header"], "Authorization=<masked>");
        assert_eq!(flags["manifest-url"], "https://<masked>@h/p?<masked>");
        assert!(!flags.values().any(|value| value.contains("s3cret")), "{flags:?}");
    }

    #[test]
    fn the_command_line_is_shown_without_secrets() {
        let words = [
            "kubelet",
            "--v=2",
            "--manifest-url-header=Authorization:s3cret",
            "--manifest_url_header",
            "Authorization:s3cret",
            "--manifest-url=https://me:s3cret@h/p",
            "--address=0.0.0.0",
        ];
        let shown = shown_command_line(words.into_iter().map(str::to_owned));
        let expected = [
            "kubelet",
            "--v=2",
            "--manifest-url-header=<masked>",
            "--manifest_url_header",
            "<masked>",
            "--manifest-url=https://<masked>@h/p",
            "--address=0.0.0.0",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_status_names_the_version_of_kubernetes() {
        let status = status(Timestamp::UNIX_EPOCH);
        assert!(status.binary_version.starts_with("1.36."), "{}", status.binary_version);
        assert_eq!(status.emulation_version, "1.36");
    }
}
