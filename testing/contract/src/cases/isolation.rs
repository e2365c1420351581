//! What a container is told when it reaches for what is not its own: one table for every runtime.
//!
//! Each row is a program of system calls and the error of the last one, 0 for none, in a container with the default seccomp profile and in one
//! without any. The capabilities are the default ones, and paths are masked and read-only as kubelets ask for it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use oarsman_cri::CriError;
use oarsman_cri_types::v1::security_profile::ProfileType;
use oarsman_cri_types::v1::{
    ContainerConfig, ExecSyncRequest, IdMapping, LinuxContainerConfig,
    LinuxContainerSecurityContext, Mount, NamespaceMode, NamespaceOption, SecurityProfile,
    UserNamespace,
};

use super::cases;
use crate::syscalls::CallArgument::{Last, Text, Value};
use crate::syscalls::{SystemCall, program};
use crate::{CaseContext, ContractCase, TestSandbox};

pub(super) fn all() -> Vec<ContractCase> {
    cases![
        what_is_not_a_containers_own_is_refused,
        masked_files_are_empty_and_rights_are_the_default_ones,
        the_parent_of_a_process_in_the_nodes_pid_namespace_cannot_be_traced,
        a_pod_in_a_user_namespace_has_users_of_its_own,
    ]
}

const MASKED: [&str; 6] = [
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/sys/firmware",
];
const READ_ONLY: [&str; 5] =
    ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];
/// Where programs are in a container.
const PROGRAMS: &str = "/programs";

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const ENXIO: i32 = 6;
const ETXTBSY: i32 = 26;
const EROFS: i32 = 30;
const ENOSYS: i32 = 38;

const READ: u64 = 0;
const WRITE: u64 = 1;
const READ_WRITE: u64 = 2;
const MAKE: u64 = 0o101;
const NEW_USER: u64 = 0x1000_0000;
const NEW_MOUNT: u64 = 0x2_0000;

/// A row: a name, the calls, and the errors with the default profile and without any.
struct IsolationRow {
    name: &'static str,
    calls: &'static [SystemCall],
    /// A file of the node without which the row says `ENOENT`.
    needs: Option<&'static str>,
    /// None where the answer depends on what the kernel was built with.
    errors: [Option<i32>; 2],
}

/// Opens a file.
macro_rules! open {
    ($path:literal, $how:expr) => {
        &[SystemCall { number: 2, arguments: &[Text($path), Value($how), Value(0o600)] }]
    };
}

/// One call.
macro_rules! call {
    ($number:literal $(, $argument:expr)*) => {
        &[SystemCall { number: $number, arguments: &[$($argument),*] }]
    };
}

const fn row(name: &'static str, calls: &'static [SystemCall], errors: [i32; 2]) -> IsolationRow {
    IsolationRow { name, calls, needs: None, errors: [Some(errors[0]), Some(errors[1])] }
}

/// What the default profile forbids, and the kernel may not even have.
const fn forbidden(name: &'static str, calls: &'static [SystemCall]) -> IsolationRow {
    IsolationRow { name, calls, needs: None, errors: [Some(EPERM), None] }
}

const fn of_path(
    name: &'static str,
    needs: &'static str,
    calls: &'static [SystemCall],
    error: i32,
) -> IsolationRow {
    IsolationRow { name, calls, needs: Some(needs), errors: [Some(error); 2] }
}

