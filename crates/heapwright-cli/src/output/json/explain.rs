//! The explanation of a process's resident memory, as one JSON object.
//!
//! ```text
//! format, pid, resident_bytes, age_seconds    numbers
//! parts, gone_bytes    bytes, as in `top`
//! classes   [{size, used_bytes, free_bytes}]    resident bytes of slabs; empty classes are left out
//! others    [{name, bytes}]    mappings beside the heap, the largest first
//! huge_page_bytes    number    of the heap
//! profile   object|null    of a process that is sampled: its heap profile (below)
//!
//! of the record of a heap profile, at the time of its writing:
//! format, pid, after_seconds                     numbers
//! resident_bytes                                 number|null    null: not in the record
//! live_bytes, live_error, allocated_bytes, temporary_bytes, peak_bytes, peak_seconds, period
//! earlier_seconds                         number|null    the moment from which growth is counted
//! live, kept, mixed, grown, temporary     [SITE]         the largest first; see docs/live.md
//! SITE      {function, place, live_bytes, live_error, samples, youngest_seconds, oldest_seconds,
//!            growth_bytes, growth_error: number|null, temporary_bytes, allocated_bytes}
//! ```
//!
//! Ages are those of the youngest and the oldest live sample.

use super::{list, object};
use crate::live::{Mappings, Process, Reported};
use crate::output::calls::look_at;
use crate::report::explained::Explained;
use crate::report::model::{Figure, Report, Sampled};
use serde::Serialize;
use std::collections::BTreeMap;

/// Returns the object, as text.
pub(crate) fn report(
    process: &Process,
    report: &Reported,
    mappings: &Mappings,
    profile: Option<&Report>,
) -> String {
    let classes = report.classes.iter().filter(|class| class.used + class.free > 0);
    let explained = profile.and_then(|profile| Some((profile, Explained::largest(profile)?)));
    super::formatted(object! {
        pid: process.pid,
        resident_bytes: process.resident,
        age_seconds: report.age.as_secs_f64(),
        parts: report.parts.all().into_iter().collect::<BTreeMap<_, _>>(),
        gone_bytes: report.parts.gone,
        classes: list(classes.map(|class| object! {
            size: class.size,
            used_bytes: class.used,
            free_bytes: class.free,
        })),
        others: list(mappings.others.iter().map(|(name, bytes)| object! { name: name, bytes: bytes })),
        huge_page_bytes: mappings.huge,
        profile: explained.as_ref().map(|(profile, explained)| {
            super::Formatted::of(recorded(profile, explained))
        }),
    })
}

/// Returns the explanation of a heap profile, as text.
pub(crate) fn record(report: &Report, explained: &Explained<'_>) -> String {
    super::formatted(recorded(report, explained))
}

fn recorded(report: &Report, explained: &Explained<'_>) -> impl Serialize {
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
