//! Whose servers, which domains, how many.

use k8s_openapi::api::core::v1::PodDNSConfigOption;

use super::*;
use crate::fixture::{PodBuilder, pod};

const HOST: &str = "# the node's\nnameserver 192.0.2.53\n  nameserver\t2001:db8::53\n\
    search old.example\nsearch example.com. corp.example .\noptions ndots:2 rotate\noptions ndots:3\n";

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn node() -> NodeDns {
    NodeDns {
        servers: texts(&["10.96.0.10"]),
        domain: "cluster.local".to_owned(),
        has_cluster: true,
    }
}

fn policy(policy: &str) -> PodBuilder {
    pod().spec(|spec| spec.dns_policy = Some(policy.to_owned()))
}

fn resolve(pod: PodBuilder, node: &NodeDns) -> Resolver {
    resolver(&pod.build(), node, Some(HOST), &[]).unwrap()
}

fn config(servers: &[&str], searches: &[&str], options: &[&str]) -> DnsConfig {
    DnsConfig { servers: texts(servers), searches: texts(searches), options: texts(options) }
}

fn of_host() -> DnsConfig {
    let servers = ["192.0.2.53", "2001:db8::53"];
    config(&servers, &["example.com", "corp.example"], &["ndots:3", "rotate"])
}

fn cluster_dns() -> DnsConfig {
    let own = ["default.svc.cluster.local", "svc.cluster.local", "cluster.local"];
    let searches = [&own[..], &["example.com", "corp.example"]].concat();
    config(&["10.96.0.10"], &searches, &["ndots:5"])
}

#[test]
fn the_dns_policy_chooses_the_name_servers() {
    let rows = [
        (policy("ClusterFirst"), cluster_dns()),
        (policy("ClusterFirst").host_network(), of_host()),
        (policy("ClusterFirstWithHostNet").host_network(), cluster_dns()),
        (policy("Default"), of_host()),
        (policy("None"), DnsConfig::default()),
        (pod(), cluster_dns()),
    ];
    for (pod, expected) in rows {
        let spec = pod.clone().build().spec;
        let resolver = resolve(pod, &node());
        assert_eq!(resolver, Resolver { config: expected, warnings: Vec::new() }, "{spec:?}");
    }
}

#[test]
fn a_cluster_without_a_domain_searches_what_the_node_searches() {
    let node = NodeDns { domain: String::new(), ..node() };
    let expected = config(&["10.96.0.10"], &["example.com", "corp.example"], &["ndots:5"]);
    assert_eq!(resolve(policy("ClusterFirst"), &node).config, expected);
}

#[test]
fn a_domain_is_searched_once() {
    let resolv_conf = Some("search svc.cluster.local. example.com");
    let expected =
        ["default.svc.cluster.local", "svc.cluster.local", "cluster.local", "example.com"];
    let pod = policy("ClusterFirst").build();
    let resolver = resolver(&pod, &node(), resolv_conf, &[]).unwrap();
    assert_eq!(resolver.config.searches, texts(&expected));
}

#[test]
fn without_cluster_dns_servers_those_of_the_node_are_used_with_a_warning() {
    let node = NodeDns { servers: Vec::new(), ..node() };
    let resolver = resolve(policy("ClusterFirst"), &node);
    assert_eq!(resolver.config, of_host());
    let [warning] = &resolver.warnings[..] else { panic!("{:?}", resolver.warnings) };
    let event = warning.event(&pod().build());
    assert_eq!(event.reason, "MissingClusterDNS");
    assert!(event.message.starts_with("pod: \"web_default(uid-web)\". kubelet does not have"));
    let alone = NodeDns { has_cluster: false, ..node };
    let resolver = resolve(policy("ClusterFirst"), &alone);
    assert_eq!((resolver.config, resolver.warnings), (of_host(), vec![]), "there is no cluster");
}

#[test]
fn a_node_that_keeps_its_file_to_itself_asks_only_this_machine() {
    let node = NodeDns::default();
    let rows = [
        (&[][..], &["127.0.0.1"][..]),
        (&["192.0.2.1"], &["127.0.0.1"]),
        (&["2001:db8::1"], &["::1"]),
        (&["192.0.2.1", "2001:db8::1"], &["127.0.0.1", "::1"]),
    ];
    for (ips, servers) in rows {
        let resolver = resolver(&policy("Default").build(), &node, None, &texts(ips)).unwrap();
        assert_eq!(resolver.config, config(servers, &["."], &[]));
    }
}

