//! Images in all their packings.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use serde_json::json;

use super::{BlobSource, ImportOptions, ImportProgress, ImportedImage, ManifestContent};
use crate::digest::Digest;
use crate::error::StoreError;
use crate::fixtures::{
    TarWriter, TestImage, descriptor, gzip, layout, layout_archive, store, write_layout, zstd,
};
use crate::oci::{Descriptor, Platform};
use crate::store::ImageStore;

fn layers() -> [Vec<u8>; 2] {
    [
        TarWriter::default().directory("etc").file("etc/a", b"1").file("etc/b", b"2").end(),
        TarWriter::default().file("etc/.wh.b", b"").file("etc/c", b"3").end(),
    ]
}

fn image() -> TestImage {
    let [a, b] = layers();
    TestImage::new(&[(a.clone(), gzip(&a)), (b.clone(), zstd(&b))])
}

fn named(name: &str) -> ImportOptions {
    ImportOptions { name: Some(name.to_owned()), ..ImportOptions::default() }
}

fn import(
    store: &ImageStore,
    archive: &[u8],
    options: &ImportOptions,
) -> Result<Vec<ImportedImage>, StoreError> {
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, archive).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    store.import_archive(file, "test.tar", options, &mut |_| {})
}

fn is_empty(store: &ImageStore) -> bool {
    let count = |path: &str| fs::read_dir(store.directory().join(path)).unwrap().count();
    store.prune().unwrap();
    store.images().unwrap().is_empty()
        && ["layers", "content/blobs/sha256", "leases"].iter().all(|path| count(path) == 0)
}

#[test]
fn every_packing_gives_the_same_image() {
    let image = image();
    let files = layout(&[(&image, Some("reg.io/team/app:v1"))]);
    let docker = image.docker(&["reg.io/team/app:v1"]);
    let archives = [
        ("layout", layout_archive(&files)),
        ("layout, gzip", gzip(&layout_archive(&files))),
        ("docker", docker.clone()),
        ("docker, zstd", zstd(&docker)),
    ];
    for (case, archive) in archives {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let imported = import(&store, &archive, &ImportOptions::default()).expect(case);
        assert_eq!(imported[0].id, image.id(), "{case}");
        check_image(&store, &image, case);
    }
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    write_layout(&directory.path().join("layout"), &files);
    let mut progress = Vec::new();
    let mut on_progress = |it: ImportProgress<'_>| {
        if !matches!(it, ImportProgress::Reading { .. }) {
            progress.push(format!("{it:?}"));
        }
    };
    let path = directory.path().join("layout");
    store.import_layout(&path, &ImportOptions::default(), &mut on_progress).unwrap();
    store.import_layout(&path, &ImportOptions::default(), &mut on_progress).unwrap();
    check_image(&store, &image, "directory");
    let progress = progress.join(" ");
    assert!(progress.contains("Unpacked { layer: 2 }"), "{progress}");
    assert!(progress.contains("Present { layer: 2 }"), "{progress}");
    // The same image from another packing: its manifest stays, and so does its size.
    let before = store.image("reg.io/team/app:v1").unwrap();
    import(&store, &docker, &ImportOptions::default()).unwrap();
    store.prune().unwrap();
    assert!(store.has_blob(&image.root().digest).unwrap());
    let after = store.image("reg.io/team/app:v1").unwrap();
    assert_eq!(after.layers, before.layers);
    let digest = format!("reg.io/team/app@{}", image.root().digest);
    assert_eq!(store.image(&digest).unwrap().digests, [digest]);
}

