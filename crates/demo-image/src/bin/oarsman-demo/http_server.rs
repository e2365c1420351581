//! A small HTTP server: it greets with the name of its machine, or shows the files of a directory.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The kernel's name of this machine, which is the pod's.
const HOSTNAME: &str = "/proc/sys/kernel/hostname";
/// A client that says nothing for so long is left.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest head of a request.
const MAX_HEAD: u64 = 16 * 1024;

/// Serves for ever.
pub(crate) fn serve(port: u16, directory: Option<&Path>) -> io::Result<()> {
    // A machine without IPv6 has no such address.
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
        .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))?;
    println!("listening on port {port}");
    for client in listener.incoming() {
        let (client, directory) = (client?, directory.map(Path::to_owned));
        thread::spawn(move || answer(&client, directory.as_deref()).ok());
    }
    Ok(())
}

fn answer(client: &TcpStream, directory: Option<&Path>) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let head = BufReader::new(client.take(MAX_HEAD));
    let mut lines = head.lines().take_while(|line| !matches!(line, Ok(line) if line.is_empty()));
    let request = lines.next().transpose()?.unwrap_or_default();
    // All of it is read: closing with unread bytes would reset the connection, and might take the answer with it.
    lines.try_for_each(|line| line.map(drop))?;
    // A log that nothing reads any more is no reason not to answer.
    writeln!(io::stdout(), "{request} from {}", client.peer_addr()?.ip().to_canonical()).ok();
    let path = request.split(' ').nth(1).unwrap_or("/");
    let (status, body) = match directory {
        None => ("200 OK", greeting()),
        Some(directory) => match fs::read(file_of(directory, path)) {
            Ok(body) => ("200 OK", body),
            Err(_) => ("404 Not Found", b"there is no such file\n".to_vec()),
        },
    };
    respond(client, status, &body)
}

fn greeting() -> Vec<u8> {
    let name = fs::read_to_string(HOSTNAME).unwrap_or_default();
    format!("hello from {}\n", name.trim()).into_bytes()
}

/// A path never leads out of the directory.
fn file_of(directory: &Path, path: &str) -> PathBuf {
    let parts = Path::new(path).components().filter(|part| matches!(part, Component::Normal(_)));
    let file = directory.join(parts.collect::<PathBuf>());
    if file.is_dir() { file.join("index.html") } else { file }
}

fn respond(mut client: &TcpStream, status: &str, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    write!(client, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    client.write_all(body)
}
