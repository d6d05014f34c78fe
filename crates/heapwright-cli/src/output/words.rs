//! Words that reports share: sentences of findings, printable names, and suppressions.

use super::units;
use crate::report::innermost::Innermost;
use crate::report::lines;
use crate::report::model::{Amount, Error, Happened, Leak, Report, StackId};
use crate::report::suppressions::{is_main, short_name, suggestion};
use crate::symbols::{Frame, Function};
use heapwright_record::debug::{self, Finding, FindingKind, Formatted, Reach, Role, Text};
use heapwright_record::escaped;
use std::fmt::Write;

pub(crate) fn sentence(finding: &Finding) -> String {
    let mut line = Formatted(String::new());
    finding.sentence(&mut line);
    line.0
}

/// Returns a sentence, with the error's effect if that is known.
pub(crate) fn happened(error: &Error) -> String {
    let mut line = sentence(&error.finding);
    if !error.effect.is_empty() {
        line += ": ";
        line += &error.effect;
    }
    line
}

/// Returns the line above the stack of a moment.
pub(crate) fn title(finding: &Finding, happened: &Happened) -> String {
    let mut line = Formatted(String::new());
    finding.title(happened.role, &happened.thread, &mut line);
    line.0
}

/// Makes bytes from outside printable in a line of any output.
pub(crate) fn printable(text: Text<'_>) -> String {
    let mut out = String::new();
    escaped(text.bytes, |piece| out.push_str(piece));
    if text.cut {
        out.push_str("...");
    }
    out
}

pub(crate) fn printable_text(text: &str) -> String {
    printable(Text::from(text))
}

/// Formats bytes as `abcdef01`.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the stack of the code at fault: the error's own or, if the error was found later, that
/// of the block's free or allocation.
pub(crate) fn fault_stack(error: &Error) -> StackId {
    let found_later = error.finding.is_found_later()
        && error.moments.iter().any(|happened| happened.role == Role::Here);
    let first = |skip: usize| {
        let mut stacks = error.moments.iter().skip(skip).map(|happened| happened.stack);
        stacks.find(|stack| *stack != StackId::NONE)
    };
    first(usize::from(found_later)).or_else(|| first(0)).unwrap_or(StackId::NONE)
}

/// Returns `twice file.c:12` for each function, or else `prog+0x10de`.
pub(crate) fn frame(frame: &Frame) -> Vec<String> {
    if frame.functions.is_empty() {
        return vec![match &frame.place {
            Some(place) => format!("{}+{:#x}", printable((&*place.path).into()), place.offset),
            None => format!("{:#x}", frame.address),
        }];
    }
    frame.functions.iter().map(described).collect()
}

/// Describes a function: `twice file.c:12:5`.
pub(crate) fn described(function: &Function) -> String {
    let mut words = Vec::new();
    if let Some(name) = &function.name {
        words.push(printable(Text::from(&**name)));
    }
    if let Some(source) = &function.source {
        let mut place = printable(Text::from(&**source));
        for number in [function.line, function.column].into_iter().map_while(|number| number) {
            let _ = write!(place, ":{number}");
        }
        words.push(place);
    }
    words.join(" ")
}

/// Returns `None` if the stack has no name for a suppression.
pub(crate) fn line_for(report: &Report, kind: &str, stack: StackId) -> Option<String> {
    let pattern = suggestion(&lines(&report.stacks, stack))?;
    Some(format!("{kind}:{}", printable_text(&pattern)))
}

/// Returns the calls that memcheck's stack would have before the first call of `stack`.
pub(crate) fn innermost(error: &Error, stack: StackId) -> Vec<String> {
    let happened = error.moments.iter().find(|happened| happened.stack == stack);
    match happened {
        Some(happened) if !error.finding.is_found_later() => {
            Innermost::of(&error.finding, happened.role).shown()
        }
        _ => Vec::new(),
    }
}

pub(crate) fn asked(finding: &Finding) -> Option<&'static str> {
    Some(finding.function.word()).filter(|_| finding.function != debug::Function::Unknown)
}

