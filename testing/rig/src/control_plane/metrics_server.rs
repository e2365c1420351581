//! Runs metrics-server, which scrapes kubelets for `kubectl top` and the autoscaler, behind the API server.

use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::{ControlPlane, TAIL_LINES};
use crate::clock;
use crate::parts;
use crate::process::ManagedProcess;

const PORT: u16 = 4443;
const NAME: &str = "metrics-server";
const NAMESPACE: &str = "kube-system";
const API_SERVICE: &str = "v1beta1.metrics.k8s.io";

/// A running metrics-server, which ends with this.
pub struct MetricsServer(ManagedProcess);

impl ControlPlane {
    /// Starts metrics-server as cluster administrator, and waits until the API server answers from it.
    ///
    /// # Errors
    /// When it was not built before or does not come up; the error carries the end of its log.
    pub async fn start_metrics_server(&self, max_wait: Duration) -> Result<MetricsServer> {
        let kubeconfig = self.admin_kubeconfig().display().to_string();
        let arguments = [
            ("bind-address", self.node_address().to_string()),
            ("secure-port", PORT.to_string()),
            ("cert-dir", self.directory.join(NAME).display().to_string()),
            ("kubeconfig", kubeconfig.clone()),
            ("authentication-kubeconfig", kubeconfig.clone()),
            ("authorization-kubeconfig", kubeconfig),
            // The serving certificate of a node in a test is its own.
            ("kubelet-insecure-tls", "true".to_owned()),
            ("kubelet-preferred-address-types", "InternalIP".to_owned()),
            ("kubelet-use-node-status-port", "true".to_owned()),
            ("metric-resolution", "10s".to_owned()),
            // It refuses a time-out that is not shorter than the resolution.
            ("kubelet-request-timeout", "5s".to_owned()),
        ];
        let arguments = arguments.iter().map(|(flag, value)| format!("--{flag}={value}")).collect();
        let log = self.directory.join(format!("{NAME}.log"));
        let server =
            MetricsServer(ManagedProcess::new(NAME, &parts::metrics_server()?, arguments, log));
        server.0.start()?;
        self.admin().apply(&self.aggregation()).await?;
        let is_served = async || {
            server.0.pid()?;
            let asked = self.admin().run(&["get", "--raw=/apis/metrics.k8s.io/v1beta1"]).await;
            Ok(asked.is_ok())
        };
        if clock::wait_until_async(max_wait, is_served).await? {
            return Ok(server);
        }
        bail!("metrics-server is not served within {max_wait:?}; it says:\n{}", server.log_end())
    }

    /// The objects by which the API server finds it.
    fn aggregation(&self) -> Value {
        let meta = json!({ "name": NAME, "namespace": NAMESPACE });
        let slice = json!({
            "name": NAME,
            "namespace": NAMESPACE,
            "labels": { "kubernetes.io/service-name": NAME },
        });
        let items = json!([
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": meta,
                "spec": { "ports": [{ "name": "https", "port": 443, "targetPort": PORT }] },
            },
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": slice,
                "addressType": "IPv4",
                "endpoints": [{
                    "addresses": [self.node_address()],
                    "conditions": { "ready": true },
                }],
                "ports": [{ "name": "https", "port": PORT, "protocol": "TCP" }],
            },
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": { "name": API_SERVICE },
                "spec": {
                    "group": "metrics.k8s.io",
                    "version": "v1beta1",
                    "groupPriorityMinimum": 100,
                    "versionPriority": 100,
                    "insecureSkipTLSVerify": true,
                    "service": { "name": NAME, "namespace": NAMESPACE, "port": 443 },
                },
            },
        ]);
        json!({ "apiVersion": "v1", "kind": "List", "items": items })
    }
}

impl MetricsServer {
    /// The end of its log.
    pub fn log_end(&self) -> String {
        self.0.log_end(TAIL_LINES)
    }

    /// Ends it, and removes what leads to it.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn stop(self, plane: &ControlPlane) -> Result<()> {
        plane.admin().run(&["delete", "apiservice", API_SERVICE]).await?;
        // The slice goes with its service.
        plane.admin().run(&["delete", "service", NAME, "--namespace", NAMESPACE]).await?;
        self.0.kill()
    }
}
