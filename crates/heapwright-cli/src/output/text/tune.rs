//! A tuning, on a screen.
//!
//! ```text
//! options            time/op  ratio to defaults         peak memory  ratio to defaults
//! defaults           24.1 ns  1                            14.0 MiB  1
//! cache=percpu       20.0 ns  0.83 (0.82..0.84)            14.0 MiB  1.00 (1.00..1.01) tie
//!
//! fastest:      cache=percpu: time/op 0.83 (0.81..0.85), peak memory 1.00 (0.99..1.01)
//! leanest:      the defaults: nothing certainly needs less memory
//! recommended:  cache=percpu: ...
//! checked:      prog itself, 15 rounds:
//!   cache=percpu: time 0.97 (0.95..0.98), peak RSS 1.00 (1.00..1.00) tie: a gain
//! ```

use super::replay::{failure, nanoseconds};
use crate::bench::results::Outcome;
use crate::bench::statistics::{self, SURE_ROUNDS, Verdict};
use crate::output::{Look, printable_text, race, recorded, units};
use crate::replay::results::Answer;
use crate::tune::decision::{Judgement, Measure};
use crate::tune::results::{Checked, Choice, Place, Ratio, Results, Role, Set};
use std::fmt::Write;
use std::time::Duration;

/// The whole report.
pub(crate) fn report(results: &Results, look: Look) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", look.strong(&format!("heapwright tune: {}", subject(results))));
    if let Some(trace) = &results.trace {
        let _ = writeln!(out, "{}", recorded(&trace.facts));
    }
    if let Some(why) = &results.nothing {
        let _ = writeln!(out, "nothing to tune: {why}");
    }
    if let Some(set) = &results.screening {
        share(&mut out, results, set);
        let _ = writeln!(out);
        table(&mut out, set, look);
    }
    if let Some(set) = &results.deciding {
        let rounds = units::counted(set.rounds as u64, "new round");
        let _ = writeln!(out, "\nthose that looked better, in {rounds}, which decide:");
        table(&mut out, set, look);
    }
    lines(&mut out, results, look);
    foot(&mut out, results);
    out
}

/// What was tuned.
fn subject(results: &Results) -> String {
    let file = results.trace.as_ref().map(|trace| trace.name.as_str()).unwrap_or_default();
    match &results.program {
        Some(program) => race::shortened(&printable_text(&program.words)),
        None => file.to_owned(),
    }
}

/// How much of the program's time there is to gain.
fn share(out: &mut String, results: &Results, set: &Set) {
    let times: Vec<f64> = set.rows.first().map_or_else(Vec::new, |place| {
        place.row.runs.iter().map(|run| run.wall_ns as f64).collect()
    });
    let (Some(program), Some(replay)) = (&results.program, statistics::median(&times)) else {
        return;
    };
    let _ = writeln!(
        out,
        "its calls for memory alone take {} in the replay; the program takes {}",
        units::duration(Duration::from_nanos(replay as u64)),
        units::duration(Duration::from_nanos(program.wall_ns))
    );
}

fn label(place: &Place) -> String {
    match &place.role {
        Role::Defaults => "defaults".to_owned(),
        Role::Control => format!("{} (control)", place.row.allocator.name),
        Role::Candidate(candidate) => candidate.text(),
        Role::Peer => place.row.allocator.name.clone(),
    }
}

