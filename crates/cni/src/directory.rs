//! The directory of network configurations. All of this blocks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use oarsman_host::files::{FileContents, read_regular};

use crate::error::CniError;
use crate::network::{
    CniNetwork, CniPlugin, ConfigurationError, MAX_BYTES, ParsedFile, parse_list,
};

const LIST: &str = "conflist";
const SINGLE: [&str; 2] = ["conf", "json"];
/// Those of the plugins in the directory of a network.
const PLUGIN: &str = "conf";

/// The first network of a directory, in the order of its files' names, as containerd takes it; none when there is no directory or no
/// configuration in it. A first file that is wrong is an error, and not a reason to take the second: pods would be connected to another
/// network than the administrator meant.
pub(crate) fn first_network(directory: &Path) -> Result<Option<CniNetwork>, CniError> {
    let is_configuration = |extension: &str| extension == LIST || SINGLE.contains(&extension);
    let Some(path) = files(directory, is_configuration)?.into_iter().next() else {
        return Ok(None);
    };
    let text = read(&path)?;
    let wrong = |source| CniError::Configuration { path: path.clone(), source };
    if !path.extension().is_some_and(|extension| extension == LIST) {
        return CniNetwork::parse_single(&text).map_err(wrong).map(Some);
    }
    let network = match parse_list(&text).map_err(wrong)? {
        ParsedFile::Whole(network) => network,
        ParsedFile::WithDirectory(network) => with_plugins_of_directory(directory, network)?,
    };
    network.require_plugins().map_err(wrong).map(Some)
}

/// Plugins may add themselves to a network by files in the directory of its name.
fn with_plugins_of_directory(
    directory: &Path,
    mut network: CniNetwork,
) -> Result<CniNetwork, CniError> {
    for path in files(&directory.join(&network.name), |extension| extension == PLUGIN)? {
        let parsed = CniPlugin::parse(&read(&path)?);
        network.plugins.push(parsed.map_err(|source| CniError::Configuration { path, source })?);
    }
    Ok(network)
}

/// The files with such endings, in the order of their names; none when there is no directory.
fn files(directory: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, CniError> {
    let list = || -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let path = entry.path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            // A link to a directory is refused when it is read.
            if extension.is_some_and(&wanted) && !entry.file_type()?.is_dir() {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    };
    match list() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(unreadable(directory)),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CniError> {
    match read_regular(path, MAX_BYTES) {
        Ok(FileContents::Bytes(bytes)) => Ok(bytes),
        Ok(FileContents::TooLong) => {
            let source = ConfigurationError::Syntax(format!("it is longer than {MAX_BYTES} bytes"));
            Err(CniError::Configuration { path: path.to_owned(), source })
        }
        Ok(FileContents::Other(kind)) => {
            Err(unreadable(path)(io::Error::other(format!("it is {kind}"))))
        }
        Err(error) => Err(unreadable(path)(error)),
    }
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> CniError {
    let path = path.to_owned();
    move |source| CniError::Unreadable { path, source }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;

    const LIST_OF_A: &str =
        r#"{ "cniVersion": "1.0.0", "name": "a", "plugins": [{ "type": "one" }] }"#;
    const SINGLE_B: &str = r#"{ "cniVersion": "1.0.0", "name": "b", "type": "two" }"#;

    fn first(directory: &Path) -> String {
        match first_network(directory) {
            Ok(None) => "none".to_owned(),
            Ok(Some(network)) => {
                let plugins: Vec<&str> = network.plugin_types().collect();
                format!("{} {}", network.name(), plugins.join(","))
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_first_file_by_name_is_the_network() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(place.path().join(name), text).unwrap();
        assert_eq!(first(&place.path().join("absent")), "none");
        write("readme.txt", "not a network");
        write("00.conflist.bak", "{");
        fs::create_dir(place.path().join("00-directory.conf")).unwrap();
        assert_eq!(first(place.path()), "none");
        write("20.conf", SINGLE_B);
        assert_eq!(first(place.path()), "b two");
        write("10.conflist", LIST_OF_A);
        assert_eq!(first(place.path()), "a one");
        write("05.json", SINGLE_B);
        assert_eq!(first(place.path()), "b two");
    }

    #[test]
    fn a_first_file_that_is_wrong_is_an_error_that_names_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("10.conflist");
        fs::write(place.path().join("20.conf"), SINGLE_B).unwrap();
        let rows = [("{", "no JSON object"), (SINGLE_B, "it has 0 plugins"), ("[]", "no JSON")];
        for (text, wanted) in rows {
            fs::write(&path, text).unwrap();
            let error = first(place.path());
            assert!(error.contains(&path.display().to_string()), "{error}");
            assert!(error.contains(wanted), "{text}: {error}");
        }
        fs::write(&path, " ".repeat((1 << 20) + 1)).unwrap();
        assert!(first(place.path()).contains("longer than 1048576 bytes"));
        fs::remove_file(&path).unwrap();
        mkfifoat(CWD, &path, Mode::RUSR).unwrap();
        assert!(first(place.path()).contains("it is a pipe"));
    }

    #[test]
    fn plugins_add_themselves_by_files_in_the_directory_of_the_network() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("a")).unwrap();
        let own = |name: &str, text: &str| fs::write(place.path().join("a").join(name), text);
        own("20.conf", r#"{ "type": "three" }"#).unwrap();
        own("10.conf", r#"{ "type": "two" }"#).unwrap();
        own("15.json", r#"{ "type": "not-read" }"#).unwrap();
        let list = place.path().join("10.conflist");
        fs::write(&list, LIST_OF_A).unwrap();
        assert_eq!(first(place.path()), "a one,two,three");
        fs::write(&list, r#"{ "cniVersion": "1.0.0", "name": "a" }"#).unwrap();
        assert_eq!(first(place.path()), "a two,three");
        let whole = LIST_OF_A.replace("\"name\"", "\"loadOnlyInlinedPlugins\": true, \"name\"");
        fs::write(&list, whole).unwrap();
        assert_eq!(first(place.path()), "a one");
        fs::write(&list, LIST_OF_A).unwrap();
        own("30.conf", "{}").unwrap();
        assert!(first(place.path()).contains("30.conf"));
    }
}
