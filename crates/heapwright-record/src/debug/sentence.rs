//! The sentence that describes a finding, and the lines above its stacks.
//!
//! The library prints the sentence on stderr when it finds the mistake, perhaps in a program that
//! dies. So this code needs no formatter and no memory. The command prints the sentence again from
//! the record.
//!
//! ```text
//! heapwright: double-free: free of a 40-byte block that was freed before
//!             `-- heading  `-- Finding::sentence
//!     freed by thread 1, 3 operations earlier:
//!     `-- Finding::title
//! ```

use core::fmt::Write;

use super::finding::{Finding, Moment, Role};
use super::numbers::{Access, Call, FindingKind, Function, Origin, Region};
use crate::escaped;

/// Takes a sentence piece by piece: a [`Formatted`], or a writer without a formatter.
pub trait Words {
    /// Takes a text.
    fn text(&mut self, text: &str);
    /// Takes a number, for decimal digits.
    fn number(&mut self, number: u64);
    /// Takes an address or a byte, for hexadecimal digits behind `0x`.
    fn address(&mut self, address: u64);
}

/// Writes a sentence to a target of formatted text, such as a `String`; ignores its errors.
pub struct Formatted<W>(pub W);

impl<W: Write> Words for Formatted<W> {
    fn text(&mut self, text: &str) {
        let _ = self.0.write_str(text);
    }

    fn number(&mut self, number: u64) {
        let _ = write!(self.0, "{number}");
    }

    fn address(&mut self, address: u64) {
        let _ = write!(self.0, "{address:#x}");
    }
}

impl Finding {
    /// Writes the event in one sentence, without a full stop.
    ///
    /// ```
    /// # use heapwright_record::debug::{Call, Finding, FindingKind, Formatted};
    /// let finding = Finding {
    ///     kind: FindingKind::DoubleFree,
    ///     call: Call::Free,
    ///     block: 0x1000,
    ///     size: 40,
    ///     ..Finding::default()
    /// };
    /// let mut line = Formatted(String::new());
    /// finding.sentence(&mut line);
    /// assert_eq!(line.0, "free of a 40-byte block that was freed before");
    /// ```
    pub fn sentence(&self, out: &mut dyn Words) {
        match self.kind {
            FindingKind::Unknown => out.text("a mistake that this version has no words for"),
            FindingKind::DoubleFree | FindingKind::ReallocAfterFree => {
                out.text(self.verb());
                out.text(" of ");
                self.a_block(out);
                out.text(" that was freed before");
            }
            FindingKind::InteriorFree => {
                out.text(self.verb());
                self.interior(out);
            }
            FindingKind::InvalidFree | FindingKind::InvalidRealloc => {
                out.text(self.verb());
                self.no_block(out);
            }
            FindingKind::SizeMismatch => {
                out.text(self.sized_verb());
                out.text(" says ");
                out.number(self.given_size);
                out.text(", allocated as ");
                out.number(self.size);
            }
            FindingKind::AlignmentMismatch => {
                out.text("alignment ");
                out.number(self.given_align);
                out.text(" given for ");
                self.a_block(out);
                out.text(" that was allocated with ");
                out.number(self.align);
            }
            FindingKind::AllocatorMismatch => {
                if self.region == Region::Block {
                    out.number(self.size);
                    out.text("-byte ");
                }
                out.text(match self.region {
                    Region::FirstClassHeap => "block of a first-class heap",
                    Region::Pool => "object of a pool",
                    Region::Collected => "object of a collected heap",
                    Region::Arena => "memory of an arena",
                    _ => match self.origin {
                        Origin::Unknown => "block of another allocator",
                        Origin::Malloc => "block of malloc",
                        Origin::Aligned => "block of aligned_alloc",
                        Origin::New | Origin::AlignedNew => "block of new",
                        Origin::NewArray | Origin::AlignedNewArray => "block of new[]",
                        Origin::Rust => "block of Rust's allocator",
                        Origin::Calloc => "block of calloc",
                        Origin::Realloc => "block of realloc",
                        Origin::PosixMemalign => "block of posix_memalign",
                        Origin::Pool if self.call == Call::PoolFree => "object of another pool",
                        Origin::Pool => "object of a pool",
                        Origin::Arena if self.call == Call::ArenaFree => "memory of another arena",
                        Origin::Arena => "memory of an arena",
                        Origin::Heap if self.call == Call::HeapFree => {
                            "block of another first-class heap"
                        }
                        Origin::Heap => "block of a first-class heap",
                    },
                });
                out.text(" given to ");
                out.text(self.verb());
            }
            FindingKind::Overflow | FindingKind::Underflow => self.accessed(out),
            FindingKind::MayOverflow => {
                out.text(self.function.word());
                out.text(" may write up to ");
                bytes(self.given_size, out);
                out.text(", ");
                bytes(self.length, out);
                out.text(" beyond the end of ");
                self.a_block(out);
            }
            FindingKind::WriteAfterFree
            | FindingKind::UseAfterFree
            | FindingKind::UseAfterPoison => self.accessed(out),
            FindingKind::Leak => {
                self.a_block(out);
                out.text(" was never freed");
            }
            FindingKind::Uninitialised => {
                out.text("what the program does depends on byte ");
                out.number(self.offset.unsigned_abs());
                out.text(" of ");
                self.a_block(out);
                out.text(", which nobody has written");
            }
        }
    }