fn table(out: &mut String, set: &Set, look: Look) {
    let labels: Vec<String> = set.rows.iter().map(label).collect();
    let width = labels.iter().map(String::len).max().unwrap_or_default();
    let title = format!(
        "{:<width$} {:>9}  {:<23} {:>11}  ratio to defaults",
        "options", "time/op", "ratio to defaults", "peak memory"
    );
    let _ = writeln!(out, "{}", look.strong(&title));
    for (label, place) in labels.iter().zip(&set.rows) {
        let row = &place.row;
        if row.outcome != Outcome::Ok || row.runs.is_empty() {
            let why = row.detail.as_deref().unwrap_or("not measured");
            let _ = writeln!(out, "{label:<width$} {}", failure(row.outcome, why));
            continue;
        }
        let middle = |of: fn(&Answer) -> f64| {
            let values: Vec<f64> = row.runs.iter().map(of).collect();
            statistics::median(&values).unwrap_or_default()
        };
        let ratio = |ratio: &Option<Ratio>| ratio.as_ref().map_or_else(|| "1".to_owned(), marked);
        let _ = writeln!(
            out,
            "{label:<width$} {:>9}  {:<23} {:>11}  {}",
            nanoseconds(middle(Answer::time)),
            ratio(&place.time),
            units::bytes(middle(|run| run.peak_bytes as f64) as u64),
            ratio(&place.memory)
        );
    }
}

/// `0.83 (0.82..0.84)`, `1.00 (0.99..1.01) tie`.
fn marked(ratio: &Ratio) -> String {
    let tie = if ratio.estimate().verdict() == Verdict::Tie { " tie" } else { "" };
    format!("{}{tie}", race::estimate(&ratio.estimate()))
}

/// What was chosen, and what the program says of it.
fn lines(out: &mut String, results: &Results, look: Look) {
    let Some(decision) = &results.decision else { return };
    let _ = writeln!(out);
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "{} {text}", look.strong(&format!("{:<13}", format!("{name}:"))));
    };
    line("fastest", choice(decision.fastest.as_ref(), "nothing certainly takes less time"));
    line("leanest", choice(decision.leanest.as_ref(), "nothing certainly needs less memory"));
    let recommended = match &results.check {
        Some(check) => check.kept().map(|kept| kept.options.as_str()),
        None => decision.eligible.first().map(|choice| choice.options.as_str()),
    };
    let recommended =
        decision.eligible.iter().find(|choice| Some(choice.options.as_str()) == recommended);
    let why = match decision.eligible.is_empty() {
        true => "nothing is certainly better without a cost",
        false => "the program itself confirms nothing else",
    };
    line("recommended", choice(recommended, why));
    match &results.check {
        Some(check) => {
            let name = results.program.as_ref().map(|program| program.name.as_str());
            let rounds = units::counted(check.rounds as u64, "round");
            line("checked", format!("{} itself, {rounds}:", name.unwrap_or_default()));
            for checked in &check.checked {
                let _ = writeln!(out, "  {}: {}", checked.options, verdict(checked));
            }
        }
        None => line("checked", unchecked(results, !decision.eligible.is_empty()).to_owned()),
    }
}

fn choice(choice: Option<&Choice>, why_none: &str) -> String {
    let Some(choice) = choice else { return format!("the defaults: {why_none}") };
    let mut text = format!(
        "{}: time/op {}, peak memory {}",
        choice.options,
        marked(&choice.time),
        marked(&choice.memory)
    );
    if !choice.ties.is_empty() {
        let what = match choice.goal {
            Measure::Time => "time",
            Measure::Memory => "memory",
        };
        text.push_str(&format!("; a tie in {what} with {}", choice.ties.join(" and ")));
    }
    text
}

/// Why the program was not run.
fn unchecked(results: &Results, has_eligible: bool) -> &'static str {
    if results.program.is_none() {
        "no: there is only a trace; name the program, too"
    } else if has_eligible {
        "no: interrupted"
    } else {
        "no: the defaults are what the program runs with now"
    }
}

/// What the program says of options.
fn verdict(checked: &Checked) -> String {
    let (Some(time), Some(memory)) = (&checked.time, &checked.memory) else {
        return failure(checked.outcome, checked.detail.as_deref().unwrap_or("not measured"));
    };
    let verdict = match checked.judgement {
        Some(Judgement::Kept) => "a gain",
        Some(Judgement::Costly) => "a gain that may cost too much: withdrawn",
        Some(Judgement::Contradicted) => "a loss: withdrawn",
        Some(Judgement::Tie) | None => "no certain gain: withdrawn",
    };
    format!("time {}, peak RSS {}: {verdict}", marked(time), marked(memory))
}

