//! Names of images: `[registry[:port]/]path[:tag][@digest]`.

/// A name no registry could have given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("couldn't parse image name {image:?}: {why}")]
pub struct InvalidName {
    /// The name as the pod spells it.
    pub image: String,
    /// What is wrong with it.
    pub why: &'static str,
}

const MALFORMED: &str = "invalid reference format";
const NOT_LOWERCASE: &str = "invalid reference format: repository name must be lowercase";
const TOO_LONG: &str = "repository name must not be more than 255 characters";
const BARE_ID: &str = "invalid repository name, cannot specify 64-byte hexadecimal strings";
const BAD_DIGEST: &str = "invalid checksum digest: use sha256, sha384 or sha512 in lower-case hex";
const NAME_LIMIT: usize = 255;
const TAG_LIMIT: usize = 128;

/// The name to ask the runtime for: with `:latest` where it has neither tag nor digest, else as it is.
///
/// Short names stay short; which registry they mean is the runtime's business.
pub fn with_default_tag(image: &str) -> Result<String, InvalidName> {
    let tagged = is_tagged(image).map_err(|why| InvalidName { image: image.to_owned(), why })?;
    Ok(if tagged { image.to_owned() } else { format!("{image}:latest") })
}

/// The registry of an image, empty where the name leaves it to the runtime, and its path there without tag and digest.
pub fn registry_and_path(image: &str) -> (&str, &str) {
    let named = image.split('@').next().unwrap_or(image);
    let (registry, path) = match named.split_once('/') {
        Some((first, rest)) if is_registry(first) => (first, rest),
        _ => ("", named),
    };
    (registry, path.split(':').next().unwrap_or(path))
}

/// The full name of an image's repository, without tag and digest and with what short names leave out, such as
/// `docker.io/library/busybox`.
pub fn repository_name(image: &str) -> String {
    let (registry, path) = registry_and_path(image);
    match (registry, path.contains('/')) {
        ("" | "docker.io" | "index.docker.io", false) => format!("docker.io/library/{path}"),
        ("" | "docker.io" | "index.docker.io", true) => format!("docker.io/{path}"),
        (registry, _) => format!("{registry}/{path}"),
    }
}

/// The full name of an image: its repository with its digest, or else with its tag. Two spellings of one image have the same.
pub fn full_name(image: &str) -> String {
    let repository = repository_name(image);
    if let Some((_, digest)) = image.split_once('@') {
        return format!("{repository}@{digest}");
    }
    let last_component = image.rfind('/').map_or(0, |slash| slash + 1);
    let tag = image[last_component..].split_once(':').map_or("latest", |(_, tag)| tag);
    format!("{repository}:{tag}")
}

/// Whether a valid name says which image of its repository it means.
fn is_tagged(image: &str) -> Result<bool, &'static str> {
    let (named, digest) = split_optional(image, image.find('@'));
    let last_component = named.rfind('/').map_or(0, |slash| slash + 1);
    let colon = named[last_component..].find(':').map(|at| last_component + at);
    let (name, tag) = split_optional(named, colon);
    check_name(name)?;
    tag.map_or(Ok(()), check_tag)?;
    digest.map_or(Ok(()), check_digest)?;
    Ok(tag.is_some() || digest.is_some())
}

fn split_optional(text: &str, at: Option<usize>) -> (&str, Option<&str>) {
    at.map_or((text, None), |at| (&text[..at], Some(&text[at + 1..])))
}

fn check_name(name: &str) -> Result<(), &'static str> {
    if name.len() == 64 && name.bytes().all(is_lower_hex) {
        return Err(BARE_ID);
    }
    let (registry, path) = match name.split_once('/') {
        Some((first, rest)) if is_registry(first) => (Some(first), rest),
        _ => (None, name),
    };
    if path.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(NOT_LOWERCASE);
    }
    if !registry.is_none_or(is_valid_registry) || !path.split('/').all(is_valid_component) {
        return Err(MALFORMED);
    }
    if path.len() > NAME_LIMIT { Err(TOO_LONG) } else { Ok(()) }
}

/// The first part of a path is a registry when it cannot be anything else.
fn is_registry(first: &str) -> bool {
    let upper = first.bytes().any(|byte| byte.is_ascii_uppercase());
    first == "localhost" || upper || first.contains(['.', ':'])
}

fn is_valid_registry(registry: &str) -> bool {
    let (host, port) = match registry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) if is_address(address) => (None, port),
        _ => match registry.find(':') {
            Some(colon) => (Some(&registry[..colon]), &registry[colon..]),
            None => (Some(registry), ""),
        },
    };
    host.is_none_or(|host| host.split('.').all(is_host_label)) && is_port(port)
}

fn is_address(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':')
}

fn is_port(text: &str) -> bool {
    let digits = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    text.is_empty() || text.strip_prefix(':').is_some_and(digits)
}

fn is_host_label(label: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !label.is_empty()
        && label.bytes().all(inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// Runs of lower-case letters and digits, joined by `.`, `_`, `__` or any number of `-`.
fn is_valid_component(component: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let ends_in_words = component.starts_with(is_word) && component.ends_with(is_word);
    let mut joints = component.split(is_word).filter(|joint| !joint.is_empty());
    ends_in_words
        && joints.all(|joint| matches!(joint, "." | "_" | "__") || joint.bytes().all(|b| b == b'-'))
}

fn check_tag(tag: &str) -> Result<(), &'static str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_inner = |c: char| is_word(c) || matches!(c, '.' | '-');
    let valid = tag.starts_with(is_word) && tag.chars().all(is_inner) && tag.len() <= TAG_LIMIT;
    if valid { Ok(()) } else { Err(MALFORMED) }
}

fn check_digest(digest: &str) -> Result<(), &'static str> {
    let (algorithm, hex) = digest.split_once(':').ok_or(MALFORMED)?;
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return Err(BAD_DIGEST),
    };
    let valid = hex.len() == length && hex.bytes().all(is_lower_hex);
    if valid { Ok(()) } else { Err(BAD_DIGEST) }
}

fn is_lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests;
