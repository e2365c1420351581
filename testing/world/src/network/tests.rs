//! The responses of servers, directly and over a link with faults.

use super::*;
use crate::World;
use crate::faults::FaultPlan;
use crate::fixtures::{SECOND, run, world};

fn get(url: &str) -> HttpGet {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (authority, path) = rest.split_once('/').unwrap();
    let (host, port) = authority.split_once(':').unwrap();
    HttpGet {
        scheme: if scheme == "http" { Scheme::Http } else { Scheme::Https },
        host: host.to_owned(),
        port: port.parse().unwrap(),
        path_and_query: format!("/{path}"),
        headers: vec![("Host".to_owned(), "other".to_owned())],
        timeout: 10 * SECOND,
        body_limit: 5,
        trust: Trust::System,
    }
}

/// The result of a request in a few words.
async fn fetch(world: &World, request: &HttpGet) -> String {
    match world.network_for(1).get(request).await {
        Ok(HttpResponse { status, body, is_complete: whole, .. }) => {
            format!("{status} {} {whole}", String::from_utf8(body).unwrap())
        }
        Err(error) => error.to_string(),
    }
}

fn network_with_servers() -> World {
    let world = World::new(1, FaultPlan::quiet());
    let responses = |protocol| {
        FakeServer::new(protocol)
            .with("/a", FakeResponse::new(200, "hello"))
            .with("/long", FakeResponse::new(200, "hello!"))
            .with("/slow", FakeResponse::new(200, "late").after(11 * SECOND))
    };
    world.network.serve("web", 80, responses(ServerProtocol::Http));
    world.network.serve("web", 443, responses(ServerProtocol::Https));
    world.network.serve("own", 443, responses(ServerProtocol::SelfSigned));
    world
}

#[tokio::test(start_paused = true)]
async fn each_server_answers_as_it_was_told() {
    let world = network_with_servers();
    let rows = [
        ("http://web:80/a", "200 hello true"),
        ("http://web:80/long", "200 hello false"),
        ("http://web:80/none", "404 not f false"),
        ("http://web:80/slow", "no answer from http://web:80/slow within 10s"),
        ("https://web:443/a", "200 hello true"),
        (
            "https://web:80/a",
            "https://web:80/a answered in plain HTTP: ask for http instead of https",
        ),
        ("http://web:443/a", "400 this  false"),
        ("https://own:443/a", "no TLS with https://own:443/a: unknown issuer"),
        ("http://web:81/a", "cannot reach http://web:81/a: connection refused"),
    ];
    for (url, want) in rows {
        assert_eq!(fetch(&world, &get(url)).await, want, "{url}");
    }
    let unchecked = HttpGet { trust: Trust::AnyCertificate, ..get("https://own:443/a") };
    assert_eq!(fetch(&world, &unchecked).await, "200 hello true");
    world.network.refuse("web", 80);
    let gone = fetch(&world, &get("http://web:80/a")).await;
    assert_eq!(gone, "cannot reach http://web:80/a: connection refused");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_listens_answers_as_the_script_program_does() {
    let world = world(1, FaultPlan::quiet());
    let (sandbox, _) = run(&world.runtime, "web", &["listen:80", "sleep:10s"]).await.unwrap();
    let status = oarsman_cri::Runtime::pod_sandbox_status(&world.runtime, &sandbox).await.unwrap();
    let ip = status.network.unwrap().ip;
    sleep(SECOND).await;
    assert_eq!(fetch(&world, &get(&format!("http://{ip}:80/x"))).await, "200 ok\n true");
    let other = fetch(&world, &get(&format!("http://{ip}:81/x"))).await;
    assert!(other.ends_with("connection refused"), "{other}");
    let (service, user_agent) = (String::new(), String::new());
    let check = GrpcCheck { host: ip, port: 80, service, user_agent, timeout: SECOND };
    for (health, status) in [(FakeHealth::Good, 1), (FakeHealth::Bad, 2)] {
        world.network.set_pod_health(80, health);
        let answer = world.network_for(1).check_health(&check).await;
        assert_eq!(answer, Ok(GrpcResponse::Status(status)));
    }
}

#[tokio::test(start_paused = true)]
async fn every_call_is_in_the_trace_and_only_what_arrived_was_asked() {
    let world = network_with_servers();
    fetch(&world, &get("http://web:80/a")).await;
    fetch(&world, &get("http://web:81/a")).await;
    let seen: Vec<String> = world.trace.records().iter().map(|r| r.entry.to_string()).collect();
    let want = [
        "life 1 began",
        "life 1 call 0 get http://web:80/a",
        "asked for http://web:80/a",
        "life 1 call 0 is fine",
        "life 1 call 1 get http://web:81/a",
        "life 1 call 1 failed: cannot reach http://web:81/a: connection refused",
    ];
    assert_eq!(seen, want);
    let asked = world.network.asked();
    assert_eq!(asked, [get("http://web:80/a")], "with its headers");
}

#[tokio::test(start_paused = true)]
async fn with_faults_calls_fail_equally_for_one_seed() {
    let lived = async |seed| {
        let world = World::new(seed, FaultPlan::rough(SECOND * 100_000));
        world.network.serve(
            "web",
            80,
            FakeServer::new(ServerProtocol::Http).with("/", FakeResponse::new(200, "a")),
        );
        let mut heard = std::collections::BTreeSet::new();
        for _ in 0..400 {
            heard.insert(fetch(&world, &get("http://web:80/")).await);
        }
        (heard, world.trace.hash())
    };
    let (heard, hash) = lived(1).await;
    let want = [
        "200 a true",
        "cannot reach http://web:80/: connection reset",
        "cannot reach http://web:80/: no route to host",
        "no answer from http://web:80/ within 10s",
    ];
    assert_eq!(heard.iter().map(String::as_str).collect::<Vec<_>>(), want);
    assert_eq!(lived(1).await.1, hash);
    assert_ne!(lived(2).await.1, hash);
}

#[tokio::test(start_paused = true)]
async fn a_probed_server_is_well_unwell_or_silent_for_every_protocol() {
    let world = World::new(1, FaultPlan::quiet());
    let flapping = FakeHealth::Flapping { good: 10 * SECOND, bad: 5 * SECOND };
    let healths = [
        ("good", FakeHealth::Good, [true, true]),
        ("bad", FakeHealth::Bad, [false, false]),
        ("hanging", FakeHealth::Hanging, [false, false]),
        ("flapping", flapping, [true, false]),
    ];
    for (host, health, _) in healths {
        world.network.serve(host, 80, FakeServer::probed(health));
    }
    let network = world.network_for(1);
    for moment in [0, 1] {
        for (host, _, expected) in healths {
            let (host, timeout) = (host.to_owned(), SECOND / 100);
            let connect = TcpConnect { host: host.clone(), port: 80, timeout };
            assert_eq!(network.connect(&connect).await.is_ok(), expected[moment], "{host}");
            let (service, user_agent) = (String::new(), String::new());
            let check = GrpcCheck { host: host.clone(), port: 80, service, user_agent, timeout };
            let is_serving = network.check_health(&check).await == Ok(GrpcResponse::Status(1));
            assert_eq!(is_serving, expected[moment], "{host}");
            let asked = HttpGet { timeout, ..get(&format!("http://{host}:80/any")) };
            let is_ok = network.get(&asked).await.is_ok_and(|answer| answer.status == 200);
            assert_eq!(is_ok, expected[moment], "{host}");
        }
        sleep(10 * SECOND).await;
    }
}
