//! The state of a file source: the content of each manifest and its last valid objects.
//!
//! A manifest that becomes invalid keeps its objects: an editor that writes slowly, a failing disk or a typing error must not stop
//! running pods. A problem is logged once, and again only when it changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use oarsman_core::pod::PodExt;
use oarsman_core::static_pod::ManifestOrigin;

use super::manifest_reader::{ManifestReader, ParsedManifest};
use super::message::{ManifestMessage, ManifestProblem, MessageLevel};
use super::scan::{FileRead, Scan};
use crate::report_store::SourceReport;

#[cfg(test)]
mod tests;

/// All files at a source's path.
#[derive(Debug)]
pub(super) struct FileManifests<R: ManifestReader> {
    reader: R,
    path: PathBuf,
    manifests: BTreeMap<PathBuf, CachedManifest<R::Item>>,
    /// The problem of the path as a whole that was logged last.
    path_problem: Option<String>,
    /// Whether a set has been returned yet.
    told: bool,
}

/// A file that was read, and its objects.
#[derive(Debug)]
struct CachedManifest<T> {
    seen: FileRead,
    /// Its objects when it was last valid.
    items: Vec<T>,
    /// The problems of its current content.
    wrong: Vec<ManifestProblem>,
}

/// The result of a scan or a request.
#[derive(Debug)]
pub(super) struct ManifestUpdate<T> {
    /// The full set, if it has changed.
    pub(super) items: Option<Vec<T>>,
    pub(super) messages: Vec<ManifestMessage>,
}

impl<T> Default for ManifestUpdate<T> {
    fn default() -> Self {
        Self { items: None, messages: Vec::new() }
    }
}

impl<R: ManifestReader> FileManifests<R> {
    /// No file is read yet.
    pub(super) fn new(path: PathBuf, reader: R) -> Self {
        Self { reader, path, manifests: BTreeMap::new(), path_problem: None, told: false }
    }

    /// Applies a scan of the path.
    pub(super) fn update(&mut self, scan: Scan) -> ManifestUpdate<R::Item> {
        let mut messages = self.path_messages(&scan);
        let changed = match scan {
            // What is there now is unknown, so the previous objects are kept.
            Scan::Unreadable(_) => return ManifestUpdate { items: None, messages },
            Scan::Missing => self.update_files(BTreeMap::new(), &mut messages),
            Scan::Files(files) => self.update_files(files, &mut messages),
        };
        let first = !std::mem::replace(&mut self.told, true);
        ManifestUpdate { items: (changed || first).then(|| self.items()), messages }
    }

    /// The report of this source: its broken files, and the file of each pod.
    pub(super) fn source_report(&self) -> SourceReport {
        let any = self.manifests.values().any(|manifest| !manifest.items.is_empty());
        let path_problem = self.path_problem.iter();
        let path_problem =
            path_problem.map(|why| ManifestProblem::new(display(&self.path), why).broken(any));
        let wrong = self.manifests.values().flat_map(|manifest| {
            manifest.wrong.iter().map(|problem| problem.broken(!manifest.items.is_empty()))
        });
        let places = self.manifests.iter().flat_map(|(path, manifest)| {
            let pods = manifest.items.iter().filter_map(R::pod);
            pods.map(|pod| (pod.full_name(), display(path)))
        });
        SourceReport { broken: path_problem.chain(wrong).collect(), places: places.collect() }
    }

    fn items(&self) -> Vec<R::Item> {
        self.manifests.values().flat_map(|manifest| manifest.items.iter().cloned()).collect()
    }

    /// Messages about the path as a whole, unless they were logged already.
    fn path_messages(&mut self, scan: &Scan) -> Vec<ManifestMessage> {
        let path_problem = path_problem::<R>(scan);
        let summary = path_problem.as_ref().map(|message| message.summary.clone());
        let before = std::mem::replace(&mut self.path_problem, summary);
        let place = display(&self.path);
        match (before, path_problem) {
            (Some(_), None) => {
                vec![ManifestMessage::new(MessageLevel::Info, &place, "it can be read now")]
            }
            (before, Some(message)) if before.as_ref() != Some(&message.summary) => {
                vec![ManifestMessage { place, ..message }]
            }
            _ => Vec::new(),
        }
    }

