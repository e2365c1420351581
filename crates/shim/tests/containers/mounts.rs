//! Files of the host in containers.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};
use serde_json::{Value, json};

use crate::pod::{Builder, CAPABILITIES, Pod, case, process};

pub(crate) fn cases() -> Vec<Trial> {
    vec![
        case("a_mount_is_attached_where_it_is_wanted_and_nowhere_else", attached),
        case("a_mount_comes_before_what_is_masked_and_read_only", masked),
        case("a_recursively_read_only_mount_is_so_with_all_below_it", recursively_read_only),
        case("files_of_proc_are_not_replaced", proc_files),
        case("mounts_propagate_as_they_were_asked_to", propagation),
        case("an_idmapped_mount_shows_other_users", idmapped),
        case("a_user_namespace_has_its_mounts_with_their_users", in_user_namespace),
    ]
}

fn with_mount(mut container: Builder, to: &str, from: &Path, options: &[&str]) -> Builder {
    let mount = json!({"destination": to, "type": "bind", "source": from, "options": options});
    container.spec["mounts"].as_array_mut().unwrap().push(mount);
    container
}

/// A directory of the host that only root may enter, with a file in it.
fn directory(pod: &Pod, name: &str) -> PathBuf {
    let closed = pod.files.path().join(name);
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let path = closed.join("volume");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(path.join("file"), name).unwrap();
    path
}

async fn attached(pod: Pod) {
    let (data, other) = (directory(&pod, "data"), directory(&pod, "other"));
    let log = pod.files.path().join("termination-log");
    fs::write(&log, "").unwrap();
    // A link of the image leads to a directory of the image, wherever it seems to lead.
    symlink("/../../tmp/target", pod.root().join("link")).unwrap();
    let script = "pwd; cat file; cat /link/file; echo bye > /dev/termination-log; echo x > /ro/new; \
                  cat /proc/self/cgroup | wc -l; exit 3";
    let container = pod.container("one", script).with("/process/cwd", json!("/data/below/deep"));
    let container = with_mount(container, "/data", &data, &["rbind", "rprivate"]);
    let container = with_mount(container, "/data/below/deep", &other, &["rbind", "rprivate"]);
    let container = with_mount(container, "/link", &other, &["bind", "private"]);
    let container = with_mount(container, "/ro", &other, &["bind", "ro"]);
    pod.run(with_mount(container, "/dev/termination-log", &log, &["bind"])).await;
    let exit = pod.client.wait("one").await.unwrap();
    let lines = pod.lines("one");
    assert_eq!(exit.exit_code, 3, "{lines:?}");
    assert!(pod.output("one").starts_with("/data/below/deep\nother"), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("Read-only file system")), "{lines:?}");
    assert_eq!(fs::read_to_string(&log).unwrap(), "bye\n");
    assert!(pod.root().join("tmp/target").is_dir(), "the link leads into the image");
    assert!(data.join("below/deep").is_dir());
    // What is wrong is an error of the create, and nothing of it is left.
    let fancy = with_mount(pod.container("two", "true"), "/x", &data, &["bind", "fancy"]);
    let error = pod.client.create(fancy.request()).await.unwrap_err();
    assert!(error.to_string().contains("\"fancy\""), "{error}");
    let missing = with_mount(pod.container("two", "true"), "/x", Path::new("/no/such"), &["bind"]);
    let error = pod.client.create(missing.request()).await.unwrap_err();
    assert!(error.to_string().contains("/no/such"), "{error}");
    let outside = pod.container("two", "true").with("/process/cwd", json!("/proc/self/fd/3"));
    pod.client.create(outside.request()).await.unwrap_err();
    pod.close().await;
}

async fn masked(pod: Pod) {
    // The mount brings a second /proc/sys and /sys/firmware; what is masked is masked there, too.
    let script = "echo x > /proc/sys/kernel/hostname; ls /sys/firmware | wc -l; wc -c < /proc/keys; touch /sys/fs/cgroup/x; touch /new";
    let container = with_mount(
        pod.container("one", script),
        "/sys",
        Path::new("/sys"),
        &["rbind", "rslave", "ro", "rro", "nosuid"],
    );
    pod.run(container.with("/root/readonly", json!(true))).await;
    pod.client.wait("one").await.unwrap();
    let lines = pod.lines("one");
    assert_eq!(pod.output("one"), "0\n0\n", "{lines:?}");
    let refused = lines.iter().filter(|line| line.contains("Read-only file system")).count();
    assert_eq!(refused, 3, "{lines:?}");
    pod.close().await;
}

