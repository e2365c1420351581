//! How many volumes pods should have and have, by plugin.

use std::collections::BTreeMap;

use oarsman_core::ids::PodUid;
use oarsman_sync::Guarded;

/// The volumes of each pod by state and plugin. Those of a pod go with it.
#[derive(Debug, Default)]
pub(crate) struct VolumeCounts(Guarded<BTreeMap<PodUid, PodVolumes>>);

#[derive(Debug, Default)]
struct PodVolumes {
    desired: Vec<String>,
    actual: Vec<String>,
}

impl VolumeCounts {
    /// The plugins of the volumes that a pod should have.
    pub(crate) fn set_desired<'a>(&self, uid: &PodUid, plugins: impl Iterator<Item = &'a str>) {
        self.0.lock().entry(uid.clone()).or_default().desired = owned(plugins);
    }

    /// The plugins of the volumes that a pod has.
    pub(crate) fn set_actual<'a>(&self, uid: &PodUid, plugins: impl Iterator<Item = &'a str>) {
        self.0.lock().entry(uid.clone()).or_default().actual = owned(plugins);
    }

    /// The pod has no volumes any more.
    pub(crate) fn forget(&self, uid: &PodUid) {
        self.0.lock().remove(uid);
    }

    /// How many there are, by state and plugin.
    pub(crate) fn counts(&self) -> BTreeMap<(&'static str, String), u64> {
        let mut counts = BTreeMap::new();
        for PodVolumes { desired, actual } in self.0.lock().values() {
            let states = [("desired_state_of_world", desired), ("actual_state_of_world", actual)];
            for (state, plugin) in
                states.into_iter().flat_map(|(state, all)| all.iter().map(move |it| (state, it)))
            {
                *counts.entry((state, plugin.clone())).or_default() += 1;
            }
        }
        counts
    }
}

fn owned<'a>(plugins: impl Iterator<Item = &'a str>) -> Vec<String> {
    plugins.map(str::to_owned).collect()
}
