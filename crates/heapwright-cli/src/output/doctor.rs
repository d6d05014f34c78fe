//! The doctor's answer.
//!
//! ```text
//! yes: heapwright takes effect on python3
//!
//!   /usr/bin/python3 (ELF 64-bit x86-64 program, loaded by ...)
//!   - Python serves small objects from arenas of its own; ...
//!
//! heapwright would take effect on 1,150 of the 1,203 programs on PATH
//!
//!   - 12 gain privileges ... (mount, passwd, su, ...)
//! ```

use super::document::{Document, Part};
use super::json::{list, object};
use super::run::ended;
use super::{printable_text, units};
use crate::inspect::system::System;
use crate::inspect::{Report, Verdict};
use crate::process::End;
use serde::Serialize;
use std::ffi::OsStr;

pub(crate) enum Trial {
    /// The library was loaded, and served this many allocations.
    Loaded { allocations: u64 },
    /// The library left no figures.
    NotLoaded { reason: String },
    /// The program was killed, which proves nothing.
    Killed { end: End },
    /// The program could not be started.
    NotStarted { reason: String },
}

impl Trial {
    /// A run without allocations proves nothing: some programs need none.
    pub(crate) fn verdict(&self) -> Verdict {
        match self {
            Self::Loaded { allocations: 0 } | Self::Killed { .. } => Verdict::Unknown,
            Self::Loaded { .. } => Verdict::Yes,
            Self::NotLoaded { .. } | Self::NotStarted { .. } => Verdict::No,
        }
    }
}

pub(crate) struct Answer<'a> {
    pub(crate) command: &'a OsStr,
    pub(crate) report: Report,
    pub(crate) trial: Option<Trial>,
}

impl Answer<'_> {
    /// Returns the run's verdict if it has one, else the verdict of the files.
    pub(crate) fn verdict(&self) -> Verdict {
        match &self.trial {
            Some(trial) if trial.verdict() != Verdict::Unknown => trial.verdict(),
            _ => self.report.verdict(),
        }
    }
}

pub(crate) fn document<'a>(answer: &'a Answer<'_>) -> Document<'a> {
    let name = printable_text(&answer.command.to_string_lossy());
    let heading = match answer.verdict() {
        Verdict::Yes => format!("yes: heapwright takes effect on {name}"),
        Verdict::No => format!("no: heapwright does not take effect on {name}"),
        Verdict::Unknown => {
            let hint = if answer.trial.is_none() { " (a run would: --try)" } else { "" };
            format!("unknown: whether heapwright takes effect on {name} does not show{hint}")
        }
    };
    let mut parts = vec![Part::heading(heading)];
    let steps = answer.report.steps.iter();
    let steps = steps.map(|step| format!("{} ({})", step.path.display(), step.kind));
    let findings = answer.report.findings.iter().map(|finding| finding.text.clone());
    let findings = findings.chain(answer.trial.as_ref().map(tried));
    for lines in [Vec::from_iter(steps), findings.map(|line| format!("- {line}")).collect()] {
        if !lines.is_empty() {
            let lines = lines.iter().map(|line| printable_text(line));
            parts.extend([Part::gap(), Part::listed(lines)]);
        }
    }
    let report = &answer.report;
    Document::plain(parts, || {
        object! {
            command: answer.command.to_string_lossy(),
            verdict: word(answer.verdict()),
            steps: list(report.steps.iter().map(|step| object! { step =>
                path: step.path.to_string_lossy(), kind,
            })),
            findings: list(report.findings.iter().map(|finding| object! { finding =>
                code, verdict: word(finding.verdict), text,
            })),
            trial: answer.trial.as_ref().map(trial),
        }
    })
}

pub(crate) fn system(system: &System) -> Document<'_> {
    let programs = units::counted(system.programs as u64, "program");
    let heading = format!(
        "heapwright would take effect on {} of the {programs} on PATH",
        units::count(system.reached as u64)
    );
    let kinds = system.kinds.iter().map(|kind| {
        let more = if kind.count > kind.examples.len() { ", ..." } else { "" };
        let examples = printable_text(&kind.examples.join(", "));
        let programs = units::counted(kind.count as u64, "program");
        format!("- {programs} ({examples}{more}): {}", kind.text)
    });
    let preload = system.preload.iter().map(|of| format!("- {}", printable_text(&of.text)));
    let parts = vec![Part::heading(heading), Part::gap(), Part::listed(kinds.chain(preload))];
    Document::plain(parts, || {
        object! { system =>
            programs, reached,
            kinds: list(system.kinds.iter().map(|kind| object! { kind => code, count, examples, text })),
            preload: list(system.preload.iter().map(|finding| object! { finding =>
                code, wrong: finding.verdict == Verdict::No, text,
            })),
        }
    })
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Yes => "yes",
        Verdict::No => "no",
        Verdict::Unknown => "unknown",
    }
}

fn trial(trial: &Trial) -> impl Serialize + use<> {
    let (outcome, allocations, reason) = match trial {
        Trial::Loaded { allocations } => ("loaded", Some(*allocations), None),
        Trial::NotLoaded { reason } => ("not-loaded", None, Some(reason.clone())),
        Trial::Killed { end } => ("killed", None, Some(format!("the program {}", ended(*end)))),
        Trial::NotStarted { reason } => ("not-started", None, Some(reason.clone())),
    };
    let verdict = word(trial.verdict());
    object! { outcome: outcome, verdict: verdict, allocations: allocations, reason: reason }
}

fn tried(trial: &Trial) -> String {
    match trial {
        Trial::Loaded { allocations: 0 } => String::from(
            "tried: the library was loaded, but the program did not allocate from it once",
        ),
        Trial::Loaded { allocations } => format!(
            "tried: the library was loaded and served {}",
            units::counted(*allocations, "allocation")
        ),
        Trial::NotLoaded { reason } => format!("tried: the library left no trace: {reason}"),
        Trial::Killed { end } => {
            format!("tried: the program {}, so nothing can be concluded", ended(*end))
        }
        Trial::NotStarted { reason } => format!("tried: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::{Finding, Step};
    use crate::output::Look;

    fn example(findings: &[(Verdict, &str)], trial: Option<Trial>) -> String {
        let report = Report {
            steps: vec![Step { path: "/bin/x".into(), kind: "ELF program".into() }],
            findings: findings
                .iter()
                .map(|&(verdict, text)| Finding { verdict, code: "code", text: text.into() })
                .collect(),
        };
        document(&Answer { command: OsStr::new("x"), report, trial }).text(Look::PLAIN)
    }

    #[test]
    fn answers_are_as_they_were() {
        let (yes, no) = ((Verdict::Yes, "a remark"), (Verdict::No, "it is static"));
        let odd = [(Verdict::Unknown, "odd")];
        let loaded = |allocations| Some(Trial::Loaded { allocations });
        let not_loaded = Some(Trial::NotLoaded { reason: "because".into() });
        let end = End::Signal { number: 15, core_dumped: false };
        let answers = [
            example(&[], None),
            example(&[yes, no], None),
            example(&odd, None),
            example(&odd, loaded(1234)),
            example(&[], loaded(0)),
            example(&odd, loaded(0)),
            example(&[], not_loaded),
            example(&odd, Some(Trial::Killed { end })),
        ];
        crate::report::sample::golden("doctor.text", &answers.join("--\n"));
    }
}
