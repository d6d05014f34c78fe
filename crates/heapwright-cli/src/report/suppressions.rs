//! Suppressions hide findings, in two languages that people already use. A file may mix the two.
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
//! **A line** is a type and a pattern. The type is `leak`, `growth`, or another finding's heading.
//! The pattern may match anywhere in the names of functions, source files and modules of all
//! stacks. `*` and `?` are wildcards; `^` and `$` anchor the pattern at the beginning and the end.
//!
//! A pattern with ` <- ` in it is a chain of calls from the innermost on: `FUNCTION@MODULE <-
//! FUNCTION@MODULE`. The module is the last part of its file's name and may be left out; `*` and
//! `?` are wildcards. The chain skips functions that get memory for others (`symbols::plumbing`) at
//! its start, and inlined functions that only a separate debug file names. It ignores the callers
//! of its last function. A chain of one call has a module: `main@shop`. Reports suggest chains: a
//! bare `^main$` hides everything that main calls.
//!
//! **A block** has a name, a type, and the frames of a stack from the innermost on. `*` and `?` are
//! wildcards, `...` stands for any number of frames, and frames after the last line are ignored.
//! Functions are compared by their linker names and their readable names, without a version
//! (`fopen@@GLIBC_2.2.5`), and without the kind of a constructor or destructor (`C1`, `D0`).
//! Callers of `main` are also called `(below main)`, `__libc_start_main` and `_start`, those of a
//! thread's function `start_thread` and `clone`. A function without a name is called `???`.

use super::innermost::{self, Innermost};
use super::model::{LEAKS, Used, leak_kinds};
use crate::bounds;
use crate::symbols::plumbing::is_plumbing_name;
use anyhow::{Context, bail};
use heapwright_record::debug::{FindingKind, Function, Reach};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Error(FindingKind),
    Leak(Reach),
    Growth,
}

const CALLED_BY: &str = " <- ";

/// The most calls of a suggested chain.
const CALLS: usize = 4;

/// A frame in the form that suppressions match.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Line<'a> {
    pub(super) name: &'a str,
    /// The function's linker name.
    pub(super) symbol: &'a str,
    pub(super) source: &'a str,
    pub(super) line: Option<u32>,
    pub(super) module: &'a str,
    /// Valgrind's names for a caller of `main`, or of a thread's function.
    pub(super) also: &'static [&'static str],
    /// Whether only a separate debug file names the function.
    pub(super) is_private: bool,
    /// Whether the function was inlined into the next one.
    pub(super) is_inlined: bool,
}

pub(super) struct Stack<'a> {
    pub(super) lines: Vec<Line<'a>>,
    /// The calls that memcheck's stack has before the first line.
    pub(super) innermost: Innermost,
    /// Whether blocks in valgrind's language are compared with the stack.
    pub(super) is_where: bool,
}

#[derive(Default)]
pub(super) struct Suppressions {
    rules: Vec<Rule>,
    /// What each suppression hid, in the order of `rules`.
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

impl Suppressions {
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

