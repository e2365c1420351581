//! Names of images.

use oarsman_core::image_reference::{
    full_name, registry_and_path, repository_name, with_default_tag,
};

use super::texts;
use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget =
    FuzzTarget { name: "image-references", max_len: 512, run, seeds };

fn run(bytes: &[u8]) {
    let Ok(image) = str::from_utf8(bytes) else { return };
    let parts = registry_and_path(image);
    drop((repository_name(image), full_name(image)));
    let Ok(tagged) = with_default_tag(image) else { return };
    assert!(tagged.starts_with(image), "{image:?} became {tagged:?}");
    assert!(tagged.is_ascii(), "{tagged:?} is no name of a registry");
    assert_eq!(with_default_tag(&tagged).as_ref(), Ok(&tagged), "a tagged name is changed again");
    assert_eq!(registry_and_path(&tagged), parts, "the default tag moves {image:?}");
    assert_eq!(full_name(&tagged), full_name(image), "the default tag makes another name");
    assert!(!parts.1.is_empty(), "{image:?} has no path");
    assert!(repository_name(image).ends_with(parts.1), "{image:?} is asked for by another path");
}

fn seeds() -> Vec<Vec<u8>> {
    let digest = format!("reg.io/a@sha256:{}", "0f".repeat(32));
    let mut seeds = texts(&[
        "busybox",
        "library/busybox:1.36",
        "localhost/a__b.c-d:latest",
        "reg.io:5000/team/app:v1.2_3-4",
        "[::1]:5000/a:b",
        "Reg.IO/upper",
    ]);
    seeds.push(digest.into_bytes());
    seeds
}
