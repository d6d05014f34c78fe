//! gc: handles that know whether they lie on the stack or in a collected value. A collection
//! starts by itself when a value is made and enough was allocated. There are no handles of slices.

#![allow(non_local_definitions, reason = "this is how its derive macros of 2023 write them")]

use ::gc::{Finalize, Gc as Shared, GcCell as Place, Trace};

use crate::loads::gcbench;

#[path = "handles.rs"]
mod handles;

pub(super) use handles::Handles as Gc;

type Link = Place<Option<Shared<Node>>>;
type Values = Shared<Box<[f64]>>;

fn values(length: usize) -> Values {
    Shared::new((0..length).map(gcbench::value).collect())
}

#[derive(Trace, Finalize)]
struct Tree {
    left: Option<Shared<Tree>>,
    right: Option<Shared<Tree>>,
}

#[derive(Trace, Finalize)]
struct Node {
    left: Link,
    right: Link,
    i: i32,
    j: i32,
}

#[derive(Trace, Finalize)]
struct SplayNode {
    key: u64,
    below: [Place<Option<Shared<SplayNode>>>; 2],
    payload: Shared<Payload>,
}

#[derive(Trace, Finalize)]
enum Payload {
    Branch(Shared<Payload>, Shared<Payload>),
    Leaf(Shared<[u64; 10]>, Box<str>),
}
