//! The manifests of a file source: what each held last, and the last good pod of each.
//!
//! A manifest that turns out broken keeps the pod it held: an editor that writes slowly, a disk that hiccups or a slip of the
//! pen must not stop what runs. What is wrong is said once, and again only when something else is wrong.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::pod::PodExt;
use oarsman_core::report::BrokenManifest;
use oarsman_core::static_pod::Origin;

use super::line::{Line, Weight};
use super::read::{self, Readable};
use super::scan::{Finding, Scan};
use crate::book::Found;
use crate::manifest::one_document;

#[cfg(test)]
mod tests;

/// What is known of every file at a source's path.
#[derive(Debug)]
pub(super) struct Shelf {
    node: String,
    path: PathBuf,
    slots: BTreeMap<PathBuf, Slot>,
    /// What was said of the path as a whole.
    complaint: Option<String>,
    /// Whether anybody has been told of a set yet.
    told: bool,
}

/// What is known of one file.
#[derive(Debug)]
struct Slot {
    seen: Finding,
    /// What it held when it was last good.
    pod: Option<Pod>,
    /// What is wrong with it now.
    wrong: Option<String>,
}

/// What comes of a look.
#[derive(Debug, Default)]
pub(super) struct News {
    /// All pods, when they are not those that were told last.
    pub(super) pods: Option<Vec<Pod>>,
    pub(super) lines: Vec<Line>,
}

impl Shelf {
    /// An empty one.
    pub(super) fn new(path: PathBuf, node: String) -> Self {
        Self { node, path, slots: BTreeMap::new(), complaint: None, told: false }
    }

    /// Takes in what lies at the path now.
    pub(super) fn look(&mut self, scan: Scan) -> News {
        let mut lines = self.speak_of_path(&scan);
        let changed = match scan {
            // Nobody knows what is there now, so nothing is taken to have changed.
            Scan::Unreadable(_) => return News { pods: None, lines },
            Scan::Missing => self.sort_in(BTreeMap::new(), &mut lines),
            Scan::Files(files) => self.sort_in(files, &mut lines),
        };
        let first = !std::mem::replace(&mut self.told, true);
        News { pods: (changed || first).then(|| self.pods()), lines }
    }

    /// What there is to tell people of the files: which are broken, and which pod comes from which.
    pub(super) fn found(&self) -> Found {
        let complaint = self.complaint.iter().map(|why| BrokenManifest {
            place: show(&self.path),
            why: why.clone(),
            goes_on: self.slots.values().any(|slot| slot.pod.is_some()),
        });
        let wrong = self.slots.iter().filter_map(|(path, slot)| {
            let (place, why) = (show(path), slot.wrong.clone()?);
            Some(BrokenManifest { place, why, goes_on: slot.pod.is_some() })
        });
        let places = self.slots.iter().filter_map(|(path, slot)| {
            let pod = slot.pod.as_ref()?;
            Some((pod.full_name(), show(path)))
        });
        Found { broken: complaint.chain(wrong).collect(), places: places.collect() }
    }

    fn pods(&self) -> Vec<Pod> {
        self.slots.values().filter_map(|slot| slot.pod.clone()).collect()
    }

    /// What is wrong with the path as a whole, unless it was said already.
    fn speak_of_path(&mut self, scan: &Scan) -> Vec<Line> {
        let complaint = match scan {
            Scan::Missing => Some("it does not exist: there are no pods from there".to_owned()),
            Scan::Unreadable(why) => Some(format!(
                "it cannot be read: {why}; let the agent read it (pods that came from there go on)"
            )),
            Scan::Files(_) => None,
        };
        let before = std::mem::replace(&mut self.complaint, complaint);
        let place = show(&self.path);
        match (&before, &self.complaint) {
            (Some(_), None) => vec![Line::new(Weight::News, &place, "it can be read now")],
            (_, Some(now)) if before.as_ref() != Some(now) => {
                vec![Line::new(Weight::Warning, &place, now)]
            }
            _ => Vec::new(),
        }
    }

    /// Whether that changed the set.
    fn sort_in(&mut self, files: BTreeMap<PathBuf, Finding>, lines: &mut Vec<Line>) -> bool {
        let mut changed = self.clear_out(&files, lines);
        for (path, found) in files {
            let before = self.slots.remove(&path);
            let slot = match before {
                Some(slot) if slot.seen == found => slot,
                before => {
                    let held = before.and_then(|slot| slot.pod);
                    let slot = renewed(&path, found, held.clone(), &self.node, lines);
                    changed |= slot.pod != held;
                    slot
                }
            };
            self.slots.insert(path, slot);
        }
        changed
    }

    /// Forgets files that are gone, and their pods.
    fn clear_out(&mut self, files: &BTreeMap<PathBuf, Finding>, lines: &mut Vec<Line>) -> bool {
        let gone = self.slots.extract_if(.., |path, _| !files.contains_key(path));
        let pods: Vec<_> = gone.filter_map(|(path, slot)| Some((path, slot.pod?))).collect();
        for (path, pod) in &pods {
            let said = format!("the file is gone, and pod {} with it", pod.full_name());
            lines.push(Line::new(Weight::News, &show(path), said));
        }
        !pods.is_empty()
    }
}

/// What becomes of a file that is not what it was.
fn renewed(
    path: &Path,
    seen: Finding,
    held: Option<Pod>,
    node: &str,
    lines: &mut Vec<Line>,
) -> Slot {
    let place = show(path);
    match understand(&place, &seen, node) {
        Ok(Readable { pod, unknown_fields }) => {
            let said = format!("it holds pod {}", pod.full_name());
            lines.push(Line::new(Weight::News, &place, said));
            lines.extend(slips(&place, &unknown_fields));
            Slot { seen, pod: Some(pod), wrong: None }
        }
        Err(why) => {
            lines.push(Line::broken(&place, &why, held.is_some()));
            Slot { seen, pod: held, wrong: Some(why) }
        }
    }
}

fn understand(place: &str, found: &Finding, node: &str) -> Result<Readable, String> {
    let bytes = found.as_ref().map_err(ToString::to_string)?;
    read::unharmed(|| {
        let manifest = one_document(bytes).map_err(|error| error.to_string())?;
        read::pod(manifest, &Origin::File(place.to_owned()), node)
    })
}

/// Fields that nobody knows are most likely slips of the pen.
pub(super) fn slips(place: &str, unknown_fields: &[String]) -> Option<Line> {
    let fields = unknown_fields.join(", ");
    let said = format!("no pod has these fields, so they do nothing: {fields}; correct them");
    (!unknown_fields.is_empty()).then(|| Line::new(Weight::Warning, place, said))
}

fn show(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
