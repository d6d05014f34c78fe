//! dumpster, the version for one thread: counted handles, and a search for cycles behind dropped
//! handles. A search begins by itself when more handles were dropped than exist.

use std::cell::RefCell as Place;

use ::dumpster::Trace;
use ::dumpster::unsync::Gc as Shared;

use crate::loads::gcbench;

#[path = "handles.rs"]
mod handles;

pub(super) use handles::Handles as Dumpster;

type Link = Place<Option<Shared<Node>>>;
type Values = Shared<[f64]>;

fn values(length: usize) -> Values {
    (0..length).map(gcbench::value).collect()
}

#[derive(Trace)]
struct Tree {
    left: Option<Shared<Tree>>,
    right: Option<Shared<Tree>>,
}

#[derive(Trace)]
struct Node {
    left: Link,
    right: Link,
    i: i32,
    j: i32,
}

#[derive(Trace)]
struct SplayNode {
    key: u64,
    below: [Place<Option<Shared<SplayNode>>>; 2],
    payload: Shared<Payload>,
}

#[derive(Trace)]
enum Payload {
    Branch(Shared<Payload>, Shared<Payload>),
    Leaf(Shared<[u64; 10]>, Shared<str>),
}
