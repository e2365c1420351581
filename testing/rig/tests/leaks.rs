//! The leak check finds resources that are left on purpose, names them, and passes when they are gone.

mod support;

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_host::{cgroups, mounts, namespaces};
use oarsman_rig::leaks::{HostResource, Snapshot};
use oarsman_rig::{Rig, RigOptions, images, namespace};
use support::{Case, MAX_WAIT, TestPod, block_on, until};

const CASES: &[Case] = &[
    ("nothing_left_is_clean", nothing),
    ("a_left_pod_is_caught_with_all_its_parts", pod),
    ("a_left_mount_is_caught", mount),
    ("a_left_cgroup_of_a_pod_is_caught_in_every_hierarchy", cgroup),
    ("a_left_top_level_cgroup_is_caught", top_level_cgroup),
    ("a_left_network_namespace_is_caught_by_its_name", named_network_namespace),
    ("a_left_network_namespace_is_caught_by_its_process", network_namespace_of_process),
    ("a_left_process_is_caught", process),
    ("a_left_link_is_caught", link),
    ("a_left_nftables_table_is_caught", nftables),
    ("a_left_log_of_a_pod_is_caught", pod_log),
    ("a_left_directory_of_a_pod_is_caught_and_the_agents_own_are_not", agents),
    ("what_may_stay_is_no_leak", may_stay),
    ("a_stray_file_is_caught", stray),
    ("a_left_lease_of_an_address_is_caught", lease),
    ("a_left_socket_of_a_shim_is_caught_while_it_is_listened_on", shim_socket),
    ("a_left_snapshot_is_caught", snapshot),
    ("the_report_lists_each_thing_with_its_kind", report),
    ("another_rig_comes_and_goes_without_a_trace", another_rig),
];

fn main() -> ExitCode {
    namespace::run(|| support::run(CASES))
}

/// Makes a resource, checks that it is named, removes it, and checks that the check passes.
fn catches<T>(
    rig: &Rig,
    names: &[&str],
    leave: impl FnOnce() -> Result<T>,
    take_away: impl FnOnce(T) -> Result<()>,
) -> Result<()> {
    block_on(async {
        let snapshot = Snapshot::take(rig).await?;
        let left = leave()?;
        let named = until_named(&snapshot, names).await;
        take_away(left)?;
        named?;
        snapshot.compare_until_clean(MAX_WAIT).await
    })
}

/// Waits until the check reports resources whose descriptions begin with these words.
async fn until_named(snapshot: &Snapshot, names: &[&str]) -> Result<()> {
    for name in names {
        let is_named = async || {
            let leaks = snapshot.leaks().await?;
            Ok(leaks.iter().any(|leak| leak.to_string().starts_with(name)))
        };
        until(&format!("{name} is caught"), is_named).await?;
    }
    Ok(())
}

/// Runs a shell command.
fn sh(command: &str) -> Result<()> {
    let status = Command::new("sh").args(["-c", command]).status()?;
    ensure!(status.success(), "{command}: {status}");
    Ok(())
}

fn nothing(rig: &Rig) -> Result<()> {
    block_on(async { Snapshot::take(rig).await?.compare_until_clean(MAX_WAIT).await })
}

fn pod(rig: &Rig) -> Result<()> {
    block_on(async {
        let snapshot = Snapshot::take(rig).await?;
        let pod = TestPod::start(rig, "left", images::SCRIPT, &["forever"]).await?;
        let group = format!("cgroup {}/left/{}", rig.cgroup_parent(), pod.container);
        let names = [
            &format!("container {}", pod.container),
            &format!("sandbox {}", pod.sandbox),
            &format!("snapshot {}", pod.container),
            &format!("lease {}", pod.sandbox),
            &format!("mount {}/state/", rig.directory().display()),
            &group,
            "network namespace net:[",
            "link veth",
            "nftables rule ip cni_hostport hostports",
            "process ",
            &format!("file {}", rig.pod_logs().join("left").display()),
            &format!("file {}/leases/rig/10.77.", rig.directory().display()),
            "file /var/lib/cni/results/rig-",
        ];
        until_named(&snapshot, &names).await?;
        pod.remove().await?;
        snapshot.compare_until_clean(MAX_WAIT).await
    })
}

