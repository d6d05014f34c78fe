//! A stack in a form for people: one call after the other, innermost first.
//!
//! ```text
//! frame 0x5510de  [push, main]      ->   push   inlined, a.h:12
//!                                        main   a.c:20
//! frame 0x7f0099  [] in libfoo.so   ->   libfoo.so+0x99
//! frame 0x99      []                ->   0x99
//! ```
//!
//! A function without a name appears as its file and the offset in the file.

use super::model::{StackId, Stacks};
use crate::output::printable;
use crate::symbols::plumbing::is_plumbing;
use crate::symbols::{Frame, Function};
use heapwright_record::debug::Text;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) frame: &'a Frame,
    pub(crate) function: Option<&'a Function>,
    /// Whether it was inlined into the next call and has no frame of its own.
    pub(crate) inlined: bool,
}

pub(crate) fn calls(stacks: &Stacks, stack: StackId) -> impl DoubleEndedIterator<Item = Call<'_>> {
    stacks.frames(stack).flat_map(of_frame)
}

/// Returns at least one call, innermost first.
pub(crate) fn of_frame(frame: &Frame) -> impl DoubleEndedIterator<Item = Call<'_>> {
    let last = frame.functions.len().saturating_sub(1);
    (0..=last).map(move |at| Call { frame, function: frame.functions.get(at), inlined: at < last })
}

/// Returns the index of the call that a person looks at first, the same in every output. It is the
/// innermost named call of the program, else the innermost call of the program, else the innermost
/// named call. Plumbing counts for none of these. Without such a call, it is the innermost call.
fn look_number(stacks: &Stacks, stack: StackId) -> Option<usize> {
    let find = |holds: &dyn Fn(&Call<'_>) -> bool| {
        calls(stacks, stack)
            .position(|call| !call.function.is_some_and(is_plumbing) && holds(&call))
    };
    find(&|call| call.is_own() && call.has_name())
        .or_else(|| find(&|call| call.is_own()))
        .or_else(|| find(&|call| call.has_name()))
        .or_else(|| calls(stacks, stack).next().map(|_| 0))
}

/// Returns the calls outwards from the one that a person looks at first; none without a stack.
pub(crate) fn from_look(stacks: &Stacks, stack: StackId) -> impl Iterator<Item = Call<'_>> {
    calls(stacks, stack).skip(look_number(stacks, stack).unwrap_or_default())
}

pub(crate) fn look_at(stacks: &Stacks, stack: StackId) -> Option<Call<'_>> {
    from_look(stacks, stack).next()
}

/// Returns the program's first call with a line of source, outwards from that of [`look_at`], else
/// the innermost call with such a line. Calls of the system never count.
pub(crate) fn first_look(stacks: &Stacks, stack: StackId) -> Option<Call<'_>> {
    let known = |call: &Call<'_>| call.line().is_some() && !call.is_of_system();
    let is_theirs = |call: &Call<'_>| known(call) && call.is_own();
    from_look(stacks, stack).find(is_theirs).or_else(|| calls(stacks, stack).find(known))
}

impl<'a> Call<'a> {
    /// Returns a printable name.
    pub(crate) fn name(&self) -> String {
        if let Some(name) = self.function.and_then(|function| function.name.as_deref()) {
            return printable(Text::from(name));
        }
        match &self.frame.place {
            Some(place) => format!("{}+{:#x}", self.module().unwrap_or_default(), place.offset),
            None => format!("{:#x}", self.frame.address),
        }
    }

    /// Returns the last part of the file's name.
    pub(crate) fn module(&self) -> Option<String> {
        let path = &self.frame.place.as_ref()?.path;
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        Some(printable(Text::from(name)))
    }

