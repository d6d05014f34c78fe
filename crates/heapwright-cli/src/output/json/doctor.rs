//! The doctor's answer, as one JSON object.
//!
//! ```text
//! format     1
//! command    string
//! verdict    "yes" | "no" | "unknown"
//! steps      [{path, kind}]            from the name to the program
//! findings   [{code, verdict, text}]   verdict "yes" marks a mere remark
//! trial      {outcome, verdict, allocations|null, reason|null} | null
//! ```

use super::FORMAT;
use crate::inspect::Verdict;
use crate::output::text::run::ended;
use crate::output::{Answer, Trial};
use serde::Serialize;

/// The object, as text.
pub(crate) fn answer(answer: &Answer<'_>) -> String {
    let report = &answer.report;
    super::text(&Object {
        format: FORMAT,
        command: answer.command.to_string_lossy().into_owned(),
        verdict: word(answer.verdict()),
        steps: report
            .steps
            .iter()
            .map(|step| Step { path: step.path.to_string_lossy().into_owned(), kind: &step.kind })
            .collect(),
        findings: report
            .findings
            .iter()
            .map(|finding| Finding {
                code: finding.code,
                verdict: word(finding.verdict),
                text: &finding.text,
            })
            .collect(),
        trial: answer.trial.as_ref().map(tried),
    })
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Yes => "yes",
        Verdict::No => "no",
        Verdict::Unknown => "unknown",
    }
}

fn tried(trial: &Trial) -> Tried {
    let (outcome, allocations, reason) = match trial {
        Trial::Loaded { allocations } => ("loaded", Some(*allocations), None),
        Trial::NotLoaded { reason } => ("not-loaded", None, Some(reason.clone())),
        Trial::Killed { end } => ("killed", None, Some(format!("the program {}", ended(*end)))),
        Trial::NotStarted { reason } => ("not-started", None, Some(reason.clone())),
    };
    Tried { outcome, verdict: word(trial.verdict()), allocations, reason }
}

#[derive(Serialize)]
struct Object<'a> {
    format: u32,
    command: String,
    verdict: &'static str,
    steps: Vec<Step<'a>>,
    findings: Vec<Finding<'a>>,
    trial: Option<Tried>,
}

#[derive(Serialize)]
struct Step<'a> {
    path: String,
    kind: &'a str,
}

#[derive(Serialize)]
struct Finding<'a> {
    code: &'static str,
    verdict: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct Tried {
    outcome: &'static str,
    verdict: &'static str,
    allocations: Option<u64>,
    reason: Option<String>,
}
