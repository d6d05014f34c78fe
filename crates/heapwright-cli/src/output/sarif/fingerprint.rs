//! Fingerprints, which identify a result in a later run.
//!
//! A fingerprint is a hash (FNV-1a, 64 bits) of the rule and of the functions' names in every
//! stack. A place without a name counts by its file. Addresses and lines change with every build,
//! and are left out; so are names that only a separate debug file has. Equal fingerprints get
//! numbers: `...:1`.

use crate::report::calls::calls;
use crate::report::model::{StackId, Stacks};
use std::collections::HashMap;

#[derive(Default)]
pub(super) struct Fingerprints(HashMap<u64, u32>);

impl Fingerprints {
    pub(super) fn of(&mut self, rule: &str, stacks: &Stacks, ids: &[StackId]) -> String {
        let mut hash = Fnv::default();
        hash.word(rule);
        for &id in ids {
            for call in calls(stacks, id) {
                let is_private = call.function.is_some_and(|function| function.is_private);
                if is_private && call.inlined {
                    continue;
                }
                let function = call.function.filter(|_| !is_private);
                match function.and_then(|function| function.name.as_deref()) {
                    Some(name) => hash.word(name),
                    None => hash.word(&call.module().unwrap_or_default()),
                }
            }
            hash.word("");
        }
        let times = self.0.entry(hash.0).or_default();
        *times += 1;
        format!("{:016x}:{times}", hash.0)
    }
}

struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Adds a word and an end mark, so that `ab` `c` and `a` `bc` differ.
    fn word(&mut self, word: &str) {
        for byte in word.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn addresses_and_lines_are_not_in_it() {
        let mut report = sample::report();
        let of = |stacks: &Stacks, rule| {
            let mut prints = Fingerprints::default();
            prints.of(rule, stacks, &[sample::CACHE, sample::SESSION])
        };
        let before = of(&report.stacks, "growth");
        for frame in &mut report.stacks.frames {
            frame.address += 0x1000;
            if let Some(place) = &mut frame.place {
                place.offset += 0x10;
            }
            for function in &mut frame.functions {
                function.line = function.line.map(|line| line + 1);
            }
        }
        assert_eq!(of(&report.stacks, "growth"), before);
        assert_ne!(of(&report.stacks, "possibly-lost"), before);
        // A machine without the separate debug file has the module alone.
        let functions = std::mem::take(&mut report.stacks.frames[3].functions);
        let without = of(&report.stacks, "growth");
        report.stacks.frames[3].functions = functions;
        for function in &mut report.stacks.frames[3].functions {
            function.is_private = true;
        }
        assert_eq!(of(&report.stacks, "growth"), without);
        report.stacks.frames[3].functions[0].is_private = false;
        report.stacks.frames[3].functions[0].name = Some("main2".into());
        assert_ne!(of(&report.stacks, "growth"), before);
    }

    #[test]
    fn equal_ones_are_numbered() {
        let report = sample::report();
        let mut prints = Fingerprints::default();
        let mut next = || prints.of("leak", &report.stacks, &[sample::BARE]);
        let (first, second) = (next(), next());
        assert_eq!(first.strip_suffix(":1"), second.strip_suffix(":2"));
    }
}
