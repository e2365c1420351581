//! Facts about the processes that listen on the ports of the kubelet's servers.

use std::fs;
use std::path::Path;

use oarsman_host::processes;

use super::read_text;

/// The state of a socket that listens, as `/proc/net/tcp` writes it.
const LISTENS: &str = "0A";

/// A port that the kubelet would listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortFacts {
    /// The field of the configuration that names it.
    pub(crate) field: &'static str,
    pub(crate) number: u16,
    pub(crate) holder: PortHolder,
}

/// The process that listens on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PortHolder {
    Free,
    /// A process, by its name and number.
    Process(String, u32),
    /// A process that we cannot see, such as in another pid namespace.
    Unknown,
}

/// Finds the processes that listen on these ports.
pub(super) fn read(wanted: &[(&'static str, u16)]) -> Vec<PortFacts> {
    let sockets = ["/proc/net/tcp", "/proc/net/tcp6"].map(read_text).concat();
    let port = |(field, number): &(&'static str, u16)| {
        let holder = listener(&sockets, *number).map_or(PortHolder::Free, holder);
        PortFacts { field, number: *number, holder }
    };
    wanted.iter().map(port).collect()
}

/// The inode of the socket that listens on a port.
fn listener(sockets: &str, port: u16) -> Option<u64> {
    let listens = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (_, own) = fields.get(1)?.rsplit_once(':')?;
        let same = u16::from_str_radix(own, 16) == Ok(port) && fields.get(3) == Some(&LISTENS);
        if same { fields.get(9)?.parse().ok() } else { None }
    };
    sockets.lines().find_map(listens)
}

fn holder(inode: u64) -> PortHolder {
    let link = format!("socket:[{inode}]");
    let all = processes::list().unwrap_or_default();
    let found = all.into_iter().find(|process| has_open(process.pid, &link));
    found.map_or(PortHolder::Unknown, |process| PortHolder::Process(process.name, process.pid))
}

fn has_open(pid: u32, link: &str) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    targets.any(|target| target == Path::new(link))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn only_a_socket_that_listens_holds_a_port() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 00000000:2806 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 559 1 00 100 0 0 10 0\n\
            1: 0100007F:2808 0100007F:0016 01 00000000:00000000 00:00000000 00000000     0        0 560 1 00 100 0 0 10 0\n\
            0: 00000000000000000000000000000000:280A 00000000000000000000000000000000:0000 0A 0:0 0:0 0     0        0 561 1";
        let rows = [(10246, Some(559)), (10248, None), (10250, Some(561)), (22, None)];
        for (port, inode) in rows {
            assert_eq!(listener(text, port), inode, "{port}");
        }
    }

    #[test]
    fn the_process_that_holds_a_port_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let number = listener.local_addr().unwrap().port();
        let found = read(&[("port", number)]).remove(0);
        let PortHolder::Process(_, pid) = found.holder else { panic!("{found:?}") };
        assert_eq!(pid, std::process::id());
        drop(listener);
    }
}
