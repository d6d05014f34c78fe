//! The file that `heapwright bench --format json` writes, as cells, and two allocators side by
//! side: the ratio of one to the other, on one program or over many.
//!
//! What is missing in the file or of another kind is an error that names it: a figure from half a
//! file would look like any other. A program on which either of two allocators failed is left out
//! of that pair's mean, and the tables' feet say so.

use std::collections::BTreeMap;

use ::figures::cells::Cells;
use ::figures::statistics::{Estimate, estimate};
use serde_json::Value;

/// The version of the file's layout that is understood.
const SCHEMA: &str = "heapwright-bench/1";

/// From here on a program's memory is its own doing, not its start's.
const HEAVY_BYTES: f64 = 32.0 * 1024.0 * 1024.0;

/// The program that does nothing: what its peak is, any program's is.
const EMPTY: &str = "empty";
/// What others are compared with.
pub(crate) const BASE: &str = "glibc";
/// Whom the bounds are for.
pub(crate) const US: &str = "heapwright";

/// Wall time, in nanoseconds.
pub(crate) const TIME: &str = "wall_ns";
/// Peak resident bytes of the program, all of them.
pub(crate) const PEAK: &str = "peak";
/// Peak resident bytes above those of the empty program under the same allocator; none if there is
/// no empty program.
pub(crate) const ABOVE: &str = "above";

/// A whole race.
pub(crate) struct Race {
    /// The allocators' names, in the file's order.
    pub(crate) allocators: Vec<String>,
    pub(crate) programs: Vec<Program>,
    /// Whether all of its rounds were run.
    pub(crate) complete: bool,
    /// Section (always the same), program, allocator.
    cells: Cells,
    /// Of a program and an allocator a word for what happened, and more if it is known.
    failures: BTreeMap<(String, String), String>,
}

/// One program or workload.
pub(crate) struct Program {
    pub(crate) name: String,
    /// Whether it is one of ours, built into the command; or a real one.
    pub(crate) is_workload: bool,
    /// A long one is asked fewer rounds of.
    pub(crate) long: bool,
    /// Bytes it has live at its peak; known of workloads.
    live_bytes: Option<u64>,
}

