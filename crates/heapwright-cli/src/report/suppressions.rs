//! Suppressions hide findings that the user does not want to see.
//!
//! There are two languages, for which people already have files. A file may mix them.
//!
//! ```text
//! # LeakSanitizer's                      { valgrind's
//! leak:libfoo.so                            Memcheck:Leak
//! double-free:^parse_*                      match-leak-kinds: definite
//! growth:Cache::insert                      fun:strdup
//!                                           ...
//!                                           obj:*/libfoo.so*
//! leak:add@shop <- main@shop                src:foo.c:12
//!                                        }
//! ```
//!
//! **A line** is a type and a pattern. The type is `leak`, `growth`, or the heading of any other
//! finding. The pattern may match anywhere in the names of functions, source files and modules of
//! all the finding's stacks. `*` stands for anything; `^` and `$` anchor the pattern at the
//! beginning and the end.
//!
//! A pattern with ` <- ` in it is a chain of calls from the innermost on: `FUNCTION@MODULE <-
//! FUNCTION@MODULE`. The module is the last part of its file's name and may be left out; `*` and
//! `?` are wildcards. The chain skips functions that get memory for others (`symbols::plumbing`) at
//! its start, and ignores the callers of its last function. Reports suggest such chains: a bare
//! `^main$` hides everything that main calls.
//!
//! **A block** has a name, a type, and the frames of a stack from the innermost on. `*` and `?` are
//! wildcards, `...` stands for any number of frames, and frames after the last line are ignored.
//! Functions are compared by their linker names and their readable names. Valgrind's stacks begin
//! in its own `malloc`, ours in its caller: a first line that names the allocating or freeing
//! function counts as matched. So do the first lines up to the C library's function that made an
//! access, by its name or by valgrind's names for it: `memcpy@@GLIBC_2.14`,
//! `__memcpy_avx_unaligned_erms`, `memmove`. Any stack of the finding may match.
//!
//! ```text
//! Memcheck:Leak              leaks; match-leak-kinds: definite, indirect, possible, reachable, all
//! Memcheck:Free              frees and reallocs that were wrong
//! Memcheck:Addr1 ... Addr32  accesses and writes that were wrong
//! Memcheck:Cond, Value8 ...  uninitialised values: by the stack that allocated the block
//! Heapwright:HEADING         the kind with this heading; also Heapwright:growth
//! others                     other tools' (not read), or errors that heapwright does not detect: never used
//! ```
//!
//! The parameter (`write(buf)`) follows `Memcheck:Param`, as in valgrind. A block matches a stack
//! that was cut at the most calls with as many lines as the stack has calls.

use super::model::{LEAKS, Used, leak_kinds};
use crate::bounds;
use crate::symbols::plumbing::is_plumbing_name;
use anyhow::{Context, bail};
use heapwright_record::debug::{FindingKind, Function, Reach};
use std::collections::HashSet;
use std::path::Path;

/// The findings that a suppression can hide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Error(FindingKind),
    Leak(Reach),
    Growth,
}

/// The separator between the calls of a chain.
const CALLED_BY: &str = " <- ";

/// The most calls of a suggested chain: enough to tell apart the callers of an allocating function,
/// but independent of most of the program.
const CALLS: usize = 4;

/// A frame in the form that suppressions match.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Line<'a> {
    /// The function's name, as people read it.
    pub(super) name: &'a str,
    /// The function's linker name.
    pub(super) symbol: &'a str,
    pub(super) source: &'a str,
    pub(super) line: Option<u32>,
    pub(super) module: &'a str,
}

/// All suppressions of a run.
#[derive(Default)]
pub(super) struct Suppressions {
    rules: Vec<Rule>,
    /// The number of times that each suppression hid something.
    pub(super) used: Vec<Used>,
}

struct Rule {
    hides: Hides,
    frames: Frames,
}

enum Hides {
    Kinds(Vec<FindingKind>),
    Leaks(Vec<Reach>),
    Growth,
    Nothing,
}

enum Frames {
    Anywhere(String),
    /// A chain of calls, from the first function that is no plumbing.
    Chain(Vec<Pattern>),
    Stack(Vec<Pattern>),
}

