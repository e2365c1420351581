//! Addresses of hosts. A name server that never answers blocks a thread of the pool for lookups, one for each name, and nothing else:
//! not the threads for files and volumes, nor the lookup of another name.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::LazyLock;

use oarsman_host::blocking::{BlockingKind, BlockingPool};

/// One pool for the whole process, because threads belong to the process.
static LOOKUPS: LazyLock<BlockingPool> =
    LazyLock::new(|| BlockingPool::new(BlockingKind::NameLookups));

/// The addresses of a name; an address is its own. The caller has the deadline: a lookup that it gives up goes on, and holds back only
/// those of the same name.
///
/// # Errors
/// When the name has no address.
pub async fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let name = host.to_owned();
    let look_up = move || Ok((name.as_str(), port).to_socket_addrs()?.collect());
    LOOKUPS.run(host, look_up, io::Error::other).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_is_not_looked_up_and_a_name_is() {
        let rows = [("127.0.0.1", "127.0.0.1:80"), ("::1", "[::1]:80")];
        for (host, expected) in rows {
            assert_eq!(addresses(host, 80).await.unwrap(), [expected.parse().unwrap()]);
        }
        let named = addresses("localhost", 80).await.unwrap();
        assert!(named.iter().all(|address| address.ip().is_loopback()), "{named:?}");
        assert!(addresses("no such name", 80).await.is_err());
    }
}
