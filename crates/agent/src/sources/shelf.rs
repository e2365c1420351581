//! The state of a file source: the content of each manifest and its last valid objects.
//!
//! A manifest that becomes invalid keeps its objects: an editor that writes slowly, a failing disk or a typing error must not stop
//! running pods. A problem is logged once, and again only when it changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use oarsman_core::pod::PodExt;
use oarsman_core::static_pod::Origin;

use super::line::{Line, Remark, Weight};
use super::read::{Reading, Sheet};
use super::scan::{Finding, Scan};
use crate::book::Found;

#[cfg(test)]
mod tests;

/// All files at a source's path.
#[derive(Debug)]
pub(super) struct Shelf<R: Reading> {
    reading: R,
    path: PathBuf,
    slots: BTreeMap<PathBuf, Slot<R::Item>>,
    /// The problem of the path as a whole that was logged last.
    complaint: Option<String>,
    /// Whether a set has been returned yet.
    told: bool,
}

/// One file.
#[derive(Debug)]
struct Slot<T> {
    seen: Finding,
    /// Its objects when it was last valid.
    items: Vec<T>,
    /// Its problems now.
    wrong: Vec<Remark>,
}

/// The result of a scan or a request.
#[derive(Debug)]
pub(super) struct News<T> {
    /// The full set, if it has changed.
    pub(super) items: Option<Vec<T>>,
    pub(super) lines: Vec<Line>,
}

impl<T> Default for News<T> {
    fn default() -> Self {
        Self { items: None, lines: Vec::new() }
    }
}

impl<R: Reading> Shelf<R> {
    /// An empty one.
    pub(super) fn new(path: PathBuf, reading: R) -> Self {
        Self { reading, path, slots: BTreeMap::new(), complaint: None, told: false }
    }

    /// Applies a scan of the path.
    pub(super) fn look(&mut self, scan: Scan) -> News<R::Item> {
        let mut lines = self.speak_of_path(&scan);
        let changed = match scan {
            // What is there now is unknown, so the previous objects are kept.
            Scan::Unreadable(_) => return News { items: None, lines },
            Scan::Missing => self.sort_in(BTreeMap::new(), &mut lines),
            Scan::Files(files) => self.sort_in(files, &mut lines),
        };
        let first = !std::mem::replace(&mut self.told, true);
        News { items: (changed || first).then(|| self.items()), lines }
    }

    /// The report of this source: its broken files, and the file of each pod.
    pub(super) fn found(&self) -> Found {
        let any = self.slots.values().any(|slot| !slot.items.is_empty());
        let complaint = self.complaint.iter();
        let complaint = complaint.map(|why| Remark::new(show(&self.path), why).broken(any));
        let wrong = self
            .slots
            .values()
            .flat_map(|slot| slot.wrong.iter().map(|remark| remark.broken(!slot.items.is_empty())));
        let places = self.slots.iter().flat_map(|(path, slot)| {
            let pods = slot.items.iter().filter_map(R::pod);
            pods.map(|pod| (pod.full_name(), show(path)))
        });
        Found { broken: complaint.chain(wrong).collect(), places: places.collect() }
    }

    fn items(&self) -> Vec<R::Item> {
        self.slots.values().flat_map(|slot| slot.items.iter().cloned()).collect()
    }

    /// Messages about the path as a whole, unless they were logged already.
    fn speak_of_path(&mut self, scan: &Scan) -> Vec<Line> {
        let complaint = complaint::<R>(scan);
        let said = complaint.as_ref().map(|line| line.said.clone());
        let before = std::mem::replace(&mut self.complaint, said);
        let place = show(&self.path);
        match (before, complaint) {
            (Some(_), None) => vec![Line::new(Weight::News, &place, "it can be read now")],
            (before, Some(line)) if before.as_ref() != Some(&line.said) => {
                vec![Line { place, ..line }]
            }
            _ => Vec::new(),
        }
    }

    /// Tells whether the set changed.
    fn sort_in(&mut self, files: BTreeMap<PathBuf, Finding>, lines: &mut Vec<Line>) -> bool {
        let mut changed = self.clear_out(&files, lines);
        for (path, found) in files {
            let before = self.slots.remove(&path);
            let slot = match before {
                Some(slot) if slot.seen == found => slot,
                before => {
                    let held = before.map(|slot| slot.items).unwrap_or_default();
                    let slot = self.renewed(&path, found, &held, lines);
                    changed |= slot.items != held;
                    slot
                }
            };
            self.slots.insert(path, slot);
        }
        changed
    }

    /// Removes files that are gone, and their objects.
    fn clear_out(&mut self, files: &BTreeMap<PathBuf, Finding>, lines: &mut Vec<Line>) -> bool {
        let gone = self.slots.extract_if(.., |path, _| !files.contains_key(path));
        let gone: Vec<_> = gone.flat_map(|(path, slot)| named::<R>(&path, &slot)).collect();
        for (place, name) in &gone {
            lines.push(Line::new(
                Weight::News,
                place,
                format!("the file is gone, and {name} with it"),
            ));
        }
        !gone.is_empty()
    }

    /// Parses a file that has changed.
    fn renewed(
        &self,
        path: &Path,
        seen: Finding,
        held: &[R::Item],
        lines: &mut Vec<Line>,
    ) -> Slot<R::Item> {
        match self.understand(&show(path), &seen, held) {
            Ok(sheet) => {
                lines.extend(sheet.lines);
                Slot { seen, items: sheet.items, wrong: Vec::new() }
            }
            Err(wrong) => {
                let broken = |remark: &Remark| Line::broken(remark, !held.is_empty());
                lines.extend(wrong.iter().map(broken));
                Slot { seen, items: held.to_vec(), wrong }
            }
        }
    }

    fn understand(
        &self,
        place: &str,
        found: &Finding,
        held: &[R::Item],
    ) -> Result<Sheet<R::Item>, Vec<Remark>> {
        let bytes =
            found.as_ref().map_err(|trouble| vec![Remark::new(place, trouble.to_string())])?;
        self.reading.read(bytes, &Origin::File(place.to_owned()), held)
    }
}

fn named<R: Reading>(path: &Path, slot: &Slot<R::Item>) -> Vec<(String, String)> {
    slot.items.iter().map(|item| (show(path), R::name(item))).collect()
}

/// The problem of a path as a whole.
fn complaint<R: Reading>(scan: &Scan) -> Option<Line> {
    let weight = if R::MUST_BE_THERE { Weight::Error } else { Weight::Warning };
    let missing = if R::MUST_BE_THERE {
        "it does not exist: give a file, a directory or a URL"
    } else {
        "it does not exist: there are no pods from there"
    };
    let (said, fate) = match scan {
        Scan::Missing => (missing.to_owned(), ""),
        Scan::Unreadable(why) => (
            format!("it cannot be read: {why}; let the agent read it"),
            " (what came from there goes on)",
        ),
        Scan::Files(files) if files.is_empty() && R::MUST_BE_THERE => {
            ("no file in it ends in .yaml, .yml or .json: put a manifest there".to_owned(), "")
        }
        Scan::Files(_) => return None,
    };
    Some(Line { fate, ..Line::new(weight, "", said) })
}

fn show(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
