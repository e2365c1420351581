//! What a container's process is and may do.

use libtest_mimic::Trial;
use oci_spec::runtime::Capabilities;
use serde_json::{Value, json};

use crate::pod::{CAPABILITIES, Pod, case, process};

pub(crate) fn cases() -> Vec<Trial> {
    vec![
        case("root_has_the_capabilities_that_were_asked_for", root_capabilities),
        case("another_user_has_its_groups_and_no_capabilities", another_user),
        case("ambient_capabilities_reach_the_program", ambient),
        case("what_we_do_not_hold_is_left_out", not_held),
        case("the_default_profile_forbids_what_it_should", default_profile),
        case("a_profile_comes_first_without_no_new_privs_and_last_with_it", profile_order),
        case("a_localhost_profile_gives_its_errors", localhost_profile),
        case("masked_and_read_only_paths_are_so", paths),
        case("our_program_cannot_be_written_from_a_container", own_program),
        case("the_environment_and_directory_are_those_of_the_spec", environment),
    ]
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap_or_else(|| panic!("{name} in {status}"));
    line.trim_start_matches(':').trim()
}

async fn status(
    pod: &Pod,
    id: &str,
    change: impl FnOnce(crate::pod::Builder) -> crate::pod::Builder,
) -> String {
    pod.run(change(pod.container(id, "cat /proc/self/status"))).await;
    let exit = pod.client.wait(id).await.unwrap();
    assert_eq!(exit.exit_code, 0, "{:?}", pod.lines(id));
    pod.output(id)
}

const CONTAINER_MASK: &str = "00000000a80425fb";

async fn root_capabilities(pod: Pod) {
    let status = status(&pod, "root", |container| container).await;
    for name in ["CapPrm", "CapEff", "CapBnd"] {
        assert_eq!(field(&status, name), CONTAINER_MASK, "{name}");
    }
    for name in ["CapInh", "CapAmb"] {
        assert_eq!(field(&status, name), "0000000000000000", "{name}");
    }
    assert_eq!((field(&status, "NoNewPrivs"), field(&status, "Seccomp")), ("0", "0"));
    assert_eq!(field(&status, "Groups"), "");
    pod.close().await;
}

async fn another_user(pod: Pod) {
    let user = json!({"uid": 1000, "gid": 1001, "additionalGids": [5, 600], "umask": 63});
    let status = status(&pod, "user", |container| {
        container.with("/process/user", user).with("/process/noNewPrivileges", json!(true))
    });
    let status = status.await;
    assert_eq!(field(&status, "Uid"), "1000\t1000\t1000\t1000");
    assert_eq!(field(&status, "Gid"), "1001\t1001\t1001\t1001");
    assert_eq!(field(&status, "Groups"), "5 600");
    assert_eq!(field(&status, "Umask"), "0077");
    for name in ["CapPrm", "CapEff", "CapInh", "CapAmb"] {
        assert_eq!(field(&status, name), "0000000000000000", "{name}");
    }
    assert_eq!(field(&status, "CapBnd"), CONTAINER_MASK);
    assert_eq!(field(&status, "NoNewPrivs"), "1");
    // Its stdout can be opened anew, which needs to be its own.
    let user = json!({"uid": 1000, "gid": 1001});
    pod.run(pod.container("again", "echo again > /proc/self/fd/1").with("/process/user", user))
        .await;
    assert_eq!(pod.client.wait("again").await.unwrap().exit_code, 0, "{:?}", pod.lines("again"));
    assert_eq!(pod.output("again"), "again\n");
    pod.close().await;
}

async fn ambient(pod: Pod) {
    let set = json!(["CAP_NET_BIND_SERVICE"]);
    let all = json!({"bounding": set, "effective": set, "permitted": set, "inheritable": set, "ambient": set});
    let status = status(&pod, "ambient", |container| {
        container
            .with("/process/user", json!({"uid": 1000, "gid": 1000}))
            .with("/process/capabilities", all)
    });
    let status = status.await;
    for name in ["CapPrm", "CapEff", "CapInh", "CapAmb", "CapBnd"] {
        assert_eq!(field(&status, name), "0000000000000400", "{name}");
    }
    pod.close().await;
}

