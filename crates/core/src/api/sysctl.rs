//! Names of sysctls, which have two spellings.

/// The name with dots between its parts. Where slashes stand between them, dots are part of the
/// names, and the two change places: `net/ipv4/conf/eth0.1/x` is `net.ipv4.conf.eth0/1.x`.
pub fn dotted(name: &str) -> String {
    let separator = name.find(['.', '/']).map(|at| name.as_bytes()[at]);
    if separator != Some(b'/') {
        return name.to_owned();
    }
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    name.chars().map(swap).collect()
}

#[cfg(test)]
mod tests {
    use super::dotted;

    #[test]
    fn slashes_and_dots_change_places_when_a_slash_comes_first() {
        let rows = [
            ("net.ipv4.ip_forward", "net.ipv4.ip_forward"),
            ("net/ipv4/ip_forward", "net.ipv4.ip_forward"),
            ("net.ipv4.conf.eth0/1.rp_filter", "net.ipv4.conf.eth0/1.rp_filter"),
            ("net/ipv4/conf/eth0.1/rp_filter", "net.ipv4.conf.eth0/1.rp_filter"),
            ("", ""),
            ("plain", "plain"),
        ];
        for (name, expected) in rows {
            assert_eq!(dotted(name), expected);
        }
    }
}
