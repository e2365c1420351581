//! Which static pods live here, which mirrors there are, and what is to be done about it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodStatus};

use crate::ids::{FullName, PodUid};
use crate::pod::PodExt;
use crate::time::Mono;

use super::times::Times;
use super::{is_faithful, reflection};

/// How long the list of pods may take to show what was done. Then it is done again: the answer may have been wrong.
const TO_BE_SEEN: Duration = Duration::from_secs(10);
/// After a failed try; doubled each time.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Static pods and mirrors by their names.
#[derive(Debug, Default)]
pub struct Board {
    places: BTreeMap<FullName, Place>,
    /// Whether it is known of every mirror if it has a pod.
    complete: bool,
}

/// What there is under one name.
#[derive(Debug, Default)]
struct Place {
    /// The pod that lives here.
    pod: Option<Arc<Pod>>,
    /// Who is looked after under this name; without a pod, one that nobody wants any more.
    holder: Option<PodUid>,
    /// How the pod is.
    status: Option<PodStatus>,
    /// What the API server shows.
    mirror: Option<Pod>,
    /// Since when the mirror has been as it is, by what it said when its pod was first told of.
    times: Option<Times>,
    failures: u32,
    not_before: Mono,
    under_way: bool,
}

/// Something to ask of the API server.
#[derive(Clone, Debug, PartialEq)]
pub enum Errand {
    /// Make this mirror.
    Create(Box<Pod>),
    /// Delete the mirror of this name and UID.
    Delete(FullName, PodUid),
}

impl Errand {
    /// Whose errand it is.
    pub fn name(&self) -> FullName {
        match self {
            Self::Create(mirror) => mirror.full_name(),
            Self::Delete(name, _) => name.clone(),
        }
    }
}

/// Something for those who write statuses.
#[derive(Clone, Debug, PartialEq)]
pub enum Tidings {
    /// The mirror of this name and UID is to have this status.
    Tell(FullName, PodUid, Box<PodStatus>),
    /// The mirror has this status.
    Has(PodUid, Box<PodStatus>),
    /// There is no such mirror any more.
    Gone(PodUid),
}

impl Board {
    /// A static pod lives here from now on, in the place of any other of its name.
    pub fn lives(&mut self, pod: &Arc<Pod>) {
        let place = self.places.entry(pod.full_name()).or_default();
        let uid = Some(pod.uid());
        if place.holder != uid {
            (place.status, place.times) = (None, None);
            place.at_once();
        }
        (place.holder, place.pod) = (uid, Some(Arc::clone(pod)));
    }

    /// Something of a pod of that name is left, and being brought down.
    pub fn lingers(&mut self, uid: &PodUid, name: &FullName) {
        let place = self.places.entry(name.clone()).or_default();
        if place.pod.is_none() {
            place.holder = Some(uid.clone());
        }
    }

    /// Nothing is left of that pod.
    pub fn gone(&mut self, uid: &PodUid) {
        for place in self.places.values_mut().filter(|place| place.holder.as_ref() == Some(uid)) {
            place.at_once();
            (place.pod, place.holder, place.status, place.times) = (None, None, None, None);
        }
        self.tidy();
    }

    /// A static pod is so now.
    pub fn is(&mut self, uid: &PodUid, name: &FullName, status: &PodStatus) -> Option<Tidings> {
        let place = self.places.get_mut(name).filter(|place| place.holder.as_ref() == Some(uid))?;
        place.status = Some(status.clone());
        place.tell(name)
    }

    /// These are all the mirrors that the API server has.
    pub fn see(&mut self, mirrors: Vec<Pod>) -> Vec<Tidings> {
        let mut seen: BTreeMap<FullName, Pod> =
            mirrors.into_iter().map(|mirror| (mirror.full_name(), mirror)).collect();
        let mut tidings = Vec::new();
        for (name, place) in &mut self.places {
            tidings.extend(place.see(name, seen.remove(name)));
        }
        for (name, mirror) in seen {
            let place = Place { mirror: Some(mirror), ..Place::default() };
            self.places.insert(name, place);
        }
        self.tidy();
        tidings
    }