async fn not_held(pod: Pod) {
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let own = field(&own, "CapBnd");
    let all: Vec<String> = serde_json::from_value::<Vec<Value>>(all_capabilities())
        .unwrap()
        .iter()
        .map(|c| c.as_str().unwrap().to_owned())
        .collect();
    let set = json!(all);
    let limits = json!([{"type": "RLIMIT_NOFILE", "hard": 1_048_576, "soft": 1_048_576}]);
    let container =
        pod.container("all", "cat /proc/self/status /proc/self/oom_score_adj; ulimit -n");
    let container = container.with(
        "/process/capabilities",
        json!({"bounding": set, "effective": set, "permitted": set}),
    );
    let container =
        container.with("/process/oomScoreAdj", json!(-998)).with("/process/rlimits", limits);
    pod.run(container).await;
    let exit = pod.client.wait("all").await.unwrap();
    let output = pod.output("all");
    assert_eq!(exit.exit_code, 0, "{:?}", pod.lines("all"));
    assert_eq!(field(&output, "CapEff"), own);
    let may_lower = u64::from_str_radix(own, 16).unwrap() & (1 << 24) != 0;
    let mine = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    let lines: Vec<&str> = output.lines().rev().take(2).collect();
    assert_eq!(lines[1], if may_lower { "-998" } else { mine.trim() });
    if !may_lower {
        let hard = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.unwrap();
        assert_eq!(lines[0], hard.to_string());
    }
    pod.run(
        pod.container("higher", "cat /proc/self/oom_score_adj")
            .with("/process/oomScoreAdj", json!(777)),
    )
    .await;
    pod.client.wait("higher").await.unwrap();
    assert_eq!(pod.output("higher"), "777\n");
    pod.close().await;
}

fn all_capabilities() -> Value {
    let names: Capabilities = (0..=40).filter_map(capability).collect();
    serde_json::to_value(names).unwrap()
}

fn capability(number: u32) -> Option<oci_spec::runtime::Capability> {
    let set = rustix::thread::CapabilitySet::from_bits_retain(1 << number);
    set.iter_names().next()?.0.parse().ok()
}

fn default_seccomp() -> Value {
    let bounding: Capabilities =
        CAPABILITIES.iter().map(|name| name.trim_start_matches("CAP_").parse().unwrap()).collect();
    serde_json::to_value(oarsman_shim::seccomp::runtime_default(&bounding, (6, 1)).unwrap())
        .unwrap()
}

async fn default_profile(pod: Pod) {
    let script = "for what in 'mkdir /tmp/x' 'chroot / true' 'unshare -U true' 'mount -t tmpfs x /tmp'; do \
                  if $what 2>/tmp/error; then echo $what: ok; else echo $what: $(sed 's/.*: //' /tmp/error); fi; done; grep Seccomp: /proc/self/status";
    pod.run(pod.container("free", script)).await;
    pod.client.wait("free").await.unwrap();
    let free = pod.output("free");
    assert!(free.contains("unshare -U true: ok") && free.contains("Seccomp:\t0"), "{free}");
    pod.run(
        pod.container("bound", &script.replace("/tmp/x", "/tmp/y"))
            .with("/linux/seccomp", default_seccomp()),
    )
    .await;
    pod.client.wait("bound").await.unwrap();
    let expected = "mkdir /tmp/y: ok\nchroot / true: ok\nunshare -U true: Operation not permitted\n\
                    mount -t tmpfs x /tmp: Operation not permitted\nSeccomp:\t2\n";
    let bound = pod.output("bound").replace(
        "mount -t tmpfs x /tmp: permission denied (are you root?)",
        "mount -t tmpfs x /tmp: Operation not permitted",
    );
    assert_eq!(bound, expected, "{:?}", pod.lines("bound"));
    // An exec has it, too.
    pod.run(pod.container("target", "sleep 1000").with("/linux/seccomp", default_seccomp())).await;
    let output = pod
        .client
        .exec_sync("target", process("unshare -U true; grep Seccomp: /proc/self/status"), None)
        .await
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Seccomp:\t2\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("Operation not permitted"));
    pod.close().await;
}