pub(crate) fn block_for(
    report: &Report,
    name: &str,
    kind: &str,
    leak: Option<Reach>,
    innermost: &[String],
    stack: StackId,
) -> Option<String> {
    let mut block = format!("{{\n   {name}\n   {kind}\n");
    if let Some(word) = leak.and_then(leak_kind) {
        let _ = writeln!(block, "   match-leak-kinds: {word}");
    }
    for function in innermost {
        let _ = writeln!(block, "   fun:{function}");
    }
    let mut lines = 0;
    for frame in report.stacks.outside(stack) {
        for line in block_lines(frame) {
            let _ = writeln!(block, "   {line}");
            lines += usize::from(!matches!(&*line, "..." | "obj:*"));
        }
        let names = frame.functions.iter().filter_map(|function| function.name.as_deref());
        // Other C libraries have other names for the callers of `main`.
        if names.into_iter().any(is_main) {
            break;
        }
    }
    (lines != 0).then(|| block + "}\n")
}

/// Returns the lines of a block for a frame. They match with and without separate debug files. Only
/// such files name private functions, and versions of the C library's symbols (valgrind prints
/// `fopen@@GLIBC_2.2.5`).
fn block_lines(frame: &Frame) -> Vec<String> {
    let path = frame.place.as_ref().map(|place| printable((&*place.path).into()));
    let file = path.as_deref().map(|path| path.rsplit('/').next().unwrap_or_default());
    // A library may be known by a link to it.
    let object = || match file {
        None => String::from("obj:*"),
        Some(file) if file.contains(".so") => format!("obj:*/{file}*"),
        Some(file) => format!("obj:*/{file}"),
    };
    let Some((outermost, inlined)) = frame.functions.split_last() else { return vec![object()] };
    let mut lines: Vec<String> = if inlined.iter().any(|function| function.is_private) {
        vec![String::from("...")]
    } else {
        let names = inlined.iter().map(|function| function.name.as_deref().map(short_name));
        // Valgrind knows inlined functions by their bare names; template parameters may follow.
        names.map(|name| name.map_or("...".into(), |name| format!("fun:{name}*"))).collect()
    };
    lines.push(match outermost.symbol.as_ref().or(outermost.name.as_ref()) {
        None => object(),
        Some(_) if outermost.is_private => object(),
        Some(name) if file.is_some_and(is_of_c_library) => format!("fun:{name}*"),
        Some(name) => format!("fun:{name}"),
    });
    lines
}

/// Returns whether a file is a part of the C library, whose symbols have versions, or replaces it.
fn is_of_c_library(file: &str) -> bool {
    [
        "libheapwright",
        "libc.so",
        "libc-",
        "libpthread",
        "libm.so",
        "libdl",
        "librt",
        "libresolv",
        "ld-linux",
    ]
    .iter()
    .any(|start| file.starts_with(start))
}

fn leak_kind(reach: Reach) -> Option<&'static str> {
    Some(match reach {
        Reach::Definite => "definite",
        Reach::Indirect => "indirect",
        Reach::Possible => "possible",
        Reach::Reachable => "reachable",
        _ => return None,
    })
}

/// Returns the sums of the leak checks in valgrind's form.
pub(super) fn leak_sums(report: &Report) -> [String; 5] {
    let lost = |words, reach| (words, report.total(reach));
    let sums = [
        lost("   definitely lost", Reach::Definite),
        lost("   indirectly lost", Reach::Indirect),
        lost("     possibly lost", Reach::Possible),
        lost("   still reachable", Reach::Reachable),
        ("        suppressed", report.suppressed.lost),
    ];
    sums.map(|(words, amount)| format!("{words}: {}", as_valgrind(amount)))
}

/// Formats an amount as valgrind does: `40 bytes in 1 blocks`.
pub(super) fn as_valgrind(Amount { blocks, bytes }: Amount) -> String {
    format!("{} bytes in {} blocks", units::count(bytes), units::count(blocks))
}

/// Returns the type of an error in valgrind's suppressions.
pub(crate) fn block_kind(kind: FindingKind) -> String {
    format!("Heapwright:{}", kind.heading())
}

/// The type of a leak in valgrind's suppressions.
pub(crate) const LEAK_BLOCK: &str = "Memcheck:Leak";

/// Returns the reach in LeakSanitizer's words.
pub(crate) fn directly(leak: &Leak) -> &'static str {
    match leak.reach {
        Reach::Definite => "Direct leak of",
        Reach::Indirect => "Indirect leak of",
        Reach::Possible => "Possible leak of",
        Reach::Reachable => "Still reachable:",
        _ => "Fate unknown:",
    }
}
