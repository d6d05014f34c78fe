//! The kinds of findings in words, for SARIF, JUnit and HTML: a title, the meaning, and the remedy.
//!
//! A rule's name never changes, because readers of SARIF and CI systems store it.

use heapwright_record::debug::{FindingKind, Reach};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Error(FindingKind),
    Leak(Reach),
    Growth,
}

pub(super) struct About {
    /// A few words, for a heading.
    pub(super) title: &'static str,
    pub(super) means: &'static str,
    pub(super) mend: &'static str,
}

impl Rule {
    /// A lost block that was reported as an error has the rule of lost blocks.
    pub(super) fn of(kind: FindingKind) -> Self {
        match kind {
            FindingKind::Leak => Self::Leak(Reach::Definite),
            kind => Self::Error(kind),
        }
    }

    /// Returns all rules of faults and possible faults, in the order of reports.
    pub(super) fn faults() -> impl Iterator<Item = Self> {
        let errors = FindingKind::ALL.iter().filter(|kind| **kind != FindingKind::Leak);
        let leaks = [Self::Leak(Reach::Definite), Self::Leak(Reach::Possible), Self::Growth];
        errors.map(|kind| Self::Error(*kind)).chain(leaks)
    }

    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Error(kind) => kind.heading(),
            Self::Leak(reach) => reach.word(),
            Self::Growth => "growth",
        }
    }

    /// Returns the rule's level in compilers' words: `error`, `warning` or `note`.
    pub(super) fn level(self) -> &'static str {
        match self {
            Self::Error(_) | Self::Leak(Reach::Definite) => "error",
            Self::Leak(Reach::Possible) | Self::Growth => "warning",
            Self::Leak(_) => "note",
        }
    }

    pub(super) fn about(self) -> About {
        let (title, means, mend) = match self {
            Self::Error(kind) => error(kind),
            Self::Leak(reach) => leak(reach),
            Self::Growth => (
                "Memory that keeps growing",
                "The live bytes of one stack rose through most of the run. This need not be a \
                 leak: a cache without a bound, or a list that only grows, looks the same.",
                "Look at what keeps the blocks, and whether it has a bound.",
            ),
        };
        About { title, means, mend }
    }
}

type Words = (&'static str, &'static str, &'static str);

fn error(kind: FindingKind) -> Words {
    match kind {
        FindingKind::DoubleFree => (
            "Block freed twice",
            "A block was freed that had been freed before.",
            "Give the block one owner; set the pointer to null where it is freed first.",
        ),
        FindingKind::InvalidFree => (
            "Free of what is no block",
            "A pointer was freed that no allocation returned: to the stack, to data, into \
             memory of another owner, or a wild one.",
            "Free only what was allocated, by the library that allocated it.",
        ),
        FindingKind::InteriorFree => (
            "Free of a pointer into a block",
            "A pointer was freed that leads into a block and not to its start.",
            "Keep the pointer that the allocation returned, and free that one.",
        ),
        FindingKind::SizeMismatch => (
            "Freed with another size",
            "A block was freed with a size that it was not allocated with.",
            "Look for a type that changed between the two, or a base class without a virtual \
             destructor.",
        ),
        FindingKind::AlignmentMismatch => (
            "Freed with another alignment",
            "A block was freed with an alignment that it was not allocated with.",
            "Use one layout for both calls.",
        ),
        FindingKind::AllocatorMismatch => (
            "Freed by the wrong function",
            "A block was freed by a function that does not belong to the one that allocated \
             it, such as memory of new[] by free.",
            "Free what malloc made by free, new by delete, new[] by delete[], and objects of a \
             pool or heap by its own function.",
        ),
        FindingKind::Overflow => (
            "Access past the end of a block",
            "Memory past the end of a block was accessed: what lies there belongs to others.",
            "Compare the size that was asked for with the index that was used; a string needs \
             a byte for its end.",
        ),
        FindingKind::Underflow => (
            "Access before the start of a block",
            "Memory before the start of a block was accessed: what lies there belongs to others.",
            "Look for an index that became negative.",
        ),
        FindingKind::WriteAfterFree => (
            "Write to a freed block",
            "A block was found changed after it had been freed. The write happened earlier than \
             the call that found it.",
            "Look for pointers to the block that outlive it; let nothing keep one.",
        ),
        FindingKind::UseAfterFree => (
            "Use of a freed block",
            "A block was accessed after it had been freed, and the access was caught.",
            "Free the block after its last use, or let its users share its ownership.",
        ),
        FindingKind::UseAfterPoison => (
            "Use of poisoned memory",
            "Bytes of a block were accessed that the program had declared unusable, by \
             __asan_poison_memory_region or a container's annotations.",
            "Unpoison the bytes where they are handed out; look for pointers that outlive an \
             arena's reset, or an index past the size of a container.",
        ),
        FindingKind::MayOverflow => (
            "Limit beyond the end of a block",
            "A function was given a limit beyond the end of a block. It wrote less this time: \
             longer input will overwrite what lies behind the block.",
            "Pass the block's size as the limit. `--exact` reports only what was written.",
        ),
        FindingKind::InvalidRealloc => (
            "Realloc of what is no block",
            "A pointer was given to realloc that no allocation returned.",
            "Give realloc only what malloc, calloc or realloc returned.",
        ),
        FindingKind::ReallocAfterFree => (
            "Realloc of a freed block",
            "A block was given to realloc that had been freed, often by an earlier realloc \
             whose result was dropped.",
            "Use the pointer that realloc returned, and forget the one that it was given.",
        ),
        FindingKind::Uninitialised => (
            "Use of an uninitialised value",
            "The behaviour of the program depends on bytes of a block that were never written.",
            "Write the bytes before they are read, or allocate them with calloc; mind the padding \
             of structs that are written or compared whole.",
        ),
        _ => (
            "Another mistake",
            "A mistake that this version has no words for.",
            "Look at the stacks, or ask a newer version.",
        ),
    }
}

fn leak(reach: Reach) -> Words {
    match reach {
        Reach::Definite => (
            "Memory that is definitely lost",
            "Nothing in the program leads to these blocks: it cannot free them any more.",
            "Free the blocks where the last pointer to them goes away.",
        ),
        Reach::Indirect => (
            "Memory that is lost with other memory",
            "Only blocks that are lost themselves lead to these.",
            "Mend the loss of the blocks that lead to them.",
        ),
        Reach::Possible => (
            "Memory that is possibly lost",
            "No certain pointer leads to these blocks. A word points into their middle, or lies in \
             a thread that did not answer.",
            "Keep a pointer to the start of the block, or see that it is freed.",
        ),
        Reach::Reachable => (
            "Memory that is still in use",
            "The program still has pointers to these blocks. At its end that is no fault.",
            "Nothing needs to be done. If it grows from check to check, look at what keeps it.",
        ),
        _ => (
            "Memory of which nothing is known",
            "Whether anything leads to these blocks is not known.",
            "Look at the stack, or ask a newer version.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_fault_has_a_name_and_words_of_its_own() {
        let faults: Vec<Rule> = Rule::faults().collect();
        assert_eq!(faults.len(), FindingKind::ALL.len() + 2);
        let distinct = |word: fn(&Rule) -> &'static str| {
            faults.iter().map(word).collect::<HashSet<_>>().len() == faults.len()
        };
        assert!(distinct(|rule| rule.id()));
        assert!(distinct(|rule| rule.about().title));
        for rule in faults {
            let about = rule.about();
            assert!(about.means.ends_with('.') && about.mend.ends_with('.'), "{}", rule.id());
        }
    }
}
