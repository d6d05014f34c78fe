//! std's `Rc`: counted handles, without a search for cycles. The loads have no cycles.

use std::cell::RefCell as Place;
use std::rc::Rc as Shared;

use crate::loads::gcbench;

#[path = "handles.rs"]
mod handles;

pub(super) use handles::Handles as Rc;

type Link = Place<Option<Shared<Node>>>;
type Values = Shared<[f64]>;

fn values(length: usize) -> Values {
    (0..length).map(gcbench::value).collect()
}

struct Tree {
    left: Option<Shared<Tree>>,
    right: Option<Shared<Tree>>,
}

struct Node {
    left: Link,
    right: Link,
    i: i32,
    j: i32,
}

struct SplayNode {
    key: u64,
    below: [Place<Option<Shared<SplayNode>>>; 2],
    payload: Shared<Payload>,
}

enum Payload {
    Branch(Shared<Payload>, Shared<Payload>),
    Leaf(Shared<[u64; 10]>, Shared<str>),
}
