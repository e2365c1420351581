//! The layers of the conformance images.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::images::{ImageLayer, with_busybox};
use crate::parts::Parts;
use crate::parts::conformance::ConformanceParts;

/// Programs that tests run inside of agnhost and of the image with glibc: their paths in Debian, and in the image.
const TOOLS: [(&str, &str); 7] = [
    ("/usr/bin/curl", "curl"),
    ("/usr/bin/dig", "dig"),
    ("/usr/bin/hostname", "hostname"),
    ("/usr/bin/ip", "ip"),
    ("/usr/bin/nc.openbsd", "nc"),
    ("/usr/bin/nslookup", "nslookup"),
    ("/usr/bin/ss", "ss"),
];
const NGINX: &str = "/usr/sbin/nginx";
const NGINX_CONFIGURATION: &str = "user root;
error_log stderr;
pid /run/nginx.pid;
events {}
http { access_log off; server { listen 80; location / { return 200 \"nginx\\n\"; } } }
";
const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n";
const GROUP: &str = "root:x:0:\nnogroup:x:65534:\n";
/// A test checks the groups of this user in the image.
const USER: &str = "user-defined-in-image:x:1000:1000::/home:/bin/sh\n";
const GROUPS: &str =
    "user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n";

/// busybox with a shell that passes on variables whose names are not valid for shell variables.
pub(super) fn base(parts: &Parts, from: &ConformanceParts) -> Result<ImageLayer> {
    let layer = ImageLayer::default()
        .directory("etc", 0o755)
        .file("etc/passwd", PASSWD)
        .file("etc/group", GROUP)
        .directory("home", 0o755)
        .directory("root", 0o700)
        .directory("run", 0o755)
        .directory("tmp", 0o1777)
        .directory("usr", 0o755)
        .directory("usr/bin", 0o755)
        .directory("var", 0o755);
    let layer = with_busybox(layer, parts, &["ash", "bash", "sh"])?;
    let bash = from.read("/usr/bin/bash-static")?;
    let shell = read(&parts.script.join("shell"))?;
    Ok(layer.program("bin/bash", &bash).program("bin/sh", &shell).link("bin/ash", "sh"))
}

/// Programs of Debian, in a directory that PATH has before busybox's.
pub(super) fn tools(from: &ConformanceParts) -> Result<ImageLayer> {
    let mut layer = ImageLayer::default();
    for (path, name) in TOOLS {
        layer = layer.program(&format!("usr/bin/{name}"), &from.read(path)?);
    }
    with_libraries(layer, from, TOOLS.iter().map(|(path, _)| *path))
}

pub(super) fn nginx(from: &ConformanceParts) -> Result<ImageLayer> {
    let layer = ["usr/sbin", "etc/nginx", "var/log", "var/log/nginx", "var/lib", "var/lib/nginx"]
        .into_iter()
        .fold(ImageLayer::default(), |layer, directory| layer.directory(directory, 0o755))
        .program("usr/sbin/nginx", &from.read(NGINX)?)
        .file("etc/nginx/nginx.conf", NGINX_CONFIGURATION);
    with_libraries(layer, from, [NGINX].into_iter())
}

pub(super) fn agnhost(from: &ConformanceParts, program: &Path) -> Result<ImageLayer> {
    let (certificate, key) = from.certificate()?;
    Ok(ImageLayer::default()
        .program("agnhost", &read(program)?)
        // Tests use it as another entrypoint.
        .link("agnhost-2", "agnhost")
        .directory("uploads", 0o777)
        .file("localhost.crt", &certificate)
        .file("localhost.key", &key)
        .file("etc/passwd", &format!("{PASSWD}{USER}"))
        .file("etc/group", &format!("{GROUP}{GROUPS}")))
}

pub(super) fn nnp(program: &Path) -> Result<ImageLayer> {
    let layer =
        ImageLayer::default().directory("usr/local", 0o755).directory("usr/local/bin", 0o755);
    Ok(layer.set_id_program("usr/local/bin/nnp", &read(program)?))
}

/// Adds each library once, under the path by which the loader looks for it.
fn with_libraries<'a>(
    mut layer: ImageLayer,
    from: &ConformanceParts,
    programs: impl Iterator<Item = &'a str>,
) -> Result<ImageLayer> {
    let mut libraries = BTreeSet::new();
    for program in programs {
        libraries.extend(from.libraries(program)?);
    }
    for library in libraries {
        layer = layer.program(library.trim_start_matches('/'), &from.read(&library)?);
    }
    Ok(layer)
}

fn read(program: &Path) -> Result<Vec<u8>> {
    fs::read(program).with_context(|| format!("cannot read {}", program.display()))
}
