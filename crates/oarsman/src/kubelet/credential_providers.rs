//! Reads the credential provider plugins of `--image-credential-provider-config`, a file or a directory of files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use oarsman_agent::manifest;
use oarsman_core::image::providers::{config_hash, providers};
use oarsman_kubelet_config::flags::ProgramFlags;
use serde_json::Value;

use crate::settings::CredentialProviders;

const FLAG: &str = "--image-credential-provider-config";
const SUFFIXES: [&str; 3] = ["json", "yaml", "yml"];

/// The plugins. All programs must exist: a missing one would only be noticed by pulls that fail.
pub(super) fn read(flags: &ProgramFlags, tokens_enabled: bool) -> Result<CredentialProviders> {
    if flags.image_credential_provider_config.is_empty() {
        return Ok(CredentialProviders::default());
    }
    let config = Path::new(&flags.image_credential_provider_config);
    let cannot = || format!("cannot use {} ({FLAG})", config.display());
    let files = files(config).with_context(cannot)?;
    let contents = files.iter().map(|path| contents(path)).collect::<Result<Vec<_>>>()?;
    let texts = files.iter().zip(&contents).map(|(path, bytes)| text(path, bytes));
    let texts = texts.collect::<Result<Vec<_>>>()?;
    let known = providers(&texts, tokens_enabled).with_context(cannot)?;
    let directory = PathBuf::from(&flags.image_credential_provider_bin_dir);
    for provider in &known {
        let path = directory.join(&provider.name);
        ensure!(
            path.is_file(),
            "{} names {:?}, and there is no {}: put it there, or correct --image-credential-provider-bin-dir",
            config.display(),
            provider.name,
            path.display()
        );
    }
    Ok(CredentialProviders { known, directory, hash: Some(config_hash(&contents)) })
}

/// The file itself, or the files of the directory by name.
fn files(config: &Path) -> Result<Vec<PathBuf>> {
    if !config.is_dir() {
        return Ok(vec![config.to_owned()]);
    }
    let entries = fs::read_dir(config)?.map(|entry| Ok(entry?.path()));
    let mut files = entries.collect::<std::io::Result<Vec<_>>>()?;
    let is_one = |path: &PathBuf| {
        path.extension().is_some_and(|end| SUFFIXES.iter().any(|suffix| end == *suffix))
    };
    files.retain(|path| path.is_file() && is_one(path));
    files.sort();
    ensure!(!files.is_empty(), "it holds no file that ends with .json, .yaml or .yml");
    Ok(files)
}

fn contents(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot use {} ({FLAG})", path.display()))
}

fn text(path: &Path, bytes: &[u8]) -> Result<Value> {
    let cannot = || format!("cannot use {} ({FLAG})", path.display());
    let mut documents = manifest::documents(bytes).with_context(cannot)?;
    ensure!(
        documents.len() == 1,
        "{} holds {} documents instead of one",
        path.display(),
        documents.len()
    );
    Ok(documents.remove(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str) -> String {
        format!(
            "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: {name}\n  \
             matchImages: [reg.io]\n  defaultCacheDuration: 1m\n  apiVersion: credentialprovider.kubelet.k8s.io/v1\n"
        )
    }

    fn flags(config: &Path, directory: &Path) -> ProgramFlags {
        ProgramFlags {
            image_credential_provider_config: config.display().to_string(),
            image_credential_provider_bin_dir: directory.display().to_string(),
            ..ProgramFlags::default()
        }
    }

    #[test]
    fn a_file_or_a_directory_of_files_names_programs_that_must_be_there() {
        let at = tempfile::tempdir().unwrap();
        let (bin, config) = (at.path().join("bin"), at.path().join("config"));
        fs::create_dir(&bin).unwrap();
        fs::create_dir(&config).unwrap();
        for (file, name) in [("b.yaml", "second"), ("a.json", "first"), ("notes.txt", "none")] {
            fs::write(config.join(file), written(name)).unwrap();
        }
        let missing = read(&flags(&config, &bin), true).unwrap_err().to_string();
        assert!(missing.contains("first") && missing.contains("bin-dir"), "{missing}");
        for name in ["first", "second"] {
            fs::write(bin.join(name), "").unwrap();
        }
        let names = |found: CredentialProviders| {
            found.known.into_iter().map(|one| one.name).collect::<Vec<_>>()
        };
        assert_eq!(names(read(&flags(&config, &bin), true).unwrap()), ["first", "second"]);
        let hash = |path: &Path| read(&flags(path, &bin), true).unwrap().hash.unwrap();
        assert_ne!(hash(&config), hash(&config.join("b.yaml")), "every file counts");
        assert_eq!(read(&ProgramFlags::default(), true).unwrap().hash, None);
        assert_eq!(names(read(&flags(&config.join("b.yaml"), &bin), true).unwrap()), ["second"]);
        assert_eq!(names(read(&ProgramFlags::default(), true).unwrap()), [""; 0]);
        let gone = format!("{:#}", read(&flags(&at.path().join("gone"), &bin), true).unwrap_err());
        assert!(gone.contains(FLAG), "{gone}");
    }
}
