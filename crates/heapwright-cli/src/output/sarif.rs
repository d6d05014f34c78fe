//! SARIF 2.1.0, which code scanning reads: one run, a rule for each kind of finding.
//!
//! ```text
//! results    errors                error    at the place where each was found
//!            definitely lost       error    at the place that allocated
//!            possibly lost         warning
//!            growth                warning
//! no results still reachable, indirectly lost: the first is no fault, the second is reported
//!            with what it was lost with; a notification says how much they are
//! ```
//!
//! The location of a result is where a person would look first: the innermost call whose
//! source is under the folder that the report is made in (of the stack that says whose
//! fault it is: what was only found later is reported where the block was freed or made), else one that is not a
//! system's, else any; where no source is known, the file of code. All stacks are in
//! `stacks`, the moments of an error in `relatedLocations` and, a thread each, in
//! `codeFlows`.
//!
//! Sources under the folder are relative to `%SRCROOT%`; others are `file:` URIs.
//! `partialFingerprints` are made of the rule and the names of the functions: the same
//! from run to run and wherever libraries lie; equal ones are numbered.

mod fingerprint;
mod shape;
mod uri;

use self::fingerprint::Fingerprints;
use self::shape::*;
use self::uri::Uris;
use super::calls::{Call, calls, first_look};
use super::rules::Rule;
use super::sentences;
use super::time::rfc3339;
use super::units;
use super::words::fault_stack;
use crate::report::model::{Error, Process, Report, StackId, Stacks};
use heapwright_record::debug::Reach;
use std::io;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// The name under which fingerprints are kept; another way to make them needs another.
const FINGERPRINT: &str = "heapwrightFunctions/v1";

/// Calls of a stack that are reported: a reader takes so many megabytes and no more.
const MOST_CALLS: usize = 48;
/// Letters of a function's name.
const MOST_LETTERS: usize = 400;

/// The log.
pub(crate) fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Log::of(run(report, &report.wanted.folder)))?;
    writeln!(out)
}

fn run(report: &Report, folder: &Path) -> Run {
    let rules: Vec<Rule> = Rule::faults().collect();
    let maker = Maker { stacks: &report.stacks, uris: Uris::new(folder), rules: &rules };
    let mut fingerprints = Fingerprints::default();
    let mut results = Vec::new();
    let mut add = |mut result: Result, stacks: &[StackId]| {
        let print = fingerprints.of(result.rule_id, &report.stacks, stacks);
        result.partial_fingerprints.insert(FINGERPRINT, print);
        results.push(result);
    };
    for error in &report.errors {
        let stacks: Vec<StackId> = error.moments.iter().map(|happened| happened.stack).collect();
        add(maker.error(error), &stacks);
    }
    for leak in &report.leaks {
        if !matches!(leak.reach, Reach::Definite | Reach::Possible) {
            continue;
        }
        let mut result = maker.result(Rule::Leak(leak.reach), sentences::leak(leak), leak.stack);
        result.occurrence_count = leak.lost.blocks.max(1);
        if let Some(path) = &leak.path {
            result.message.text +=
                &format!(". What leads to one begins in {}", sentences::root(path));
        }
        result.stacks.extend(maker.stack("allocated", leak.stack));
        add(result, &[leak.stack]);
    }
    for growth in &report.growths {
        let text = format!("What is allocated here {}", sentences::growth(growth));
        let mut result = maker.result(Rule::Growth, text, growth.stack);
        result.stacks.extend(maker.stack("allocated", growth.stack));
        add(result, &[growth.stack]);
    }
    Run {
        tool: Tool::of(rules.iter().map(|rule| descriptor(*rule)).collect()),
        invocations: report
            .processes
            .iter()
            .enumerate()
            .map(|(at, process)| {
                invocation(process, if at == 0 { notifications(report) } else { Vec::new() })
            })
            .collect(),
        original_uri_base_ids: maker.uris.base(),
        results,
        column_kind: "unicodeCodePoints",
    }
}

fn descriptor(rule: Rule) -> Descriptor {
    let about = rule.about();
    Descriptor {
        id: rule.id(),
        short_description: Message::of(about.title),
        full_description: Message::of(about.means),
        help: Message::of(about.mend),
        default_configuration: Configuration { level: level(rule) },
    }
}

fn level(rule: Rule) -> &'static str {
    match rule {
        Rule::Error(_) | Rule::Leak(Reach::Definite) => "error",
        Rule::Leak(Reach::Possible) | Rule::Growth => "warning",
        Rule::Leak(_) => "note",
    }
}