/// Forbids what the executor itself has to do before the program runs.
fn forbids_changes_of_user() -> Value {
    json!({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["setgroups", "setresuid", "setresgid", "capset"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95},
    ]})
}

async fn profile_order(pod: Pod) {
    let container = |id: &str, no_new_privs: bool| {
        let container = pod.container(id, "grep -E 'Uid|NoNew|Seccomp:' /proc/self/status");
        let container = container.with("/linux/seccomp", forbids_changes_of_user());
        container
            .with("/process/noNewPrivileges", json!(no_new_privs))
            .with("/process/user", json!({"uid": 1000, "gid": 1000}))
    };
    pod.run(container("last", true)).await;
    assert_eq!(pod.client.wait("last").await.unwrap().exit_code, 0, "{:?}", pod.lines("last"));
    assert_eq!(pod.output("last"), "Uid:\t1000\t1000\t1000\t1000\nNoNewPrivs:\t1\nSeccomp:\t2\n");
    // Without it, the filter is there first, and the change of user is what it forbids.
    pod.run(container("first", false)).await;
    let exit = pod.client.wait("first").await.unwrap();
    let lines = pod.lines("first");
    assert_ne!(exit.exit_code, 0);
    assert!(
        lines.iter().any(|line| line.contains("cannot give up privileges") && line.contains("95")),
        "{lines:?}"
    );
    // And without no_new_privs a user without rights still gets its filter.
    let user = json!({"uid": 1000, "gid": 1000});
    pod.run(
        pod.container("default", "grep -E 'NoNew|Seccomp:' /proc/self/status")
            .with("/linux/seccomp", default_seccomp())
            .with("/process/user", user),
    )
    .await;
    pod.client.wait("default").await.unwrap();
    assert_eq!(
        pod.output("default"),
        "NoNewPrivs:\t0\nSeccomp:\t2\n",
        "{:?}",
        pod.lines("default")
    );
    pod.close().await;
}

async fn localhost_profile(pod: Pod) {
    let text = r#"{"defaultAction":"SCMP_ACT_ALLOW","architectures":["SCMP_ARCH_X86_64","SCMP_ARCH_X86","SCMP_ARCH_X32"],
        "syscalls":[{"names":["mkdir","mkdirat"],"action":"SCMP_ACT_ERRNO","errnoRet":28},
                    {"names":["sethostname"],"action":"SCMP_ACT_KILL_PROCESS"},
                    {"names":["kill"],"action":"SCMP_ACT_ERRNO","errnoRet":1,"args":[{"index":1,"value":10,"op":"SCMP_CMP_EQ"}]}]}"#;
    let profile =
        serde_json::to_value(oarsman_shim::seccomp::parse(text.as_bytes()).unwrap()).unwrap();
    let script = "mkdir /tmp/x; kill -10 $$; kill -0 $$ && echo alive; hostname x; echo $?";
    pod.run(pod.container("one", script).with("/linux/seccomp", profile)).await;
    pod.client.wait("one").await.unwrap();
    let lines = pod.lines("one").join("\n");
    assert!(lines.contains("No space left on device"), "{lines}");
    assert!(lines.contains("Operation not permitted"), "{lines}");
    assert!(lines.contains("stdout F alive"), "{lines}");
    // 128 and SIGSYS.
    assert!(lines.contains("stdout F 159"), "{lines}");
    let notify = json!({"defaultAction": "SCMP_ACT_NOTIFY"});
    let error = pod
        .client
        .create(pod.container("two", "true").with("/linux/seccomp", notify).request())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("SCMP_ACT_NOTIFY"), "{error}");
    pod.close().await;
}

