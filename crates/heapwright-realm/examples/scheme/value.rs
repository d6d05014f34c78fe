//! Values: the contents of the program's memory.
//!
//! ```text
//!   Value      a word for its type, and a word: a number, or a reference
//!
//!   Pair       car | cdr | where it was read             Slice       value | value | ...
//!   Symbol     name | its global value | hash            Closure     code | captured values
//!   Place      an assigned variable                      Table       a hash table
//! ```
//!
//! A vector's and a string's contents lie in the slot itself, and a closure's values in another.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use heapwright::gc::{Cell, Gc, Lock, Mutation, Slice, Str, Trace};

use crate::machine::{Code, Frame, Primitive};

#[derive(Clone, Copy, Trace)]
pub(crate) enum Value<'gc> {
    /// The value of an undefined global; never seen by a program.
    Undefined,
    /// The result of `set!` and the like.
    Unspecified,
    Nil,
    Bool(bool),
    Int(i64),
    Real(f64),
    Char(char),
    Symbol(Gc<'gc, Symbol<'gc>>),
    Str(Str<'gc>),
    Pair(Gc<'gc, Pair<'gc>>),
    Vector(Slice<'gc, Cell<Value<'gc>>>),
    Table(Gc<'gc, Table<'gc>>),
    Closure(Gc<'gc, Closure<'gc>>),
    Primitive(#[trace(skip)] &'static Primitive),
    Continuation(Gc<'gc, Continuation<'gc>>),
    /// An assigned variable; never seen by a program.
    Place(Gc<'gc, Cell<Value<'gc>>>),
}

/// A name. Equal names are one symbol.
#[derive(Trace)]
pub(crate) struct Symbol<'gc> {
    pub(crate) name: String,
    pub(crate) global: Cell<Value<'gc>>,
    hash: u64,
}

#[derive(Trace)]
pub(crate) struct Pair<'gc> {
    pub(crate) car: Cell<Value<'gc>>,
    pub(crate) cdr: Cell<Value<'gc>>,
    /// See [`crate::read::At`]; 0: the program computed the pair.
    pub(crate) at: u32,
}

#[derive(Trace)]
pub(crate) struct Closure<'gc> {
    pub(crate) code: Gc<'gc, Code<'gc>>,
    pub(crate) captured: Slice<'gc, Value<'gc>>,
}

/// The work that was left when `call/cc` was called.
#[derive(Trace)]
pub(crate) struct Continuation<'gc> {
    pub(crate) stack: Slice<'gc, Value<'gc>>,
    pub(crate) frames: Slice<'gc, Frame<'gc>>,
}

#[derive(Trace)]
pub(crate) struct Table<'gc> {
    pub(crate) entries: Lock<HashMap<Key<'gc>, Value<'gc>>>,
}

/// A value that is compared by `equal?`.
#[derive(Clone, Copy, Trace)]
pub(crate) struct Key<'gc>(pub(crate) Value<'gc>);

pub(crate) type Symbols<'gc> = Lock<HashMap<String, Gc<'gc, Symbol<'gc>>>>;

impl<'gc> Symbol<'gc> {
    pub(crate) fn new(name: &str) -> Self {
        let mut hasher = std::hash::DefaultHasher::new();
        name.hash(&mut hasher);
        Self { name: name.to_owned(), global: Cell::new(Value::Undefined), hash: hasher.finish() }
    }
}

impl<'gc> Value<'gc> {
    pub(crate) fn is_true(self) -> bool {
        !matches!(self, Self::Bool(false))
    }

    pub(crate) fn cons(mc: &Mutation<'gc>, car: Self, cdr: Self) -> Self {
        Self::cons_at(mc, car, cdr, 0)
    }

    pub(crate) fn cons_at(mc: &Mutation<'gc>, car: Self, cdr: Self, at: u32) -> Self {
        Self::Pair(mc.alloc(Pair { car: Cell::new(car), cdr: Cell::new(cdr), at }))
    }

    pub(crate) fn list(mc: &Mutation<'gc>, values: &[Self]) -> Self {
        values.iter().rev().fold(Self::Nil, |rest, &value| Self::cons(mc, value, rest))
    }

    pub(crate) fn items(self) -> Option<Vec<Self>> {
        let mut items = Vec::new();
        let mut rest = self;
        while let Self::Pair(pair) = rest {
            items.push(pair.car.get());
            rest = pair.cdr.get();
        }
        matches!(rest, Self::Nil).then_some(items)
    }

    pub(crate) fn is_same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Undefined, Self::Undefined)
            | (Self::Unspecified, Self::Unspecified)
            | (Self::Nil, Self::Nil) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Real(a), Self::Real(b)) => a.to_bits() == b.to_bits(),
            (Self::Char(a), Self::Char(b)) => a == b,
            (Self::Symbol(a), Self::Symbol(b)) => a.is(b),
            (Self::Str(a), Self::Str(b)) => a.is(b),
            (Self::Pair(a), Self::Pair(b)) => a.is(b),
            (Self::Vector(a), Self::Vector(b)) => a.is(b),
            (Self::Table(a), Self::Table(b)) => a.is(b),
            (Self::Closure(a), Self::Closure(b)) => a.is(b),
            (Self::Primitive(a), Self::Primitive(b)) => std::ptr::eq(a, b),
            (Self::Continuation(a), Self::Continuation(b)) => a.is(b),
            _ => false,
        }
    }

    /// Returns whether both have equal contents.
    pub(crate) fn is_equal(self, other: Self) -> bool {
        let (mut a, mut b) = (self, other);
        loop {
            match (a, b) {
                (Self::Pair(one), Self::Pair(two)) => {
                    if one.is(two) {
                        return true;
                    }
                    if !one.car.get().is_equal(two.car.get()) {
                        return false;
                    }
                    (a, b) = (one.cdr.get(), two.cdr.get());
                }
                (Self::Str(one), Self::Str(two)) => return one == two,
                (Self::Vector(one), Self::Vector(two)) => {
                    let mut both = one.iter().zip(two.iter());
                    return one.len() == two.len() && both.all(|(a, b)| a.get().is_equal(b.get()));
                }
                _ => return a.is_same(b),
            }
        }
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_equal(other.0)
    }
}

impl Eq for Key<'_> {}

impl Hash for Key<'_> {
    /// Hashes what `equal?` compares, and never an address.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut value = self.0;
        loop {
            match value {
                Value::Bool(value) => return value.hash(state),
                Value::Int(value) => return value.hash(state),
                Value::Real(value) => return value.to_bits().hash(state),
                Value::Char(value) => return value.hash(state),
                Value::Symbol(symbol) => return symbol.hash.hash(state),
                Value::Str(text) => return text.hash(state),
                Value::Vector(values) => {
                    return values.iter().for_each(|value| Self(value.get()).hash(state));
                }
                Value::Pair(pair) => {
                    Self(pair.car.get()).hash(state);
                    value = pair.cdr.get();
                }
                _ => return 0u8.hash(state),
            }
        }
    }
}
