//! Profiles and the filters that they become.

use oci_spec::runtime::{Capabilities, Capability};

use super::*;

fn profile(json: &str) -> LinuxSeccomp {
    parse(json.as_bytes()).unwrap()
}

#[test]
fn the_default_profile_is_two_filters() {
    let default = runtime_default(&Capabilities::new(), (6, 1)).unwrap();
    // One for clone3, which does not exist, and one for all that is not allowed.
    assert_eq!(compile(&default).unwrap().0.len(), 2);
    let all = Capabilities::from([Capability::SysAdmin]);
    assert_eq!(compile(&runtime_default(&all, (6, 1)).unwrap()).unwrap().0.len(), 1);
}

#[test]
fn calls_of_the_default_profile_are_known_here() {
    // Those of 32-bit machines, and of other architectures, have no number on this one.
    let default = runtime_default(&Capabilities::new(), (6, 1)).unwrap();
    let names: Vec<&String> =
        default.syscalls().iter().flatten().flat_map(LinuxSyscall::names).collect();
    let unknown: Vec<_> = names.iter().filter(|name| numbers::of(name).is_none()).collect();
    for name in unknown {
        let is_old =
            ["32", "64", "_time64", "_llseek", "_newselect"].iter().any(|end| name.ends_with(end));
        let others = [
            "ipc",
            "mmap2",
            "recv",
            "send",
            "sigprocmask",
            "sigreturn",
            "socketcall",
            "ugetrlimit",
            "waitpid",
        ];
        assert!(
            is_old || others.contains(&name.as_str()) || cfg!(not(target_arch = "x86_64")),
            "{name}"
        );
    }
}

#[test]
fn what_filters_cannot_do_is_refused_with_its_reason() {
    for (json, said) in [
        (r#"{"defaultAction":"SCMP_ACT_NOTIFY"}"#, "SCMP_ACT_NOTIFY"),
        (r#"{"defaultAction":"SCMP_ACT_ALLOW","flags":["SECCOMP_FILTER_FLAG_LOG"]}"#, "flags"),
        (
            r#"{"defaultAction":"SCMP_ACT_ALLOW","architectures":["SCMP_ARCH_S390X"]}"#,
            "architectures",
        ),
        (r#"{"defaultAction":"SCMP_ACT_ALLOW","listenerPath":"/x"}"#, "listenerPath"),
    ] {
        let error = compile(&profile(json)).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    assert!(parse(b"{").is_err());
}

#[test]
fn profiles_of_both_kinds_compile() {
    let deny = r#"{"defaultAction":"SCMP_ACT_ALLOW","architectures":["SCMP_ARCH_X86_64","SCMP_ARCH_AARCH64"],
        "syscalls":[{"names":["mkdir","mkdirat","no_such_call"],"action":"SCMP_ACT_ERRNO","errnoRet":13},
                    {"names":["reboot"],"action":"SCMP_ACT_KILL_PROCESS"}]}"#;
    // One for each action, and one against the calls of x32.
    let filters = if cfg!(target_arch = "x86_64") { 3 } else { 2 };
    assert_eq!(compile(&profile(deny)).unwrap().0.len(), filters);
    assert_eq!(compile(&profile(r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#)).unwrap().0.len(), 0);
    let allow = r#"{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":38,
        "syscalls":[{"names":["personality"],"action":"SCMP_ACT_ALLOW","args":[
          {"index":0,"value":0,"op":"SCMP_CMP_EQ"},{"index":0,"value":8,"op":"SCMP_CMP_EQ"}]}]}"#;
    assert_eq!(compile(&profile(allow)).unwrap().0.len(), 1);
}
