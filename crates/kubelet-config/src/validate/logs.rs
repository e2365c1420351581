//! Validation of the kubelet's logging.

use super::ProblemCollector;
use crate::configuration::KubeletConfiguration;
use crate::enums::LogFormat;
use crate::field_path::FieldPath;
use crate::sections::LogRouting;

const LARGEST_VERBOSITY: u32 = i32::MAX.unsigned_abs();

pub(super) fn validate(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    let logging = &kubelet.logging;
    if logging.flush_frequency.or_zero().is_zero() {
        let message = format!("{} must be more than no time", logging.flush_frequency);
        found.wrong("logging.flushFrequency", message);
    }
    found.between("logging.verbosity", logging.verbosity, 0, LARGEST_VERBOSITY);
    if logging.format != LogFormat::Text && !logging.vmodule.is_empty() {
        found.wrong("logging.vmodule", "only works with logging.format: text; leave it out");
    }
    for (number, module) in logging.vmodule.iter().enumerate() {
        let field = FieldPath::at("logging.vmodule").item(number);
        let pattern = &module.file_pattern;
        if pattern.is_empty() || pattern.contains(['=', ',']) {
            let message =
                format!("{pattern:?} is no pattern of file names; write one without = and ,");
            found.wrong_at(field.clone().key("filePattern"), message);
        }
        if module.verbosity > LARGEST_VERBOSITY {
            let message = format!("{} is more than {LARGEST_VERBOSITY}", module.verbosity);
            found.wrong_at(field.key("verbosity"), message);
        }
    }
    for (name, routing) in [("text", &logging.options.text), ("json", &logging.options.json)] {
        options(kubelet, name, routing, found);
    }
}

fn options(
    kubelet: &KubeletConfiguration,
    name: &str,
    routing: &LogRouting,
    found: &mut ProblemCollector,
) {
    let gate = "LoggingAlphaOptions";
    let path = format!("logging.options.{name}");
    found.needs_gate(kubelet, &format!("{path}.splitStream"), routing.split_stream, gate);
    let size = &routing.info_buffer_size;
    let path = format!("{path}.infoBufferSize");
    found.needs_gate(kubelet, &path, !size.is_zero(), gate);
    if size.is_negative() {
        found.wrong(&path, format!("{size} is negative; write how much may lie"));
    }
}