    /// Returns the suppression that hides a finding with these stacks, if any.
    pub(super) fn hides(&self, kind: Kind, stacks: &[Stack<'_>]) -> Option<usize> {
        self.rules.iter().position(|rule| rule.hides(kind) && rule.frames.are_in(stacks))
    }
}

/// Returns whether a function is a program's first own function: C's `main`, or Rust's, with its
/// crate's name.
pub(crate) fn is_main(name: &str) -> bool {
    let is_path =
        |before: &str| before.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
    name == "main" || name.strip_suffix("::main").is_some_and(is_path)
}

/// Returns the narrowest pattern that hides a finding with this stack in any build of the program:
/// the innermost calls, up to `main` or a thread's first function. `None` if no call has a name:
/// `*@prog` would hide nearly everything. A function that only a separate debug file names counts
/// by its module.
pub(crate) fn suggestion(stack: &[Line<'_>]) -> Option<String> {
    let (pattern, is_named) = innermost_calls(stack);
    Some(pattern).filter(|_| is_named)
}

/// Returns the innermost calls as a chain, and whether one has a name.
pub(super) fn innermost_calls(stack: &[Line<'_>]) -> (String, bool) {
    let call = |line: &Line<'_>| {
        let file = line.module.rsplit('/').next().unwrap_or_default();
        let is_vague = line.name.starts_with("operator()") && !line.symbol.is_empty();
        let name = match (is_vague, line.name) {
            (true, _) => line.symbol,
            (false, "") if file.is_empty() => return None,
            (false, "") => "*",
            (false, _) if line.is_private => "*",
            (false, name) => name,
        };
        Some(if file.is_empty() { name.to_owned() } else { format!("{name}@{file}") })
    };
    let (mut calls, mut named): (Vec<String>, usize) = (Vec::new(), 0);
    for line in &chained(stack) {
        let is_beginning =
            !calls.is_empty() && BEGINNINGS.iter().any(|name| line.name.starts_with(name));
        // One name and files say little: only the whole chain, with its beginning, is narrow.
        let is_vague = named < calls.len().min(2);
        if !is_vague && (is_beginning || calls.len() >= CALLS) {
            break;
        }
        calls.extend(call(line));
        named += usize::from(!is_beginning && !line.name.is_empty() && !line.is_private);
        if is_main(line.name) || is_beginning {
            break;
        }
    }
    let pattern = match &calls[..] {
        // A bare name would match anywhere.
        [only] if !is_call(only) => format!("{only}@*"),
        _ => calls.join(CALLED_BY),
    };
    (pattern, named != 0)
}

fn is_call(pattern: &str) -> bool {
    !pattern.contains('/')
        && !pattern.contains("@@")
        && pattern
            .rsplit_once('@')
            .is_some_and(|(function, module)| !function.is_empty() && !module.is_empty())
}

/// The callers of a program's or a thread's first function, with the names that glibc gives them.
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
    let is_chain =
        pattern.contains(CALLED_BY) || pattern.ends_with(CALLED_BY.trim_end()) || is_call(pattern);
    let frames =
        if is_chain { Frames::Chain(chain(pattern)?) } else { Frames::Anywhere(anywhere(pattern)) };
    Ok(Rule { hides, frames })
}

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

/// Returns the findings that a heading of heapwright hides.
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

/// Turns a pattern that may match anywhere into a pattern that must match the whole text.
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

/// Memcheck's types, versions 3.19 to 3.25, for errors that heapwright does not detect.
const UNSEEN: [&str; 9] = [
    "Param",
    "User",
    "CoreMem",
    "Jump",
    "Overlap",
    "FishyValue",
    "ReallocZero",
    "BadAlign",
    "BadSize",
];

fn is_sized(what: &str, word: &str) -> bool {
    let size = what.strip_prefix(word).unwrap_or_default();
    matches!(size, "1" | "2" | "4" | "8" | "16" | "32")
}

fn is_of_uninitialised(what: &str) -> bool {
    what == "Cond" || what == "Value0" || is_sized(what, "Value")
}

type Named = (String, Rule);

/// Parses the lines between the braces. An error has the line's number.
///
/// ```text
/// Memcheck:Leak              leaks; match-leak-kinds: definite, indirect, possible, reachable, all
/// Memcheck:Free              frees and reallocs that were wrong
/// Memcheck:Addr1 ... Addr32  accesses and writes that were wrong
/// Memcheck:Cond, Value8 ...  uninitialised values: by the stack that allocated the block
/// Heapwright:HEADING         the kind with this heading; also Heapwright:growth
/// others                     match nothing: other tools' blocks, and errors heapwright lacks
/// ```
///
/// The parameter (`write(buf)`) follows `Memcheck:Param`, as in valgrind.
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
    let is_ours = tools.iter().any(|name| name.eq_ignore_ascii_case("heapwright"));
    if !is_ours && !tools.contains(&"Memcheck") {
        // Another tool's block is not read; nor does valgrind read it.
        let (hides, frames) = (Hides::Nothing, Frames::Stack(Vec::new()));
        return Ok(((*name).to_owned(), Rule { hides, frames }));
    }
    let mut hides = match what {
        _ if is_ours => match heading(&what.to_ascii_lowercase()) {
            Some(hides) => hides,
            None => return Err((*at, format!("there is nothing of the type '{what}'"))),
        },
        "Leak" => Hides::Leaks(LEAKS.to_vec()),
        "Free" => Hides::Kinds(FREES.to_vec()),
        what if is_sized(what, "Addr") => Hides::Kinds(ACCESSES.to_vec()),
        what if is_of_uninitialised(what) => Hides::Kinds(vec![FindingKind::Uninitialised]),
        what if UNSEEN.contains(&what) => Hides::Nothing,
        _ => return Err((*at, format!("there is nothing of the type '{what}'"))),
    };
    let rest = match rest {
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

fn has_extra(what: &str) -> bool {
    matches!(what, "Param" | "FishyValue")
}

fn is_location(line: &str) -> bool {
    line == "..." || ["fun:", "obj:", "src:"].iter().any(|word| line.starts_with(word))
}

impl Frames {
    fn are_in(&self, stacks: &[Stack<'_>]) -> bool {
        match self {
            Self::Anywhere(pattern) => stacks.iter().flat_map(|stack| &stack.lines).any(|line| {
                [line.name, line.symbol, line.source, line.module]
                    .iter()
                    .any(|text| !text.is_empty() && is_name(pattern, text))
            }),
            Self::Chain(calls) => stacks.iter().any(|stack| begins(calls, &chained(&stack.lines))),
            Self::Stack(patterns) => {
                stacks.iter().any(|stack| stack.is_where && are_at_start_of(patterns, stack))
            }
        }
    }
}

/// Returns whether a stack begins with the frames of a block, with or without the inlined calls
/// that only a separate debug file names.
///
/// Valgrind's stacks begin in its own `malloc`, ours in the caller of `malloc`. If a block's first
/// line names an allocating or freeing function, the comparison starts at the called function
/// ([`super::innermost`]). If a function of the C library made the access, lines up to this
/// function count as matched, under its name or valgrind's names: `memcpy@@GLIBC_2.14`,
/// `__memcpy_avx_unaligned_erms`, `memmove`.
///
/// As in valgrind, a block is compared with the stack on which the mistake was seen. If only its
/// traces were found later, any stack of the finding may match. For a stack that was cut, only as
/// many lines of the block are compared as the stack has calls.
fn are_at_start_of(patterns: &[Pattern], stack: &Stack<'_>) -> bool {
    let is_visible = |line: &&Line<'_>| !(line.is_private && line.is_inlined);
    let visible: Vec<Line<'_>> = stack.lines.iter().filter(is_visible).copied().collect();
    are_at_start(patterns, &stack.lines, stack.innermost)
        || visible.len() < stack.lines.len() && are_at_start(patterns, &visible, stack.innermost)
}

fn are_at_start(patterns: &[Pattern], lines: &[Line<'_>], innermost: Innermost) -> bool {
    let most = most_lines(lines);
    let is_start = |patterns: &[Pattern], lines: &[Line<'_>], inside: usize| {
        let end = most.map_or(patterns.len(), |most| (most + inside).min(patterns.len()));
        begins(&patterns[..end], lines)
    };
    if let Innermost::Accessed(function) = innermost {
        let behind = behind_function(patterns, function);
        return is_start(patterns, lines, 0)
            || behind.is_some_and(|behind| is_start(behind, lines, 0));
    }
    let with = |(form, calls): (usize, &&[&'static str])| {
        // Only names, not wildcards, match the functions of other valgrind versions.
        let named = patterns
            .iter()
            .zip(*calls)
            .all(|(pattern, &name)| matches!(pattern, Pattern::Function(text) if text == name));
        if form != 0 && innermost.is_known() && !named {
            return false;
        }
        let module = innermost::MODULE;
        let inside = calls.iter().map(|&name| Line { name, module, ..Line::default() });
        let all: Vec<Line<'_>> = inside.chain(lines.iter().copied()).collect();
        // Valgrind's library is in other folders elsewhere.
        let skipped = usize::from(patterns.first().is_some_and(Pattern::is_library));
        is_start(&patterns[skipped..], &all[skipped..], calls.len() - skipped)
    };
    let is_named = patterns.first().is_some_and(Pattern::is_innermost);
    innermost.forms().iter().enumerate().any(with) || !is_named && is_start(patterns, lines, 0)
}

/// The most calls that valgrind's stacks have inside the C library before the function that the
/// program called: `strlen`, `__vfprintf_internal`, `printf`.
const INNER_CALLS: usize = 5;

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

/// Returns the lines to compare with chains: without plumbing at the start (unless all lines are
/// plumbing), and without inlined calls that only a separate debug file names.
fn chained<'a>(stack: &[Line<'a>]) -> Vec<Line<'a>> {
    let first = stack.iter().position(|line| !is_plumbing_name(line.name));
    let lines = stack[first.unwrap_or_default()..].iter();
    lines.filter(|line| !(line.is_private && line.is_inlined)).copied().collect()
}

/// The least number of calls of a stack that was cut: valgrind keeps twelve, one of them its own.
const CUT: usize = 11;

/// Returns the most lines of a block to compare with a stack, if the stack was cut. Valgrind leaves
/// out lines beyond `--num-callers`, too.
fn most_lines(stack: &[Line<'_>]) -> Option<usize> {
    let is_end = |line: &Line<'_>| {
        is_main(line.name) || BEGINNINGS.iter().any(|name| line.name.starts_with(name))
    };
    let is_cut = stack.len() >= CUT && !stack.last().is_some_and(is_end);
    is_cut.then_some(stack.len())
}

/// Returns whether a stack begins with these frames. After a mismatch, only the last `...` is tried
/// again, one frame later; that is enough.
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

/// The names of callers of `main`: valgrind's, the C library's, the linker's.
const BELOW_MAIN: &[&str] = &["(below main)", "__libc_start_main", "_start"];

/// The names of a thread's first call. Valgrind makes the C library use `clone`.
const CLONE: &[&str] = &["clone", "__clone", "clone3", "__clone3"];
const START_THREAD: &[&str] = &["start_thread"];

/// Gives callers of `main` and of a thread's function the names that valgrind has for them. Without
/// its debug file the C library has none for those of threads, the outermost two.
pub(super) fn add_names(lines: &mut [Line<'_>]) {
    let is_below = |name| BELOW_MAIN.contains(&name) || is_inside_start(name);
    let main = lines.iter().position(|line| line.name == "main").map_or(lines.len(), |at| at + 1);
    for (at, line) in lines.iter_mut().enumerate() {
        line.also = match line.name {
            name if at >= main || is_below(name) => BELOW_MAIN,
            name if CLONE.contains(&name) => CLONE,
            _ => &[],
        };
    }
    let is_of_c = |line: &Line<'_>| {
        let file = line.module.rsplit('/').next().unwrap_or_default();
        line.also.is_empty() && line.name.is_empty() && file.starts_with("libc.so")
    };
    if let [.., start, clone] = lines
        && is_of_c(start)
        && is_of_c(clone)
    {
        (start.also, clone.also) = (START_THREAD, CLONE);
    }
}

/// Returns whether valgrind calls a function of the C library `(below main)`.
fn is_inside_start(name: &str) -> bool {
    matches!(name, "__libc_start_call_main" | "generic_start_main")
}

/// Returns valgrind's name for an inlined function, without scope and parameters: `load` of
/// `ns::load(char const*)`.
pub(crate) fn short_name(name: &str) -> &str {
    let (mut depth, mut start, mut end) = (0_u32, 0, name.len());
    for (at, letter) in name.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 && at > start => {
                end = at;
                break;
            }
            ':' | ' ' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    let short = &name[start..end];
    short.split_once('<').map_or(short, |(bare, _)| bare)
}

/// Returns a module's path with links resolved, as valgrind names it.
fn real_path(module: &str) -> Option<Arc<str>> {
    static KNOWN: Mutex<BTreeMap<String, Option<Arc<str>>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(path) = known.get(module) {
        return path.clone();
    }
    let path = std::fs::canonicalize(module).ok();
    let path = path.and_then(|path| Some(Arc::from(path.to_str()?)));
    known.insert(module.to_owned(), path.clone());
    path
}

/// Returns a pattern without a symbol's version and a compiler's copy: `fopen` of
/// `fopen@@GLIBC_2.2.5` and of `fopen.constprop.0`, which debug information calls `fopen`.
fn without_version(pattern: &str) -> &str {
    let pattern = match pattern.split_once('@') {
        Some((name, _)) if !name.is_empty() => name,
        _ => pattern,
    };
    match pattern.split_once('.') {
        Some((name, _)) if !name.is_empty() && !name.contains(['*', '?']) => name,
        _ => pattern,
    }
}

impl Pattern {
    /// Returns whether it names an allocating or freeing function, or valgrind's library of them.
    fn is_innermost(&self) -> bool {
        match self {
            Self::AnyNumber => true,
            Self::Function(pattern) => innermost::is_any(|name| glob(pattern, name)),
            Self::Object(pattern) => self.is_library() || glob(pattern, innermost::MODULE),
            Self::Call(..) | Self::Source(_) => false,
        }
    }

    fn is_library(&self) -> bool {
        matches!(self, Self::Object(pattern) if pattern.contains("vgpreload_"))
    }

    fn matches(&self, line: &Line<'_>) -> bool {
        match self {
            Self::AnyNumber => true,
            Self::Call(function, module) => {
                let file = line.module.rsplit('/').next().unwrap_or_default();
                let names = [line.symbol, line.name];
                // Only wildcards match a function without a name.
                let is_named = names.iter().any(|text| is_name(function, text));
                is_named && module.as_ref().is_none_or(|module| glob(module, file))
            }
            Self::Function(name) => {
                let is = |text: &&str| is_name(name, text) || glob(without_version(name), text);
                let short = if line.is_inlined { short_name(line.name) } else { "" };
                let names = [line.symbol, line.name, short];
                let names = names.into_iter().filter(|name| !name.is_empty());
                let nameless = Some("???").filter(|_| line.name.is_empty());
                names.chain(line.also.iter().copied()).chain(nameless).any(|name| is(&name))
            }
            Self::Object(name) => {
                glob(name, line.module)
                    || real_path(line.module).is_some_and(|path| glob(name, &path))
            }
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

/// Returns whether a pattern matches a name. Constructors and destructors have several linker
/// names, of which valgrind and debug information prefer different ones.
fn is_name(pattern: &str, name: &str) -> bool {
    let is_mangled = name.starts_with("_Z") && pattern.contains("_Z");
    let same = || Some((structor(pattern)?, structor(name)?));
    glob(pattern, name) || is_mangled && same().is_some_and(|(pattern, name)| glob(&pattern, &name))
}

/// Returns a linker name with `C1` and `D1` for all kinds of constructors and destructors. `None`
/// without any.
fn structor(name: &str) -> Option<String> {
    let (mut bytes, mut at, mut has) = (name.as_bytes().to_vec(), 0, false);
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits != 0 {
            // The name in the source, after its length.
            let length = name.get(at..at + digits)?.parse().unwrap_or(0);
            at = (at + digits).saturating_add(length);
            continue;
        }
        if matches!(byte, b'C' | b'D')
            && matches!(bytes.get(at + 1..), Some([b'0'..=b'5', b'E' | b'I' | b'B' | b'*', ..]))
        {
            (bytes[at + 1], has) = (b'1', true);
            at += 1;
        }
        at += 1;
    }
    has.then(|| String::from_utf8(bytes).ok()).flatten()
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
    use heapwright_record::debug::{Call, Origin};

    fn suppressions(text: &str) -> Suppressions {
        let mut suppressions = Suppressions::default();
        suppressions.add(text, "file").expect("is right");
        suppressions
    }

    fn wrong(text: &str) -> String {
        Suppressions::default().add(text, "file").expect_err("is wrong").to_string()
    }

    const NOTHING: Line<'static> = Line {
        name: "",
        symbol: "",
        source: "",
        line: None,
        module: "",
        also: &[],
        is_private: false,
        is_inlined: false,
    };

    const STACK: [Line<'static>; 3] = [
        Line { name: "strdup", module: "/lib/libc.so.6", ..NOTHING },
        Line {
            name: "ns::load(char const*)",
            symbol: "_ZN2ns4loadEPKc",
            source: "/src/load.cc",
            line: Some(12),
            module: "/usr/bin/prog",
            ..NOTHING
        },
        Line {
            name: "main",
            source: "/src/main.cc",
            line: Some(3),
            module: "/usr/bin/prog",
            ..NOTHING
        },
    ];

    fn stack<'a>(lines: &[Line<'a>], innermost: Innermost) -> Stack<'a> {
        Stack { lines: lines.to_vec(), innermost, is_where: true }
    }

