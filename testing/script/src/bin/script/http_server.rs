//! The HTTP server of a script: what it answers depends on the path.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;

use oarsman_script::filler;

use crate::run_steps::print;

/// The length of the longest answer.
const HUGE: u64 = 1 << 30;

/// Reads the head of the request first: closing with unread bytes would reset the connection and might take the answer with it.
pub(crate) fn answer(mut connection: TcpStream) -> io::Result<()> {
    let mut lines = BufReader::new(&connection).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = first.split(' ').nth(1).unwrap_or("/");
    let (kind, rest) = path.trim_start_matches('/').split_once('/').unwrap_or((path, ""));
    match kind {
        "print" => {
            print(format!("{rest}\n").as_bytes())?;
            respond(&mut connection, "200", "", "ok\n")
        }
        "status" => respond(&mut connection, rest, "", "asked for\n"),
        "file" if Path::new("/").join(rest).exists() => respond(&mut connection, "200", "", "ok\n"),
        "file" => respond(&mut connection, "503", "", "no such file\n"),
        "redirect" => {
            let location = format!("Location: {rest}\r\n");
            respond(&mut connection, "302", &location, "elsewhere\n")
        }
        "/hang" => hang(&connection),
        "/huge" => send_much(&mut connection),
        _ => respond(&mut connection, "200", "", "ok\n"),
    }
}

fn respond(connection: &mut TcpStream, status: &str, headers: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} OK\r\nContent-Length: {length}\r\n{headers}");
    write!(connection, "{head}Connection: close\r\n\r\n{body}")
}

/// Holds the connection until the client closes it.
fn hang(mut connection: &TcpStream) -> io::Result<()> {
    connection.read_to_end(&mut Vec::new()).map(drop)
}

fn send_much(connection: &mut TcpStream) -> io::Result<()> {
    write!(connection, "HTTP/1.1 200 OK\r\nContent-Length: {HUGE}\r\nConnection: close\r\n\r\n")?;
    filler(HUGE).try_for_each(|bytes| connection.write_all(bytes))
}
