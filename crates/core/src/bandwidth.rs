//! How much a pod may receive and send: annotations that the runtime reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::quantity::Quantity;

const INGRESS: &str = "kubernetes.io/ingress-bandwidth";
const EGRESS: &str = "kubernetes.io/egress-bandwidth";
/// The slowest and the fastest rate that anything is shaped to, in bits per second.
const SLOWEST: i64 = 1_000;
const FASTEST: i64 = 1_000_000_000_000_000;

/// How much a pod may receive and send, in bits per second; none for any amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodBandwidth {
    /// What goes to the pod.
    pub ingress: Option<u64>,
    /// What comes from the pod.
    pub egress: Option<u64>,
}

/// An annotation that is no rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the annotation {annotation}: {value:?} {problem}: write bits per second from 1k to 1P, such as 10M"
)]
pub struct BandwidthError {
    annotation: &'static str,
    value: String,
    problem: &'static str,
}

impl PodBandwidth {
    /// What the annotations of a pod say.
    ///
    /// # Errors
    /// When one of them is no rate, or one that is too low or too high.
    pub fn of_annotations(annotations: &BTreeMap<String, String>) -> Result<Self, BandwidthError> {
        let rate = |name| annotations.get(name).map(|value| rate(name, value)).transpose();
        Ok(Self { ingress: rate(INGRESS)?, egress: rate(EGRESS)? })
    }
}

fn rate(annotation: &'static str, value: &str) -> Result<u64, BandwidthError> {
    let wrong = |problem| BandwidthError { annotation, value: value.to_owned(), problem };
    let rate = Quantity::parse(value).map_err(|_| wrong("is no quantity"))?.units();
    match rate {
        ..SLOWEST => Err(wrong("is less than 1 kbit/s")),
        SLOWEST..=FASTEST => Ok(rate.unsigned_abs()),
        _ => Err(wrong("is more than 1 Pbit/s")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bits_per_second_within_reason() {
        let rows = [
            ("1k", Ok(1_000)),
            ("10M", Ok(10_000_000)),
            ("1Mi", Ok(1_048_576)),
            ("1P", Ok(1_000_000_000_000_000)),
            ("1500.5", Ok(1_501)),
            ("999", Err("is less than 1 kbit/s")),
            ("0", Err("is less than 1 kbit/s")),
            ("-1M", Err("is less than 1 kbit/s")),
            ("1001T", Err("is more than 1 Pbit/s")),
            ("fast", Err("is no quantity")),
            ("10Mbit", Err("is no quantity")),
        ];
        for (value, wanted) in rows {
            let annotations = BTreeMap::from([(INGRESS.to_owned(), value.to_owned())]);
            let found = PodBandwidth::of_annotations(&annotations);
            let wanted = wanted.map(|rate| PodBandwidth { ingress: Some(rate), egress: None });
            assert_eq!(found.map_err(|error| error.problem), wanted, "{value}");
        }
        let egress = BTreeMap::from([(EGRESS.to_owned(), "2G".to_owned())]);
        let wanted = PodBandwidth { ingress: None, egress: Some(2_000_000_000) };
        assert_eq!(PodBandwidth::of_annotations(&egress), Ok(wanted));
        assert_eq!(PodBandwidth::of_annotations(&BTreeMap::new()), Ok(PodBandwidth::default()));
        let wrong = BTreeMap::from([(EGRESS.to_owned(), "x".to_owned())]);
        let error = PodBandwidth::of_annotations(&wrong).unwrap_err().to_string();
        assert!(error.contains("kubernetes.io/egress-bandwidth: \"x\" is no quantity"), "{error}");
    }
}
