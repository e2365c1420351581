//! The socket of systemd's notifications, as under `Type=notify`.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// A socket, and what was sent to it.
#[derive(Debug)]
pub struct NotifySocket {
    socket: UnixDatagram,
    words: Vec<String>,
}

impl NotifySocket {
    /// Makes a socket at a path.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn bind(path: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::bind(path)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, words: Vec::new() })
    }

    /// All notifications so far.
    pub fn so_far(&mut self) -> Vec<String> {
        let mut bytes = [0; 256];
        while let Ok(length) = self.socket.recv(&mut bytes) {
            self.words.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
        }
        self.words.clone()
    }
}

/// Whether a process has said that it is ready, and then twice that it is well.
pub fn is_ready_and_well(words: &[String]) -> bool {
    let well = words.iter().filter(|word| *word == "WATCHDOG=1").count();
    words.first().is_some_and(|word| word == "READY=1") && well >= 2
}
