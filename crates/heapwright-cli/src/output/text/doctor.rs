//! The doctor's answer, in words.
//!
//! ```text
//! yes: heapwright takes effect on python3
//!
//!   /usr/bin/python3 (ELF 64-bit x86-64 program, loaded by ...)
//!   - Python serves small objects from arenas of its own; ...
//! ```

use crate::inspect::Verdict;
use crate::output::document::{Part, on_screen};
use crate::output::{Answer, Look, Trial, printable_text, text::run::ended, units};

/// The whole answer.
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

/// What a run showed.
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
    fn answers_begin_with_the_answer() {
        assert_eq!(
            example(&[], None),
            "yes: heapwright takes effect on x\n\n  /bin/x (ELF program)\n"
        );
        assert_eq!(
            example(&[(Verdict::Yes, "a remark"), (Verdict::No, "it is static")], None),
            "\
no: heapwright does not take effect on x

  /bin/x (ELF program)

  - a remark
  - it is static
"
        );
        assert_eq!(
            example(&[(Verdict::Unknown, "odd")], None).lines().next(),
            Some(
                "unknown: whether heapwright takes effect on x does not show (a run would: --try)"
            )
        );
    }

    #[test]
    fn a_trial_overrules_the_files() {
        let odd = [(Verdict::Unknown, "odd")];
        let loaded = example(&odd, Some(Trial::Loaded { allocations: 1234 }));
        assert_eq!(
            loaded,
            "\
yes: heapwright takes effect on x

  /bin/x (ELF program)

  - odd
  - tried: the library was loaded and served 1,234 allocations
"
        );
        let unused = || Some(Trial::Loaded { allocations: 0 });
        assert!(example(&[], unused()).starts_with("yes: "));
        assert!(example(&odd, unused()).starts_with("unknown: "));
        let not_loaded = || Some(Trial::NotLoaded { reason: "because".into() });
        assert!(example(&[], not_loaded()).starts_with("no: "));
        let end = End::Signal { number: 15, core_dumped: false };
        let killed = example(&odd, Some(Trial::Killed { end }));
        assert!(killed.starts_with("unknown: "), "{killed}");
        assert!(killed.contains("- tried: the program was killed by SIGTERM, so"), "{killed}");
    }
}
