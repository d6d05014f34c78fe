//! The printer.

use std::fmt::Write;

use crate::value::Value;

/// Returns a value's text as a program writes it.
pub(crate) fn written(value: Value<'_>) -> String {
    let mut text = String::new();
    print(&mut text, value, true, 0);
    text
}

/// Returns a value's text as people read it: strings without quotes.
pub(crate) fn displayed(value: Value<'_>) -> String {
    let mut text = String::new();
    print(&mut text, value, false, 0);
    text
}

/// The deepest nesting that is printed; three dots stand for deeper values.
const DEEP: usize = 200;
/// The most bytes of text. A list may be a ring, so its text may have no end.
const LONG: usize = 100_000;

fn print(text: &mut String, value: Value<'_>, quote: bool, depth: usize) {
    if depth > DEEP || text.len() > LONG {
        return text.push_str("...");
    }
    let done = match value {
        Value::Undefined | Value::Unspecified => Ok(()),
        Value::Nil => write!(text, "()"),
        Value::Bool(value) => write!(text, "{}", if value { "#t" } else { "#f" }),
        Value::Int(value) => write!(text, "{value}"),
        Value::Real(value) if value.fract() == 0.0 && value.abs() < 1e15 => {
            write!(text, "{value:.1}")
        }
        Value::Real(value) => write!(text, "{value}"),
        Value::Char(value) if !quote => write!(text, "{value}"),
        Value::Char(' ') => write!(text, "#\\space"),
        Value::Char('\n') => write!(text, "#\\newline"),
        Value::Char(value) => write!(text, "#\\{value}"),
        Value::Symbol(symbol) => write!(text, "{}", symbol.name),
        Value::Str(value) if quote => write!(text, "{:?}", &*value),
        Value::Str(value) => write!(text, "{value}"),
        Value::Vector(values) => {
            text.push_str("#(");
            for (n, value) in values.iter().enumerate() {
                if n > 0 {
                    text.push(' ');
                }
                print(text, value.get(), quote, depth + 1);
            }
            write!(text, ")")
        }
        Value::Pair(first) => {
            text.push('(');
            print(text, first.car.get(), quote, depth + 1);
            let mut rest = first.cdr.get();
            while let Value::Pair(pair) = rest {
                if text.len() > LONG {
                    break;
                }
                text.push(' ');
                print(text, pair.car.get(), quote, depth + 1);
                rest = pair.cdr.get();
            }
            if !matches!(rest, Value::Nil) {
                text.push_str(" . ");
                print(text, rest, quote, depth + 1);
            }
            write!(text, ")")
        }
        Value::Table(table) => write!(text, "#<table of {}>", table.entries.borrow().len()),
        Value::Closure(closure) => match closure.code.name {
            Some(name) => write!(text, "#<procedure {}>", name.name),
            None => write!(text, "#<procedure>"),
        },
        Value::Primitive(primitive) => write!(text, "#<procedure {}>", primitive.name),
        Value::Continuation(_) => write!(text, "#<continuation>"),
        Value::Place(_) => write!(text, "#<place>"),
    };
    done.expect("a string takes what is written to it");
}
