//! The reader: text to data. Each pair has the place where it was read.

use heapwright::gc::{Cell, Gc, Mutation};

use crate::machine::Root;
use crate::value::{Symbol, Value};

/// A place in the text: line and column from 1, in one number; 0: nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At(pub(crate) u32);

impl At {
    const NOWHERE: Self = Self(0);

    fn new(line: usize, column: usize) -> Self {
        Self((line.min(0xf_ffff) as u32) << 12 | column.min(0xfff) as u32)
    }
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::NOWHERE => Ok(()),
            Self(at) => write!(f, "{}:{}: ", at >> 12, at & 0xfff),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) at: At,
    pub(crate) message: String,
    /// Whether the text ends too soon, so that more of it may help.
    pub(crate) is_incomplete: bool,
}

impl Failure {
    pub(crate) fn new(at: At, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), is_incomplete: false }
    }
}

pub(crate) fn symbol<'gc>(
    mc: &Mutation<'gc>,
    root: Gc<'gc, Root<'gc>>,
    name: &str,
) -> Gc<'gc, Symbol<'gc>> {
    if let Some(&symbol) = root.symbols.borrow().get(name) {
        return symbol;
    }
    let symbol = mc.alloc(Symbol::new(name));
    root.symbols.borrow_mut(mc, root).insert(name.to_owned(), symbol);
    symbol
}

pub(crate) struct Reader<'t> {
    rest: std::iter::Peekable<std::str::Chars<'t>>,
    line: usize,
    column: usize,
    pub(crate) consumed: usize,
}

type Read<T> = Result<T, Failure>;

impl<'t> Reader<'t> {
    pub(crate) fn new(text: &'t str, (line, column): (usize, usize)) -> Self {
        Self { rest: text.chars().peekable(), line, column, consumed: 0 }
    }

    pub(crate) fn place(&self) -> (usize, usize) {
        (self.line, self.column)
    }

    fn at(&self) -> At {
        At::new(self.line, self.column)
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        self.consumed += c.len_utf8();
        (self.line, self.column) =
            if c == '\n' { (self.line + 1, 1) } else { (self.line, self.column + 1) };
        Some(c)
    }

    fn skip(&mut self) {
        while let Some(&c) = self.rest.peek() {
            if c == ';' {
                while self.rest.peek().is_some_and(|&c| c != '\n') {
                    self.next();
                }
            } else if c.is_whitespace() {
                self.next();
            } else {
                return;
            }
        }
    }

    fn incomplete(&self, what: &str) -> Failure {
        let message = format!("{what} is not closed before the end");
        Failure { at: self.at(), message, is_incomplete: true }
    }

