//! Tables, and what is asked of heapwright: that it is twice as fast as the others that trace, with
//! no more memory than they need; not slower than what counts and looks for cycles; and at
//! most half slower again than what only counts.
//!
//! All of it is the middle of what was measured within rounds, and beside it stands the range.
//! Tiny sizes are not judged.

use figures::statistics::median;

use crate::loads::Load;
use crate::options::Race;
use crate::process;
use crate::turns::{self, LIMITED, Turns, UNLIMITED};

/// What is asked: of heapwright's time, divided by a peer's.
struct Asked {
    peer: &'static str,
    most: f64,
    /// Whether the heap is to be no larger than that of peers that trace.
    limited: bool,
    words: &'static str,
}

const ASKED: [Asked; 4] = {
    const fn of(peer: &'static str, most: f64, limited: bool, words: &'static str) -> Asked {
        Asked { peer, most, limited, words }
    }
    [
        of("gc-arena", 0.5, true, ">= 2x as fast as gc-arena"),
        of("gc", 0.5, true, ">= 2x as fast as gc"),
        of("dumpster", 1.0, false, "no slower than dumpster"),
        of("rc", 1.5, false, "<= 1.5x the time of Rc"),
    ]
};

/// What was found of it.
struct Found {
    met: bool,
    words: String,
}

impl Asked {
    /// Looks; nothing where something did not run.
    fn find(&self, turns: &Turns) -> Option<Found> {
        let limited = self.limited && turns.why_not(LIMITED).is_none();
        let one = if limited { LIMITED } else { UNLIMITED };
        let ratios = turns.ratios(one, self.peer, "wall_ms");
        let met = median((!ratios.is_empty()).then_some(&ratios)?) <= self.most;
        let mut words = format!("{one} takes {} of its time", range(&ratios));
        if limited {
            let without = turns.ratios(UNLIMITED, self.peer, "wall_ms");
            words.push_str(&format!("; without a limit {}", range(&without)));
        } else if self.limited {
            words.push_str("; with the limit it cannot run");
        }
        Some(Found { met, words })
    }
}

/// Runs it all and prints. Whether it ran as it must, and, if asked strictly, nothing was missed.
pub(crate) fn of(race: &Race) -> bool {
    println!("{}.\n", process::machine());
    let (mut sound, mut missed) = (true, false);
    for &load in &race.loads {
        let turns = turns::take(race, load);
        println!("{}", table(&turns, race.quick));
        if !race.quick {
            missed |= !judge(&turns);
        }
        for fault in turns.faults() {
            sound = false;
            println!("- FAULT: {fault}");
        }
        println!();
    }
    println!("{}", if sound { "all ran, and computed the same" } else { "see the faults" });
    sound && !(race.strict && missed)
}

/// Prints what is asked and found. Whether all of it is met.
fn judge(turns: &Turns) -> bool {
    let mut all_met = true;
    for asked in &ASKED {
        let (verdict, words) = match asked.find(turns) {
            Some(Found { met: true, words }) => ("met", words),
            Some(Found { met: false, words }) => ("MISSED", words),
            None => ("not measured", String::new()),
        };
        all_met &= verdict == "met";
        println!("- {}: {verdict}: {words}", asked.words);
    }
    let ratios = turns.ratios(UNLIMITED, "box", "wall_ms");
    println!("- beside Box, of which nothing is asked: {} of its time", range(&ratios));
    all_met
}

/// A load's table.
fn table(turns: &Turns, quick: bool) -> String {
    let mut text = format!("### {}\n\n{}\n\n", turns.load.name(), sizes(turns.load, quick));
    text.push_str(
        "| peer | wall ms | CPU ms | heapwright / peer | limited / peer \
         | peak MiB | heapwright / peer | collector |\n\
         |---|---:|---:|---:|---:|---:|---:|---|\n",
    );
    for contender in turns::contenders() {
        let middle =
            |name, unit| of_all(&turns.numbers(contender, name), |all| number(median(all) / unit));
        let by = |one, name| range(&turns.ratios(one, contender, name));
        let cells = [
            contender.to_owned(),
            middle("wall_ms", 1.0),
            middle("cpu_ms", 1.0),
            by(UNLIMITED, "wall_ms"),
            by(LIMITED, "wall_ms"),
            middle("peak_kib", 1024.0),
            by(UNLIMITED, "peak_kib"),
            collector(turns, contender),
        ];
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    let limit = number(turns.most_kib as f64 / 1024.0);
    let cannot = turns.why_not(LIMITED);
    let cannot = cannot.map(|why| format!(", and cannot run with that: {why}")).unwrap_or_default();
    text + &format!("\nThe limited heap may have {limit} MiB{cannot}.\n")
}

/// How large a load is, in words.
fn sizes(load: Load, quick: bool) -> String {
    let sizes = load.sizes(quick);
    match load {
        Load::BinaryTrees | Load::GcBench => format!("Trees up to depth {}.", sizes.depth),
        Load::Splay => format!("{} nodes, {} turns.", sizes.size, sizes.rounds),
    }
}

/// What the collector did: its share of the time, and how often.
fn collector(turns: &Turns, contender: &str) -> String {
    let middle = |name| median(&turns.numbers(contender, name));
    of_all(&turns.numbers(contender, "share"), |shares| {
        let (cycles, minor) = (middle("cycles"), middle("minor_cycles"));
        format!("{:.0} % of the time, {cycles} cycles, {minor} minor", 100.0 * median(shares))
    })
}

/// The middle and the range.
fn range(all: &[f64]) -> String {
    let end = |of: fn(f64, f64) -> f64| all.iter().copied().reduce(of).unwrap_or_default();
    of_all(all, |all| {
        format!("{} ({} to {})", number(median(all)), number(end(f64::min)), number(end(f64::max)))
    })
}

/// Of nothing: `-`.
fn of_all(all: &[f64], text: impl Fn(&[f64]) -> String) -> String {
    if all.is_empty() { "-".to_owned() } else { text(all) }
}

/// Three digits that count.
fn number(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    }
}
