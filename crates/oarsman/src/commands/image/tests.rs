//! The commands on a store of their own.

use std::fs;
use std::path::Path;

use clap::Parser;
use oarsman_image_store::{Digest, Platform};
use serde_json::json;

use super::*;

#[derive(Debug, Parser)]
struct Program {
    #[command(flatten)]
    flags: Flags,
}

fn image(root: &Path, words: &[&str]) -> Result<String> {
    let words =
        ["image", "--root-dir"].into_iter().chain(root.to_str()).chain(words.iter().copied());
    match output(&Program::try_parse_from(words)?.flags)? {
        ImageOutput::Text(text) => Ok(text),
        ImageOutput::Archive(_) => anyhow::bail!("this is no text"),
    }
}

/// An archive of `docker save` with one image of one layer with one file.
fn archive(path: &Path, tag: &str, file: &str) {
    let packed = |files: &[(&str, &[u8])]| {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, name, *bytes).unwrap();
        }
        builder.into_inner().unwrap()
    };
    let layer = packed(&[(file, b"content")]);
    let platform = Platform::host();
    let config = json!({
        "os": platform.os, "architecture": platform.architecture, "config": { "User": "7" },
        "rootfs": { "type": "layers", "diff_ids": [Digest::of(&layer).to_string()] },
    });
    let config = config.to_string();
    let manifest = json!([{ "Config": "config.json", "RepoTags": [tag], "Layers": ["layer.tar"] }]);
    let files: [(&str, &[u8]); 3] = [
        ("manifest.json", &manifest.to_string().into_bytes()),
        ("config.json", config.as_bytes()),
        ("layer.tar", &layer),
    ];
    fs::write(path, packed(&files)).unwrap();
}

#[test]
fn images_are_imported_listed_and_removed() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("web.tar");
    archive(&file, "web:1", "index.html");
    let file = file.to_str().unwrap();
    let said = image(root.path(), &["import", file]).unwrap();
    assert!(said.ends_with("as docker.io/library/web:1\n"), "{said}");
    image(root.path(), &["import", "--name", "other:2", file]).unwrap();
    let listed = image(root.path(), &["ls"]).unwrap();
    let names: Vec<&str> = listed.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, ["NAME", "docker.io/library/other:2", "docker.io/library/web:1"]);
    let json: serde_json::Value =
        serde_json::from_str(&image(root.path(), &["ls", "-o", "json"]).unwrap()).unwrap();
    assert_eq!(json[0]["user"], "7");
    let df = image(root.path(), &["df"]).unwrap();
    assert!(df.contains("images       1"), "{df}");
    image(root.path(), &["rm", "web:1"]).unwrap();
    let said = image(root.path(), &["rm", "other:2"]).unwrap();
    assert!(said.contains("1 layers"), "{said}");
    assert_eq!(image(root.path(), &["ls"]).unwrap().lines().count(), 1);
    let error = image(root.path(), &["rm", "web:1"]).unwrap_err();
    assert!(error.to_string().contains("no image \"web:1\""), "{error}");
}

#[test]
fn an_id_removes_the_image_with_all_its_names() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("web.tar");
    archive(&file, "web:1", "index.html");
    let said = image(root.path(), &["import", file.to_str().unwrap()]).unwrap();
    let id = said.split(' ').nth(1).unwrap();
    open(root.path()).unwrap().tag(id, "b").unwrap();
    image(root.path(), &["rm", id]).unwrap();
    assert_eq!(image(root.path(), &["ls"]).unwrap().lines().count(), 1);
    image(root.path(), &["import", file.to_str().unwrap()]).unwrap();
    let said = image(root.path(), &["prune"]).unwrap();
    assert!(said.starts_with("freed 0kB"), "{said}");
    let said = image(root.path(), &["prune", "--all"]).unwrap();
    assert!(said.starts_with("removed docker.io/library/web:1\n"), "{said}");
}

#[test]
fn sizes_are_those_of_docker() {
    for (bytes, text) in
        [(1, "1kB"), (999_000, "999kB"), (4_270_000, "4.2MB"), (1_900_000_000, "1.9GB")]
    {
        assert_eq!(megabytes(bytes), text);
    }
}

#[test]
fn the_image_of_the_examples_can_be_imported_elsewhere() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("demo.tar");
    let flags = Program::try_parse_from(["image", "demo"]).unwrap().flags;
    let ImageOutput::Archive(bytes) = output(&flags).unwrap() else { panic!("no archive") };
    fs::write(&file, bytes).unwrap();
    let said = image(root.path(), &["import", file.to_str().unwrap()]).unwrap();
    assert!(said.ends_with(" as oarsman.local/demo:1\n"), "{said}");
}