async fn recursively_read_only(pod: Pod) {
    let data = directory(&pod, "data");
    let below = data.join("below");
    fs::create_dir(&below).unwrap();
    mount("tmpfs", &below, "tmpfs", MountFlags::empty(), None).unwrap();
    let script = "for path in top all; do touch /$path/new && echo $path; touch /$path/below/new && echo $path/below; done";
    let container = pod.container("one", script);
    let container = with_mount(container, "/top", &data, &["rbind", "rprivate", "ro"]);
    let container = with_mount(container, "/all", &data, &["rbind", "rprivate", "ro", "rro"]);
    pod.run(container).await;
    pod.client.wait("one").await.unwrap();
    // Without "rro" what is mounted below stays writable, as it does with runc.
    assert_eq!(pod.output("one"), "top/below\n", "{:?}", pod.lines("one"));
    unmount(&below, UnmountFlags::DETACH).unwrap();
    pod.close().await;
}

async fn proc_files(pod: Pod) {
    let file = pod.files.path().join("uptime");
    fs::write(&file, "1 2\n").unwrap();
    let container =
        with_mount(pod.container("good", "cat /proc/uptime"), "/proc/uptime", &file, &["bind"]);
    pod.run(container).await;
    pod.client.wait("good").await.unwrap();
    assert_eq!(pod.output("good"), "1 2\n");
    symlink("/proc/self", pod.root().join("self")).unwrap();
    for path in ["/proc/sys/kernel/core_pattern", "/self/attr/exec", "/proc"] {
        let source = if path == "/proc" { pod.files.path() } else { &file };
        let bad = with_mount(pod.container("bad", "true"), path, source, &["bind"]);
        let error = pod.client.create(bad.request()).await.unwrap_err();
        assert!(error.to_string().contains("over this file of /proc"), "{path}: {error}");
    }
    pod.close().await;
}

fn may_mount(container: Builder) -> Builder {
    let mut set = CAPABILITIES.to_vec();
    set.push("CAP_SYS_ADMIN");
    let set = json!({"bounding": set, "effective": set, "permitted": set});
    container.with("/process/capabilities", set)
}

async fn propagation(pod: Pod) {
    let flags = MountFlags::empty();
    let shared = pod.files.path().join("shared");
    fs::create_dir(&shared).unwrap();
    mount("tmpfs", &shared, "tmpfs", flags, None).unwrap();
    mount_change(&shared, MountPropagationFlags::SHARED).unwrap();
    for name in ["host", "container"] {
        fs::create_dir(shared.join(name)).unwrap();
    }
    let kinds = [("private", "rprivate"), ("slave", "rslave"), ("shared", "rshared")];
    for (id, option) in kinds {
        let container = may_mount(pod.container(id, "sleep 1000"));
        pod.run(with_mount(container, "/data", &shared, &["rbind", option])).await;
    }
    mount("tmpfs", shared.join("host"), "tmpfs", flags, None).unwrap();
    fs::write(shared.join("host/seen"), "").unwrap();
    let count = "ls /data/host | wc -l; mount -t tmpfs x /data/container; ls -d /data/container; touch /data/container/here";
    let mut exec = serde_json::to_value(process(count)).unwrap();
    let mut set = CAPABILITIES.to_vec();
    set.push("CAP_SYS_ADMIN");
    exec["capabilities"] = json!({"bounding": set, "effective": set, "permitted": set});
    for (id, wanted) in [("private", "0"), ("slave", "1"), ("shared", "1")] {
        let exec = serde_json::from_value(exec.clone()).unwrap();
        let output = pod.client.exec_sync(id, exec, None).await.unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said.lines().next(), Some(wanted), "{id}: {said}");
        let reaches_host = shared.join("container/here").exists();
        assert_eq!(reaches_host, id == "shared", "{id}");
    }
    unmount(&shared, UnmountFlags::DETACH).unwrap();
    pod.close().await;
}

