//! The programs of a control plane and their flags.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::certificates::CertificateFiles;
use super::{AGGREGATOR, API_PORT, ISSUER, SERVICES};
use crate::parts::kubernetes::{API_SERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER};
use crate::process::ManagedProcess;

/// The options that all of them share.
pub(super) struct ComponentOptions {
    pub(super) directory: PathBuf,
    pub(super) address: String,
    pub(super) authority: CertificateFiles,
    /// The private and the public half.
    pub(super) token_key: (PathBuf, PathBuf),
}

impl ComponentOptions {
    fn process(&self, name: &str, program: &Path, arguments: &[(&str, String)]) -> ManagedProcess {
        let arguments = arguments.iter().map(|(flag, value)| format!("--{flag}={value}")).collect();
        ManagedProcess::new(name, program, arguments, self.directory.join(format!("{name}.log")))
    }

    fn etcd_url(&self, port: u16) -> String {
        format!("http://{}:{port}", self.address)
    }

    /// No data outlives the test, so nothing is synced to disk.
    pub(super) fn etcd(&self) -> Result<ManagedProcess> {
        let (clients, peers) = (self.etcd_url(2379), self.etcd_url(2380));
        let arguments = [
            ("data-dir", shown(&self.directory.join("etcd"))),
            ("listen-client-urls", clients.clone()),
            ("advertise-client-urls", clients),
            ("listen-peer-urls", peers.clone()),
            ("initial-advertise-peer-urls", peers.clone()),
            ("initial-cluster", format!("default={peers}")),
            ("unsafe-no-fsync", "true".to_owned()),
        ];
        Ok(self.process(ETCD.name, &ETCD.path()?, &arguments))
    }

    /// With all authorization and admission on that a node agent has to work with. Requests for aggregated APIs are forwarded to
    /// endpoints, because the addresses of services lead nowhere.
    pub(super) fn api_server(
        &self,
        own: &CertificateFiles,
        to_kubelets: &CertificateFiles,
        to_aggregated: &CertificateFiles,
    ) -> Result<ManagedProcess> {
        let arguments = [
            ("etcd-servers", self.etcd_url(2379)),
            ("bind-address", self.address.clone()),
            ("advertise-address", self.address.clone()),
            ("secure-port", API_PORT.to_string()),
            ("tls-cert-file", shown(&own.certificate)),
            ("tls-private-key-file", shown(&own.key)),
            ("client-ca-file", shown(&self.authority.certificate)),
            ("kubelet-client-certificate", shown(&to_kubelets.certificate)),
            ("kubelet-client-key", shown(&to_kubelets.key)),
            ("kubelet-preferred-address-types", "InternalIP".to_owned()),
            ("authorization-mode", "Node,RBAC".to_owned()),
            ("enable-admission-plugins", "NodeRestriction".to_owned()),
            ("enable-bootstrap-token-auth", "true".to_owned()),
            ("service-account-issuer", ISSUER.to_owned()),
            ("api-audiences", ISSUER.to_owned()),
            ("service-account-signing-key-file", shown(&self.token_key.0)),
            ("service-account-key-file", shown(&self.token_key.1)),
            ("service-cluster-ip-range", SERVICES.to_owned()),
            ("allow-privileged", "true".to_owned()),
            ("enable-aggregator-routing", "true".to_owned()),
            ("proxy-client-cert-file", shown(&to_aggregated.certificate)),
            ("proxy-client-key-file", shown(&to_aggregated.key)),
            ("requestheader-client-ca-file", shown(&self.authority.certificate)),
            ("requestheader-allowed-names", AGGREGATOR.to_owned()),
            ("requestheader-username-headers", "X-Remote-User".to_owned()),
            ("requestheader-group-headers", "X-Remote-Group".to_owned()),
            ("requestheader-extra-headers-prefix", "X-Remote-Extra-".to_owned()),
            ("profiling", "false".to_owned()),
        ];
        Ok(self.process(API_SERVER.name, &API_SERVER.path()?, &arguments))
    }

    /// Also signs certificates of nodes: those of clients are approved automatically, serving ones by an administrator. The
    /// autoscaler believes in metrics of pods from their start on, so that tests need not wait for minutes.
    pub(super) fn controller_manager(&self, kubeconfig: &Path) -> Result<ManagedProcess> {
        let arguments = [
            ("kubeconfig", shown(kubeconfig)),
            ("root-ca-file", shown(&self.authority.certificate)),
            ("cluster-signing-cert-file", shown(&self.authority.certificate)),
            ("cluster-signing-key-file", shown(&self.authority.key)),
            ("service-account-private-key-file", shown(&self.token_key.0)),
            ("leader-elect", "false".to_owned()),
            ("secure-port", "0".to_owned()),
            ("profiling", "false".to_owned()),
            ("horizontal-pod-autoscaler-sync-period", "5s".to_owned()),
            ("horizontal-pod-autoscaler-cpu-initialization-period", "0s".to_owned()),
            ("horizontal-pod-autoscaler-initial-readiness-delay", "0s".to_owned()),
        ];
        Ok(self.process(CONTROLLER_MANAGER.name, &CONTROLLER_MANAGER.path()?, &arguments))
    }

    pub(super) fn scheduler(&self, kubeconfig: &Path) -> Result<ManagedProcess> {
        let arguments = [
            ("kubeconfig", shown(kubeconfig)),
            ("leader-elect", "false".to_owned()),
            ("secure-port", "0".to_owned()),
            ("profiling", "false".to_owned()),
        ];
        Ok(self.process(SCHEDULER.name, &SCHEDULER.path()?, &arguments))
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