    /// Writes the line above the stack of one of the finding's moments. `name` is the thread's
    /// name, if it has one.
    ///
    /// ```text
    /// here, thread 1:
    /// overwritten between its allocation and this free; noticed here, thread 1:
    /// overwritten after it was freed; noticed at exit, thread 1 (main):
    /// freed by thread 2, 3 operations earlier:
    /// allocated by thread 1, 17 operations earlier (no stack was kept)
    /// ```
    pub fn title(&self, role: Role, name: &str, out: &mut dyn Words) {
        let moment = match role {
            Role::Here => {
                if self.is_found_later() {
                    self.overwritten(out);
                }
                out.text(match self.call {
                    Call::Sweep => "noticed in a sweep",
                    Call::Exit => "noticed at exit",
                    Call::Retire => "noticed before its memory was used again",
                    _ if self.is_found_later() => "noticed here",
                    _ => "here",
                });
                thread(&self.here, ", thread ", name, out);
                self.here
            }
            Role::Freed => {
                out.text("freed");
                thread(&self.freed, " by thread ", name, out);
                self.earlier(&self.freed, out);
                self.freed
            }
            Role::Allocated => {
                out.text("allocated");
                thread(&self.allocated, " by thread ", name, out);
                self.earlier(&self.allocated, out);
                self.allocated
            }
        };
        out.text(if moment.stack == 0 { " (no stack was kept)" } else { ":" });
    }

    /// Returns whether only the traces of a write were seen.
    #[must_use]
    pub fn is_found_later(&self) -> bool {
        !self.is_access()
            && matches!(
                self.kind,
                FindingKind::Overflow | FindingKind::Underflow | FindingKind::WriteAfterFree
            )
    }

    /// Writes "overwritten between its allocation and this free; ".
    fn overwritten(&self, out: &mut dyn Words) {
        let was_freed = self.kind == FindingKind::WriteAfterFree;
        if matches!(self.call, Call::Sweep | Call::Exit | Call::Retire) {
            out.text(if was_freed {
                "overwritten after it was freed; "
            } else {
                "overwritten after its allocation; "
            });
            return;
        }
        out.text("overwritten between its ");
        out.text(if was_freed { "free and this " } else { "allocation and this " });
        out.text(self.verb());
        out.text("; ");
    }

    fn earlier(&self, moment: &Moment, out: &mut dyn Words) {
        // Threads take their numbers many at a time, so two threads' numbers cannot be compared.
        if moment.sequence != 0
            && moment.thread == self.here.thread
            && let Some(count @ 1..) = self.here.sequence.checked_sub(moment.sequence)
        {
            out.text(", ");
            out.number(count);
            out.text(if count == 1 { " operation earlier" } else { " operations earlier" });
        }
    }

