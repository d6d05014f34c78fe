//! SARIF 2.1.0 for code scanning: one run, a rule for each kind of finding.
//!
//! ```text
//! results    errors                error    at the place of detection
//!            definitely lost       error    at the place of allocation
//!            possibly lost         warning
//!            growth                warning
//! none       still reachable       no fault
//!            indirectly lost       reported with the block that leads to them
//!            (a notification states the amounts of these two)
//! ```
//!
//! A result is located at the innermost call with a line of source under the current folder, else
//! at the call of [`first_look`]. Without such a call, the location is the innermost file. An
//! error that was found later is located where the block was freed or made. All stacks are in
//! `stacks`, the moments of an error in `relatedLocations` and, by thread, in `codeFlows`.
//!
//! Sources under the folder are relative to `%SRCROOT%`; others in a known place are `file:` URIs.
//! `partialFingerprints` contain the rule and the functions' names, so they are the same in each
//! run. Equal fingerprints are numbered. Unknown fields are left out: the format has few nulls.

mod fingerprint;
mod uri;

use self::fingerprint::Fingerprints;
use self::uri::Uris;
use super::found::{self, Found};
use super::json::write_compact;
use super::rules::Rule;
use super::sentences;
use super::units;
use crate::report::calls::{Call, calls, first_look};
use crate::report::model::{Check, Error, Process, Report, StackId, Stacks};
use heapwright_record::debug::Reach;
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// The name of the algorithm, which changes with the algorithm.
const FINGERPRINT: &str = "heapwrightFunctions/v1";

/// The most calls of a stack: readers limit the size of a file.
const MOST_CALLS: usize = 48;
/// The most letters of a function's name.
const MOST_LETTERS: usize = 400;

pub(crate) fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run(report, &report.wanted.folder)],
    });
    write_compact(out, &log)?;
    writeln!(out)
}

/// Removes the null fields of an object.
fn known(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    object
}

/// Returns `None` for an empty list.
fn some(list: Vec<Value>) -> Option<Vec<Value>> {
    Some(list).filter(|list| !list.is_empty())
}

fn run(report: &Report, folder: &Path) -> Value {
    let rules: Vec<Rule> = Rule::faults().collect();
    let fingerprints = Fingerprints::default();
    let mut maker =
        Maker { stacks: &report.stacks, uris: Uris::new(folder), rules: &rules, fingerprints };
    let is_result = |found: &Found<'_>| found.rule.level() != "note";
    let results: Vec<Value> =
        found::all(report).filter(is_result).map(|found| maker.result(&found)).collect();
    let version = env!("CARGO_PKG_VERSION");
    let invocations = report.processes.iter().enumerate().map(|(at, process)| {
        invocation(process, if at == 0 { notifications(report) } else { Vec::new() })
    });
    json!({
        "tool": {"driver": {
            "name": "heapwright",
            "version": version,
            "semanticVersion": version,
            "rules": rules.iter().map(|rule| descriptor(*rule)).collect::<Vec<_>>(),
        }},
        "invocations": invocations.collect::<Vec<_>>(),
        "originalUriBaseIds": maker.uris.base(),
        "results": results,
        "columnKind": "unicodeCodePoints",
    })
}

fn descriptor(rule: Rule) -> Value {
    let about = rule.about();
    json!({
        "id": rule.id(),
        "shortDescription": {"text": about.title},
        "fullDescription": {"text": about.means},
        "help": {"text": about.mend},
        "defaultConfiguration": {"level": rule.level()},
    })
}

fn invocation(process: &Process, notifications: Vec<Value>) -> Value {
    known(json!({
        "commandLine": sentences::command(process),
        "arguments": process.command.get(1..).unwrap_or_default(),
        "processId": process.pid,
        "startTimeUtc": units::rfc3339(UNIX_EPOCH + Duration::from_nanos(process.began)),
        // This is about heapwright's own work, which succeeded.
        "executionSuccessful": true,
        "toolExecutionNotifications": some(notifications),
    }))
}

/// Returns facts that are no results but must not be lost.
fn notifications(report: &Report) -> Vec<Value> {
    let mut lines = Vec::new();
    for (reach, fate) in
        [(Reach::Indirect, "lost with other blocks"), (Reach::Reachable, "still reachable")]
    {
        let total = report.total(reach);
        if total.blocks != 0 {
            lines.push(format!("{} {fate}: no results", sentences::amount(total)));
        }
    }
    if !report.checks().any(Check::is_whole) {
        lines.push("no leak check was finished".to_owned());
    }
    let unreported = report.unreported.errors;
    if unreported != 0 {
        lines.push(format!("{}: no results", units::counted(unreported, "more different error")));
    }
    let lines = lines.into_iter().chain(report.lines().cloned());
    lines.map(|line| json!({"level": "note", "message": {"text": line}})).collect()
}

