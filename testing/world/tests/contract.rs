//! The fake runtime does what every runtime does: the contract suite, each case in a world of its own,
//! first on the runtime itself and then over an agent's line.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use libtest_mimic::{Arguments, Failed, Trial};
use oarsman_contract::{Case, Harness, Images, Private, cases};
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::AuthConfig;
use oarsman_world::faults::FaultPlan;
use oarsman_world::files::Files;
use oarsman_world::runtime::{Access, FakeRuntime, ImageSource};
use oarsman_world::{World, simulate};

/// How a case reaches the runtime.
type Way = fn(&World) -> Arc<dyn Runtime>;

const WAYS: [(&str, Way); 2] =
    [("runtime", |world| Arc::new(world.runtime.clone())), ("line", |world| world.for_life(1))];

fn main() -> ExitCode {
    let trials = WAYS.iter().flat_map(|(name, way)| {
        cases().into_iter().map(move |case| {
            Trial::test(format!("{name}::{}", case.name), move || perform(case, *way))
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn perform(case: Case, way: Way) -> Result<(), Failed> {
    let plan = FaultPlan { latency: Duration::from_millis(20), ..FaultPlan::quiet() };
    let outcome = simulate(0, plan, async |world| {
        let harness = FakeHarness::new(&world, way);
        case.perform(Arc::new(harness)).await
    });
    outcome?.map_err(|error| Failed::from(format!("{error:?}")))
}

struct FakeHarness {
    runtime: Arc<dyn Runtime>,
    files: Files,
    images: Images,
}

impl FakeHarness {
    fn new(world: &World, way: Way) -> Self {
        let images = images();
        furnish(&world.runtime, &images);
        Self { runtime: way(world), files: world.files.clone(), images }
    }
}

fn images() -> Images {
    let name = |image: &str| format!("registry.world/{image}:1");
    let credentials = AuthConfig {
        username: "user".to_owned(),
        password: "password".to_owned(),
        ..AuthConfig::default()
    };
    Images {
        actor: name("actor"),
        actor_as_user: name("actor-as-user"),
        pullable: name("pullable"),
        private: Private { image: name("private"), credentials },
        missing: name("missing"),
    }
}

fn furnish(runtime: &FakeRuntime, images: &Images) {
    runtime.preload(ImageSource::actor(&images.actor));
    runtime.preload(ImageSource {
        user: Some(1000),
        environment: BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())]),
        working_dir: "/tmp".to_owned(),
        ..ImageSource::actor(&images.actor_as_user)
    });
    let time = Duration::from_secs(3);
    runtime.publish(ImageSource::actor(&images.pullable), Access { credentials: None, time });
    let credentials = Some(images.private.credentials.clone());
    runtime.publish(ImageSource::actor(&images.private.image), Access { credentials, time });
}

#[async_trait]
impl Harness for FakeHarness {
    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.runtime)
    }

    fn images(&self) -> &Images {
        &self.images
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
