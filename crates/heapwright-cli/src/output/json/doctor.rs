//! The doctor's answer, as one JSON object.
//!
//! ```text
//! format     1
//! command    string
//! verdict    "yes" | "no" | "unknown"
//! steps      [{path, kind}]            from the name to the program
//! findings   [{code, verdict, text}]   verdict "yes" marks a mere remark
//! trial      {outcome, verdict, allocations|null, reason|null} | null
//!
//! of a whole machine:
//! format     1
//! programs   on PATH, without scripts
//! reached    of these
//! kinds      [{code, count, examples, text}]
//! preload    [{code, wrong, text}]     of /etc/ld.so.preload
//! ```

use super::{list, object};
use crate::inspect::Verdict;
use crate::inspect::system::System;
use crate::output::text::run::ended;
use crate::output::{Answer, Trial};
use serde::Serialize;

/// Returns the object, as text.
pub(crate) fn answer(answer: &Answer<'_>) -> String {
    let report = &answer.report;
    super::formatted(object! {
        command: answer.command.to_string_lossy(),
        verdict: word(answer.verdict()),
        steps: list(report.steps.iter().map(|step| object! {
            path: step.path.to_string_lossy(),
            kind: &step.kind,
        })),
        findings: list(report.findings.iter().map(|finding| object! {
            code: finding.code,
            verdict: word(finding.verdict),
            text: &finding.text,
        })),
        trial: answer.trial.as_ref().map(tried),
    })
}

/// Returns the object, as text.
pub(crate) fn system(system: &System) -> String {
    super::formatted(object! {
        programs: system.programs,
        reached: system.reached,
        kinds: list(system.kinds.iter().map(|kind| object! {
            code: kind.code,
            count: kind.count,
            examples: &kind.examples,
            text: kind.text,
        })),
        preload: list(system.preload.iter().map(|finding| object! {
            code: finding.code,
            wrong: finding.verdict == Verdict::No,
            text: &finding.text,
        })),
    })
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Yes => "yes",
        Verdict::No => "no",
        Verdict::Unknown => "unknown",
    }
}

fn tried(trial: &Trial) -> impl Serialize {
    let (outcome, allocations, reason) = match trial {
        Trial::Loaded { allocations } => ("loaded", Some(*allocations), None),
        Trial::NotLoaded { reason } => ("not-loaded", None, Some(reason.clone())),
        Trial::Killed { end } => ("killed", None, Some(format!("the program {}", ended(*end)))),
        Trial::NotStarted { reason } => ("not-started", None, Some(reason.clone())),
    };
    object! {
        outcome: outcome,
        verdict: word(trial.verdict()),
        allocations: allocations,
        reason: reason,
    }
}