impl Race {
    /// Reads the file's text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let file: Value = serde_json::from_str(text).map_err(|e| format!("not JSON: {e}"))?;
        let schema = file["schema"].as_str().unwrap_or("nothing");
        if schema != SCHEMA {
            return Err(format!("its schema is {schema}, and this program reads {SCHEMA}"));
        }
        let allocators = list(&file, "allocators")?.iter().map(|one| text_of(one, "name"));
        let mut race = Self {
            allocators: allocators.collect::<Result<_, _>>()?,
            programs: Vec::new(),
            complete: file["complete"].as_bool().unwrap_or(true),
            cells: Cells::default(),
            failures: BTreeMap::new(),
        };
        for program in list(&file, "programs")? {
            let name = text_of(program, "name")?;
            race.add(&name, program).map_err(|e| format!("program {name}: {e}"))?;
        }
        race.weigh();
        Ok(race)
    }

    fn add(&mut self, name: &str, program: &Value) -> Result<(), String> {
        self.programs.push(Program {
            name: name.to_owned(),
            is_workload: text_of(program, "kind")? == "workload",
            long: program["long"].as_bool().unwrap_or(false),
            live_bytes: program["live_bytes"].as_u64(),
        });
        for result in list(program, "results")? {
            let allocator = text_of(result, "allocator")?;
            if !self.allocators.contains(&allocator) {
                return Err(format!("{allocator} is not among the allocators"));
            }
            let word = text_of(result, "outcome")?;
            if word != "ok" {
                let detail = result["detail"].as_str().filter(|detail| !detail.is_empty());
                let why = detail.map_or(word.clone(), |detail| format!("{word}: {detail}"));
                self.failures.insert((name.to_owned(), allocator), why);
                continue;
            }
            let cell = (String::new(), name.to_owned(), allocator);
            for (round, run) in list(result, "runs")?.iter().enumerate() {
                self.cells.add(&cell, round, TIME, number(run, "wall_ns")?);
                self.cells.add(&cell, round, PEAK, number(run, "peak_rss_bytes")?);
            }
        }
        Ok(())
    }

    /// Adds what programs take above the empty one.
    fn weigh(&mut self) {
        for allocator in &self.allocators {
            let Some(empty) = self.cells.middle(("", EMPTY, allocator), PEAK) else { continue };
            for program in &self.programs {
                let at = ("", program.name.as_str(), allocator.as_str());
                let rounds = self.cells.of(at, PEAK).cloned().unwrap_or_default();
                let cell = (String::new(), program.name.clone(), allocator.clone());
                for (round, peak) in rounds {
                    // One page at least: a ratio to nothing means nothing.
                    self.cells.add(&cell, round, ABOVE, (peak - empty).max(4096.0));
                }
            }
        }
    }

    /// Whether an allocator took part.
    pub(crate) fn has(&self, allocator: &str) -> bool {
        self.allocators.iter().any(|other| other == allocator)
    }

    /// What counts for a mean: everything but the program that does nothing.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &Program> {
        self.programs.iter().filter(|program| program.name != EMPTY)
    }

    /// Why there is nothing of a program under an allocator, if it failed.
    pub(crate) fn failure(&self, program: &Program, allocator: &str) -> Option<&str> {
        self.failures.get(&(program.name.clone(), allocator.to_owned())).map(String::as_str)
    }

    /// How often a program ran.
    pub(crate) fn rounds(&self, program: &Program, allocator: &str) -> usize {
        self.cells.values(("", &program.name, allocator), TIME).len()
    }

    /// The median of a program's numbers under an allocator.
    pub(crate) fn middle(&self, program: &Program, allocator: &str, measure: &str) -> Option<f64> {
        self.cells.middle(("", &program.name, allocator), measure)
    }

    fn ratios(&self, program: &Program, (one, other): (&str, &str), measure: &str) -> Vec<f64> {
        let name = program.name.as_str();
        self.cells.ratios(("", name, one), ("", name, other), measure)
    }

    /// The ratio of one allocator to another on one program.
    pub(crate) fn single(
        &self,
        program: &Program,
        pair: (&str, &str),
        measure: &str,
    ) -> Option<Estimate> {
        estimate(&[self.ratios(program, pair, measure)])
    }

    /// The mean over programs, and how many there were.
    pub(crate) fn mean<'a>(
        &self,
        programs: impl Iterator<Item = &'a Program>,
        pair: (&str, &str),
        measure: &str,
    ) -> Option<(Estimate, usize)> {
        let all = programs.map(|program| self.ratios(program, pair, measure));
        let all: Vec<Vec<f64>> = all.filter(|ratios| !ratios.is_empty()).collect();
        Some((estimate(&all)?, all.len()))
    }

    /// Whether a program's memory is worth comparing: of workloads those that say they have that
    /// much live, of real programs those that take it under glibc.
    pub(crate) fn is_heavy(&self, program: &Program) -> bool {
        match program.live_bytes.filter(|_| program.is_workload) {
            Some(live) => live as f64 >= HEAVY_BYTES,
            None => self.middle(program, BASE, ABOVE).is_some_and(|bytes| bytes >= HEAVY_BYTES),
        }
    }

    /// These programs.
    pub(crate) fn heavy(&self) -> impl Iterator<Item = &Program> {
        self.counted().filter(|program| self.is_heavy(program))
    }

    fn least<'a>(&'a self, of: impl Fn(&'a str) -> Option<f64>) -> Option<&'a str> {
        let others = self.allocators.iter().map(String::as_str).filter(|name| *name != US);
        let all = others.filter_map(|name| Some((name, of(name)?)));
        all.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
    }

    /// The fastest of the others, by its mean ratio to glibc. One that failed on more than half of
    /// the programs is no peer.
    pub(crate) fn best_peer(&self) -> Option<&str> {
        self.least(|peer| {
            let (mean, count) = self.mean(self.counted(), (peer, BASE), TIME)?;
            (count * 2 >= self.counted().count()).then_some(mean.value)
        })
    }

    /// The fastest of the others on one program.
    pub(crate) fn best_there(&self, program: &Program) -> Option<&str> {
        self.least(|peer| self.middle(program, peer, TIME))
    }
}

fn list<'a>(value: &'a Value, name: &str) -> Result<&'a Vec<Value>, String> {
    value[name].as_array().ok_or_else(|| format!("no list named {name}"))
}

fn text_of(value: &Value, name: &str) -> Result<String, String> {
    value[name].as_str().map(str::to_owned).ok_or_else(|| format!("no text named {name}"))
}

