//! The contract suite on the fake runtime, each case in a world of its own, first on the runtime itself and then over an agent's link.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use oarsman_contract::{ContractCase, Harness, ImageNames, PrivateImage, cases, completion};
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::AuthConfig;
use oarsman_world::faults::FaultPlan;
use oarsman_world::files::FakeFiles;
use oarsman_world::runtime::{FakeRuntime, ImageAccess, ImageSource};
use oarsman_world::{World, simulate};

/// Processes of the fake runtime make no system calls.
const MAY_LACK: &[&str] = &["RealContainers"];

/// How a case reaches the runtime.
type RouteToRuntime = fn(&World) -> Arc<dyn Runtime>;

const ROUTES: [(&str, RouteToRuntime); 2] =
    [("runtime", |world| Arc::new(world.runtime.clone())), ("line", |world| world.runtime_for(1))];

fn main() -> ExitCode {
    let trials = ROUTES.iter().flat_map(|(name, route)| {
        cases().into_iter().map(move |case| {
            Trial::ignorable_test(format!("{name}::{}", case.name), move || run_case(case, *route))
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn run_case(case: ContractCase, route: RouteToRuntime) -> Result<Completion, Failed> {
    let plan = FaultPlan { latency: Duration::from_millis(20), ..FaultPlan::quiet() };
    let outcome = simulate(0, plan, async |world| {
        let harness = FakeHarness::new(&world, route);
        case.execute(Arc::new(harness)).await
    });
    completion(outcome?, MAY_LACK)
}

struct FakeHarness {
    runtime: Arc<dyn Runtime>,
    files: FakeFiles,
    images: ImageNames,
}

impl FakeHarness {
    fn new(world: &World, route: RouteToRuntime) -> Self {
        let images = images();
        load_images(&world.runtime, &images);
        Self { runtime: route(world), files: world.files.clone(), images }
    }
}

fn images() -> ImageNames {
    let name = |image: &str| format!("registry.world/{image}:1");
    let credentials = AuthConfig {
        username: "user".to_owned(),
        password: "password".to_owned(),
        ..AuthConfig::default()
    };
    ImageNames {
        script: name("script"),
        script_as_user: name("script-as-user"),
        pullable: name("pullable"),
        private: PrivateImage { image: name("private"), credentials },
        missing: name("missing"),
    }
}

fn load_images(runtime: &FakeRuntime, images: &ImageNames) {
    runtime.preload(ImageSource::script(&images.script));
    runtime.preload(ImageSource {
        user: Some(1000),
        environment: BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())]),
        working_dir: "/tmp".to_owned(),
        ..ImageSource::script(&images.script_as_user)
    });
    let time = Duration::from_secs(3);
    runtime.publish(ImageSource::script(&images.pullable), ImageAccess { credentials: None, time });
    let credentials = Some(images.private.credentials.clone());
    runtime.publish(ImageSource::script(&images.private.image), ImageAccess { credentials, time });
}

#[async_trait]
impl Harness for FakeHarness {
    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.runtime)
    }

    fn images(&self) -> &ImageNames {
        &self.images
    }

    fn may_lack(&self) -> &[&'static str] {
        MAY_LACK
    }

    fn directory(&self) -> PathBuf {
        PathBuf::from("/var/contract")
    }

    fn cgroup_parent(&self) -> String {
        "/oarsman-contract".to_owned()
    }

    async fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.read(path)
    }

    async fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.files.write(path, content)
    }

    async fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(from, to)
    }
}
