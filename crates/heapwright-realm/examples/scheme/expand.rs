//! The expander: data to a tree in which every variable is known.
//!
//! ```text
//!   (let ((x 1)) (lambda () (set! x (+ x 1))))
//!   Let [v0 = 1] in Lambda [] body: Set v0 (Call + v0 1)          v0: assigned
//! ```
//!
//! Names are looked up from the innermost scope out. Derived forms become other forms, which are
//! expanded again.

use heapwright::gc::{Gc, Mutation};

use crate::machine::Root;
use crate::primitives;
use crate::read::{At, Failure, symbol};
use crate::value::{Symbol, Value};

/// A variable: its number in [`Expander::variables`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variable(pub(crate) usize);

#[derive(Default)]
pub(crate) struct Known {
    /// Whether the variable needs a place in the heap, which closures and continuations share.
    pub(crate) is_assigned: bool,
}

pub(crate) enum Tree<'gc> {
    Value(Value<'gc>),
    Local(Variable, At),
    Global(Gc<'gc, Symbol<'gc>>, At),
    SetLocal(Variable, Box<Tree<'gc>>),
    SetGlobal(Gc<'gc, Symbol<'gc>>, Box<Tree<'gc>>, At),
    Define(Gc<'gc, Symbol<'gc>>, Box<Tree<'gc>>),
    If(Box<[Tree<'gc>; 3]>),
    Sequence(Vec<Tree<'gc>>),
    Let(Vec<(Variable, Tree<'gc>)>, Box<Tree<'gc>>),
    Lambda(Box<Lambda<'gc>>),
    Call(Box<Tree<'gc>>, Vec<Tree<'gc>>, At),
}

pub(crate) struct Lambda<'gc> {
    pub(crate) name: Option<Gc<'gc, Symbol<'gc>>>,
    pub(crate) parameters: Vec<Variable>,
    pub(crate) has_rest: bool,
    pub(crate) body: Tree<'gc>,
}

type Scope<'gc> = Vec<(Gc<'gc, Symbol<'gc>>, Variable)>;

pub(crate) struct Expander<'a, 'gc> {
    mc: &'a Mutation<'gc>,
    root: Gc<'gc, Root<'gc>>,
    scopes: Vec<Scope<'gc>>,
    /// The place of the innermost form that was read.
    here: At,
    pub(crate) variables: Vec<Known>,
}

type Expanded<'gc> = Result<Tree<'gc>, Failure>;

fn at_of(form: Value<'_>) -> At {
    match form {
        Value::Pair(pair) => At(pair.at),
        _ => At(0),
    }
}

fn wrong<T>(form: Value<'_>, what: &str) -> Result<T, Failure> {
    let shown: String = crate::print::written(form).chars().take(80).collect();
    Err(Failure::new(at_of(form), format!("{what}: {shown}")))
}

impl<'a, 'gc> Expander<'a, 'gc> {
    pub(crate) fn new(mc: &'a Mutation<'gc>, root: Gc<'gc, Root<'gc>>) -> Self {
        Self { mc, root, scopes: Vec::new(), here: At(0), variables: Vec::new() }
    }

    fn symbol(&self, name: &str) -> Value<'gc> {
        Value::Symbol(symbol(self.mc, self.root, name))
    }

    fn list(&self, items: &[Value<'gc>]) -> Value<'gc> {
        Value::list(self.mc, items)
    }

    fn cons(&self, car: Value<'gc>, cdr: Value<'gc>) -> Value<'gc> {
        Value::cons(self.mc, car, cdr)
    }

    fn variable(&mut self) -> Variable {
        self.variables.push(Known::default());
        Variable(self.variables.len() - 1)
    }

    /// Returns the variable of a name. `None` for a global.
    fn find(&self, name: Gc<'gc, Symbol<'gc>>) -> Option<Variable> {
        let names = self.scopes.iter().rev().flat_map(|scope| scope.iter().rev());
        names.into_iter().find(|(of, _)| of.is(name)).map(|&(_, variable)| variable)
    }

    fn is_local(&self, name: Gc<'gc, Symbol<'gc>>) -> bool {
        self.find(name).is_some()
    }

    pub(crate) fn expand(&mut self, form: Value<'gc>) -> Expanded<'gc> {
        match form {
            Value::Symbol(name) => Ok(self.reference(name, self.here)),
            Value::Pair(pair) => {
                let outer = self.here;
                if pair.at != 0 {
                    self.here = At(pair.at);
                }
                let special = match pair.car.get() {
                    Value::Symbol(head) if !self.is_local(head) => self.special(&head.name, form),
                    _ => None,
                };
                let expanded = special.unwrap_or_else(|| self.call(form));
                self.here = outer;
                expanded
            }
            Value::Nil => wrong(form, "an empty list calls nothing"),
            value => Ok(Tree::Value(value)),
        }
    }

    fn reference(&self, name: Gc<'gc, Symbol<'gc>>, at: At) -> Tree<'gc> {
        match self.find(name) {
            Some(variable) => Tree::Local(variable, at),
            None => Tree::Global(name, at),
        }
    }

    fn call(&mut self, form: Value<'gc>) -> Expanded<'gc> {
        let Some(items) = form.items() else { return wrong(form, "a call is a list") };
        let at = self.here;
        let callee = match items[0] {
            Value::Symbol(name) => self.reference(name, at),
            other => self.expand(other)?,
        };
        Ok(Tree::Call(Box::new(callee), self.all(&items[1..])?, at))
    }

    fn all(&mut self, forms: &[Value<'gc>]) -> Result<Vec<Tree<'gc>>, Failure> {
        forms.iter().map(|&form| self.expand(form)).collect()
    }

    fn special(&mut self, head: &str, form: Value<'gc>) -> Option<Expanded<'gc>> {
        const KEYWORDS: [&str; 19] = [
            "quote",
            "quasiquote",
            "if",
            "define",
            "set!",
            "lambda",
            "begin",
            "let",
            "let*",
            "letrec",
            "letrec*",
            "cond",
            "case",
            "and",
            "or",
            "when",
            "unless",
            "do",
            "else",
        ];
        if !KEYWORDS.contains(&head) {
            return None;
        }
        let Some(items) = form.items() else {
            return Some(wrong(form, "a form is a list"));
        };
        Some(match (head, &items[1..]) {
            ("quote", &[datum]) => Ok(Tree::Value(datum)),
            ("quasiquote", &[datum]) => {
                let form = self.quasi(datum, 1);
                self.expand(form)
            }
            ("if", &[test, then]) => self.condition(test, then, Value::Unspecified),
            ("if", &[test, then, other]) => self.condition(test, then, other),
            ("define", &[Value::Pair(head), ..]) => {
                let lambda = self.lambda_of(head.cdr.get(), &items[2..]);
                let define = [items[0], head.car.get(), lambda];
                self.again(&define, form)
            }
            ("define", &[Value::Symbol(name), value]) => self.define(name, value),
            ("set!", &[Value::Symbol(name), value]) => self.set(name, value, at_of(form)),
            ("lambda", [parameters, body @ ..]) if !body.is_empty() => {
                self.lambda(None, *parameters, body, form)
            }
            ("begin", forms) => Ok(Tree::Sequence(match self.all(forms) {
                Ok(all) => all,
                Err(failure) => return Some(Err(failure)),
            })),
            ("let", [Value::Symbol(name), bindings, body @ ..]) if !body.is_empty() => {
                self.named_let(*name, *bindings, body, form)
            }
            ("let", [bindings, body @ ..]) if !body.is_empty() => {
                self.plain_let(*bindings, body, form)
            }
            ("let*", [bindings, body @ ..]) if !body.is_empty() => {
                self.nested_let(*bindings, body, form)
            }
            ("letrec" | "letrec*", [bindings, body @ ..]) if !body.is_empty() => {
                self.recursive_let(*bindings, body, form)
            }
            ("cond", clauses) => self.cond(clauses, form),
            ("case", [key, clauses @ ..]) => self.case(*key, clauses, form),
            ("and", []) => Ok(Tree::Value(Value::Bool(true))),
            ("and", &[last]) => self.expand(last),
            ("and", [first, rest @ ..]) => {
                let rest = self.cons(items[0], self.list(rest));
                self.condition(*first, rest, Value::Bool(false))
            }
            ("or", []) => Ok(Tree::Value(Value::Bool(false))),
            ("or", &[last]) => self.expand(last),
            ("or", [first, rest @ ..]) => self.or(*first, self.cons(items[0], self.list(rest))),
            ("when", [test, body @ ..]) => {
                let body = self.cons(self.symbol("begin"), self.list(body));
                self.condition(*test, body, Value::Unspecified)
            }
            ("unless", [test, body @ ..]) => {
                let body = self.cons(self.symbol("begin"), self.list(body));
                self.condition(*test, Value::Unspecified, body)
            }
            ("do", [bindings, end, body @ ..]) => self.do_loop(*bindings, *end, body, form),
            _ => wrong(form, &format!("this is no `{head}`")),
        })
    }

    fn again(&mut self, items: &[Value<'gc>], form: Value<'gc>) -> Expanded<'gc> {
        let rest = self.list(&items[1..]);
        let form = Value::cons_at(self.mc, items[0], rest, at_of(form).0);
        self.expand(form)
    }

    fn lambda_of(&self, parameters: Value<'gc>, body: &[Value<'gc>]) -> Value<'gc> {
        self.cons(self.symbol("lambda"), self.cons(parameters, self.list(body)))
    }

    fn condition(
        &mut self,
        test: Value<'gc>,
        then: Value<'gc>,
        other: Value<'gc>,
    ) -> Expanded<'gc> {
        let all = [self.expand(test)?, self.expand(then)?, self.expand(other)?];
        Ok(Tree::If(Box::new(all)))
    }

    fn or(&mut self, first: Value<'gc>, rest: Value<'gc>) -> Expanded<'gc> {
        let first = self.expand(first)?;
        let variable = self.variable();
        let local = || Tree::Local(variable, At(0));
        let all = [local(), local(), self.expand(rest)?];
        Ok(Tree::Let(vec![(variable, first)], Box::new(Tree::If(Box::new(all)))))
    }

    /// Expands a value that gets a name. A lambda keeps the name.
    fn named(&mut self, name: Gc<'gc, Symbol<'gc>>, value: Value<'gc>) -> Expanded<'gc> {
        let mut tree = self.expand(value)?;
        if let Tree::Lambda(lambda) = &mut tree {
            lambda.name.get_or_insert(name);
        }
        Ok(tree)
    }

    fn define(&mut self, name: Gc<'gc, Symbol<'gc>>, value: Value<'gc>) -> Expanded<'gc> {
        let value = Box::new(self.named(name, value)?);
        Ok(match self.find(name) {
            // In a body the variable exists: see `body`.
            Some(variable) if !self.scopes.is_empty() => {
                self.variables[variable.0].is_assigned = true;
                Tree::SetLocal(variable, value)
            }
            _ => Tree::Define(name, value),
        })
    }

    fn set(&mut self, name: Gc<'gc, Symbol<'gc>>, value: Value<'gc>, at: At) -> Expanded<'gc> {
        let value = Box::new(self.expand(value)?);
        Ok(match self.find(name) {
            Some(variable) => {
                self.variables[variable.0].is_assigned = true;
                Tree::SetLocal(variable, value)
            }
            None => Tree::SetGlobal(name, value, at),
        })
    }

    fn lambda(
        &mut self,
        name: Option<Gc<'gc, Symbol<'gc>>>,
        parameters: Value<'gc>,
        body: &[Value<'gc>],
        form: Value<'gc>,
    ) -> Expanded<'gc> {
        let mut names = Vec::new();
        let mut rest = parameters;
        while let Value::Pair(pair) = rest {
            let Value::Symbol(name) = pair.car.get() else {
                return wrong(form, "parameters are names");
            };
            names.push(name);
            rest = pair.cdr.get();
        }
        let has_rest = match rest {
            Value::Nil => false,
            Value::Symbol(name) => {
                names.push(name);
                true
            }
            _ => return wrong(form, "parameters are names"),
        };
        let names: Vec<_> = names.into_iter().map(|name| (name, self.variable())).collect();
        let parameters = names.iter().map(|&(_, variable)| variable).collect();
        let body = self.within(names, |this| this.body(body))?;
        Ok(Tree::Lambda(Box::new(Lambda { name, parameters, has_rest, body })))
    }

    fn within(
        &mut self,
        names: Scope<'gc>,
        with: impl FnOnce(&mut Self) -> Expanded<'gc>,
    ) -> Expanded<'gc> {
        self.scopes.push(names);
        let result = with(self);
        self.scopes.pop();
        result
    }

    /// Expands a body. Its definitions become variables of the body.
    fn body(&mut self, forms: &[Value<'gc>]) -> Expanded<'gc> {
        let mut names = Vec::new();
        for &form in forms {
            let Value::Pair(pair) = form else { continue };
            if !matches!(pair.car.get(), Value::Symbol(head) if head.name == "define") {
                continue;
            }
            let mut defined = match pair.cdr.get() {
                Value::Pair(rest) => rest.car.get(),
                _ => Value::Nil,
            };
            while let Value::Pair(head) = defined {
                defined = head.car.get();
            }
            let Value::Symbol(name) = defined else { return wrong(form, "this is no `define`") };
            names.push((name, self.variable()));
        }
        let first: Vec<_> =
            names.iter().map(|&(_, variable)| (variable, Tree::Value(Value::Undefined))).collect();
        if first.is_empty() {
            return Ok(Tree::Sequence(self.all(forms)?));
        }
        let body = self.within(names, |this| Ok(Tree::Sequence(this.all(forms)?)))?;
        Ok(Tree::Let(first, Box::new(body)))
    }

    fn bindings(
        &self,
        bindings: Value<'gc>,
        form: Value<'gc>,
    ) -> Result<Vec<(Gc<'gc, Symbol<'gc>>, Value<'gc>)>, Failure> {
        let Some(all) = bindings.items() else { return wrong(form, "bindings are a list") };
        all.into_iter()
            .map(|binding| match binding.items().as_deref() {
                Some(&[Value::Symbol(name), value, ..]) => Ok((name, value)),
                _ => wrong(form, "a binding is a name and a value"),
            })
            .collect()
    }

    fn plain_let(
        &mut self,
        bindings: Value<'gc>,
        body: &[Value<'gc>],
        form: Value<'gc>,
    ) -> Expanded<'gc> {
        let (mut names, mut first) = (Vec::new(), Vec::new());
        for (name, value) in self.bindings(bindings, form)? {
            let value = self.named(name, value)?;
            let variable = self.variable();
            names.push((name, variable));
            first.push((variable, value));
        }
        let body = self.within(names, |this| this.body(body))?;
        Ok(Tree::Let(first, Box::new(body)))
    }

    fn nested_let(
        &mut self,
        bindings: Value<'gc>,
        body: &[Value<'gc>],
        form: Value<'gc>,
    ) -> Expanded<'gc> {
        let items = bindings.items().unwrap_or_default();
        let [first, rest @ ..] = items.as_slice() else {
            return self.plain_let(bindings, body, form);
        };
        if rest.is_empty() {
            return self.plain_let(bindings, body, form);
        }
        let inner = self.cons(self.symbol("let*"), self.cons(self.list(rest), self.list(body)));
        self.plain_let(self.list(&[*first]), &[inner], form)
    }

    fn recursive_let(
        &mut self,
        bindings: Value<'gc>,
        body: &[Value<'gc>],
        form: Value<'gc>,
    ) -> Expanded<'gc> {
        let mut forms = Vec::new();
        for (name, value) in self.bindings(bindings, form)? {
            forms.push(self.list(&[self.symbol("define"), Value::Symbol(name), value]));
        }
        forms.push(self.cons(self.symbol("let"), self.cons(Value::Nil, self.list(body))));
        self.body(&forms)
    }

    fn named_let(
        &mut self,
        name: Gc<'gc, Symbol<'gc>>,
        bindings: Value<'gc>,
        body: &[Value<'gc>],
        form: Value<'gc>,
    ) -> Expanded<'gc> {
        let all = self.bindings(bindings, form)?;
        let parameters: Vec<_> = all.iter().map(|&(name, _)| Value::Symbol(name)).collect();
        let lambda = self.lambda_of(self.list(&parameters), body);
        let binding = self.list(&[Value::Symbol(name), lambda]);
        let callee =
            self.list(&[self.symbol("letrec"), self.list(&[binding]), Value::Symbol(name)]);
        let mut call = vec![callee];
        call.extend(all.into_iter().map(|(_, value)| value));
        self.again(&call, form)
    }

    fn do_loop(
        &mut self,
        bindings: Value<'gc>,
        end: Value<'gc>,
        body: &[Value<'gc>],
        form: Value<'gc>,
    ) -> Expanded<'gc> {
        let name = Value::Symbol(self.mc.alloc(Symbol::new("do")));
        let mut next = vec![name];
        for binding in bindings.items().unwrap_or_default() {
            match binding.items().as_deref() {
                Some(&[name, _] | &[_, _, name]) => next.push(name),
                _ => return wrong(form, "a binding of a `do` is a name, a value and a step"),
            }
        }
        let Some(end) = end.items().filter(|end| !end.is_empty()) else {
            return wrong(form, "a `do` has a test");
        };
        let mut result = vec![self.symbol("begin")];
        result.extend_from_slice(if end.len() > 1 { &end[1..] } else { &[Value::Unspecified] });
        let mut again = vec![self.symbol("begin")];
        again.extend_from_slice(body);
        again.push(self.list(&next));
        let test = self.list(&[self.symbol("if"), end[0], self.list(&result), self.list(&again)]);
        self.again(&[self.symbol("let"), name, bindings, test], form)
    }

    fn cond(&mut self, clauses: &[Value<'gc>], form: Value<'gc>) -> Expanded<'gc> {
        let [clause, rest @ ..] = clauses else { return Ok(Tree::Value(Value::Unspecified)) };
        let rest = self.cons(self.symbol("cond"), self.list(rest));
        let begin = |body: &[Value<'gc>]| self.cons(self.symbol("begin"), self.list(body));
        match clause.items().as_deref() {
            Some([Value::Symbol(head), body @ ..]) if head.name == "else" => {
                let body = begin(body);
                self.expand(body)
            }
            Some([test]) => self.or(*test, rest),
            Some([test, Value::Symbol(arrow), receiver]) if arrow.name == "=>" => {
                let it = Value::Symbol(self.mc.alloc(Symbol::new("it")));
                let call = self.list(&[*receiver, it]);
                let test = [
                    self.symbol("let"),
                    self.list(&[self.list(&[it, *test])]),
                    self.list(&[self.symbol("if"), it, call, rest]),
                ];
                self.again(&test, form)
            }
            Some([test, body @ ..]) => {
                let body = begin(body);
                self.condition(*test, body, rest)
            }
            _ => wrong(form, "a clause of a `cond` is a list"),
        }
    }

    fn case(&mut self, key: Value<'gc>, clauses: &[Value<'gc>], form: Value<'gc>) -> Expanded<'gc> {
        let it = Value::Symbol(self.mc.alloc(Symbol::new("it")));
        let mut cond = vec![self.symbol("cond")];
        for &clause in clauses {
            let Value::Pair(pair) = clause else {
                return wrong(form, "a clause of a `case` is a list");
            };
            let test = match pair.car.get() {
                Value::Symbol(head) if head.name == "else" => pair.car.get(),
                data => self.list(&[
                    Value::Primitive(primitives::named("memv")),
                    it,
                    self.list(&[self.symbol("quote"), data]),
                ]),
            };
            cond.push(self.cons(test, pair.cdr.get()));
        }
        let binding = self.list(&[self.list(&[it, key])]);
        self.again(&[self.symbol("let"), binding, self.list(&cond)], form)
    }

    /// Returns the form that builds a partly computed datum.
    fn quasi(&self, datum: Value<'gc>, depth: usize) -> Value<'gc> {
        let call = |name: &str, arguments: &[Value<'gc>]| {
            self.cons(Value::Primitive(primitives::named(name)), self.list(arguments))
        };
        let quote = |datum| self.list(&[self.symbol("quote"), datum]);
        let Value::Pair(pair) = datum else {
            if let Value::Vector(values) = datum {
                let values: Vec<_> = values.iter().map(heapwright::gc::Cell::get).collect();
                return call("list->vector", &[self.quasi(self.list(&values), depth)]);
            }
            return quote(datum);
        };
        let named = |value: Value<'gc>, name: &str| matches!(value, Value::Symbol(symbol) if symbol.name == name);
        let second = |pair: Gc<'gc, crate::value::Pair<'gc>>| match pair.cdr.get() {
            Value::Pair(rest) => rest.car.get(),
            _ => Value::Nil,
        };
        if named(pair.car.get(), "unquote") {
            return if depth == 1 {
                second(pair)
            } else {
                call("list", &[quote(pair.car.get()), self.quasi(second(pair), depth - 1)])
            };
        }
        let depth = depth + usize::from(named(pair.car.get(), "quasiquote"));
        let rest = self.quasi(pair.cdr.get(), depth);
        match pair.car.get() {
            Value::Pair(inner) if depth == 1 && named(inner.car.get(), "unquote-splicing") => {
                call("append", &[second(inner), rest])
            }
            first => call("cons", &[self.quasi(first, depth), rest]),
        }
    }
}
