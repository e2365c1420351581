//! `oarsman image`: the images of the embedded runtime. These commands work on the store itself, with or without an agent.

mod import;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Subcommand};
use oarsman_core::disk_usage::DiskUsage;
use oarsman_image_store::{Digest, ImageStore, StoredImage, UnpackBounds};
use oarsman_runtime::EmbeddedRuntimeSettings;
use serde::Serialize;

use super::output::{OutputFormat, formatted, print};
use super::table::table;
use crate::runtime_endpoint::embedded_directory;

/// Digits of an id that are enough for people.
const SHORT_ID: usize = 12;
const NONE: &str = "<none>";

/// What to do with images.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  docker save web:1 | oarsman image import -       from an archive of Docker
  oarsman image import --name web:1 ./layout       from an OCI layout
  oarsman image ls
  oarsman image rm web:1
  oarsman image prune --all                        all that no container uses
  oarsman image demo | ctr -n k8s.io image import -  the examples' image for containerd")]
pub(crate) struct Flags {
    #[command(subcommand)]
    command: ImageCommand,
    /// The root directory, in which the images are.
    #[arg(long, value_name = "DIRECTORY", global = true, default_value = "/var/lib/oarsman")]
    root_dir: PathBuf,
}

#[derive(Debug, Subcommand)]
enum ImageCommand {
    /// Import the images of an OCI layout, or of an archive of `docker save`.
    Import(import::Flags),
    /// Show images, a line for each name.
    Ls {
        /// How they are shown, if not as a table.
        #[arg(long, short, value_name = "FORMAT")]
        output: Option<OutputFormat>,
    },
    /// Remove names, or with an id an image and all its names, and the files that nothing needs then.
    Rm {
        /// Names, ids, or how an id begins.
        #[arg(required = true)]
        images: Vec<String>,
    },
    /// Remove files that no image and no container needs.
    Prune {
        /// Images that no container uses, too.
        #[arg(long, short)]
        all: bool,
    },
    /// Show how much disk images and containers use.
    Df,
    /// Write the image of the examples to stdout as an archive, for another runtime.
    Demo,
}

/// What is printed.
enum ImageOutput {
    Text(String),
    Archive(Vec<u8>),
}

/// Does it.
pub(crate) fn run(flags: &Flags) -> Result<()> {
    match output(flags)? {
        ImageOutput::Text(text) => print(&text),
        ImageOutput::Archive(bytes) => Ok(io::stdout().write_all(&bytes)?),
    }
}

fn output(flags: &Flags) -> Result<ImageOutput> {
    let store = || open(&flags.root_dir);
    Ok(ImageOutput::Text(match &flags.command {
        ImageCommand::Import(flags) => import::run(&store()?, flags)?,
        ImageCommand::Ls { output } => list(&store()?.images()?, *output)?,
        ImageCommand::Rm { images } => remove(&store()?, images)?,
        ImageCommand::Prune { all } => prune(&store()?, *all)?,
        ImageCommand::Df => usage(&store()?)?,
        ImageCommand::Demo => return Ok(ImageOutput::Archive(oarsman_demo_image::archive()?)),
    }))
}

fn open(root: &Path) -> Result<ImageStore> {
    let directory = EmbeddedRuntimeSettings::image_directory(&embedded_directory(root));
    Ok(ImageStore::open(&directory, UnpackBounds::default())?)
}

/// An image for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ImageEntry<'a> {
    id: String,
    repo_tags: &'a [String],
    repo_digests: &'a [String],
    size: u64,
    user: &'a str,
    created: Option<&'a str>,
}

fn list(images: &[StoredImage], output: Option<OutputFormat>) -> Result<String> {
    if let Some(format) = output {
        let entry = |image| entry(image);
        return formatted(&images.iter().map(entry).collect::<Vec<_>>(), format);
    }
    let row = |image: &StoredImage, name: &str| {
        vec![name.into(), short(&image.id).into(), megabytes(image.size).into()]
    };
    let mut rows: Vec<_> = images
        .iter()
        .flat_map(|image| image.tags.iter().map(move |name| (name.as_str(), image)))
        .collect();
    rows.extend(images.iter().filter(|image| image.tags.is_empty()).map(|image| (NONE, image)));
    rows.sort_by_key(|(name, image)| (*name == NONE, *name, image.id));
    let rows = rows.into_iter().map(|(name, image)| row(image, name)).collect();
    Ok(table(&["NAME", "IMAGE ID", "SIZE"], rows))
}

fn entry(image: &StoredImage) -> ImageEntry<'_> {
    ImageEntry {
        id: image.id.to_string(),
        repo_tags: &image.tags,
        repo_digests: &image.digests,
        size: image.size,
        user: &image.config.user,
        created: image.created.as_deref(),
    }
}

/// An argument that is a name of the image removes that name, any other the image.
fn remove(store: &ImageStore, images: &[String]) -> Result<String> {
    let mut text = String::new();
    for wanted in images {
        let image = store.image(wanted)?;
        if image.id.hex().starts_with(wanted.trim_start_matches("sha256:")) {
            store.remove_image(&image.id)?;
            text.push_str(&format!("removed {} with all its names\n", short(&image.id)));
        } else {
            store.remove_name(wanted)?;
            text.push_str(&format!("removed {wanted}\n"));
        }
    }
    Ok(text + &prune(store, false)?)
}

fn prune(store: &ImageStore, all: bool) -> Result<String> {
    let mut text = String::new();
    if all {
        let used: BTreeSet<Digest> = store.roots()?.into_iter().map(|root| root.image).collect();
        for image in store.images()?.iter().filter(|image| !used.contains(&image.id)) {
            store.remove_image(&image.id)?;
            let name = image.tags.first().cloned().unwrap_or_else(|| short(&image.id));
            text.push_str(&format!("removed {name}\n"));
        }
    }
    let report = store.prune()?;
    let freed = megabytes(report.bytes);
    let (layers, blobs) = (report.layers, report.blobs);
    Ok(format!("{text}freed {freed}: {layers} layers, {blobs} blobs\n"))
}

fn usage(store: &ImageStore) -> Result<String> {
    let images = store.usage()?;
    let roots = store.roots()?;
    let mut written = DiskUsage::default();
    for root in &roots {
        written = written + store.root_usage(&root.key)?;
    }
    let row = |what: &str, count: u64, usage: DiskUsage| {
        let size = megabytes(usage.bytes);
        vec![what.into(), count.to_string().into(), size.into(), usage.inodes.to_string().into()]
    };
    let rows = vec![
        row("images", store.images()?.len() as u64, images.images),
        row("containers", roots.len() as u64, written),
    ];
    Ok(table(&["WHAT", "COUNT", "SIZE", "INODES"], rows))
}

fn short(id: &Digest) -> String {
    id.hex().chars().take(SHORT_ID).collect()
}

/// As `docker image ls` shows sizes.
fn megabytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{}kB", bytes.div_ceil(1000)),
        1_000_000..1_000_000_000 => format!("{}.{}MB", bytes / 1_000_000, bytes / 100_000 % 10),
        _ => format!("{}.{}GB", bytes / 1_000_000_000, bytes / 100_000_000 % 10),
    }
}