    const MADE: Innermost = Innermost::Allocated(Origin::Malloc);

    fn hidden(text: &str, kind: Kind) -> bool {
        let innermost = match kind {
            Kind::Error(kind) if FREES.contains(&kind) => Innermost::Freed(Call::Free),
            Kind::Error(_) => Innermost::Accessed(Function::Unknown),
            _ => MADE,
        };
        suppressions(text).hides(kind, &[stack(&STACK, innermost)]).is_some()
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
            let stack = stack(&STACK[1..], Innermost::Accessed(function));
            suppressions(&text).hides(overflow, &[stack]).is_some()
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
            "leak:strdup@libc.so*",
        ] {
            assert!(hidden(right, LOST), "{right}");
        }
        for wrong in [
            "leak:main@prog <-",
            "leak:main@prog",
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
        let all = [&[new], &STACK[..]].concat();
        let suggested = suggestion(&all).expect("has names");
        assert_eq!(suggested, "strdup@libc.so.6 <- ns::load(char const*)@prog <- main@prog");
        let hides = |suggested: &str, lines: &[Line<'static>]| {
            suppressions(&format!("leak:{suggested}")).hides(LOST, &[stack(lines, MADE)]).is_some()
        };
        let is_hidden = |lines: &[Line<'static>]| hides(&suggested, lines);
        assert!(is_hidden(&all) && is_hidden(&STACK) && !is_hidden(&STACK[1..]));
        let main = suggestion(&STACK[2..]).expect("has a name");
        assert_eq!(main, "main@prog");
        assert!(hides(&main, &STACK[2..]) && !hides(&main, &STACK[1..]));
        let bare = Line { name: "main", ..Line::default() };
        assert_eq!(suggestion(&[bare]).as_deref(), Some("main@*"));
        assert!(hides("main@*", &[bare]));
        assert_eq!(suggestion(&[]), None);
    }

    #[test]
    fn chains_of_files_alone_are_not_suggested() {
        let nameless = |module| Line { module, ..Line::default() };
        let (prog, libc) = (nameless("/bin/prog"), nameless("/lib/libc.so.6"));
        let start = Line { name: "__libc_start_main", ..libc };
        for stack in [&[prog][..], &[prog; 9], &[prog, prog, libc, start, prog], &[prog, start]] {
            assert_eq!(suggestion(stack), None);
        }
        // One name among files says as much as the whole stack.
        let chain = "strdup@libc.so.6 <- *@prog <- *@libc.so.6 <- __libc_start_main@libc.so.6";
        assert_eq!(suggestion(&[STACK[0], prog, libc, start, prog]).as_deref(), Some(chain));
        let five = [prog, prog, prog, prog, STACK[2], prog];
        assert!(suggestion(&five).is_some_and(|chain| chain.ends_with("*@prog <- main@prog")));
    }

    #[test]
    fn kinds_of_constructors_and_of_clone_are_one_function() {
        let is_hidden = |pattern: &str, symbol: &'static str| {
            let stack = [Line { symbol, name: "f", ..Line::default() }];
            let block = format!("{{\na\nMemcheck:Leak\nfun:malloc\nfun:{pattern}\n}}");
            suppressions(&block)
                .hides(
                    LOST,
                    &[super::Stack { lines: stack.into(), innermost: MADE, is_where: true }],
                )
                .is_some()
        };
        for (pattern, symbol) in [
            ("_ZN4CartC1Ei", "_ZN4CartC2Ei"),
            ("_ZN4CartD0Ev", "_ZN4CartD1Ev"),
            ("_ZN4CartC1IiEET_", "_ZN4CartC4IiEET_"),
            ("_ZN4CartC1E*", "_ZN4CartC2Ei"),
            ("_ZN*CartC1Ei", "_ZN4CartC2Ei"),
            ("_ZN4ListC1B5cxx11Ev", "_ZN4ListC2B5cxx11Ev"),
        ] {
            assert!(is_hidden(pattern, symbol), "{pattern} {symbol}");
        }
        for (pattern, symbol) in [
            ("_ZN4CartC1Ei", "_ZN4CartD1Ei"),
            ("_ZN4CartC1Ei", "_ZN4CartC2Ev"),
            ("_ZN3AC1E3addEv", "_ZN3AC2E3addEv"),
            ("_ZN18446744073709551615C1Ev", "_ZN18446744073709551615C2Ev"),
        ] {
            assert!(!is_hidden(pattern, symbol), "{pattern} {symbol}");
        }
        let thread = |names: [&'static str; 2]| {
            let line = |name| Line { name, module: "/lib/libc.so.6", ..Line::default() };
            let mut lines = vec![STACK[0], line(names[0]), line(names[1])];
            add_names(&mut lines);
            let text = "{\na\nMemcheck:Leak\nfun:strdup\nfun:start_thread\nfun:clone\n}";
            suppressions(text)
                .hides(LOST, &[super::Stack { lines, innermost: MADE, is_where: true }])
                .is_some()
        };
        assert!(thread(["start_thread", "clone3"]) && thread(["start_thread", "__clone"]));
        assert!(thread(["", ""]) && !thread(["", "read"]) && !thread(["write", ""]));
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
        // Valgrind, too, knows its tools by capital letters.
        assert!(!hidden(&block("memcheck:Lake", ""), LOST));
        assert!(!hidden(&block("Helgrind:Race", ""), LOST));
        assert!(!hidden(&block("drd:ConflictingAccess", "any\nfun:main"), LOST));
        assert!(!hidden(&block("Memcheck:ReallocZero", "...\nfun:main"), LOST));
    }