fn invocation(process: &Process, notifications: Vec<Notification>) -> Invocation {
    Invocation {
        command_line: sentences::command(process),
        arguments: process.command.iter().skip(1).cloned().collect(),
        process_id: process.pid,
        start_time_utc: rfc3339(UNIX_EPOCH + Duration::from_nanos(process.began)),
        // Of heapwright, which did what it was asked for.
        execution_successful: true,
        tool_execution_notifications: notifications,
    }
}

/// What is no result, and should not be lost.
fn notifications(report: &Report) -> Vec<Notification> {
    let mut lines = Vec::new();
    for (reach, fate) in
        [(Reach::Indirect, "lost with other blocks"), (Reach::Reachable, "still reachable")]
    {
        let total = report.total(reach);
        if total.blocks != 0 {
            lines.push(format!("{} {fate}: no results", sentences::amount(total)));
        }
    }
    let checked = |process: &Process| {
        process.checks.iter().any(|check| check.occasion.follows() && check.took_ns.is_some())
    };
    if !report.processes.iter().any(checked) {
        lines.push("no leak check was finished".to_owned());
    }
    let unreported = report.unreported.errors;
    if unreported != 0 {
        lines.push(format!("{}: no results", units::counted(unreported, "more different error")));
    }
    let lines = lines.into_iter().chain(report.lines().cloned());
    lines.map(|line| Notification { level: "note", message: Message::of(&line) }).collect()
}

struct Maker<'a> {
    stacks: &'a Stacks,
    uris: Uris<'a>,
    rules: &'a [Rule],
}

