//! Checks that a document follows protocol 4 for memcheck: the grammar of
//! `xml-output-protocol4.txt`, in a strict reading.
//!
//! ```text
//! document     <?xml version="1.0"?>, valgrindoutput, whose grammar is OUTPUT
//! element      no attributes; elements in the order of their rules, or text
//! also         errors have different numbers, and only errors are counted; a leak has its sizes
//! ```
//!
//! No reader in use is as strict. This file is for tests; the command's unit tests include it, too.

use quick_xml::Reader;
use quick_xml::events::Event;
use std::collections::HashSet;

#[derive(Clone, Copy, PartialEq)]
enum Times {
    Once,
    Maybe,
    Any,
    Some,
}
use Times::{Any, Maybe, Once, Some as AtLeastOne};

#[derive(Clone, Copy)]
enum Of {
    Text,
    Line,
    Number,
    Hexadecimal,
    Word(&'static [&'static str]),
    /// Text with a colon.
    Kind,
    Cdata,
    /// Any contents, even unescaped.
    Anything,
    Parts(&'static [Rule]),
}
use Of::{Anything, Cdata, Hexadecimal, Kind, Line, Number, Parts, Text, Word};

/// Elements of any of these names in any order.
type Rule = (Times, &'static [(&'static str, Of)]);

const OUTPUT: &[Rule] = &[
    (Once, &[("protocolversion", Word(&["4"]))]),
    (Once, &[("protocoltool", Word(&["memcheck"]))]),
    (Once, &[("preamble", Parts(&[(Any, &[("line", Text)])]))]),
    (Once, &[("pid", Number)]),
    (Once, &[("ppid", Number)]),
    (Once, &[("tool", Text)]),
    (Any, &[("logfilequalifier", Parts(&[(Once, &[("var", Text)]), (Once, &[("value", Text)])]))]),
    (Maybe, &[("usercomment", Anything)]),
    (Once, &[("args", Parts(&[(Once, &[("vargv", WORDS)]), (Once, &[("argv", WORDS)])]))]),
    (Once, &[("status", Parts(&[(Once, &[("state", Word(&["RUNNING"]))]), TIME]))]),
    (Any, ERRORS),
    (Once, &[("status", Parts(&[(Once, &[("state", Word(&["FINISHED"]))]), TIME]))]),
    (Any, ERRORS),
    (
        Once,
        &[("suppcounts", Parts(&[(Any, &[("pair", Parts(&[COUNT, (Once, &[("name", Text)])]))])]))],
    ),
];
const TIME: Rule = (Once, &[("time", Text)]);
const WORDS: Of = Parts(&[(Once, &[("exe", Text)]), (Any, &[("arg", Text)])]);
const COUNT: Rule = (Once, &[("count", Number)]);
const UNIQUE: Rule = (Once, &[("unique", Hexadecimal)]);
const ERRORS: &[(&str, Of)] = &[
    ("error", Parts(ERROR)),
    ("errorcounts", Parts(&[(Any, &[("pair", Parts(&[COUNT, UNIQUE]))])])),
];
const ERROR: &[Rule] = &[
    UNIQUE,
    (Once, &[("tid", Number)]),
    (Once, &[("kind", Word(&KINDS))]),
    (AtLeastOne, &[("what", Line), ("xwhat", Parts(XWHAT))]),
    (Once, STACK),
    (Any, &[("stack", Parts(FRAMES)), ("auxwhat", Line)]),
    (Maybe, &[("suppression", Parts(SUPPRESSION))]),
];
const XWHAT: &[Rule] = &[
    (Once, &[("text", Line)]),
    (Maybe, &[("leakedbytes", Number)]),
    (Maybe, &[("leakedblocks", Number)]),
];
const STACK: &[(&str, Of)] = &[("stack", Parts(FRAMES))];
const FRAMES: &[Rule] = &[(
    AtLeastOne,
    &[(
        "frame",
        Parts(&[
            (Once, &[("ip", Hexadecimal)]),
            (Maybe, &[("obj", Text)]),
            (Maybe, &[("fn", Text)]),
            (Maybe, &[("dir", Text)]),
            (Maybe, &[("file", Text)]),
            (Maybe, &[("line", Number)]),
        ]),
    )],
)];
const SUPPRESSION: &[Rule] = &[
    (Once, &[("sname", Text)]),
    (Once, &[("skind", Kind)]),
    (Maybe, &[("skaux", Text)]),
    (AtLeastOne, &[("sframe", Parts(&[(Once, &[("obj", Text), ("fun", Text)])]))]),
    (Once, &[("rawtext", Cdata)]),
];

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

