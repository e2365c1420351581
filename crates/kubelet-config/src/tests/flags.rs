//! Every flag: its default, a valid value, and an invalid one; and the syntax of the command line.

mod table;

use serde_json::{Value, json};

use crate::flags::{self, Flag, FlagKind, FlagStatus, ParsedFlags, ProgramFlags, RequestedAction};
use crate::{FieldPath, KubeletConfiguration, LoadedConfig, Problems};

fn parse(words: &[&str]) -> Result<ParsedFlags, Problems> {
    flags::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
}

fn load(words: &[&str]) -> Result<LoadedConfig, Problems> {
    crate::load(None, &[], &parse(words)?.layers)
}

fn flag(name: &str) -> &'static Flag {
    flags::all().find(|flag| flag.name == name).unwrap_or_else(|| panic!("there is no --{name}"))
}

/// The value that a command line gives this flag.
fn value_of(flag: &Flag, words: &[&str]) -> Result<Value, Problems> {
    let given = parse(words)?;
    let loaded = crate::load(None, &[], &given.layers)?;
    let (place, document) = if flag.field.is_empty() {
        (flag.name, serde_json::to_value(given.program).unwrap())
    } else {
        (flag.field, super::as_document(&loaded))
    };
    Ok(FieldPath::at(place).get(&document).cloned().unwrap_or(Value::Null))
}

#[test]
fn every_flag_has_its_default() {
    for (name, default, ..) in table::rows() {
        assert_eq!(value_of(flag(name), &[]).unwrap(), default, "--{name}");
    }
}

#[test]
fn every_flag_can_be_given_in_every_way_that_go_takes() {
    for (name, default, text, expected, _, company) in table::rows() {
        assert_ne!(default, expected, "--{name}: the row shows nothing");
        let with = |words: Vec<String>| {
            let words: Vec<&str> =
                words.iter().map(String::as_str).chain(company.iter().copied()).collect();
            value_of(flag(name), &words).unwrap_or_else(|problems| panic!("--{name}: {problems}"))
        };
        assert_eq!(with(vec![format!("--{name}={text}")]), expected, "--{name}=");
        assert_eq!(
            with(vec![format!("--{}={text}", name.replace('-', "_"))]),
            expected,
            "--{name}"
        );
        if flag(name).kind == FlagKind::Switch {
            assert_eq!(with(vec![format!("--{name}")]), json!(true), "--{name}");
        } else {
            assert_eq!(
                with(vec![format!("--{name}"), text.to_owned()]),
                expected,
                "--{name} value"
            );
        }
    }
}

#[test]
fn every_flag_refuses_what_it_cannot_take_and_is_named() {
    for (name, _, _, _, bad, company) in table::rows() {
        let word = bad.map_or_else(|| format!("--{name}"), |bad| format!("--{name}={bad}"));
        let words: Vec<&str> = company.iter().copied().chain([word.as_str()]).collect();
        let Err(problems) = value_of(flag(name), &words) else { panic!("{word} was taken") };
        let said = problems.to_string();
        assert!(said.starts_with(&format!("--{name}: ")), "{said}");
    }
}

#[test]
fn every_flag_has_a_row() {
    let rows: Vec<&str> = table::rows().into_iter().map(|row| row.0).collect();
    let is_told = |flag: &&Flag| !flag.field.is_empty() || is_kept(flag.name);
    let shown = |flag: &&Flag| is_told(flag) && flag.name != "runonce"; // has a test of its own
    let missing: Vec<&str> = flags::all()
        .filter(shown)
        .map(|flag| flag.name)
        .filter(|name| !rows.contains(name))
        .collect();
    assert!(missing.is_empty(), "no rows for {missing:?}");
    assert_eq!(
        rows.len(),
        flags::all().filter(shown).count(),
        "a row for something that is no flag"
    );
}

/// Whether a flag of the program has an effect; the next test has those without.
fn is_kept(name: &str) -> bool {
    serde_json::to_value(ProgramFlags::default()).unwrap().get(name).is_some()
}

#[test]
fn flags_without_effect_are_accepted_and_checked() {
    let idle = |flag: &&Flag| flag.field.is_empty() && !is_kept(flag.name);
    let idle: Vec<&Flag> = flags::all().filter(idle).collect();
    assert!(idle.len() > 20);
    for flag in idle {
        let (good, bad) = match flag.kind {
            FlagKind::Switch => ("false", Some("maybe")),
            FlagKind::Number => ("5", Some("five")),
            FlagKind::Duration => ("5s", Some("5")),
            _ => ("x", None),
        };
        assert_eq!(
            parse(&[&format!("--{}={good}", flag.name)]).unwrap().action,
            RequestedAction::Run
        );
        if let Some(bad) = bad {
            let said = parse(&[&format!("--{}={bad}", flag.name)]).unwrap_err().to_string();
            assert!(said.starts_with(&format!("--{}: {bad:?}", flag.name)), "{said}");
        }
    }
}

#[test]
fn the_runonce_flag_is_only_accepted_as_false() {
    assert!(!load(&["--runonce=false"]).unwrap().configuration.run_once);
    let said = load(&["--runonce"]).unwrap_err().to_string();
    assert!(said.starts_with("--runonce: runOnce: true is no longer possible"), "{said}");
}

