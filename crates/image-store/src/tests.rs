//! The store as a whole: names, garbage, mounts, crashes and full disks.

mod crash;
mod garbage;
mod mounts;
mod names;
mod partial;

use std::path::Path;
use std::process::Command;

use crate::fixtures::{TarWriter, TestImage};
use crate::oci::Platform;
use crate::store::ImageStore;

/// Adds an image from its own blobs.
pub(crate) fn add(store: &ImageStore, image: &TestImage, names: &[&str]) {
    let lease = store.begin_lease().unwrap();
    for blob in &image.blobs {
        store.add_blob(&lease, &crate::fixtures::descriptor("", blob), blob.as_slice()).unwrap();
    }
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let (root, platform) = (image.root(), Platform::host());
    store.add_image(&mut &store.clone(), &root, &names, &platform, &mut |_| {}).unwrap();
}

/// An image with one file for each name, one layer each.
pub(crate) fn of_files(names: &[&str]) -> TestImage {
    let layer = |name: &&str| TarWriter::default().file(name, name.as_bytes()).end();
    TestImage::plain(&names.iter().map(layer).collect::<Vec<_>>())
}

/// Runs an ignored test of this binary in a mount namespace of its own.
pub(crate) fn in_own_mounts(child: &str, directory: &Path) {
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", child, "--ignored", "--nocapture", "--test-threads=1"])
        .env("OARSMAN_TEST_DIRECTORY", directory)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
}

/// The directory of such a test.
pub(crate) fn own_directory() -> std::path::PathBuf {
    std::env::var_os("OARSMAN_TEST_DIRECTORY").expect("only for children of in_own_mounts").into()
}
