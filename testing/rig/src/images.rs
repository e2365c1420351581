//! Builds the rig's images: small, the same bytes every time, and without any network.

mod archive;
mod build;
pub mod conformance;

use std::fs;

use anyhow::{Context, Result};

pub use archive::archive;
pub use build::{Blob, ImageConfig, ImageLayer, OciImage};

use crate::parts::Parts;

/// The image of pods' sandboxes.
pub const PAUSE: &str = "rig.local/pause:1";
/// `oarsman-script` as entrypoint; runs as root.
pub const SCRIPT: &str = "rig.local/script:1";
/// `oarsman-script` as user and group 1000, with `GREETING=hello`, in `/tmp`.
pub const SCRIPT_AS_USER: &str = "rig.local/script:user";
/// busybox with all its applets in /bin, users root and `someone` (1000), and /tmp.
pub const BUSYBOX: &str = "rig.local/busybox:1";

/// The images that every rig has.
///
/// # Errors
/// When a part that goes into them cannot be read.
pub fn standard(parts: &Parts) -> Result<Vec<OciImage>> {
    let user = ImageConfig {
        user: "1000:1000".to_owned(),
        env: vec!["GREETING=hello".to_owned()],
        working_dir: "/tmp".to_owned(),
        ..ImageConfig::default()
    };
    Ok(vec![
        pause(parts)?,
        script_image(parts, SCRIPT, ImageConfig::default())?,
        script_image(parts, SCRIPT_AS_USER, user)?,
        busybox(parts, BUSYBOX)?,
        demo()?,
    ])
}

/// The image of the examples, as the program ships it.
fn demo() -> Result<OciImage> {
    let program = oarsman_demo_image::program().context("a static C library is needed")?;
    let layer = ImageLayer::default()
        .directory("tmp", 0o1777)
        .directory("bin", 0o755)
        .program(oarsman_demo_image::PROGRAM_PATH.trim_start_matches('/'), program);
    let config = ImageConfig {
        entrypoint: vec![oarsman_demo_image::PROGRAM_PATH.to_owned()],
        env: vec!["PATH=/bin".to_owned()],
        stop_signal: oarsman_demo_image::STOP_SIGNAL.to_owned(),
        ..ImageConfig::default()
    };
    OciImage::build(oarsman_demo_image::NAME, &[layer], &config)
}

fn pause(parts: &Parts) -> Result<OciImage> {
    let layer = ImageLayer::default().program("pause", &fs::read(parts.script.join("pause"))?);
    let config = ImageConfig { entrypoint: vec!["/pause".to_owned()], ..ImageConfig::default() };
    OciImage::build(PAUSE, &[layer], &config)
}

/// An image of `oarsman-script` under any name; it is the entrypoint unless `config` has another.
///
/// # Errors
/// When the program cannot be read.
pub fn script_image(parts: &Parts, name: &str, mut config: ImageConfig) -> Result<OciImage> {
    if config.entrypoint.is_empty() {
        config.entrypoint = vec!["/script".to_owned()];
    }
    let layer = ImageLayer::default()
        .program("script", &fs::read(parts.script.join("script"))?)
        .directory("tmp", 0o1777)
        .directory("etc", 0o755)
        .file("etc/passwd", PASSWD)
        .file("etc/group", GROUP);
    OciImage::build(name, &[layer], &config)
}

fn busybox(parts: &Parts, name: &str) -> Result<OciImage> {
    let layer = ImageLayer::default()
        .directory("tmp", 0o1777)
        .directory("etc", 0o755)
        .file("etc/passwd", PASSWD)
        .file("etc/group", GROUP);
    let layer = with_busybox(layer, parts, &[])?;
    let config = ImageConfig {
        cmd: vec!["/bin/sh".to_owned()],
        env: vec!["PATH=/bin".to_owned()],
        ..ImageConfig::default()
    };
    OciImage::build(name, &[layer], &config)
}

/// Adds busybox, and a link for every applet in the list that it prints itself, but for some.
fn with_busybox(layer: ImageLayer, parts: &Parts, but: &[&str]) -> Result<ImageLayer> {
    let applets = std::process::Command::new(&parts.busybox).arg("--list").output()?.stdout;
    let applets = String::from_utf8(applets)?;
    let layer = layer.directory("bin", 0o755).program("bin/busybox", &fs::read(&parts.busybox)?);
    let wanted = |applet: &&str| *applet != "busybox" && !but.contains(applet);
    let applets = applets.lines().filter(wanted);
    Ok(applets.fold(layer, |layer, applet| layer.link(&format!("bin/{applet}"), "busybox")))
}

const PASSWD: &str = "root:x:0:0:root:/:/bin/sh\nsomeone:x:1000:1000:someone:/tmp:/bin/sh\n";
const GROUP: &str = "root:x:0:\nsomeone:x:1000:\n";
