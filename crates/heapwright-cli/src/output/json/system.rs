//! The doctor's answer about a whole machine, as one JSON object.
//!
//! ```text
//! format     1
//! programs   on PATH, without scripts
//! reached    of these
//! kinds      [{code, count, examples, text}]
//! preload    [{code, wrong, text}]     of /etc/ld.so.preload
//! ```

use super::{list, object};
use crate::inspect::Verdict;
use crate::inspect::system::System;

/// The object, as text.
pub(crate) fn answer(system: &System) -> String {
    super::formatted(object! {
        programs: system.programs,
        reached: system.reached,
        kinds: list(system.kinds.iter().map(|kind| object! {
            code: kind.code,
            count: kind.count,
            examples: &kind.examples,
            text: kind.text,
        })),
        preload: list(system.preload.iter().map(|finding| object! {
            code: finding.code,
            wrong: finding.verdict == Verdict::No,
            text: &finding.text,
        })),
    })
}
