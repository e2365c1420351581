//! What is counted of images beyond their pulls: checks of credentials, image volumes and credential provider plugins.

use oarsman_core::exposition::{DEFAULT_SECONDS, Exposition, MetricKind};
use oarsman_core::image::verification::MustPullResult;

use super::families::{counter, tristate};
use super::{AgentMetrics, Counter, CounterVec, HistogramVec};

/// Counts of images.
#[derive(Debug)]
pub(crate) struct ImageMetrics {
    /// Checks whether a pod may use an image that is on the node.
    pub(crate) must_pull_checks: CounterVec<MustPullResult>,
    /// Images that containers mount.
    pub(crate) volumes: ImageVolumeCounts,
    /// Executions of credential provider plugins, by name. Names come from the node's configuration.
    pub(crate) plugin_calls: HistogramVec<String>,
    /// Those that failed.
    pub(crate) plugin_errors: CounterVec<String>,
}

impl Default for ImageMetrics {
    fn default() -> Self {
        Self {
            must_pull_checks: CounterVec::default(),
            volumes: ImageVolumeCounts::default(),
            plugin_calls: HistogramVec::new(DEFAULT_SECONDS),
            plugin_errors: CounterVec::default(),
        }
    }
}

/// Images that containers mount, at each start of a container.
#[derive(Debug, Default)]
pub(crate) struct ImageVolumeCounts {
    pub(crate) requested: Counter,
    /// The image was not to be had, or the container was not created with it.
    pub(crate) failed: Counter,
    succeeded: Counter,
}

impl ImageVolumeCounts {
    /// The runtime mounts the images of a container when it creates it, or none of them.
    pub(crate) fn mounted(&self, volumes: usize, is_created: bool) {
        let counter = if is_created { &self.succeeded } else { &self.failed };
        (0..volumes).for_each(|_| counter.increment());
    }
}

impl AgentMetrics {
    pub(super) fn write_images(&self, out: &mut Exposition) {
        let help =
            "Images that containers needed, by whether they were there and had to be pulled.";
        let name = "kubelet_image_manager_ensure_image_requests_total";
        let mut family = out.family(name, MetricKind::Counter, help);
        for (request, count) in self.image_requests.snapshot() {
            let labels = [
                ("present_locally", tristate(request.present_locally)),
                ("pull_policy", request.pull_policy),
                ("pull_required", tristate(request.pull_required)),
            ];
            family.sample(&labels, count as f64);
        }
        let help = "How long pulls of images took that succeeded, in seconds.";
        let name = "kubelet_image_pull_duration_seconds";
        let mut family = out.family(name, MetricKind::Histogram, help);
        for (size, found) in self.pulls.snapshot() {
            family.histogram(&[("image_size_in_bytes", size)], &found);
        }
        let help = "Unused images that were removed.";
        let name = "kubelet_image_garbage_collected_total";
        let mut family = out.family(name, MetricKind::Counter, help);
        for (reason, count) in self.removed_images.snapshot() {
            family.sample(&[("reason", reason)], count as f64);
        }
        self.images.write(out);
    }
}

impl ImageMetrics {
    fn write(&self, out: &mut Exposition) {
        let help = "Checks whether a pod may use an image of the node without a pull.";
        let name = "kubelet_imagemanager_image_mustpull_checks_total";
        let mut family = out.family(name, MetricKind::Counter, help);
        for (result, count) in self.must_pull_checks.snapshot() {
            family.sample(&[("result", result.label())], count as f64);
        }
        self.write_volumes(out);
        let help = "How long credential provider plugins took, in seconds.";
        let name = "kubelet_credential_provider_plugin_duration";
        let mut family = out.family(name, MetricKind::Histogram, help);
        for (plugin, found) in self.plugin_calls.snapshot() {
            family.histogram(&[("plugin_name", &plugin)], &found);
        }
        let help = "Executions of credential provider plugins that failed.";
        let name = "kubelet_credential_provider_plugin_errors_total";
        let mut family = out.family(name, MetricKind::Counter, help);
        for (plugin, count) in self.plugin_errors.snapshot() {
            family.sample(&[("plugin_name", &plugin)], count as f64);
        }
    }

    fn write_volumes(&self, out: &mut Exposition) {
        let ImageVolumeCounts { requested, failed, succeeded } = &self.volumes;
        let help = "Images that containers were to mount.";
        counter(out, "kubelet_image_volume_requested_total", help, requested.get());
        let help = "Images that containers were created with.";
        counter(out, "kubelet_image_volume_mounted_succeed_total", help, succeeded.get());
        let help = "Images that containers could not be created with.";
        counter(out, "kubelet_image_volume_mounted_errors_total", help, failed.get());
    }
}
