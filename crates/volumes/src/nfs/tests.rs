//! Calls of mount(2) as the kernel would get them: not every kernel has the file system.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeSpec, Pod, Volume};

use super::*;

/// Records calls; refuses those of the first versions.
#[derive(Default)]
struct RecordedNfs {
    calls: Arc<Mutex<Vec<String>>>,
    refused: Mutex<Vec<Errno>>,
}

impl NfsClient for RecordedNfs {
    fn address(&self, server: &str) -> io::Result<IpAddr> {
        match server {
            "nowhere" => Err(io::ErrorKind::NotFound.into()),
            "2001:db8::7" => Ok(server.parse().map_err(io::Error::other)?),
            _ => Ok(IpAddr::from([192, 0, 2, 7])),
        }
    }

    fn mount(&self, call: &NfsMount<'_>) -> io::Result<()> {
        let NfsMount { source, flags, data, .. } = call;
        self.calls.lock().unwrap().push(format!("{source} {flags:?} {data}"));
        match self.refused.lock().unwrap().pop() {
            Some(errno) => Err(errno.into()),
            None => Ok(()),
        }
    }
}

fn source(server: &str, read_only: bool) -> NFSVolumeSource {
    let (path, server) = ("/exports/a".to_owned(), server.to_owned());
    NFSVolumeSource { path, server, read_only: Some(read_only) }
}

/// A claim of a volume with these mount options.
fn claimed(options: &[&str], read_only: bool) -> ClaimedVolume {
    let spec = PersistentVolumeSpec {
        nfs: Some(source("files", false)),
        mount_options: Some(options.iter().map(|&option| option.to_owned()).collect()),
        ..PersistentVolumeSpec::default()
    };
    let volume = PersistentVolume { spec: Some(spec), ..PersistentVolume::default() };
    ClaimedVolume { volume: volume.into(), plugin: PersistentVolumePlugin::Nfs, read_only }
}

/// Sets a volume up; the calls that were made, and how it ended.
fn set_up(
    inline: Option<NFSVolumeSource>,
    claimed: Option<&ClaimedVolume>,
    refused: &[Errno],
) -> (Vec<String>, Result<(), String>) {
    let root = tempfile::tempdir().unwrap();
    let recorded = RecordedNfs::default();
    *recorded.refused.lock().unwrap() = refused.iter().rev().copied().collect();
    let calls = Arc::clone(&recorded.calls);
    let volume = Volume { name: "files".to_owned(), nfs: inline, ..Volume::default() };
    let mount = VolumeToSetUp {
        pod: &Pod::default(),
        volume: &volume,
        payload: None,
        claimed,
        path: root.path().join("files"),
        now: jiff::Timestamp::UNIX_EPOCH,
        allocatable_memory: None,
    };
    let ended = NfsPlugin(Box::new(recorded)).set_up(&mount);
    let calls = calls.lock().unwrap().clone();
    (calls, ended.map_err(|error| error.to_string()))
}

#[test]
fn a_directory_of_a_server_is_mounted_with_the_options_of_its_volume() {
    let rows = [
        (
            Some(source("files", false)),
            None,
            "files:/exports/a MountFlags(0x0) vers=4.2,addr=192.0.2.7",
        ),
        (
            Some(source("files", true)),
            None,
            "files:/exports/a MountFlags(RDONLY) vers=4.2,addr=192.0.2.7",
        ),
        (
            Some(source("2001:db8::7", false)),
            None,
            "[2001:db8::7]:/exports/a MountFlags(0x0) vers=4.2,addr=2001:db8::7",
        ),
        (
            None,
            Some(claimed(&["vers=4.1", "hard"], true)),
            "files:/exports/a MountFlags(RDONLY) vers=4.1,addr=192.0.2.7,hard",
        ),
    ];
    for (inline, claimed, expected) in rows {
        let (calls, ended) = set_up(inline, claimed.as_ref(), &[]);
        assert_eq!((calls, ended), (vec![expected.to_owned()], Ok(())));
    }
}

#[test]
fn older_versions_are_tried_when_newer_ones_are_not_spoken() {
    let versions = |calls: &[String]| -> Vec<String> {
        let version =
            |call: &String| call.split("vers=").nth(1)?.split(',').next().map(str::to_owned);
        calls.iter().filter_map(version).collect()
    };
    let rows: [(&[Errno], &[&str], bool); 4] = [
        (&[Errno::PROTONOSUPPORT], &["4.2", "4.1"], true),
        (
            &[Errno::INVAL, Errno::PROTONOSUPPORT, Errno::PROTONOSUPPORT],
            &["4.2", "4.1", "4.0", "3"],
            true,
        ),
        (&[Errno::PROTONOSUPPORT; 4], &["4.2", "4.1", "4.0", "3"], false),
        (&[Errno::ACCESS], &["4.2"], false),
    ];
    for (refused, tried, is_mounted) in rows {
        let (calls, ended) = set_up(Some(source("files", false)), None, refused);
        assert_eq!(
            (versions(&calls), ended.is_ok()),
            (tried.iter().map(|&v| v.to_owned()).collect(), is_mounted)
        );
    }
    let (calls, ended) = set_up(None, Some(&claimed(&["vers=3"], false)), &[Errno::PROTONOSUPPORT]);
    assert!(calls.len() == 1 && ended.is_err(), "only the one that was asked for: {calls:?}");
}

#[test]
fn what_cannot_be_mounted_is_said() {
    let (calls, ended) = set_up(Some(source("nowhere", false)), None, &[]);
    let said = ended.unwrap_err();
    assert!(
        calls.is_empty() && said.contains("the address of the nfs server \"nowhere\""),
        "{said}"
    );
    let (calls, ended) = set_up(None, Some(&claimed(&["hard", "remount"], false)), &[]);
    let said = ended.unwrap_err();
    assert!(calls.is_empty() && said.contains("\"remount\" is not a mount option"), "{said}");
    let (_, ended) = set_up(Some(source("files", false)), None, &[Errno::NODEV]);
    let said = ended.unwrap_err();
    assert!(said.contains("volume \"files\": cannot mount files:/exports/a"), "{said}");
}
