//! Blobs that arrive in pieces.

use std::fs::{self, File, FileTimes};
use std::time::{Duration, UNIX_EPOCH};

use crate::digest::Digest;
use crate::error::StoreError;
use crate::fixtures::store;
use crate::oci::Descriptor;
use crate::partial::{PARTIAL, PartialBlob, PartialOutcome};
use crate::store::ImageStore;

const CONTENT: &[u8] = b"the whole content";

fn blob() -> Descriptor {
    let text = serde_json::json!({ "digest": Digest::of(CONTENT), "size": CONTENT.len() });
    serde_json::from_value(text).unwrap()
}

fn partial(store: &ImageStore) -> PartialBlob {
    let lease = store.begin_lease().unwrap();
    match store.open_partial(&lease, &blob()).unwrap() {
        PartialOutcome::Partial(partial) => *partial,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_breaks_off_goes_on_where_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    for (end, piece) in CONTENT.chunks(5).enumerate() {
        let open = partial(&store);
        assert_eq!(open.offset(), 5 * end as u64);
        drop(open.append(&[piece]).unwrap());
        assert!(!store.has_blob(&blob().digest).unwrap(), "it is visible before its end");
    }
    partial(&store).finish().unwrap();
    assert_eq!(store.read_blob(&blob().digest, 100).unwrap(), CONTENT);
    let lease = store.begin_lease().unwrap();
    assert!(matches!(store.open_partial(&lease, &blob()).unwrap(), PartialOutcome::Whole));
    assert_eq!(fs::read_dir(store.directory().join(PARTIAL)).unwrap().count(), 0);
}

#[test]
fn bytes_that_are_wrong_too_many_or_missing_are_begun_anew() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let wrong = partial(&store).append(&[&[b'x'; CONTENT.len()]]).unwrap();
    assert!(matches!(wrong.finish(), Err(StoreError::Mismatch { .. })));
    assert_eq!(partial(&store).offset(), 0);
    let longer = partial(&store).append(&[CONTENT, b"!"]);
    assert!(matches!(longer, Err(StoreError::Image { .. })), "{longer:?}");
    assert_eq!(partial(&store).offset(), 0);
    let short = partial(&store).append(&[&CONTENT[..3]]).unwrap().finish();
    assert!(matches!(short, Err(StoreError::Image { .. })), "{short:?}");
    // A file of another time that is longer than the blob.
    fs::write(store.directory().join(PARTIAL).join(blob().digest.hex()), [b'x'; 100]).unwrap();
    assert_eq!(partial(&store).offset(), 0);
    assert!(!store.has_blob(&blob().digest).unwrap());
}

#[test]
fn one_writes_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let first = partial(&store);
    let lease = store.begin_lease().unwrap();
    assert!(matches!(store.open_partial(&lease, &blob()).unwrap(), PartialOutcome::Busy));
    first.append(&[CONTENT]).unwrap().finish().unwrap();
    assert!(matches!(store.open_partial(&lease, &blob()).unwrap(), PartialOutcome::Whole));
}

#[test]
fn parts_are_pruned_once_no_pull_goes_on_with_them() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    drop(partial(&store).append(&[b"the"]).unwrap());
    store.prune().unwrap();
    assert_eq!(partial(&store).offset(), 3, "the next attempt goes on with it");
    let path = store.directory().join(PARTIAL).join(blob().digest.hex());
    let old = UNIX_EPOCH + Duration::from_secs(4000);
    let file = File::options().write(true).open(&path).unwrap();
    file.set_times(FileTimes::new().set_modified(old)).unwrap();
    let lease = store.begin_lease().unwrap();
    drop(store.open_partial(&lease, &blob()).unwrap());
    store.prune().unwrap();
    assert!(path.exists(), "a pull needs it");
    drop(lease);
    store.prune().unwrap();
    assert!(!path.exists());
}
