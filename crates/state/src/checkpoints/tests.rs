//! Pages on a real disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;

fn page_of(root: &Path, name: &str) -> PathBuf {
    root.join("oarsman-vault/pages").join(format!("{name}.sealed"))
}

fn keys(root: &Path) -> CheckpointKeys {
    CheckpointKeys { credential: None, directory: root.join("keys") }
}

#[tokio::test]
async fn checkpoints_survive_a_restart_until_removed() {
    let root = tempfile::tempdir().unwrap();
    let store = EncryptedCheckpoints::open(root.path(), &keys(root.path())).unwrap();
    store.write("one", b"first".to_vec(), false).await.unwrap();
    store.write("one", b"second".to_vec(), true).await.unwrap();
    store.write("two", b"other".to_vec(), false).await.unwrap();
    let again = EncryptedCheckpoints::open(root.path(), &keys(root.path())).unwrap();
    let kept = again.read_all().await.unwrap();
    assert_eq!(kept["one"], b"second");
    assert_eq!(kept["two"], b"other");
    again.remove("one").await.unwrap();
    again.remove("one").await.unwrap();
    assert_eq!(again.read_all().await.unwrap().len(), 1);
    EncryptedCheckpoints::destroy(root.path(), &keys(root.path())).unwrap();
    EncryptedCheckpoints::destroy(root.path(), &keys(root.path())).unwrap();
    assert!(
        EncryptedCheckpoints::open(root.path(), &keys(root.path()))
            .unwrap()
            .read_all()
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_checkpoint_cannot_be_read_without_the_key_or_under_another_name() {
    let root = tempfile::tempdir().unwrap();
    let store = EncryptedCheckpoints::open(root.path(), &keys(root.path())).unwrap();
    store.write("one", b"the password".to_vec(), false).await.unwrap();
    let sealed = fs::read(page_of(root.path(), "one")).unwrap();
    assert!(!sealed.windows(8).any(|bytes| bytes == b"password"));
    for path in [page_of(root.path(), "one"), keys(root.path()).path(root.path())] {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{path:?}");
    }
    // A checkpoint under another name, a cut one and a changed one are left out; the rest is read.
    fs::write(page_of(root.path(), "renamed"), &sealed).unwrap();
    fs::write(page_of(root.path(), "cut"), &sealed[..5]).unwrap();
    let mut changed = sealed.clone();
    changed[20] ^= 1;
    fs::write(page_of(root.path(), "changed"), changed).unwrap();
    let kept = store.read_all().await.unwrap();
    assert_eq!(kept.keys().collect::<Vec<_>>(), ["one"]);
}

#[tokio::test]
async fn a_bad_name_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let store = EncryptedCheckpoints::open(root.path(), &keys(root.path())).unwrap();
    assert!(store.write("../one", Vec::new(), false).await.is_err());
}

#[tokio::test]
async fn the_key_is_apart_from_the_checkpoints_and_goes_with_them() {
    let (root, apart) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let keys = CheckpointKeys { credential: None, directory: apart.path().join("keys") };
    EncryptedCheckpoints::open(root.path(), &keys).unwrap();
    assert!(!root.path().join("oarsman-vault/key").exists());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&keys.directory), mode(&keys.path(root.path()))), (0o700, 0o600));
    let other = tempfile::tempdir().unwrap();
    assert_ne!(keys.path(root.path()), keys.path(other.path()), "each root has its own");
    EncryptedCheckpoints::destroy(root.path(), &keys).unwrap();
    assert_eq!(fs::read_dir(&keys.directory).unwrap().count(), 0);
}

#[tokio::test]
async fn the_key_of_an_older_version_is_moved_and_still_opens() {
    let root = tempfile::tempdir().unwrap();
    let keys = keys(root.path());
    let store = EncryptedCheckpoints::open(root.path(), &keys).unwrap();
    store.write("one", b"first".to_vec(), true).await.unwrap();
    let legacy = root.path().join("oarsman-vault/key");
    fs::rename(keys.path(root.path()), &legacy).unwrap();
    let store = EncryptedCheckpoints::open(root.path(), &keys).unwrap();
    assert_eq!(store.read_all().await.unwrap()["one"], b"first");
    assert!(!legacy.exists() && keys.path(root.path()).exists());
}

#[tokio::test]
async fn a_bad_key_is_set_aside_and_the_start_goes_on() {
    let root = tempfile::tempdir().unwrap();
    let keys = keys(root.path());
    fs::create_dir_all(&keys.directory).unwrap();
    fs::create_dir_all(root.path().join("oarsman-vault")).unwrap();
    let legacy = root.path().join("oarsman-vault/key");
    for bad in [legacy, keys.path(root.path())] {
        fs::write(&bad, "short").unwrap();
        let store = EncryptedCheckpoints::open(root.path(), &keys).unwrap();
        store.write("one", b"first".to_vec(), true).await.unwrap();
        assert_eq!(fs::read(format!("{}.bad", bad.display())).unwrap(), b"short");
        fs::remove_file(keys.path(root.path())).unwrap();
    }
}

