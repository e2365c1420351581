//! Files of variables that a container wrote into a volume for the ones after it.

use std::io::{self, Read};
use std::path::Path;

use oarsman_core::cri_spec::EnvFile;
use oarsman_host::beneath::RootDirectory;

use crate::VolumeError;

/// As much as a ConfigMap may hold. The file is a container's: it may be anything.
const MAX_BYTES: u64 = 1024 * 1024;

/// Reads a file below a volume. No link is followed, and nothing but a regular file is opened.
pub(crate) fn read(volume: &Path, file: &EnvFile) -> Result<Option<String>, VolumeError> {
    match try_to_read(volume, Path::new(&file.path)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(VolumeError::System {
            volume: file.volume.clone(),
            doing: "read the variables in",
            path: volume.join(&file.path),
            source,
        }),
    }
}

fn try_to_read(volume: &Path, path: &Path) -> io::Result<String> {
    let file = RootDirectory::open(volume)?.open_file(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("it has more than {MAX_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_regular_text_of_a_bounded_size_in_the_volume() {
        let volume = tempfile::tempdir().unwrap();
        let at = |name: &str| volume.path().join(name);
        fs::create_dir(at("dir")).unwrap();
        fs::write(at("dir/env"), "A='a'").unwrap();
        fs::write(at("large"), vec![b'x'; 1024 * 1024 + 1]).unwrap();
        fs::write(at("bytes"), [0xff]).unwrap();
        symlink("/etc/passwd", at("link")).unwrap();
        symlink("/etc", at("way")).unwrap();
        let read = |path: &str| {
            let (volume_name, plugin) = ("data".to_owned(), String::new());
            let file = EnvFile { volume: volume_name, plugin, path: path.to_owned() };
            read(volume.path(), &file).map_err(|error| error.to_string())
        };
        assert_eq!(read("dir/env"), Ok(Some("A='a'".to_owned())));
        assert_eq!(read("none"), Ok(None));
        let rows = [
            ("large", "it has more than 1048576 bytes"),
            ("bytes", "it is not UTF-8 text"),
            ("link", "it is a symbolic link and no regular file"),
            ("way/passwd", "there is a symbolic link on the way to it"),
            ("dir", "it is a directory and no regular file"),
            ("../x", "Invalid argument (os error 22)"),
        ];
        for (path, why) in rows {
            let refused = read(path).unwrap_err();
            let begin = "volume \"data\": cannot read the variables in ";
            assert!(refused.starts_with(begin) && refused.ends_with(why), "{refused}");
        }
    }
}
