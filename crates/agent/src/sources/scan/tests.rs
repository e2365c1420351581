//! Scans of files, directories and special files.

use std::os::unix::fs::symlink;

use tempfile::tempdir;

use super::*;

#[test]
fn files_directories_and_special_files_are_distinguished() {
    let place = tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir(at("empty")).unwrap();
    fs::create_dir(at("full")).unwrap();
    fs::write(at("full/a"), "a").unwrap();
    fs::write(at("full/.b"), "b").unwrap();
    fs::create_dir(at("full/below")).unwrap();
    symlink("full", at("linked")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    symlink("circle", at("circle")).unwrap();
    let found = |files: &[(&str, FileRead)]| {
        Scan::Files(files.iter().map(|(name, found)| (at(name), found.clone())).collect())
    };
    let (text, below) = (Ok(b"a".to_vec()), Err(ManifestFileError::Other("a directory")));
    let rows = [
        ("none", Scan::Missing),
        ("none/below", Scan::Missing),
        ("full/a/below", Scan::Missing),
        ("empty", found(&[])),
        ("full", found(&[("full/a", text.clone()), ("full/below", below.clone())])),
        ("linked", found(&[("linked/a", text.clone()), ("linked/below", below)])),
        ("full/a", found(&[("full/a", text)])),
        ("dangling", found(&[("dangling", Err(ManifestFileError::Dangling))])),
        ("circle", found(&[("circle", Err(ManifestFileError::LinkLoop))])),
    ];
    for (path, want) in rows {
        assert_eq!(scan(&at(path), |_| true), want, "{path}");
    }
}

#[test]
fn only_manifest_names_are_read_in_a_directory() {
    let place = tempdir().unwrap();
    fs::write(place.path().join("a.yaml"), "a").unwrap();
    fs::write(place.path().join("README"), "b").unwrap();
    let found = BTreeMap::from([(place.path().join("a.yaml"), Ok(b"a".to_vec()))]);
    let is_yaml = |path: &Path| path.extension().is_some_and(|end| end == "yaml");
    assert_eq!(scan(place.path(), is_yaml), Scan::Files(found));
    let named = place.path().join("README");
    assert!(matches!(scan(&named, is_yaml), Scan::Files(files) if files.len() == 1));
}

#[test]
fn a_directory_that_cannot_be_listed_is_not_an_empty_one() {
    let place = tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(directory(&file, |_| true), Scan::Unreadable(_)));
    assert_eq!(directory(&place.path().join("gone"), |_| true), Scan::Missing);
}
