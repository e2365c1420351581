//! Layers of images: the archive alone, and unpacked for real beside a file that must not change.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use oarsman_image_store::{fuzz_archive, fuzz_unpack};

use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget =
    FuzzTarget { name: "image-layers", max_len: 16_384, run, seeds };

fn run(bytes: &[u8]) {
    fuzz_archive(bytes);
    let Ok(place) = tempfile::tempdir() else { return };
    let (layer, outside) = (place.path().join("layer"), place.path().join("outside"));
    let made = fs::create_dir(&layer).and_then(|()| fs::write(&outside, "untouched"));
    assert!(made.is_ok(), "cannot prepare {}: {made:?}", place.path().display());
    // Refused or not: what counts is what is around it.
    fuzz_unpack(bytes, &layer).ok();
    assert_eq!(fs::read(&outside).ok().as_deref(), Some(b"untouched".as_slice()), "it is changed");
    assert_eq!(fs::metadata(&outside).map(|it| it.nlink()).ok(), Some(1), "it has another name");
    assert_eq!(fs::read_dir(place.path()).map(Iterator::count).ok(), Some(2), "something is new");
}

/// Archives of GNU tar in its formats, with links, whiteouts and holes; none on a machine without it.
fn seeds() -> Vec<Vec<u8>> {
    let Ok(place) = tempfile::tempdir() else { return Vec::new() };
    if prepare(place.path()).is_err() {
        return Vec::new();
    }
    let formats: [&[&str]; 4] = [
        &["--format=gnu", "--sparse"],
        &["--format=posix", "--sparse"],
        &["--format=ustar"],
        &["--format=posix", "--gzip"],
    ];
    formats.iter().filter_map(|options| archive(place.path(), options)).collect()
}

fn prepare(place: &Path) -> std::io::Result<()> {
    fs::create_dir_all(place.join("d/deep"))?;
    fs::write(place.join("d/file"), "content")?;
    fs::write(place.join("d/.wh.gone"), "")?;
    fs::write(place.join("d/deep/.wh..wh..opq"), "")?;
    fs::hard_link(place.join("d/file"), place.join("link"))?;
    std::os::unix::fs::symlink("../outside", place.join("climb"))?;
    fs::write(place.join("n".repeat(150)), "long")?;
    let mut holey = fs::File::create(place.join("holey"))?;
    holey.set_len(100_000)?;
    holey.write_all(b"start")
}

fn archive(place: &Path, options: &[&str]) -> Option<Vec<u8>> {
    let mut command = Command::new("tar");
    command.args(["--create", "--file=-", "--sort=name", "--mtime=@0", "--blocking-factor=1"]);
    let output = command.args(options).arg(".").current_dir(place).stderr(Stdio::null()).output();
    output.ok().filter(|output| !output.stdout.is_empty()).map(|output| output.stdout)
}
