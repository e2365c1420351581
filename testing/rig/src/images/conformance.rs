//! The images that the node tests of Kubernetes name, built from Debian's programs and those of the tests themselves.
//!
//! They are on the node under the names the tests use, so that nothing is ever pulled. The private registry that agnhost can run is left out:
//! only tests that run alone use it.

mod layers;

use std::path::Path;

use anyhow::Result;

use super::{ImageConfig, OciImage, pause};
use crate::parts::Parts;
use crate::parts::conformance::ConformanceParts;

const BUSYBOX: &str = "registry.k8s.io/e2e-test-images/busybox:1.37.0-1";
const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost:2.63.0";
const AGNHOST_BEFORE: &str = "registry.k8s.io/e2e-test-images/agnhost:2.55";
const GLIBC_DNS_TESTING: &str = "registry.k8s.io/e2e-test-images/glibc-dns-testing:2.0.0";
const NGINX: &str = "registry.k8s.io/e2e-test-images/nginx:1.15-4";
const NGINX_NEW: &str = "registry.k8s.io/e2e-test-images/nginx:1.27-0";
const NONEWPRIVS: &str = "registry.k8s.io/e2e-test-images/nonewprivs:1.4";
const NONROOT: &str = "registry.k8s.io/e2e-test-images/nonroot:1.5";
const PAUSE: &str = "registry.k8s.io/pause:3.10.2";

/// All names, which are compared with those that the tests use.
pub const NAMES: [&str; 9] = [
    BUSYBOX,
    AGNHOST,
    AGNHOST_BEFORE,
    GLIBC_DNS_TESTING,
    NGINX,
    NGINX_NEW,
    NONEWPRIVS,
    NONROOT,
    PAUSE,
];

const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Programs of the tests that go into images, static.
#[derive(Debug, Clone, Copy)]
pub struct ConformancePrograms<'a> {
    /// `agnhost`.
    pub agnhost: &'a Path,
    /// The program that prints its effective user id.
    pub nnp: &'a Path,
}

/// Builds all of them.
///
/// # Errors
/// When something that goes into them cannot be read.
pub fn build(
    parts: &Parts,
    from: &ConformanceParts,
    programs: ConformancePrograms<'_>,
) -> Result<Vec<OciImage>> {
    let base = layers::base(parts, from)?;
    let tools = layers::tools(from)?;
    let shell = ImageConfig { cmd: words(&["sh"]), env: words(&[PATH]), ..ImageConfig::default() };
    let agnhost = ImageConfig {
        entrypoint: words(&["/agnhost"]),
        cmd: words(&["pause"]),
        env: words(&[PATH]),
        ..ImageConfig::default()
    };
    let nnp = ImageConfig { cmd: words(&["nnp"]), ..shell.clone() };
    let nonroot = ImageConfig { user: "1234".to_owned(), ..shell.clone() };
    let nginx = ImageConfig { cmd: words(&["nginx", "-g", "daemon off;"]), ..shell.clone() };

    let web = layers::nginx(from)?;
    let nginx = OciImage::build(NGINX, &[base.clone(), web], &nginx)?;
    let own = layers::agnhost(from, programs.agnhost)?;
    let agnhost = OciImage::build(AGNHOST, &[base.clone(), tools.clone(), own], &agnhost)?;
    let told = layers::nnp(programs.nnp)?;
    Ok(vec![
        OciImage::build(BUSYBOX, std::slice::from_ref(&base), &shell)?,
        agnhost.named(AGNHOST_BEFORE),
        agnhost,
        OciImage::build(GLIBC_DNS_TESTING, &[base.clone(), tools], &shell)?,
        nginx.named(NGINX_NEW),
        nginx,
        OciImage::build(NONEWPRIVS, &[base.clone(), told], &nnp)?,
        OciImage::build(NONROOT, &[base], &nonroot)?,
        pause(parts)?.named(PAUSE),
    ])
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}
