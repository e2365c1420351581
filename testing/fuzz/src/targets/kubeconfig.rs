//! The kubeconfig of the agent.

use std::thread_local;

use oarsman_cluster::credentials::check_kubeconfig;
use tokio::runtime::{Builder, Runtime};

use super::texts;
use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget = FuzzTarget { name: "kubeconfig", max_len: 4096, run, seeds };

thread_local! {
    static RUNTIME: Option<Runtime> = Builder::new_current_thread().build().ok();
}

fn run(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    // Files that it names are read: no device is, which may have no end.
    if text.contains("/dev") || text.contains("/proc") || text.contains("/sys") {
        return;
    }
    RUNTIME.with(|runtime| {
        let Some(runtime) = runtime else { return };
        if let Err(error) = runtime.block_on(check_kubeconfig(text)) {
            assert!(error.to_string().len() < 16 * bytes.len() + 4096, "an error without end");
        }
    });
}

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: k\n  cluster: {server: 'https://10.0.0.1:6443', certificate-authority-data: Yw==}\nusers:\n- name: u\n  user: {token: t}\ncontexts:\n- name: c\n  context: {cluster: k, user: u, namespace: n}\n",
        "apiVersion: v1\nkind: Config\nclusters:\n- name: k\n  cluster: {server: 'https://[::1]', certificate-authority: ca.pem, proxy-url: 'http://p', insecure-skip-tls-verify: true, tls-server-name: x}\nusers:\n- name: u\n  user: {client-certificate: c.pem, client-key: k.pem}\ncontexts:\n- name: c\n  context: {cluster: k, user: u}\n",
        r#"{"apiVersion": "v1", "kind": "Config", "users": [{"name": "u", "user": {"client-certificate-data": "Yw==", "client-key-data": "aw==", "exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}}}]}"#,
    ])
}
