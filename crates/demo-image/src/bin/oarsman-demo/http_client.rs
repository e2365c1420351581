//! Asks an HTTP server.

use std::io::{self, Read, Write};
use std::net::TcpStream;

/// The body of the answer to `ADDRESS:PORT/PATH`.
pub(crate) fn get(address: &str) -> io::Result<String> {
    let address = address.strip_prefix("http://").unwrap_or(address);
    let (host, path) = address.split_once('/').unwrap_or((address, ""));
    let of = |error: io::Error| io::Error::new(error.kind(), format!("{address}: {error}"));
    let mut server = TcpStream::connect(host).map_err(of)?;
    write!(server, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    server.read_to_string(&mut answer).map_err(of)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    match head.split(' ').nth(1) {
        Some("200") => Ok(body.to_owned()),
        _ => {
            Err(io::Error::other(format!("{address}: {}", head.lines().next().unwrap_or_default())))
        }
    }
}
