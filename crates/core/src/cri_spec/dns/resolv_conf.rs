//! The node's own resolver settings, read from their text.

use oarsman_cri_types::v1::DnsConfig;

use crate::cri_spec::error::ConfigError;

/// What the file says: servers add up, the last search line and the last of each option hold.
pub(super) fn parse(text: &str) -> Result<DnsConfig, ConfigError> {
    let mut config = DnsConfig::default();
    for (index, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("nameserver") => match words.next() {
                Some(server) => config.servers.push(server.to_owned()),
                None => return Err(ConfigError::ResolvConf { line: index + 1 }),
            },
            Some("search") => config.searches = words.filter_map(search).collect(),
            Some("options") => {
                words.for_each(|option| set_option(&mut config.options, option.to_owned()));
            }
            _ => {}
        }
    }
    Ok(config)
}

/// A domain counts once, with its dot at the end or without it; the root alone is none.
fn search(domain: &str) -> Option<String> {
    (domain != ".").then(|| domain.strip_suffix('.').unwrap_or(domain).to_owned())
}

/// Sets `name:value` or `name` in the place of an option of that name, or at the end.
pub(super) fn set_option(options: &mut Vec<String>, option: String) {
    let name = |option: &str| option.split(':').next().unwrap_or_default().to_owned();
    match options.iter_mut().find(|held| name(held) == name(&option)) {
        Some(held) => *held = option,
        None => options.push(option),
    }
}