const ROWS: &[IsolationRow] = &[
    row("write-own-program", open!("/proc/1/exe", WRITE), [ETXTBSY; 2]),
    row("write-own-program-by-self", open!("/proc/self/exe", WRITE), [ETXTBSY; 2]),
    of_path("sysrq-trigger", "/proc/sysrq-trigger", open!("/proc/sysrq-trigger", WRITE), EROFS),
    row("core-pattern", open!("/proc/sys/kernel/core_pattern", WRITE), [EROFS; 2]),
    row("hostname-by-proc", open!("/proc/sys/kernel/hostname", WRITE), [EROFS; 2]),
    of_path(
        "irq-affinity",
        "/proc/irq/default_smp_affinity",
        open!("/proc/irq/default_smp_affinity", WRITE),
        EROFS,
    ),
    // Masked by the null device, which opens; the file itself would refuse.
    of_path("kcore", "/proc/kcore", open!("/proc/kcore", READ), 0),
    of_path("firmware", "/sys/firmware", open!("/sys/firmware/new", MAKE), EROFS),
    of_path(
        "uevent-helper",
        "/sys/kernel/uevent_helper",
        open!("/sys/kernel/uevent_helper", WRITE),
        EROFS,
    ),
    row("release-agent", open!("/sys/fs/cgroup/memory/release_agent", WRITE), [ENOENT; 2]),
    of_path(
        "cgroup-v1-limit",
        "/sys/fs/cgroup/memory",
        open!("/sys/fs/cgroup/memory/memory.limit_in_bytes", WRITE),
        EROFS,
    ),
    of_path(
        "cgroup-v1-processes",
        "/sys/fs/cgroup/memory",
        open!("/sys/fs/cgroup/memory/cgroup.procs", WRITE),
        EROFS,
    ),
    of_path(
        "cgroup-v2-processes",
        "/sys/fs/cgroup/cgroup.procs",
        open!("/sys/fs/cgroup/cgroup.procs", WRITE),
        EROFS,
    ),
    row(
        "mount-tmpfs",
        call!(165, Text("x"), Text("/proc"), Text("tmpfs"), Value(0), Value(0)),
        [EPERM; 2],
    ),
    row("unmount-proc", call!(166, Text("/proc"), Value(2)), [EPERM; 2]),
    row("pivot-root", call!(155, Text("/"), Text("/")), [EPERM; 2]),
    row("unshare-mounts", call!(272, Value(NEW_MOUNT)), [EPERM; 2]),
    row("unshare-users", call!(272, Value(NEW_USER)), [EPERM, 0]),
    row(
        "join-namespace",
        &[
            SystemCall { number: 2, arguments: &[Text("/proc/self/ns/net"), Value(READ)] },
            SystemCall { number: 308, arguments: &[Last, Value(0)] },
        ],
        [EPERM; 2],
    ),
    row("clone3", call!(435, Value(0), Value(0)), [ENOSYS, 22]),
    row(
        "session-keyring",
        call!(250, Value(0), Value(0xffff_ffff_ffff_fffd), Value(0)),
        [EPERM, 0],
    ),
    row("add-key", call!(248, Value(0), Value(0), Value(0), Value(0), Value(0)), [EPERM, 14]),
    row("trace-nothing", call!(101, Value(0x4206), Value(0x7fff_fff0), Value(0), Value(0)), [3; 2]),
    row(
        "reboot",
        call!(169, Value(0xfee1_dead), Value(672_274_793), Value(0), Value(0)),
        [EPERM; 2],
    ),
    forbidden("load-module", call!(175, Value(0), Value(0), Value(0))),
    forbidden("bpf", call!(321, Value(0), Value(0), Value(0))),
    forbidden("open-by-handle", call!(304, Value(0), Value(0), Value(0))),
    row("set-clock", call!(227, Value(0), Value(0)), [EPERM, 14]),
    row("swap", call!(167, Text("/script"), Value(0)), [EPERM; 2]),
    row("accounting", call!(163, Value(0)), [EPERM; 2]),
    row("set-hostname", call!(170, Text("x"), Value(1)), [EPERM; 2]),
    row("kernel-log", call!(103, Value(5), Value(0), Value(0)), [EPERM; 2]),
    forbidden("ports", call!(172, Value(3))),
    row("personality", call!(135, Value(0x4_0000)), [EPERM, 0]),
    row("change-root", call!(161, Text("/")), [0; 2]),
    // The node of a disk can be made, and not be opened.
    row("make-disk", call!(133, Text("/disk"), Value(0o060_600), Value(0x0800)), [0; 2]),
    row("open-disk", open!("/disk", READ), [EPERM; 2]),
    row("memory-device", open!("/dev/mem", READ), [ENOENT; 2]),
    row("log-device", open!("/dev/kmsg", READ), [ENOENT; 2]),
    row("kvm-device", open!("/dev/kvm", READ), [ENOENT; 2]),
    row("fuse-device", open!("/dev/fuse", READ), [ENOENT; 2]),
    row("tun-device", open!("/dev/net/tun", READ), [ENOENT; 2]),
    row("console-device", open!("/dev/console", READ), [ENOENT; 2]),
    row("null-device", open!("/dev/null", READ_WRITE), [0; 2]),
    row("zero-device", open!("/dev/zero", READ_WRITE), [0; 2]),
    row("full-device", open!("/dev/full", READ_WRITE), [0; 2]),
    row("random-device", open!("/dev/random", READ), [0; 2]),
    row("urandom-device", open!("/dev/urandom", READ), [0; 2]),
    row("own-terminal", open!("/dev/tty", READ_WRITE), [ENXIO; 2]),
    row("new-terminal", open!("/dev/ptmx", READ_WRITE), [0; 2]),
    row("shared-memory", open!("/dev/shm/new", MAKE), [0; 2]),
    row("message-queue", open!("/dev/mqueue/new", MAKE), [0; 2]),
];