    #[test]
    fn the_first_line_is_the_function_that_was_called() {
        let is_hidden = |frames: &str, kind, innermost| {
            let types = if matches!(kind, Kind::Leak(_)) { "Leak" } else { "Free" };
            let text = format!("{{\na\nMemcheck:{types}\n{}\n}}", frames.replace(' ', "\n"));
            suppressions(&text).hides(kind, &[stack(&STACK, innermost)]).is_some()
        };
        let rest = "fun:strdup ... fun:main";
        for (origin, right, wrong) in [
            (Origin::Malloc, "fun:malloc fun:*alloc fun:m* fun:malloc\nfun:realloc", "fun:calloc"),
            (Origin::Calloc, "fun:calloc fun:*alloc obj:*vgpreload_*", "fun:malloc fun:realloc"),
            (Origin::Realloc, "fun:realloc", "fun:malloc fun:calloc fun:malloc\nfun:realloc"),
            (Origin::Aligned, "fun:memalign fun:aligned_alloc", "fun:posix_memalign fun:malloc"),
            (
                Origin::PosixMemalign,
                "fun:posix_memalign fun:memalign\nfun:posix_memalign",
                "fun:memalign fun:aligned_alloc fun:malloc",
            ),
            (Origin::New, "fun:_Znwm fun:_Zn* fun:_ZnwmRKSt9nothrow_t", "fun:_Znam fun:malloc"),
            (Origin::NewArray, "fun:_Znam fun:_Zna*", "fun:_Znwm fun:_ZnwmSt11align_val_t"),
            (Origin::AlignedNew, "fun:_ZnwmSt11align_val_t fun:_Znw*", "fun:_Znwm fun:memalign"),
            (Origin::Unknown, "fun:malloc fun:calloc fun:_Znwm fun:memalign", "fun:other"),
        ] {
            // For `posix_memalign`, memcheck's stacks begin with two calls.
            let any: &[&str] = match origin {
                Origin::PosixMemalign => &["...", "fun:* fun:*"],
                _ => &["...", "fun:*", "obj:*"],
            };
            for first in right.split(' ').chain(any.iter().copied()) {
                let made = Innermost::Allocated(origin);
                assert!(is_hidden(&format!("{first} {rest}"), LOST, made), "{origin:?} {first}");
            }
            for first in wrong.split(' ') {
                let made = Innermost::Allocated(origin);
                assert!(!is_hidden(&format!("{first} {rest}"), LOST, made), "{origin:?} {first}");
            }
            // A block without an allocating function is compared as it is.
            assert!(is_hidden(rest, LOST, Innermost::Allocated(origin)));
        }
        let freed = Kind::Error(FindingKind::InvalidFree);
        for (call, right, wrong) in [
            (Call::Free, "fun:free", "fun:_ZdlPv"),
            (Call::Delete, "fun:_ZdlPv", "fun:free"),
            (Call::Delete, "fun:_ZdlPvm", "fun:_ZdaPv"),
            (Call::DeleteArray, "fun:_ZdaPv", "fun:_ZdlPv"),
            (Call::Realloc, "fun:realloc", "fun:free"),
        ] {
            assert!(
                is_hidden(&format!("{right} {rest}"), freed, Innermost::Freed(call)),
                "{call:?}"
            );
            assert!(
                !is_hidden(&format!("{wrong} {rest}"), freed, Innermost::Freed(call)),
                "{call:?}"
            );
        }
    }

