//! Two tenants and one private image, by every policy, over restarts and while the Go kubelet and our agent take over from each other.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_e2e::cluster::{MAX_WAIT, TestCluster, is_ready};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::{ScenarioContext, under_test};
use oarsman_rig::images::{self, ImageConfig};
use oarsman_rig::{
    Implementation, Kubelet, KubeletOptions, Registry, RegistryCredentials, RepositoryBehaviour,
};
use serde_json::{Value, json};

/// How long an agent may take to end.
const ENDING: Duration = Duration::from_secs(20);
/// The image that our agent pulls first, and the one that the Go kubelet pulls first.
const IMAGES: [&str; 2] = ["by-ours", "by-go"];
/// The Secret of the tenant who has one, and that of the other, with a wrong password.
const SECRETS: [(&str, &str); 2] = [("login", "s3cret"), ("guess", "1234")];

pub(super) async fn an_image_of_another_tenant_is_refused_by_both_agents_unless_it_is_exempt(
    cx: &ScenarioContext,
) -> Result<()> {
    let mut tenants = Tenants::new(cx).await?;
    tenants.under_policy("NeverVerifyPreloadedImages", true).await?;
    tenants.under_policy("NeverVerifyAllowlistedImages", true).await
}

pub(super) async fn an_image_of_another_tenant_is_refused_by_both_agents_unless_none_is_verified(
    cx: &ScenarioContext,
) -> Result<()> {
    let mut tenants = Tenants::new(cx).await?;
    tenants.under_policy("AlwaysVerify", true).await?;
    tenants.under_policy("NeverVerify", false).await
}

/// A registry with private images, and a cluster on whose node one agent at a time runs.
struct Tenants {
    cluster: TestCluster,
    registry: Registry,
    ours: Arc<Kubelet>,
    go: Arc<Kubelet>,
    /// How many pods there were: each has a name of its own.
    pods: usize,
}

impl Tenants {
    async fn new(cx: &ScenarioContext) -> Result<Self> {
        cx.set_cleanup_timeout(MAX_WAIT * 2);
        // Other content for each: what has one id is one image, whatever its names.
        let policies = [
            "NeverVerifyPreloadedImages",
            "NeverVerifyAllowlistedImages",
            "AlwaysVerify",
            "NeverVerify",
        ];
        let names =
            policies.iter().flat_map(|policy| IMAGES.map(|image| repository(policy, image)));
        let names: Vec<String> = names.collect();
        let served = names.iter().map(|name| {
            let config = ImageConfig { env: vec![format!("NAME={name}")], ..Default::default() };
            images::script_image(cx.rig().parts(), &format!("{name}:1"), config)
        });
        let registry = Registry::start(served.collect::<Result<_>>()?)?;
        cx.rig().allow_registry(registry.address())?;
        for name in &names {
            let (username, password) = ("rower".to_owned(), SECRETS[0].1.to_owned());
            let credentials = Some(RegistryCredentials { username, password });
            registry.set(name, RepositoryBehaviour { credentials, ..Default::default() });
        }
        let plane = cx.cluster().await?;
        // Both have the same directories and the same configuration file.
        let [ours, go] = [under_test()?, Implementation::Go]
            .map(|which| cx.join(&which, &KubeletOptions::default()));
        let (ours, go) = (ours?, go?);
        let cluster = TestCluster { plane, agent: Arc::clone(&ours) };
        cluster.agent.start()?;
        cluster.plane.until_node_is_ready(cluster.agent.name(), MAX_WAIT).await?;
        let server = format!("--docker-server={}", registry.address());
        for (secret, password) in SECRETS {
            let password = format!("--docker-password={password}");
            let kind = ["create", "secret", "docker-registry", secret, &server];
            let user = ["--docker-username=rower", &password];
            cluster.kubectl(&[&kind[..], &user[..]].concat()).await?;
        }
        Ok(Self { cluster, registry, ours, go, pods: 0 })
    }

    /// Both agents in turn: ours, ours again, the Go kubelet, ours. A tenant that one of them refuses is refused by each.
    async fn under_policy(&mut self, policy: &str, is_refused: bool) -> Result<()> {
        let [by_ours, by_go] = IMAGES.map(|image| repository(policy, image));
        self.start(Arc::clone(&self.ours), policy).await?;
        self.owner_runs(&by_ours).await?;
        self.check_other(&by_ours, is_refused).await?;
        self.cluster.agent.kill()?;
        self.cluster.agent.start()?;
        self.check_other(&by_ours, is_refused).await?;
        self.start(Arc::clone(&self.go), policy).await?;
        self.owner_runs(&by_go).await?;
        self.owner_runs(&by_ours).await?;
        self.check_other(&by_ours, is_refused).await?;
        self.start(Arc::clone(&self.ours), policy).await?;
        for image in [&by_ours, &by_go] {
            self.owner_runs(image).await?;
            self.check_other(image, is_refused).await?;
        }
        self.cluster.kubectl(&["delete", "pod", "--all", "--wait=false"]).await.map(drop)
    }

    /// Ends the agent that runs, and starts this one with that policy.
    async fn start(&mut self, agent: Arc<Kubelet>, policy: &str) -> Result<()> {
        // The Go kubelet does not exit with 0 on SIGTERM.
        self.cluster.agent.terminate(ENDING).await?;
        let mut config: Value = serde_json::from_str(&fs::read_to_string(agent.config())?)?;
        config["imagePullCredentialsVerificationPolicy"] = policy.into();
        config["preloadedImagesVerificationAllowlist"] = match policy {
            "NeverVerifyAllowlistedImages" => {
                json!([format!("{}/some-other", self.registry.address())])
            }
            _ => json!([]),
        };
        fs::write(agent.config(), config.to_string())?;
        agent.start()?;
        self.cluster.agent = agent;
        Ok(())
    }

    /// The tenant with the Secret has a container of the image.
    async fn owner_runs(&mut self, repository: &str) -> Result<()> {
        self.check(repository, Some(SECRETS[0].0), false).await
    }

    /// The other one has none, neither without a Secret nor with one of a wrong password.
    async fn check_other(&mut self, repository: &str, is_refused: bool) -> Result<()> {
        self.check(repository, None, is_refused).await?;
        self.check(repository, Some(SECRETS[1].0), is_refused).await
    }

    async fn check(
        &mut self,
        repository: &str,
        secret: Option<&str>,
        is_refused: bool,
    ) -> Result<()> {
        self.pods += 1;
        let name = format!("t{}", self.pods);
        let image = self.registry.name(&format!("{repository}:1"));
        let main = script_container("main", &["forever"])
            .with("image", image.into())
            .with("imagePullPolicy", "IfNotPresent".into());
        let manifest = pod(&name).with("terminationGracePeriodSeconds", 1).container(main);
        let manifest = secret.into_iter().fold(manifest, |manifest, secret| {
            manifest.add("imagePullSecrets", json!({ "name": secret }))
        });
        self.cluster.run(&manifest).await?;
        let look = async || self.cluster.pod(&name).await;
        let what = format!("{name} of {repository} with {secret:?} runs or is refused");
        let seen = eventually(MAX_WAIT, &what, look, |pod| is_ready(pod) || was_refused(pod)).await;
        let seen = seen?;
        ensure!(was_refused(&seen) == is_refused, "{what}: {}", seen["status"]);
        Ok(())
    }
}

fn repository(policy: &str, image: &str) -> String {
    format!("{}-{image}", policy.to_lowercase())
}

fn was_refused(pod: &Value) -> bool {
    let reason = &pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"];
    reason == "ErrImagePull" || reason == "ImagePullBackOff"
}
