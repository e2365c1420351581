//! The gRPC server of a script: `grpc.health.v1.Health/Check` and nothing else. It knows as much of HTTP/2 as one client with one call at a
//! time needs: a library would make every test image larger.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use crate::run_steps::print;

const PREFACE: usize = 24;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

const SERVING: u8 = 1;
const NOT_SERVING: u8 = 2;
/// The service that is not well.
const DOWN: &[u8] = b"down";
/// The service whose checks are printed.
const PRINT: &[u8] = b"print";

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

/// Answers calls until the client goes away.
pub(crate) fn answer(mut connection: TcpStream) -> io::Result<()> {
    connection.read_exact(&mut [0; PREFACE])?;
    send(&mut connection, SETTINGS, 0, 0, &[])?;
    let mut message = Vec::new();
    loop {
        let Frame { kind, flags, stream, payload } = receive(&mut connection)?;
        match kind {
            SETTINGS if flags & ACK == 0 => send(&mut connection, SETTINGS, ACK, 0, &[])?,
            PING if flags & ACK == 0 => send(&mut connection, PING, ACK, 0, &payload)?,
            GO_AWAY => return Ok(()),
            DATA => message.extend(payload),
            _ => {}
        }
        if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            tell_health(&mut connection, stream, &message)?;
            message.clear();
        }
    }
}

fn tell_health(connection: &mut TcpStream, stream: u32, message: &[u8]) -> io::Result<()> {
    let names = |service: &[u8]| message.windows(service.len()).any(|part| part == service);
    if names(PRINT) {
        print(b"grpc\n")?;
    }
    let status = if names(DOWN) { NOT_SERVING } else { SERVING };
    // Status 200 is in the table of every HTTP/2 peer; the other fields are literals.
    let mut headers = vec![0x88];
    headers.extend(field("content-type", "application/grpc"));
    send(connection, HEADERS, END_HEADERS, stream, &headers)?;
    send(connection, DATA, 0, stream, &[0, 0, 0, 0, 2, 0x08, status])?;
    let trailers = field("grpc-status", "0");
    send(connection, HEADERS, END_HEADERS | END_STREAM, stream, &trailers)
}

/// A header field that is not indexed, with lengths of one byte.
fn field(name: &str, value: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).unwrap_or(u8::MAX);
    let parts = [&[0, length(name)], name.as_bytes(), &[length(value)], value.as_bytes()];
    parts.concat()
}

fn send(
    connection: &mut TcpStream,
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &[u8],
) -> io::Result<()> {
    let length = u32::try_from(payload.len()).map_err(io::Error::other)?.to_be_bytes();
    let frame = [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat();
    connection.write_all(&frame)
}

fn receive(connection: &mut TcpStream) -> io::Result<Frame> {
    let mut head = [0; 9];
    connection.read_exact(&mut head)?;
    let [a, b, c, kind, flags, stream @ ..] = head;
    let mut payload = vec![0; usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c)];
    connection.read_exact(&mut payload)?;
    Ok(Frame { kind, flags, stream: u32::from_be_bytes(stream) & 0x7fff_ffff, payload })
}
