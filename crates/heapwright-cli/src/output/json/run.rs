//! What a program's memory did, as one JSON object.
//!
//! ```text
//! format           1
//! command          [string]   the program and its arguments
//! pid              number
//! exit             {code: number|null, signal: number|null, core_dumped: bool}
//! wall_seconds, user_seconds, system_seconds          numbers
//! minor_faults, major_faults                          numbers
//! max_rss_bytes    number     the kernel's count, over all processes waited for
//! stats            object|null: every figure of `heapwright_record::Stats` under its name;
//!                  name: string, the process's, as the kernel has it (before 0.2 it was
//!                  two numbers, name_low and name_high); and
//!                  sizes: [{up_to: bytes|null, count}], empty ones left out
//! no_stats_because string|null
//! other_processes  [stats]    of other processes, by pid
//! problems         [string]   files of theirs that could not be read
//! ```

use super::{list, object};
use crate::output::Run;
use crate::process::End;
use heapwright_record::{SIZE_BUCKETS, Stats};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The object, as text.
pub(crate) fn report(run: &Run) -> String {
    let (code, signal, core_dumped) = match run.outcome.end {
        End::Code(code) => (Some(code), None, false),
        End::Signal { number, core_dumped } => (None, Some(number), core_dumped),
    };
    let usage = run.outcome.usage;
    super::formatted(object! {
        command: list(run.command.iter().map(|word| word.to_string_lossy())),
        pid: run.outcome.pid,
        exit: object! { code: code, signal: signal, core_dumped: core_dumped },
        wall_seconds: run.outcome.wall.as_secs_f64(),
        user_seconds: usage.user.as_secs_f64(),
        system_seconds: usage.system.as_secs_f64(),
        minor_faults: usage.minor_faults,
        major_faults: usage.major_faults,
        max_rss_bytes: usage.max_rss,
        stats: run.stats.as_deref().ok().map(Process),
        no_stats_because: run.stats.as_ref().err(),
        other_processes: list(run.others.iter().map(Process)),
        problems: &run.unreadable,
    })
}

/// Named by the struct itself, so that a field added there appears here.
pub(super) struct Process<'a>(pub(super) &'a Stats);

impl Serialize for Process<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.0.fields() {
            map.serialize_entry(name, &value)?;
        }
        let name = self.0.name();
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        map.serialize_entry("name", &String::from_utf8_lossy(name))?;
        // The largest size in a row; null in the row of all greater ones.
        let up_to = |bucket| (bucket + 1 < SIZE_BUCKETS).then(|| 1_u64 << bucket);
        let sizes = (0..SIZE_BUCKETS).map(|bucket| (bucket, self.0.sizes[bucket]));
        let sizes = sizes.filter(|(_, count)| *count != 0);
        let sizes =
            list(sizes.map(|(bucket, count)| object! { up_to: up_to(bucket), count: count }));
        map.serialize_entry("sizes", &sizes)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::text::run::tests::example;
    use serde_json::{Value, json};

    #[test]
    fn every_figure_is_there_under_its_name() {
        let mut run = example();
        let some = run.stats.as_mut().expect("has some");
        some.sizes[SIZE_BUCKETS - 1] = 1;
        some.set_name(*b"python3\0\0\0\0\0\0\0\0\0");
        let text = report(&run);
        assert!(text.starts_with("{\n  \"format\": 1,\n  \"command\": [\n"), "{text}");
        let object: Value = serde_json::from_str(&text).expect("is JSON");
        assert_eq!(object["command"], json!(["python3", "x.py"]));
        assert_eq!(object["exit"], json!({"code": 0, "signal": null, "core_dumped": false}));
        assert_eq!(object["wall_seconds"], json!(1.234));
        assert_eq!(object["max_rss_bytes"], json!(24 << 20));
        assert_eq!(object["no_stats_because"], Value::Null);
        let stats = object["stats"].as_object().expect("is an object");
        for (name, value) in run.stats.as_ref().expect("has some").fields() {
            assert_eq!(stats[name], json!(value), "{name}");
        }
        assert_eq!(stats["name"], json!("python3"));
        assert!(!stats.keys().any(|name| name.starts_with("name_")), "{stats:?}");
        assert_eq!(
            stats["sizes"],
            json!([
                {"up_to": 1, "count": 50},
                {"up_to": 8, "count": 50},
                {"up_to": 32, "count": 600_000},
                {"up_to": 64, "count": 400_000},
                {"up_to": null, "count": 1},
            ])
        );
    }

    #[test]
    fn what_is_missing_is_null_with_a_reason() {
        let mut run = example();
        run.outcome.end = End::Signal { number: 11, core_dumped: true };
        run.stats = Err(String::from("because"));
        let object: Value = serde_json::from_str(&report(&run)).expect("is JSON");
        assert_eq!(object["exit"], json!({"code": null, "signal": 11, "core_dumped": true}));
        assert_eq!(object["stats"], Value::Null);
        assert_eq!(object["no_stats_because"], json!("because"));
    }
}
