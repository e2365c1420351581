//! What a device changes in the spec of a container.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use oci_spec::runtime::{
    Hook, HookBuilder, Hooks, LinuxDevice, LinuxDeviceBuilder, LinuxDeviceCgroupBuilder,
    LinuxDeviceType, Mount, MountBuilder, Spec,
};
use rustix::fs::{major, minor};
use serde::Deserialize;
use serde_json::Value;

use super::{CdiError, SpecAbilities};

/// Changes of a spec.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct ContainerEdits {
    pub(super) env: Vec<String>,
    pub(super) device_nodes: Vec<DeviceNode>,
    net_devices: Vec<Value>,
    mounts: Vec<CdiMount>,
    hooks: Vec<CdiHook>,
    additional_gids: Vec<u32>,
    intel_rdt: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DeviceNode {
    path: PathBuf,
    host_path: Option<PathBuf>,
    /// `c`, `b`, `u` or `p`.
    r#type: Option<String>,
    major: Option<i64>,
    minor: Option<i64>,
    file_mode: Option<u32>,
    permissions: Option<String>,
    uid: Option<u32>,
    gid: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CdiMount {
    host_path: PathBuf,
    container_path: PathBuf,
    #[serde(default)]
    options: Vec<String>,
    r#type: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CdiHook {
    hook_name: String,
    path: PathBuf,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<String>,
    timeout: Option<i64>,
}

/// What a device is on the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostNode {
    kind: LinuxDeviceType,
    major: i64,
    minor: i64,
    mode: u32,
}

/// Looks at devices of the node.
pub(super) struct NodeLookup(fn(&Path) -> io::Result<HostNode>);

impl NodeLookup {
    pub(super) fn of_host() -> Self {
        Self(host_node)
    }
}

fn host_node(path: &Path) -> io::Result<HostNode> {
    let metadata = fs::metadata(path)?;
    let kind = match metadata.file_type() {
        it if it.is_block_device() => LinuxDeviceType::B,
        it if it.is_char_device() => LinuxDeviceType::C,
        it if it.is_fifo() => LinuxDeviceType::P,
        _ => return Err(io::Error::other("it is no device")),
    };
    let number = metadata.rdev();
    Ok(HostNode {
        kind,
        major: i64::from(major(number)),
        minor: i64::from(minor(number)),
        mode: metadata.mode() & 0o777,
    })
}

impl ContainerEdits {
    /// Makes the changes. What is already there under the same name or path is replaced.
    pub(super) fn apply(
        &self,
        spec: &mut Spec,
        abilities: SpecAbilities,
        lookup: &NodeLookup,
    ) -> Result<(), CdiError> {
        self.refuse_unsupported(abilities)?;
        self.add_environment(spec);
        for node in &self.device_nodes {
            node.add(spec, lookup)?;
        }
        self.add_mounts(spec)?;
        self.add_groups(spec);
        self.hooks.iter().try_for_each(|hook| hook.add(spec))
    }

    /// A container without one of them would run, and its device would not work.
    fn refuse_unsupported(&self, abilities: SpecAbilities) -> Result<(), CdiError> {
        let rows = [
            (!self.net_devices.is_empty(), "interfaces of the node", "they stay in its network"),
            (self.intel_rdt.is_some(), "classes of Intel RDT", "the runtime assigns none"),
            (
                !self.hooks.is_empty() && !abilities.hooks,
                "hooks",
                "the runtime of the default handler runs none; use a RuntimeClass whose handler is an OCI runtime such as runc (--runtime-handler)",
            ),
        ];
        match rows.into_iter().find(|(is_wanted, ..)| *is_wanted) {
            Some((_, what, why)) => Err(CdiError::Unsupported { what, why }),
            None => Ok(()),
        }
    }

    fn add_environment(&self, spec: &mut Spec) {
        let Some(process) = spec.process_mut() else { return };
        let mut env = process.env().clone().unwrap_or_default();
        for entry in &self.env {
            let name = |entry: &str| entry.split('=').next().unwrap_or_default().to_owned();
            env.retain(|known| name(known) != name(entry));
            env.push(entry.clone());
        }
        process.set_env(Some(env));
    }

