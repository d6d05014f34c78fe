//! A run of a program and its memory, as one JSON object.
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
//!                  name: string, the kernel's name of the process (before 0.2:
//!                  two numbers, name_low and name_high); and
//!                  sizes: [{up_to: bytes|null, count}], empty ones left out
//! no_stats_because string|null
//! other_processes  [stats]    of other processes, by pid
//! problems         [string]   unreadable files of other processes
//! ```

use super::{list, object};
use crate::output::Run;
use crate::process::End;
use heapwright_record::{SIZE_BUCKETS, Stats};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// Returns the object, as text.
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

/// The fields take their names from the struct, so that a new field there appears here.
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
        // The largest size in a row; null in the last row, for all greater sizes.
        let up_to = |bucket| (bucket + 1 < SIZE_BUCKETS).then(|| 1_u64 << bucket);
        let sizes = (0..SIZE_BUCKETS).map(|bucket| (bucket, self.0.sizes[bucket]));
        let sizes = sizes.filter(|(_, count)| *count != 0);
        let sizes =
            list(sizes.map(|(bucket, count)| object! { up_to: up_to(bucket), count: count }));
        map.serialize_entry("sizes", &sizes)?;
        map.end()
    }
}