/// How it was chosen, how to use it, and what to bear in mind.
fn foot(out: &mut String, results: &Results) {
    if let Some(options) = results.recommended.as_deref().filter(|options| !options.is_empty()) {
        let _ = writeln!(
            out,
            "\nto use it: heapwright run --option {options} -- CMD, or HEAPWRIGHT={options}"
        );
    }
    if results.decision.is_some() {
        let _ = writeln!(out, "\n{}.", race::wrapped(results.rule));
    }
    let deciding = results.deciding.as_ref().or(results.screening.as_ref());
    if !results.complete {
        let _ = writeln!(out, "note: interrupted: these figures are partial");
    } else if deciding.is_some_and(|set| set.rounds < SURE_ROUNDS) {
        let _ = writeln!(
            out,
            "note: with fewer than {SURE_ROUNDS} rounds, the intervals are not reliable"
        );
    }
    for note in &results.notes {
        let _ = writeln!(out, "note: {note}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::{Allocator, Entry, Head, Run};
    use crate::replay::results::{Row, Trace};
    use crate::trace::Facts;
    use crate::tune::candidates::{Candidate, Key};
    use crate::tune::decision;
    use crate::tune::results::{Check, Decision, Tuned};

    /// Nine rounds of a row, which take so many nanoseconds an operation and MiB.
    fn row(name: &str, ns: u64, mib: u64) -> Row {
        let run = Answer {
            operations: 1_000_000,
            wall_ns: ns * 1_000_000,
            peak_bytes: mib << 20,
            ..Answer::default()
        };
        Row {
            allocator: Allocator { name: name.to_owned(), ..Allocator::default() },
            outcome: Outcome::Ok,
            detail: None,
            runs: vec![run; 9],
        }
    }

    fn fast() -> Candidate {
        Candidate::of(Key::Cache, "percpu")
    }

    fn rows() -> Vec<Row> {
        vec![row("defaults", 40, 16), row("cache=auto", 40, 16), row("cache=percpu", 20, 16)]
    }

    fn roles() -> Vec<Role> {
        vec![Role::Defaults, Role::Control, Role::Candidate(fast())]
    }

    fn decided() -> decision::Decision {
        let set = Set::new(roles(), rows(), 2);
        let of = |wanted: Role| set.measured(|role| *role == wanted);
        decision::decide(&of(Role::Defaults)[0], None, &of(Role::Candidate(fast())), 1.0)
    }

    /// A tuning in which one option takes half the time, and a peer crashes.
    fn results() -> Results {
        let broken = Row {
            outcome: Outcome::Crashed,
            detail: Some("signal 11, SIGSEGV".to_owned()),
            runs: Vec::new(),
            ..row("broken", 1, 1)
        };
        let screened =
            Set::new([roles(), vec![Role::Peer]].concat(), [rows(), vec![broken]].concat(), 1);
        let facts = Facts {
            threads: 1,
            operations: 1_000_000,
            peak_live_bytes: 12 << 20,
            peak_live_blocks: 10,
            ..Facts::default()
        };
        Results {
            head: Head::default(),
            program: Some(Tuned {
                name: "prog".to_owned(),
                words: "prog -x".to_owned(),
                wall_ns: 400_000_000,
            }),
            trace: Some(Trace { name: "prog".to_owned(), process: None, program: None, facts }),
            nothing: None,
            rule: "the rule",
            complete: true,
            notes: vec!["busy".to_owned()],
            screening: Some(screened),
            deciding: Some(Set::new(roles(), rows(), 2)),
            decision: Some(Decision::from(&decided())),
            check: Some(check(&decided(), 0.9)),
            recommended: Some("cache=percpu".to_owned()),
        }
    }

    /// The program: with what was decided, it takes so much of its time.
    fn check(decided: &decision::Decision, factor: f64) -> Check {
        Check::new(&decided.eligible, 9, vec![entry("defaults", 4e8), entry("x", 4e8 * factor)])
    }

    fn entry(name: &str, ns: f64) -> Entry {
        let run = Run { wall_ns: ns as u64, peak_rss_bytes: 20 << 20, ..Run::default() };
        let (outcome, detail) = (Outcome::Ok, None);
        Entry { allocator: name.to_owned(), outcome, detail, runs: vec![run; 9] }
    }

    #[test]
    fn a_tuning_is_two_tables_and_four_lines() {
        let expected = "\
heapwright tune: prog -x
1 thread, 1,000,000 operations, peak live 12.0 MiB in 10 blocks
its calls for memory alone take 40.0 ms in the replay; the program takes 400.0 ms

options                time/op  ratio to defaults       peak memory  ratio to defaults
defaults               40.0 ns  1                          16.0 MiB  1
cache=auto (control)   40.0 ns  1.00 (1.00..1.00) tie      16.0 MiB  1.00 (1.00..1.00) tie
cache=percpu           20.0 ns  0.50 (0.50..0.50)          16.0 MiB  1.00 (1.00..1.00) tie
broken               crashed (signal 11, SIGSEGV)

those that looked better, in 9 new rounds, which decide:
options                time/op  ratio to defaults       peak memory  ratio to defaults
defaults               40.0 ns  1                          16.0 MiB  1
cache=auto (control)   40.0 ns  1.00 (1.00..1.00) tie      16.0 MiB  1.00 (1.00..1.00) tie
cache=percpu           20.0 ns  0.50 (0.50..0.50)          16.0 MiB  1.00 (1.00..1.00) tie

fastest:      cache=percpu: time/op 0.50 (0.50..0.50), peak memory 1.00 (1.00..1.00) tie
leanest:      the defaults: nothing certainly needs less memory
recommended:  cache=percpu: time/op 0.50 (0.50..0.50), peak memory 1.00 (1.00..1.00) tie
checked:      prog itself, 9 rounds:
  cache=percpu: time 0.90 (0.90..0.90), peak RSS 1.00 (1.00..1.00) tie: a gain

to use it: heapwright run --option cache=percpu -- CMD, or HEAPWRIGHT=cache=percpu

the rule.
note: busy
";
        assert_eq!(report(&results(), Look::PLAIN), expected);
    }

    #[test]
    fn what_the_program_does_not_confirm_is_withdrawn() {
        let mut results = results();
        results.recommended = Some(String::new());
        for (factor, verdict) in [(1.0, "no certain gain"), (1.2, "a loss")] {
            results.check = Some(check(&decided(), factor));
            let printed = report(&results, Look::PLAIN);
            assert!(
                printed.contains(
                    "\nrecommended:  the defaults: the program itself confirms nothing else\n"
                ),
                "{printed}"
            );
            assert!(printed.contains(&format!(": {verdict}: withdrawn\n")), "{printed}");
            assert!(!printed.contains("to use it"), "{printed}");
        }
    }

    #[test]
    fn a_program_that_fails_with_the_options_is_said_to() {
        let failed = Entry {
            outcome: Outcome::Crashed,
            detail: Some("signal 6, SIGABRT".to_owned()),
            ..entry("x", 1.0)
        };
        let runs = vec![entry("defaults", 4e8), failed];
        let check = Some(Check::new(&decided().eligible, 9, runs));
        let printed = report(&Results { check, ..results() }, Look::PLAIN);
        assert!(printed.contains("\n  cache=percpu: crashed (signal 6, SIGABRT)\n"), "{printed}");
        assert!(printed.contains("\nrecommended:  the defaults: "), "{printed}");
    }
}
