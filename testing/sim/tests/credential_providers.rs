//! Credential providers that get tokens of service accounts: who is asked for, with what, and who may use the image then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use oarsman_agent::{
    ActivePodsReader, AdmitAll, AgentConfig, ContainerHooks, CoreDecisions, Inputs, NodeAddresses,
    ReportStore, SyncLoopMonitor,
};
use oarsman_core::image::providers::{CredentialProvider, providers};
use oarsman_core::report::NodeReport;
use oarsman_cri_types::v1::AuthConfig;
use oarsman_sim::scenario::{PRIVATE, container, pod};
use oarsman_world::faults::FaultPlan;
use oarsman_world::runtime::{ImageAccess, ImageSource};
use oarsman_world::trace::{ContainerTransition, TraceEntry};
use oarsman_world::{World, simulate};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;

const WORDS: &str = "credentialprovider.kubelet.k8s.io/v1";

fn configured_providers() -> Vec<CredentialProvider> {
    let attributes = json!({
        "serviceAccountTokenAudience": "reg.world", "cacheType": "ServiceAccount", "requireServiceAccount": true,
        "requiredServiceAccountAnnotationKeys": ["reg.world/role"],
    });
    let entry = json!({
        "name": "purser", "matchImages": ["reg.world"], "defaultCacheDuration": "1h", "apiVersion": WORDS,
        "tokenAttributes": attributes,
    });
    let file = json!({ "apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig", "providers": [entry] });
    providers([&file], true).unwrap_or_default()
}

fn start_agent(world: &World) -> JoinHandle<()> {
    let seams = oarsman_sim::seams(world, 1);
    let (_, commands) = mpsc::channel(1);
    let inputs = Inputs {
        sources: Vec::new(),
        admit_handler: Arc::new(AdmitAll),
        decisions: Arc::new(CoreDecisions),
        metrics: Arc::default(),
        report_store: ReportStore::new(Arc::clone(&seams.clock), NodeReport::default()),
        pods: ActivePodsReader::default(),
        node_addresses: NodeAddresses::default(),
        sync_loop_monitor: SyncLoopMonitor::default(),
        container_lifecycle: ContainerHooks::default(),
        tracer: None,
        commands,
    };
    let config = AgentConfig { providers: configured_providers(), ..oarsman_sim::config() };
    tokio::spawn(oarsman_agent::run(seams, config, inputs))
}

fn put_account(world: &World, name: &str, annotations: &[(&str, &str)]) {
    let mut account = ServiceAccount::default();
    account.metadata.name = Some(name.to_owned());
    account.metadata.namespace = Some("default".to_owned());
    account.metadata.uid = Some(format!("uid-{name}"));
    let pairs = annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    account.metadata.annotations = Some(pairs.collect::<BTreeMap<_, _>>());
    world.cluster.put_service_account(account);
}

fn of_account(name: &str, account: Option<&str>) -> Pod {
    let mut main = container("main", &["forever"]);
    main.image = Some(PRIVATE.to_owned());
    let mut pod = pod(vec![], vec![main], 1);
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.uid = Some(format!("uid-{name}"));
    pod.spec.get_or_insert_default().service_account_name = account.map(str::to_owned);
    pod
}

fn has_started(world: &World, name: &str) -> bool {
    let uid = format!("uid-{name}");
    world.trace.records().iter().any(|record| {
        matches!(&record.entry, TraceEntry::Container { target, change: ContainerTransition::Started } if target.pod_uid == uid)
    })
}

#[test]
fn an_image_that_was_pulled_for_a_service_account_is_for_its_pods() {
    let lived = simulate(5, FaultPlan::quiet(), |world| async move {
        world.runtime.preload(ImageSource::script("world/script:1"));
        let (username, password) = ("rower".to_owned(), "oar".to_owned());
        let credentials = Some(AuthConfig { username, password, ..AuthConfig::default() });
        let private = ImageAccess { credentials, time: Duration::from_secs(1) };
        world.runtime.publish(ImageSource::script(PRIVATE), private);
        let answer = json!({
            "kind": "CredentialProviderResponse", "apiVersion": WORDS, "cacheKeyType": "Registry",
            "auth": { "reg.world": { "username": "rower", "password": "oar" } },
        });
        world.disk.put_credential_plugin("purser", &answer.to_string());
        put_account(&world, "robot", &[("reg.world/role", "reader"), ("other", "x")]);
        put_account(&world, "guest", &[("other", "x")]);
        let agent = start_agent(&world);
        world.cluster.create(of_account("owner", Some("robot")));
        sleep(Duration::from_secs(20)).await;
        assert!(has_started(&world, "owner"));
        let requests = world.disk.credential_requests();
        let request: Value = serde_json::from_str(&requests[0]).unwrap();
        assert_eq!(request["serviceAccountAnnotations"], json!({ "reg.world/role": "reader" }));
        assert!(request["serviceAccountToken"].as_str().unwrap().starts_with("token "));
        let asked = requests.len();
        // The answer counts for the account, and so does the image. Others have to show credentials, and are not asked for.
        world.cluster.create(of_account("owner-2", Some("robot")));
        for (name, account) in
            [("guest", Some("guest")), ("stranger", None), ("lost", Some("none"))]
        {
            world.cluster.create(of_account(name, account));
        }
        sleep(Duration::from_secs(60)).await;
        assert!(has_started(&world, "owner-2"));
        for name in ["guest", "stranger", "lost"] {
            assert!(!has_started(&world, name), "{name}");
        }
        assert_eq!(world.disk.credential_requests().len(), asked);
        agent.abort();
    });
    assert!(lived.is_ok());
}
