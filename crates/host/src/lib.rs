//! The Linux machine underneath: namespaces, cgroups, mounts, processes, files; raw system calls live only here.
//!
//! What the kernel tells as text is read by pure parsers that take the text, so that the trees of
//! other machines can be tested on this one. Beside each parser stands the short function that
//! reads this machine's own text.

pub mod beneath;
pub mod blocking;
pub mod cgroups;
mod descriptor_reserve;
pub mod disk_usage;
pub mod files;
pub mod fork;
pub mod group_ownership;
pub mod host_info;
pub mod hugepages;
pub mod inherited_descriptors;
pub mod inotify;
pub mod keyring;
pub mod mount_trees;
pub mod mounts;
pub mod namespaces;
pub mod own_process;
pub mod pod_cgroups;
pub mod process_title;
pub mod processes;
pub mod read_only_file;
pub mod seccomp;
pub mod stats;
pub mod thread_namespaces;
pub mod tree;
pub mod volume_part;
