//! The machine: runs code in bounded pieces, so that the collector may run between two of them.
//!
//! ```text
//!   stack    ... | argument | argument | let | temporary | ...       values of all calls
//!                ^ base                                  ^ top
//!   frames   the callers: code, captured values, next operation, base
//! ```
//!
//! The realm's root holds the whole state. A tail call moves its arguments down to the base and
//! drops everything above, so loops need no stack. `call/cc` copies stack and frames into the heap.
//! Calling a continuation copies them back.

use heapwright::gc::{Cell, Gc, Lock, Mutation, Slice, Trace};

use crate::read::{At, Failure};
use crate::value::{Closure, Continuation, Symbol, Symbols, Value};

#[derive(Trace)]
pub(crate) struct Root<'gc> {
    pub(crate) symbols: Symbols<'gc>,
    pub(crate) machine: Lock<Machine<'gc>>,
}

#[derive(Default, Trace)]
pub(crate) struct Machine<'gc> {
    stack: Vec<Value<'gc>>,
    frames: Vec<Frame<'gc>>,
    now: Option<Frame<'gc>>,
}

#[derive(Clone, Copy, Trace)]
pub(crate) struct Frame<'gc> {
    code: Gc<'gc, Code<'gc>>,
    captured: Slice<'gc, Value<'gc>>,
    next: u32,
    base: u32,
}

#[derive(Trace)]
pub(crate) struct Code<'gc> {
    pub(crate) name: Option<Gc<'gc, Symbol<'gc>>>,
    pub(crate) parameters: u32,
    /// Whether the last parameter takes a list of all further arguments.
    pub(crate) has_rest: bool,
    pub(crate) ops: Slice<'gc, Op<'gc>>,
    /// The place in the text of each operation.
    pub(crate) places: Slice<'gc, u32>,
}

/// An operation. An operation with a result pushes it.
#[derive(Clone, Copy, Trace)]
pub(crate) enum Op<'gc> {
    Value(Value<'gc>),
    Local(u32),
    /// The value in a local's place.
    LocalPlace(u32),
    Captured(u32),
    CapturedPlace(u32),
    Global(Gc<'gc, Symbol<'gc>>),
    SetLocalPlace(u32),
    SetCapturedPlace(u32),
    SetGlobal(Gc<'gc, Symbol<'gc>>),
    Define(Gc<'gc, Symbol<'gc>>),
    /// Moves a local to a place of its own.
    MakePlace(u32),
    Pop,
    /// Drops that many values below the top.
    Slide(u32),
    Jump(u32),
    /// Jumps if the popped value is false.
    Unless(u32),
    Close(Gc<'gc, Template<'gc>>),
    /// Calls the value on the top with that many arguments below it.
    Call(u32),
    TailCall(u32),
    Return,
}

/// A procedure without its captured values.
#[derive(Trace)]
pub(crate) struct Template<'gc> {
    pub(crate) code: Gc<'gc, Code<'gc>>,
    pub(crate) captures: Slice<'gc, Capture>,
}

#[derive(Clone, Copy, Trace)]
pub(crate) enum Capture {
    Local(u32),
    Captured(u32),
}

/// A procedure that is written in Rust.
pub(crate) struct Primitive {
    pub(crate) name: &'static str,
    pub(crate) least: usize,
    /// `None`: any number.
    pub(crate) most: Option<usize>,
    pub(crate) run: Run,
}