    /// What is mounted below another mount comes after it.
    fn add_mounts(&self, spec: &mut Spec) -> Result<(), CdiError> {
        if self.mounts.is_empty() {
            return Ok(());
        }
        let mut mounts = spec.mounts().clone().unwrap_or_default();
        for mount in &self.mounts {
            mounts.retain(|known| *known.destination() != mount.container_path);
            mounts.push(mount.built()?);
        }
        mounts.sort_by_key(|mount| mount.destination().components().count());
        spec.set_mounts(Some(mounts));
        Ok(())
    }

    fn add_groups(&self, spec: &mut Spec) {
        let Some(process) = spec.process_mut() else { return };
        let mut user = process.user().clone();
        let mut groups = user.additional_gids().clone().unwrap_or_default();
        for group in self.additional_gids.iter().filter(|group| **group != 0) {
            if !groups.contains(group) {
                groups.push(*group);
            }
        }
        user.set_additional_gids(Some(groups));
        process.set_user(user);
    }
}

impl CdiMount {
    fn built(&self) -> Result<Mount, CdiError> {
        let mut options = self.options.clone();
        let is_bind = |option: &String| option == "bind" || option == "rbind";
        let kind = self.r#type.clone().filter(|kind| !kind.is_empty());
        let is_bound = kind.as_deref().is_none_or(|kind| kind == "bind" || kind == "none");
        if is_bound && !options.iter().any(is_bind) {
            options.push("rbind".to_owned());
        }
        let mount = MountBuilder::default().destination(&self.container_path);
        let mount = mount.source(&self.host_path).options(options);
        Ok(mount.typ(kind.unwrap_or_else(|| "bind".to_owned())).build()?)
    }
}

impl DeviceNode {
    fn add(&self, spec: &mut Spec, lookup: &NodeLookup) -> Result<(), CdiError> {
        let owner = spec.process().as_ref().map(|process| process.user().clone());
        let owner = owner.map_or((0, 0), |user| (user.uid(), user.gid()));
        let device = self.built(owner, lookup)?;
        let Some(linux) = spec.linux_mut() else { return Ok(()) };
        let mut devices = linux.devices().clone().unwrap_or_default();
        devices.retain(|known| known.path() != device.path());
        let rule = LinuxDeviceCgroupBuilder::default().allow(true).typ(device.typ());
        let access = self.permissions.clone().filter(|it| !it.is_empty());
        let rule = rule.major(device.major()).minor(device.minor());
        let rule = rule.access(access.unwrap_or_else(|| "rwm".to_owned())).build()?;
        let has_rule = matches!(device.typ(), LinuxDeviceType::B | LinuxDeviceType::C);
        devices.push(device);
        linux.set_devices(Some(devices));
        let mut resources = linux.resources().clone().unwrap_or_default();
        let mut rules = resources.devices().clone().unwrap_or_default();
        rules.extend(has_rule.then_some(rule));
        resources.set_devices(Some(rules));
        linux.set_resources(Some(resources));
        Ok(())
    }

    /// What the file leaves out is as on the node. A process that is not root owns the device unless the file gives it to another.
    fn built(&self, (uid, gid): (u32, u32), lookup: &NodeLookup) -> Result<LinuxDevice, CdiError> {
        let path = self.host_path.as_ref().unwrap_or(&self.path);
        let refused = |why: String| CdiError::Node { path: path.clone(), why };
        let kind = self.r#type.as_deref().filter(|kind| !kind.is_empty());
        let kind = kind
            .map(|kind| kind_of(kind).ok_or_else(|| refused(format!("there is no type {kind:?}"))));
        let kind = kind.transpose()?;
        let node = match (kind, self.major, self.minor) {
            (Some(kind), Some(major), Some(minor)) => HostNode { kind, major, minor, mode: 0o666 },
            (kind, major, minor) => {
                let node = (lookup.0)(path).map_err(|error| refused(error.to_string()))?;
                if kind.is_some_and(|kind| kind != node.kind) {
                    return Err(refused("it is of another type on this node".to_owned()));
                }
                let (major, minor) = (major.unwrap_or(node.major), minor.unwrap_or(node.minor));
                HostNode { major, minor, ..node }
            }
        };
        let device = LinuxDeviceBuilder::default().path(&self.path).typ(node.kind);
        let device = device.major(node.major).minor(node.minor);
        let device = device.file_mode(self.file_mode.unwrap_or(node.mode) & 0o7777);
        let device = device.uid(self.uid.unwrap_or(uid)).gid(self.gid.unwrap_or(gid));
        Ok(device.build()?)
    }
}

