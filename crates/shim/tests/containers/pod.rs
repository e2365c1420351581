//! A pod of the tests: a shim, a root file system, and specs.

use std::fs;
use std::future::Future;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use oarsman_host::cgroups::CgroupManager;
use oarsman_host::processes;
use oarsman_shim::ShimDirectory;
use oarsman_shim::client::{ShimClient, ShimError, ShimSpawner};
use oarsman_shim::protocol::{CreateRequest, ExitReport};
use oci_spec::runtime::{Process, Spec};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const BUSYBOX: &str = "/bin/busybox";
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

static NEXT: AtomicU32 = AtomicU32::new(0);
static CGROUP: LazyLock<PathBuf> =
    LazyLock::new(|| PathBuf::from(format!("/oarsman-test-shim-{}", std::process::id())));

/// A test of its own name that runs on one pod.
pub(crate) fn case<F: Future<Output = ()>>(
    name: &str,
    test: impl FnOnce(Pod) -> F + Send + 'static,
) -> Trial {
    Trial::test(name.to_owned(), move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let test = Box::pin(async { Box::pin(test(Pod::new().await)).await });
        runtime
            .block_on(async { tokio::time::timeout(DEADLINE * 2, test).await })
            .map_err(Failed::from)
    })
}

pub(crate) fn remove_cgroups() {
    CgroupManager::discover(&CGROUP).unwrap().destroy(&CGROUP).unwrap();
}

/// Starts a shim by a spawner of its own, which ends then.
pub(crate) async fn spawn_shim(directory: &ShimDirectory) -> Result<(), ShimError> {
    ShimSpawner::new(std::env::current_exe().unwrap()).spawn(directory, DEADLINE).await
}

/// A shim with everything that its containers need. It is ended when the test is over, however that is.
pub(crate) struct Pod {
    pub(crate) directory: ShimDirectory,
    pub(crate) client: ShimClient,
    pub(crate) cgroup: PathBuf,
    pub(crate) shim: u32,
    pub(crate) files: TempDir,
}

impl Pod {
    pub(crate) async fn new() -> Self {
        let files = tempfile::tempdir().unwrap();
        make_root(&files.path().join("root"));
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Longer than the path of a socket may be.
        let directory = files.path().join("a-directory-with-a-name-that-is-longer-than-the-path-of-a-socket-may-be-in-the-kernel-of-linux/shim");
        fs::create_dir_all(&directory).unwrap();
        let directory = ShimDirectory::new(directory);
        spawn_shim(&directory).await.unwrap();
        let client = ShimClient::new(directory.clone(), DEADLINE);
        let shim = client.hello().await.unwrap().pid;
        Self { directory, client, cgroup: CGROUP.join(format!("pod{number}")), shim, files }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.files.path().join("root")
    }

    pub(crate) fn log(&self, id: &str) -> PathBuf {
        self.files.path().join(format!("{id}.log"))
    }

    /// A container that runs this script in a shell.
    pub(crate) fn container(&self, id: &str, script: &str) -> Builder {
        let args = json!(["sh", "-c", script]);
        let spec = spec(&self.root(), &self.cgroup.join(id), &args);
        Builder {
            id: id.to_owned(),
            log: Some(self.log(id)),
            spec,
            stdin: false,
            stdin_once: false,
        }
    }

    /// Creates and starts it.
    pub(crate) async fn run(&self, container: Builder) -> u32 {
        let id = container.id.clone();
        let pid = self.client.create(container.request()).await.unwrap();
        self.client.start(&id).await.unwrap();
        pid
    }

    /// Creates and starts a container with that script, and waits for it.
    pub(crate) async fn run_to_end(&self, id: &str, script: &str) -> ExitReport {
        self.run(self.container(id, script)).await;
        self.client.wait(id).await.unwrap()
    }

    /// The lines of a container's log without their times: `stdout F text`.
    pub(crate) fn lines(&self, id: &str) -> Vec<String> {
        read_lines(&self.log(id))
    }

    /// The text of a container's stdout.
    pub(crate) fn output(&self, id: &str) -> String {
        let lines = self.lines(id);
        let texts = lines.iter().filter_map(|line| line.strip_prefix("stdout F "));
        texts.map(|text| format!("{text}\n")).collect()
    }

    /// Waits until a line of a container's log has that text.
    pub(crate) async fn until_said(&self, id: &str, text: &str) {
        self.until(&format!("{id} says {text:?}"), || {
            self.lines(id).iter().any(|line| line.contains(text))
        })
        .await;
    }

    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let all = tokio::time::timeout(DEADLINE, async {
            while !holds() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        assert!(all.await.is_ok(), "not within {DEADLINE:?}: {what}");
    }

    /// All processes of the pod's containers.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let manager = CgroupManager::discover(&CGROUP).unwrap();
        manager.processes(&self.cgroup).unwrap().into_iter().collect()
    }

