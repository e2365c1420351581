//! What is known of a certificate and of its renewals, for metrics.

use std::sync::Arc;

use jiff::Timestamp;
use oarsman_core::certificates::Certificate;
use oarsman_core::exposition::{HistogramBuckets, HistogramSnapshot};
use oarsman_core::time::wall_between;
use oarsman_sync::Guarded;

/// The upper bounds of the time that a certificate was used for, in seconds: a minute, hours, days, months and years.
const LIFETIMES: &[f64] = &[
    60.0,
    3_600.0,
    14_400.0,
    86_400.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
    124_416_000.0,
];

/// The record of one certificate and those before it; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct CertificateRecord(Arc<Guarded<CertificateFacts>>);

#[derive(Debug)]
struct CertificateFacts {
    /// From when and until when the certificate in use counts.
    validity: Option<(Timestamp, Timestamp)>,
    renew_errors: u64,
    lifetimes: HistogramBuckets,
}

impl Default for CertificateFacts {
    fn default() -> Self {
        Self { validity: None, renew_errors: 0, lifetimes: HistogramBuckets::new(LIFETIMES) }
    }
}

impl CertificateRecord {
    /// Until when the certificate in use counts; none while there is none.
    pub fn not_after(&self) -> Option<Timestamp> {
        self.0.lock().validity.map(|(_, not_after)| not_after)
    }

    /// How often a new one was asked for in vain.
    pub fn renew_errors(&self) -> u64 {
        self.0.lock().renew_errors
    }

    /// How old certificates were when they were replaced.
    pub fn lifetimes(&self) -> HistogramSnapshot {
        self.0.lock().lifetimes.snapshot()
    }

    /// This certificate is in use.
    pub(super) fn set(&self, certificate: Option<&Certificate>) {
        self.0.lock().validity = certificate.map(|known| (known.not_before, known.not_after));
    }

    /// This certificate replaces the one in use.
    pub(super) fn rotate(&self, certificate: &Certificate, now: Timestamp) {
        let mut facts = self.0.lock();
        let validity = (certificate.not_before, certificate.not_after);
        if let Some((since, _)) = facts.validity.replace(validity).filter(|old| *old != validity) {
            facts.lifetimes.add_duration(wall_between(since, now));
        }
    }

    /// No new one was signed.
    pub(super) fn renew_failed(&self) {
        self.0.lock().renew_errors += 1;
    }
}

#[cfg(test)]
mod tests {
    use oarsman_core::certificates::{CertificateSubject, SubjectAltNames};

    use super::*;

    fn certificate(from: i64, until: i64) -> Certificate {
        let at = |second| Timestamp::from_second(second).unwrap();
        Certificate {
            subject: CertificateSubject::default(),
            names: SubjectAltNames::default(),
            not_before: at(from),
            not_after: at(until),
        }
    }

    #[test]
    fn a_replaced_certificate_is_counted_by_its_age_and_one_that_is_loaded_again_is_not() {
        let record = CertificateRecord::default();
        let now = Timestamp::from_second(500).unwrap();
        assert_eq!(record.not_after(), None);
        record.rotate(&certificate(100, 1_000), now);
        record.rotate(&certificate(100, 1_000), now);
        assert_eq!(record.lifetimes().count, 0);
        record.rotate(&certificate(400, 2_000), now);
        let lifetimes = record.lifetimes();
        assert_eq!((lifetimes.count, lifetimes.sum), (1, 400.0));
        assert_eq!(record.not_after(), Some(Timestamp::from_second(2_000).unwrap()));
        record.renew_failed();
        record.set(None);
        assert_eq!((record.not_after(), record.renew_errors()), (None, 1));
    }
}
