//! The one line of a runtime's long message that matters.
//!
//! Runtimes prefix an error with every layer that passed it on, outermost first. The cause is at the end.

/// How a known beginning goes on before the part that matters.
enum Opening {
    /// The rest follows the prefix as it is.
    Plain(&'static str),
    /// With a word in quotes and a colon.
    Quoted(&'static str),
    /// With anything up to the next colon and blank.
    Anything(&'static str),
}

use Opening::{Anything, Plain, Quoted};

const OPENINGS: &[Opening] = &[
    Quoted("Back-off pulling image "),
    Plain("ErrImagePull: "),
    Plain("error determining status: "),
    Plain("network is not ready: "),
    Plain("container runtime network not ready: "),
    Anything("NetworkReady=false "),
    Anything("rpc error: code = "),
    Anything("RunPodSandbox "),
    Anything("CreateContainer "),
    Anything("StartContainer "),
    Anything("StopContainer "),
    Anything("StopPodSandbox "),
    Plain("ListPodSandbox: "),
    Plain("ListContainers: "),
    Anything("ImageStatus "),
    Anything("PullImage "),
    Quoted("failed to pull and unpack image "),
    Plain("failed to resolve image: "),
    Quoted("failed to resolve reference "),
    Plain("failed to do request: "),
    Quoted("Head "),
    Quoted("Get "),
    Anything("unexpected status from HEAD request to "),
    Anything("unexpected status from GET request to "),
    Plain("pull access denied, repository does not exist or may require authorization: "),
    Quoted("Failed to apply default image tag "),
    Quoted("couldn't parse image name "),
    Plain("invalid reference format: "),
    Quoted("Failed to inspect image "),
    Plain("failed to create containerd container: "),
    Plain("failed to get container spec opts: "),
    Plain("failed to generate apparmor spec opts: "),
    Quoted("failed to start sandbox "),
    Quoted("failed to setup network for sandbox "),
    Quoted("failed to start container "),
    Plain("failed to create containerd task: "),
    Plain("failed to create shim task: "),
    Plain("OCI runtime create failed: "),
    Plain("runc create failed: "),
    Plain("unable to start container process: "),
    Plain("error during container init: "),
    Anything("cannot set up the volumes in "),
];

/// Codes that tell a person nothing that the words before them do not.
const CODES: &[&str] = &[" (unknown)", " (unavailable)"];

/// A longer message is cut.
const LONGEST: usize = 300;

/// The cause in a message: its first line, without the prefixes of layers that passed it on.
pub(super) fn root_message(message: &str) -> String {
    let mut rest = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    while let Some(shorter) = OPENINGS.iter().find_map(|opening| opening.strip(rest)) {
        rest = shorter;
    }
    let rest = CODES.iter().fold(rest, |rest, code| rest.trim_end_matches(code));
    let rest = rest.trim_end_matches('.');
    match rest.len() > LONGEST {
        true => format!("{}…", &rest[..rest.floor_char_boundary(LONGEST)]),
        false => rest.to_owned(),
    }
}

impl Opening {
    /// What follows, if the text begins like this and goes on.
    fn strip<'a>(&self, text: &'a str) -> Option<&'a str> {
        let rest = match self {
            Plain(opening) => text.strip_prefix(opening)?,
            Quoted(opening) => {
                let quoted = text.strip_prefix(opening)?.strip_prefix('"')?;
                quoted.split_once("\": ")?.1
            }
            Anything(opening) => text.strip_prefix(opening)?.split_once(": ")?.1,
        };
        Some(rest).filter(|rest| !rest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::root_message;

    #[test]
    fn the_root_message_is_what_follows_known_prefixes() {
        let long = "x".repeat(400);
        let cut = format!("{}…", "x".repeat(300));
        let rows = [
            ("", ""),
            ("plain", "plain"),
            ("\n\nfirst\nsecond", "first"),
            (
                "RunPodSandbox default/web: failed to start sandbox \"f1\": failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: container init was OOM-killed (memory limit too low?) (unknown)",
                "container init was OOM-killed (memory limit too low?)",
            ),
            (
                "Back-off pulling image \"r:5000/x:1\": ErrImagePull: failed to pull and unpack image \"r:5000/x:1\": failed to resolve image: failed to do request: Head \"https://r:5000/v2/x/manifests/1\": dial tcp 127.0.0.1:1: connect: connection refused",
                "dial tcp 127.0.0.1:1: connect: connection refused",
            ),
            (
                "rpc error: code = Unknown desc = failed to resolve reference \"x\": not found",
                "not found",
            ),
            ("cannot set up the volumes in /a/b: volume \"v\": gone", "volume \"v\": gone"),
            ("Head \"never closed", "Head \"never closed"),
            ("CreateContainer x: ", "CreateContainer x:"),
            (&long, &cut),
        ];
        for (message, expected) in rows {
            assert_eq!(root_message(message), expected, "{message}");
        }
    }
}
