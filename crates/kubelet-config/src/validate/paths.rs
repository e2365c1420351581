//! Validation of paths, log sizes and address ranges.

use super::ProblemCollector;
use crate::configuration::KubeletConfiguration;

pub(super) fn validate(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    let logs = &kubelet.pod_logs_dir;
    let is_clean =
        logs == "/" || !logs.split('/').skip(1).any(|step| ["", ".", ".."].contains(&step));
    if !logs.starts_with('/') {
        found.wrong(
            "podLogsDir",
            format!("{logs:?} must be an absolute path, such as /var/log/pods"),
        );
    } else if !is_clean {
        found.wrong(
            "podLogsDir",
            format!("{logs:?} must be written without //, . and .. and without a slash at its end"),
        );
    }
    if !logs.is_ascii() {
        found.wrong(
            "podLogsDir",
            format!("{logs:?} may only have ASCII letters: it becomes part of metrics"),
        );
    }
    let size = &kubelet.container_log_max_size;
    // A negative one turns rotation off.
    if size.is_zero() {
        found.wrong(
            "containerLogMaxSize",
            format!("{size} is too little; write a size such as 10Mi"),
        );
    }
    let cidr = &kubelet.pod_cidr;
    if !cidr.is_empty() && !cidr.split(',').all(is_cidr) {
        found.wrong(
            "podCIDR",
            format!("{cidr:?} is no range of addresses; write it like 10.88.0.0/24"),
        );
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse() {
        Ok(std::net::IpAddr::V4(_)) => 32,
        Ok(std::net::IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}
