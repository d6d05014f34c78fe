//! Procedures written in Rust.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::io::Write;

use heapwright::gc::{Cell, Gc, Lock, Mutation};

use crate::machine::{Primitive, Root, Run};
use crate::print::{displayed, written};
use crate::read::symbol;
use crate::value::{Key, Table, Value};

type Result<'gc> = std::result::Result<Value<'gc>, String>;
type Arguments<'a, 'gc> = &'a [Value<'gc>];

thread_local! {
    /// Printed text that is not yet written.
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn print(text: &str) {
    OUTPUT.with_borrow_mut(|output| {
        output.extend_from_slice(text.as_bytes());
        if output.len() > 1 << 16 {
            write_out(output);
        }
    });
}

fn write_out(output: &mut Vec<u8>) {
    // Errors are ignored here: the next write elsewhere reports them.
    let _closed = std::io::stdout().write_all(output);
    output.clear();
}

pub(crate) fn flush() {
    OUTPUT.with_borrow_mut(write_out);
}

pub(crate) fn named(name: &str) -> &'static Primitive {
    ALL.iter().find(|primitive| primitive.name == name).expect("a primitive")
}

pub(crate) fn install<'gc>(mc: &Mutation<'gc>, root: Gc<'gc, Root<'gc>>) {
    for primitive in ALL {
        let symbol = symbol(mc, root, primitive.name);
        symbol.global.set(mc, symbol, Value::Primitive(primitive));
    }
}

fn wants(what: &str, value: Value<'_>) -> String {
    format!("{what} is wanted, not {}", written(value))
}

fn int(value: Value<'_>) -> std::result::Result<i64, String> {
    match value {
        Value::Int(value) => Ok(value),
        other => Err(wants("a whole number", other)),
    }
}

fn index(value: Value<'_>, length: usize) -> std::result::Result<usize, String> {
    let at = int(value)?;
    match usize::try_from(at) {
        Ok(index) if index < length => Ok(index),
        _ => Err(format!("there is nothing at {at} of {length}")),
    }
}

#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    Real(f64),
}

impl Number {
    fn of(value: Value<'_>) -> std::result::Result<Self, String> {
        match value {
            Value::Int(value) => Ok(Self::Int(value)),
            Value::Real(value) => Ok(Self::Real(value)),
            other => Err(wants("a number", other)),
        }
    }

    fn real(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Real(value) => value,
        }
    }

    fn value<'gc>(self) -> Value<'gc> {
        match self {
            Self::Int(value) => Value::Int(value),
            Self::Real(value) => Value::Real(value),
        }
    }
}

fn both(
    a: Number,
    b: Number,
    whole: fn(i64, i64) -> Option<i64>,
    real: fn(f64, f64) -> f64,
) -> Number {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => {
            whole(a, b).map_or_else(|| Number::Real(real(a as f64, b as f64)), Number::Int)
        }
        _ => Number::Real(real(a.real(), b.real())),
    }
}

fn fold<'gc>(
    first: i64,
    all: Arguments<'_, 'gc>,
    whole: fn(i64, i64) -> Option<i64>,
    real: fn(f64, f64) -> f64,
) -> Result<'gc> {
    let mut sum = Number::Int(first);
    for &value in all {
        sum = both(sum, Number::of(value)?, whole, real);
    }
    Ok(sum.value())
}

fn minus<'gc>(
    neutral: i64,
    all: Arguments<'_, 'gc>,
    whole: fn(i64, i64) -> Option<i64>,
    real: fn(f64, f64) -> f64,
) -> Result<'gc> {
    let mut result = if all.len() == 1 { Number::Int(neutral) } else { Number::of(all[0])? };
    for &value in &all[usize::from(all.len() > 1)..] {
        result = both(result, Number::of(value)?, whole, real);
    }
    Ok(result.value())
}

fn compare<'gc>(all: Arguments<'_, 'gc>, wanted: fn(Ordering) -> bool) -> Result<'gc> {
    for pair in all.windows(2) {
        let order = match (Number::of(pair[0])?, Number::of(pair[1])?) {
            (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
            (a, b) => a.real().partial_cmp(&b.real()),
        };
        if !order.is_some_and(wanted) {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn whole<'gc>(all: Arguments<'_, 'gc>, with: fn(i64, i64) -> Option<i64>) -> Result<'gc> {
    let (a, b) = (int(all[0])?, int(all[1])?);
    with(a, b).map(Value::Int).ok_or_else(|| format!("{a} by {b} is nothing"))
}

fn pair<'gc>(value: Value<'gc>) -> std::result::Result<Gc<'gc, crate::value::Pair<'gc>>, String> {
    match value {
        Value::Pair(pair) => Ok(pair),
        other => Err(wants("a pair", other)),
    }
}

fn list<'gc>(value: Value<'gc>) -> std::result::Result<Vec<Value<'gc>>, String> {
    value.items().ok_or_else(|| wants("a list", value))
}

fn text<'gc>(value: Value<'gc>) -> std::result::Result<&'gc str, String> {
    match value {
        Value::Str(text) => Ok(text.as_str()),
        other => Err(wants("a string", other)),
    }
}

