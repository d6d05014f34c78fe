//! Runs the plan: one group after the other in each round, the settings of a group
//! next to each other in time, in an order that turns from round to round.
//!
//! ```text
//!   round 1   ttest1 T=2: a b c d | ttest1 T=40: a b c d | ...
//!   round 2   ttest1 T=2: b c d a | ...
//! ```
//!
//! A setting is tried with the empty program first. One that complains (a library that
//! does not know the option, or that the loader ignores) is left out, and said so:
//! it must not be taken for one that works.
//!
//! Before each run as much memory is touched and given back as the group was seen to
//! take: the hosts of virtual machines take free memory back, and whoever touches it
//! first again pays for it.

use std::collections::BTreeMap;

use ::figures::machine::machine;
use ::figures::process::{self, Ended};
use ::figures::turns::order;

use crate::line::{self, Numbers};
use crate::options::Run;
use crate::plan::{Group, UNTIMED};
use crate::results::{Commits, LeftOut, One, Results};
use crate::setting::{PER_CPU, Setting};

/// Runs a program under a setting.
fn start(asked: &Run, setting: &Setting, program: &str, words: &[String]) -> Result<Ended, String> {
    let path = asked.programs.join(program);
    process::run(&path, words, &setting.environment, asked.seconds.into())
}

/// Runs a program, and reads its line. Ours says nothing else unless something is wrong.
fn numbers(
    asked: &Run,
    setting: &Setting,
    program: &str,
    words: &[String],
    timed: bool,
) -> Result<Result<Numbers, String>, String> {
    let said = start(asked, setting, program, words)?;
    let complaint = said.stderr.lines().next().filter(|_| setting.ours).map(str::to_owned);
    Ok(said.well(asked.seconds.into()).and_then(|text| match complaint {
        Some(line) => Err(format!("it says: {line}")),
        None => line::parse(&text, program, timed),
    }))
}

/// Whether the setting can be had: its reason if not. Here a peer must not complain either.
fn why_not(asked: &Run, setting: &Setting) -> Result<Option<String>, String> {
    let strict = Setting { ours: true, ..setting.clone() };
    Ok(numbers(asked, &strict, "empty", &[], false)?.err())
}

/// The number behind a label that ends in `word`, in what `stats=exit` prints:
///
/// ```text
/// heapwright:   rseq commits     123456
/// ```
fn printed(stderr: &str, word: &str) -> Option<f64> {
    stderr.lines().find_map(|line| {
        let (_, rest) = line.strip_prefix("heapwright:")?.split_once(word)?;
        rest.trim_start_matches(':').split_whitespace().next()?.parse().ok()
    })
}

/// Of what per-CPU caches did, what was a restartable sequence that committed.
fn commits(asked: &Run, group: &Group, setting: &Setting) -> Result<Option<Commits>, String> {
    let mut counting = setting.clone();
    for variable in &mut counting.environment {
        if variable.starts_with("HEAPWRIGHT=") {
            variable.push_str(",stats=exit");
        }
    }
    let said = start(asked, &counting, group.workload.name, &group.arguments)?;
    let (done, fell_back) =
        (printed(&said.stderr, "rseq commits"), printed(&said.stderr, "rseq fallbacks"));
    let percent = match (done, fell_back) {
        (Some(done), Some(fell_back)) if done + fell_back > 0.0 => {
            done / (done + fell_back) * 100.0
        }
        _ => return Ok(None),
    };
    Ok(Some(Commits { threads: group.threads, percent }))
}

/// All of it.
pub(crate) fn all(asked: &Run, plan: &[Group]) -> Result<Results, String> {
    let mut results = Results { machine: machine(), ..Results::default() };
    let bare = Setting::glibc();
    if let Some(why) = why_not(asked, &bare)? {
        let path = asked.programs.join("empty");
        return Err(format!("{} does not run: {why}", path.display()));
    }
    for setting in &asked.settings()? {
        match why_not(asked, setting)? {
            None => results.settings.push(setting.clone()),
            Some(why) => {
                eprintln!("{} is left out: {why}", setting.name);
                results.left_out.push(LeftOut { setting: setting.clone(), why });
            }
        }
    }
    if results.settings.is_empty() {
        return Err("none of the settings can be had".to_owned());
    }
    // What each group was seen to take.
    let mut peaks: BTreeMap<usize, f64> = BTreeMap::new();
    for round in 1..=asked.rounds {
        eprintln!("round {round} of {}", asked.rounds);
        let empty = numbers(asked, &bare, "empty", &[], false)??;
        results.empty.push(empty["anonymous_end"]);
        for (place, group) in plan.iter().enumerate().filter(|(_, g)| g.takes_part(round)) {
            for at in order(round as usize - 1, results.settings.len()) {
                let setting = &results.settings[at];
                let peak = peaks.entry(place).or_insert(16e6);
                process::warm(*peak);
                let name = group.workload.name;
                let came = numbers(asked, setting, name, &group.arguments, group.clock != UNTIMED)?;
                if let Ok(numbers) = &came {
                    *peak = peak.max(numbers["rss_peak"]);
                }
                if let Err(why) = &came {
                    eprintln!("{name}, {} threads, {}: {why}", group.threads, setting.name);
                }
                results.runs.push(One {
                    workload: name.to_owned(),
                    threads: group.threads,
                    clock: group.clock.to_owned(),
                    setting: setting.name.clone(),
                    round,
                    failed: came.as_ref().err().cloned(),
                    numbers: came.unwrap_or_default(),
                });
            }
        }
    }
    if let Some(setting) = results.setting(PER_CPU).cloned() {
        for group in plan.iter().filter(|g| g.workload.name == "rpc" && g.clock == UNTIMED) {
            results.commits.extend(commits(asked, group, &setting)?);
        }
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_by_their_labels() {
        let said = "heapwright: memory of process 7 (rpc) after 12 ms\n\
                    heapwright:   rseq commits            123456\n\
                    heapwright:   rseq fallbacks               3 of them at the start\n";
        assert_eq!(printed(said, "rseq commits"), Some(123_456.0));
        assert_eq!(printed(said, "rseq fallbacks"), Some(3.0));
        assert_eq!(printed(said, "rseq aborts"), None);
        assert_eq!(printed("rpc: rseq commits 5", "rseq commits"), None);
    }
}
