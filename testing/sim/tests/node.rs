//! The Node object and its lease: written when something has changed, and kept up to date through outages.

use std::ops::AsyncFnOnce;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use oarsman_agent::{
    ActivePodsReader, AdmitAll, AgentConfig, ContainerHooks, CoreDecisions, Inputs, NodeAddresses,
    ReportStore, SyncLoopMonitor,
};
use oarsman_core::report::NodeReport;
use oarsman_world::faults::FaultPlan;
use oarsman_world::link::RemoteService;
use oarsman_world::rng::Probability;
use oarsman_world::{World, simulate};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;

const RENEWAL: Duration = Duration::from_secs(10);
/// Renewals are spread by four hundredths of the period, and calls take a moment.
const LATEST_RENEWAL: Duration = Duration::from_millis(10_500);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// An agent that runs until it is aborted.
fn start_agent(world: &World, incarnation: u32, boot: &str) -> JoinHandle<()> {
    let seams = oarsman_sim::seams(world, incarnation);
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
    let config = AgentConfig {
        node_status_config: Some(oarsman_sim::node_status_config(boot)),
        ..oarsman_sim::config()
    };
    tokio::spawn(oarsman_agent::run(seams, config, inputs))
}

/// Runs an agent in a world while that happens.
fn meanwhile(seed: u64, plan: FaultPlan, happens: impl AsyncFnOnce(&World)) {
    let lived = simulate(seed, plan, |world| async move {
        let agent = start_agent(&world, 1, "boot");
        happens(&world).await;
        agent.abort();
    });
    assert!(lived.is_ok(), "seed {seed} ended in an error");
}

fn ready(node: &Node) -> Option<&str> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    Some(ready.status.as_str())
}

/// When each report came, and the node's readiness in it.
fn reports(world: &World) -> Vec<(u64, String)> {
    let history = world.cluster.node_history();
    let said = |node: &Node| ready(node).unwrap_or_default().to_owned();
    history.reports.iter().map(|(at, node)| (at.as_secs(), said(node))).collect()
}

fn reasons(world: &World) -> Vec<&'static str> {
    world.cluster.node_history().events.iter().map(|(_, event)| event.reason).collect()
}

/// The longest time between two renewals from then on, up to the end.
fn longest_silence(world: &World, from: Duration) -> Duration {
    let renewals = world.cluster.node_history().renewals;
    let end = [world.clock.elapsed()];
    let mut times = renewals.iter().chain(&end).copied().filter(|at| *at >= from);
    let first = times.next().unwrap_or_default();
    let gap = |(last, longest): (Duration, Duration), at: Duration| (at, longest.max(at - last));
    times.fold((first, first - from), gap).1
}

#[test]
fn a_node_is_ready_at_once_and_then_quiet_but_for_its_lease() {
    meanwhile(1, FaultPlan::quiet(), async |world| {
        sleep(seconds(100)).await;
        assert_eq!(reports(world), [(0, "True".to_owned())]);
        let first = ["Starting", "NodeHasSufficientMemory", "NodeHasNoDiskPressure"];
        let then = ["NodeHasSufficientPID", "NodeReady"];
        assert_eq!(reasons(world), [&first[..], &then[..]].concat());
        let renewals = world.cluster.node_history().renewals;
        assert!(renewals.len() >= 10 && longest_silence(world, Duration::ZERO) <= LATEST_RENEWAL);
        let owners = world.cluster.lease().unwrap().metadata.owner_references.unwrap();
        assert_eq!(Some(&owners[0].uid), world.cluster.node().unwrap().metadata.uid.as_ref());
        sleep(seconds(1000)).await;
        let count = reports(world).len();
        assert!((3..=5).contains(&count), "told now and then: {count} times");
    });
}

#[test]
fn after_an_outage_the_lease_is_renewed_and_nothing_sent_twice() {
    for away in [5, 30, 120, 600] {
        meanwhile(2, FaultPlan::quiet(), async |world| {
            sleep(seconds(60)).await;
            world.cluster.restart(seconds(away), Probability::NEVER);
            sleep(seconds(away)).await;
            let (back, told) = (world.clock.elapsed(), reports(world).len());
            sleep(seconds(100)).await;
            let silence = longest_silence(world, back);
            assert!(silence <= LATEST_RENEWAL, "away for {away}: {silence:?}");
            assert!(reports(world).len() <= told + 1, "away for {away}");
            assert_eq!(reports(world).last().unwrap().1, "True");
        });
    }
}

#[test]
fn a_server_that_is_away_at_first_is_joined_when_it_comes() {
    let lived = simulate(3, FaultPlan::quiet(), |world| async move {
        world.cluster.restart(seconds(50), Probability::NEVER);
        let agent = start_agent(&world, 1, "boot");
        sleep(seconds(60)).await;
        assert_eq!(reports(&world).len(), 1);
        assert!(reports(&world)[0].0 <= 57, "{:?}", reports(&world));
        assert_eq!(reasons(&world)[0], "Starting", "what waited is told");
        agent.abort();
    });
    lived.unwrap();
}