fn check_image(store: &ImageStore, image: &TestImage, case: &str) {
    let found = store.image("reg.io/team/app:v1").expect(case);
    assert_eq!(found.id, image.id(), "{case}");
    assert_eq!(found.tags, ["reg.io/team/app:v1"], "{case}");
    assert_eq!((found.config.user.as_str(), found.config.stop_signal.as_str()), ("7:8", "SIGQUIT"));
    assert_eq!(found.config.entrypoint, ["/run"]);
    assert!(found.size > 0 && found.layers.len() == 2, "{case}");
    let top = store.layers.files(&found.layers[1].chain_id);
    assert_eq!(fs::read(top.join("etc/c")).unwrap(), b"3", "{case}");
    assert_eq!(fs::read_dir(store.directory().join("leases")).unwrap().count(), 0, "{case}");
}

#[test]
fn a_pipe_can_be_imported() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let archive = gzip(&image().docker(&["a/b"]));
    let (read, mut write) = std::io::pipe().unwrap();
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut write, &archive));
    let file = File::from(std::os::fd::OwnedFd::from(read));
    store.import_archive(file, "stdin", &ImportOptions::default(), &mut |_| {}).unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(store.image("a/b").unwrap().tags, ["docker.io/a/b:latest"]);
}

#[test]
fn names_come_from_the_archive_or_from_the_caller() {
    let image = image();
    let import_with = |text: Option<&str>, options: &ImportOptions| {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let archive = layout_archive(&layout(&[(&image, text)]));
        import(&store, &archive, options).unwrap();
        store.image(&image.id().to_string()).unwrap().tags
    };
    let default = ImportOptions::default();
    assert_eq!(import_with(None, &default), Vec::<String>::new());
    assert_eq!(import_with(Some("v1"), &default), Vec::<String>::new());
    assert_eq!(import_with(Some("busybox:v1"), &default), ["docker.io/library/busybox:v1"]);
    assert_eq!(import_with(Some("v1"), &named("x")), ["docker.io/library/x:latest"]);
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let [a, _] = layers();
    let other = TestImage::plain(&[a]);
    let archive = layout_archive(&layout(&[(&image, Some("v1")), (&other, Some("v2"))]));
    import(&store, &archive, &named("r.io/x")).unwrap();
    assert_eq!(store.image("r.io/x:v1").unwrap().id, image.id());
    assert_eq!(store.image("r.io/x:v2").unwrap().id, other.id());
    let error = import(&store, &archive, &named("Not A Name")).unwrap_err();
    assert!(matches!(error, StoreError::Name(_)), "{error}");
}

#[test]
fn wrong_bytes_are_refused_and_leave_nothing() {
    let image = image();
    let whole = layout(&[(&image, Some("a:1"))]);
    for changed in 1..whole.len() - 1 {
        let mut files = whole.clone();
        let last = files[changed].1.len() - 1;
        files[changed].1[last] ^= 1;
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let error = import(&store, &layout_archive(&files), &ImportOptions::default()).unwrap_err();
        assert!(is_empty(&store), "{}: {error}", files[changed].0);
        files.remove(changed);
        let error = import(&store, &layout_archive(&files), &ImportOptions::default()).unwrap_err();
        assert!(error.to_string().contains("there is no file"), "{error}");
        assert!(is_empty(&store), "{error}");
    }
}

#[test]
fn diff_ids_are_checked() {
    let [a, b] = layers();
    // The manifest is right about the blob, and the configuration lies about what is in it.
    let image = TestImage::new(&[(a, gzip(&b))]);
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    for archive in [layout_archive(&layout(&[(&image, Some("a:1"))])), image.docker(&["a:1"])] {
        let error = import(&store, &archive, &ImportOptions::default()).unwrap_err();
        assert!(matches!(error, StoreError::Mismatch { .. }), "{error}");
        assert!(error.to_string().contains("uncompressed layer"), "{error}");
        assert!(is_empty(&store), "{error}");
    }
}