fn table<'gc>(value: Value<'gc>) -> std::result::Result<Gc<'gc, Table<'gc>>, String> {
    match value {
        Value::Table(table) => Ok(table),
        other => Err(wants("a table", other)),
    }
}

/// Applies `car` and `cdr`, in the order of the letters in the name.
fn path<'gc>(value: Value<'gc>, letters: &str) -> Result<'gc> {
    letters.chars().rev().try_fold(value, |value, letter| {
        let pair = pair(value)?;
        Ok(if letter == 'a' { pair.car.get() } else { pair.cdr.get() })
    })
}

fn member<'gc>(all: Arguments<'_, 'gc>, same: fn(Value<'gc>, Value<'gc>) -> bool) -> Result<'gc> {
    let mut rest = all[1];
    while let Value::Pair(pair) = rest {
        if same(pair.car.get(), all[0]) {
            return Ok(rest);
        }
        rest = pair.cdr.get();
    }
    Ok(Value::Bool(false))
}

fn associated<'gc>(
    all: Arguments<'_, 'gc>,
    same: fn(Value<'gc>, Value<'gc>) -> bool,
) -> Result<'gc> {
    let mut rest = all[1];
    while let Value::Pair(entry) = rest {
        if same(pair(entry.car.get())?.car.get(), all[0]) {
            return Ok(entry.car.get());
        }
        rest = entry.cdr.get();
    }
    Ok(Value::Bool(false))
}

fn slice_of<'a>(all: Arguments<'_, '_>, text: &'a str) -> std::result::Result<&'a str, String> {
    let place = |n: usize, or: usize| -> std::result::Result<usize, String> {
        let Some(&value) = all.get(n) else { return Ok(or) };
        let at = index(value, text.chars().count() + 1)?;
        Ok(text.char_indices().nth(at).map_or(text.len(), |(at, _)| at))
    };
    let (from, to) = (place(1, 0)?, place(2, text.len())?);
    text.get(from..to).ok_or_else(|| format!("there is nothing from {from} to {to}"))
}

fn order_texts<'gc>(all: Arguments<'_, 'gc>, wanted: fn(Ordering) -> bool) -> Result<'gc> {
    Ok(Value::Bool(wanted(text(all[0])?.cmp(text(all[1])?))))
}

macro_rules! primitives {
    ($($name:literal, $least:literal .. $most:expr, |$mc:pat_param, $root:pat_param, $all:pat_param| $body:expr;)*) => {
        &[
            $(Primitive {
                name: $name,
                least: $least,
                most: $most,
                run: Run::Plain({
                    fn run<'gc>(
                        $mc: &Mutation<'gc>,
                        $root: Gc<'gc, Root<'gc>>,
                        $all: Arguments<'_, 'gc>,
                    ) -> Result<'gc> {
                        $body
                    }
                    run
                }),
            },)*
            Primitive { name: "apply", least: 2, most: None, run: Run::Apply },
            Primitive { name: "call/cc", least: 1, most: Some(1), run: Run::CallCc },
            Primitive {
                name: "call-with-current-continuation",
                least: 1,
                most: Some(1),
                run: Run::CallCc,
            },
        ]
    };
}

fn is<'gc>(truth: bool) -> Result<'gc> {
    Ok(Value::Bool(truth))
}

