//! `oarsman image import`.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use oarsman_image_store::{ImageStore, ImportOptions, ImportProgress, ImportedImage, Platform};

use super::super::output::print_stderr;
use super::{megabytes, short};

/// Bytes of a layer between two lines about it.
const STEP: u64 = 100_000_000;

/// What is imported.
#[derive(Debug, Args)]
pub(super) struct Flags {
    /// An archive, a directory with an OCI layout, or `-` for an archive on stdin.
    source: PathBuf,
    /// The image's name, in place of those in the archive; with several images, the repository of their tags.
    #[arg(long)]
    name: Option<String>,
    /// The platform whose image is taken, as OS/ARCHITECTURE or OS/ARCHITECTURE/VARIANT [default: this machine's].
    #[arg(long, value_parser = platform)]
    platform: Option<Platform>,
}

pub(super) fn platform(text: &str) -> Result<Platform, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let (os, architecture, variant) = match parts.as_slice() {
        [os, architecture] => (*os, *architecture, ""),
        [os, architecture, variant] => (*os, *architecture, *variant),
        _ => return Err("write it as OS/ARCHITECTURE, such as linux/arm64".to_owned()),
    };
    let [os, architecture, variant] = [os, architecture, variant].map(ToOwned::to_owned);
    Ok(Platform { os, architecture, variant })
}

/// Imports, and returns what was imported as text.
pub(super) fn run(store: &ImageStore, flags: &Flags) -> Result<String> {
    let platform = flags.platform.clone().unwrap_or_else(Platform::host);
    let options = ImportOptions { platform, name: flags.name.clone() };
    let mut last = (0, 0);
    let mut on_progress = |progress: ImportProgress<'_>| {
        if let Some(line) = line(progress, &mut last) {
            // Without stderr the import goes on.
            print_stderr(&line).ok();
        }
    };
    let source = flags.source.as_path();
    let shown = source.display().to_string();
    let imported = if source.is_dir() {
        store.import_layout(source, &options, &mut on_progress)?
    } else {
        let file = open(source).with_context(|| format!("cannot open {shown}"))?;
        store.import_archive(file, &shown, &options, &mut on_progress)?
    };
    Ok(imported.iter().map(summary).collect())
}

fn open(source: &Path) -> std::io::Result<File> {
    if source == Path::new("-") {
        return Ok(File::from(std::io::stdin().as_fd().try_clone_to_owned()?));
    }
    File::open(source)
}

/// What to tell; `last` is the layer and the bytes that were told last.
fn line(progress: ImportProgress<'_>, last: &mut (usize, u64)) -> Option<String> {
    match progress {
        ImportProgress::Image { name, layers } => Some(format!("{name}: {layers} layers")),
        ImportProgress::Present { layer } => Some(format!("layer {layer}: there already")),
        ImportProgress::Unpacked { layer } => Some(format!("layer {layer}: unpacked")),
        ImportProgress::Reading { layer, bytes, size } => {
            let since = if last.0 == layer { last.1 } else { 0 };
            if bytes < since + STEP {
                return None;
            }
            *last = (layer, bytes);
            let of = size.map(|size| format!(" of {}", megabytes(size))).unwrap_or_default();
            Some(format!("layer {layer}: {}{of}", megabytes(bytes)))
        }
    }
}

fn summary(image: &ImportedImage) -> String {
    let tags: Vec<&str> =
        image.names.iter().map(String::as_str).filter(|name| !name.contains('@')).collect();
    match tags.as_slice() {
        [] => format!(
            "imported {} without a name: the archive has none, give one with --name\n",
            short(&image.id)
        ),
        names => format!("imported {} as {}\n", short(&image.id), names.join(", ")),
    }
}