    /// Every source has told its pods. Before that, a mirror without a pod may well have one.
    pub fn complete(&mut self) {
        self.complete = true;
    }

    /// The next thing to be asked for; the node's UID has to be known for that.
    pub fn next(&mut self, node_uid: &str, now: Mono) -> Option<Errand> {
        let complete = self.complete;
        let due = self.places.iter_mut().filter(|(_, place)| place.is_due(now));
        due.into_iter().find_map(|(name, place)| {
            let errand = place.errand(name, node_uid, complete)?;
            place.under_way = true;
            Some(errand)
        })
    }

    /// What came of an errand.
    pub fn done(&mut self, name: &FullName, served: bool, now: Mono) {
        let Some(place) = self.places.get_mut(name) else { return };
        place.under_way = false;
        if served {
            place.failures = 0;
            place.not_before = now + TO_BE_SEEN;
        } else {
            let wait = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(place.failures));
            place.failures = place.failures.saturating_add(1);
            place.not_before = now + wait.min(LONGEST_WAIT);
        }
    }

    /// When to look for something to do next, if anything waits.
    pub fn next_due(&self) -> Option<Mono> {
        let waiting = self.places.iter().filter(|(name, place)| {
            !place.under_way && place.errand(name, "", self.complete).is_some()
        });
        waiting.map(|(_, place)| place.not_before).min()
    }

    fn tidy(&mut self) {
        let is_used = |place: &Place| place.holder.is_some() || place.mirror.is_some();
        self.places.retain(|_, place| is_used(place) || place.under_way);
    }
}

impl Place {
    fn is_due(&self, now: Mono) -> bool {
        !self.under_way && self.not_before <= now
    }

    /// What is so new that nobody has to wait for it.
    fn at_once(&mut self) {
        (self.failures, self.not_before) = (0, Mono::default());
    }

    fn errand(&self, name: &FullName, node_uid: &str, complete: bool) -> Option<Errand> {
        match (&self.pod, &self.mirror) {
            (Some(pod), None) => Some(Errand::Create(Box::new(reflection(pod, node_uid)))),
            (Some(pod), Some(mirror)) if !is_faithful(mirror, pod) => {
                Some(Errand::Delete(name.clone(), mirror.uid()))
            }
            (None, Some(mirror)) if self.holder.is_none() && complete => {
                Some(Errand::Delete(name.clone(), mirror.uid()))
            }
            _ => None,
        }
    }

    fn see(&mut self, name: &FullName, mirror: Option<Pod>) -> Vec<Tidings> {
        let before = self.mirror.as_ref().map(PodExt::uid);
        let is_deleting = |mirror: &Option<Pod>| mirror.as_ref().is_some_and(PodExt::is_deleting);
        let was_deleting = is_deleting(&self.mirror);
        self.mirror = mirror;
        let now = self.mirror.as_ref().map(PodExt::uid);
        if before == now {
            if was_deleting != is_deleting(&self.mirror) {
                self.at_once();
            }
            return self.has().into_iter().collect();
        }
        self.at_once();
        self.times = None;
        before.map(Tidings::Gone).into_iter().chain(self.tell(name)).collect()
    }

    /// What the API server has of a mirror that is told of.
    fn has(&self) -> Option<Tidings> {
        let mirror = self.faithful()?;
        let status = mirror.status.clone()?;
        Some(Tidings::Has(mirror.uid(), Box::new(status)))
    }

    fn tell(&mut self, name: &FullName) -> Option<Tidings> {
        let (mirror, status) = (self.faithful()?, self.status.clone()?);
        let (uid, first) = (mirror.uid(), Times::compare(mirror.status.as_ref(), &status));
        let status = self.times.get_or_insert(first).restore(status);
        Some(Tidings::Tell(name.clone(), uid, Box::new(status)))
    }

    fn faithful(&self) -> Option<&Pod> {
        let (pod, mirror) = (self.pod.as_ref()?, self.mirror.as_ref()?);
        is_faithful(mirror, pod).then_some(mirror)
    }
}
