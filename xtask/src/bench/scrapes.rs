//! What scrapes of all metrics cost an agent.

use anyhow::{Context, Result};
use oarsman_rig::Kubelet as Agent;
use tokio::time::{Instant, sleep, sleep_until};

use super::figures::Scrapes;
use super::pods::Shape;
use super::subject::{Bench, NODE};
use super::watch::PodTimesWatch;
use super::workload::SCRAPE_INTERVAL;

/// Every endpoint that a scraper of a cluster reads.
const ENDPOINTS: [&str; 6] = [
    "metrics",
    "metrics/cadvisor",
    "metrics/resource",
    "metrics/probes",
    "metrics/slis",
    "stats/summary",
];

impl Bench<'_> {
    /// The agent's processor time while all of its metrics are read again and again, through the API server.
    pub(super) async fn scrapes(
        &self,
        pod_times: &PodTimesWatch,
        agent: &Agent,
    ) -> Result<Scrapes> {
        let names = self.names(self.size.idle);
        self.start_all(pod_times, &names, Shape::Plain).await?;
        sleep(self.size.settling).await;
        // What an agent reads only once is read here.
        self.scrape().await?;
        let (meter, began) = (self.meter(Some(agent))?, Instant::now());
        let mut bytes = 0;
        for round in 0..self.size.scrapes {
            sleep_until(began + SCRAPE_INTERVAL * round).await;
            bytes = self.scrape().await?;
        }
        sleep_until(began + SCRAPE_INTERVAL * self.size.scrapes).await;
        let (used, took) = (meter.read()?.agent, began.elapsed().as_secs_f64());
        self.stop_all(pod_times, &names).await?;
        Ok(Scrapes {
            pods: names.len(),
            cpu: 100.0 * used.context("the agent was not measured")? / took,
            mib: bytes as f64 / f64::from(1 << 20),
        })
    }

    /// Reads each endpoint once, and returns how many bytes all of them are.
    async fn scrape(&self) -> Result<usize> {
        let mut bytes = 0;
        for endpoint in ENDPOINTS {
            let path = format!("--raw=/api/v1/nodes/{NODE}/proxy/{endpoint}");
            bytes += self.cluster.admin().run(&["get", &path]).await?.len();
        }
        Ok(bytes)
    }
}