    fn verb(&self) -> &'static str {
        match self.call {
            Call::Unknown | Call::Access | Call::Sweep | Call::Exit | Call::Retire => {
                match self.kind {
                    FindingKind::InvalidRealloc | FindingKind::ReallocAfterFree => "realloc",
                    _ => "free",
                }
            }
            call => call.word(),
        }
    }

    /// Returns the name of the call, which had a size.
    fn sized_verb(&self) -> &'static str {
        match self.call {
            Call::Delete => "sized delete",
            Call::DeleteArray => "sized delete[]",
            Call::Free => "sized free",
            _ => self.verb(),
        }
    }

    /// Writes "a 40-byte block".
    fn a_block(&self, out: &mut dyn Words) {
        if self.block == 0 {
            out.text("a block");
            return;
        }
        out.text(if begins_with_a_vowel(self.size) { "an " } else { "a " });
        out.number(self.size);
        out.text("-byte block");
    }

    /// Writes " of a pointer 12 bytes into a 96-byte block".
    fn interior(&self, out: &mut dyn Words) {
        out.text(" of a pointer ");
        let distance = match u64::try_from(self.offset) {
            Err(_) => {
                bytes(self.offset.unsigned_abs(), out);
                " before "
            }
            Ok(offset) if offset < self.size => {
                bytes(offset, out);
                " into "
            }
            Ok(offset) if offset == self.size => "to the end of ",
            Ok(offset) => {
                bytes(offset.saturating_sub(self.size), out);
                " past the end of "
            }
        };
        out.text(distance);
        self.a_block(out);
        if !self.freed.is_unknown() {
            out.text(" that was freed before");
        }
    }

    fn no_block(&self, out: &mut dyn Words) {
        if self.region == Region::Block && self.block != 0 {
            return self.interior(out);
        }
        out.text(match self.region {
            Region::Stack => " of a pointer to the stack",
            Region::Globals => " of a pointer to the program's or a library's data",
            Region::Code => " of a pointer to code",
            Region::OtherHeap => " of a pointer into the C library's heap, not heapwright's",
            Region::FirstClassHeap => " of a block of a first-class heap",
            Region::Pool => " of a pool's object",
            Region::Collected => " of a collected heap's object",
            Region::Arena => " of memory of an arena",
            _ => " of a pointer that malloc did not return",
        });
        out.text(match self.region {
            Region::Block => ": it lies between blocks",
            Region::Nothing => ": there is no block",
            Region::Mapping => ": it leads to memory that the program mapped",
            Region::Metadata => ": it leads to heapwright's own records",
            _ => "",
        });
    }

    /// Writes "write of 0x41 at offset 40 of a 40-byte block, in a span of 3 bytes".
    fn accessed(&self, out: &mut dyn Words) {
        let found_later = !self.is_access();
        out.text(match self.access {
            _ if found_later => "write",
            Access::Write => "write",
            Access::Read => "read",
            Access::Unknown => "access",
        });
        if found_later {
            out.text(" of ");
            out.address(u64::from(self.value));
        }
        out.text(if self.offset < 0 { " at offset -" } else { " at offset " });
        out.number(self.offset.unsigned_abs());
        out.text(" of ");
        self.a_block(out);
        if matches!(self.kind, FindingKind::WriteAfterFree | FindingKind::UseAfterFree) {
            out.text(" after it was freed");
        }
        if self.kind == FindingKind::UseAfterPoison {
            out.text(", which the program has poisoned there");
        }
        if found_later && self.length > 1 {
            out.text(", in a span of ");
            bytes(self.length, out);
        }
        if self.function != Function::Unknown {
            out.text(", by ");
            out.text(self.function.word());
            out.text(" of ");
            bytes(self.given_size, out);
        }
    }
}

fn bytes(count: u64, out: &mut dyn Words) {
    out.number(count);
    out.text(if count == 1 { " byte" } else { " bytes" });
}