    /// The groups below the pod's, in all hierarchies.
    pub(crate) fn groups(&self) -> Vec<String> {
        let all = oarsman_host::cgroups::hierarchies(&oarsman_host::mounts::current().unwrap());
        let below = all.iter().flat_map(|hierarchy| hierarchy.below(&self.cgroup).unwrap());
        below.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    /// Nothing is left of any container, and nothing of the shim once it has ended.
    pub(crate) async fn close(self) {
        for report in self.client.list().await.unwrap() {
            self.client.delete(&report.container).await.unwrap();
        }
        assert_eq!(self.processes(), [0; 0]);
        assert_eq!(self.groups(), [""; 0]);
        assert_eq!(fs::read_dir(self.directory.path().join("containers")).unwrap().count(), 0);
        assert_eq!(fs::read_dir(self.directory.path().join("libcontainer")).unwrap().count(), 0);
        self.client.shut_down().await.unwrap();
        let shim = self.shim;
        self.until("the shim has ended", || {
            processes::find(shim).is_none_or(|process| process.state == 'Z')
        })
        .await;
        assert!(!self.directory.path().exists());
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let is_ours = processes::arguments(self.shim)
            .iter()
            .any(|argument| argument == self.directory.path());
        if is_ours
            && let Some(pid) = rustix::process::Pid::from_raw(i32::try_from(self.shim).unwrap())
        {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap_or_default();
        }
        CgroupManager::discover(&CGROUP).unwrap().destroy(&self.cgroup).unwrap();
    }
}

pub(crate) fn read_lines(path: &Path) -> Vec<String> {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    // A carriage return belongs to the line.
    let lines = text.split_terminator('\n');
    lines
        .map(|line| line.split_once(' ').map_or_else(String::new, |(_, rest)| rest.to_owned()))
        .collect()
}

/// A container to be.
pub(crate) struct Builder {
    pub(crate) id: String,
    pub(crate) log: Option<PathBuf>,
    pub(crate) spec: Value,
    pub(crate) stdin: bool,
    pub(crate) stdin_once: bool,
}

impl Builder {
    /// Changes one value of the spec.
    pub(crate) fn with(mut self, pointer: &str, value: Value) -> Self {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        self.spec.pointer_mut(parent).unwrap()[name] = value;
        self
    }

    pub(crate) fn with_stdin(mut self, once: bool) -> Self {
        (self.stdin, self.stdin_once) = (true, once);
        self
    }

    pub(crate) fn request(self) -> CreateRequest {
        let spec: Spec = serde_json::from_value(self.spec).unwrap();
        let Self { id, log, stdin, stdin_once, .. } = self;
        CreateRequest { container: id, spec, log, stdin, stdin_once }
    }
}

/// A process that runs this script in a shell, with all of root's usual rights.
pub(crate) fn process(script: &str) -> Process {
    serde_json::from_value(process_json(&json!(["sh", "-c", script]))).unwrap()
}

/// What containers have by default.
pub(crate) const CAPABILITIES: [&str; 14] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FSETID",
    "CAP_FOWNER",
    "CAP_MKNOD",
    "CAP_NET_RAW",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETFCAP",
    "CAP_SETPCAP",
    "CAP_NET_BIND_SERVICE",
    "CAP_SYS_CHROOT",
    "CAP_KILL",
    "CAP_AUDIT_WRITE",
];

fn process_json(args: &Value) -> Value {
    let set = json!(CAPABILITIES);
    json!({
        "terminal": false, "user": {"uid": 0, "gid": 0}, "args": args, "cwd": "/",
        "env": ["PATH=/bin:/sbin", "A=1=2"],
        "capabilities": {"bounding": set, "effective": set, "permitted": set},
        "noNewPrivileges": false,
    })
}

fn spec(root: &Path, cgroup: &Path, args: &Value) -> Value {
    json!({
        "ociVersion": "1.0.2",
        "process": process_json(args),
        "root": {"path": root, "readonly": false},
        "hostname": "pod",
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"]},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]},
            {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
             "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]},
            {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]},
            {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]},
        ],
        "linux": {
            "cgroupsPath": cgroup,
            "namespaces": [{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}, {"type": "network"}],
            "resources": {"devices": [{"allow": false, "access": "rwm"}]},
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/sys/firmware"],
            "readonlyPaths": ["/proc/sys", "/proc/sysrq-trigger"],
        },
    })
}

/// A directory with busybox and nothing else.
fn make_root(root: &Path) {
    for directory in ["bin", "proc", "dev", "sys", "tmp", "etc", "home"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    fs::copy(BUSYBOX, root.join("bin/busybox")).unwrap();
    let applets = "sh cat echo sleep id ls mkdir mount mknod seq stty head tail kill ps true false dd hostname yes unshare chroot setsid \
                   sync touch grep wc date test env sed od tty trap ulimit readlink rm tr chmod nsenter";
    for applet in applets.split_whitespace() {
        symlink("busybox", root.join("bin").join(applet)).unwrap();
    }
    fs::write(
        root.join("etc/passwd"),
        "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home:/bin/sh\n",
    )
    .unwrap();
}
