//! Whether a document is one of protocol 4 for memcheck: the grammar of `xml-output-protocol4.txt`, read strictly.
//!
//! ```text
//! document     <?xml version="1.0"?>, valgrindoutput
//! output       protocolversion protocoltool preamble pid ppid tool qualifier* usercomment? args
//!              status(RUNNING) (errorcounts | error)* status(FINISHED) (errorcounts | error)* suppcounts
//! error        unique tid kind what what? stack (auxwhat | stack)* suppression?
//! what         what: one line | xwhat: text, leakedbytes leakedblocks where the kind is a leak's
//! stack        frame+
//! frame        ip obj? fn? dir? file? line?
//! suppression  sname skind skaux? sframe+ rawtext of CDATA
//! sframe       obj | fun
//! ```
//!
//! No reader in the wild is as strict: what passes here is what all of them were written for. Tests only; those of the
//! command include this file, too.

use quick_xml::Reader;
use quick_xml::events::Event;
use std::collections::HashSet;

/// What memcheck finds.
const KINDS: [&str; 15] = [
    "InvalidFree",
    "MismatchedFree",
    "InvalidRead",
    "InvalidWrite",
    "InvalidJump",
    "Overlap",
    "InvalidMemPool",
    "UninitCondition",
    "UninitValue",
    "SyscallParam",
    "ClientCheck",
    "Leak_DefinitelyLost",
    "Leak_IndirectlyLost",
    "Leak_PossiblyLost",
    "Leak_StillReachable",
];

/// What is wrong with a document, if anything is.
pub(crate) fn check(text: &str) -> Result<(), String> {
    if text.lines().next() != Some("<?xml version=\"1.0\"?>") {
        return Err(String::from("the first line is no declaration"));
    }
    let output = tree(text)?;
    if output.name != "valgrindoutput" {
        return Err(format!("the document is of {}", output.name));
    }
    let mut parts = output.parts();
    if parts.number("protocolversion")? != 4 {
        return Err(String::from("the protocol is another"));
    }
    parts.word("protocoltool", &["memcheck"])?;
    let mut preamble = parts.one("preamble")?.parts();
    while preamble.text_if("line")?.is_some() {}
    preamble.end()?;
    parts.number("pid")?;
    parts.number("ppid")?;
    parts.text("tool")?;
    while let Some(qualifier) = parts.maybe("logfilequalifier") {
        let mut parts = qualifier.parts();
        parts.text("var")?;
        parts.text("value")?;
        parts.end()?;
    }
    // Whatever it was: not even escaped.
    parts.maybe("usercomment");
    let mut args = parts.one("args")?.parts();
    for name in ["vargv", "argv"] {
        let mut words = args.one(name)?.parts();
        words.text("exe")?;
        while words.text_if("arg")?.is_some() {}
        words.end()?;
    }
    args.end()?;
    let mut seen = HashSet::new();
    for state in ["RUNNING", "FINISHED"] {
        let mut status = parts.one("status")?.parts();
        status.word("state", &[state])?;
        status.text("time")?;
        status.end()?;
        loop {
            if let Some(one) = parts.maybe("error") {
                let unique = error(one)?;
                if !seen.insert(unique) {
                    return Err(format!("two errors are {unique:#x}"));
                }
            } else if let Some(counts) = parts.maybe("errorcounts") {
                let mut pairs = counts.parts();
                while let Some(pair) = pairs.maybe("pair") {
                    let mut pair = pair.parts();
                    pair.number("count")?;
                    let unique = pair.hexadecimal("unique")?;
                    pair.end()?;
                    if !seen.contains(&unique) {
                        return Err(format!("{unique:#x} is counted, and no error"));
                    }
                }
                pairs.end()?;
            } else {
                break;
            }
        }
    }
    let mut pairs = parts.one("suppcounts")?.parts();
    while let Some(pair) = pairs.maybe("pair") {
        let mut pair = pair.parts();
        pair.number("count")?;
        pair.text("name")?;
        pair.end()?;
    }
    pairs.end()?;
    parts.end()
}

fn error(error: &Element) -> Result<u64, String> {
    let mut parts = error.parts();
    let unique = parts.hexadecimal("unique")?;
    parts.number("tid")?;
    let kind = parts.word("kind", &KINDS)?;
    let is_leak = kind.starts_with("Leak_");
    if !what(&mut parts, is_leak)? {
        return Err(format!("{unique:#x} does not say what it is"));
    }
    what(&mut parts, is_leak)?;
    stack(parts.one("stack")?)?;
    loop {
        if let Some(one) = parts.maybe("stack") {
            stack(one)?;
        } else if let Some(line) = parts.text_if("auxwhat")? {
            single(line)?;
        } else {
            break;
        }
    }
    if let Some(one) = parts.maybe("suppression") {
        suppression(one)?;
    }
    parts.end()?;
    Ok(unique)
}

/// Whether there was a description, in one of its two forms.
fn what(parts: &mut Parts<'_>, is_leak: bool) -> Result<bool, String> {
    if let Some(line) = parts.text_if("what")? {
        single(line)?;
        return if is_leak { Err(String::from("a leak has no sizes")) } else { Ok(true) };
    }
    let Some(what) = parts.maybe("xwhat") else { return Ok(false) };
    let mut parts = what.parts();
    single(parts.text("text")?)?;
    if is_leak {
        parts.number("leakedbytes")?;
        parts.number("leakedblocks")?;
    }
    parts.end()?;
    Ok(true)
}

fn stack(stack: &Element) -> Result<(), String> {
    let mut frames = stack.parts();
    let mut frame = Some(frames.one("frame")?);
    while let Some(one) = frame {
        let mut parts = one.parts();
        parts.hexadecimal("ip")?;
        for name in ["obj", "fn", "dir", "file"] {
            parts.text_if(name)?;
        }
        if parts.rest.first().is_some_and(|part| part.name == "line") {
            parts.number("line")?;
        }
        parts.end()?;
        frame = frames.maybe("frame");
    }
    frames.end()
}

