//! A stack as people read it: one call after the other, innermost first.
//!
//! ```text
//! frame 0x5510de  [push, main]      ->   push   inlined, a.h:12
//! frame 0x7f0099  [] in libfoo.so        main   a.c:20
//! frame 0x99      []                     libfoo.so+0x99
//!                                        0x99
//! ```
//!
//! A function that was compiled into another one is a call like any other. One that
//! has no name is called by the file that it is in, and the place there.

use super::words::printable;
use crate::report::model::{StackId, Stacks};
use crate::symbols::plumbing::is_plumbing;
use crate::symbols::{Frame, Function};
use heapwright_record::debug::Text;

/// One call of a stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) frame: &'a Frame,
    pub(super) function: Option<&'a Function>,
    /// It has no frame of its own: it was compiled into the next one.
    pub(super) inlined: bool,
}

/// The calls of a stack, innermost first.
pub(super) fn calls(stacks: &Stacks, stack: StackId) -> impl DoubleEndedIterator<Item = Call<'_>> {
    stacks.frames(stack).flat_map(of_frame)
}

/// The calls of a frame, innermost first: one at least.
pub(super) fn of_frame(frame: &Frame) -> impl DoubleEndedIterator<Item = Call<'_>> {
    let last = frame.functions.len().saturating_sub(1);
    (0..=last).map(move |at| Call { frame, function: frame.functions.get(at), inlined: at < last })
}

/// The call that a person would look at first: the innermost one with a source that is
/// the person's own, if any is, and not of a compiler, a system or a package.
pub(super) fn first_look(stacks: &Stacks, stack: StackId) -> Option<Call<'_>> {
    let known = || calls(stacks, stack).filter(|call| call.line().is_some());
    let is_theirs = |call: &Call<'_>| call.is_own() && !call.function.is_some_and(is_plumbing);
    known().find(is_theirs).or_else(|| known().next())
}

/// The same, and without sources the first call that has a name and is not the allocator's. None where no stack was kept.
pub(super) fn look_at(stacks: &Stacks, stack: StackId) -> Option<Call<'_>> {
    let calls = || calls(stacks, stack);
    let named = || calls().filter(|call| call.function.is_some());
    first_look(stacks, stack)
        .or_else(|| named().nth(1))
        .or_else(|| calls().nth(1))
        .or_else(|| calls().next())
}

impl<'a> Call<'a> {
    /// The function, or where it is, fit for a screen.
    pub(super) fn name(&self) -> String {
        if let Some(name) = self.function.and_then(|function| function.name.as_deref()) {
            return printable(Text::from(name));
        }
        match &self.frame.place {
            Some(place) => format!("{}+{:#x}", self.module().unwrap_or_default(), place.offset),
            None => format!("{:#x}", self.frame.address),
        }
    }

    /// The last part of the name of the file that the code is in.
    pub(super) fn module(&self) -> Option<String> {
        let path = &self.frame.place.as_ref()?.path;
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        Some(printable(Text::from(name)))
    }

    /// The source, as the compiler names it.
    pub(super) fn source(&self) -> Option<&'a str> {
        self.function?.source.as_deref().filter(|source| !source.is_empty())
    }

    /// The source and the line in it, where both are known. No source has a line 0.
    pub(super) fn line(&self) -> Option<(&'a str, u32)> {
        Some((self.source()?, self.function?.line.filter(|line| *line != 0)?))
    }

    /// Where in the line, where that is known.
    pub(super) fn column(&self) -> Option<u32> {
        self.line().and(self.function?.column).filter(|column| *column != 0)
    }

    /// `src/main.c:12`, fit for a screen; empty where it is not known.
    pub(super) fn place(&self) -> String {
        let Some(source) = self.source() else { return String::new() };
        let source = printable(Text::from(source));
        match self.line() {
            Some((_, line)) => format!("{source}:{line}"),
            None => source,
        }
    }

    /// Whether it seems to be of the program, and not of what it was given to stand on.
    pub(super) fn is_own(&self) -> bool {
        const STARTS: [&str; 4] = ["/rustc/", "/rust/deps/", "/usr/", "/build/"];
        const PARTS: [&str; 2] = ["/.cargo/registry/", "/.rustup/"];
        self.source().is_some_and(|source| {
            !STARTS.iter().any(|start| source.starts_with(start))
                && !PARTS.iter().any(|part| source.contains(part))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample;

    #[test]
    fn inlined_functions_are_calls() {
        let report = sample::report();
        let names: Vec<_> = calls(&report.stacks, sample::CACHE)
            .map(|call| (call.name(), call.inlined, call.place()))
            .collect();
        let expected = [
            ("operator new(unsigned long)", false, ""),
            ("std::vector<Entry>::push_back", true, "/usr/include/c++/12/bits/stl_vector.h:1281"),
            ("Cache::insert(Key<std::string>)", false, "/home/ada/shop/src/cache.cc:88"),
            ("main", false, "/home/ada/shop/src/main.cc:41"),
            ("libc.so.6+0x2724a", false, ""),
            ("0x99", false, ""),
        ];
        let expected = expected.map(|(name, inlined, place)| (name.into(), inlined, place.into()));
        assert_eq!(names, expected);
    }

    #[test]
    fn the_first_look_is_at_ones_own_source() {
        let report = sample::report();
        let place = |stack| first_look(&report.stacks, stack).map(|call| call.place());
        assert_eq!(place(sample::CACHE).as_deref(), Some("/home/ada/shop/src/cache.cc:88"));
        assert_eq!(place(sample::RUST).as_deref(), Some("/home/ada/shop/index/src/lib.rs:7"));
        assert_eq!(place(sample::BARE), None);
        assert_eq!(place(StackId::NONE), None);
    }
}
