//! Images are the same bytes every time, and refer to each other by their digests.

use super::*;

fn layer() -> ImageLayer {
    ImageLayer::default()
        .directory("tmp", 0o1777)
        .file("etc/motd", "row\n")
        .program("run", b"\x7fELF")
        .link("bin/sh", "run")
}

fn image() -> OciImage {
    let config = ImageConfig { user: "1000".to_owned(), ..ImageConfig::default() };
    OciImage::build("rig.local/x:1", &[layer()], &config).unwrap()
}

/// Were they to change with a library of ours, images would be pulled anew for no reason.
#[test]
fn digests_are_the_same_on_every_machine_and_every_day() {
    let layer = layer().pack().unwrap();
    assert_eq!(
        layer.digest,
        "sha256:f39d0dcaecf4b0ce54aa2152e07fd3ad3ecb2a044338ac0ab7af8ad4a3c5d8b6"
    );
}

#[test]
fn the_manifest_points_at_the_configuration_and_the_layers() {
    let image = image();
    let manifest: Value = serde_json::from_slice(&image.manifest.bytes).unwrap();
    assert_eq!(manifest["config"]["digest"], image.config.digest);
    assert_eq!(manifest["layers"][0]["digest"], image.layers[0].digest);
    assert_eq!(manifest["layers"][0]["size"], image.layers[0].bytes.len());
    let config: Value = serde_json::from_slice(&image.config.bytes).unwrap();
    assert_eq!(config["rootfs"]["diff_ids"][0], image.layers[0].digest);
    assert_eq!(config["config"], json!({ "User": "1000" }));
}

#[test]
fn a_layer_has_its_entries_in_order_with_their_modes() {
    let packed = layer().pack().unwrap();
    let mut archive = tar::Archive::new(packed.bytes.as_slice());
    let entries: Vec<(String, u32, EntryType)> = archive
        .entries()
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            (path, entry.header().mode().unwrap(), entry.header().entry_type())
        })
        .collect();
    let expected = [
        ("tmp", 0o1777, EntryType::Directory),
        ("etc/motd", 0o644, EntryType::Regular),
        ("run", 0o755, EntryType::Regular),
        ("bin/sh", 0o777, EntryType::Symlink),
    ];
    assert_eq!(entries, expected.map(|(path, mode, kind)| (path.to_owned(), mode, kind)));
}

#[test]
fn another_name_is_the_same_image_and_another_configuration_is_another() {
    let image = image();
    let named = image.named("rig.local/y:2");
    assert_eq!((&named.manifest, named.name.as_str()), (&image.manifest, "rig.local/y:2"));
    let other = OciImage::build("rig.local/x:1", &[layer()], &ImageConfig::default()).unwrap();
    assert_ne!(other.manifest.digest, image.manifest.digest);
    assert_eq!(other.layers, image.layers);
}