type Plain =
    for<'gc> fn(&Mutation<'gc>, Gc<'gc, Root<'gc>>, &[Value<'gc>]) -> Result<Value<'gc>, String>;

pub(crate) enum Run {
    Plain(Plain),
    Apply,
    CallCc,
}

pub(crate) enum Progress<'gc> {
    Runs,
    Done(Value<'gc>),
}

impl<'gc> Machine<'gc> {
    pub(crate) fn begin(&mut self, mc: &Mutation<'gc>, code: Gc<'gc, Code<'gc>>) {
        self.stack.clear();
        self.frames.clear();
        let captured = mc.alloc_slice(0, |_| Value::Nil);
        self.now = Some(Frame { code, captured, next: 0, base: 0 });
    }

    /// Runs up to `piece` operations. An error is returned with its place, and ends the run.
    pub(crate) fn run(
        &mut self,
        mc: &Mutation<'gc>,
        root: Gc<'gc, Root<'gc>>,
        piece: usize,
    ) -> Result<Progress<'gc>, Failure> {
        let Some(mut frame) = self.now.take() else {
            return Ok(Progress::Done(Value::Unspecified));
        };
        for _ in 0..piece {
            let at = frame.next as usize;
            frame.next += 1;
            let code = frame.code;
            match self.step(mc, root, &mut frame, code.ops[at]) {
                Ok(None) => {}
                Ok(Some(value)) => return Ok(Progress::Done(value)),
                Err(message) => return Err(Failure::new(At(code.places[at]), message)),
            }
        }
        self.now = Some(frame);
        Ok(Progress::Runs)
    }

    fn pop(&mut self) -> Value<'gc> {
        self.stack.pop().unwrap_or(Value::Undefined)
    }

    fn step(
        &mut self,
        mc: &Mutation<'gc>,
        root: Gc<'gc, Root<'gc>>,
        frame: &mut Frame<'gc>,
        op: Op<'gc>,
    ) -> Result<Option<Value<'gc>>, String> {
        let base = frame.base as usize;
        match op {
            Op::Value(value) => self.stack.push(value),
            Op::Local(n) => self.stack.push(self.stack[base + n as usize]),
            Op::LocalPlace(n) => {
                let value = defined(place(self.stack[base + n as usize]).get())?;
                self.stack.push(value);
            }
            Op::Captured(n) => self.stack.push(frame.captured.as_slice()[n as usize]),
            Op::CapturedPlace(n) => {
                let value = defined(place(frame.captured.as_slice()[n as usize]).get())?;
                self.stack.push(value);
            }
            Op::Global(symbol) => {
                let value = symbol.global.get();
                if matches!(value, Value::Undefined) {
                    return Err(format!("`{}` is not defined", symbol.name));
                }
                self.stack.push(value);
            }
            Op::SetLocalPlace(n) => {
                let value = self.pop();
                let place = place(self.stack[base + n as usize]);
                place.set(mc, place, value);
                self.stack.push(Value::Unspecified);
            }
            Op::SetCapturedPlace(n) => {
                let value = self.pop();
                let place = place(frame.captured.as_slice()[n as usize]);
                place.set(mc, place, value);
                self.stack.push(Value::Unspecified);
            }
            Op::SetGlobal(symbol) => {
                if matches!(symbol.global.get(), Value::Undefined) {
                    return Err(format!("`{}` is not defined, so it cannot be set", symbol.name));
                }
                let value = self.pop();
                symbol.global.set(mc, symbol, value);
                self.stack.push(Value::Unspecified);
            }
            Op::Define(symbol) => {
                let value = self.pop();
                symbol.global.set(mc, symbol, value);
                self.stack.push(Value::Unspecified);
            }
            Op::MakePlace(n) => {
                let value = self.stack[base + n as usize];
                self.stack[base + n as usize] = Value::Place(mc.alloc(Cell::new(value)));
            }
            Op::Pop => _ = self.pop(),
            Op::Slide(n) => {
                let value = self.pop();
                self.stack.truncate(self.stack.len() - n as usize);
                self.stack.push(value);
            }
            Op::Jump(to) => frame.next = to,
            Op::Unless(to) => {
                if !self.pop().is_true() {
                    frame.next = to;
                }
            }
            Op::Close(template) => {
                let captures = template.captures;
                let captured = mc.alloc_slice(captures.len(), |n| match captures[n] {
                    Capture::Local(n) => self.stack[base + n as usize],
                    Capture::Captured(n) => frame.captured[n as usize],
                });
                let code = template.code;
                self.stack.push(Value::Closure(mc.alloc(Closure { code, captured })));
            }
            Op::Call(count) => {
                let callee = self.pop();
                self.call(mc, root, frame, callee, count as usize, false)?;
            }
            Op::TailCall(count) => {
                let callee = self.pop();
                self.call(mc, root, frame, callee, count as usize, true)?;
            }
            Op::Return => {
                let value = self.pop();
                return Ok(self.give_back(frame, value));
            }
        }
        Ok(None)
    }

    /// Returns a value to the caller. `Some` if the outermost call ends.
    fn give_back(&mut self, frame: &mut Frame<'gc>, value: Value<'gc>) -> Option<Value<'gc>> {
        self.stack.truncate(frame.base as usize);
        let Some(caller) = self.frames.pop() else { return Some(value) };
        *frame = caller;
        self.stack.push(value);
        None
    }

    /// Calls a value with the topmost `count` values.
    fn call(
        &mut self,
        mc: &Mutation<'gc>,
        root: Gc<'gc, Root<'gc>>,
        frame: &mut Frame<'gc>,
        callee: Value<'gc>,
        count: usize,
        is_tail: bool,
    ) -> Result<(), String> {
        let from = self.stack.len() - count;
        match callee {
            Value::Closure(closure) => {
                let code = closure.code;
                let base = if is_tail {
                    let base = frame.base as usize;
                    self.stack.drain(base..from);
                    base
                } else {
                    self.frames.push(*frame);
                    from
                };
                self.pass(mc, code, count)?;
                let captured = closure.captured;
                *frame = Frame { code, captured, next: 0, base: base as u32 };
                Ok(())
            }
            Value::Primitive(primitive) => {
                if count < primitive.least || primitive.most.is_some_and(|most| count > most) {
                    return Err(wrong_count(primitive.name, count));
                }
                match &primitive.run {
                    Run::Plain(run) => {
                        let value = run(mc, root, &self.stack[from..])
                            .map_err(|message| format!("{}: {message}", primitive.name))?;
                        self.stack.truncate(from);
                        self.stack.push(value);
                        Ok(())
                    }
                    Run::Apply => {
                        let callee = self.stack.remove(from);
                        let last = self.pop();
                        let rest = last.items().ok_or("apply: the last argument is no list")?;
                        let count = count - 2 + rest.len();
                        self.stack.extend(rest);
                        self.call(mc, root, frame, callee, count, is_tail)
                    }
                    Run::CallCc => {
                        let callee = self.pop();
                        // The caller continues when this call has its value.
                        self.frames.push(*frame);
                        let [stack, frames] = [self.stack.len(), self.frames.len()];
                        let continuation = Value::Continuation(mc.alloc(Continuation {
                            stack: mc.alloc_slice(stack, |n| self.stack[n]),
                            frames: mc.alloc_slice(frames, |n| self.frames[n]),
                        }));
                        self.frames.pop();
                        self.stack.push(continuation);
                        self.call(mc, root, frame, callee, 1, is_tail)
                    }
                }
            }
            Value::Continuation(continuation) => {
                if count != 1 {
                    return Err(wrong_count("a continuation", count));
                }
                let value = self.pop();
                self.stack.clear();
                self.stack.extend_from_slice(&continuation.stack);
                self.frames.clear();
                self.frames.extend_from_slice(&continuation.frames);
                if let Some(now) = self.frames.pop() {
                    *frame = now;
                }
                self.stack.push(value);
                Ok(())
            }
            other => Err(format!("{} is no procedure", crate::print::written(other))),
        }
    }

    /// Turns the topmost `count` values into the code's parameters.
    fn pass(
        &mut self,
        mc: &Mutation<'gc>,
        code: Gc<'gc, Code<'gc>>,
        count: usize,
    ) -> Result<(), String> {
        let wanted = code.parameters as usize;
        if !code.has_rest {
            return if count == wanted { Ok(()) } else { Err(wrong_count(&name_of(code), count)) };
        }
        if count + 1 < wanted {
            return Err(wrong_count(&name_of(code), count));
        }
        let rest = self.stack.len() - (count + 1 - wanted);
        let list = Value::list(mc, &self.stack[rest..]);
        self.stack.truncate(rest);
        self.stack.push(list);
        Ok(())
    }
}

fn name_of(code: Gc<'_, Code<'_>>) -> String {
    code.name.map_or_else(|| "a procedure".to_owned(), |name| name.name.clone())
}

fn wrong_count(name: &str, count: usize) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{name} does not take {count} argument{s}")
}

fn place<'gc>(value: Value<'gc>) -> Gc<'gc, Cell<Value<'gc>>> {
    match value {
        Value::Place(place) => place,
        _ => unreachable!("the compiler says which variables have places"),
    }
}

fn defined(value: Value<'_>) -> Result<Value<'_>, String> {
    match value {
        Value::Undefined => Err("a variable is used before it has a value".to_owned()),
        value => Ok(value),
    }
}
