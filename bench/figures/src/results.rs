//! The file that `heapwright bench --format json` writes, as far as the figures need
//! it. What is missing or of another kind is an error that names it: a figure
//! from half a file would look like any other.

use serde_json::Value;

/// The version of the file's layout that is understood.
const SCHEMA: &str = "heapwright-bench/1";

/// A whole race.
pub(crate) struct Race {
    /// The allocators' names, in the file's order.
    pub(crate) allocators: Vec<String>,
    pub(crate) programs: Vec<Program>,
    /// Whether all of its rounds were run.
    pub(crate) complete: bool,
}

/// One program or workload.
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// A long one is asked fewer rounds of.
    pub(crate) long: bool,
    /// Bytes it has live at its peak; known of workloads.
    pub(crate) live_bytes: Option<u64>,
    /// One for each allocator of the race, in its order.
    pub(crate) outcomes: Vec<Outcome>,
}

/// Whose program it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// One of ours, built into the command.
    Workload,
    /// A real one, of the suite or of the command line.
    Program,
}

/// What became of a program under an allocator.
pub(crate) enum Outcome {
    /// It did what it does under the baseline, in every round.
    Ran(Vec<Run>),
    /// A word for what happened, and more if it is known.
    Failed(String),
    /// The file says nothing of this pair.
    NotRaced,
}

/// One run.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) wall_ns: f64,
    pub(crate) peak_bytes: f64,
}

impl Race {
    /// Reads the file's text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let file: Value = serde_json::from_str(text).map_err(|e| format!("not JSON: {e}"))?;
        let schema = file["schema"].as_str().unwrap_or("nothing");
        if schema != SCHEMA {
            return Err(format!("its schema is {schema}, and this program reads {SCHEMA}"));
        }
        let allocators = list(&file, "allocators")?
            .iter()
            .map(|allocator| text_of(allocator, "name"))
            .collect::<Result<Vec<_>, _>>()?;
        let programs = list(&file, "programs")?
            .iter()
            .map(|program| Program::parse(program, &allocators))
            .collect::<Result<Vec<_>, _>>()?;
        let complete = file["complete"].as_bool().unwrap_or(true);
        Ok(Self { allocators, programs, complete })
    }

    /// An allocator's place in the lists.
    pub(crate) fn allocator(&self, name: &str) -> Option<usize> {
        self.allocators.iter().position(|other| other == name)
    }

    /// What counts for a mean: everything but the program that does nothing.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &Program> {
        self.programs.iter().filter(|program| program.name != "empty")
    }

    /// The program that does nothing: what its peak is, any program's is.
    pub(crate) fn empty(&self) -> Option<&Program> {
        self.programs.iter().find(|program| program.name == "empty")
    }
}

impl Program {
    fn parse(value: &Value, allocators: &[String]) -> Result<Self, String> {
        let name = text_of(value, "name")?;
        let within = |e: String| format!("program {name}: {e}");
        let kind = match text_of(value, "kind").map_err(within)?.as_str() {
            "workload" => Kind::Workload,
            _ => Kind::Program,
        };
        let mut outcomes: Vec<Outcome> = allocators.iter().map(|_| Outcome::NotRaced).collect();
        for result in list(value, "results").map_err(within)? {
            let allocator = text_of(result, "allocator").map_err(within)?;
            let place = allocators
                .iter()
                .position(|other| *other == allocator)
                .ok_or_else(|| within(format!("{allocator} is not among the allocators")))?;
            outcomes[place] = outcome(result).map_err(within)?;
        }
        Ok(Self {
            kind,
            long: value["long"].as_bool().unwrap_or(false),
            live_bytes: value["live_bytes"].as_u64(),
            outcomes,
            name,
        })
    }

    /// The runs under an allocator, if all went well.
    pub(crate) fn runs(&self, allocator: usize) -> Option<&[Run]> {
        match self.outcomes.get(allocator) {
            Some(Outcome::Ran(runs)) => Some(runs),
            _ => None,
        }
    }
}

