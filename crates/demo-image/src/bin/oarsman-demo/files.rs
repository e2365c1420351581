//! Steps that read and write files.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use crate::steps::pause;

/// How often a file is looked at.
const PERIOD: Duration = Duration::from_millis(100);

pub(crate) fn show(path: &str) -> io::Result<()> {
    io::stdout().write_all(&read(path)?)
}

pub(crate) fn count(path: &str) -> io::Result<usize> {
    Ok(String::from_utf8_lossy(&read(path)?).trim_end().chars().count())
}

pub(crate) fn write(path: &str, text: &str) -> io::Result<()> {
    fs::write(path, format!("{text}\n")).map_err(|error| of(path, &error))
}

pub(crate) fn append(path: &str, text: &str) -> io::Result<()> {
    let opened = File::options().create(true).append(true).open(path);
    opened.and_then(|mut file| writeln!(file, "{text}")).map_err(|error| of(path, &error))
}

/// Never ends.
pub(crate) fn follow(path: &str) -> io::Result<()> {
    wait(path);
    let mut file = File::open(path).map_err(|error| of(path, &error))?;
    loop {
        io::copy(&mut file, &mut io::stdout())?;
        pause(PERIOD);
    }
}

pub(crate) fn wait(path: &str) {
    while !Path::new(path).exists() {
        pause(PERIOD);
    }
}

fn read(path: &str) -> io::Result<Vec<u8>> {
    fs::read(path).map_err(|error| of(path, &error))
}

fn of(path: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{path}: {error}"))
}