#[test]
fn errors_of_layers_name_image_layer_entry_and_reason() {
    let bad = TarWriter::default().file("../../evil", b"").end();
    let image = TestImage::plain(std::slice::from_ref(&bad));
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let error = import(&store, &image.docker(&["bad:1"]), &ImportOptions::default()).unwrap_err();
    let text = error.to_string();
    for part in ["bad:1", &Digest::of(&bad).to_string(), "../../evil", "lead out of the image"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(is_empty(&store));
}

#[test]
fn the_image_for_this_machine_is_taken_from_an_index() {
    let [a, b] = layers();
    let other = Platform { architecture: "s390x".to_owned(), ..Platform::host() };
    let (here, there) = (TestImage::plain(&[a]), TestImage::on(&other, &[(b.clone(), b)]));
    let index = json!({ "schemaVersion": 2, "manifests": [there.root(), here.root()] });
    let index = index.to_string().into_bytes();
    let mut both = TestImage { root: Some(descriptor("", &index)), ..here.clone() };
    both.blobs.extend(there.blobs.clone());
    both.blobs.push(index.clone());
    let archive = layout_archive(&layout(&[(&both, Some("multi:1"))]));
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    import(&store, &archive, &ImportOptions::default()).unwrap();
    let found = store.image("multi:1").unwrap();
    assert_eq!(found.id, here.id());
    let digest = format!("docker.io/library/multi@{}", Digest::of(&index));
    assert_eq!(found.digests, [digest]);
    let options = ImportOptions { platform: other, ..ImportOptions::default() };
    import(&store, &archive, &options).unwrap();
    assert_eq!(store.image("multi:1").unwrap().id, there.id());
    let mips = Platform { architecture: "mips".to_owned(), ..Platform::host() };
    let options = ImportOptions { platform: mips, ..ImportOptions::default() };
    let error = import(&store, &archive, &options).unwrap_err();
    assert!(error.to_string().contains("only for linux/s390x"), "{error}");
    let error = import(&store, &here.docker(&["a:1"]), &options).unwrap_err();
    assert!(error.to_string().contains("linux/mips"), "{error}");
}

#[test]
fn what_is_an_index_and_a_manifest_at_once_is_refused() {
    let image = image();
    let (root, index) = (image.root(), json!({ "manifests": [image.root()] }));
    let manifest: serde_json::Value = serde_json::from_slice(image.blobs.last().unwrap()).unwrap();
    for half in ["config", "layers"] {
        let mut both = index.clone();
        both[half] = manifest[half].clone();
        let error = ManifestContent::parse(both.to_string().as_bytes(), &Platform::host());
        assert_eq!(error, Err("it is an index and a manifest at once".to_owned()), "{half}");
    }
    let plain = ManifestContent::parse(index.to_string().as_bytes(), &Platform::host());
    assert_eq!(plain, Ok(ManifestContent::Index(root)));
}

#[test]
fn hostile_documents_are_refused() {
    let image = image();
    let config = image.root();
    let nested = |depth: usize| {
        let mut blobs = image.blobs.clone();
        let mut root = config.clone();
        for _ in 0..depth {
            let index = json!({ "manifests": [root] }).to_string().into_bytes();
            root = descriptor("", &index);
            blobs.push(index);
        }
        TestImage { blobs, root: Some(root), ..image.clone() }
    };
    let manifest = |value: serde_json::Value| {
        let bytes = value.to_string().into_bytes();
        let root = Some(descriptor("", &bytes));
        TestImage { blobs: vec![bytes], root, ..TestImage::default() }
    };
    let many: Vec<Descriptor> = (0..501).map(|_| image.root()).collect();
    let rows = [
        ("nested", nested(4), "nested too deep"),
        ("schema 1", manifest(json!({ "schemaVersion": 1 })), "schema 1"),
        ("neither", manifest(json!({ "schemaVersion": 2 })), "neither a manifest nor"),
        ("layers", manifest(json!({ "config": image.root(), "layers": many })), "501 layers"),
        ("empty index", manifest(json!({ "manifests": [] })), "has no image for"),
        ("size", manifest(json!({ "config": { "digest": "sha256:x", "size": 1 } })), "no digest"),
        (
            "negative",
            manifest(json!({ "config": { "digest": image.id(), "size": -1 } })),
            "invalid",
        ),
    ];
    for (case, image, wanted) in rows {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let archive = layout_archive(&layout(&[(&image, Some("a:1"))]));
        let error = import(&store, &archive, &ImportOptions::default()).expect_err(case);
        assert!(error.to_string().contains(wanted), "{case}: {error}");
        assert!(is_empty(&store), "{case}");
    }
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let archive = layout_archive(&layout(&[(&nested(3), Some("a:1"))]));
    import(&store, &archive, &ImportOptions::default()).unwrap();
}

/// A registry client's way: blobs one by one.
struct Blobs(BTreeMap<Digest, Vec<u8>>);

impl BlobSource for Blobs {
    fn open_blob(&mut self, blob: &Descriptor) -> std::io::Result<Box<dyn Read + '_>> {
        let bytes = self.0.get(&blob.digest).ok_or(std::io::ErrorKind::NotFound)?;
        Ok(Box::new(bytes.as_slice()))
    }
}

