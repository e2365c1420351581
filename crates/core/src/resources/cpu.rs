//! CPU amounts in the units of the kernel's scheduler.

/// The least weight that a v1 group can have.
pub const MIN_SHARES: u64 = 2;
/// The most that the kernel takes for `cpu.shares`.
pub const MAX_SHARES: u64 = 262_144;

const SHARES_PER_CPU: u64 = 1024;
const MILLIS_PER_CPU: u64 = 1000;
/// The kernel takes no quota shorter than a millisecond.
const MIN_QUOTA_MICROS: i64 = 1000;

/// The weight for so many thousandths of a CPU, in shares of v1.
pub fn shares(millis: i64) -> u64 {
    let millis = u64::try_from(millis).unwrap_or_default();
    let shares = millis.saturating_mul(SHARES_PER_CPU) / MILLIS_PER_CPU;
    shares.clamp(MIN_SHARES, MAX_SHARES)
}

/// The microseconds of CPU time in each period for so many thousandths of a CPU; none for nothing,
/// which is no limit.
pub fn quota(millis: i64, period_micros: i64) -> Option<i64> {
    let quota = millis.saturating_mul(period_micros) / 1000;
    (millis > 0).then(|| quota.max(MIN_QUOTA_MICROS))
}

/// The v2 weight, 1 to 10000, that stands for so many v1 shares.
pub fn weight(shares: u64) -> u64 {
    1 + (shares.clamp(MIN_SHARES, MAX_SHARES) - MIN_SHARES) * 9999 / (MAX_SHARES - MIN_SHARES)
}