/// Returns the first mistake in a document as an error.
pub(crate) fn check(text: &str) -> Result<(), String> {
    if text.lines().next() != Some("<?xml version=\"1.0\"?>") {
        return Err(String::from("the first line is no declaration"));
    }
    let output = tree(text)?;
    if output.name != "valgrindoutput" {
        return Err(format!("the document is of {}", output.name));
    }
    output.is(Parts(OUTPUT))?;
    let mut seen = HashSet::new();
    for part in &output.parts {
        match &*part.name {
            "error" => {
                let unique = part.text_of("unique");
                if !seen.insert(unique) {
                    return Err(format!("two errors are {unique}"));
                }
                let what = part.parts.iter().find(|part| part.name == "xwhat");
                let has_sizes = what.is_some_and(|what| what.parts.len() == 3);
                if has_sizes != part.text_of("kind").starts_with("Leak_") {
                    return Err(format!("{unique} has sizes, or is a leak without"));
                }
            }
            "errorcounts" => {
                let mut counted = part.parts.iter().map(|pair| pair.text_of("unique"));
                if let Some(other) = counted.find(|unique| !seen.contains(unique)) {
                    return Err(format!("{other} is counted, and no error"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// An element without attributes: elements, or text.
#[derive(Default)]
struct Element {
    name: String,
    parts: Vec<Element>,
    text: String,
    raw: String,
}

impl Element {
    /// Returns the text of the first part with this name.
    fn text_of(&self, name: &str) -> &str {
        self.parts.iter().find(|part| part.name == name).map_or("", |part| &part.text)
    }

    fn is(&self, of: Of) -> Result<(), String> {
        let digits = |text: &str, radix| {
            !text.is_empty() && text.chars().all(|letter| letter.is_digit(radix))
        };
        let is_right = match of {
            Parts(rules) => {
                self.follows(rules)?;
                self.text.trim().is_empty() && self.raw.is_empty()
            }
            Anything => true,
            Cdata => !self.raw.is_empty() && self.text.trim().is_empty() && self.parts.is_empty(),
            _ if !self.parts.is_empty() || !self.raw.is_empty() => false,
            Text => true,
            Line => !self.text.is_empty() && !self.text.contains('\n'),
            Number => digits(&self.text, 10),
            Hexadecimal => self.text.strip_prefix("0x").is_some_and(|text| digits(text, 16)),
            Word(words) => words.contains(&&*self.text),
            Kind => self.text.contains(':'),
        };
        if is_right { Ok(()) } else { Err(format!("{} is '{}'", self.name, self.text)) }
    }

    /// Checks that the parts follow the rules, in order.
    fn follows(&self, rules: &[Rule]) -> Result<(), String> {
        let mut rest = self.parts.iter().peekable();
        for (times, names) in rules {
            let mut found = 0;
            while let Some(part) = rest.peek()
                && let Some((_, of)) = names.iter().find(|(name, _)| part.name == *name)
                && (found == 0 || matches!(times, Any | AtLeastOne))
            {
                part.is(*of)?;
                rest.next();
                found += 1;
            }
            if found == 0 && matches!(times, Once | AtLeastOne) {
                return Err(format!("{} has no {} where it is due", self.name, names[0].0));
            }
        }
        rest.next().map_or(Ok(()), |part| Err(format!("{} has a {}", self.name, part.name)))
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
            // Comments and instructions are not in the protocol.
            other => return Err(format!("there is a {other:?}")),
        }
    }
    let [mut document] = <[Element; 1]>::try_from(open).map_err(|_| "an element has no end")?;
    match document.parts.len() {
        1 if document.text.trim().is_empty() => Ok(document.parts.remove(0)),
        _ => Err(String::from("the document is not one element")),
    }
}
