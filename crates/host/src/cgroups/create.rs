//! Creates a group and sets its values.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use oarsman_core::resources::CgroupValues;

use super::manager::missing;
use super::values::{self, ControlFileValue};
use super::{CgroupError, CgroupManager, Hierarchy, HierarchyKind, files};

/// What a v1 group of this controller needs before it takes any process.
const CPUSET_FILES: [&str; 2] = ["cpuset.cpus", "cpuset.mems"];

impl CgroupManager {
    /// Makes the root group and what is above it, with all controllers that groups need.
    ///
    /// This alone writes outside of the root: it makes the groups above, and switches controllers
    /// on (never off) in those that are there.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn create_root(&self) -> Result<(), CgroupError> {
        let walk = |hierarchy| self.create_between(hierarchy, Path::new("/"), self.root());
        self.needed.iter().try_for_each(walk)
    }

    /// Makes a group below the root in every hierarchy, and the groups between, and gives it its
    /// values. Writes nothing where all is as it should be.
    ///
    /// # Errors
    /// When the group is not below the root, the root is not there, or the kernel refuses.
    pub fn create(&self, group: &Path, values: &CgroupValues) -> Result<(), CgroupError> {
        self.check_below_root(group)?;
        for hierarchy in &self.needed {
            if !self.is_ready(hierarchy, group) {
                self.create_between(hierarchy, self.root(), group)?;
            }
        }
        self.apply(group, values)
    }

    /// Gives a group below the root its values in every hierarchy.
    ///
    /// # Errors
    /// When the group is not below the root or not there, or the kernel refuses.
    pub fn apply(&self, group: &Path, values: &CgroupValues) -> Result<(), CgroupError> {
        self.check_below_root(group)?;
        self.needed.iter().try_for_each(|hierarchy| {
            files::apply(&hierarchy.directory(group), &self.settings(hierarchy, values))
        })
    }

    fn is_ready(&self, hierarchy: &Hierarchy, group: &Path) -> bool {
        let directory = hierarchy.directory(group);
        let filled = |file| files::read(&directory.join(file)).is_ok_and(|text| !is_blank(&text));
        self.is_in(hierarchy, group)
            && (!controls(hierarchy, "cpuset") || CPUSET_FILES.into_iter().all(filled))
    }

    /// Makes the groups between two, the upper of which is there.
    fn create_between(
        &self,
        hierarchy: &Hierarchy,
        from: &Path,
        to: &Path,
    ) -> Result<(), CgroupError> {
        let mut parent = from.to_owned();
        for name in to.strip_prefix(from).unwrap_or(to) {
            let child = parent.join(name);
            self.step(hierarchy, &parent, &child)?;
            parent = child;
        }
        Ok(())
    }

    fn step(&self, hierarchy: &Hierarchy, parent: &Path, child: &Path) -> Result<(), CgroupError> {
        let (parent, child) = (hierarchy.directory(parent), hierarchy.directory(child));
        if hierarchy.kind == HierarchyKind::V2 {
            self.enable_controllers(&parent)?;
        }
        create(&child)?;
        if controls(hierarchy, "cpuset") {
            CPUSET_FILES
                .iter()
                .try_for_each(|file| inherit(&parent.join(file), &child.join(file)))?;
        }
        Ok(())
    }

    /// In v2 the children of a group have the controllers that are switched on in it.
    fn enable_controllers(&self, directory: &Path) -> Result<(), CgroupError> {
        let file = directory.join("cgroup.subtree_control");
        let text = files::read(&file)?;
        let missing = missing(&self.controllers, &text);
        if missing.is_empty() {
            return Ok(());
        }
        let wanted: Vec<String> = missing.iter().map(|name| format!("+{name}")).collect();
        files::write(&file, &wanted.join(" "))
    }

    fn settings(&self, hierarchy: &Hierarchy, values: &CgroupValues) -> Vec<ControlFileValue> {
        match &hierarchy.kind {
            HierarchyKind::V1(names) => {
                names.iter().flat_map(|name| values::v1(name, values)).collect()
            }
            HierarchyKind::V2 => {
                self.controllers.iter().flat_map(|name| values::v2(name, values)).collect()
            }
        }
    }
}

fn controls(hierarchy: &Hierarchy, controller: &str) -> bool {
    matches!(&hierarchy.kind, HierarchyKind::V1(names) if names.iter().any(|name| name == controller))
}

fn create(directory: &Path) -> Result<(), CgroupError> {
    match fs::create_dir(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(source) => Err(CgroupError::Create { directory: PathBuf::from(directory), source }),
        Ok(()) => Ok(()),
    }
}

/// A v1 cpuset starts empty and takes no process until it is filled.
fn inherit(from: &Path, to: &Path) -> Result<(), CgroupError> {
    if is_blank(&files::read(to)?) {
        files::write(to, files::read(from)?.trim())?;
    }
    Ok(())
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