#[tokio::test]
async fn a_credential_of_the_service_manager_is_preferred_and_older_checkpoints_still_open() {
    let root = tempfile::tempdir().unwrap();
    let files = keys(root.path());
    let store = EncryptedCheckpoints::open(root.path(), &files).unwrap();
    store.write("one", b"first".to_vec(), true).await.unwrap();
    let credential = root.path().join("credential");
    let keys = CheckpointKeys { credential: Some(credential.clone()), ..files.clone() };
    for bad in [None, Some("short")] {
        bad.iter().for_each(|text| fs::write(&credential, text).unwrap());
        let store = EncryptedCheckpoints::open(root.path(), &keys).unwrap();
        assert_eq!(store.read_all().await.unwrap().len(), 1, "the file's key is used");
    }
    fs::write(&credential, [7; 32]).unwrap();
    let store = EncryptedCheckpoints::open(root.path(), &keys).unwrap();
    store.write("two", b"second".to_vec(), true).await.unwrap();
    assert_eq!(store.read_all().await.unwrap().len(), 2);
    let without = EncryptedCheckpoints::open(root.path(), &files).unwrap();
    assert_eq!(without.read_all().await.unwrap().keys().collect::<Vec<_>>(), ["one"]);
}

#[tokio::test]
async fn a_directory_for_keys_that_cannot_be_made_does_not_stop_the_start() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("file"), "").unwrap();
    let keys = CheckpointKeys { credential: None, directory: root.path().join("file/keys") };
    let store = EncryptedCheckpoints::open(root.path(), &keys).unwrap();
    store.write("one", b"first".to_vec(), true).await.unwrap();
    let again = EncryptedCheckpoints::open(root.path(), &keys).unwrap();
    assert_eq!(again.read_all().await.unwrap().len(), 1);
}

/// Row H15 of docs/security.md.
#[tokio::test]
async fn a_key_that_cannot_be_read_is_not_replaced() {
    let root = tempfile::tempdir().unwrap();
    let keys = keys(root.path());
    let unreadable = keys.path(root.path());
    // Reading a directory as a file fails for root, too.
    fs::create_dir_all(&unreadable).unwrap();
    assert!(EncryptedCheckpoints::open(root.path(), &keys).is_err());
    assert!(unreadable.is_dir() && !root.path().join("oarsman-vault/key").exists());
    fs::remove_dir(&unreadable).unwrap();
    for text in ["first", "second"] {
        fs::write(&unreadable, text).unwrap();
        assert_eq!(EncryptedCheckpoints::open(root.path(), &keys).is_ok(), text == "first");
    }
    assert_eq!(fs::read(format!("{}.bad", unreadable.display())).unwrap(), b"first");
}

/// Row H25 of docs/security.md.
#[tokio::test]
async fn a_write_that_was_cut_off_leaves_nothing_behind() {
    let root = tempfile::tempdir().unwrap();
    let keys = keys(root.path());
    let store = EncryptedCheckpoints::open(root.path(), &keys).unwrap();
    let left = page_of(root.path(), "one").with_extension("sealed.new");
    // A directory in the place of the checkpoint refuses the rename.
    fs::create_dir_all(page_of(root.path(), "one").join("in the way")).unwrap();
    assert!(store.write("one", b"first".to_vec(), false).await.is_err());
    assert!(!left.exists());
    fs::write(&left, "cut off").unwrap();
    EncryptedCheckpoints::open(root.path(), &keys).unwrap();
    assert!(!left.exists());
}

/// Row H16 of docs/security.md.
#[tokio::test]
async fn a_key_beside_the_checkpoints_goes_once_they_are_sealed_with_another() {
    let root = tempfile::tempdir().unwrap();
    let (files, legacy) = (keys(root.path()), root.path().join("oarsman-vault/key"));
    let credential = root.path().join("credential");
    fs::write(&credential, [7; 32]).unwrap();
    let with_credential = CheckpointKeys { credential: Some(credential), ..files.clone() };
    // With a credential; and after a start without it, on which the directory of keys could not be used.
    for (key, keys) in [([1; 32], &with_credential), ([2; 32], &files)] {
        fs::create_dir_all(legacy.parent().unwrap()).unwrap();
        fs::write(&legacy, key).unwrap();
        let unusable = CheckpointKeys { credential: None, directory: legacy.join("no directory") };
        let store = EncryptedCheckpoints::open(root.path(), &unusable).unwrap();
        store.write("one", b"first".to_vec(), true).await.unwrap();
        fs::create_dir_all(&files.directory).unwrap();
        fs::write(files.path(root.path()), [3; 32]).unwrap();
        for _ in 0..2 {
            let store = EncryptedCheckpoints::open(root.path(), keys).unwrap();
            assert_eq!(store.read_all().await.unwrap()["one"], b"first");
            assert!(!legacy.exists());
        }
    }
    // Written to its new place, and not yet removed from the old one.
    fs::copy(files.path(root.path()), &legacy).unwrap();
    let store = EncryptedCheckpoints::open(root.path(), &files).unwrap();
    assert_eq!(store.read_all().await.unwrap()["one"], b"first");
    assert!(!legacy.exists());
}
