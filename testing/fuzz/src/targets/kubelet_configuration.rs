//! The configuration file of the kubelet and its drop-ins.

use std::path::Path;

use oarsman_kubelet_config::{ConfigFile, check, load};

use super::texts;
use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget =
    FuzzTarget { name: "kubelet-configuration", max_len: 4096, run, seeds };

fn run(bytes: &[u8]) {
    let file = || ConfigFile { path: Path::new("/config.yaml"), bytes };
    let problems = check(file());
    let loaded = load(Some(file()), &[], &[]);
    assert!(loaded.is_ok() || !problems.is_empty(), "a file without problems is refused");
    drop(load(None, &[file()], &[]));
}

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 110\nsyncFrequency: 1m0s\nevictionHard: {memory.available: 100Mi, nodefs.available: 10%}\nauthentication: {anonymous: {enabled: false}, x509: {clientCAFile: /ca}}\nfeatureGates: {X: true}\n",
        "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\nkubeReserved: {cpu: 100m, memory: 1Gi}\nsystemReserved: {}\nreservedSystemCPUs: 0-3,5\nimageGCHighThresholdPercent: 85\nshutdownGracePeriod: 30s\ncgroupDriver: systemd\ntlsCipherSuites: [TLS_AES_128_GCM_SHA256]\n",
    ])
}
