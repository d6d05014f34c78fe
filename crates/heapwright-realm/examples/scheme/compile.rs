//! The compiler: a tree to code for the machine.
//!
//! Locals lie on the stack above a call's base: first parameters, then the values that each `let`
//! pushes. An assigned variable has a place in the heap, which closures and continuations share.
//! Any other variable is copied into the closures that capture it.

use std::collections::HashMap;

use heapwright::gc::{Gc, Mutation};

use crate::expand::{Known, Lambda, Tree, Variable};
use crate::machine::{Capture, Code, Op, Template};
use crate::read::At;
use crate::value::{Symbol, Value};

pub(crate) fn compile<'gc>(
    mc: &Mutation<'gc>,
    variables: &[Known],
    tree: &Tree<'gc>,
) -> Gc<'gc, Code<'gc>> {
    let mut function = Function::new(mc, variables);
    function.tree(tree, true);
    function.finish(None, 0, false)
}

struct Function<'a, 'gc> {
    mc: &'a Mutation<'gc>,
    variables: &'a [Known],
    ops: Vec<(Op<'gc>, At)>,
    locals: HashMap<Variable, u32>,
    captured: Vec<Variable>,
    /// Values on the stack above the base.
    depth: u32,
    at: At,
}

impl<'a, 'gc> Function<'a, 'gc> {
    fn new(mc: &'a Mutation<'gc>, variables: &'a [Known]) -> Self {
        Self {
            mc,
            variables,
            ops: Vec::new(),
            locals: HashMap::new(),
            captured: Vec::new(),
            depth: 0,
            at: At(0),
        }
    }

    fn op(&mut self, op: Op<'gc>) {
        self.ops.push((op, self.at));
    }

    fn push(&mut self, op: Op<'gc>) {
        self.op(op);
        self.depth += 1;
    }

    /// Adds an operation whose target is known later.
    fn jump(&mut self, op: impl Fn(u32) -> Op<'gc>) -> usize {
        self.op(op(0));
        self.ops.len() - 1
    }

    fn land(&mut self, jump: usize) {
        let here = self.ops.len() as u32;
        match &mut self.ops[jump].0 {
            Op::Jump(to) | Op::Unless(to) => *to = here,
            _ => unreachable!("only jumps land"),
        }
    }

    fn capture(&mut self, variable: Variable) -> u32 {
        let known = self.captured.iter().position(|&captured| captured == variable);
        known.unwrap_or_else(|| {
            self.captured.push(variable);
            self.captured.len() - 1
        }) as u32
    }

    fn place_if_needed(&mut self, variable: Variable, local: u32) {
        if self.variables[variable.0].is_assigned {
            self.op(Op::MakePlace(local));
        }
    }

    /// Adds code for a tree. The code leaves one value, or, in tail position, returns it.
    fn tree(&mut self, tree: &Tree<'gc>, is_tail: bool) {
        match tree {
            Tree::Value(value) => self.push(Op::Value(*value)),
            Tree::Local(variable, at) => {
                self.at = *at;
                let has_place = self.variables[variable.0].is_assigned;
                let op = match (self.locals.get(variable).copied(), has_place) {
                    (Some(local), false) => Op::Local(local),
                    (Some(local), true) => Op::LocalPlace(local),
                    (None, false) => Op::Captured(self.capture(*variable)),
                    (None, true) => Op::CapturedPlace(self.capture(*variable)),
                };
                self.push(op);
            }
            Tree::Global(name, at) => {
                self.at = *at;
                self.push(Op::Global(*name));
            }
            Tree::SetLocal(variable, value) => {
                self.tree(value, false);
                let op = match self.locals.get(variable).copied() {
                    Some(local) => Op::SetLocalPlace(local),
                    None => Op::SetCapturedPlace(self.capture(*variable)),
                };
                self.op(op);
            }
            Tree::SetGlobal(name, value, at) => {
                self.tree(value, false);
                self.at = *at;
                self.op(Op::SetGlobal(*name));
            }
            Tree::Define(name, value) => {
                self.tree(value, false);
                self.op(Op::Define(*name));
            }
            Tree::If(all) => return self.condition(all, is_tail),
            Tree::Sequence(all) => return self.sequence(all, is_tail),
            Tree::Let(first, body) => return self.let_(first, body, is_tail),
            Tree::Lambda(lambda) => self.lambda(lambda),
            Tree::Call(callee, arguments, at) => {
                arguments.iter().for_each(|argument| self.tree(argument, false));
                self.tree(callee, false);
                self.at = *at;
                let count = arguments.len() as u32;
                self.op(if is_tail { Op::TailCall(count) } else { Op::Call(count) });
                self.depth -= count;
                // After a tail call the result is on the stack only if the callee is a primitive.
            }
        }
        if is_tail {
            self.op(Op::Return);
        }
    }

    fn condition(&mut self, [test, then, other]: &[Tree<'gc>; 3], is_tail: bool) {
        self.tree(test, false);
        let unless = self.jump(Op::Unless);
        self.depth -= 1;
        let depth = self.depth;
        self.tree(then, is_tail);
        let end = (!is_tail).then(|| self.jump(Op::Jump));
        self.land(unless);
        self.depth = depth;
        self.tree(other, is_tail);
        if let Some(end) = end {
            self.land(end);
        }
    }

    fn sequence(&mut self, all: &[Tree<'gc>], is_tail: bool) {
        let Some((last, first)) = all.split_last() else {
            return self.tree(&Tree::Value(Value::Unspecified), is_tail);
        };
        for tree in first {
            self.tree(tree, false);
            self.op(Op::Pop);
            self.depth -= 1;
        }
        self.tree(last, is_tail);
    }

    fn let_(&mut self, first: &[(Variable, Tree<'gc>)], body: &Tree<'gc>, is_tail: bool) {
        let from = self.depth;
        first.iter().for_each(|(_, value)| self.tree(value, false));
        for (local, (variable, _)) in (from..).zip(first) {
            self.locals.insert(*variable, local);
            self.place_if_needed(*variable, local);
        }
        self.tree(body, is_tail);
        if !is_tail && !first.is_empty() {
            self.op(Op::Slide(first.len() as u32));
        }
        self.depth = from + 1;
    }

    fn lambda(&mut self, lambda: &Lambda<'gc>) {
        let mut inner = Function::new(self.mc, self.variables);
        for (local, &variable) in (0..).zip(&lambda.parameters) {
            inner.locals.insert(variable, local);
            inner.place_if_needed(variable, local);
        }
        inner.depth = lambda.parameters.len() as u32;
        inner.tree(&lambda.body, true);
        let captured = core::mem::take(&mut inner.captured);
        let code = inner.finish(lambda.name, lambda.parameters.len() as u32, lambda.has_rest);
        let captures: Vec<_> = captured
            .into_iter()
            .map(|variable| match self.locals.get(&variable) {
                Some(&local) => Capture::Local(local),
                None => Capture::Captured(self.capture(variable)),
            })
            .collect();
        let captures = self.mc.alloc_slice(captures.len(), |n| captures[n]);
        self.push(Op::Close(self.mc.alloc(Template { code, captures })));
    }

    fn finish(
        self,
        name: Option<Gc<'gc, Symbol<'gc>>>,
        parameters: u32,
        has_rest: bool,
    ) -> Gc<'gc, Code<'gc>> {
        let ops = self.mc.alloc_slice(self.ops.len(), |n| self.ops[n].0);
        let places = self.mc.alloc_slice(self.ops.len(), |n| self.ops[n].1.0);
        self.mc.alloc(Code { name, parameters, has_rest, ops, places })
    }
}
