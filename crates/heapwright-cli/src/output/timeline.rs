//! Time lines in Chrome's trace format, which <https://ui.perfetto.dev> and `chrome://tracing`
//! draw, and scripts can read.
//!
//! ```text
//! {"displayTimeUnit": "ms", "traceEvents": [
//!   process_name                                       a process
//!   X   to safepoint, pause, mark, roots, weak, move   on their thread; a pause has its phases
//!   b e collection, with trace and sweep within        on tracks of their own, while threads run
//!   C   live, allocated                                bytes, of each heap
//!   i   large object                                   allocated, dead
//! ]}
//! ```
//!
//! Times are microseconds since the first event, with fractions to the nanosecond. A span without
//! an end ends with the record.

use crate::heap::timeline::Timeline;
use crate::output::json::write_compact;
use heapwright_record::timeline::{COMPACTS, Event, MINOR, span};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};

/// Writes time lines to a file, and replaces its contents.
pub(crate) fn save_chrome(all: &[Timeline], file: File) -> io::Result<()> {
    let mut out = BufWriter::new(super::emptied(file)?);
    chrome(all, &mut out)?;
    out.flush()
}

pub(crate) fn chrome(all: &[Timeline], out: &mut dyn Write) -> io::Result<()> {
    let begin = all.iter().flat_map(|of| &of.events).map(began).min().unwrap_or_default();
    let mut writer = Writer { out, begin, any: false };
    writer.out.write_all(b"{\"displayTimeUnit\": \"ms\", \"traceEvents\": [")?;
    for timeline in all {
        writer.process(timeline)?;
    }
    writer.out.write_all(b"\n]}\n")
}

/// Returns the start of an event's span. A stop begins with the request to stop.
fn began(event: &Event) -> u64 {
    if event.span == span::PAUSE && !event.ends {
        event.time.saturating_sub(event.ns)
    } else {
        event.time
    }
}

fn kind(flags: u32) -> &'static str {
    match (flags & MINOR != 0, flags & COMPACTS != 0) {
        (true, _) => "minor",
        (false, true) => "compacting",
        (false, false) => "major",
    }
}

fn name(of: &Event) -> String {
    match of.span {
        span::PAUSE => format!("{} pause", kind(of.flags)),
        span::COLLECTION => format!("{} collection", kind(of.flags)),
        other => span::word(other).to_owned(),
    }
}

struct Writer<'a> {
    out: &'a mut dyn Write,
    begin: u64,
    any: bool,
}

