//! What the words of the command line mean.

use std::env;
use std::io;
use std::path::Path;
use std::process::{ExitCode, abort};
use std::thread;
use std::time::Duration;

use crate::{files, http_client, http_server};

/// The word between two steps.
const SEPARATOR: &str = "then";
const PORT: u16 = 8080;

/// Runs the steps to the end, or to one that ends the program.
pub(crate) fn run(words: &[String]) -> io::Result<ExitCode> {
    for step in words.split(|word| word == SEPARATOR) {
        let step: Vec<&str> = step.iter().map(String::as_str).collect();
        if let Some(code) = run_step(&step)? {
            return Ok(ExitCode::from(code));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The exit code, if the step ends the program.
fn run_step(step: &[&str]) -> io::Result<Option<u8>> {
    match step {
        ["serve", options @ ..] => serve(options)?,
        ["get", address] => print!("{}", http_client::get(address)?),
        ["print", text] => println!("{text}"),
        ["show", file] => files::show(file)?,
        ["count", file] => println!("{file} has {} letters", files::count(file)?),
        ["env", name] => println!("{}", env::var(name).unwrap_or_default()),
        ["write", file, text] => files::write(file, text)?,
        ["append", file, text] => files::append(file, text)?,
        ["follow", file] => files::follow(file)?,
        ["wait", file] => files::wait(file),
        ["sleep", seconds] => pause(Duration::from_secs(number(seconds)?)),
        ["every", seconds, step @ ..] => return every(Duration::from_secs(number(seconds)?), step),
        ["exit", code] => return Ok(Some(number(code)?)),
        ["crash"] => abort(),
        _ => return Err(io::Error::other(format!("there is no step {step:?}, see demo --help"))),
    }
    Ok(None)
}

fn serve(options: &[&str]) -> io::Result<()> {
    let (mut port, mut directory) = (PORT, None);
    for option in options.chunks(2) {
        match option {
            ["--port", given] => port = number(given)?,
            ["--directory", given] => directory = Some(*given),
            _ => return Err(io::Error::other(format!("serve has no option {option:?}"))),
        }
    }
    http_server::serve(port, directory.map(Path::new))
}

fn every(period: Duration, step: &[&str]) -> io::Result<Option<u8>> {
    loop {
        if let Some(code) = run_step(step)? {
            return Ok(Some(code));
        }
        pause(period);
    }
}

fn number<T: std::str::FromStr>(text: &str) -> io::Result<T> {
    text.parse().map_err(|_| io::Error::other(format!("{text:?} is not such a number")))
}

#[expect(clippy::disallowed_methods, reason = "a container has nothing else to do")]
pub(crate) fn pause(time: Duration) {
    thread::sleep(time);
}
