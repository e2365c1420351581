//! Variables that an init container wrote into a file.
//!
//! The form is strict: `NAME='value'` a line, everything between the quotes counts, lines breaks too. Blanks before the
//! name, empty lines and comments do not; blanks after the `=` leave the variable empty, as in a shell.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, FileKeySelector, Pod, Volume};

use super::lookup::Lookup;
use crate::cri_spec::error::{ConfigError, VariableError};
use crate::cri_spec::paths::volume_plugin;
use crate::pod::PodExt;

/// A file of variables in a volume of the pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EnvFile {
    /// The name of the volume in the pod.
    pub volume: String,
    /// The plugin that the volume is of.
    pub plugin: String,
    /// The file, below the volume.
    pub path: String,
}

/// The files that variables of a container stand in, each once. Only an emptyDir holds such files: another volume is none that the pod's
/// own containers have made.
pub fn env_files(pod: &Pod, spec: &Container) -> BTreeSet<EnvFile> {
    let volumes = pod.spec().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    let named = |wanted: &FileKeySelector| {
        let is_it = |volume: &&Volume| volume.name == wanted.volume_name;
        let volume = volumes.iter().find(is_it).filter(|volume| volume.empty_dir.is_some())?;
        let (volume, plugin) = (volume.name.clone(), volume_plugin(volume));
        Some(EnvFile { volume, plugin, path: wanted.path.clone() })
    };
    let sources = spec.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref());
    sources.filter_map(|source| source.file_key_ref.as_ref().and_then(named)).collect()
}

const BLANKS: [char; 2] = [' ', '\t'];

/// The value of a key; none when it is optional and not there. An empty value counts as none.
pub(super) fn value(
    lookup: &Lookup,
    variable: &str,
    wanted: &FileKeySelector,
) -> Result<Option<String>, ConfigError> {
    let (volume, path) = (wanted.volume_name.clone(), wanted.path.clone());
    let optional = wanted.optional.unwrap_or_default();
    let Some(text) = lookup.files.get(&(volume.clone(), path.clone())) else {
        let variable = variable.to_owned();
        let error = VariableError::NoFile { variable, path, volume };
        return if optional { Ok(None) } else { Err(error.into()) };
    };
    let found = find(text, &wanted.key);
    let found = found.map_err(|line| VariableError::File { path: path.clone(), volume, line })?;
    match found.filter(|value| !value.is_empty()) {
        None if !optional => Err(VariableError::NoFileKey { key: wanted.key.clone(), path }.into()),
        value => Ok(value),
    }
}

/// The value of a key, or the line that cannot be understood. Lines after the key are not looked at.
fn find(text: &str, key: &str) -> Result<Option<String>, usize> {
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let (line, number) = (line.trim_start_matches(BLANKS), index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once('=').ok_or(number)?;
        if name.is_empty() || name.ends_with(BLANKS) {
            return Err(number);
        }
        let value = match value.starts_with(BLANKS) {
            true => String::new(),
            false => quoted(value.strip_prefix('\'').ok_or(number)?, &mut lines).ok_or(number)?,
        };
        if name == key {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// What stands before the closing quote, over as many lines as it takes; none when something else follows it.
fn quoted<'a>(
    first: &'a str,
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
) -> Option<String> {
    let (mut value, mut rest) = (String::new(), first);
    loop {
        if let Some((last, after)) = rest.split_once('\'') {
            let after = after.trim_start_matches(BLANKS);
            value.push_str(last);
            return (after.is_empty() || after.starts_with('#')).then_some(value);
        }
        value.push_str(rest);
        value.push('\n');
        rest = lines.next()?.1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use k8s_openapi::api::core::v1::{
        EmptyDirVolumeSource, EnvVar, EnvVarSource, FileKeySelector, SecretVolumeSource, Volume,
    };

    use super::{EnvFile, env_files, find};
    use crate::fixture::pod;
    use crate::pod::PodExt;

    #[test]
    fn each_file_of_an_empty_dir_that_variables_stand_in_is_read_once() {
        let variable = |volume: &str, path: &str, key: &str| EnvVar {
            name: key.to_owned(),
            value: None,
            value_from: Some(EnvVarSource {
                file_key_ref: Some(FileKeySelector {
                    volume_name: volume.to_owned(),
                    path: path.to_owned(),
                    key: key.to_owned(),
                    optional: None,
                }),
                ..EnvVarSource::default()
            }),
        };
        let variables = vec![
            variable("data", "env", "A"),
            variable("data", "env", "B"),
            variable("data", "deep/env", "C"),
            variable("secret", "env", "D"),
            variable("none", "env", "E"),
        ];
        let data = Some(EmptyDirVolumeSource::default());
        let data = Volume { name: "data".to_owned(), empty_dir: data, ..Volume::default() };
        let secret = Some(SecretVolumeSource::default());
        let secret = Volume { name: "secret".to_owned(), secret, ..Volume::default() };
        let pod = pod()
            .regular_with("app", |spec| spec.env = Some(variables))
            .spec(|spec| spec.volumes = Some(vec![data, secret]))
            .build();
        let file = |path: &str| EnvFile {
            volume: "data".to_owned(),
            plugin: "kubernetes.io/empty-dir".to_owned(),
            path: path.to_owned(),
        };
        let expected = BTreeSet::from([file("deep/env"), file("env")]);
        assert_eq!(env_files(&pod, &pod.regular()[0]), expected);
    }

    #[test]
    fn a_value_stands_between_single_quotes() {
        let value = |text: &str| Ok(Some(text.to_owned()));
        let rows = [
            ("A='x'", value("x")),
            ("  \tA='x'  # why", value("x")),
            ("# A='no'\n\n   \nB='b'\nA='a'", value("a")),
            ("A='one\ntwo'\n", value("one\ntwo")),
            ("A='$(B) \\n \"'", value("$(B) \\n \"")),
            ("A=''", value("")),
            ("A= 'x'", value("")),
            ("B='b'", Ok(None)),
            ("", Ok(None)),
            ("A='first'\nA='second'", value("first")),
            ("A", Err(1)),
            ("\nA =x", Err(2)),
            ("='x'", Err(1)),
            ("A=x", Err(1)),
            ("A=\"x\"", Err(1)),
            ("A='x' y", Err(1)),
            ("B='b'\nA='x\ny", Err(2)),
            ("A='a'\nbroken", value("a")),
        ];
        for (text, expected) in rows {
            assert_eq!(find(text, "A"), expected, "{text:?}");
        }
    }
}