    pub(crate) fn read<'gc>(
        &mut self,
        mc: &Mutation<'gc>,
        root: Gc<'gc, Root<'gc>>,
    ) -> Read<Option<Value<'gc>>> {
        self.skip();
        let at = self.at();
        let Some(&c) = self.rest.peek() else { return Ok(None) };
        let datum = match c {
            '(' | '[' => {
                self.next();
                self.list(mc, root, if c == '(' { ')' } else { ']' }, at)?
            }
            ')' | ']' => return Err(Failure::new(at, format!("`{c}` closes nothing"))),
            '\'' | '`' | ',' => {
                self.next();
                let name = match c {
                    '\'' => "quote",
                    '`' => "quasiquote",
                    _ if self.rest.peek() == Some(&'@') => {
                        self.next();
                        "unquote-splicing"
                    }
                    _ => "unquote",
                };
                self.wrapped(mc, root, name, at)?
            }
            '"' => self.string(mc)?,
            '#' => self.hash(mc, root, at)?,
            _ => self.atom(mc, root),
        };
        Ok(Some(datum))
    }

    fn wrapped<'gc>(
        &mut self,
        mc: &Mutation<'gc>,
        root: Gc<'gc, Root<'gc>>,
        name: &str,
        at: At,
    ) -> Read<Value<'gc>> {
        let datum = self.read(mc, root)?.ok_or_else(|| self.incomplete("a quotation"))?;
        let rest = Value::cons_at(mc, datum, Value::Nil, at.0);
        Ok(Value::cons_at(mc, Value::Symbol(symbol(mc, root, name)), rest, at.0))
    }

    fn list<'gc>(
        &mut self,
        mc: &Mutation<'gc>,
        root: Gc<'gc, Root<'gc>>,
        close: char,
        at: At,
    ) -> Read<Value<'gc>> {
        let mut items: Vec<(Value<'gc>, At)> = Vec::new();
        let mut tail = Value::Nil;
        loop {
            self.skip();
            match self.rest.peek() {
                None => return Err(self.incomplete("a list")),
                Some(&c) if c == close => {
                    self.next();
                    break;
                }
                _ => {}
            }
            let here = self.at();
            let item = self.read(mc, root)?.ok_or_else(|| self.incomplete("a list"))?;
            if matches!(item, Value::Symbol(dot) if dot.name == ".") && !items.is_empty() {
                tail = self.read(mc, root)?.ok_or_else(|| self.incomplete("a list"))?;
                self.skip();
                if self.next() != Some(close) {
                    return Err(Failure::new(here, "one datum stands behind a dot"));
                }
                break;
            }
            items.push((item, here));
        }
        let list = items
            .iter()
            .rev()
            .fold(tail, |rest, &(item, here)| Value::cons_at(mc, item, rest, here.0));
        // The place of a form is that of its parenthesis.
        Ok(match (list, items.first()) {
            (Value::Pair(pair), Some(&(first, _))) => {
                Value::cons_at(mc, first, pair.cdr.get(), at.0)
            }
            _ => list,
        })
    }

    fn string<'gc>(&mut self, mc: &Mutation<'gc>) -> Read<Value<'gc>> {
        self.next();
        let mut text = String::new();
        loop {
            match self.next().ok_or_else(|| self.incomplete("a string"))? {
                '"' => return Ok(Value::Str(mc.alloc_str(&text))),
                '\\' => match self.next().ok_or_else(|| self.incomplete("a string"))? {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    c => text.push(c),
                },
                c => text.push(c),
            }
        }
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(&c) = self.rest.peek() {
            if c.is_whitespace() || "()[]\"';`,".contains(c) {
                break;
            }
            word.push(c);
            self.next();
        }
        word
    }

    fn hash<'gc>(
        &mut self,
        mc: &Mutation<'gc>,
        root: Gc<'gc, Root<'gc>>,
        at: At,
    ) -> Read<Value<'gc>> {
        self.next();
        match self.rest.peek() {
            Some('(') => {
                self.next();
                let items = self.list(mc, root, ')', at)?.items();
                let items = items.ok_or_else(|| Failure::new(at, "a vector has no dot"))?;
                Ok(Value::Vector(mc.alloc_slice(items.len(), |n| Cell::new(items[n]))))
            }
            Some('\\') => {
                self.next();
                let first = self.next().ok_or_else(|| self.incomplete("a character"))?;
                let mut word = String::from(first);
                if first.is_alphabetic() {
                    word += &self.word();
                }
                match word.as_str() {
                    "space" => Ok(Value::Char(' ')),
                    "newline" => Ok(Value::Char('\n')),
                    "tab" => Ok(Value::Char('\t')),
                    _ if word.chars().count() == 1 => Ok(Value::Char(first)),
                    _ => Err(Failure::new(at, format!("there is no character `#\\{word}`"))),
                }
            }
            _ => match self.word().as_str() {
                "t" | "true" => Ok(Value::Bool(true)),
                "f" | "false" => Ok(Value::Bool(false)),
                word => Err(Failure::new(at, format!("`#{word}` is nothing"))),
            },
        }
    }

    fn atom<'gc>(&mut self, mc: &Mutation<'gc>, root: Gc<'gc, Root<'gc>>) -> Value<'gc> {
        let word = self.word();
        if let Ok(number) = word.parse() {
            return Value::Int(number);
        }
        let digits = word.trim_start_matches(['+', '-', '.']);
        match word.parse() {
            Ok(number) if digits.starts_with(|c: char| c.is_ascii_digit()) => Value::Real(number),
            _ => Value::Symbol(symbol(mc, root, &word)),
        }
    }
}