fn outcome(result: &Value) -> Result<Outcome, String> {
    let word = text_of(result, "outcome")?;
    if word != "ok" {
        let detail = result["detail"].as_str().filter(|detail| !detail.is_empty());
        return Ok(Outcome::Failed(match detail {
            Some(detail) => format!("{word}: {detail}"),
            None => word,
        }));
    }
    let runs = list(result, "runs")?
        .iter()
        .map(|run| {
            Ok(Run { wall_ns: number(run, "wall_ns")?, peak_bytes: number(run, "peak_rss_bytes")? })
        })
        .collect::<Result<Vec<_>, String>>()?;
    // A mean of nothing is not a number.
    if runs.is_empty() { Ok(Outcome::NotRaced) } else { Ok(Outcome::Ran(runs)) }
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

    /// A program, its live bytes, and its rounds under each allocator.
    pub(crate) type MadeUp<'a> = (&'a str, Option<u64>, &'a [&'a [(f64, f64)]]);

    /// A made-up race: each program with its milliseconds and MiB under each
    /// allocator, one pair a round; no rounds is a crash.
    pub(crate) fn made_up(allocators: &[&str], programs: &[MadeUp<'_>]) -> Race {
        let programs: Vec<Value> = programs
            .iter()
            .map(|(name, live, results)| {
                let results: Vec<Value> = allocators
                    .iter()
                    .zip(*results)
                    .map(|(allocator, rounds)| {
                        let runs: Vec<Value> = rounds
                            .iter()
                            .map(|(ms, mib)| json!({"wall_ns": ms * 1e6, "peak_rss_bytes": mib * 1048576.0}))
                            .collect();
                        let outcome = if runs.is_empty() { "crashed" } else { "ok" };
                        json!({"allocator": allocator, "outcome": outcome, "detail": "signal 11", "runs": runs})
                    })
                    .collect();
                let kind = if live.is_some() { "workload" } else { "program" };
                json!({"name": name, "kind": kind, "long": false, "live_bytes": live, "results": results})
            })
            .collect();
        let allocators: Vec<Value> = allocators.iter().map(|name| json!({"name": name})).collect();
        let file = json!({"schema": SCHEMA, "allocators": allocators, "programs": programs});
        Race::parse(&file.to_string()).unwrap()
    }

    #[test]
    fn outcomes_keep_the_allocators_order() {
        let race = made_up(
            &["glibc", "heapwright"],
            &[("a", Some(1), &[&[(2.0, 3.0)], &[]]), ("b", None, &[&[(1.0, 1.0)]])],
        );
        assert_eq!(race.allocator("heapwright"), Some(1));
        let a = &race.programs[0];
        assert_eq!((a.kind, a.live_bytes), (Kind::Workload, Some(1)));
        assert_eq!(a.runs(0).unwrap()[0].wall_ns, 2e6);
        assert!(matches!(&a.outcomes[1], Outcome::Failed(why) if why == "crashed: signal 11"));
        assert!(matches!(race.programs[1].outcomes[1], Outcome::NotRaced));
    }

    #[test]
    fn an_interrupted_race_is_known_as_one() {
        let parsed = |more: &str| {
            let text = format!(r#"{{"schema":"{SCHEMA}",{more}"allocators":[],"programs":[]}}"#);
            Race::parse(&text).unwrap().complete
        };
        assert!(parsed(""));
        assert!(parsed(r#""complete":true,"#));
        assert!(!parsed(r#""complete":false,"#));
    }

    #[test]
    fn a_bad_file_is_named() {
        let error = |text: &str| Race::parse(text).map(|_| ()).unwrap_err();
        assert!(error("{").contains("not JSON"));
        assert!(error(r#"{"schema":"other/2"}"#).contains("other/2"));
        let text =
            format!(r#"{{"schema":"{SCHEMA}","allocators":[],"programs":[{{"name":"x"}}]}}"#);
        assert!(error(&text).contains("program x"));
    }
}