fn mount(rig: &Rig) -> Result<()> {
    let point = Path::new("/mnt");
    let leave = || Ok(namespaces::cover_with_empty(point)?);
    catches(rig, &["mount /mnt (tmpfs)"], leave, |()| Ok(namespaces::detach(point)?))
}

fn cgroup(rig: &Rig) -> Result<()> {
    let group = format!("{}/left", rig.cgroup_parent());
    let hierarchies = cgroups::hierarchies(&mounts::current()?);
    block_on(async {
        let snapshot = Snapshot::take(rig).await?;
        hierarchies.iter().try_for_each(|it| it.create(Path::new(&group)))?;
        let leaks = snapshot.leaks().await?;
        hierarchies.iter().try_for_each(|it| it.remove(Path::new(&group)))?;
        let named =
            |leak: &&HostResource| leak.to_string().starts_with(&format!("cgroup {group} ("));
        assert_eq!(leaks.iter().filter(named).count(), hierarchies.len(), "{leaks:?}");
        snapshot.compare_until_clean(MAX_WAIT).await
    })
}

/// In one hierarchy alone, and under a name without the rig's prefix.
fn top_level_cgroup(rig: &Rig) -> Result<()> {
    let group = rig.cgroup_parent().replace("oarsman-rig", "oarsman-left");
    let hierarchy = cgroups::hierarchies(&mounts::current()?).pop().context("no cgroups")?;
    catches(
        rig,
        &[&format!("cgroup {group} (")],
        || Ok(hierarchy.create(Path::new(&group))?),
        |()| Ok(hierarchy.remove(Path::new(&group))?),
    )
}

/// ip makes a mount point of /run/netns on the way, which is a leak of its own.
fn named_network_namespace(rig: &Rig) -> Result<()> {
    let names = ["network namespace net:[", "file /run/netns", "mount /run/netns"];
    let take_away = |()| {
        sh("ip netns delete left")?;
        namespaces::detach(Path::new("/run/netns"))?;
        Ok(fs::remove_dir("/run/netns")?)
    };
    catches(rig, &names, || sh("ip netns add left"), take_away)
}

fn kill(mut child: Child) -> Result<()> {
    child.kill()?;
    child.wait()?;
    Ok(())
}

fn network_namespace_of_process(rig: &Rig) -> Result<()> {
    let leave = || Ok(Command::new("unshare").args(["--net", "sleep", "1000"]).spawn()?);
    let names = ["network namespace net:[", "process "];
    catches(rig, &names, leave, kill)
}

fn process(rig: &Rig) -> Result<()> {
    block_on(async {
        let snapshot = Snapshot::take(rig).await?;
        let child = Command::new("sleep").arg("1000").spawn()?;
        let name = format!("process {} (sleep 1000)", child.id());
        let named = until_named(&snapshot, &[&name]).await;
        kill(child)?;
        named?;
        snapshot.compare_until_clean(MAX_WAIT).await
    })
}

fn link(rig: &Rig) -> Result<()> {
    let leave = || sh("ip link add left type bridge");
    catches(rig, &["link left"], leave, |()| sh("ip link delete left"))
}

fn nftables(rig: &Rig) -> Result<()> {
    let names = ["nftables table inet left", "nftables chain inet left c"];
    let leave = || sh("nft add table inet left && nft add chain inet left c");
    catches(rig, &names, leave, |()| sh("nft delete table inet left"))
}

/// Writes a file, which the check is to report by this path.
fn file(rig: &Rig, path: &Path, named: &Path) -> Result<()> {
    let name = format!("file {}", named.display());
    let leave = || {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        Ok(fs::write(path, "")?)
    };
    let take_away = |()| match path == named {
        true => Ok(fs::remove_file(path)?),
        false => Ok(fs::remove_dir_all(named)?),
    };
    catches(rig, &[&name], leave, take_away)
}

