//! Tables, and what is asked of heapwright: that it is twice as fast as the others that trace, with
//! no more memory than they need; not slower than what counts and looks for cycles; and at
//! most half slower again than what only counts.
//!
//! All of it is the middle of what was measured within rounds, and beside it stands the interval,
//! or of few rounds the range. Tiny sizes are not judged.

use figures::machine::machine;
use figures::statistics::{median, of_rounds};
use figures::text::{middle, number, ratio, table};
use figures::verdict::{Asked, Figure, Kind, figures};

use crate::loads::Load;
use crate::options::Race;
use crate::turns::{self, LIMITED, Turns, UNLIMITED};

/// What is asked of heapwright's time, divided by a peer's: the peer, the bound, and whether the
/// heap is to be no larger than that of peers that trace.
const ASKED: [(&str, Asked, bool); 5] = [
    ("gc-arena", Asked::AtMost(0.5), true),
    ("gc", Asked::AtMost(0.5), true),
    ("dumpster", Asked::AtMost(1.0), false),
    ("rc", Asked::AtMost(1.5), false),
    ("box", Asked::Nothing, false),
];

/// Runs it all and prints. Whether it ran as it must, and, if asked strictly, nothing was missed.
pub(crate) fn of(race: &Race) -> bool {
    println!("{}.\n", machine());
    let (mut sound, mut missed) = (true, false);
    for &load in &race.loads {
        let turns = turns::take(race, load);
        println!("{}", table_of(&turns, race.quick));
        if !race.quick {
            let judged = judge(&turns);
            missed |=
                judged.iter().any(|figure| !figure.asked.is_empty() && !figure.verdict.holds());
            print!("{}", figures(&judged));
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

/// What is asked and found.
fn judge(turns: &Turns) -> Vec<Figure> {
    ASKED
        .iter()
        .map(|&(peer, asked, limited)| {
            let can = turns.why_not(LIMITED).is_none();
            let one = if limited && can { LIMITED } else { UNLIMITED };
            let without = match (limited, can) {
                (true, true) => {
                    format!(
                        " (without a limit {})",
                        ratio(&turns.ratios(UNLIMITED, peer, "wall_ms"))
                    )
                }
                (true, false) => " (with the limit it cannot run)".to_owned(),
                (false, _) => String::new(),
            };
            let rounds = of_rounds(&turns.ratios(one, peer, "wall_ms"));
            let what = format!("time of {one} to that of {peer}{without}");
            Figure::new(what, asked, "x", Kind::Middle, rounds)
        })
        .collect()
}

/// A load's table.
fn table_of(turns: &Turns, quick: bool) -> String {
    let head = [
        "peer",
        "wall ms",
        "CPU ms",
        "heapwright / peer",
        "limited / peer",
        "peak MiB",
        "heapwright / peer",
        "collector",
    ];
    let rows: Vec<Vec<String>> = turns::contenders()
        .map(|contender| {
            let middle = |name, unit| middle(&turns.numbers(contender, name), unit);
            let by = |one, name| ratio(&turns.ratios(one, contender, name));
            vec![
                contender.to_owned(),
                middle("wall_ms", 1.0),
                middle("cpu_ms", 1.0),
                by(UNLIMITED, "wall_ms"),
                by(LIMITED, "wall_ms"),
                middle("peak_kib", 1024.0),
                by(UNLIMITED, "peak_kib"),
                collector(turns, contender),
            ]
        })
        .collect();
    let limit = number(turns.most_kib as f64 / 1024.0);
    let cannot = turns.why_not(LIMITED);
    let cannot = cannot.map(|why| format!(", and cannot run with that: {why}")).unwrap_or_default();
    format!(
        "### {}\n\n{}\n\n{}The limited heap may have {limit} MiB{cannot}.\n",
        turns.load.name(),
        sizes(turns.load, quick),
        table(&head, &rows)
    )
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
    let shares = turns.numbers(contender, "share");
    if shares.is_empty() {
        return "-".to_owned();
    }
    let middle = |name| median(&turns.numbers(contender, name));
    let (cycles, minor) = (middle("cycles"), middle("minor_cycles"));
    format!("{:.0} % of the time, {cycles} cycles, {minor} minor", 100.0 * median(&shares))
}