/// Programs for one processor, on a runtime with real containers.
fn require_programs(cx: &CaseContext) -> Result<(), CriError> {
    match cx.harness().has_real_containers() && cfg!(target_arch = "x86_64") {
        true => Ok(()),
        false => Err(CriError::unimplemented("RealContainers")),
    }
}

fn write_programs(cx: &CaseContext, programs: &[(&str, &[SystemCall])]) -> Result<PathBuf> {
    let directory = cx.directory().join("programs");
    fs::create_dir_all(&directory)?;
    for (name, calls) in programs {
        let path = directory.join(name);
        fs::write(&path, program(calls)).with_context(|| path.display().to_string())?;
        fs::set_permissions(&path, Permissions::from_mode(0o755))?;
    }
    Ok(directory)
}

/// A container as kubelets make them, with the programs.
fn container(cx: &CaseContext, profile: ProfileType, programs: Option<&Path>) -> ContainerConfig {
    let owned = |paths: &[&str]| paths.iter().map(|&path| path.to_owned()).collect();
    let mut config = cx.script("main", &["forever"]);
    let namespaces =
        NamespaceOption { pid: NamespaceMode::Container.into(), ..NamespaceOption::default() };
    let context = LinuxContainerSecurityContext {
        namespace_options: Some(namespaces),
        masked_paths: owned(&MASKED),
        readonly_paths: owned(&READ_ONLY),
        seccomp: Some(SecurityProfile {
            profile_type: profile.into(),
            localhost_ref: String::new(),
        }),
        ..LinuxContainerSecurityContext::default()
    };
    config.linux = Some(LinuxContainerConfig {
        security_context: Some(context),
        ..LinuxContainerConfig::default()
    });
    config.mounts.extend(programs.map(|path| Mount {
        container_path: PROGRAMS.to_owned(),
        host_path: path.to_string_lossy().into_owned(),
        readonly: true,
        ..Mount::default()
    }));
    config
}

async fn exit_code(cx: &CaseContext, id: &str, name: &str) -> Result<i32> {
    let cmd = vec![format!("{PROGRAMS}/{name}")];
    let request = ExecSyncRequest { container_id: id.to_owned(), cmd, timeout: 20 };
    Ok(cx.runtime().exec_sync(request).await.with_context(|| name.to_owned())?.exit_code)
}

