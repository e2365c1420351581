//! The profile `RuntimeDefault`, with the meaning of containerd 2.4's.

use oci_spec::OciSpecError;
use oci_spec::runtime::{
    Arch, Capabilities, Capability, LinuxSeccomp, LinuxSeccompAction, LinuxSeccompArg,
    LinuxSeccompArgBuilder, LinuxSeccompBuilder, LinuxSeccompOperator, LinuxSyscall,
    LinuxSyscallBuilder,
};

/// What every container may call.
const ALLOWED: &str = include_str!("allowed.txt");
/// What it may call on this architecture.
const OF_ARCHITECTURE: &str = if cfg!(target_arch = "x86_64") {
    "arch_prctl modify_ldt"
} else {
    "sync_file_range2 cacheflush set_tls"
};
/// This machine's architecture first, and those whose programs it runs, too: for other runtimes, as our own filters know only the first.
const ARCHITECTURES: &[Arch] = if cfg!(target_arch = "x86_64") {
    &[Arch::ScmpArchX86_64, Arch::ScmpArchX86, Arch::ScmpArchX32]
} else {
    &[Arch::ScmpArchAarch64, Arch::ScmpArchArm]
};
/// Since 4.8 a filter sees what a tracer makes of a call.
const SINCE_4_8: &str = "process_vm_readv process_vm_writev ptrace";

/// What a container may call in addition for each capability that it can have.
const BY_CAPABILITY: &[(Capability, &str)] = &[
    (Capability::DacReadSearch, "open_by_handle_at"),
    (
        Capability::SysAdmin,
        "bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie mount mount_setattr move_mount open_tree \
         perf_event_open quotactl quotactl_fd setdomainname sethostname setns syslog umount umount2 unshare",
    ),
    (Capability::SysBoot, "reboot"),
    (Capability::SysChroot, "chroot"),
    (Capability::SysModule, "delete_module init_module finit_module"),
    (Capability::SysPacct, "acct"),
    (
        Capability::SysPtrace,
        "kcmp pidfd_getfd process_madvise process_vm_readv process_vm_writev ptrace",
    ),
    (Capability::SysRawio, "iopl ioperm"),
    (Capability::SysTime, "settimeofday stime clock_settime clock_settime64"),
    (Capability::SysTtyConfig, "vhangup"),
    (Capability::SysNice, "get_mempolicy mbind set_mempolicy set_mempolicy_home_node"),
    (Capability::Syslog, "syslog"),
    (Capability::Bpf, "bpf"),
    (Capability::Perfmon, "perf_event_open"),
];

/// The execution domains that may be set: Linux, 32-bit addresses, other names of the kernel, both, and the question which it is.
const PERSONALITIES: [u64; 5] = [0, 0x8, 0x20000, 0x20008, 0xffff_ffff];
/// All address families below this one may be used: AF_ALG is the kernel's cryptography, which no container needs.
const AF_ALG: u64 = 38;
/// And of those above it all but AF_VSOCK (40), by which virtual machines of the host can be reached.
const FAMILIES: [u64; 6] = [39, 41, 42, 43, 44, 45];
/// The flags of clone that make namespaces.
const CLONE_NAMESPACES: u64 =
    0x0002_0000 | 0x0400_0000 | 0x0800_0000 | 0x1000_0000 | 0x2000_0000 | 0x4000_0000 | 0x0200_0000;
const ENOSYS: u32 = 38;

/// The profile for a container with that bounding set on a kernel of that version.
///
/// # Errors
/// Never, as far as the builders of the spec take what they are given.
pub fn runtime_default(
    bounding: &Capabilities,
    kernel: (u32, u32),
) -> Result<LinuxSeccomp, OciSpecError> {
    let mut rules = vec![allow(ALLOWED, &[])?, allow(OF_ARCHITECTURE, &[])?];
    rules.push(allow("socket", &[(0, LinuxSeccompOperator::ScmpCmpLt, AF_ALG, None)])?);
    for family in FAMILIES {
        rules.push(allow("socket", &[(0, LinuxSeccompOperator::ScmpCmpEq, family, None)])?);
    }
    for personality in PERSONALITIES {
        rules.push(allow(
            "personality",
            &[(0, LinuxSeccompOperator::ScmpCmpEq, personality, None)],
        )?);
    }
    if kernel >= (4, 8) {
        rules.push(allow(SINCE_4_8, &[])?);
    }
    for (_, names) in BY_CAPABILITY.iter().filter(|(capability, _)| bounding.contains(capability)) {
        rules.push(allow(names, &[])?);
    }
    if !bounding.contains(&Capability::SysAdmin) {
        rules.push(allow(
            "clone",
            &[(0, LinuxSeccompOperator::ScmpCmpMaskedEq, CLONE_NAMESPACES, Some(0))],
        )?);
        // A C library that gets EPERM from clone3 gives up; with ENOSYS it takes clone, whose flags a filter can see.
        let rule = LinuxSyscallBuilder::default().names(["clone3".to_owned()]);
        rules.push(rule.action(LinuxSeccompAction::ScmpActErrno).errno_ret(ENOSYS).build()?);
    }
    let profile = LinuxSeccompBuilder::default().default_action(LinuxSeccompAction::ScmpActErrno);
    profile.architectures(ARCHITECTURES).syscalls(rules).build()
}

type WantedArgument = (usize, LinuxSeccompOperator, u64, Option<u64>);

fn allow(names: &str, arguments: &[WantedArgument]) -> Result<LinuxSyscall, OciSpecError> {
    let names: Vec<String> = names.split_ascii_whitespace().map(str::to_owned).collect();
    let arguments = arguments.iter().map(argument).collect::<Result<Vec<_>, _>>()?;
    LinuxSyscallBuilder::default()
        .names(names)
        .action(LinuxSeccompAction::ScmpActAllow)
        .args(arguments)
        .build()
}

fn argument(&(index, op, value, second): &WantedArgument) -> Result<LinuxSeccompArg, OciSpecError> {
    let argument = LinuxSeccompArgBuilder::default().index(index).op(op).value(value);
    match second {
        Some(second) => argument.value_two(second).build(),
        None => argument.build(),
    }
}
