//! The program of the examples' image: a few steps that a container can be made of, one after the other. It uses the standard library only,
//! because `build.rs` compiles it without cargo.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the output of a container")]

mod files;
mod http_client;
mod http_server;
mod steps;

use std::env;
use std::process::ExitCode;

const HELP: &str = "\
Usage: demo STEP [then STEP]...
  serve [--port PORT] [--directory DIR]  an HTTP server that greets, or shows the files of a directory
  get ADDRESS/PATH                       what an HTTP server answers
  print TEXT                             a line
  show FILE                              what is in a file
  count FILE                             how many letters are in a file
  env NAME                               a variable
  write FILE TEXT                        a line into a file, in place of what is in it
  append FILE TEXT                       a line at the end of a file
  follow FILE                            what is in a file, and what is added to it from then on
  wait FILE                              until there is a file
  sleep SECONDS
  every SECONDS STEP                     a step again and again
  exit CODE
  crash                                  an end by a signal";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    if words.is_empty() || words == ["--help"] {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    steps::run(&words).unwrap_or_else(|error| {
        eprintln!("demo: {error}");
        ExitCode::FAILURE
    })
}
