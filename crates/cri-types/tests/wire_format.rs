//! Compares our proto files with upstream's, fact by fact: what differs is not the CRI.
//!
//! A fact is one line of text: a field with its number, type and label, an enum value, a call.
//! Comments, file names, and the order of things are no facts.
#![expect(clippy::expect_used, reason = "a test may panic, also in its helpers")]

use std::collections::BTreeSet;
use std::path::Path;

use protox::prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    MethodDescriptorProto, ServiceDescriptorProto,
};

const OURS: [&str; 2] = ["runtime/v1/runtime_service.proto", "runtime/v1/image_service.proto"];
const OUR_ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
const UPSTREAM: &str = "OARSMAN_UPSTREAM_CRI_PROTO";

#[test]
#[ignore = "needs OARSMAN_UPSTREAM_CRI_PROTO; ./test sets it"]
fn our_wire_format_is_upstreams() {
    let path = std::env::var(UPSTREAM)
        .unwrap_or_else(|_| panic!("set {UPSTREAM} to the path of k8s.io/cri-api's v1 api.proto"));
    let upstream = facts_of(&upstream_descriptors(Path::new(&path)));
    let ours = facts_of(&our_descriptors());
    assert_eq!(differences(&ours, &upstream), Vec::<String>::new());
    // The least that the format of v1.36 has, so that an empty file cannot pass for it.
    assert!(upstream.len() > 700, "only {} facts", upstream.len());
}

#[test]
fn a_renumbered_field_and_a_missing_call_are_named() {
    let ours = facts_of(&our_descriptors());
    let mut theirs = ours.clone();
    assert!(theirs.remove("Container.id = 1: optional string"));
    theirs.insert("Container.id = 2: optional string".to_owned());
    theirs.insert("RuntimeService.Dance(DanceRequest) -> DanceResponse".to_owned());
    assert_eq!(
        differences(&ours, &theirs),
        [
            "only ours: Container.id = 1: optional string",
            "only upstream: Container.id = 2: optional string",
            "only upstream: RuntimeService.Dance(DanceRequest) -> DanceResponse",
        ]
    );
}

#[test]
fn every_kind_of_fact_is_collected() {
    let facts = facts_of(&our_descriptors());
    for fact in [
        "message KeyValue",
        "KeyValue.value = 2: optional bytes",
        "ContainerConfig.mounts = 7: repeated message Mount",
        "Container.LabelsEntry.key = 1: optional string",
        "SecurityProfile.ProfileType.Localhost = 2",
        "ContainerState.CONTAINER_EXITED = 2",
        "RuntimeService.Version(VersionRequest) -> VersionResponse",
        "RuntimeService.GetContainerEvents(GetEventsRequest) -> stream ContainerEventResponse",
    ] {
        assert!(facts.contains(fact), "not there: {fact}");
    }
}

fn our_descriptors() -> FileDescriptorSet {
    protox::compile(OURS, [OUR_ROOT]).expect("our proto files compile")
}

fn upstream_descriptors(path: &Path) -> FileDescriptorSet {
    let folder = path.parent().expect("a path to a file");
    protox::compile([path], [folder]).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn differences(ours: &BTreeSet<String>, upstream: &BTreeSet<String>) -> Vec<String> {
    let only_ours = ours.difference(upstream).map(|fact| format!("only ours: {fact}"));
    let only_upstream = upstream.difference(ours).map(|fact| format!("only upstream: {fact}"));
    only_ours.chain(only_upstream).collect()
}

fn facts_of(set: &FileDescriptorSet) -> BTreeSet<String> {
    let mut facts = BTreeSet::new();
    for file in set.file.iter().filter(|file| file.package() == "runtime.v1") {
        assert_eq!(file.syntax(), "proto3", "{}", file.name());
        for message in &file.message_type {
            message_facts("", message, &mut facts);
        }
        for values in &file.enum_type {
            enum_facts("", values, &mut facts);
        }
        for service in &file.service {
            facts.extend(service_facts(service));
        }
    }
    facts
}

fn message_facts(scope: &str, message: &DescriptorProto, facts: &mut BTreeSet<String>) {
    let name = format!("{scope}{}", message.name());
    facts.insert(format!("message {name}"));
    for field in &message.field {
        facts.insert(field_fact(&name, message, field));
    }
    let inner = format!("{name}.");
    for nested in &message.nested_type {
        message_facts(&inner, nested, facts);
    }
    for values in &message.enum_type {
        enum_facts(&inner, values, facts);
    }
}

fn field_fact(scope: &str, message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let mut kind = vec![wire_word(field.label().as_str_name())];
    kind.push(wire_word(field.r#type().as_str_name()));
    if field.type_name.is_some() {
        kind.push(bare(field.type_name()).to_owned());
    }
    if let Some(index) = field.oneof_index {
        let oneof = usize::try_from(index).expect("an index");
        kind.push(format!("oneof {}", message.oneof_decl[oneof].name()));
    }
    let kind = kind.join(" ");
    format!("{scope}.{} = {}: {kind}", field.name(), field.number())
}

fn enum_facts(scope: &str, values: &EnumDescriptorProto, facts: &mut BTreeSet<String>) {
    let name = values.name();
    let fact = |value: &str, number: i32| format!("{scope}{name}.{value} = {number}");
    facts.extend(values.value.iter().map(|v| fact(v.name(), v.number())));
}

fn service_facts(service: &ServiceDescriptorProto) -> Vec<String> {
    let fact = |method| format!("{}.{}", service.name(), method_fact(method));
    service.method.iter().map(fact).collect()
}

fn method_fact(method: &MethodDescriptorProto) -> String {
    let stream = |yes: bool| if yes { "stream " } else { "" };
    format!(
        "{}({}{}) -> {}{}",
        method.name(),
        stream(method.client_streaming()),
        bare(method.input_type()),
        stream(method.server_streaming()),
        bare(method.output_type()),
    )
}

/// `TYPE_STRING` becomes `string`, `LABEL_REPEATED` becomes `repeated`.
fn wire_word(name: &str) -> String {
    let word = name.split_once('_').map_or(name, |(_, word)| word);
    word.to_ascii_lowercase()
}

/// A type's name without the package.
fn bare(name: &str) -> &str {
    name.trim_start_matches(".runtime.v1.")
}
