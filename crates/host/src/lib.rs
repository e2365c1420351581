//! The Linux machine underneath: namespaces, cgroups, mounts, processes; raw system calls live only here.