async fn what_is_not_a_containers_own_is_refused(cx: &CaseContext) -> Result<()> {
    require_programs(cx)?;
    let all: Vec<_> = ROWS.iter().map(|row| (row.name, row.calls)).collect();
    let programs = write_programs(cx, &all)?;
    let mut differing = Vec::new();
    let (own, node) = (NamespaceMode::Pod, NamespaceMode::Node);
    for (column, profile, network) in [
        (0, ProfileType::RuntimeDefault, own),
        (1, ProfileType::Unconfined, own),
        (0, ProfileType::RuntimeDefault, node),
    ] {
        let mut sandbox = cx.sandbox_config();
        if network == node {
            // It has the node's UTS namespace with its network.
            sandbox.hostname.clear();
        }
        let linux = sandbox.linux.get_or_insert_default();
        let context = linux.security_context.get_or_insert_default();
        context.namespace_options.get_or_insert_default().set_network(network);
        let pod = cx.pod_with(sandbox).await?;
        let mut config = container(cx, profile, Some(&programs));
        let linux = config.linux.get_or_insert_default();
        let context = linux.security_context.get_or_insert_default();
        context.namespace_options.get_or_insert_default().set_network(network);
        let id = cx.start(&pod, config).await?;
        for row in ROWS {
            let is_there = row.needs.is_none_or(|path| Path::new(path).exists());
            let Some(error) = row.errors[column] else { continue };
            let wanted = if is_there { error } else { ENOENT };
            let found = exit_code(cx, &id, row.name).await?;
            if found != wanted {
                let name = row.name;
                differing.push(format!(
                    "{name}, {profile:?}, network of {network:?}: {found}, not {wanted}"
                ));
            }
        }
    }
    ensure!(differing.is_empty(), "{}", differing.join("\n"));
    Ok(())
}

async fn output(cx: &CaseContext, id: &str, step: &str) -> Result<String> {
    let cmd = vec!["/script".to_owned(), step.to_owned()];
    let request = ExecSyncRequest { container_id: id.to_owned(), cmd, timeout: 20 };
    Ok(String::from_utf8(cx.runtime().exec_sync(request).await?.stdout)?)
}

async fn masked_files_are_empty_and_rights_are_the_default_ones(cx: &CaseContext) -> Result<()> {
    require_programs(cx)?;
    let pod = cx.pod().await?;
    for (no_new_privs, profile) in
        [(false, ProfileType::RuntimeDefault), (true, ProfileType::Unconfined)]
    {
        let mut config = container(cx, profile, None);
        config.metadata.get_or_insert_default().name = format!("main-{no_new_privs}");
        let linux = config.linux.get_or_insert_default();
        linux.security_context.get_or_insert_default().no_new_privs = no_new_privs;
        let id = cx.start(&pod, config).await?;
        for path in
            ["/proc/keys", "/proc/timer_list"].into_iter().filter(|path| Path::new(path).exists())
        {
            ensure!(output(cx, &id, &format!("cat:{path}")).await?.trim().is_empty(), "{path}");
        }
        let status = output(cx, &id, "cat:/proc/self/status").await?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.map(|rest| rest.trim_start_matches(':').trim().to_owned()).unwrap_or_default()
        };
        for name in ["CapPrm", "CapEff", "CapBnd"] {
            assert_eq!(field(name), "00000000a80425fb", "{name}");
        }
        assert_eq!((field("CapInh"), field("CapAmb")), ("0".repeat(16), "0".repeat(16)));
        assert_eq!(field("NoNewPrivs"), u8::from(no_new_privs).to_string());
        let mode = if profile == ProfileType::Unconfined { "0" } else { "2" };
        assert_eq!(field("Seccomp"), mode);
    }
    Ok(())
}

