//! Bits that flip.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Copies a directory with all files, links and modes.
///
/// # Panics
/// When it cannot.
pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, target) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_symlink() {
            symlink(fs::read_link(&path).unwrap(), &target).unwrap();
        } else if kind.is_dir() {
            copy_tree(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// Flips one bit in every `step`-th byte of every file of a directory, another bit each time, and has `examine` look at a copy of the
/// directory with that one flip. Returns how many flips there were.
///
/// # Panics
/// When a file cannot be read or written.
pub fn each_flip(directory: &Path, step: usize, mut examine: impl FnMut(&Path, &str)) -> usize {
    let (mut flips, mut files) = (0, Vec::new());
    regular_files(directory, Path::new(""), &mut files);
    for file in files {
        let bytes = fs::read(directory.join(&file)).unwrap();
        for at in (0..bytes.len()).step_by(step) {
            let copy = tempfile::tempdir().unwrap();
            copy_tree(directory, copy.path());
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (flips % 8);
            fs::write(copy.path().join(&file), &flipped).unwrap();
            examine(copy.path(), &format!("bit {} of byte {at} of {}", flips % 8, file.display()));
            flips += 1;
        }
    }
    flips
}

fn regular_files(root: &Path, below: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root.join(below)).unwrap() {
        let entry = entry.unwrap();
        let (path, kind) = (below.join(entry.file_name()), entry.file_type().unwrap());
        if kind.is_dir() {
            regular_files(root, &path, files);
        } else if kind.is_file() {
            files.push(path);
        }
    }
}