    #[test]
    fn callers_of_main_have_three_names_and_functions_without_a_name_one() {
        let below = |name| Line { name, also: BELOW_MAIN, ..Line::default() };
        let lines = [
            Line { name: "main", ..Line::default() },
            below(""),
            below("__libc_start_main"),
            below("_start"),
        ];
        let is_hidden = |frames: &str| {
            let text = format!("{{\na\nMemcheck:Leak\n{}\n}}", frames.replace('|', "\n"));
            suppressions(&text).hides(LOST, &[stack(&lines, MADE)]).is_some()
        };
        for right in [
            "fun:malloc|...|fun:(below main)",
            "fun:malloc|fun:main|fun:(below main)|fun:(below main)|fun:(below main)",
            "...|fun:__libc_start_main*",
            "...|fun:__libc_start_main@@GLIBC_2.34",
            "fun:malloc|...|fun:_start",
        ] {
            assert!(is_hidden(right), "{right}");
        }
        assert!(!is_hidden("fun:malloc|fun:(below main)") && !is_hidden("...|fun:(below mai)"));
        let nameless = [Line { module: "/lib/x.so", ..Line::default() }];
        let is_hidden = |frames: &str| {
            let text = format!("{{\na\nMemcheck:Leak\nfun:malloc\n{frames}\n}}");
            suppressions(&text).hides(LOST, &[stack(&nameless, MADE)]).is_some()
        };
        assert!(is_hidden("fun:*") && is_hidden("fun:???") && is_hidden("obj:*/x.so"));
        assert!(!is_hidden("fun:x*") && !is_hidden("fun:main"));
    }

