//! Private images, pulled with credential provider plugins and pull secrets.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::run_process::RunProcess;
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_rig::images::{self, OciImage};
use oarsman_rig::{Registry, RegistryCredentials, RepositoryBehaviour};
use serde_json::json;

const MAX_WAIT: Duration = Duration::from_secs(60);
const WORDS: &str = "credentialprovider.kubelet.k8s.io/v1";

/// A registry on loopback that gives the script image, under the name `private`, to the user `rower` only.
fn registry(cx: &ScenarioContext) -> Result<Registry> {
    let all = images::standard(cx.rig().parts())?.into_iter();
    let actors = all.filter(|image| image.name == images::SCRIPT);
    let image = actors.map(|image| OciImage { name: "private:1".to_owned(), ..image }).collect();
    let registry = Registry::start(image)?;
    cx.rig().allow_registry(registry.address())?;
    let (username, password) = ("rower".to_owned(), "s3cret".to_owned());
    let credentials = Some(RegistryCredentials { username, password });
    registry.set("private", RepositoryBehaviour { credentials, ..RepositoryBehaviour::default() });
    Ok(registry)
}

pub(super) async fn a_private_image_is_pulled_with_a_credential_provider(
    cx: &ScenarioContext,
) -> Result<()> {
    let registry = registry(cx)?;
    let address = registry.address().to_string();
    let place = cx.scratch().join("providers");
    fs::create_dir_all(&place)?;
    let config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig",
        "providers": [{
            "name": "purser", "apiVersion": WORDS, "defaultCacheDuration": "1h", "matchImages": [address],
            "env": [{ "name": "WORD", "value": "s3cret" }],
        }],
    });
    fs::write(place.join("config.json"), config.to_string())?;
    let script = format!(
        "#!/bin/sh\ncat >> {place}/asked\necho >> {place}/asked\necho '{{\"kind\": \"CredentialProviderResponse\", \
         \"apiVersion\": \"{WORDS}\", \"cacheKeyType\": \"Registry\", \"auth\": {{\"{address}\": {{\"username\": \"rower\", \
         \"password\": \"'$WORD'\"}}}}}}'\n",
        place = place.display()
    );
    fs::write(place.join("purser"), script)?;
    fs::set_permissions(place.join("purser"), Permissions::from_mode(0o755))?;
    let setup = cx
        .setup()?
        .flag("image-credential-provider-config", &place.join("config.json").display().to_string())
        .flag("image-credential-provider-bin-dir", &place.display().to_string());
    let agent = cx.start(setup)?;
    let main = || {
        let main =
            script_container("main", &["forever"]).with("image", registry.name("private:1").into());
        main.with("imagePullPolicy", "Always".into())
    };
    for name in ["first", "second"] {
        agent.apply(name, &pod(name).container(main()))?;
        let look = async || cx.inspector().pod(name).await;
        eventually(MAX_WAIT, "it is pulled and runs", look, |pod| pod.runs("main")).await?;
    }
    let asked = fs::read_to_string(place.join("asked"))?;
    let questions: Vec<&str> = asked.lines().filter(|line| !line.is_empty()).collect();
    ensure!(questions.len() == 1, "the answer counts for an hour: {asked}");
    ensure!(questions[0].contains(&format!("\"image\":\"{address}/private\"")), "{asked}");
    ensure!(!fs::read_to_string(agent.log())?.contains("s3cret"), "the password is in the log");
    Ok(())
}

pub(super) async fn a_private_image_is_pulled_with_a_secret_beside_its_pod(
    cx: &ScenarioContext,
) -> Result<()> {
    let registry = registry(cx)?;
    let entry = json!({ "username": "rower", "password": "s3cret" });
    let auths = json!({ "auths": { registry.address().to_string(): entry } });
    let login = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "login" },
        "type": "kubernetes.io/dockerconfigjson", "stringData": { ".dockerconfigjson": auths.to_string() },
    });
    let main = script_container("main", &["out:rowing", "forever"]);
    let main = main.with("image", registry.name("private:1").into());
    let place = cx.scratch().join("private");
    fs::create_dir_all(&place)?;
    fs::write(place.join("login.json"), login.to_string())?;
    let web = pod("web").container(main).add("imagePullSecrets", json!({ "name": "login" }));
    fs::write(place.join("web.json"), web.text())?;
    let mut person = RunProcess::start(cx, &[&place], &[])?;
    person.wait_for_output("rowing", MAX_WAIT).await?;
    person.interrupt()?;
    ensure!(person.wait_exit(MAX_WAIT).await? == 0, "{}", person.output()?);
    ensure!(!person.output()?.contains("s3cret"), "the password is shown");
    Ok(())
}

/// A pod of the private image in a directory of its own, with the Secret beside it if it has one.
fn tenant(
    cx: &ScenarioContext,
    registry: &Registry,
    name: &str,
    has_login: bool,
) -> Result<PathBuf> {
    let main = script_container("main", &[&format!("out:{name}-rows"), "forever"])
        .with("image", registry.name("private:1").into())
        .with("imagePullPolicy", "IfNotPresent".into());
    let place = cx.scratch().join(name);
    fs::create_dir_all(&place)?;
    let mut web = pod(name).container(main);
    if has_login {
        let entry = json!({ "username": "rower", "password": "s3cret" });
        let auths = json!({ "auths": { registry.address().to_string(): entry } });
        let login = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "login" },
            "type": "kubernetes.io/dockerconfigjson", "stringData": { ".dockerconfigjson": auths.to_string() },
        });
        fs::write(place.join("login.json"), login.to_string())?;
        web = web.add("imagePullSecrets", json!({ "name": "login" }));
    }
    fs::write(place.join("pod.json"), web.text())?;
    Ok(place)
}

/// Row C9 of docs/security.md.
pub(super) async fn a_private_image_is_for_those_who_can_pull_it_also_after_a_restart(
    cx: &ScenarioContext,
) -> Result<()> {
    let registry = registry(cx)?;
    let owner = tenant(cx, &registry, "owner", true)?;
    let thief = tenant(cx, &registry, "thief", false)?;
    let mut first = RunProcess::start(cx, &[&owner], &[])?;
    first.wait_for_output("owner-rows", MAX_WAIT).await?;
    let pulled = first.root().join("image_manager/pulled");
    ensure!(fs::read_dir(&pulled)?.count() == 1, "the pull is not recorded");
    ensure!(fs::read_dir(first.root().join("image_manager/pulling"))?.count() == 0);
    first.interrupt()?;
    ensure!(first.wait_exit(MAX_WAIT).await? == 0, "{}", first.output()?);
    // The image stays on the node, and the root directory until `first` is dropped.
    let mut second = RunProcess::start(cx, &[&thief], &[])?;
    let log = second.root().join("oarsman.log");
    let said = async || Ok(fs::read_to_string(&log).unwrap_or_default());
    eventually(MAX_WAIT, "the pull is refused", said, |log| {
        log.contains("Failed to pull image") && log.contains("ErrImagePull")
    })
    .await?;
    second.interrupt()?;
    second.wait_exit(MAX_WAIT).await?;
    ensure!(!second.output()?.contains("thief-rows"), "it runs without credentials");
    registry.set(
        "private",
        RepositoryBehaviour { failure: Some(500), ..RepositoryBehaviour::default() },
    );
    let mut third = RunProcess::start(cx, &[&owner], &[])?;
    third.wait_for_output("owner-rows", MAX_WAIT).await?;
    third.interrupt()?;
    ensure!(third.wait_exit(MAX_WAIT).await? == 0, "{}", third.output()?);
    Ok(())
}