static ALL: &[Primitive] = primitives! {
    "+", 0 .. None, |_, _, all| fold(0, all, i64::checked_add, |a, b| a + b);
    "*", 0 .. None, |_, _, all| fold(1, all, i64::checked_mul, |a, b| a * b);
    "-", 1 .. None, |_, _, all| minus(0, all, i64::checked_sub, |a, b| a - b);
    "/", 1 .. None, |_, _, all| minus(1, all, |a, b| (b != 0 && a % b == 0).then(|| a / b), |a, b| a / b);
    "=", 1 .. None, |_, _, all| compare(all, Ordering::is_eq);
    "<", 1 .. None, |_, _, all| compare(all, Ordering::is_lt);
    ">", 1 .. None, |_, _, all| compare(all, Ordering::is_gt);
    "<=", 1 .. None, |_, _, all| compare(all, Ordering::is_le);
    ">=", 1 .. None, |_, _, all| compare(all, Ordering::is_ge);
    "quotient", 2 .. Some(2), |_, _, all| whole(all, i64::checked_div);
    "remainder", 2 .. Some(2), |_, _, all| whole(all, i64::checked_rem);
    "modulo", 2 .. Some(2), |_, _, all| whole(all, |a, b| {
        let rest = a.checked_rem(b)?;
        Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
    });
    "abs", 1 .. Some(1), |_, _, all| Ok(match Number::of(all[0])? {
        Number::Int(value) => Value::Int(value.saturating_abs()),
        Number::Real(value) => Value::Real(value.abs()),
    });
    "min", 1 .. None, |_, _, all| all[1..].iter().try_fold(all[0], |least, &value| {
        Ok(if compare(&[value, least], Ordering::is_lt)?.is_true() { value } else { least })
    });
    "max", 1 .. None, |_, _, all| all[1..].iter().try_fold(all[0], |most, &value| {
        Ok(if compare(&[value, most], Ordering::is_gt)?.is_true() { value } else { most })
    });
    "sqrt", 1 .. Some(1), |_, _, all| {
        let root = Number::of(all[0])?.real().sqrt();
        Ok(match all[0] {
            Value::Int(value) if root as i64 * root as i64 == value => Value::Int(root as i64),
            _ => Value::Real(root),
        })
    };
    "number?", 1 .. Some(1), |_, _, all| is(matches!(all[0], Value::Int(_) | Value::Real(_)));
    "integer?", 1 .. Some(1), |_, _, all| is(matches!(all[0], Value::Int(_)));
    "zero?", 1 .. Some(1), |_, _, all| is(Number::of(all[0])?.real() == 0.0);
    "even?", 1 .. Some(1), |_, _, all| is(int(all[0])? % 2 == 0);
    "odd?", 1 .. Some(1), |_, _, all| is(int(all[0])? % 2 != 0);
    "not", 1 .. Some(1), |_, _, all| is(!all[0].is_true());
    "eq?", 2 .. Some(2), |_, _, all| is(all[0].is_same(all[1]));
    "eqv?", 2 .. Some(2), |_, _, all| is(all[0].is_same(all[1]));
    "equal?", 2 .. Some(2), |_, _, all| is(all[0].is_equal(all[1]));
    "boolean?", 1 .. Some(1), |_, _, all| is(matches!(all[0], Value::Bool(_)));
    "symbol?", 1 .. Some(1), |_, _, all| is(matches!(all[0], Value::Symbol(_)));
    "string?", 1 .. Some(1), |_, _, all| is(matches!(all[0], Value::Str(_)));
    "char?", 1 .. Some(1), |_, _, all| is(matches!(all[0], Value::Char(_)));
    "vector?", 1 .. Some(1), |_, _, all| is(matches!(all[0], Value::Vector(_)));
    "pair?", 1 .. Some(1), |_, _, all| is(matches!(all[0], Value::Pair(_)));
    "null?", 1 .. Some(1), |_, _, all| is(matches!(all[0], Value::Nil));
    "list?", 1 .. Some(1), |_, _, all| is(all[0].items().is_some());
    "procedure?", 1 .. Some(1), |_, _, all| is(matches!(
        all[0],
        Value::Closure(_) | Value::Primitive(_) | Value::Continuation(_)
    ));
    "cons", 2 .. Some(2), |mc, _, all| Ok(Value::cons(mc, all[0], all[1]));
    "car", 1 .. Some(1), |_, _, all| Ok(pair(all[0])?.car.get());
    "cdr", 1 .. Some(1), |_, _, all| Ok(pair(all[0])?.cdr.get());
    "caar", 1 .. Some(1), |_, _, all| path(all[0], "aa");
    "cadr", 1 .. Some(1), |_, _, all| path(all[0], "ad");
    "cdar", 1 .. Some(1), |_, _, all| path(all[0], "da");
    "cddr", 1 .. Some(1), |_, _, all| path(all[0], "dd");
    "caddr", 1 .. Some(1), |_, _, all| path(all[0], "add");
    "cdddr", 1 .. Some(1), |_, _, all| path(all[0], "ddd");
    "cadddr", 1 .. Some(1), |_, _, all| path(all[0], "addd");
    "set-car!", 2 .. Some(2), |mc, _, all| {
        let pair = pair(all[0])?;
        pair.as_ref().car.set(mc, pair, all[1]);
        Ok(Value::Unspecified)
    };
    "set-cdr!", 2 .. Some(2), |mc, _, all| {
        let pair = pair(all[0])?;
        pair.as_ref().cdr.set(mc, pair, all[1]);
        Ok(Value::Unspecified)
    };
    "list", 0 .. None, |mc, _, all| Ok(Value::list(mc, all));
    "length", 1 .. Some(1), |_, _, all| Ok(Value::Int(list(all[0])?.len() as i64));
    "append", 0 .. None, |mc, _, all| {
        let Some((&last, first)) = all.split_last() else { return Ok(Value::Nil) };
        first.iter().rev().try_fold(last, |rest, &value| {
            Ok(list(value)?.iter().rev().fold(rest, |rest, &item| Value::cons(mc, item, rest)))
        })
    };
    "reverse", 1 .. Some(1), |mc, _, all| {
        Ok(list(all[0])?.iter().fold(Value::Nil, |rest, &item| Value::cons(mc, item, rest)))
    };
    "list-tail", 2 .. Some(2), |_, _, all| {
        (0..int(all[1])?).try_fold(all[0], |rest, _| Ok(pair(rest)?.cdr.get()))
    };
    "list-ref", 2 .. Some(2), |_, _, all| {
        let rest = (0..int(all[1])?).try_fold(all[0], |rest, _| pair(rest).map(|pair| pair.cdr.get()))?;
        Ok(pair(rest)?.car.get())
    };
    "memq", 2 .. Some(2), |_, _, all| member(all, Value::is_same);
    "memv", 2 .. Some(2), |_, _, all| member(all, Value::is_same);
    "member", 2 .. Some(2), |_, _, all| member(all, Value::is_equal);
    "assq", 2 .. Some(2), |_, _, all| associated(all, Value::is_same);
    "assv", 2 .. Some(2), |_, _, all| associated(all, Value::is_same);
    "assoc", 2 .. Some(2), |_, _, all| associated(all, Value::is_equal);
    "symbol->string", 1 .. Some(1), |mc, _, all| match all[0] {
        Value::Symbol(symbol) => Ok(Value::Str(mc.alloc_str(&symbol.name))),
        other => Err(wants("a symbol", other)),
    };
    "string->symbol", 1 .. Some(1), |mc, root, all| Ok(Value::Symbol(symbol(mc, root, text(all[0])?)));
    "string-length", 1 .. Some(1), |_, _, all| Ok(Value::Int(text(all[0])?.chars().count() as i64));
    "string-append", 0 .. None, |mc, _, all| {
        let texts: std::result::Result<Vec<_>, _> = all.iter().map(|&value| text(value)).collect();
        Ok(Value::Str(mc.join(&texts?)))
    };
    "substring", 2 .. Some(3), |mc, _, all| Ok(Value::Str(mc.alloc_str(slice_of(all, text(all[0])?)?)));
    "string-ref", 2 .. Some(2), |_, _, all| {
        let text = text(all[0])?;
        let at = index(all[1], text.len())?;
        let found = if text.is_ascii() { Some(text.as_bytes()[at] as char) } else { text.chars().nth(at) };
        found.map(Value::Char).ok_or_else(|| format!("there is nothing at {at}"))
    };
    "string=?", 2 .. Some(2), |_, _, all| order_texts(all, Ordering::is_eq);
    "string<?", 2 .. Some(2), |_, _, all| order_texts(all, Ordering::is_lt);
    "string->list", 1 .. Some(1), |mc, _, all| {
        Ok(text(all[0])?.chars().rev().fold(Value::Nil, |rest, c| Value::cons(mc, Value::Char(c), rest)))
    };
    "list->string", 1 .. Some(1), |mc, _, all| {
        let chars = list(all[0])?.into_iter().map(|value| match value {
            Value::Char(value) => Ok(value),
            other => Err(wants("a character", other)),
        });
        Ok(Value::Str(mc.alloc_str(&chars.collect::<std::result::Result<String, _>>()?)))
    };
    "number->string", 1 .. Some(1), |mc, _, all| {
        Number::of(all[0])?;
        Ok(Value::Str(mc.alloc_str(&written(all[0]))))
    };
    "string->number", 1 .. Some(1), |_, _, all| {
        let text = text(all[0])?;
        let real = || text.parse().map_or(Value::Bool(false), Value::Real);
        Ok(text.parse().map_or_else(|_| real(), Value::Int))
    };
    "char->integer", 1 .. Some(1), |_, _, all| match all[0] {
        Value::Char(value) => Ok(Value::Int(i64::from(u32::from(value)))),
        other => Err(wants("a character", other)),
    };
    "integer->char", 1 .. Some(1), |_, _, all| {
        let code = u32::try_from(int(all[0])?).ok().and_then(char::from_u32);
        code.map(Value::Char).ok_or_else(|| wants("the number of a character", all[0]))
    };
    "char=?", 2 .. Some(2), |_, _, all| is(all[0].is_same(all[1]));
    "make-vector", 1 .. Some(2), |mc, _, all| {
        let length = usize::try_from(int(all[0])?).map_err(|_| wants("a length", all[0]))?;
        let fill = all.get(1).copied().unwrap_or(Value::Int(0));
        Ok(Value::Vector(mc.alloc_slice(length, |_| Cell::new(fill))))
    };
    "vector", 0 .. None, |mc, _, all| Ok(Value::Vector(mc.alloc_slice(all.len(), |n| Cell::new(all[n]))));
    "vector-length", 1 .. Some(1), |_, _, all| match all[0] {
        Value::Vector(values) => Ok(Value::Int(values.len() as i64)),
        other => Err(wants("a vector", other)),
    };
    "vector-ref", 2 .. Some(2), |_, _, all| match all[0] {
        Value::Vector(values) => Ok(values[index(all[1], values.len())?].get()),
        other => Err(wants("a vector", other)),
    };
    "vector-set!", 3 .. Some(3), |mc, _, all| match all[0] {
        Value::Vector(values) => {
            values[index(all[1], values.len())?].set(mc, values, all[2]);
            Ok(Value::Unspecified)
        }
        other => Err(wants("a vector", other)),
    };
    "vector->list", 1 .. Some(1), |mc, _, all| match all[0] {
        Value::Vector(values) => {
            Ok(values.iter().rev().fold(Value::Nil, |rest, value| Value::cons(mc, value.get(), rest)))
        }
        other => Err(wants("a vector", other)),
    };
    "list->vector", 1 .. Some(1), |mc, _, all| {
        let items = list(all[0])?;
        Ok(Value::Vector(mc.alloc_slice(items.len(), |n| Cell::new(items[n]))))
    };
    "make-table", 0 .. Some(0), |mc, _, _| {
        Ok(Value::Table(mc.alloc(Table { entries: Lock::new(HashMap::new()) })))
    };
    "table-ref", 2 .. Some(3), |_, _, all| {
        let found = table(all[0])?.entries.borrow().get(&Key(all[1])).copied();
        Ok(found.or(all.get(2).copied()).unwrap_or(Value::Bool(false)))
    };
    "table-set!", 3 .. Some(3), |mc, _, all| {
        let table = table(all[0])?;
        table.entries.borrow_mut(mc, table).insert(Key(all[1]), all[2]);
        Ok(Value::Unspecified)
    };
    "table-delete!", 2 .. Some(2), |mc, _, all| {
        let table = table(all[0])?;
        table.entries.borrow_mut(mc, table).remove(&Key(all[1]));
        Ok(Value::Unspecified)
    };
    "table-count", 1 .. Some(1), |_, _, all| Ok(Value::Int(table(all[0])?.entries.borrow().len() as i64));
    "table->list", 1 .. Some(1), |mc, _, all| {
        let table = table(all[0])?;
        let entries = table.entries.borrow();
        let pairs = entries.iter().map(|(key, &value)| Value::cons(mc, key.0, value));
        Ok(pairs.fold(Value::Nil, |rest, entry| Value::cons(mc, entry, rest)))
    };
    "display", 1 .. Some(1), |_, _, all| {
        print(&displayed(all[0]));
        Ok(Value::Unspecified)
    };
    "write", 1 .. Some(1), |_, _, all| {
        print(&written(all[0]));
        Ok(Value::Unspecified)
    };
    "newline", 0 .. Some(0), |_, _, _| {
        print("\n");
        Ok(Value::Unspecified)
    };
    "error", 1 .. None, |_, _, all| {
        let rest: String = all[1..].iter().map(|&value| format!(" {}", written(value))).collect();
        Err(format!("{}{rest}", displayed(all[0])))
    };
};