fn mappings(mut mount: Value, mapping: &Value) -> Value {
    mount["uidMappings"] = mapping.clone();
    mount["gidMappings"] = mapping.clone();
    mount
}

async fn idmapped(pod: Pod) {
    let data = directory(&pod, "data");
    chown(data.join("file"), Some(7), Some(8)).unwrap();
    let mapping = json!([{"containerID": 0, "hostID": 1000, "size": 100}]);
    let mount =
        json!({"destination": "/data", "type": "bind", "source": data, "options": ["bind"]});
    let mut container =
        pod.container("one", "ls -ln /data/file; touch /data/new; ls -ln /data/new");
    container.spec["mounts"].as_array_mut().unwrap().push(mappings(mount, &mapping));
    pod.run(container.with("/process/user", json!({"uid": 1003, "gid": 1004}))).await;
    pod.client.wait("one").await.unwrap();
    let output = pod.output("one");
    let owners: Vec<Vec<&str>> =
        output.lines().map(|line| line.split_whitespace().skip(2).take(2).collect()).collect();
    assert_eq!(owners, [["1007", "1008"], ["1003", "1004"]], "{:?}", pod.lines("one"));
    let made = fs::metadata(data.join("new")).unwrap();
    assert_eq!((made.uid(), made.gid()), (3, 4));
    // The way to say that a file system cannot do it.
    let mount =
        json!({"destination": "/data", "type": "bind", "source": "/proc", "options": ["rbind"]});
    let mut container = pod.container("two", "true");
    container.spec["mounts"].as_array_mut().unwrap().push(mappings(mount, &mapping));
    let error = pod.client.create(container.request()).await.unwrap_err();
    assert!(error.to_string().contains("cannot map users and groups"), "{error}");
    pod.close().await;
}

async fn in_user_namespace(pod: Pod) {
    let data = directory(&pod, "data");
    let namespaces = json!([{"type": "user"}, {"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}, {"type": "network"}]);
    let mapping = json!([{"containerID": 0, "hostID": 200_000, "size": 65536}]);
    let script = "ls -ln /data/file; touch /data/new; ls -ln /dev/null; wc -c < /proc/keys; echo x > /proc/sys/kernel/hostname; \
                  mkdir /proc/sys/x; touch /written; echo done; sleep 1000";
    let mut container = pod
        .container("one", script)
        .with("/linux/namespaces", namespaces)
        .with("/linux/uidMappings", mapping.clone())
        .with("/linux/gidMappings", mapping.clone());
    let mount =
        json!({"destination": "/data", "type": "bind", "source": data, "options": ["rbind"]});
    container.spec["mounts"].as_array_mut().unwrap().push(mappings(mount, &mapping));
    // Without it the image is nobody's there, which a runtime changes by the mount of the root.
    fs::set_permissions(pod.root(), fs::Permissions::from_mode(0o777)).unwrap();
    pod.run(container).await;
    pod.until_said("one", "done").await;
    let output = pod.output("one");
    let owner = |line: &str| -> Vec<String> {
        line.split_whitespace().skip(2).take(2).map(str::to_owned).collect()
    };
    assert_eq!(
        output.lines().next().map(owner),
        Some(vec!["0".to_owned(), "0".to_owned()]),
        "{output}"
    );
    assert!(output.ends_with("\n0\ndone\n"), "{:?}", pod.lines("one"));
    let made = fs::metadata(data.join("new")).unwrap();
    assert_eq!((made.uid(), made.gid()), (0, 0));
    assert_eq!(fs::metadata(pod.root().join("written")).unwrap().uid(), 200_000);
    // An exec finds the root again, and the streams of both are theirs.
    let exec = pod.client.exec_sync(
        "one",
        process("id -u; echo again > /dev/stdout; cat /data/file"),
        None,
    );
    let output = String::from_utf8(exec.await.unwrap().stdout).unwrap();
    assert_eq!(output, "0\nagain\ndata");
    pod.close().await;
}