fn kind_of(kind: &str) -> Option<LinuxDeviceType> {
    match kind {
        "b" => Some(LinuxDeviceType::B),
        "c" | "u" => Some(LinuxDeviceType::C),
        "p" => Some(LinuxDeviceType::P),
        _ => None,
    }
}

impl CdiHook {
    fn add(&self, spec: &mut Spec) -> Result<(), CdiError> {
        let hook = HookBuilder::default().path(&self.path).args(self.args.clone());
        let hook = hook.env(self.env.clone());
        let hook = match self.timeout {
            Some(seconds) => hook.timeout(seconds),
            None => hook,
        };
        let mut hooks = spec.hooks().clone().unwrap_or_default();
        self.join(&mut hooks, &hook.build()?)?;
        spec.set_hooks(Some(hooks));
        Ok(())
    }

    fn join(&self, hooks: &mut Hooks, hook: &Hook) -> Result<(), CdiError> {
        let with = |known: &Option<Vec<Hook>>| {
            let known = known.iter().flatten().cloned();
            Some(known.chain([hook.clone()]).collect::<Vec<_>>())
        };
        match self.hook_name.as_str() {
            "prestart" => hooks.set_prestart(with(hooks.prestart())),
            "createRuntime" => hooks.set_create_runtime(with(hooks.create_runtime())),
            "createContainer" => hooks.set_create_container(with(hooks.create_container())),
            "startContainer" => hooks.set_start_container(with(hooks.start_container())),
            "poststart" => hooks.set_poststart(with(hooks.poststart())),
            "poststop" => hooks.set_poststop(with(hooks.poststop())),
            _ => {
                let (what, why) = ("a hook", "there is no hook of that name");
                return Err(CdiError::Unsupported { what, why });
            }
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use oci_spec::runtime::{LinuxBuilder, ProcessBuilder, SpecBuilder, UserBuilder};
    use serde_json::json;

    use super::*;

    const NONE: SpecAbilities = SpecAbilities { hooks: false };

    fn lookup() -> NodeLookup {
        NodeLookup(|path| match path.to_str() {
            Some("/dev/host0") => {
                Ok(HostNode { kind: LinuxDeviceType::C, major: 195, minor: 7, mode: 0o660 })
            }
            _ => Err(io::ErrorKind::NotFound.into()),
        })
    }

    fn spec(uid: u32) -> Spec {
        let user = UserBuilder::default().uid(uid).gid(uid).additional_gids([7_u32]).build();
        let process = ProcessBuilder::default()
            .user(user.unwrap())
            .env(["PATH=/bin".to_owned(), "A=1".to_owned()])
            .build();
        let mount = |path: &str| MountBuilder::default().destination(path).build().unwrap();
        SpecBuilder::default()
            .process(process.unwrap())
            .mounts([mount("/dev"), mount("/data/deep/er")])
            .linux(LinuxBuilder::default().devices(Vec::new()).build().unwrap())
            .build()
            .unwrap()
    }

    fn edits(value: Value) -> ContainerEdits {
        serde_json::from_value(value).unwrap()
    }

    fn applied(value: Value, uid: u32) -> Spec {
        let mut spec = spec(uid);
        edits(value).apply(&mut spec, NONE, &lookup()).unwrap();
        spec
    }

    #[test]
    fn variables_replace_those_of_the_same_name() {
        let spec = applied(json!({ "env": ["A=2", "B=x=y"] }), 0);
        let env = spec.process().as_ref().unwrap().env().clone().unwrap();
        assert_eq!(env, ["PATH=/bin", "A=2", "B=x=y"]);
    }

    #[test]
    fn a_device_is_as_on_the_node_unless_the_file_says_otherwise() {
        let rows = [
            (json!({ "path": "/dev/x", "hostPath": "/dev/host0" }), 0, (195, 7, 0o660, 0, "rwm")),
            (json!({ "path": "/dev/host0" }), 1000, (195, 7, 0o660, 1000, "rwm")),
            (
                json!({ "path": "/dev/host0", "minor": 9, "fileMode": 438, "uid": 5, "permissions": "r" }),
                1000,
                (195, 9, 0o666, 5, "r"),
            ),
            (
                json!({ "path": "/dev/none", "type": "c", "major": 1, "minor": 3 }),
                0,
                (1, 3, 0o666, 0, "rwm"),
            ),
        ];
        for (node, uid, (major, minor, mode, owner, access)) in rows {
            let spec = applied(json!({ "deviceNodes": [node.clone(), node] }), uid);
            let linux = spec.linux().as_ref().unwrap();
            let devices = linux.devices().clone().unwrap();
            assert_eq!(devices.len(), 1, "the second replaces the first");
            let device = &devices[0];
            assert_eq!((device.major(), device.minor()), (major, minor));
            assert_eq!((device.file_mode(), device.uid()), (Some(mode), Some(owner)));
            let rules = linux.resources().as_ref().unwrap().devices().clone().unwrap();
            assert_eq!(rules[0].access().as_deref(), Some(access));
            assert!(rules[0].allow());
        }
    }

    #[test]
    fn a_device_that_the_node_does_not_have_is_named() {
        for node in [
            json!({ "path": "/dev/none" }),
            json!({ "path": "/dev/host0", "type": "b" }),
            json!({ "path": "/dev/host0", "type": "x" }),
        ] {
            let edits = edits(json!({ "deviceNodes": [node] }));
            let told = edits.apply(&mut spec(0), NONE, &lookup()).unwrap_err().to_string();
            assert!(told.contains("the device /dev/"), "{told}");
        }
    }

    #[test]
    fn mounts_come_after_those_that_they_are_below_of() {
        let mounts = json!([
            { "hostPath": "/usr/lib/v.so", "containerPath": "/data/deep", "options": ["ro", "nosuid", "bind"] },
            { "hostPath": "/srv", "containerPath": "/dev" },
        ]);
        let spec = applied(json!({ "mounts": mounts }), 0);
        let mounts = spec.mounts().clone().unwrap();
        let shown: Vec<_> = mounts.iter().map(|it| it.destination().to_str().unwrap()).collect();
        assert_eq!(shown, ["/dev", "/data/deep", "/data/deep/er"]);
        assert_eq!(mounts[0].source().as_deref(), Some(Path::new("/srv")));
        assert_eq!(mounts[0].options().as_ref().unwrap(), &["rbind"]);
        assert_eq!(mounts[1].options().as_ref().unwrap(), &["ro", "nosuid", "bind"]);
    }

    #[test]
    fn groups_are_added_once() {
        let spec = applied(json!({ "additionalGids": [7, 0, 44, 44] }), 0);
        let user = spec.process().as_ref().unwrap().user().clone();
        assert_eq!(user.additional_gids().as_deref(), Some(&[7, 44][..]));
    }

    #[test]
    fn hooks_are_for_runtimes_that_run_them_and_others_are_refused_with_the_way_out() {
        let hook = json!({ "hookName": "createContainer", "path": "/usr/bin/hook", "args": ["hook", "x"], "timeout": 3 });
        let edits = edits(json!({ "hooks": [hook] }));
        let told = edits.apply(&mut spec(0), NONE, &lookup()).unwrap_err().to_string();
        assert!(told.contains("want hooks") && told.contains("--runtime-handler"), "{told}");
        let mut changed = spec(0);
        edits.apply(&mut changed, SpecAbilities { hooks: true }, &lookup()).unwrap();
        let hooks = changed.hooks().clone().unwrap().create_container().clone().unwrap();
        assert_eq!(
            (hooks[0].path().as_path(), hooks[0].timeout()),
            (Path::new("/usr/bin/hook"), Some(3))
        );
    }

    #[test]
    fn what_a_container_would_miss_is_refused() {
        for value in [
            json!({ "netDevices": [{ "hostInterfaceName": "eth1", "name": "eth0" }] }),
            json!({ "intelRdt": { "closID": "a" } }),
            json!({ "hooks": [{ "hookName": "someday", "path": "/x" }] }),
        ] {
            let abilities = SpecAbilities { hooks: true };
            let done = edits(value.clone()).apply(&mut spec(0), abilities, &lookup());
            assert!(matches!(done, Err(CdiError::Unsupported { .. })), "{value}: {done:?}");
        }
    }
}