fn number(value: &Value, name: &str) -> Result<f64, String> {
    value[name].as_f64().ok_or_else(|| format!("no number named {name}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    const MIB: u64 = 1 << 20;

    /// A program, its live bytes, and its rounds under each allocator.
    pub(crate) type MadeUp<'a> = (&'a str, Option<u64>, &'a [&'a [(f64, f64)]]);

    /// A made-up race: each program with its milliseconds and MiB under each
    /// allocator, one pair a round; no rounds is a crash.
    pub(crate) fn made_up(allocators: &[&str], programs: &[MadeUp<'_>]) -> Race {
        let run = |(ms, mib): &(f64, f64)| json!({"wall_ns": ms * 1e6, "peak_rss_bytes": mib * 1048576.0});
        let program = |(name, live, results): &MadeUp<'_>| {
            let results: Vec<Value> = allocators
                .iter()
                .zip(*results)
                .map(|(allocator, rounds)| {
                    let runs: Vec<Value> = rounds.iter().map(run).collect();
                    let outcome = if runs.is_empty() { "crashed" } else { "ok" };
                    json!({"allocator": allocator, "outcome": outcome, "detail": "signal 11", "runs": runs})
                })
                .collect();
            let kind = if live.is_some() { "workload" } else { "program" };
            json!({"name": name, "kind": kind, "long": false, "live_bytes": live, "results": results})
        };
        let programs: Vec<Value> = programs.iter().map(program).collect();
        let allocators: Vec<Value> = allocators.iter().map(|name| json!({"name": name})).collect();
        let file = json!({"schema": SCHEMA, "allocators": allocators, "programs": programs});
        Race::parse(&file.to_string()).unwrap()
    }

    #[test]
    fn a_failure_leaves_the_program_out_of_that_pair_only() {
        let race = made_up(
            &["glibc", "heapwright", "peer"],
            &[
                ("a", Some(1), &[&[(10.0, 9.0)], &[(5.0, 9.0)], &[]]),
                ("b", Some(1), &[&[(10.0, 9.0)], &[(20.0, 9.0)], &[(5.0, 9.0)]]),
            ],
        );
        let mean = |pair| race.mean(race.counted(), pair, TIME).unwrap();
        let (to_glibc, count) = mean(("heapwright", "glibc"));
        assert_eq!((to_glibc.value, count), (1.0, 2));
        let (to_peer, count) = mean(("heapwright", "peer"));
        assert_eq!((to_peer.value, count), (4.0, 1));
        assert_eq!(race.failure(&race.programs[0], "peer"), Some("crashed: signal 11"));
    }

    #[test]
    fn memory_is_counted_above_the_empty_program() {
        let a: MadeUp<'_> = ("a", Some(40 * MIB), &[&[(1.0, 42.0)], &[(1.0, 30.0)]]);
        let empty: MadeUp<'_> = ("empty", Some(0), &[&[(1.0, 2.0)], &[(1.0, 10.0)]]);
        let pair = ("heapwright", "glibc");
        let race = made_up(&["glibc", "heapwright"], &[empty, a]);
        let program = race.counted().next().unwrap();
        assert_eq!(race.single(program, pair, ABOVE).unwrap().value, 0.5);
        assert!(race.single(program, pair, PEAK).unwrap().value > 0.7);
        let without = made_up(&["glibc", "heapwright"], &[a]);
        assert_eq!(without.mean(without.heavy(), pair, ABOVE), None);
    }

    #[test]
    fn heavy_is_said_by_a_workload_and_measured_of_a_program() {
        let race = made_up(
            &["glibc"],
            &[
                ("empty", Some(0), &[&[(1.0, 2.0)]]),
                ("light", Some(31 * MIB), &[&[(1.0, 90.0)]]),
                ("full", Some(32 * MIB), &[&[(1.0, 20.0)]]),
                ("small program", None, &[&[(1.0, 33.0)]]),
                ("large program", None, &[&[(1.0, 34.0)]]),
            ],
        );
        let names: Vec<&str> = race.heavy().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["full", "large program"]);
    }

    #[test]
    fn the_best_peer_is_the_fastest_that_runs_most() {
        let [slow, fast, faster] = [10.0, 5.0, 1.0].map(|ms| [(ms, 1.0)]);
        let race = made_up(
            &["glibc", "heapwright", "steady", "fragile"],
            &[
                ("a", None, &[&slow, &faster, &fast, &faster]),
                ("b", None, &[&slow, &faster, &fast, &[]]),
                ("c", None, &[&slow, &faster, &fast, &[]]),
            ],
        );
        assert_eq!(race.best_peer(), Some("steady"));
        assert_eq!(race.best_there(&race.programs[0]), Some("fragile"));
        assert_eq!(race.best_there(&race.programs[1]), Some("steady"));
    }

    #[test]
    fn a_bad_file_is_named_and_an_interrupted_race_is_known_as_one() {
        let error = |text: &str| Race::parse(text).map(|_| ()).unwrap_err();
        assert!(error("{").contains("not JSON"));
        assert!(error(r#"{"schema":"other/2"}"#).contains("other/2"));
        let of = |more: &str| format!(r#"{{"schema":"{SCHEMA}","allocators":[],{more}}}"#);
        assert!(error(&of(r#""programs":[{"name":"x"}]"#)).contains("program x"));
        let complete =
            |more: &str| Race::parse(&of(&format!(r#"{more}"programs":[]"#))).unwrap().complete;
        assert!(complete("") && !complete(r#""complete":false,"#));
    }
}
