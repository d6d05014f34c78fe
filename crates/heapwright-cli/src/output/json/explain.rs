//! Why a process's resident memory is what it is, as one JSON object.
//!
//! ```text
//! format, pid, resident_bytes, age_seconds    numbers
//! parts     as of `top`, bytes
//! classes   [{size, used_bytes, free_bytes}]    resident bytes of slabs; those that have none are left out
//! others    [{name, bytes}]    what is mapped beside the heap, the largest first
//! huge_page_bytes    number    of the heap
//! profile   object|null    of a process that is sampled: what `explain` says of its heap profile (`explain_record`)
//! ```

use super::FORMAT;
use super::explain_record::{self, object};
use crate::live::{Mappings, Process, Reported};
use crate::report::explained::Explained;
use crate::report::model::Report;
use serde::Serialize;
use std::collections::BTreeMap;

/// The object, as text.
pub(crate) fn report(
    process: &Process,
    report: &Reported,
    mappings: &Mappings,
    profile: Option<&Report>,
) -> String {
    let classes = report.classes.iter().filter(|class| class.used + class.free > 0);
    super::text(&Object {
        format: FORMAT,
        pid: process.pid,
        resident_bytes: process.resident,
        age_seconds: report.age.as_secs_f64(),
        parts: report.parts.all().into_iter().collect(),
        classes: classes
            .map(|class| Class { size: class.size, used_bytes: class.used, free_bytes: class.free })
            .collect(),
        others: mappings.others.iter().map(|(name, bytes)| Other { name, bytes: *bytes }).collect(),
        huge_page_bytes: mappings.huge,
        profile: profile.and_then(|profile| Some(object(profile, &Explained::largest(profile)?))),
    })
}

#[derive(Serialize)]
struct Object<'a> {
    format: u32,
    pid: u32,
    resident_bytes: u64,
    age_seconds: f64,
    parts: BTreeMap<&'static str, u64>,
    classes: Vec<Class>,
    others: Vec<Other<'a>>,
    huge_page_bytes: u64,
    profile: Option<explain_record::Object>,
}

#[derive(Serialize)]
struct Class {
    size: u64,
    used_bytes: u64,
    free_bytes: u64,
}

#[derive(Serialize)]
struct Other<'a> {
    name: &'a str,
    bytes: u64,
}