#[test]
fn every_field_of_a_flag_is_one_and_no_name_is_there_twice() {
    let defaults = serde_json::to_value(KubeletConfiguration::default()).unwrap();
    let mut names: Vec<&str> = flags::all().map(|flag| flag.name).collect();
    for flag in flags::all().filter(|flag| !flag.field.is_empty()) {
        assert!(
            FieldPath::at(flag.field).get(&defaults).is_some(),
            "--{}: {}",
            flag.name,
            flag.field
        );
    }
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn only_v_and_h_are_short_flags() {
    for words in [vec!["-v=4"], vec!["-v", "4"], vec!["-v4"], vec!["--v=4"], vec!["--v", "4"]] {
        assert_eq!(load(&words).unwrap().configuration.logging.verbosity, 4, "{words:?}");
    }
    assert_eq!(parse(&["-h"]).unwrap().action, RequestedAction::Help);
    let said = parse(&["-config=/x"]).unwrap_err().to_string();
    assert_eq!(said, "-config=/x: has one dash too few; write --config=/x");
}

#[test]
fn values_may_begin_with_a_dash_and_the_last_one_counts() {
    let loaded = load(&["--oom-score-adj", "-5", "--max-pods=1", "--max-pods", "2"]).unwrap();
    assert_eq!(loaded.configuration.oom_score_adj, -5);
    assert_eq!(loaded.configuration.max_pods, 2);
}

#[test]
fn lists_and_maps_grow_with_every_repetition() {
    let words = [
        "--cluster-dns=10.0.0.1",
        "--cluster-dns=10.0.0.2,10.0.0.3",
        "--kube-reserved=cpu=1",
        "--kube-reserved",
        "memory=1Gi",
        "--feature-gates=MemoryQoS=true,EventedPLEG=true",
        "--feature-gates=EventedPLEG=false",
        "--manifest-url-header=a:1,b:2",
        "--manifest-url-header=a:3",
        "--reserved-memory=0:memory=1Gi",
        "--reserved-memory=1:memory=2Gi",
    ];
    let loaded = load(&words).unwrap().configuration;
    assert_eq!(loaded.cluster_dns.len(), 3);
    assert_eq!(loaded.kube_reserved.len(), 2);
    assert_eq!(loaded.feature_gates.values().copied().collect::<Vec<_>>(), [false, true]);
    assert_eq!(loaded.static_pod_url_header["a"], ["1", "3"]);
    assert_eq!(loaded.reserved_memory.len(), 2);
}

#[test]
fn unknown_flags_and_arguments_are_all_refused_at_once() {
    let words = [
        "--max-pod=5",
        "--network-plugin=cni",
        "--fail-swap-on",
        "false",
        "pods",
        "--nonsense",
        "--port=x",
        "--",
        "y",
    ];
    let said: Vec<String> = parse(&words).unwrap_err().0.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "--max-pod: is no flag of the kubelet (did you mean --max-pods?); see --help",
            "--network-plugin: is gone since Kubernetes 1.24: set up the network of pods in the runtime's own configuration; see --pod-network for the embedded one",
            "false: is no flag; a switch takes its value after an equals sign, as in --fail-swap-on=false",
            "pods: is no flag; every word is a flag or the value of one",
            "--nonsense: is no flag of the kubelet; see --help",
            "--port: \"x\" is no whole number",
            "y: is no flag; every word is a flag or the value of one",
        ]
    );
    for gone in [
        "pod-infra-container-image",
        "container_runtime",
        "cni-cache-dir",
        "master-service-namespace",
    ] {
        let said = parse(&[&format!("--{gone}=x")]).unwrap_err().to_string();
        assert!(said.contains("is gone since Kubernetes 1."), "{said}");
    }
}

#[test]
fn help_and_version_win_over_all_other_arguments() {
    assert_eq!(parse(&["--version"]).unwrap().action, RequestedAction::Version);
    assert_eq!(parse(&["--version=raw"]).unwrap().action, RequestedAction::Version);
    assert_eq!(parse(&["--version=false"]).unwrap().action, RequestedAction::Run);
    assert_eq!(
        parse(&["--version", "--help", "--nonsense"]).unwrap().action,
        RequestedAction::Help
    );
}

#[test]
fn deprecated_flags_are_named_with_their_fields() {
    let given = parse(&["--max-pods=5", "--v=2", "--minimum-container-ttl-duration=1m"]).unwrap();
    let told: Vec<(&str, &str)> =
        given.deprecated.iter().map(|flag| (flag.name, flag.field)).collect();
    assert_eq!(told, [("max-pods", "maxPods"), ("minimum-container-ttl-duration", "")]);
}

#[test]
fn the_help_names_every_flag_in_its_group() {
    let help = flags::help();
    for flag in flags::all() {
        assert!(help.contains(&format!("\n  --{}", flag.name)), "{}", flag.name);
        assert!(flag.help.ends_with('.'), "{}", flag.name);
    }
    let deprecated = flags::all().filter(|flag| flag.status == FlagStatus::Deprecated).count();
    assert!(deprecated > 90, "{deprecated}");
    let config = help.find("  --config=").unwrap();
    assert!(config < help.find("  --max-pods=").unwrap(), "what is needed most comes first");
    assert!(help.contains("(default 110) [maxPods]"), "{help}");
    assert!(help.contains("Examples:"));
    assert!(help.lines().all(|line| line.chars().count() < 170), "lines too long to read");
}
