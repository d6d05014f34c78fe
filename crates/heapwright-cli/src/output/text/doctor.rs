//! The doctor's answer, in words.
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

use crate::inspect::Verdict;
use crate::inspect::system::System;
use crate::output::document::{Part, on_screen};
use crate::output::{Answer, Look, Trial, printable_text, text::run::ended, units};

pub(crate) fn answer(answer: &Answer<'_>, look: Look) -> String {
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
            parts.extend([Part::text_of("", ""), Part::listed(lines)]);
        }
    }
    on_screen(&parts, look)
}

/// Returns the answer about a whole machine.
pub(crate) fn system(system: &System, look: Look) -> String {
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
    let parts = [Part::heading(heading), Part::text_of("", ""), Part::listed(kinds.chain(preload))];
    on_screen(&parts, look)
}

/// Returns the result of a run.
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
    use crate::inspect::{Finding, Report, Step};
    use crate::process::End;
    use std::ffi::OsStr;

    fn example(findings: &[(Verdict, &str)], trial: Option<Trial>) -> String {
        let report = Report {
            steps: vec![Step { path: "/bin/x".into(), kind: "ELF program".into() }],
            findings: findings
                .iter()
                .map(|&(verdict, text)| Finding { verdict, code: "code", text: text.into() })
                .collect(),
        };
        answer(&Answer { command: OsStr::new("x"), report, trial }, Look::PLAIN)
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
            // A trial with a result overrules the files.
            example(&odd, loaded(1234)),
            example(&[], loaded(0)),
            example(&odd, loaded(0)),
            example(&[], not_loaded),
            example(&odd, Some(Trial::Killed { end })),
        ];
        crate::output::sample::golden("doctor.text", &answers.join("--\n"));
    }
}
