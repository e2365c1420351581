//! The user and the groups of a container's process, by the image's own `/etc/passwd` and `/etc/group`.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::Path;

use oarsman_cri_types::v1::{LinuxContainerSecurityContext, SupplementalGroupsPolicy};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, open, openat, openat2};
use serde::{Deserialize, Serialize};

use super::SpecError;

/// The most that is read of an image's list of users.
const MOST_USERS: u64 = 1 << 20;

/// The lists of users and groups of an image; empty where it has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImageUsers {
    pub(crate) passwd: String,
    pub(crate) group: String,
}

/// Who a process is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessUser {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
}

impl ImageUsers {
    /// Reads the lists of a mounted root file system. Links in it lead nowhere outside of it.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let directory =
            openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let read = |path: &str| {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let found = openat2(&directory, path, flags, Mode::empty(), ResolveFlags::IN_ROOT);
            // A list that is not there, or is no list, has no users.
            let Ok(found) = found.map(File::from) else { return Ok(String::new()) };
            if !found.metadata()?.is_file() {
                return Ok(String::new());
            }
            let again = format!("/proc/self/fd/{}", found.as_raw_fd());
            let file = File::from(open(again, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?);
            let mut bytes = Vec::new();
            file.take(MOST_USERS).read_to_end(&mut bytes)?;
            Ok::<_, io::Error>(String::from_utf8_lossy(&bytes).into_owned())
        };
        Ok(Self { passwd: read("etc/passwd")?, group: read("etc/group")? })
    }

    fn user(&self, wanted: impl Fn(&str, u32) -> bool) -> Option<(&str, u32, u32)> {
        self.passwd.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let (name, uid) = (*fields.first()?, fields.get(2)?.parse().ok()?);
            let gid = fields.get(3)?.parse().ok()?;
            wanted(name, uid).then_some((name, uid, gid))
        })
    }

    fn group(&self, wanted: &str) -> Option<u32> {
        self.groups().find(|(name, ..)| *name == wanted).map(|(_, gid, _)| gid)
    }

    fn groups(&self) -> impl Iterator<Item = (&str, u32, Vec<&str>)> {
        self.group.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let members = fields.get(3).map_or_else(Vec::new, |all| all.split(',').collect());
            Some((*fields.first()?, fields.get(2)?.parse().ok()?, members))
        })
    }

    /// The user that the container's configuration asks for, or the image's.
    pub(crate) fn resolve(
        &self,
        context: &LinuxContainerSecurityContext,
        image_user: &str,
    ) -> Result<ProcessUser, SpecError> {
        let wanted = wanted_user(context, image_user)?;
        let (user, group) = match wanted.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (wanted.as_str(), None),
        };
        let (name, uid, primary) = self.find_user(user)?;
        let gid = match group.filter(|group| !group.is_empty()) {
            Some(group) => self.find_group(group)?,
            None => primary,
        };
        let mut groups = vec![gid];
        if context.supplemental_groups_policy() == SupplementalGroupsPolicy::Merge {
            groups.extend(self.groups_of(name.as_deref()));
        }
        for asked in &context.supplemental_groups {
            groups.push(number(*asked)?);
        }
        groups.sort_unstable();
        groups.dedup();
        Ok(ProcessUser { uid, gid, groups })
    }

    fn groups_of<'a>(&'a self, user: Option<&'a str>) -> impl Iterator<Item = u32> + 'a {
        let is_member = move |members: &[&str]| user.is_some_and(|user| members.contains(&user));
        self.groups().filter(move |(_, _, members)| is_member(members)).map(|(_, gid, _)| gid)
    }

    /// Name, number and primary group. A number needs no entry.
    fn find_user(&self, wanted: &str) -> Result<(Option<String>, u32, u32), SpecError> {
        let owned = |(name, uid, gid): (&str, u32, u32)| (Some(name.to_owned()), uid, gid);
        if wanted.is_empty() {
            return Ok(self.user(|_, uid| uid == 0).map_or((None, 0, 0), owned));
        }
        if let Ok(number) = wanted.parse::<u32>() {
            return Ok(self.user(|_, uid| uid == number).map_or((None, number, 0), owned));
        }
        let found = self.user(|name, _| name == wanted).map(owned);
        found.ok_or_else(|| SpecError::NoUser { user: wanted.to_owned() })
    }

    fn find_group(&self, wanted: &str) -> Result<u32, SpecError> {
        let found = wanted.parse().ok().or_else(|| self.group(wanted));
        found.ok_or_else(|| SpecError::NoGroup { group: wanted.to_owned() })
    }
}

