//! The node's own credentials for registries, where the Go kubelet looks for them.

use std::io;
use std::path::{Path, PathBuf};

use oarsman_host::files::{FileContents, read_regular};

use super::{CredentialError, failed};

/// The most bytes of a file of credentials.
const LIMIT: u64 = 1 << 20;

/// The first file there is: Docker's configuration, then its older form.
pub(super) fn read(root: &Path) -> Result<Option<String>, CredentialError> {
    for path in candidate_files(root) {
        match read_regular(&path, LIMIT) {
            Ok(FileContents::Bytes(bytes)) => {
                return String::from_utf8(bytes).map(Some).map_err(failed("read", &path));
            }
            Ok(FileContents::TooLong) => {
                return Err(failed("read", &path)(format!("it is longer than {LIMIT} bytes")));
            }
            Ok(FileContents::Other(kind)) => {
                return Err(failed("read", &path)(format!("it is {kind} and no regular file")));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("read", &path)(error)),
        }
    }
    Ok(None)
}

fn candidate_files(root: &Path) -> impl Iterator<Item = PathBuf> {
    // Without a home directory, what lies in the working directory is not asked.
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let in_home = |name: &str| home.as_ref().map(|home| home.join(name));
    let candidates = [
        Some(root.join("config.json")),
        in_home(".docker/config.json"),
        Some(PathBuf::from("/.docker/config.json")),
        Some(root.join(".dockercfg")),
        in_home(".dockercfg"),
        Some(PathBuf::from("/.dockercfg")),
    ];
    candidates.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row H18 of docs/security.md.
    #[test]
    fn a_pipe_or_a_file_without_end_is_refused_at_once() {
        let root = std::env::temp_dir().join(format!("oarsman-login-{}", std::process::id()));
        let file = root.join("config.json");
        std::fs::create_dir(&root).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        assert!(read(&root).unwrap_err().why.contains("device"));
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, vec![b' '; 2 << 20]).unwrap();
        assert!(read(&root).unwrap_err().why.contains("longer"));
        std::fs::write(&file, "{}").unwrap();
        assert_eq!(read(&root).unwrap().as_deref(), Some("{}"));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