    pub(crate) fn source(&self) -> Option<&'a str> {
        self.function?.source.as_deref().filter(|source| !source.is_empty())
    }

    /// Returns the source and the line, if both are known. No source has a line 0.
    pub(crate) fn line(&self) -> Option<(&'a str, u32)> {
        Some((self.source()?, self.function?.line.filter(|line| *line != 0)?))
    }

    pub(crate) fn column(&self) -> Option<u32> {
        self.line().and(self.function?.column).filter(|column| *column != 0)
    }

    /// Returns `src/main.c:12`, printable; empty if unknown.
    pub(crate) fn place(&self) -> String {
        let Some(source) = self.source() else { return String::new() };
        let source = printable(Text::from(source));
        match self.line() {
            Some((_, line)) => format!("{source}:{line}"),
            None => source,
        }
    }

    fn has_name(&self) -> bool {
        self.function.is_some_and(|function| function.name.is_some())
    }

    /// Returns whether the call seems to be the program's, not a library's, package's or runtime's.
    pub(crate) fn is_own(&self) -> bool {
        const STARTS: [&str; 4] = ["/rustc/", "/rust/deps/", "/usr/", "/build/"];
        const PARTS: [&str; 2] = ["/.cargo/registry/", "/.rustup/"];
        let is_foreign = |source: &str| {
            STARTS.iter().any(|start| source.starts_with(start))
                || PARTS.iter().any(|part| source.contains(part))
        };
        self.frame.place.is_some() && !self.is_of_system() && !self.source().is_some_and(is_foreign)
    }

    /// Returns whether the code is in a system library, a mapping like `[vdso]`, or heapwright.
    fn is_of_system(&self) -> bool {
        let Some(place) = &self.frame.place else { return false };
        let below = place.path.strip_prefix(b"/usr").unwrap_or(&place.path);
        let folder = below.split(|&byte| byte == b'/').nth(1).unwrap_or_default();
        let module = self.module().unwrap_or_default();
        let is_there = [&b"lib"[..], b"lib32", b"lib64", b"libx32"].contains(&folder);
        is_there && module.contains(".so")
            || module.starts_with('[')
            || self.frame.is_of_heapwright()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::Place;

    /// Each call has a module, a function and its source; any may be empty. Innermost first.
    fn stack(calls: &[(&str, &str, &str)]) -> Stacks {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let frame = |&(module, name, source): &(&str, &str, &str)| Frame {
            place: Some(Place { path: module.into(), offset: 0x18, build_id: Vec::new() }),
            functions: text(name).map_or_else(Vec::new, |name| {
                let line = text(source).map(|_| 58);
                vec![Function {
                    name: Some(name),
                    source: text(source),
                    line,
                    ..Default::default()
                }]
            }),
            ..Frame::default()
        };
        let mut stacks = Stacks { frames: calls.iter().map(frame).collect(), ..Stacks::default() };
        stacks.stacks.push((0..calls.len() as u32).collect());
        stacks
    }

    #[test]
    fn the_look_is_at_the_innermost_call_of_the_program_with_a_name() {
        const C: &str = "/usr/lib/x86_64-linux-gnu/libc.so.6";
        let start = (C, "__libc_start_call_main", "./csu/../sysdeps/nptl/libc_start_call_main.h");
        let strdup = (C, "__GI___strdup", "./string/strdup.c");
        for (calls, name, place) in [
            // A program without debug information, and a C library with it.
            (&[("/home/ada/grow", "main", ""), start][..], "main", ""),
            (
                &[
                    strdup,
                    ("/home/ada/grow", "kept", ""),
                    ("/home/ada/grow", "main", "/a.c"),
                    start,
                ],
                "kept",
                "/a.c:58",
            ),
            (
                &[
                    ("/cache/libheapwright.so", "malloc", ""),
                    strdup,
                    ("/lib/libz.so", "inflate", ""),
                    start,
                    ("/a", "main", ""),
                ],
                "main",
                "",
            ),
            // A program without names does not get the name of the code that starts it.
            (&[strdup, ("/home/ada/grow", "", ""), start], "grow+0x18", ""),
            (&[strdup, start], "__GI___strdup", ""),
            (
                &[
                    ("/usr/lib/git-core/git", "xmalloc", ""),
                    ("/usr/lib/git-core/git", "cmd_main", "/git.c"),
                ],
                "xmalloc",
                "/git.c:58",
            ),
        ] {
            let stacks = stack(calls);
            let look = look_at(&stacks, StackId(1)).map(|call| call.name());
            assert_eq!(look.as_deref(), Some(name), "{calls:?}");
            let line = first_look(&stacks, StackId(1)).map(|call| call.place());
            assert_eq!(line.unwrap_or_default(), place, "{calls:?}");
            assert_eq!(from_look(&stacks, StackId(1)).next().map(|call| call.name()), look);
        }
        assert!(look_at(&Stacks::default(), StackId::NONE).is_none());
    }
}
