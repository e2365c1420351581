//! Hooks after the start and before the stop, and the signal to stop with.

use k8s_openapi::api::core::v1::{Lifecycle, LifecycleHandler};

use super::context::PodValidationContext;
use super::probes::Handler;
use crate::api::error::Errors;
use crate::api::path::Path;

/// Signals by name; those with numbers counted from an end are checked apart.
const SIGNALS: [&str; 36] = [
    "SIGABRT",
    "SIGALRM",
    "SIGBUS",
    "SIGCHLD",
    "SIGCLD",
    "SIGCONT",
    "SIGFPE",
    "SIGHUP",
    "SIGILL",
    "SIGINT",
    "SIGIO",
    "SIGIOT",
    "SIGKILL",
    "SIGPIPE",
    "SIGPOLL",
    "SIGPROF",
    "SIGPWR",
    "SIGQUIT",
    "SIGRTMAX",
    "SIGRTMIN",
    "SIGSEGV",
    "SIGSTKFLT",
    "SIGSTOP",
    "SIGSYS",
    "SIGTERM",
    "SIGTRAP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGUSR1",
    "SIGUSR2",
    "SIGVTALRM",
    "SIGWINCH",
    "SIGXCPU",
    "SIGXFSZ",
];
const WINDOWS_SIGNALS: [&str; 2] = ["SIGKILL", "SIGTERM"];

pub(super) fn check(
    at: &Path,
    lifecycle: Option<&Lifecycle>,
    around: &PodValidationContext<'_>,
    errors: &mut Errors,
) {
    let Some(lifecycle) = lifecycle else { return };
    let hooks = [("postStart", &lifecycle.post_start), ("preStop", &lifecycle.pre_stop)];
    for (name, hook) in hooks {
        hook.iter().for_each(|hook| handler(hook).check(&at.child(name), around, errors));
    }
    if let Some(signal) = &lifecycle.stop_signal {
        check_signal(&at.child("stopSignal"), signal, around.os(), errors);
    }
}

fn handler(hook: &LifecycleHandler) -> Handler<'_> {
    Handler {
        exec: hook.exec.as_ref(),
        http_get: hook.http_get.as_ref(),
        tcp_socket: hook.tcp_socket.as_ref(),
        grpc: None,
        sleep: hook.sleep.as_ref(),
    }
}

fn check_signal(at: &Path, signal: &str, os: Option<&str>, errors: &mut Errors) {
    match os {
        None => errors.forbidden(at, "set spec.os.name: signals differ between systems"),
        Some("windows") => errors.check_supported(at, signal, &WINDOWS_SIGNALS),
        Some("linux") if !is_linux_signal(signal) => errors.not_supported(at, signal, &SIGNALS),
        Some(_) => {}
    }
}

fn is_linux_signal(signal: &str) -> bool {
    let counted = |prefix, most| {
        let number = signal.strip_prefix(prefix).and_then(|number| number.parse::<u8>().ok());
        number.is_some_and(|n| (1..=most).contains(&n) && signal == format!("{prefix}{n}"))
    };
    SIGNALS.contains(&signal) || counted("SIGRTMIN+", 15) || counted("SIGRTMAX-", 14)
}
