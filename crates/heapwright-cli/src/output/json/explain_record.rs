//! Why a process's memory is what it was when its heap profile was written, as one JSON object.
//!
//! ```text
//! format, pid, after_seconds                     numbers
//! resident_bytes                                 number|null    null: the record does not say it
//! live_bytes, live_error, allocated_bytes, temporary_bytes, peak_bytes, peak_seconds, period
//! earlier_seconds                                number|null    the moment that growth is counted from
//! live, kept, mixed, grown, temporary            [SITE]         the largest first; see docs/live.md
//! SITE      {function, place, live_bytes, live_error, samples, youngest_seconds, oldest_seconds, growth_bytes: number|null,
//!            growth_error: number|null, temporary_bytes, allocated_bytes}
//! ```
//!
//! Ages are those of the youngest and the oldest live sample.

use super::{list, object};
use crate::output::calls::look_at;
use crate::report::explained::Explained;
use crate::report::model::{Figure, Report, Sampled};
use serde::Serialize;

/// The object, as text.
pub(crate) fn report(report: &Report, explained: &Explained<'_>) -> String {
    super::formatted(object(report, explained))
}

pub(super) fn object(report: &Report, explained: &Explained<'_>) -> impl Serialize {
    let all = |sites: Vec<&Sampled>| list(sites.into_iter().map(|of| site(report, explained, of)));
    let profile = explained.profile;
    object! {
        pid: explained.process.pid,
        after_seconds: seconds(explained.check.ns),
        resident_bytes: explained.resident,
        live_bytes: explained.live.bytes,
        live_error: profile.error(Figure::Live),
        allocated_bytes: explained.allocated.bytes,
        temporary_bytes: explained.temporary.bytes,
        peak_bytes: profile.peak_bytes,
        peak_seconds: seconds(profile.peak_ns),
        period: profile.period,
        earlier_seconds: profile.earlier_ns().map(seconds),
        live: all(explained.holders()),
        kept: all(explained.kept()),
        mixed: all(explained.mixed()),
        grown: all(explained.grown()),
        temporary: all(explained.temporary()),
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn site(report: &Report, explained: &Explained<'_>, site: &Sampled) -> impl Serialize + use<> {
    let call = look_at(&report.stacks, site.stack);
    let age = |ns| seconds(explained.check.ns.saturating_sub(ns));
    object! {
        function: call.map(|call| call.name()),
        place: call.map(|call| call.place()).filter(|place| !place.is_empty()),
        live_bytes: site.live.bytes,
        live_error: site.live_error,
        samples: site.samples,
        youngest_seconds: age(site.youngest_ns),
        oldest_seconds: age(site.oldest_ns),
        growth_bytes: site.growth(),
        growth_error: Figure::Growth.error(site),
        temporary_bytes: site.temporary.bytes,
        allocated_bytes: site.allocated.bytes,
    }
}