fn suppression(suppression: &Element) -> Result<(), String> {
    let mut parts = suppression.parts();
    parts.text("sname")?;
    let kind = parts.text("skind")?;
    if !kind.contains(':') {
        return Err(format!("'{kind}' is no TOOL:TYPE"));
    }
    parts.text_if("skaux")?;
    let mut frame = Some(parts.one("sframe")?);
    while let Some(one) = frame {
        let mut names = one.parts();
        if names.text_if("obj")?.is_none() {
            names.text("fun")?;
        }
        names.end()?;
        frame = parts.maybe("sframe");
    }
    let raw = parts.one("rawtext")?;
    if raw.raw.is_empty() || !raw.text.trim().is_empty() || !raw.parts.is_empty() {
        return Err(String::from("a suppression's text is not in CDATA"));
    }
    parts.end()
}

fn single(line: &str) -> Result<(), String> {
    if line.is_empty() || line.contains('\n') {
        return Err(format!("'{line}' is not one line"));
    }
    Ok(())
}

/// An element without attributes: elements, or text.
#[derive(Default)]
struct Element {
    name: String,
    parts: Vec<Element>,
    text: String,
    /// What stood in CDATA sections.
    raw: String,
}

impl Element {
    fn parts(&self) -> Parts<'_> {
        Parts { of: self, rest: &self.parts }
    }
}

/// The elements of an element that have not been looked at.
struct Parts<'a> {
    of: &'a Element,
    rest: &'a [Element],
}

impl<'a> Parts<'a> {
    fn maybe(&mut self, name: &str) -> Option<&'a Element> {
        let (first, rest) = self.rest.split_first()?;
        (first.name == name).then(|| self.rest = rest)?;
        Some(first)
    }

    fn one(&mut self, name: &str) -> Result<&'a Element, String> {
        let found = self.rest.first().map_or("nothing", |part| &part.name);
        let wrong = format!("{} has {found} where {name} is due", self.of.name);
        self.maybe(name).ok_or(wrong)
    }

    fn text_if(&mut self, name: &str) -> Result<Option<&'a str>, String> {
        match self.maybe(name) {
            Some(part) if part.parts.is_empty() && part.raw.is_empty() => Ok(Some(&part.text)),
            Some(part) => Err(format!("{} is not text", part.name)),
            None => Ok(None),
        }
    }

    fn text(&mut self, name: &str) -> Result<&'a str, String> {
        let part = self.one(name)?;
        (Parts { of: self.of, rest: std::slice::from_ref(part) }).text_if(name)?;
        Ok(&part.text)
    }

    fn word(&mut self, name: &str, words: &[&str]) -> Result<&'a str, String> {
        let text = self.text(name)?;
        words.contains(&text).then_some(text).ok_or(format!("{name} is '{text}'"))
    }

    fn number(&mut self, name: &str) -> Result<i64, String> {
        let text = self.text(name)?;
        let is = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is).ok_or(format!("{name} is '{text}'"))
    }

    fn hexadecimal(&mut self, name: &str) -> Result<u64, String> {
        let text = self.text(name)?;
        let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'));
        let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        number.ok_or(format!("{name} is '{text}'"))
    }

    /// Nothing is left, and there was no text between.
    fn end(&self) -> Result<(), String> {
        match self.rest.first() {
            Some(part) => Err(format!("{} has {} at its end", self.of.name, part.name)),
            None if self.of.text.trim().is_empty() && self.of.raw.is_empty() => Ok(()),
            None => Err(format!("{} has text: {}", self.of.name, self.of.text.trim())),
        }
    }
}

fn tree(text: &str) -> Result<Element, String> {
    let mut reader = Reader::from_str(text);
    let mut open = vec![Element::default()];
    loop {
        let event = reader.read_event().map_err(|error| error.to_string())?;
        let top = open.last_mut().ok_or("an element ends that did not begin")?;
        match event {
            Event::Decl(_) => {}
            Event::Start(tag) | Event::Empty(tag) if tag.attributes().next().is_some() => {
                return Err(String::from("there are attributes"));
            }
            Event::Start(tag) => {
                let name = String::from_utf8_lossy(tag.name().as_ref()).into_owned();
                open.push(Element { name, ..Element::default() });
            }
            Event::Empty(tag) => {
                let name = String::from_utf8_lossy(tag.name().as_ref()).into_owned();
                top.parts.push(Element { name, ..Element::default() });
            }
            Event::End(_) => {
                let done = open.pop().ok_or("an element ends that did not begin")?;
                let above = open.last_mut().ok_or("an element ends that did not begin")?;
                above.parts.push(done);
            }
            Event::Text(part) => top.text += &String::from_utf8_lossy(&part),
            Event::CData(part) => top.raw += &String::from_utf8_lossy(&part),
            Event::GeneralRef(part) => {
                let name = String::from_utf8_lossy(&part).into_owned();
                let is_known = part.is_char_ref()
                    || quick_xml::escape::resolve_predefined_entity(&name).is_some();
                if !is_known {
                    return Err(format!("there is no &{name};"));
                }
                top.text.push('&');
            }
            Event::Eof => break,
            // Comments and instructions: nothing of the protocol's.
            other => return Err(format!("there is a {other:?}")),
        }
    }
    let [mut document] = <[Element; 1]>::try_from(open).map_err(|_| "an element has no end")?;
    match document.parts.len() {
        1 if document.text.trim().is_empty() => Ok(document.parts.remove(0)),
        _ => Err(String::from("the document is not one element")),
    }
}
