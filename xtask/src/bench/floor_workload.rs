//! The workload on the runtime alone, with the API writes of an agent where pods come all at once.

use anyhow::Result;
use futures::future::try_join_all;
use tokio::time::Instant;

use super::figures::{Burst, Figures, Single, Spread};
use super::floor::StartedPod;
use super::pods::{self, Shape, pod};
use super::subject::{Bench, NODE};
use super::watch::PodTimesWatch;
use super::workload::{WorkloadPart, all_at_once, burst, random_pause, until_gone, until_running};

impl Bench<'_> {
    /// The figures of the runtime, on a node without an agent.
    pub(super) async fn floor_figures(
        &self,
        pod_times: &PodTimesWatch,
        version: String,
    ) -> Result<Figures> {
        let mut figures = Figures { version, ..Figures::default() };
        if self.wants(WorkloadPart::Rest) {
            figures.idle.push(self.idle(0, None).await?);
        }
        if self.wants(WorkloadPart::Singles) {
            figures.plain = self.floor_singles(Shape::Plain).await?;
            figures.volumes = self.floor_singles(Shape::Volumes).await?;
        }
        if self.wants(WorkloadPart::Bursts) {
            for (count, shape) in self.size.bursts {
                figures.bursts.push(self.floor_burst(pod_times, count, shape).await?);
            }
        }
        if !self.wants(WorkloadPart::Rest) {
            return Ok(figures);
        }
        let names = self.names(self.size.idle);
        let started = self.floor_start(&names, Shape::Volumes).await?;
        figures.idle.push(self.idle(names.len(), None).await?);
        self.floor_stop(&started).await?;
        until_gone(pod_times, &names).await?;
        self.floor_remove(&started).await?;
        Ok(figures)
    }

    async fn floor_singles(&self, shape: Shape) -> Result<Single> {
        let (mut starts, mut stops) = (Vec::new(), Vec::new());
        for name in self.names(self.size.singles) {
            let began = Instant::now();
            let pod = self.floor.start(&name, shape).await?;
            starts.push(began.elapsed());
            random_pause().await;
            let began = Instant::now();
            self.floor.stop(&pod).await?;
            stops.push(began.elapsed());
            self.floor.remove(&pod).await?;
        }
        Ok(Single { start: Spread::of(&starts), stop: Spread::of(&stops) })
    }

    async fn floor_burst(
        &self,
        pod_times: &PodTimesWatch,
        count: usize,
        shape: Shape,
    ) -> Result<Burst> {
        let names = self.names(count);
        let (began, meter) = (Instant::now(), self.meter(None)?);
        let started = self.floor_start(&names, shape).await?;
        let running = until_running(pod_times, &names).await? - began;
        let began = Instant::now();
        self.floor_stop(&started).await?;
        let gone = until_gone(pod_times, &names).await? - began;
        let cpu = meter.read()?;
        self.floor_remove(&started).await?;
        Ok(burst(count, shape, running, gone, cpu))
    }

    /// Starts all of them in parallel, as an agent does.
    async fn floor_start(
        &self,
        names: &[String],
        shape: Shape,
    ) -> Result<Vec<(String, StartedPod)>> {
        try_join_all(names.iter().map(|name| self.floor_start_one(name, shape))).await
    }

    async fn floor_start_one(&self, name: &str, shape: Shape) -> Result<(String, StartedPod)> {
        self.api.create_pod(&pod(name, NODE, shape)).await?;
        self.api.patch_status(name, &pods::waiting()).await?;
        if shape == Shape::Volumes {
            self.api.request_token().await?;
        }
        let started = self.floor.start(name, shape).await?;
        let running = pods::running();
        let told = try_join_all(
            ["Pulled", "Created", "Started"].map(|it| self.api.create_event(name, it)),
        );
        tokio::try_join!(self.api.patch_status(name, &running), told)?;
        Ok((name.to_owned(), started))
    }

    async fn floor_stop(&self, pods: &[(String, StartedPod)]) -> Result<()> {
        let all = pods.iter().map(|(name, started)| self.floor_stop_one(name, started));
        try_join_all(all).await.map(drop)
    }

    async fn floor_stop_one(&self, name: &str, started: &StartedPod) -> Result<()> {
        self.api.delete_pod(name).await?;
        tokio::try_join!(self.floor.stop(started), self.api.create_event(name, "Killing"))?;
        self.api.patch_status(name, &pods::ended()).await?;
        self.api.finish_pod(name).await
    }

    async fn floor_remove(&self, pods: &[(String, StartedPod)]) -> Result<()> {
        all_at_once(pods.iter().map(|(_, started)| self.floor.remove(started))).await
    }
}