async fn the_parent_of_a_process_in_the_nodes_pid_namespace_cannot_be_traced(
    cx: &CaseContext,
) -> Result<()> {
    const TRACE_PARENT: &[SystemCall] = &[
        SystemCall { number: 110, arguments: &[] },
        SystemCall { number: 101, arguments: &[Value(0x4206), Last, Value(0), Value(0)] },
    ];
    require_programs(cx)?;
    let programs = write_programs(cx, &[("trace-parent", TRACE_PARENT)])?;
    let mut sandbox = cx.sandbox_config();
    let linux = sandbox.linux.get_or_insert_default();
    let options =
        linux.security_context.get_or_insert_default().namespace_options.get_or_insert_default();
    options.set_pid(NamespaceMode::Node);
    let pod = cx.pod_with(sandbox).await?;
    let mut config = container(cx, ProfileType::Unconfined, Some(&programs));
    let linux = config.linux.get_or_insert_default();
    let options =
        linux.security_context.get_or_insert_default().namespace_options.get_or_insert_default();
    options.set_pid(NamespaceMode::Node);
    let id = cx.start(&pod, config).await?;
    assert_eq!(exit_code(cx, &id, "trace-parent").await?, EPERM);
    Ok(())
}

fn in_user_namespace(options: &mut NamespaceOption) -> IdMapping {
    let mapping = IdMapping { host_id: 1_310_720, container_id: 0, length: 65_536 };
    let mode = NamespaceMode::Pod.into();
    options.userns_options = Some(UserNamespace { mode, uids: vec![mapping], gids: vec![mapping] });
    mapping
}

async fn a_pod_in_a_user_namespace_has_users_of_its_own(cx: &CaseContext) -> Result<()> {
    require_programs(cx)?;
    let mut sandbox = cx.sandbox_config();
    let linux = sandbox.linux.get_or_insert_default();
    linux.sysctls.insert("kernel.shm_rmid_forced".to_owned(), "1".to_owned());
    linux.sysctls.insert("net.core.somaxconn".to_owned(), "77".to_owned());
    let options =
        linux.security_context.get_or_insert_default().namespace_options.get_or_insert_default();
    let mapping = in_user_namespace(options);
    let pod = cx.pod_with(sandbox).await?;
    let id = start_mapped(cx, &pod, mapping).await?;
    let log = cx.until_log(&pod, "main.log", "65536").await?;
    ensure!(log.contains("stdout F 0:0\n") && log.contains("1310720"), "{log}");
    // What is written to a volume belongs to root there, and elsewhere to the pod's own users.
    let written = cx.directory().join("volume/written");
    cx.until_log(&pod, "main.log", "stdout F written").await?;
    let owner = fs::metadata(&written)?;
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&owner), 0);
    for (step, wanted) in [
        ("cat:/proc/sys/kernel/shm_rmid_forced", "1"),
        ("cat:/proc/sys/net/core/somaxconn", "77"),
        ("cat:/etc/hostname", "stage"),
        ("write:/dev/shm/new=x", ""),
        ("id", "0:0"),
    ] {
        assert_eq!(output(cx, &id, step).await?.trim(), wanted, "{step}");
    }
    let status = cx.runtime().pod_sandbox_status(&pod.id).await?;
    let namespaces = status.linux.and_then(|linux| linux.namespaces).and_then(|all| all.options);
    let told = namespaces.and_then(|options| options.userns_options).context("it is told")?;
    assert_eq!((told.mode(), told.uids), (NamespaceMode::Pod, vec![mapping]));
    Ok(())
}

async fn start_mapped(cx: &CaseContext, pod: &TestSandbox, mapping: IdMapping) -> Result<String> {
    let volume = cx.directory().join("volume");
    fs::create_dir_all(&volume)?;
    let mut config = container(cx, ProfileType::RuntimeDefault, None);
    config.args =
        ["id", "cat:/proc/self/uid_map", "write:/volume/written=x", "out:written", "forever"]
            .map(str::to_owned)
            .to_vec();
    let linux = config.linux.get_or_insert_default();
    let options =
        linux.security_context.get_or_insert_default().namespace_options.get_or_insert_default();
    in_user_namespace(options);
    config.mounts.push(Mount {
        container_path: "/volume".to_owned(),
        host_path: volume.to_string_lossy().into_owned(),
        uid_mappings: vec![mapping],
        gid_mappings: vec![mapping],
        ..Mount::default()
    });
    cx.start(pod, config).await
}