#[test]
fn a_change_of_the_nodes_addresses_reaches_its_object() {
    let shown = |world: &World| -> Vec<String> {
        let status = world.cluster.node().and_then(|node| node.status).unwrap_or_default();
        let all = status.addresses.unwrap_or_default().into_iter();
        all.map(|address| format!("{}={}", address.type_, address.address)).collect()
    };
    meanwhile(5, FaultPlan::quiet(), async |world| {
        sleep(seconds(30)).await;
        assert_eq!(shown(world), ["InternalIP=192.0.2.1", "Hostname=n1"]);
        world.disk.set_addresses(&["127.0.0.1".parse().unwrap()]);
        sleep(seconds(15)).await;
        assert_eq!(shown(world), ["Hostname=n1"], "loopback is none");
        world.disk.set_addresses(&["192.0.2.9".parse().unwrap()]);
        sleep(seconds(5)).await;
        assert_eq!(shown(world), ["InternalIP=192.0.2.9", "Hostname=n1"]);
    });
}

#[test]
fn a_runtime_that_is_down_for_long_makes_the_node_not_ready_until_it_is_back() {
    meanwhile(4, FaultPlan::quiet(), async |world| {
        sleep(seconds(60)).await;
        world.runtime.restart(seconds(20), Probability::NEVER);
        sleep(seconds(60)).await;
        assert_eq!(reports(world).len(), 1, "twenty seconds are not long");
        world.runtime.restart(seconds(60), Probability::NEVER);
        sleep(seconds(70)).await;
        let told = reports(world);
        assert_eq!(
            told.iter().map(|(_, status)| status.as_str()).collect::<Vec<_>>(),
            ["True", "False", "True"]
        );
        assert!((140..=162).contains(&told[1].0), "{told:?}");
        assert!((180..=184).contains(&told[2].0), "as soon as it is back: {told:?}");
        assert_eq!(reasons(world)[5..], ["NodeNotReady", "NodeReady"]);
    });
}

#[test]
fn changes_of_the_node_by_others_are_seen_and_our_fields_restored() {
    meanwhile(5, FaultPlan::quiet(), async |world| {
        sleep(seconds(60)).await;
        world.cluster.update_node(|node| {
            node.spec.get_or_insert_default().unschedulable = Some(true);
        });
        sleep(seconds(20)).await;
        assert_eq!(reasons(world)[5..], ["NodeNotSchedulable"]);
        assert_eq!(reports(world).len(), 1, "that is none of ours");
        world.cluster.update_node(|node| {
            node.spec.get_or_insert_default().unschedulable = None;
            let conditions = node.status.as_mut().unwrap().conditions.as_mut().unwrap();
            conditions.iter_mut().for_each(|condition| condition.status = "Unknown".to_owned());
        });
        sleep(LATEST_RENEWAL).await;
        assert_eq!(ready(&world.cluster.node().unwrap()), Some("True"));
        assert_eq!(reports(world).len(), 2);
        assert_eq!(reasons(world)[6], "NodeSchedulable");
    });
}

#[test]
fn a_deleted_node_stays_deleted_until_its_agent_restarts() {
    meanwhile(6, FaultPlan::quiet(), async |world| {
        sleep(seconds(60)).await;
        world.cluster.delete_node();
        sleep(seconds(400)).await;
        assert_eq!(world.cluster.node(), None);
        let agent = start_agent(world, 2, "boot");
        sleep(seconds(1)).await;
        assert!(world.cluster.node().is_some());
        agent.abort();
    });
}

#[test]
fn a_restarted_agent_finds_its_node_and_reports_a_reboot() {
    let lived = simulate(7, FaultPlan::quiet(), |world| async move {
        let first = start_agent(&world, 1, "one");
        sleep(seconds(60)).await;
        first.abort();
        let uid = world.cluster.node().unwrap().metadata.uid;
        let second = start_agent(&world, 2, "two");
        sleep(seconds(60)).await;
        assert_eq!(world.cluster.node().unwrap().metadata.uid, uid);
        assert_eq!(reasons(&world)[5..], ["Starting", "Rebooted"]);
        assert_eq!(reports(&world).len(), 2);
        assert!(longest_silence(&world, seconds(60)) <= LATEST_RENEWAL);
        second.abort();
    });
    lived.unwrap();
}

#[test]
fn however_calls_fail_the_node_ends_up_ready_with_one_object_and_a_fresh_lease() {
    let troubled = FaultPlan {
        until: Some(seconds(300)),
        latency: Duration::from_millis(5),
        slow: Probability::percent(5),
        slowness: seconds(8),
        unavailable: Probability::percent(10),
        unknown: Probability::percent(5),
        silent: Probability::percent(5),
        hang: Probability::percent(5),
        late: (Probability::percent(5), seconds(30)),
        ..FaultPlan::quiet()
    };
    for seed in 0..40 {
        meanwhile(seed, troubled, async |world| {
            sleep(seconds(420)).await;
            assert_eq!(ready(&world.cluster.node().unwrap()), Some("True"), "seed {seed}");
            let silence = longest_silence(world, seconds(350));
            assert!(silence <= RENEWAL + LATEST_RENEWAL, "seed {seed}: {silence:?}");
            let uids = world.cluster.node_history().reports.into_iter();
            let uids: std::collections::BTreeSet<_> =
                uids.map(|(_, node)| node.metadata.uid).collect();
            assert_eq!(uids.len(), 1, "seed {seed}");
        });
    }
}