async fn paths(pod: Pod) {
    let script = "wc -c < /proc/keys; ls /sys/firmware | wc -l; echo x > /proc/sys/kernel/hostname; echo b > /proc/sysrq-trigger; touch /sys/x; hostname";
    pod.run(pod.container("one", script)).await;
    pod.client.wait("one").await.unwrap();
    assert_eq!(pod.output("one"), "0\n0\npod\n", "{:?}", pod.lines("one"));
    let refused =
        pod.lines("one").iter().filter(|line| line.contains("Read-only file system")).count();
    // Not every kernel has the trigger.
    let expected = if std::path::Path::new("/proc/sysrq-trigger").exists() { 3 } else { 2 };
    assert_eq!(refused, expected, "{:?}", pod.lines("one"));
    pod.run(
        pod.container("two", "touch /x; touch /dev/x && echo ok")
            .with("/root/readonly", json!(true)),
    )
    .await;
    pod.client.wait("two").await.unwrap();
    assert!(
        pod.lines("two").iter().any(|line| line.contains("Read-only file system")),
        "{:?}",
        pod.lines("two")
    );
    pod.close().await;
}

/// A container that sees another one's first process before that has executed its program, and may trace it, tries to write to its file.
async fn own_program(pod: Pod) {
    let namespace = json!([{"type": "pid", "path": pod.client.pid_namespace(None).await.unwrap()}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}, {"type": "network"}]);
    let mut set = CAPABILITIES.to_vec();
    set.extend(["CAP_SYS_PTRACE", "CAP_SYS_ADMIN"]);
    let capabilities = json!({"bounding": set, "effective": set, "permitted": set});
    let attacker =
        pod.container("attacker", "sleep 1000").with("/linux/namespaces", namespace.clone());
    pod.run(attacker.with("/process/capabilities", capabilities.clone())).await;
    pod.client
        .create(pod.container("victim", "true").with("/linux/namespaces", namespace).request())
        .await
        .unwrap();
    let script = "for p in /proc/[0-9]*; do case $(readlink $p/exe) in */busybox|'') ;; *) echo found; \
                  dd if=/bin/busybox of=$p/exe conv=notrunc count=1 2>/dev/null && echo written; chmod 777 $p/exe 2>&1;; esac; done";
    let mut attack = serde_json::to_value(process(script)).unwrap();
    attack["capabilities"] = capabilities;
    let output = pod
        .client
        .exec_sync("attacker", serde_json::from_value(attack).unwrap(), None)
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = said.matches("found").count();
    // The first process of the namespace, and that of the container that was not started.
    assert_eq!(found, 2, "{said} {}", String::from_utf8_lossy(&output.stderr));
    assert!(!said.contains("written"), "{said}");
    // As long as the file is executed no process can write to it, wherever it is mounted; that its mode cannot be changed shows what will be then.
    assert_eq!(said.matches("Read-only file system").count(), found, "{said}");
    let flags = rustix::fs::statvfs(format!("/proc/{}/exe", pod.shim)).unwrap().f_flag;
    assert!(flags.contains(rustix::fs::StatVfsMountFlags::RDONLY), "{flags:?}");
    pod.close().await;
}

async fn environment(pod: Pod) {
    let container = pod
        .container("one", "echo $HOME $A $0; pwd; env | wc -l")
        .with("/process/cwd", json!("/tmp"));
    pod.run(container.with("/process/user", json!({"uid": 1000, "gid": 1000}))).await;
    pod.client.wait("one").await.unwrap();
    // PATH, A, HOME, and what a shell adds: PWD, SHLVL.
    assert_eq!(pod.output("one"), "/home 1=2 sh\n/tmp\n5\n", "{:?}", pod.lines("one"));
    pod.close().await;
}