#[test]
fn what_the_pod_wants_itself_is_added_once_and_its_options_win() {
    let option = |name: &str, value: Option<&str>| PodDNSConfigOption {
        name: Some(name.to_owned()),
        value: value.map(str::to_owned),
    };
    let wanted = PodDNSConfig {
        nameservers: Some(texts(&["192.0.2.53", "1.2.3.4"])),
        searches: Some(texts(&["mine.example", "example.com"])),
        options: Some(vec![option("ndots", Some("1")), option("edns0", None)]),
    };
    let pod = policy("Default").spec(|spec| spec.dns_config = Some(wanted));
    let expected = config(
        &["192.0.2.53", "2001:db8::53", "1.2.3.4"],
        &["example.com", "corp.example", "mine.example"],
        &["ndots:1", "rotate", "edns0"],
    );
    assert_eq!(resolve(pod, &node()).config, expected);
}

#[test]
fn what_exceeds_resolver_limits_is_cut_with_a_warning() {
    let searches = |count: usize, length: usize| -> Vec<String> {
        (0..count).map(|index| format!("{index:0length$}")).collect()
    };
    let rows = [
        (texts(&["1.1.1.1"; 1]), searches(32, 8), 1, 32, &[][..]),
        (searches(3, 7), searches(2, 253), 3, 2, &[]),
        (searches(4, 7), searches(1, 8), 3, 1, &["Nameserver limits"][..]),
        (searches(4, 7), searches(33, 8), 3, 32, &["Nameserver limits", "Search Line limits"]),
        (Vec::new(), searches(2, 254), 0, 0, &["Search Line limits"]),
        // Eight of them and the blanks between are 2031 characters, nine are 2285.
        (Vec::new(), searches(8, 253), 0, 8, &[]),
        (Vec::new(), searches(9, 253), 0, 8, &["Search Line limits"]),
    ];
    for (servers, searches, servers_left, searches_left, told) in rows {
        let wanted =
            PodDNSConfig { nameservers: Some(servers), searches: Some(searches), options: None };
        let resolver = resolve(policy("None").spec(|spec| spec.dns_config = Some(wanted)), &node());
        assert_eq!(resolver.config.servers.len(), servers_left);
        assert_eq!(resolver.config.searches.len(), searches_left);
        let events: Vec<_> = resolver.warnings.iter().map(|w| w.event(&pod().build())).collect();
        assert_eq!(events.len(), told.len(), "{events:?}");
        for (event, start) in events.iter().zip(told) {
            assert_eq!(event.reason, "DNSConfigForming");
            assert!(event.message.starts_with(start), "{event:?}");
        }
    }
}

#[test]
fn a_server_line_without_a_server_is_refused() {
    let error = resolver(&pod().build(), &node(), Some("\nnameserver\n"), &[]).unwrap_err();
    assert_eq!(error, ConfigError::ResolvConf { line: 2 });
}

#[test]
fn a_resolv_conf_that_exceeds_the_limits_is_reported_at_start() {
    let domains = |count: usize| format!("search {}", vec!["example.com"; count].join(" "));
    let rows = [
        (domains(29), "cluster.local", None),
        (domains(30), "cluster.local", Some("30 search domains")),
        (domains(32), "", None),
        (domains(33), "", Some("33 search domains")),
        (format!("search {}", "x".repeat(254)), "", Some("longer than 253")),
        (format!("search {}", vec!["x".repeat(253); 9].join(" ")), "", Some("longer than 2048")),
        ("nameserver".to_owned(), "", Some("line 1")),
    ];
    for (text, domain, expected) in rows {
        let message = check_limits_for_resolv_conf("/etc/resolv.conf", &text, domain);
        assert_eq!(message.is_some(), expected.is_some(), "{message:?}");
        assert!(message.is_none_or(|message| message.contains(expected.unwrap())));
    }
}
