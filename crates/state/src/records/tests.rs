//! Records on a real directory.

use std::os::unix::fs::PermissionsExt;

use super::*;

#[tokio::test]
async fn a_record_survives_a_restart_and_a_broken_one_is_set_aside() {
    let root = tempfile::tempdir().unwrap();
    let (records, a) = (StatusFiles::open(root.path()).unwrap(), PodUid::from("a"));
    assert_eq!(records.read_status(&a).await.unwrap(), None);
    for (phase, lasting) in [("Running", false), ("Succeeded", true)] {
        let status = PodStatus { phase: Some(phase.to_owned()), ..PodStatus::default() };
        records.write_status(&a, &status, lasting).await.unwrap();
        let again = StatusFiles::open(root.path()).unwrap();
        assert_eq!(again.read_status(&a).await.unwrap(), Some(status));
    }
    assert_eq!(records.pods().await.unwrap(), BTreeSet::from([a.clone()]));
    let record = root.path().join("oarsman-statuses/a.json");
    assert_eq!(fs::metadata(&record).unwrap().permissions().mode() & 0o7777, 0o600);
    fs::write(&record, "{\"phase\":").unwrap();
    assert_eq!(records.read_status(&a).await.unwrap(), None);
    assert!(record.with_extension("broken").exists() && !record.exists());
    for _ in 0..2 {
        records.remove(&a).await.unwrap();
    }
    assert_eq!(fs::read_dir(root.path().join("oarsman-statuses")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_uid_that_leads_elsewhere_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let records = StatusFiles::open(root.path()).unwrap();
    for bad in ["..", "../../etc", "a/b", ""] {
        let refused = records.remove(&PodUid::from(bad)).await.unwrap_err();
        assert!(refused.to_string().contains("metadata.uid"), "{bad:?}: {refused}");
    }
}

/// A directory stands for a file that cannot be removed, as on a disk that became read-only during a write.
#[tokio::test]
async fn an_unfinished_record_that_cannot_be_removed_does_not_stop_the_start() {
    let root = tempfile::tempdir().unwrap();
    let left = root.path().join("oarsman-statuses/a.json.new");
    fs::create_dir_all(&left).unwrap();
    let records = StatusFiles::open(root.path()).unwrap();
    assert!(left.exists());
    assert_eq!(records.pods().await.unwrap(), BTreeSet::new());
}