struct Maker<'a> {
    stacks: &'a Stacks,
    uris: Uris<'a>,
    rules: &'a [Rule],
    fingerprints: Fingerprints,
}

impl Maker<'_> {
    fn result(&mut self, found: &Found<'_>) -> Value {
        let ids: Vec<StackId> = found.stacks.iter().map(|(_, stack)| *stack).collect();
        let print = self.fingerprints.of(found.rule.id(), self.stacks, &ids);
        let mut text = match found.rule {
            Rule::Growth => format!("What is allocated here {}", found.text),
            _ => found.text.clone(),
        };
        text.extend(found.root.iter().map(|root| format!(". What leads to one begins in {root}")));
        let moments = found.stacks.iter().take(found.error.map_or(0, |error| error.moments.len()));
        let looks = moments.filter_map(|(title, at)| Some((title, self.look(*at)?)));
        let related = looks
            .enumerate()
            .map(|(before, (title, call))| self.location(&call, Some(before + 1), Some(title)));
        let shown = found.stacks.iter().filter_map(|(title, at)| self.stack(title, *at));
        let look = self.look(found.stack);
        known(json!({
            "ruleId": found.rule.id(),
            "ruleIndex": self.rules.iter().position(|other| *other == found.rule),
            "level": found.rule.level(),
            "message": {"text": text},
            "locations": Vec::from_iter(look.map(|call| self.location(&call, None, None))),
            "stacks": some(shown.collect()),
            "relatedLocations": some(related.collect()),
            "codeFlows": found.error.and_then(|error| self.flow(error)).map(|flow| [flow]),
            "partialFingerprints": {FINGERPRINT: print},
            "occurrenceCount": found.times.max(1),
        }))
    }

    /// Returns the moments by time, one flow for each thread.
    fn flow(&self, error: &Error) -> Option<Value> {
        let mut by_time: Vec<_> = error.moments.iter().collect();
        by_time.sort_by_key(|happened| (happened.moment.sequence, happened.moment.ns));
        let mut flows: Vec<(u32, Vec<Value>)> = Vec::new();
        for (order, happened) in (1..).zip(by_time) {
            let Some(call) = self.look(happened.stack) else { continue };
            let title = sentences::moment(&error.finding, happened);
            let location = self.location(&call, None, Some(&title));
            let step = json!({"location": location, "executionOrder": order});
            let thread = happened.moment.thread;
            match flows.iter_mut().find(|flow| flow.0 == thread) {
                Some(flow) => flow.1.push(step),
                None => flows.push((thread, vec![step])),
            }
        }
        let flows = flows.into_iter().map(
            |(thread, locations)| json!({"id": format!("thread {thread}"), "locations": locations}),
        );
        some(flows.collect()).map(|flows| json!({"threadFlows": flows}))
    }

    fn look(&self, stack: StackId) -> Option<Call<'_>> {
        let own = calls(self.stacks, stack)
            .find(|call| call.line().is_some_and(|(source, _)| self.uris.is_inside(source)));
        let placed = || calls(self.stacks, stack).find(|call| call.frame.place.is_some());
        own.or_else(|| first_look(self.stacks, stack)).or_else(placed)
    }

    fn location(&self, call: &Call<'_>, id: Option<usize>, title: Option<&str>) -> Value {
        let artifact = match (call.source(), &call.frame.place) {
            (Some(source), _) => Some(self.uris.artifact(source.as_bytes())),
            (None, Some(place)) => Some(self.uris.artifact(&place.path)),
            (None, None) => None,
        };
        // Addresses in the process differ from run to run; the offset in the file does not.
        let offset = call.frame.place.as_ref().and_then(|place| i64::try_from(place.offset).ok());
        let region = call
            .line()
            .map(|(_, line)| known(json!({"startLine": line, "startColumn": call.column()})));
        let physical = artifact.map(|artifact| {
            known(json!({
                "artifactLocation": artifact,
                "region": region,
                "address": offset.map(|offset| json!({"relativeAddress": offset})),
            }))
        });
        let name: String = call.name().chars().take(MOST_LETTERS).collect();
        known(json!({
            "id": id,
            "physicalLocation": physical,
            "logicalLocations": [{"fullyQualifiedName": name, "kind": "function"}],
            "message": title.map(|title| json!({"text": title})),
        }))
    }

    fn stack(&self, title: &str, stack: StackId) -> Option<Value> {
        let frames = calls(self.stacks, stack).take(MOST_CALLS).map(|call| {
            known(json!({"location": self.location(&call, None, None), "module": call.module()}))
        });
        let frames = some(frames.collect())?;
        Some(json!({"message": {"text": title}, "frames": frames}))
    }
}