enum Pattern {
    /// A function, and the last part of its module's name.
    Call(String, Option<String>),
    Function(String),
    Object(String),
    Source(String),
    AnyNumber,
}

const FREES: [FindingKind; 8] = [
    FindingKind::DoubleFree,
    FindingKind::InvalidFree,
    FindingKind::InteriorFree,
    FindingKind::SizeMismatch,
    FindingKind::AlignmentMismatch,
    FindingKind::AllocatorMismatch,
    FindingKind::InvalidRealloc,
    FindingKind::ReallocAfterFree,
];

const ACCESSES: [FindingKind; 6] = [
    FindingKind::Overflow,
    FindingKind::Underflow,
    FindingKind::WriteAfterFree,
    FindingKind::UseAfterFree,
    FindingKind::UseAfterPoison,
    FindingKind::MayOverflow,
];

/// The functions with which valgrind's stacks begin.
const ALLOCATORS: [&str; 30] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
    "_Znwm",
    "_ZnwmRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_Znam",
    "_ZnamRKSt9nothrow_t",
    "_ZnamSt11align_val_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    "_ZdlPv",
    "_ZdlPvm",
    "_ZdlPvRKSt9nothrow_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPv",
    "_ZdaPvm",
    "_ZdaPvRKSt9nothrow_t",
    "operator new(unsigned long)",
    "operator new[](unsigned long)",
    "operator delete(void*)",
    "operator delete[](void*)",
];

impl Suppressions {
    /// Appends the suppressions of a file.
    pub(super) fn add_file(&mut self, path: &Path) -> anyhow::Result<()> {
        let name = path.display().to_string();
        let text =
            bounds::text(path).with_context(|| format!("cannot read suppressions from {name}"))?;
        self.add(&String::from_utf8_lossy(&text), &name)
    }

