//! Why a process's resident memory is what it is, as one JSON object.
//!
//! ```text
//! format, pid, resident_bytes, age_seconds    numbers
//! parts, gone_bytes    as of `top`, bytes
//! classes   [{size, used_bytes, free_bytes}]    resident bytes of slabs; those that have none are left out
//! others    [{name, bytes}]    what is mapped beside the heap, the largest first
//! huge_page_bytes    number    of the heap
//! profile   object|null    of a process that is sampled: what `explain` says of its heap profile (`explain_record`)
//! ```

use super::{explain_record, list, object};
use crate::live::{Mappings, Process, Reported};
use crate::report::explained::Explained;
use crate::report::model::Report;
use std::collections::BTreeMap;

/// The object, as text.
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
            super::Formatted::of(explain_record::object(profile, explained))
        }),
    })
}