    #[test]
    fn versions_of_symbols_do_not_count() {
        let lines = [Line { name: "fopen", ..Line::default() }, STACK[2]];
        let is_hidden = |frames: &str| {
            let text = format!("{{\na\nMemcheck:Leak\nfun:malloc\n{frames}\n}}");
            suppressions(&text).hides(LOST, &[stack(&lines, MADE)]).is_some()
        };
        for right in ["fun:fopen", "fun:fopen@@GLIBC_2.2.5", "fun:fopen@GLIBC_2.0", "fun:fo*@*"] {
            assert!(is_hidden(right), "{right}");
        }
        assert!(is_hidden("fun:fopen.constprop.0") && !is_hidden("fun:fopen64.part.0"));
        assert!(!is_hidden("fun:*.part.0"));
        assert!(!is_hidden("fun:fopen64@@GLIBC_2.2.5") && !is_hidden("fun:fope"));
    }

    #[test]
    fn calls_that_only_a_separate_debug_file_names_are_not_in_chains() {
        let private = |name, is_inlined| Line {
            name,
            module: "/lib/libc.so.6",
            is_private: true,
            is_inlined,
            ..Line::default()
        };
        let realpath = Line { name: "realpath", module: "/lib/libc.so.6", ..Line::default() };
        let with = [private("realpath_stk", true), realpath, private("inner", false), STACK[2]];
        let nameless = Line { module: "/lib/libc.so.6", ..Line::default() };
        let without = [realpath, nameless, STACK[2]];
        let suggested = suggestion(&with);
        assert_eq!(suggested.as_deref(), Some("realpath@libc.so.6 <- *@libc.so.6 <- main@prog"));
        assert_eq!(suggested, suggestion(&without));
        let rule = suppressions(&format!("leak:{}", suggested.expect("has names")));
        assert!(rule.hides(LOST, &[stack(&with, MADE)]).is_some());
        assert!(rule.hides(LOST, &[stack(&without, MADE)]).is_some());
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
                .hides(LOST, &[super::Stack { lines: stack, innermost: MADE, is_where: true }])
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
            ("{\n name\n Memcheck:Lake\n ...\n}", "file:3: there is nothing of the type 'Lake'"),
            ("{\n name\n Memcheck:Addr\n ...\n}", "file:3: there is nothing of the type 'Addr'"),
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