    pub(super) fn add(&mut self, text: &str, file: &str) -> anyhow::Result<()> {
        let mut lines = text.lines().zip(1_u32..).map(|(line, number)| (line.trim(), number));
        while let Some((line, number)) = lines.next() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, rule) = if line == "{" {
                let mut body = Vec::new();
                loop {
                    match lines.next() {
                        Some(("}", _)) => break,
                        Some((line, _)) if line.is_empty() || line.starts_with('#') => {}
                        Some(line) => body.push(line),
                        None => bail!("{file}:{number}: this suppression has no closing '}}'"),
                    }
                }
                block(&body, number)
                    .map_err(|(at, error)| anyhow::anyhow!("{file}:{at}: {error}"))?
            } else {
                let rule =
                    simple(line).map_err(|error| anyhow::anyhow!("{file}:{number}: {error}"))?;
                (line.to_owned(), rule)
            };
            self.rules.push(rule);
            self.used.push(Used {
                name,
                file: file.to_owned(),
                line: number,
                times: 0,
                causes: HashSet::new(),
                amount: super::model::Amount::default(),
            });
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the suppression that hides a finding with these stacks, if any. `function` is the C
    /// library's function that made the access.
    pub(super) fn hides(
        &self,
        kind: Kind,
        function: Function,
        stacks: &[Vec<Line<'_>>],
    ) -> Option<usize> {
        self.rules.iter().position(|rule| rule.hides(kind) && rule.frames.are_in(function, stacks))
    }
}

/// Returns whether a function is a program's first own function: C's `main`, or Rust's, with its
/// crate's name.
pub(crate) fn is_main(name: &str) -> bool {
    let is_path =
        |before: &str| before.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
    name == "main" || name.strip_suffix("::main").is_some_and(is_path)
}

/// Returns the narrowest pattern that hides a finding with this stack and also holds for another
/// build of the program: the innermost calls, up to `main` or a thread's first function. `None` if
/// no call has a name.
pub(crate) fn suggestion(stack: &[Line<'_>]) -> Option<String> {
    let call = |line: &Line<'_>| {
        let file = line.module.rsplit('/').next().unwrap_or_default();
        let is_vague = line.name.starts_with("operator()") && !line.symbol.is_empty();
        let name = match (is_vague, line.name) {
            (true, _) => line.symbol,
            (false, "") if file.is_empty() => return None,
            (false, "") => "*",
            (false, name) => name,
        };
        // With debug information, the C library's functions have internal names: `__GI___strdup`.
        let is_libc = file.starts_with("libc.so") || file.starts_with("libc-");
        let bare = name.trim_start_matches("__GI_").trim_start_matches('_');
        let name = if is_libc && name != "*" { format!("*{bare}") } else { name.to_owned() };
        Some(if file.is_empty() { name } else { format!("{name}@{file}") })
    };
    let mut calls: Vec<String> = Vec::new();
    for line in without_plumbing(stack).iter().take(CALLS) {
        if !calls.is_empty() && BEGINNINGS.iter().any(|name| line.name.starts_with(name)) {
            break;
        }
        calls.extend(call(line));
        if is_main(line.name) {
            break;
        }
    }
    match &calls[..] {
        [] => None,
        [only] => Some(format!("{only}{}", CALLED_BY.trim_end())),
        _ => Some(calls.join(CALLED_BY)),
    }
}

/// The callers of a program's or a thread's first function. Other libraries have other names.
const BEGINNINGS: [&str; 7] =
    ["__libc_start", "_start", "start_thread", "clone", "__clone", "_dl_", "call_init"];

impl Rule {
    fn hides(&self, kind: Kind) -> bool {
        match (&self.hides, kind) {
            (Hides::Kinds(kinds), Kind::Error(kind)) => kinds.contains(&kind),
            (Hides::Leaks(reaches), Kind::Leak(reach)) => reaches.contains(&reach),
            (Hides::Leaks(_), Kind::Error(kind)) => kind == FindingKind::Leak,
            (Hides::Growth, Kind::Growth) => true,
            _ => false,
        }
    }
}

/// Parses `TYPE:PATTERN`.
fn simple(line: &str) -> Result<Rule, String> {
    let Some((kind, pattern)) = line.split_once(':') else {
        return Err(format!("'{line}' is neither TYPE:PATTERN nor '{{'"));
    };
    let Some(hides) = heading(kind.trim()) else {
        return Err(format!(
            "unknown type '{kind}'; use leak, growth, or a heading such as double-free"
        ));
    };
    let pattern = pattern.trim();
    if pattern.is_empty() {
        return Err(String::from(
            "a suppression without a pattern would hide everything; '*' does",
        ));
    }
    let is_chain = pattern.contains(CALLED_BY) || pattern.ends_with(CALLED_BY.trim_end());
    let frames =
        if is_chain { Frames::Chain(chain(pattern)?) } else { Frames::Anywhere(anywhere(pattern)) };
    Ok(Rule { hides, frames })
}

/// Parses the calls of a chain. An empty end behind the last arrow matches any caller.
fn chain(pattern: &str) -> Result<Vec<Pattern>, String> {
    let pattern = pattern.strip_suffix(CALLED_BY.trim_end()).unwrap_or(pattern);
    let call = |call: &str| match call.rsplit_once('@') {
        _ if call.is_empty() => Err(format!("'{pattern}' has a call without a name; '*' is any")),
        Some(("", _)) => Err(format!("'{call}' has no function before the @; '*' is any")),
        Some((function, module)) => Ok(Pattern::Call(function.to_owned(), Some(module.to_owned()))),
        None => Ok(Pattern::Call(call.to_owned(), None)),
    };
    pattern.split(CALLED_BY).map(|word| call(word.trim())).collect()
}

/// Returns the findings that a heading of heapwright's hides.
fn heading(word: &str) -> Option<Hides> {
    match word {
        "leak" => Some(Hides::Leaks(LEAKS.to_vec())),
        "growth" => Some(Hides::Growth),
        _ => {
            let kind = FindingKind::ALL.iter().skip(1).find(|kind| kind.heading() == word)?;
            Some(Hides::Kinds(vec![*kind]))
        }
    }
}

/// Turns a pattern that may match anywhere into one that must match the whole.
fn anywhere(pattern: &str) -> String {
    let (before, pattern) = match pattern.strip_prefix('^') {
        Some(rest) => ("", rest),
        None => ("*", pattern),
    };
    match pattern.strip_suffix('$') {
        Some(rest) => format!("{before}{rest}"),
        None => format!("{before}{pattern}*"),
    }
}

/// Returns whether a type of memcheck's is for uninitialised values.
fn is_of_uninitialised(what: &str) -> bool {
    what == "Cond" || what.starts_with("Value")
}

type Named = (String, Rule);

/// Parses the lines between the braces. An error has the line's number.
fn block(body: &[(&str, u32)], begin: u32) -> Result<Named, (u32, String)> {
    let [(name, _), (kind, at), rest @ ..] = body else {
        return Err((
            begin,
            String::from("a suppression in braces has a name, a type, and frames"),
        ));
    };
    let Some((tools, what)) = kind.split_once(':') else {
        return Err((*at, format!("'{kind}' is not TOOL:TYPE, such as Memcheck:Leak")));
    };
    let what = what.trim();
    let tools: Vec<&str> = tools.split(',').map(str::trim).collect();
    let ours = |tool: &str| tools.iter().any(|name| name.eq_ignore_ascii_case(tool));
    if !ours("heapwright") && !ours("memcheck") {
        // Another tool's block is not read; nor does valgrind read it.
        let (hides, frames) = (Hides::Nothing, Frames::Stack(Vec::new()));
        return Ok(((*name).to_owned(), Rule { hides, frames }));
    }
    let mut hides = match what {
        _ if ours("heapwright") => match heading(&what.to_ascii_lowercase()) {
            Some(hides) => hides,
            None => return Err((*at, format!("there is nothing of the type '{what}'"))),
        },
        "Leak" => Hides::Leaks(LEAKS.to_vec()),
        "Free" => Hides::Kinds(FREES.to_vec()),
        what if what.starts_with("Addr") => Hides::Kinds(ACCESSES.to_vec()),
        what if is_of_uninitialised(what) => Hides::Kinds(vec![FindingKind::Uninitialised]),
        _ => Hides::Nothing,
    };
    let rest = match rest {
        // The parameter, under any name: `write(buf)`.
        [(extra, _), rest @ ..] if has_extra(what) && !is_location(extra) => rest,
        _ if has_extra(what) => {
            return Err((*at, format!("'{kind}' wants a line of what it is about, as write(buf)")));
        }
        _ => rest,
    };
    let mut frames = Vec::new();
    for (line, at) in rest {
        let word = line.split_once(':').map(|(word, value)| (word.trim(), value.trim()));
        frames.push(match word {
            Some(("fun", name)) => Pattern::Function(name.to_owned()),
            Some(("obj", name)) => Pattern::Object(name.to_owned()),
            Some(("src", name)) => Pattern::Source(name.to_owned()),
            Some(("match-leak-kinds", kinds)) => {
                if let Hides::Leaks(reaches) = &mut hides {
                    *reaches = leak_kinds(kinds)
                        .map_err(|word| (*at, format!("'{word}' is no kind of leak")))?;
                }
                continue;
            }
            _ if *line == "..." => Pattern::AnyNumber,
            // An additional line of an unknown type.
            _ if frames.is_empty() && matches!(hides, Hides::Nothing) => continue,
            _ => return Err((*at, format!("'{line}' is no frame: fun:, obj:, src: or ..."))),
        });
    }
    if frames.is_empty() {
        return Err((
            begin,
            String::from("a suppression without frames would hide everything; '...' does"),
        ));
    }
    Ok(((*name).to_owned(), Rule { hides, frames: Frames::Stack(frames) }))
}

/// Returns whether blocks of a memcheck type have an additional line before the frames.
fn has_extra(what: &str) -> bool {
    matches!(what, "Param" | "FishyValue")
}

/// Returns whether a line of a block names a frame.
fn is_location(line: &str) -> bool {
    line == "..." || ["fun:", "obj:", "src:"].iter().any(|word| line.starts_with(word))
}

impl Frames {
    fn are_in(&self, function: Function, stacks: &[Vec<Line<'_>>]) -> bool {
        match self {
            Self::Anywhere(pattern) => stacks.iter().flatten().any(|line| {
                [line.name, line.symbol, line.source, line.module]
                    .iter()
                    .any(|text| !text.is_empty() && glob(pattern, text))
            }),
            Self::Chain(calls) => stacks.iter().any(|stack| begins(calls, without_plumbing(stack))),
            Self::Stack(patterns) => stacks.iter().any(|stack| {
                let begins = |patterns: &[Pattern]| begins(within(patterns, stack), stack);
                let behind = behind_function(patterns, function);
                if begins(patterns) || behind.is_some_and(begins) {
                    return true;
                }
                // The allocating function, with which valgrind's stack begins.
                let is_allocator = match patterns.first() {
                    Some(Pattern::Function(name)) => {
                        ALLOCATORS.iter().any(|allocator| glob(name, allocator))
                    }
                    Some(Pattern::Object(name)) => name.contains("vgpreload"),
                    _ => false,
                };
                is_allocator && begins(&patterns[1..])
            }),
        }
    }
}

/// The most calls that valgrind's stacks have inside the C library before the function that the
/// program called: `strlen`, `__vfprintf_internal`, `printf`.
const INNER_CALLS: usize = 5;

/// Returns the patterns behind the first one that names the accessing function.
fn behind_function(patterns: &[Pattern], function: Function) -> Option<&[Pattern]> {
    let is_it =
        |pattern: &Pattern| matches!(pattern, Pattern::Function(name) if is_called(name, function));
    let at = patterns.iter().take(INNER_CALLS).position(is_it)?;
    patterns.get(at + 1..)
}

/// Returns whether a name or a pattern is a function's name, or valgrind's name for it.
fn is_called(pattern: &str, function: Function) -> bool {
    let word = function.word();
    if function == Function::Unknown {
        return false;
    }
    // `memcpy@@GLIBC_2.14`, `__GI_strlen`, `__memcpy_chk`, `__strlen_avx2`,
    // `__memset_evex_unaligned_erms`.
    let bare = pattern.split('@').next().unwrap_or_default();
    let bare = bare.strip_prefix("__GI_").unwrap_or(bare).trim_start_matches('_');
    let end = ["_chk", "_avx", "_evex", "_sse", "_ssse", "_unaligned", "_erms"]
        .iter()
        .filter_map(|variant| bare.find(variant))
        .min();
    let bare = &bare[..end.unwrap_or(bare.len())];
    // One body serves both functions; valgrind knows it by either name.
    const SAME: [[&str; 2]; 5] = [
        ["memcpy", "memmove"],
        ["memcmp", "bcmp"],
        ["strchr", "index"],
        ["strrchr", "rindex"],
        ["wmemcpy", "wmemmove"],
    ];
    let others = SAME.iter().filter(|pair| pair.contains(&word)).flatten();
    let mut names = others.copied().chain([word]);
    names.any(|name| glob(pattern, name) || glob(bare, name))
}

/// Returns a stack from the first frame that is no plumbing; all of it without such a frame.
pub(super) fn without_plumbing<'s, 'a>(stack: &'s [Line<'a>]) -> &'s [Line<'a>] {
    let first = stack.iter().position(|line| !is_plumbing_name(line.name));
    &stack[first.unwrap_or_default()..]
}

