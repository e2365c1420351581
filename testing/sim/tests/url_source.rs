//! The source of manifests at a URL: how often it is fetched, and the effects of a server that fails or hangs.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use oarsman_agent::ReportStore;
use oarsman_agent::sources::ManifestUrl;
use oarsman_clock::SystemClock;
use oarsman_core::report::NodeReport;
use oarsman_world::faults::FaultPlan;
use oarsman_world::network::{FakeResponse, FakeServer, ServerProtocol};
use oarsman_world::trace::TraceEntry;
use oarsman_world::{World, simulate};

const PERIOD: Duration = Duration::from_secs(20);

fn pod(name: &str) -> FakeResponse {
    let spec = "spec: {containers: [{name: a, image: b}]}";
    FakeResponse::new(
        200,
        format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\n{spec}\n"),
    )
}

fn serve(world: &World, response: FakeResponse) {
    world.network.serve(
        "web",
        80,
        FakeServer::new(ServerProtocol::Http).with("/pods?a=b", response),
    );
}

/// The names in each set, with the second in which it came.
fn sets(
    faults: FaultPlan,
    responses: Vec<(u64, FakeResponse)>,
    most: usize,
) -> (Vec<(u64, String)>, Vec<u64>) {
    let simulation = async |world: World| {
        serve(&world, FakeResponse::new(503, "not yet"));
        let network = world.network_for(1);
        let report_store = ReportStore::new(Arc::new(SystemClock::start()), NodeReport::default());
        let url = ManifestUrl::new("http://web/pods?a=b", Vec::new(), "n".to_owned(), network);
        let sets = url.unwrap().follow(PERIOD, &report_store);
        let turn = async {
            for (second, response) in responses {
                tokio::time::sleep_until(begin(&world) + Duration::from_secs(second)).await;
                serve(&world, response);
            }
            std::future::pending::<()>().await;
        };
        let told = sets.take(most).map(|pods| {
            let names: Vec<_> = pods.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect();
            (world.clock.elapsed().as_secs(), names.join(" "))
        });
        let told = tokio::select! {
            () = turn => unreachable!("it waits for ever"),
            told = told.collect::<Vec<_>>() => told,
        };
        let asked = world.trace.records().into_iter();
        let asked = asked.filter(|record| matches!(record.entry, TraceEntry::Called { .. }));
        (told, asked.map(|record| record.at.as_secs()).collect())
    };
    simulate(7, faults, simulation).unwrap()
}

fn begin(world: &World) -> tokio::time::Instant {
    tokio::time::Instant::now() - world.clock.elapsed()
}

fn named(sets: &[(u64, &str)]) -> Vec<(u64, String)> {
    sets.iter().map(|(second, names)| (*second, (*names).to_owned())).collect()
}

#[test]
fn the_url_is_fetched_every_twenty_seconds_and_only_changes_are_sent() {
    let responses = vec![(30, pod("a")), (70, FakeResponse::new(500, "ill")), (90, pod("b"))];
    let (told, asked) = sets(FaultPlan::quiet(), responses, 2);
    assert_eq!(told, named(&[(40, "a-n"), (100, "b-n")]));
    assert_eq!(asked, [0, 20, 40, 60, 80, 100]);
}

#[test]
fn a_server_that_hangs_is_waited_for_ten_seconds() {
    let responses = vec![(10, pod("late").after(Duration::from_secs(60))), (45, pod("a"))];
    let (told, asked) = sets(FaultPlan::quiet(), responses, 1);
    assert_eq!(asked, [0, 20, 50], "twenty seconds after ten were waited in vain");
    assert_eq!(told, named(&[(50, "a-n")]));
}

#[test]
fn pods_of_a_url_come_and_stay_in_spite_of_faults() {
    let rough = FaultPlan::rough(Duration::from_secs(100_000));
    let responses = vec![(30, pod("a")), (50_000, pod("b"))];
    let (told, asked) = sets(rough, responses.clone(), 2);
    let names: Vec<&str> = told.iter().map(|(_, names)| names.as_str()).collect();
    assert_eq!(names, ["a-n", "b-n"], "nothing in between");
    assert!(asked.len() > 1_000, "{}", asked.len());
    assert_eq!(sets(rough, responses, 2), (told, asked), "the same again");
}