    /// Tells whether the set changed.
    fn update_files(
        &mut self,
        files: BTreeMap<PathBuf, FileRead>,
        messages: &mut Vec<ManifestMessage>,
    ) -> bool {
        let mut changed = self.remove_gone_files(&files, messages);
        for (path, found) in files {
            let before = self.manifests.remove(&path);
            let manifest = match before {
                Some(manifest) if manifest.seen == found => manifest,
                before => {
                    let held = before.map(|manifest| manifest.items).unwrap_or_default();
                    let manifest = self.reread(&path, found, &held, messages);
                    changed |= manifest.items != held;
                    manifest
                }
            };
            self.manifests.insert(path, manifest);
        }
        changed
    }

    /// Removes files that are gone, and their objects.
    fn remove_gone_files(
        &mut self,
        files: &BTreeMap<PathBuf, FileRead>,
        messages: &mut Vec<ManifestMessage>,
    ) -> bool {
        let gone = self.manifests.extract_if(.., |path, _| !files.contains_key(path));
        let gone: Vec<_> = gone.flat_map(|(path, manifest)| named::<R>(&path, &manifest)).collect();
        for (place, name) in &gone {
            messages.push(ManifestMessage::new(
                MessageLevel::Info,
                place,
                format!("the file is gone, and {name} with it"),
            ));
        }
        !gone.is_empty()
    }

    /// Parses a file that has changed.
    fn reread(
        &self,
        path: &Path,
        seen: FileRead,
        held: &[R::Item],
        messages: &mut Vec<ManifestMessage>,
    ) -> CachedManifest<R::Item> {
        match self.parse(&display(path), &seen, held) {
            Ok(parsed) => {
                messages.extend(parsed.messages);
                CachedManifest { seen, items: parsed.items, wrong: Vec::new() }
            }
            Err(wrong) => {
                let broken =
                    |problem: &ManifestProblem| ManifestMessage::broken(problem, !held.is_empty());
                messages.extend(wrong.iter().map(broken));
                CachedManifest { seen, items: held.to_vec(), wrong }
            }
        }
    }

    fn parse(
        &self,
        place: &str,
        found: &FileRead,
        held: &[R::Item],
    ) -> Result<ParsedManifest<R::Item>, Vec<ManifestProblem>> {
        let bytes = found
            .as_ref()
            .map_err(|trouble| vec![ManifestProblem::new(place, trouble.to_string())])?;
        self.reader.read(bytes, &ManifestOrigin::File(place.to_owned()), held)
    }
}

fn named<R: ManifestReader>(
    path: &Path,
    manifest: &CachedManifest<R::Item>,
) -> Vec<(String, String)> {
    manifest.items.iter().map(|item| (display(path), R::name(item))).collect()
}

/// The problem of a path as a whole.
fn path_problem<R: ManifestReader>(scan: &Scan) -> Option<ManifestMessage> {
    let level = if R::REQUIRED { MessageLevel::Error } else { MessageLevel::Warning };
    let missing = if R::REQUIRED {
        "it does not exist: give a file, a directory or a URL"
    } else {
        "it does not exist: there are no pods from there"
    };
    let (summary, fate) = match scan {
        Scan::Missing => (missing.to_owned(), ""),
        Scan::Unreadable(why) => (
            format!("it cannot be read: {why}; let the agent read it"),
            " (what came from there goes on)",
        ),
        Scan::Files(files) if files.is_empty() && R::REQUIRED => {
            ("no file in it ends in .yaml, .yml or .json: put a manifest there".to_owned(), "")
        }
        Scan::Files(_) => return None,
    };
    Some(ManifestMessage { fate, ..ManifestMessage::new(level, "", summary) })
}

fn display(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
