//! The user namespace of a pod: which users and groups of the node are those of its containers.

use oarsman_cri_types::v1::{IdMapping, NamespaceMode, NamespaceOption, UserNamespace};
use oci_spec::OciSpecError;
use oci_spec::runtime::{LinuxIdMapping, LinuxIdMappingBuilder};
use serde::{Deserialize, Serialize};

use super::SpecError;

/// Mappings of users and groups, as CRI has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PodUserNamespace {
    pub(crate) uids: Vec<StoredIdMapping>,
    pub(crate) gids: Vec<StoredIdMapping>,
}

/// A range of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredIdMapping {
    host: u32,
    container: u32,
    length: u32,
}

impl PodUserNamespace {
    /// None for the node's.
    pub(crate) fn of(options: &NamespaceOption) -> Result<Option<Self>, SpecError> {
        let Some(asked) = options.userns_options.as_ref() else { return Ok(None) };
        match asked.mode() {
            NamespaceMode::Node => Ok(None),
            NamespaceMode::Pod => {
                let (uids, gids) = (stored(&asked.uids), stored(&asked.gids));
                let all = Self { uids, gids };
                match all.root() {
                    Some(_) => Ok(Some(all)),
                    None => Err(SpecError::UserNamespace { why: "it maps no root user or group" }),
                }
            }
            NamespaceMode::Container | NamespaceMode::Target => Err(SpecError::UserNamespace {
                why: "only one of the pod or the node's is possible",
            }),
        }
    }

    /// User and group of the node that are root in it.
    pub(crate) fn root(&self) -> Option<(u32, u32)> {
        let of = |all: &[StoredIdMapping]| all.iter().find_map(StoredIdMapping::root);
        Some((of(&self.uids)?, of(&self.gids)?))
    }

    /// As OCI has them: users, then groups.
    pub(crate) fn mappings(&self) -> Result<[Vec<LinuxIdMapping>; 2], OciSpecError> {
        let of = |all: &[StoredIdMapping]| {
            all.iter().map(StoredIdMapping::built).collect::<Result<Vec<_>, _>>()
        };
        Ok([of(&self.uids)?, of(&self.gids)?])
    }

    /// As a status tells it.
    pub(crate) fn shown(&self) -> UserNamespace {
        let of = |all: &[StoredIdMapping]| all.iter().map(StoredIdMapping::shown).collect();
        let mode = NamespaceMode::Pod.into();
        UserNamespace { mode, uids: of(&self.uids), gids: of(&self.gids) }
    }
}

impl StoredIdMapping {
    fn root(&self) -> Option<u32> {
        (self.container == 0 && self.length > 0).then_some(self.host)
    }

    fn built(&self) -> Result<LinuxIdMapping, OciSpecError> {
        let mapping = LinuxIdMappingBuilder::default().host_id(self.host);
        mapping.container_id(self.container).size(self.length).build()
    }

    fn shown(&self) -> IdMapping {
        IdMapping { host_id: self.host, container_id: self.container, length: self.length }
    }
}

fn stored(all: &[IdMapping]) -> Vec<StoredIdMapping> {
    let stored = |one: &IdMapping| StoredIdMapping {
        host: one.host_id,
        container: one.container_id,
        length: one.length,
    };
    all.iter().map(stored).collect()
}

/// Mappings of a mount as OCI has them.
pub(crate) fn built(all: &[IdMapping]) -> Result<Vec<LinuxIdMapping>, OciSpecError> {
    stored(all).iter().map(StoredIdMapping::built).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_in_the_nodes_user_namespace_or_in_one_with_a_root() {
        let options = |mode: NamespaceMode, uids: Vec<IdMapping>, gids: Vec<IdMapping>| {
            let user = UserNamespace { mode: mode.into(), uids, gids };
            NamespaceOption { userns_options: Some(user), ..NamespaceOption::default() }
        };
        let all = vec![IdMapping { host_id: 65_536, container_id: 0, length: 65_536 }];
        let none = vec![IdMapping { host_id: 65_536, container_id: 1, length: 65_535 }];
        let of = |options: &NamespaceOption| PodUserNamespace::of(options);
        assert_eq!(of(&NamespaceOption::default()).unwrap(), None);
        assert_eq!(of(&options(NamespaceMode::Node, vec![], vec![])).unwrap(), None);
        let asked = options(NamespaceMode::Pod, all.clone(), all.clone());
        let found = of(&asked).unwrap().unwrap();
        assert_eq!(found.root(), Some((65_536, 65_536)));
        assert_eq!(Some(found.shown()), asked.userns_options);
        let [uids, _] = found.mappings().unwrap();
        assert_eq!(
            (uids[0].host_id(), uids[0].container_id(), uids[0].size()),
            (65_536, 0, 65_536)
        );
        assert!(of(&options(NamespaceMode::Pod, all.clone(), vec![])).is_err());
        assert!(of(&options(NamespaceMode::Pod, none, all.clone())).is_err());
        assert!(of(&options(NamespaceMode::Container, all.clone(), all)).is_err());
    }
}