impl Maker<'_> {
    fn result(&self, rule: Rule, text: String, stack: StackId) -> Result {
        Result {
            rule_id: rule.id(),
            rule_index: self.rules.iter().position(|other| *other == rule),
            level: level(rule),
            message: Message { text },
            locations: self.look(stack).into_iter().collect(),
            stacks: Vec::new(),
            related_locations: Vec::new(),
            code_flows: Vec::new(),
            partial_fingerprints: Default::default(),
            occurrence_count: 1,
        }
    }

    fn error(&self, error: &Error) -> Result {
        let stack = fault_stack(error);
        let mut result = self.result(Rule::of(error.finding.kind), sentences::error(error), stack);
        result.occurrence_count = error.times.max(1);
        let mut by_time: Vec<_> = error.moments.iter().collect();
        by_time.sort_by_key(|happened| (happened.moment.sequence, happened.moment.ns));
        let mut flows: Vec<ThreadFlow> = Vec::new();
        for happened in &error.moments {
            let title = sentences::moment(&error.finding, happened);
            result.stacks.extend(self.stack(&title, happened.stack));
            let Some(mut location) = self.look(happened.stack) else { continue };
            location.id = Some(result.related_locations.len() + 1);
            location.message = Some(Message::of(&title));
            result.related_locations.push(location);
        }
        for (order, happened) in (1..).zip(by_time) {
            let Some(mut location) = self.look(happened.stack) else { continue };
            location.message = Some(Message::of(&sentences::moment(&error.finding, happened)));
            let step = FlowLocation { location, execution_order: order };
            let id = format!("thread {}", happened.moment.thread);
            match flows.iter_mut().find(|flow| flow.id == id) {
                Some(flow) => flow.locations.push(step),
                None => flows.push(ThreadFlow { id, locations: vec![step] }),
            }
        }
        if !flows.is_empty() {
            result.code_flows = vec![CodeFlow { thread_flows: flows }];
        }
        result
    }

    /// Where a person would look first.
    fn look(&self, stack: StackId) -> Option<Location> {
        let own = calls(self.stacks, stack)
            .find(|call| call.line().is_some_and(|(source, _)| self.uris.is_inside(source)));
        let placed = || calls(self.stacks, stack).find(|call| call.frame.place.is_some());
        let call = own.or_else(|| first_look(self.stacks, stack)).or_else(placed)?;
        Some(self.location(&call))
    }

    fn location(&self, call: &Call<'_>) -> Location {
        let artifact = match (call.source(), &call.frame.place) {
            (Some(source), _) => Some(self.uris.artifact(source.as_bytes())),
            (None, Some(place)) => Some(self.uris.artifact(&place.path)),
            (None, None) => None,
        };
        let address = call.frame.place.as_ref().map(|place| Address {
            // As the file has it: no address of the process, which is another each time.
            relative_address: i64::try_from(place.offset).ok(),
        });
        Location {
            id: None,
            physical_location: artifact.map(|artifact_location| Physical {
                artifact_location,
                region: call
                    .line()
                    .map(|(_, start_line)| Region { start_line, start_column: call.column() }),
                address: address.filter(|address| address.relative_address.is_some()),
            }),
            logical_locations: vec![Logical {
                fully_qualified_name: call.name().chars().take(MOST_LETTERS).collect(),
                kind: "function",
            }],
            message: None,
        }
    }

    fn stack(&self, title: &str, stack: StackId) -> Option<Stack> {
        let frames: Vec<_> = calls(self.stacks, stack)
            .take(MOST_CALLS)
            .map(|call| StackFrame { location: self.location(&call), module: call.module() })
            .collect();
        (!frames.is_empty()).then(|| Stack { message: Message::of(title), frames })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample;
    use serde_json::{Value, json};

    fn log(report: &Report) -> Value {
        let mut out = Vec::new();
        write(report, &mut out).expect("is written");
        serde_json::from_slice(&out).expect("is JSON")
    }

    #[test]
    fn results_point_at_rules_and_at_ones_own_source() {
        let log = log(&sample::report());
        assert_eq!(log["version"], "2.1.0");
        let run = &log["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().expect("one");
        let printed: Vec<_> = run["results"]
            .as_array()
            .expect("one")
            .iter()
            .map(|result| {
                let rule = &rules[result["ruleIndex"].as_u64().expect("one") as usize];
                assert_eq!(rule["id"], result["ruleId"]);
                let place = &result["locations"][0]["physicalLocation"];
                format!(
                    "{} {} {} {}",
                    result["level"].as_str().unwrap_or_default(),
                    result["ruleId"].as_str().unwrap_or_default(),
                    place["artifactLocation"]["uri"].as_str().unwrap_or_default(),
                    place["region"]["startLine"],
                )
            })
            .collect();
        assert_eq!(
            printed,
            [
                "error use-after-free src/session.cc 71",
                "error buffer-overflow src/header.c 12",
                "error allocator-mismatch a%20b/%3Ci%3E%231.c 5",
                "error definitely-lost src/session.cc 33",
                "error definitely-lost a%20b/%3Ci%3E%231.c 5",
                "warning possibly-lost index/src/lib.rs 7",
                "warning growth src/cache.cc 88",
            ]
        );
        assert_eq!(run["originalUriBaseIds"]["%SRCROOT%"]["uri"], "file:///home/ada/shop/");
    }

    #[test]
    fn an_error_flows_through_its_threads() {
        let log = log(&sample::report());
        let result = &log["runs"][0]["results"][0];
        let flows = &result["codeFlows"][0]["threadFlows"];
        assert_eq!((&flows[0]["id"], &flows[1]["id"]), (&json!("thread 1"), &json!("thread 2")));
        let step = |flow: usize, at: usize| {
            let step = &flows[flow]["locations"][at];
            (step["executionOrder"].clone(), step["location"]["message"]["text"].clone())
        };
        assert_eq!(step(0, 0), (json!(1), json!("allocated by thread 1")));
        assert_eq!(step(0, 1), (json!(2), json!("freed by thread 1")));
        assert_eq!(step(1, 0), (json!(3), json!("here, thread 2 (worker <2>)")));
        assert_eq!(result["occurrenceCount"], 17);
        assert_eq!(result["relatedLocations"][2]["id"], 3);
        let frame = &result["stacks"][1]["frames"][0];
        assert_eq!(frame["module"], "libheapwright.so");
        assert_eq!(
            frame["location"]["physicalLocation"]["artifactLocation"]["uri"],
            "file:///usr/lib/libheapwright.so"
        );
    }

    #[test]
    fn what_is_no_result_is_notified() {
        let log = log(&sample::report());
        let invocation = &log["runs"][0]["invocations"][0];
        let notes = &invocation["toolExecutionNotifications"];
        assert_eq!(
            notes[0]["message"]["text"],
            "88.9 KiB in 310 blocks lost with other blocks: no results"
        );
        assert_eq!(notes[3]["message"]["text"], "process 7 (<worker>) was killed by SIGKILL");
        assert_eq!(notes[4]["message"]["text"], "2 threads did not report their registers");
        assert_eq!(invocation["startTimeUtc"], "2023-11-14T22:13:20Z");
    }

    #[test]
    fn nothing_is_a_log_too() {
        let log = log(&Report::default());
        assert_eq!(log["runs"][0]["results"], json!([]));
    }
}
