//! Running processes, as one JSON object.
//!
//! ```text
//! format      1
//! processes   [process]    by number
//!
//! process
//!   pid, user                numbers
//!   command                  [string]
//!   options                  string    the option string at its start
//!   resident_bytes, peak_resident_bytes, page_faults    numbers from the kernel
//!   limit_bytes              number|null   its memory limit
//!   rates                    {page_faults, given_back_bytes}|null    a second
//!   parts                    {live, rounding, partial, caches, remote, waiting, metadata, pools,
//!                             not_ours, unattributed}|null
//!                            bytes; their sum is resident_bytes and gone_bytes
//!   gone_bytes               number|null   in old figures, no longer in memory
//!   swapped_bytes            number|null
//!   sampling_bytes           number|null   mean distance of samples; 0: no sampling
//!   purge_delay_ms           number|null   null, too, if free pages stay for ever
//!   age_seconds              number|null   since the process wrote its figures
//!   report_ns                number|null   the time for writing the figures
//!   stats                    object|null   every figure of `heapwright_record::Stats`, residency reckoned
//! ```

use super::run::Process as Statistics;
use super::{list, object};
use crate::live::Watched;
use heapwright_record::status::MOST;
use serde::Serialize;
use std::collections::BTreeMap;

/// Returns the object, as text.
pub(crate) fn report(processes: &[&Watched]) -> String {
    super::formatted(object! { processes: list(processes.iter().copied().map(process)) })
}

fn process(watched: &Watched) -> impl Serialize {
    let (process, report) = (&watched.seen.process, watched.seen.report.as_ref());
    object! {
        pid: process.pid,
        user: process.user,
        command: &process.command,
        options: &process.options,
        resident_bytes: process.resident,
        peak_resident_bytes: process.peak,
        page_faults: process.faults,
        limit_bytes: process.limit,
        rates: watched
            .rates
            .map(|rates| object! { page_faults: rates.faults, given_back_bytes: rates.given_back }),
        parts: report.map(|report| report.parts.all().into_iter().collect::<BTreeMap<_, _>>()),
        gone_bytes: report.map(|report| report.parts.gone),
        swapped_bytes: report.map(|report| report.parts.swapped),
        sampling_bytes: report.map(|report| report.facts.sampling),
        purge_delay_ms: report
            .map(|report| report.facts.purge_delay_ms)
            .filter(|&delay| delay != MOST),
        age_seconds: report.map(|report| report.age.as_secs_f64()),
        report_ns: report.map(|report| report.facts.took_ns),
        stats: report.map(|report| Statistics(&report.stats)),
    }
}
