//! Limits of links: a token bucket for what a link sends, and the redirection of what it receives.

use std::io;

use rustix::io::Errno;

use super::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, RouteSocket};
use crate::netlink::{Attributes, Message};

const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const RTM_NEWTFILTER: u16 = 44;

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TCA_U32_CLASSID: u16 = 1;
const TCA_U32_SEL: u16 = 5;
const TCA_U32_ACT: u16 = 7;
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TCA_MIRRED_PARMS: u16 = 2;

/// Places of what decides about packets: for those that are sent, and for those that are received.
const TC_H_ROOT: u32 = 0xffff_ffff;
const TC_H_INGRESS: u32 = 0xffff_fff1;
/// The numbers that they get, 1: and ffff:.
const ROOT_HANDLE: u32 = 0x0001_0000;
const INGRESS_HANDLE: u32 = 0xffff_0000;
/// The first class of the root.
const FIRST_CLASS: u32 = 0x0001_0001;
/// The first filter, for packets of every protocol (ETH_P_ALL in network order).
const FIRST_FOR_ALL: u32 = (1 << 16) | 0x0300;
/// A packet has so many bytes as Ethernet counts them.
const TC_LINKLAYER_ETHERNET: u8 = 1;
const TC_U32_TERMINAL: u8 = 1;
const TC_ACT_STOLEN: u32 = 4;
const TCA_EGRESS_REDIR: u32 = 1;

/// A bucket is filled by 25 ms of the rate, and holds the largest packet that the kernel has not cut yet.
const FILLED_PER_SECOND: u64 = 40;
const SMALLEST_BUCKET: u64 = 80 * 1024;
const LARGEST_BUCKET: u64 = 1 << 29;

/// How much may pass a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateLimit {
    bytes_per_second: u64,
    /// How many bytes may pass at once after a pause.
    burst: u32,
    /// How many bytes wait; what is more is dropped, from which senders learn.
    queue: u32,
}

impl RateLimit {
    /// The limit for so many bits per second.
    pub(crate) fn of(bits_per_second: u64) -> Self {
        let bytes_per_second = (bits_per_second / 8).max(1);
        let filled = bytes_per_second / FILLED_PER_SECOND;
        let burst = filled.clamp(SMALLEST_BUCKET, LARGEST_BUCKET);
        let number = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        Self { bytes_per_second, burst: number(burst), queue: number(2 * burst) }
    }

    /// `tc_tbf_qopt`: the rate and a peak rate (12 bytes each), the queue, the bucket in ticks, which is given in bytes elsewhere, and the peak's.
    fn parameters(self) -> Vec<u8> {
        let rate = u32::try_from(self.bytes_per_second).unwrap_or(u32::MAX);
        let mut bytes = vec![0, TC_LINKLAYER_ETHERNET, 0, 0, 0, 0, 0, 0];
        bytes.extend(rate.to_ne_bytes());
        bytes.extend([0; 12]);
        bytes.extend(self.queue.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes
    }
}

impl RouteSocket {
    /// Limits what a link sends, in place of the limit that it has.
    pub(crate) fn limit_sent(&mut self, link: u32, limit: RateLimit) -> io::Result<()> {
        let mut options = Attributes::new()
            .bytes(TCA_TBF_PARMS, &limit.parameters())
            .number(TCA_TBF_BURST, limit.burst);
        if u32::try_from(limit.bytes_per_second).is_err() {
            options = options.bytes(TCA_TBF_RATE64, &limit.bytes_per_second.to_ne_bytes());
        }
        let attributes = Attributes::new().text(TCA_KIND, "tbf").nested(TCA_OPTIONS, &options);
        let header = header(link, ROOT_HANDLE, TC_H_ROOT, 0);
        let message = Message::new(RTM_NEWQDISC, &header, &attributes);
        self.0.request(&message.with_flags(NLM_F_CREATE | NLM_F_REPLACE))
    }

    /// Has what a link receives sent by another one before the link takes it, in place of what was done with it.
    pub(crate) fn redirect_received(&mut self, link: u32, by: u32) -> io::Result<()> {
        let place = header(link, INGRESS_HANDLE, TC_H_INGRESS, 0);
        let removed = self.0.request(&Message::new(RTM_DELQDISC, &place, &Attributes::new()));
        unless_absent(removed)?;
        let ingress = Attributes::new().text(TCA_KIND, "ingress");
        let added = Message::new(RTM_NEWQDISC, &place, &ingress);
        self.0.request(&added.with_flags(NLM_F_CREATE | NLM_F_EXCL))?;
        let filter = Attributes::new().text(TCA_KIND, "u32").nested(TCA_OPTIONS, &match_all(by));
        let header = header(link, 0, INGRESS_HANDLE, FIRST_FOR_ALL);
        let message = Message::new(RTM_NEWTFILTER, &header, &filter);
        self.0.request(&message.with_flags(NLM_F_CREATE | NLM_F_EXCL))
    }
}

/// Every packet is redirected: a selector with one key that masks nothing.
fn match_all(by: u32) -> Attributes {
    let mut selector = vec![TC_U32_TERMINAL, 0, 1, 0];
    selector.resize(32, 0);
    // `tc_mirred`: index, capabilities, action, two counters, kind, link.
    let redirect = [0, 0, TC_ACT_STOLEN, 0, 0, TCA_EGRESS_REDIR, by];
    let redirect: Vec<u8> = redirect.into_iter().flat_map(u32::to_ne_bytes).collect();
    let action = Attributes::new()
        .text(TCA_ACT_KIND, "mirred")
        .nested(TCA_ACT_OPTIONS, &Attributes::new().bytes(TCA_MIRRED_PARMS, &redirect));
    Attributes::new()
        .number(TCA_U32_CLASSID, FIRST_CLASS)
        .bytes(TCA_U32_SEL, &selector)
        .nested(TCA_U32_ACT, &Attributes::new().nested(1, &action))
}

/// `tcmsg`: the family and padding, the link, the object, its place, and what else is to be said.
fn header(link: u32, handle: u32, parent: u32, info: u32) -> Vec<u8> {
    [0, link, handle, parent, info].into_iter().flat_map(u32::to_ne_bytes).collect()
}

/// Kernels say in two ways that there is nothing.
fn unless_absent(result: io::Result<()>) -> io::Result<()> {
    let absent = [Errno::NOENT, Errno::INVAL].map(Errno::raw_os_error);
    match result {
        Err(error) if error.raw_os_error().is_some_and(|code| absent.contains(&code)) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_follows_the_rate_within_bounds() {
        let rows = [
            (1_000, 125, 80 << 10, 160 << 10),
            (1, 1, 80 << 10, 160 << 10),
            (8_000_000_000, 1_000_000_000, 25_000_000, 50_000_000),
            (1_000_000_000_000_000, 125_000_000_000_000, 1 << 29, 1 << 30),
        ];
        for (bits, bytes_per_second, burst, queue) in rows {
            assert_eq!(RateLimit::of(bits), RateLimit { bytes_per_second, burst, queue }, "{bits}");
        }
        assert_eq!(RateLimit::of(8).parameters().len(), 36);
    }
}