/// Writes ", thread 2 (worker)" if the thread is known.
fn thread(moment: &Moment, before: &str, name: &str, out: &mut dyn Words) {
    if moment.thread == 0 {
        return;
    }
    out.text(before);
    out.number(u64::from(moment.thread));
    if !name.is_empty() {
        out.text(" (");
        escaped(name.as_bytes(), |piece| out.text(piece));
        out.text(")");
    }
}

/// Returns whether a number's word begins with a vowel: eight, eleven, eighty thousand, ...
fn begins_with_a_vowel(number: u64) -> bool {
    let mut group = number;
    while group >= 1000 {
        group /= 1000;
    }
    matches!(group, 8 | 11 | 18 | 80..=89 | 800..=899)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::String;

    fn said(finding: &Finding) -> String {
        let mut line = Formatted(String::new());
        finding.sentence(&mut line);
        line.0
    }

    fn on(kind: FindingKind, call: Call, size: u64) -> Finding {
        Finding {
            kind,
            call,
            origin: Origin::Malloc,
            region: Region::Block,
            access: Access::Write,
            value: 0x41,
            pointer: 0x1000,
            block: 0x1000,
            size,
            align: 16,
            length: 1,
            given_size: 24,
            given_align: 64,
            ..Finding::default()
        }
    }

    #[test]
    fn frees_are_reported() {
        use FindingKind::*;
        let double = on(DoubleFree, Call::Free, 40);
        assert_eq!(said(&double), "free of a 40-byte block that was freed before");
        let call = Call::DeleteArray;
        assert_eq!(
            said(&Finding { call, ..double }),
            "delete[] of a 40-byte block that was freed before"
        );
        assert_eq!(
            said(&on(ReallocAfterFree, Call::Realloc, 8)),
            "realloc of an 8-byte block that was freed before"
        );
        assert_eq!(said(&Finding { block: 0, ..double }), "free of a block that was freed before");
        let wrong = on(AllocatorMismatch, Call::Free, 40);
        for (origin, region, call, words) in [
            (Origin::NewArray, Region::Block, Call::Free, "40-byte block of new[] given to free"),
            (Origin::New, Region::Block, Call::Free, "40-byte block of new given to free"),
            (
                Origin::Malloc,
                Region::Block,
                Call::Delete,
                "40-byte block of malloc given to delete",
            ),
            (
                Origin::New,
                Region::Block,
                Call::DeleteArray,
                "40-byte block of new given to delete[]",
            ),
            (
                Origin::Aligned,
                Region::Block,
                Call::Realloc,
                "40-byte block of aligned_alloc given to realloc",
            ),
            (
                Origin::Rust,
                Region::Block,
                Call::Free,
                "40-byte block of Rust's allocator given to free",
            ),
            (
                Origin::Malloc,
                Region::Block,
                Call::RustDealloc,
                "40-byte block of malloc given to dealloc",
            ),
            (
                Origin::Unknown,
                Region::FirstClassHeap,
                Call::Free,
                "block of a first-class heap given to free",
            ),
            (Origin::Unknown, Region::Pool, Call::Free, "object of a pool given to free"),
            (
                Origin::Malloc,
                Region::Block,
                Call::HeapFree,
                "40-byte block of malloc given to hw_heap_free",
            ),
        ] {
            assert_eq!(said(&Finding { origin, region, call, ..wrong }), words);
        }
        let size = on(SizeMismatch, Call::Delete, 32);
        for (call, words) in [
            (Call::Delete, "sized delete says 24, allocated as 32"),
            (Call::DeleteArray, "sized delete[] says 24, allocated as 32"),
            (Call::FreeSized, "free_sized says 24, allocated as 32"),
            (Call::RustDealloc, "dealloc says 24, allocated as 32"),
        ] {
            assert_eq!(said(&Finding { call, ..size }), words);
        }
        assert_eq!(
            said(&on(AlignmentMismatch, Call::Delete, 32)),
            "alignment 64 given for a 32-byte block that was allocated with 16"
        );
    }

    #[test]
    fn pointers_that_are_no_blocks_are_reported() {
        use FindingKind::*;
        let interior = on(InteriorFree, Call::Free, 96);
        for (offset, words) in [
            (12, "free of a pointer 12 bytes into a 96-byte block"),
            (1, "free of a pointer 1 byte into a 96-byte block"),
            (96, "free of a pointer to the end of a 96-byte block"),
            (100, "free of a pointer 4 bytes past the end of a 96-byte block"),
            (-8, "free of a pointer 8 bytes before a 96-byte block"),
        ] {
            assert_eq!(said(&Finding { offset, ..interior }), words);
        }
        let freed = Moment { thread: 1, ..Moment::default() };
        assert_eq!(
            said(&Finding { offset: 12, freed, ..interior }),
            "free of a pointer 12 bytes into a 96-byte block that was freed before"
        );
        let invalid = Finding { block: 0, ..on(InvalidFree, Call::Free, 0) };
        for (region, words) in [
            (Region::Stack, "free of a pointer to the stack"),
            (Region::Globals, "free of a pointer to the program's or a library's data"),
            (Region::Code, "free of a pointer to code"),
            (Region::OtherHeap, "free of a pointer into the C library's heap, not heapwright's"),
            (Region::FirstClassHeap, "free of a block of a first-class heap"),
            (Region::Pool, "free of a pool's object"),
            (Region::Collected, "free of a collected heap's object"),
            (Region::Arena, "free of memory of an arena"),
            (Region::Unknown, "free of a pointer that malloc did not return"),
            (Region::Nothing, "free of a pointer that malloc did not return: there is no block"),
            (Region::Block, "free of a pointer that malloc did not return: it lies between blocks"),
        ] {
            assert_eq!(said(&Finding { region, ..invalid }), words);
            let again = Finding { kind: InvalidRealloc, call: Call::Realloc, region, ..invalid };
            assert_eq!(said(&again), words.replacen("free", "realloc", 1));
        }
        let inside = Finding { offset: 12, ..on(InvalidRealloc, Call::Realloc, 96) };
        assert_eq!(said(&inside), "realloc of a pointer 12 bytes into a 96-byte block");
    }

    #[test]
    fn accesses_are_reported() {
        use FindingKind::*;
        let over = Finding { offset: 40, ..on(Overflow, Call::Free, 40) };
        assert_eq!(said(&over), "write of 0x41 at offset 40 of a 40-byte block");
        assert_eq!(
            said(&Finding { length: 3, ..over }),
            "write of 0x41 at offset 40 of a 40-byte block, in a span of 3 bytes"
        );
        let caught = Finding { call: Call::Access, ..over };
        for (access, words) in [
            (Access::Read, "read at offset 40 of a 40-byte block"),
            (Access::Write, "write at offset 40 of a 40-byte block"),
            (Access::Unknown, "access at offset 40 of a 40-byte block"),
        ] {
            assert_eq!(said(&Finding { access, ..caught }), words);
        }
        assert_eq!(
            said(&Finding { offset: -4, ..on(Underflow, Call::Sweep, 40) }),
            "write of 0x41 at offset -4 of a 40-byte block"
        );
        let late = Finding { offset: 8, ..on(WriteAfterFree, Call::Retire, 40) };
        assert_eq!(said(&late), "write of 0x41 at offset 8 of a 40-byte block after it was freed");
        assert_eq!(
            said(&Finding { length: 2, ..late }),
            "write of 0x41 at offset 8 of a 40-byte block after it was freed, in a span of 2 bytes"
        );
        let used =
            Finding { offset: 8, access: Access::Read, ..on(UseAfterFree, Call::Access, 40) };
        assert_eq!(said(&used), "read at offset 8 of a 40-byte block after it was freed");
        assert_eq!(said(&on(Leak, Call::Exit, 18)), "an 18-byte block was never freed");
        assert_eq!(
            said(&Finding { offset: 8, ..on(Uninitialised, Call::Unknown, 24) }),
            "what the program does depends on byte 8 of a 24-byte block, which nobody has written"
        );
        let asked = Finding { function: Function::Memcpy, call: Call::Function, ..over };
        assert_eq!(
            said(&Finding { access: Access::Read, given_size: 65, ..asked }),
            "read at offset 40 of a 40-byte block, by memcpy of 65 bytes"
        );
        let (kind, function) = (UseAfterFree, Function::Strlen);
        assert_eq!(
            said(&Finding { kind, function, access: Access::Read, given_size: 1, ..asked }),
            "read at offset 40 of a 40-byte block after it was freed, by strlen of 1 byte"
        );
        let kind = UseAfterPoison;
        assert_eq!(
            said(&Finding { kind, offset: 8, given_size: 16, ..asked }),
            "write at offset 8 of a 40-byte block, which the program has poisoned there, by memcpy of 16 bytes"
        );
    }

    #[test]
    fn every_combination_has_words() {
        let calls = if cfg!(miri) { &Call::ALL[..2] } else { Call::ALL };
        for &kind in FindingKind::ALL {
            for &call in calls {
                for &region in Region::ALL {
                    let line = said(&Finding { region, ..on(kind, call, 40) });
                    assert!(!line.contains("  ") && !line.ends_with(' '), "{line}");
                    assert!(!line.is_empty(), "{kind:?}");
                }
            }
        }
    }

    #[test]
    fn moments_have_titles() {
        let title = |finding: &Finding, role, name: &str| {
            let mut line = Formatted(String::new());
            finding.title(role, name, &mut line);
            line.0
        };
        let moment = |stack, sequence| Moment { stack, thread: 1, sequence, ns: 0 };
        let finding = Finding {
            here: moment(3, 20),
            freed: moment(2, 17),
            allocated: moment(1, 19),
            ..on(FindingKind::DoubleFree, Call::Free, 40)
        };
        assert_eq!(title(&finding, Role::Here, ""), "here, thread 1:");
        assert_eq!(title(&finding, Role::Here, "main"), "here, thread 1 (main):");
        assert_eq!(title(&finding, Role::Freed, ""), "freed by thread 1, 3 operations earlier:");
        assert_eq!(
            title(&finding, Role::Allocated, "x"),
            "allocated by thread 1 (x), 1 operation earlier:"
        );
        let unclear = Finding { freed: moment(0, 0), ..finding };
        assert_eq!(title(&unclear, Role::Freed, ""), "freed by thread 1 (no stack was kept)");
        let at_exit = Finding { call: Call::Exit, ..finding };
        assert_eq!(title(&at_exit, Role::Here, ""), "noticed at exit, thread 1:");
        let late = Finding { kind: FindingKind::Overflow, ..finding };
        assert_eq!(
            title(&late, Role::Here, ""),
            "overwritten between its allocation and this free; noticed here, thread 1:"
        );
        assert_eq!(
            title(&Finding { call: Call::Access, ..late }, Role::Here, ""),
            "here, thread 1:"
        );
        let late = Finding { kind: FindingKind::WriteAfterFree, call: Call::Exit, ..finding };
        assert_eq!(
            title(&late, Role::Here, ""),
            "overwritten after it was freed; noticed at exit, thread 1:"
        );
        let nobody = Finding { here: Moment::default(), call: Call::Sweep, ..finding };
        assert_eq!(title(&nobody, Role::Here, ""), "noticed in a sweep (no stack was kept)");
        assert_eq!(title(&nobody, Role::Freed, ""), "freed by thread 1:");
    }

    #[test]
    fn articles_fit() {
        for number in [8, 11, 18, 80, 89, 800, 8000, 11_000, 18_432, 80_000, 8_388_608, 11_534_336]
        {
            assert!(begins_with_a_vowel(number), "{number}");
        }
        for number in [0, 1, 10, 12, 40, 100, 110, 118, 180, 1100, 1800, 1_100_000, u64::MAX - 1] {
            let expected = number == u64::MAX - 1; // eighteen quintillion
            assert_eq!(begins_with_a_vowel(number), expected, "{number}");
        }
    }
}