impl Writer<'_> {
    fn put(&mut self, event: &Value) -> io::Result<()> {
        self.out.write_all(if self.any { b",\n" } else { b"\n" })?;
        self.any = true;
        write_compact(self.out, event)?;
        Ok(())
    }

    fn at(&self, time: u64) -> f64 {
        time.saturating_sub(self.begin) as f64 / 1e3
    }

    fn process(&mut self, timeline: &Timeline) -> io::Result<()> {
        let pid = timeline.pid;
        self.put(&json!({
            "ph": "M", "name": "process_name", "pid": pid, "tid": pid, "args": {"name": timeline.name},
        }))?;
        // Spans that have not ended, by heap and thread; those of collections by heap alone.
        let mut open: HashMap<(u32, u32), Vec<Event>> = HashMap::new();
        let mut collections: HashMap<(u32, u16), Event> = HashMap::new();
        for event in &timeline.events {
            match (event.span, event.ends) {
                (span::COLLECTION | span::TRACE | span::SWEEP, ends) => {
                    let key = (event.heap, event.span);
                    let opened = if ends {
                        collections.remove(&key)
                    } else {
                        collections.insert(key, *event)
                    };
                    if !ends || opened.is_some() {
                        self.of_collection(pid, event, ends)?;
                    }
                }
                (span::LARGE, ends) => {
                    self.put(&json!({
                        "ph": "i", "s": "t", "name": if ends { "large object dies" } else { "large object" },
                        "cat": "large", "pid": pid, "tid": event.thread, "ts": self.at(event.time),
                        "args": {"heap": event.heap, "address": format!("{:#x}", event.object), "bytes": event.bytes},
                    }))?;
                }
                (_, false) => {
                    if event.span == span::PAUSE {
                        self.complete(pid, "to safepoint", event, began(event), event.time)?;
                    }
                    open.entry((event.heap, event.thread)).or_default().push(*event);
                }
                (_, true) => {
                    let open = open.entry((event.heap, event.thread)).or_default();
                    if let Some(at) = open.iter().rposition(|begun| begun.span == event.span) {
                        let begun = open.remove(at);
                        self.complete(pid, &name(event), event, begun.time, event.time)?;
                    }
                }
            }
        }
        let last = timeline.events.last().map_or(self.begin, |event| event.time);
        for begun in open.into_values().flatten() {
            self.complete(pid, &name(&begun), &begun, begun.time, last)?;
        }
        let mut left: Vec<Event> = collections.into_values().collect();
        left.sort_by_key(|event| (event.heap, core::cmp::Reverse(event.span)));
        for begun in left {
            self.of_collection(pid, &Event { time: last, bytes: 0, ..begun }, true)?;
        }
        Ok(())
    }

    fn complete(&mut self, pid: u32, name: &str, of: &Event, from: u64, to: u64) -> io::Result<()> {
        let mut args = json!({"heap": of.heap, "collection": of.collection});
        if of.bytes != 0 {
            args["bytes"] = of.bytes.into();
        }
        let (at, duration) = (self.at(from), (to.saturating_sub(from)) as f64 / 1e3);
        self.put(&json!({
            "ph": "X", "name": name, "cat": "pause", "pid": pid, "tid": of.thread, "ts": at, "dur": duration,
            "args": args,
        }))
    }

    /// Writes the start or the end of a collection, its marking or its sweep, and its bytes.
    fn of_collection(&mut self, pid: u32, event: &Event, ends: bool) -> io::Result<()> {
        let id = u64::from(event.heap) << 40 | event.collection;
        self.put(&json!({
            "ph": if ends { "e" } else { "b" }, "name": name(event), "cat": "collection",
            "id2": {"local": format!("{id:#x}")}, "pid": pid, "tid": event.thread, "ts": self.at(event.time),
            "args": {"heap": event.heap, "collection": event.collection},
        }))?;
        if event.span != span::COLLECTION || event.bytes == 0 {
            return Ok(());
        }
        let what = if ends { "live" } else { "allocated" };
        self.put(&json!({
            "ph": "C", "name": format!("heap {} {what}", event.heap), "pid": pid, "tid": event.thread,
            "ts": self.at(event.time), "args": {"bytes": event.bytes},
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(span: u16, ends: bool, time: u64) -> Event {
        Event { span, ends, time, thread: 4, heap: 1, collection: 2, ..Event::default() }
    }

    fn drawn(events: Vec<Event>) -> Vec<Value> {
        let mut out = Vec::new();
        let timeline = Timeline { pid: 42, name: "a \"program\"".to_owned(), events };
        chrome(&[timeline], &mut out).expect("written");
        let all: Value = serde_json::from_slice(&out).expect("is JSON");
        assert_eq!(all["traceEvents"][0]["args"]["name"], "a \"program\"");
        all["traceEvents"].as_array().expect("is a list")[1..].to_vec()
    }

    #[test]
    fn a_pause_has_its_phases_and_its_wait_before_it() {
        let all = drawn(vec![
            Event { ns: 2_500, ..event(span::PAUSE, false, 12_500) },
            event(span::MARK, false, 13_000),
            event(span::ROOTS, false, 14_000),
            event(span::ROOTS, true, 15_000),
            event(span::MARK, true, 17_001),
            Event { flags: MINOR, ..event(span::PAUSE, true, 20_000) },
        ]);
        let spans: Vec<_> = all
            .iter()
            .map(|of| (of["name"].as_str().unwrap(), of["ts"].as_f64(), of["dur"].as_f64()))
            .collect();
        assert_eq!(
            spans,
            [
                ("to safepoint", Some(0.0), Some(2.5)),
                ("roots", Some(4.0), Some(1.0)),
                ("mark", Some(3.0), Some(4.001)),
                ("minor pause", Some(2.5), Some(7.5)),
            ]
        );
    }

    #[test]
    fn a_collection_is_a_track_of_its_own_and_what_has_not_ended_ends_with_the_record() {
        let all = drawn(vec![
            Event { bytes: 100, ..event(span::COLLECTION, false, 1000) },
            event(span::TRACE, false, 1000),
            event(span::PAUSE, false, 1500),
            event(span::TRACE, true, 2000),
            event(span::SWEEP, false, 2000),
            Event { object: 16, bytes: 9, ..event(span::LARGE, true, 3000) },
            Event { heap: 7, ..event(span::COLLECTION, true, 3500) },
        ]);
        let kinds: Vec<_> = all.iter().map(|of| of["ph"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["b", "C", "b", "X", "e", "b", "i", "X", "e", "e"]);
        let ends: Vec<_> = all[8..].iter().map(|of| (&of["name"], of["ts"].as_f64())).collect();
        assert_eq!(ends, [(&json!("sweep"), Some(2.5)), (&json!("major collection"), Some(2.5))]);
        assert_eq!(all[0]["id2"], all[9]["id2"]);
    }
}