/// The least number of calls of a stack that was cut: valgrind keeps twelve, one of them its own.
const CUT: usize = 11;

/// Returns the lines of a block to compare with a stack. Lines beyond the end of a stack that was
/// cut are left out, as valgrind leaves out lines beyond `--num-callers`.
fn within<'p>(patterns: &'p [Pattern], stack: &[Line<'_>]) -> &'p [Pattern] {
    let is_end = |line: &Line<'_>| {
        is_main(line.name) || BEGINNINGS.iter().any(|name| line.name.starts_with(name))
    };
    let is_cut = stack.len() >= CUT && !stack.last().is_some_and(is_end);
    patterns.get(..stack.len()).filter(|_| is_cut).unwrap_or(patterns)
}

/// Returns whether a stack begins with these frames. After a mismatch, only the last `...` is tried
/// again, one frame later: an earlier one could not do better.
fn begins(patterns: &[Pattern], stack: &[Line<'_>]) -> bool {
    let (mut at, mut frame) = (0, 0);
    let mut again: Option<(usize, usize)> = None;
    loop {
        match patterns.get(at) {
            None => return true,
            Some(Pattern::AnyNumber) => {
                again = Some((at + 1, frame));
                at += 1;
                continue;
            }
            Some(pattern) if stack.get(frame).is_some_and(|line| pattern.matches(line)) => {
                (at, frame) = (at + 1, frame + 1);
                continue;
            }
            Some(_) => {}
        }
        match again {
            Some((pattern, from)) if from < stack.len() => {
                again = Some((pattern, from + 1));
                (at, frame) = (pattern, from + 1);
            }
            _ => return false,
        }
    }
}

impl Pattern {
    fn matches(&self, line: &Line<'_>) -> bool {
        match self {
            Self::AnyNumber => true,
            Self::Call(function, module) => {
                let file = line.module.rsplit('/').next().unwrap_or_default();
                let names = [line.symbol, line.name];
                // A function without a name matches any name.
                let is_named = names.iter().any(|text| glob(function, text));
                is_named && module.as_ref().is_none_or(|module| glob(module, file))
            }
            Self::Function(name) => {
                [line.symbol, line.name].iter().any(|text| !text.is_empty() && glob(name, text))
            }
            Self::Object(name) => glob(name, line.module),
            Self::Source(name) => {
                let file = line.source.rsplit('/').next().unwrap_or_default();
                let with_line = |text: &str| line.line.map(|line| format!("{text}:{line}"));
                [
                    Some(file.to_owned()),
                    Some(line.source.to_owned()),
                    with_line(file),
                    with_line(line.source),
                ]
                .iter()
                .flatten()
                .any(|text| !text.is_empty() && glob(name, text))
            }
        }
    }
}

/// Returns whether a pattern with `*` and `?` matches the whole text.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut byte) = (0, 0);
    let mut again: Option<(usize, usize)> = None;
    while byte < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                again = Some((at + 1, byte));
                at += 1;
            }
            Some(&wanted) if wanted == b'?' || wanted == text[byte] => {
                (at, byte) = (at + 1, byte + 1);
            }
            _ => match again {
                Some((after, from)) => {
                    again = Some((after, from + 1));
                    (at, byte) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suppressions(text: &str) -> Suppressions {
        let mut suppressions = Suppressions::default();
        suppressions.add(text, "file").expect("is right");
        suppressions
    }

    fn wrong(text: &str) -> String {
        Suppressions::default().add(text, "file").expect_err("is wrong").to_string()
    }

    const STACK: [Line<'static>; 3] = [
        Line { name: "strdup", symbol: "", source: "", line: None, module: "/lib/libc.so.6" },
        Line {
            name: "ns::load(char const*)",
            symbol: "_ZN2ns4loadEPKc",
            source: "/src/load.cc",
            line: Some(12),
            module: "/usr/bin/prog",
        },
        Line {
            name: "main",
            symbol: "",
            source: "/src/main.cc",
            line: Some(3),
            module: "/usr/bin/prog",
        },
    ];

    fn hidden(text: &str, kind: Kind) -> bool {
        suppressions(text).hides(kind, Function::Unknown, &[STACK.to_vec()]).is_some()
    }

    const LOST: Kind = Kind::Leak(Reach::Definite);

    #[test]
    fn lines_match_anywhere() {
        for right in [
            "leak:load",
            "leak:ns::load",
            "leak:libc.so",
            "leak:^main$",
            "leak:load.cc",
            "leak:*",
            "leak: n*d(",
        ] {
            assert!(hidden(right, LOST), "{right}");
        }
        for wrong in [
            "leak:^load",
            "leak:mai$",
            "double-free:load",
            "growth:load",
            "# leak:load",
            "leak:other",
        ] {
            assert!(!hidden(wrong, LOST), "{wrong}");
        }
        assert!(hidden("double-free:load", Kind::Error(FindingKind::DoubleFree)));
        assert!(!hidden("double-free:load", Kind::Error(FindingKind::InvalidFree)));
        assert!(hidden("growth:load", Kind::Growth));
        assert!(hidden("leak:main", Kind::Leak(Reach::Reachable)));
    }

    #[test]
    fn functions_that_accesses_were_asked_of_go_before_their_callers() {
        let hidden = |frames: &str, function| {
            let text = format!("{{\na\nMemcheck:Addr8\n{frames}\n}}");
            let overflow = Kind::Error(FindingKind::Overflow);
            suppressions(&text).hides(overflow, function, &[STACK[1..].to_vec()]).is_some()
        };
        for frames in [
            "fun:memcpy@@GLIBC_2.14\nfun:_ZN2ns4load*\nfun:main",
            "fun:memcpy@GLIBC_2.2.5\nfun:ns::load*",
            "fun:__memcpy_avx_unaligned_erms\nfun:ns::load*",
            "fun:__memcpy_chk\nfun:ns::load*",
            "fun:memmove\nfun:ns::load*",
            "fun:mem*\nfun:ns::load*",
            "fun:ns::load*\nfun:main",
            "...\nfun:main",
        ] {
            assert!(hidden(frames, Function::Memcpy), "{frames}");
        }
        for frames in
            ["fun:strlen\nfun:ns::load*", "fun:memcpy\nfun:main", "fun:memcpy_fast\nfun:ns::load*"]
        {
            assert!(!hidden(frames, Function::Memcpy), "{frames}");
        }
        assert!(!hidden("fun:memcpy\nfun:ns::load*", Function::Unknown));
        let inner = "fun:strlen\nfun:__vfprintf_internal\nfun:printf\nfun:ns::load*";
        assert!(hidden(inner, Function::named("printf")) && !hidden(inner, Function::Memcpy));
    }

    #[test]
    fn chains_match_from_the_first_call_that_is_not_plumbing() {
        for right in [
            "leak:strdup@libc.so.6 <- ns::load(char const*)@prog <- main@prog",
            "leak:strdup <- _ZN2ns4load* <-",
            "leak:strdup@libc.so* <-",
        ] {
            assert!(hidden(right, LOST), "{right}");
        }
        for wrong in [
            "leak:main@prog <-",
            "leak:ns::load(char const*)@prog <- main@prog",
            "leak:strdup <- main",
            "leak:strdup@prog <-",
        ] {
            assert!(!hidden(wrong, LOST), "{wrong}");
        }
        let new = Line {
            name: "operator new(unsigned long)",
            module: "/lib/libstdc++.so.6",
            ..Line::default()
        };
        let stack = [&[new], &STACK[..]].concat();
        let suggested = suggestion(&stack).expect("has names");
        assert_eq!(suggested, "*strdup@libc.so.6 <- ns::load(char const*)@prog <- main@prog");
        let hides = |stack: &[Line<'static>]| {
            suppressions(&format!("leak:{suggested}"))
                .hides(LOST, Function::Unknown, &[stack.to_vec()])
                .is_some()
        };
        assert!(hides(&stack) && hides(&STACK) && !hides(&STACK[1..]));
        assert_eq!(suggestion(&STACK[2..]).as_deref(), Some("main@prog <-"));
        assert_eq!(suggestion(&[]), None);
    }

    #[test]
    fn blocks_match_from_the_innermost_frame_on() {
        let block = |kind: &str, frames: &str| format!("{{\n  a name\n  {kind}\n  {frames}\n}}\n");
        let leak = |frames: &str| hidden(&block("Memcheck:Leak", &frames.replace(' ', "\n")), LOST);
        for right in [
            "fun:strdup",
            "fun:malloc fun:strdup fun:_ZN2ns4load*",
            "fun:*alloc fun:strdup fun:ns::load*",
            "obj:*/vgpreload_memcheck-amd64-linux.so fun:strdup",
            "obj:*libc.so* ... fun:main",
            "... fun:main",
            "...",
            "fun:str?up src:load.cc:12 src:main.cc",
        ] {
            assert!(leak(right), "{right}");
        }
        for wrong in [
            "fun:main",
            "fun:malloc fun:main",
            "fun:strdup fun:main",
            "... fun:main fun:x",
            "fun:strdup src:load.cc:13",
            "obj:prog",
        ] {
            assert!(!leak(wrong), "{wrong}");
        }
        let kinds = block("Memcheck:Leak", "match-leak-kinds: possible,reachable\n...");
        assert!(!hidden(&kinds, LOST) && hidden(&kinds, Kind::Leak(Reach::Possible)));
        for (kind, finding, hides) in [
            ("Memcheck:Free", FindingKind::DoubleFree, true),
            ("Memcheck:Free", FindingKind::Overflow, false),
            ("Memcheck:Addr8", FindingKind::UseAfterFree, true),
            ("Addrcheck,Memcheck:Addr4", FindingKind::Overflow, true),
            ("Memcheck:Cond", FindingKind::Overflow, false),
            ("Memcheck:Cond", FindingKind::Uninitialised, true),
            ("Memcheck:Value8", FindingKind::Uninitialised, true),
            ("Memcheck:Value8", FindingKind::UseAfterFree, false),
            ("Memcheck:Free", FindingKind::Uninitialised, false),
            ("Helgrind:Race", FindingKind::Overflow, false),
            ("Heapwright:double-free", FindingKind::DoubleFree, true),
        ] {
            assert_eq!(hidden(&block(kind, "..."), Kind::Error(finding)), hides, "{kind}");
        }
        assert!(!hidden(&block("Memcheck:Param", "write(buf)\nfun:main"), LOST));
        // Blocks for other tools are not read. Types of newer valgrinds may have an additional
        // line.
        assert!(!hidden(&block("Helgrind:Race", ""), LOST));
        assert!(!hidden(&block("drd:ConflictingAccess", "any\nfun:main"), LOST));
        assert!(!hidden(&block("Memcheck:Newer", "any\n...\nfun:main"), LOST));
    }

    #[test]
    fn blocks_may_be_longer_than_the_stacks_that_are_kept() {
        let names: Vec<String> = (0..20).map(|number| format!("f{number}")).collect();
        let stack = |calls: usize, last: &'static str| -> Vec<Line<'_>> {
            let names = names[..calls].iter().map(|name| &**name).chain([last]);
            names.map(|name| Line { name, ..Line::default() }).collect()
        };
        let hidden = |before: &str, calls: usize, stack: Vec<Line<'_>>| {
            let frames: String =
                names[..calls].iter().map(|name| format!("fun:{name}\n")).collect();
            suppressions(&format!("{{\na\nMemcheck:Leak\n{before}{frames}}}"))
                .hides(LOST, Function::Unknown, &[stack])
                .is_some()
        };
        assert!(hidden("", 20, stack(11, "f11")) && hidden("fun:malloc\n", 20, stack(11, "f11")));
        assert!(!hidden("", 20, stack(11, "other")), "a call differs");
        assert!(!hidden("", 20, stack(11, "main")), "the stack ends there");
        assert!(!hidden("", 20, stack(4, "f4")), "a short stack was not cut");
        assert!(!hidden("fun:f0\n...\nfun:other\n", 1, stack(11, "f11")), "the lines are fewer");
    }

    #[test]
    fn mistakes_are_one_line_with_their_place() {
        for (text, printed) in [
            (
                "\nleek:x",
                "file:2: unknown type 'leek'; use leak, growth, or a heading such as double-free",
            ),
            ("hello", "file:1: 'hello' is neither TYPE:PATTERN nor '{'"),
            ("leak:a <-  <- b", "file:1: 'a <-  <- b' has a call without a name; '*' is any"),
            ("leak:@x <- b", "file:1: '@x' has no function before the @; '*' is any"),
            ("leak:", "file:1: a suppression without a pattern would hide everything; '*' does"),
            ("{\n name\n Memcheck:Leak\n fun:x\n", "file:1: this suppression has no closing '}'"),
            ("{\n name\n}\n", "file:1: a suppression in braces has a name, a type, and frames"),
            (
                "{\n name\n Leak\n fun:x\n}",
                "file:3: 'Leak' is not TOOL:TYPE, such as Memcheck:Leak",
            ),
            (
                "{\n name\n Memcheck:Leak\n function:x\n}",
                "file:4: 'function:x' is no frame: fun:, obj:, src: or ...",
            ),
            (
                "{\n name\n Memcheck:Param\n fun:x\n}",
                "file:3: 'Memcheck:Param' wants a line of what it is about, as write(buf)",
            ),
            (
                "{\n name\n Memcheck:Leak\n match-leak-kinds: lost\n fun:x\n}",
                "file:4: 'lost' is no kind of leak",
            ),
            (
                "{\n name\n Memcheck:Leak\n}",
                "file:1: a suppression without frames would hide everything; '...' does",
            ),
        ] {
            assert_eq!(wrong(text), printed);
        }
    }

    #[test]
    fn wildcards_do_not_take_for_ever() {
        let text = "a".repeat(5000);
        assert!(!glob(&"a*".repeat(50).replace("*a*", "*a*b*"), &text));
        assert!(glob("**a?*a", &text) && glob("*", "") && !glob("?", ""));
    }
}