#[test]
fn blobs_come_from_any_source() {
    let image = image();
    let blobs = image.blobs.iter().map(|it| (Digest::of(it), it.clone())).collect();
    let directory = tempfile::tempdir().unwrap();
    let direct = store(&directory.path().join("a"));
    let names = ["r.io/a:1".to_owned(), "r.io/b:2".to_owned()];
    let platform = Platform::host();
    let root = image.root();
    direct.add_image(&mut Blobs(blobs), &root, &names, &platform, &mut |_| {}).unwrap();
    assert_eq!(direct.image("r.io/a:1").unwrap().tags, names);
    let stored = store(&directory.path().join("b"));
    let lease = stored.begin_lease().unwrap();
    for blob in &image.blobs {
        stored.add_blob(&lease, &descriptor("", blob), blob.as_slice()).unwrap();
        stored.prune().unwrap();
        assert!(stored.has_blob(&Digest::of(blob)).unwrap(), "a lease holds it");
    }
    stored.add_image(&mut &stored.clone(), &root, &names, &platform, &mut |_| {}).unwrap();
    drop(lease);
    // The blobs of layers are not needed once they are unpacked.
    assert_eq!(stored.prune().unwrap().blobs, 2);
    assert!(stored.has_blob(&image.id()).unwrap());
    assert_eq!(stored.read_blob(&image.id(), 1 << 20).unwrap(), image.config);
    let wrong = descriptor("", b"right");
    for bytes in [b"wrong".as_slice(), b"righ", b"right and more"] {
        let lease = stored.begin_lease().unwrap();
        stored.add_blob(&lease, &wrong, bytes).unwrap_err();
        assert!(!stored.has_blob(&wrong.digest).unwrap());
    }
}

#[test]
fn old_archives_of_docker_link_shared_layers() {
    let [a, _] = layers();
    let image = TestImage::plain(&[a.clone(), a.clone()]);
    let config = format!("{}.json", image.id().hex());
    let manifest =
        json!([{ "Config": config, "RepoTags": null, "Layers": ["x/layer.tar", "y/layer.tar"] }]);
    let archive = TarWriter::default()
        .file(&config, &image.config)
        .directory("x")
        .file("x/layer.tar", &a)
        .symlink("y/layer.tar", "../x/layer.tar")
        .file("manifest.json", manifest.to_string().as_bytes())
        .end();
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    import(&store, &archive, &ImportOptions::default()).unwrap();
    assert_eq!(store.image(&image.id().to_string()).unwrap().layers.len(), 2);
    let error = import(&store, &TarWriter::default().end(), &ImportOptions::default()).unwrap_err();
    assert!(error.to_string().contains("docker save"), "{error}");
    let error = store.import_layout(Path::new("/nowhere"), &named("x"), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("/nowhere"), "{error}");
}