/// `user` or `user:group`, by name or number.
fn wanted_user(
    context: &LinuxContainerSecurityContext,
    image_user: &str,
) -> Result<String, SpecError> {
    let uid = context.run_as_user.as_ref().map(|uid| uid.value.to_string());
    let user = Some(context.run_as_username.clone()).filter(|name| !name.is_empty()).or(uid);
    match (user, &context.run_as_group) {
        (Some(user), Some(group)) => Ok(format!("{user}:{}", group.value)),
        (Some(user), None) => Ok(user),
        (None, Some(group)) => Err(SpecError::GroupWithoutUser { group: group.value }),
        (None, None) => Ok(image_user.to_owned()),
    }
}

fn number(id: i64) -> Result<u32, SpecError> {
    u32::try_from(id).map_err(|_| SpecError::NoGroup { group: id.to_string() })
}

/// The user of an image as CRI tells it: a number, or a name.
pub(crate) fn image_user(user: &str) -> (Option<i64>, String) {
    let name = user.split(':').next().unwrap_or_default();
    match name.parse::<i64>() {
        Ok(uid) => (Some(uid), String::new()),
        Err(_) => (None, name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use oarsman_cri_types::v1::Int64Value;

    use super::*;

    fn users() -> ImageUsers {
        ImageUsers {
            passwd: "root:x:0:0:root:/root:/bin/sh\nweb:x:33:34:w:/:/bin/sh\n\nbroken\n".to_owned(),
            group: "root:x:0:\nwww:x:34:\nlogs:x:40:web,other\nempty:x:41:\n".to_owned(),
        }
    }

    #[test]
    fn users_of_images_are_found_by_name_and_number() {
        type Wanted = Option<(u32, u32, &'static [u32])>;
        let rows: [(&str, Wanted); 9] = [
            ("", Some((0, 0, &[0]))),
            ("web", Some((33, 34, &[34, 40]))),
            ("33", Some((33, 34, &[34, 40]))),
            ("1000", Some((1000, 0, &[0]))),
            ("1000:1001", Some((1000, 1001, &[1001]))),
            ("web:logs", Some((33, 40, &[40]))),
            ("0:0", Some((0, 0, &[0]))),
            ("nobody", None),
            ("web:nogroup", None),
        ];
        for (user, wanted) in rows {
            let found = users().resolve(&LinuxContainerSecurityContext::default(), user).ok();
            let wanted =
                wanted.map(|(uid, gid, groups)| ProcessUser { uid, gid, groups: groups.to_vec() });
            assert_eq!(found, wanted, "{user:?}");
        }
    }

    #[test]
    fn the_containers_user_replaces_the_images() {
        let id = |value| Some(Int64Value { value });
        let mut context =
            LinuxContainerSecurityContext { run_as_user: id(33), ..Default::default() };
        context.supplemental_groups = vec![7];
        let resolve = |context: &_| users().resolve(context, "nobody");
        assert_eq!(resolve(&context).unwrap().groups, [7, 34, 40]);
        context.set_supplemental_groups_policy(SupplementalGroupsPolicy::Strict);
        assert_eq!(resolve(&context).unwrap().groups, [7, 34]);
        context.run_as_group = id(5);
        assert_eq!(resolve(&context).unwrap(), ProcessUser { uid: 33, gid: 5, groups: vec![5, 7] });
        context.run_as_user = None;
        assert!(resolve(&context).is_err());
        context.run_as_username = "web".to_owned();
        assert_eq!(resolve(&context).unwrap().uid, 33);
        context.supplemental_groups = vec![-1];
        assert!(resolve(&context).is_err());
    }

    #[test]
    fn links_of_an_image_do_not_lead_out_of_it() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("etc")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", root.path().join("etc/passwd")).unwrap();
        std::fs::write(root.path().join("etc/group"), "a:x:1:").unwrap();
        let users = ImageUsers::read(root.path()).unwrap();
        assert_eq!((users.passwd.as_str(), users.group.as_str()), ("", "a:x:1:"));
    }

    #[test]
    fn the_user_of_an_image_is_a_number_or_a_name() {
        for (user, uid, name) in
            [("", None, ""), ("1000", Some(1000), ""), ("1:2", Some(1), ""), ("web:1", None, "web")]
        {
            assert_eq!(image_user(user), (uid, name.to_owned()), "{user}");
        }
    }
}