fn pod_log(rig: &Rig) -> Result<()> {
    let pod = rig.pod_logs().join("pod");
    file(rig, &pod.join("main/0.log"), &pod)
}

fn agents(rig: &Rig) -> Result<()> {
    let root = rig.agents().join("one");
    fs::create_dir_all(root.join("pods"))?;
    fs::write(root.join("lock"), "")?;
    let pod = root.join("pods/uid");
    file(rig, &pod.join("volumes/a"), &pod)?;
    block_on(async {
        let snapshot = Snapshot::take(rig).await?;
        fs::create_dir(root.join("records"))?;
        assert_eq!(snapshot.leaks().await?, []);
        Ok(fs::remove_dir_all(root)?)
    })
}

fn may_stay(rig: &Rig) -> Result<()> {
    block_on(async {
        let snapshot = Snapshot::take(rig).await?;
        fs::write("/run/meant", "")?;
        let meant = |thing: &HostResource| thing.to_string() == "file /run/meant";
        let clean = snapshot.compare_until_clean_but(MAX_WAIT, meant).await;
        fs::write("/run/left", "")?;
        let left = snapshot.compare_until_clean_but(Duration::from_millis(1), meant).await;
        fs::remove_file("/run/meant")?;
        fs::remove_file("/run/left")?;
        clean?;
        let left = left.err().context("nothing was caught")?.to_string();
        assert_eq!(left, "left behind:\n  file /run/left");
        Ok(())
    })
}

fn stray(rig: &Rig) -> Result<()> {
    for (path, named) in [
        ("/var/log/pods/a/0.log", "/var/log/pods"),
        ("/var/log/containers/a.log", "/var/log/containers"),
        ("/run/containerd/s", "/run/containerd"),
        ("/var/lib/kubelet/pods/a", "/var/lib/kubelet"),
    ] {
        file(rig, Path::new(path), Path::new(named))?;
    }
    Ok(())
}

/// The directory of leases is made for the first pod and stays, so only the file is a leak.
fn lease(rig: &Rig) -> Result<()> {
    let lease = rig.directory().join("leases/rig/10.77.1.99");
    file(rig, &lease, &lease)
}

fn shim_socket(rig: &Rig) -> Result<()> {
    let path = rig.directory().join("s/left");
    fs::create_dir_all(rig.directory().join("s"))?;
    let leave = || Ok(UnixListener::bind(&path)?);
    let stop_listening = |listener| {
        drop(listener);
        Ok(())
    };
    catches(rig, &[&format!("file {}", path.display())], leave, stop_listening)?;
    Ok(fs::remove_file(path)?)
}

fn snapshot(rig: &Rig) -> Result<()> {
    block_on(async {
        let snapshot = Snapshot::take(rig).await?;
        rig.ctr(&["snapshots", "prepare", "left"]).await?;
        until_named(&snapshot, &["snapshot left"]).await?;
        rig.ctr(&["snapshots", "remove", "left"]).await?;
        snapshot.compare_until_clean(MAX_WAIT).await
    })
}

fn report(rig: &Rig) -> Result<()> {
    block_on(async {
        let snapshot = Snapshot::take(rig).await?;
        namespaces::cover_with_empty(Path::new("/mnt"))?;
        fs::write("/run/left", "")?;
        let report = snapshot.compare_until_clean(Duration::from_millis(1)).await;
        namespaces::detach(Path::new("/mnt"))?;
        fs::remove_file("/run/left")?;
        let report = report.err().context("nothing was caught")?.to_string();
        assert_eq!(report, "left behind:\n  mount /mnt (tmpfs)\n  file /run/left");
        Ok(())
    })
}

fn another_rig(rig: &Rig) -> Result<()> {
    block_on(async {
        let snapshot = Snapshot::take(rig).await?;
        let other = Rig::start(RigOptions::default()).await?;
        let group = format!("cgroup {}", other.cgroup_parent());
        until_named(&snapshot, &["process ", &group]).await?;
        other.stop().await?;
        snapshot.compare_until_clean(MAX_WAIT).await
    })
}
