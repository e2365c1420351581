//! Texts of the metrics endpoints, and what they say.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context, Result};
use oarsman_core::exposition::strict::{self, SampleValues};
use oarsman_e2e::cluster::TestCluster;
use oarsman_e2e::server_clients::get_text;

const KUBELET_PORT: u16 = 10250;

/// What an endpoint answers.
pub(super) async fn text(cluster: &TestCluster, path: &str) -> Result<String> {
    let server = SocketAddr::from((cluster.plane.node_address(), KUBELET_PORT));
    get_text(server, cluster.plane.kubelet_client(), path).await
}

/// One answer, read strictly.
#[derive(Debug)]
pub(super) struct Scrape(SampleValues);

impl Scrape {
    pub(super) async fn of(cluster: &TestCluster, path: &str) -> Result<Self> {
        Self::read(&text(cluster, path).await?)
    }

    pub(super) fn read(text: &str) -> Result<Self> {
        strict::read(text).map(Self).map_err(anyhow::Error::msg)
    }

    /// The sum of the series of this name that have all these labels; none if there is none.
    pub(super) fn find(&self, name: &str, labels: &[&str]) -> Option<f64> {
        let is_wanted = |series: &str| {
            let (found, rest) = series.split_once('{').unwrap_or((series, ""));
            found == name && labels.iter().all(|label| rest.contains(label))
        };
        let found = self.0.iter().filter(|(series, _)| is_wanted(series)).map(|(_, value)| *value);
        found.reduce(|sum, value| sum + value)
    }

    /// The same; zero if there is none, as for counters that nothing was counted under.
    pub(super) fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        self.find(name, labels).unwrap_or_default()
    }

    /// The same of a family that must be there.
    pub(super) fn value(&self, name: &str, labels: &[&str]) -> Result<f64> {
        self.find(name, labels).with_context(|| format!("no {name} with {labels:?}"))
    }

    /// The values of all series of this name.
    pub(super) fn values(&self, name: &str) -> Vec<f64> {
        let is_wanted = |series: &str| series.split('{').next() == Some(name);
        self.0.iter().filter(|(series, _)| is_wanted(series)).map(|(_, value)| *value).collect()
    }
}

/// How much has been added since an earlier answer.
pub(super) struct Growth<'a> {
    pub(super) before: &'a Scrape,
    pub(super) after: &'a Scrape,
}

impl Growth<'_> {
    pub(super) fn of(&self, name: &str, labels: &[&str]) -> f64 {
        self.after.sum(name, labels) - self.before.sum(name, labels)
    }
}

/// The types of all families of a text.
pub(super) fn kinds(text: &str) -> BTreeMap<String, String> {
    let kind = |line: &str| {
        let (name, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
        Some((name.to_owned(), kind.to_owned()))
    };
    text.lines().filter_map(kind).collect()
}
