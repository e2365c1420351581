//! Pages on a real disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;

fn page_of(root: &Path, name: &str) -> PathBuf {
    root.join("oarsman-vault/pages").join(format!("{name}.sealed"))
}

#[tokio::test]
async fn checkpoints_survive_a_restart_until_removed() {
    let root = tempfile::tempdir().unwrap();
    let store = EncryptedCheckpoints::open(root.path()).unwrap();
    store.write("one", b"first".to_vec(), false).await.unwrap();
    store.write("one", b"second".to_vec(), true).await.unwrap();
    store.write("two", b"other".to_vec(), false).await.unwrap();
    let again = EncryptedCheckpoints::open(root.path()).unwrap();
    let kept = again.read_all().await.unwrap();
    assert_eq!(kept["one"], b"second");
    assert_eq!(kept["two"], b"other");
    again.remove("one").await.unwrap();
    again.remove("one").await.unwrap();
    assert_eq!(again.read_all().await.unwrap().len(), 1);
    EncryptedCheckpoints::destroy(root.path()).unwrap();
    EncryptedCheckpoints::destroy(root.path()).unwrap();
    assert!(EncryptedCheckpoints::open(root.path()).unwrap().read_all().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_checkpoint_cannot_be_read_without_the_key_or_under_another_name() {
    let root = tempfile::tempdir().unwrap();
    let store = EncryptedCheckpoints::open(root.path()).unwrap();
    store.write("one", b"the password".to_vec(), false).await.unwrap();
    let sealed = fs::read(page_of(root.path(), "one")).unwrap();
    assert!(!sealed.windows(8).any(|bytes| bytes == b"password"));
    for path in [page_of(root.path(), "one"), root.path().join("oarsman-vault/key")] {
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
async fn an_invalid_name_or_key_is_an_error_that_names_the_fix() {
    let root = tempfile::tempdir().unwrap();
    let store = EncryptedCheckpoints::open(root.path()).unwrap();
    assert!(store.write("../one", Vec::new(), false).await.is_err());
    fs::write(root.path().join("oarsman-vault/key"), "short").unwrap();
    let error = EncryptedCheckpoints::open(root.path()).unwrap_err().to_string();
    assert!(error.contains("oarsman-vault/key") && error.contains("remove it"), "{error}");
}
