//! `oarsman image pull`.

use std::env;
use std::fs;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use oarsman_core::image::keyring::Keyring;
use oarsman_image_store::{ImageStore, Platform};
use oarsman_registry::{ImagePull, PullCounters, PullCredentials, RegistrySettings, pull_into};
use oarsman_runtime::pull_credentials;
use tokio::time::{Instant, interval};

use super::super::output::print_stderr;
use super::import::platform;
use super::{megabytes, short};
use crate::threads;

/// How often progress is shown on a terminal, and elsewhere.
const REDRAW: Duration = Duration::from_millis(500);
const REPORT: Duration = Duration::from_secs(10);

/// What is pulled.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// The image's name, such as `docker.io/library/busybox:1.36`.
    image: String,
    /// The platform whose image is taken, as OS/ARCHITECTURE or OS/ARCHITECTURE/VARIANT [default: this machine's].
    #[arg(long, value_parser = platform)]
    platform: Option<Platform>,
}

/// Pulls, and returns what was pulled as text.
pub(super) fn run(store: &ImageStore, flags: &Flags) -> Result<String> {
    let platform = flags.platform.clone().unwrap_or_else(Platform::host);
    let credentials = credentials(&flags.image)?;
    let pull = ImagePull { image: flags.image.clone(), credentials, platform };
    threads::block_on(async {
        let (settings, counters) = (Arc::new(RegistrySettings::of_machine()), Arc::default());
        let began = Instant::now();
        let pulled = tokio::select! {
            pulled = pull_into(store, &pull, &settings, &counters) => pulled?,
            never = show_progress(&counters, began) => match never {},
        };
        let (id, bytes) = (short(&pulled.id), counters.total.load(Ordering::Relaxed));
        let seconds = began.elapsed().as_secs_f64();
        Ok(format!("pulled {id} as {}: {} in {seconds:.1} s\n", pull.image, megabytes(bytes)))
    })
}

/// As whom the registry is asked: the first fitting entry of Docker's configuration of this user.
fn credentials(image: &str) -> Result<PullCredentials> {
    let Some(path) = configuration() else { return Ok(PullCredentials::Anonymous) };
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(PullCredentials::Anonymous);
        }
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let keyring =
        Keyring::parse(&text).with_context(|| format!("cannot use {}", path.display()))?;
    let first = keyring.for_image(image).into_iter().next();
    Ok(pull_credentials(first.map(|found| found.auth).unwrap_or_default()))
}

fn configuration() -> Option<PathBuf> {
    let directory = env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".docker"));
    directory.or_else(home).map(|directory| directory.join("config.json"))
}

async fn show_progress(counters: &PullCounters, began: Instant) -> std::convert::Infallible {
    let period = if std::io::stderr().is_terminal() { REDRAW } else { REPORT };
    let mut ticks = interval(period);
    let mut last = String::new();
    loop {
        ticks.tick().await;
        let text = progress(counters, began.elapsed());
        if !text.is_empty() && text != last {
            // Without stderr the pull goes on.
            print_stderr(&text).ok();
            last = text;
        }
    }
}

fn progress(counters: &PullCounters, elapsed: Duration) -> String {
    let read = |of: &std::sync::atomic::AtomicU64| of.load(Ordering::Relaxed);
    let (done, total) = (read(&counters.done), read(&counters.total));
    if total == 0 {
        return String::new();
    }
    if done >= total {
        let (unpacked, layers) = (read(&counters.unpacked), read(&counters.layers));
        return format!("{}: {unpacked} of {layers} layers unpacked", megabytes(total));
    }
    let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    let rate = done.saturating_mul(1000) / milliseconds;
    format!("{} of {}, {}/s", megabytes(done), megabytes(total), megabytes(rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_bytes_a_rate_and_then_layers() {
        let counters = PullCounters::default();
        let shown = || progress(&counters, Duration::from_secs(2));
        assert_eq!(shown(), "");
        counters.total.store(10_000_000, Ordering::Relaxed);
        counters.done.store(4_000_000, Ordering::Relaxed);
        assert_eq!(shown(), "4.0MB of 10.0MB, 2.0MB/s");
        counters.done.store(10_000_000, Ordering::Relaxed);
        counters.layers.store(3, Ordering::Relaxed);
        assert_eq!(shown(), "10.0MB: 0 of 3 layers unpacked");
    }
}
