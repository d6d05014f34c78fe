//! Realms that move between threads, and across an `.await`. Examples that must not compile are in
//! the documentation of `heapwright_realm::send`.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests run on std, whose allocator is not this one"
)]
#![allow(
    clippy::redundant_closure,
    reason = "`Vector::new` is a function of one realm's lifetime, the closure one of every"
)]
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use heapwright::Rootable;
use heapwright::gc::raw::Options;
use heapwright::gc::{
    Cell, Deque, Finalize, Gc, Map, Mutation, Realm, SendRealm, Static, Str, Trace, Vector, Weak,
};

#[derive(Trace)]
struct Node<'gc> {
    number: usize,
    text: String,
    children: Vec<Node<'gc>>,
    next: Cell<Option<Gc<'gc, Node<'gc>>>>,
}

#[derive(Trace)]
struct Local {
    #[trace(skip)]
    _shared: Rc<()>,
}

#[derive(Trace)]
struct Of<T> {
    value: T,
}

type Held = SendRealm<Rootable!['gc => Root<'gc>]>;

#[derive(Trace)]
struct Root<'gc> {
    list: Cell<Option<Gc<'gc, Node<'gc>>>>,
    by_name: Map<'gc, Str<'gc>, Gc<'gc, Node<'gc>>>,
    weak: Vector<'gc, Weak<'gc, Node<'gc>>>,
    queue: Deque<'gc, u32>,
    #[trace(skip)]
    twice: Box<dyn Fn(u32) -> u32 + Send>,
}

fn realm(options: Options) -> Held {
    Held::sendable_with(options, |mc| Root {
        list: Cell::new(None),
        by_name: Map::new(mc),
        weak: Vector::new(mc),
        queue: Deque::new(mc),
        twice: Box::new(|n| 2 * n),
    })
}

/// Adds a node, and makes garbage, which has fields to drop.
fn grow(realm: &mut Held, number: usize) {
    realm.mutate(|mc, root| {
        let node = |number| Node {
            number,
            text: format!("number {number}"),
            children: Vec::new(),
            next: Cell::new(None),
        };
        _ = mc.alloc(node(0));
        _ = mc.alloc(String::from("garbage"));
        let mut made = node(number);
        made.children.push(node(number + 1));
        made.next = Cell::new(root.list.get());
        let made = mc.alloc(made);
        root.list.set(mc, root, Some(made));
        root.by_name.insert(mc, mc.alloc_str(&made.text), made);
        root.weak.push(mc, mc.weak(made));
        root.queue.push_back(mc, (root.twice)(number as u32));
    });
}

fn check(realm: &mut Held, numbers: usize) {
    realm.mutate(|_, root| {
        let nodes = std::iter::successors(root.list.get(), |node| node.next.get());
        assert!(nodes.map(|node| node.number).eq((0..numbers).rev()));
        assert_eq!((root.by_name.len(), root.weak.len()), (numbers, numbers));
        for (number, weak) in root.weak.iter().enumerate() {
            let node = weak.get().expect("it lives");
            assert!(
                root.by_name.get(&*format!("number {number}")).is_some_and(|named| named.is(node))
            );
            assert_eq!(node.children[0].text, format!("number {}", number + 1));
        }
        assert!(root.queue.iter().eq((0..numbers as u32).map(|n| 2 * n)));
    });
}

#[test]
fn a_realm_goes_from_thread_to_thread() {
    let rounds = if cfg!(miri) { 4 } else { 64 };
    let each = if cfg!(miri) { 3 } else { 500 };
    for incremental in [false, true] {
        let options = Options {
            incremental,
            generations: true,
            compact: true,
            least: 64 << 10,
            ..Options::new()
        };
        let (to_first, first) = mpsc::channel::<Held>();
        let (to_second, second) = mpsc::channel::<Held>();
        let turns = |me: usize, from: mpsc::Receiver<Held>, to: mpsc::Sender<Held>| {
            move || {
                for round in (me..rounds).step_by(2) {
                    let mut realm = from.recv().unwrap();
                    for n in 0..each {
                        grow(&mut realm, round * each + n);
                    }
                    // Each thread leaves unfinished work to the other.
                    realm.ask();
                    realm.step(Duration::from_nanos(1));
                    if round % 7 == 3 {
                        realm.ask_compact();
                    }
                    to.send(realm).unwrap();
                }
                from
            }
        };
        to_first.send(realm(options)).unwrap();
        let one = thread::spawn(turns(0, first, to_second));
        let two = thread::spawn(turns(1, second, to_first));
        let first = one.join().unwrap();
        let mut realm = first.recv().unwrap();
        two.join().unwrap();
        check(&mut realm, rounds * each);
        realm.collect();
        realm.compact();
        check(&mut realm, rounds * each);
        thread::spawn(move || drop(realm)).join().unwrap();
    }
}

fn anywhere<T: Trace>() -> bool {
    T::DROPS_ANYWHERE
}

fn sends<T: Trace>() -> bool {
    T::SENDS
}

#[test]
fn what_may_be_dropped_elsewhere_is_known_of_types() {
    assert!(anywhere::<Node<'_>>(), "it is `Send` with what leads to itself");
    assert!(anywhere::<Root<'_>>());
    assert!(anywhere::<(String, Option<Vec<Gc<'_, Local>>>)>());
    assert!(anywhere::<Of<u32>>(), "nothing is dropped");
    assert!(anywhere::<Static<*mut u8>>(), "nothing is dropped");
    assert!(!anywhere::<Local>());
    assert!(!anywhere::<Rc<u8>>());
    assert!(!anywhere::<Option<(u8, Box<Local>)>>());
    assert!(!anywhere::<Of<String>>(), "of a type with parameters it is not known");
}

#[test]
fn a_realm_that_goes_elsewhere_takes_nothing_that_must_not_be_dropped_there() {
    let local = || Local { _shared: Rc::new(()) };
    let mut stays = Realm::<Rootable!['gc => u8]>::new(|_| 0);
    stays.mutate(|mc, _| _ = mc.alloc(local()));
    let mut goes = SendRealm::<Rootable!['gc => u8]>::sendable(|_| 0);
    for slice in [false, true] {
        let refused = catch_unwind(AssertUnwindSafe(|| {
            goes.mutate(|mc, _| {
                if slice {
                    _ = mc.alloc_slice(1, |_| local());
                } else {
                    _ = mc.alloc(local());
                }
            });
        }));
        let message = *refused.unwrap_err().downcast::<String>().expect("a formatted message");
        assert!(message.contains("Local") && message.contains("DROPS_ANYWHERE"), "{message}");
    }
    goes.mutate(|mc, _| _ = mc.alloc(Of { value: 7 }));
    thread::spawn(move || goes.collect()).join().unwrap();
}

#[derive(Trace)]
struct Shared(#[trace(skip)] &'static std::cell::Cell<u64>);

impl<'gc> Finalize<'gc> for Shared {
    fn finalize(this: Gc<'gc, Self>, _: &Mutation<'gc>) {
        this.0.set(this.0.get() + 1);
    }
}

#[derive(Trace)]
struct Leads<'gc>(Gc<'gc, Shared>);

impl<'gc> Finalize<'gc> for Leads<'gc> {
    fn finalize(this: Gc<'gc, Self>, mc: &Mutation<'gc>) {
        Finalize::finalize(this.0, mc);
    }
}

#[derive(Trace)]
struct Tells<'gc> {
    told: Vector<'gc, u32>,
    node: Option<Gc<'gc, Node<'gc>>>,
}

impl<'gc> Finalize<'gc> for Tells<'gc> {
    fn finalize(this: Gc<'gc, Self>, mc: &Mutation<'gc>) {
        this.told.push(mc, this.node.map_or(0, |node| node.number as u32));
    }
}

#[test]
fn a_realm_that_goes_elsewhere_finalizes_nothing_that_must_not_be_used_there() {
    assert!(sends::<Tells<'_>>() && sends::<Node<'_>>(), "it is `Send` with what it leads to");
    assert!(!sends::<Shared>() && !sends::<Leads<'_>>() && !sends::<Local>());
    assert!(!sends::<Of<u32>>(), "of a type with parameters it is not known");
    let count = Box::leak(Box::new(std::cell::Cell::new(0)));
    let mut stays = Realm::<Rootable!['gc => u8]>::new(|_| 0);
    stays.mutate(|mc, _| mc.finalize(mc.alloc(Leads(mc.alloc(Shared(count))))));
    stays.collect();
    assert_eq!((stays.run_finalizers(9), count.get()), (1, 1));
    let mut goes = SendRealm::<Rootable!['gc => Vector<'gc, u32>]>::sendable(|mc| Vector::new(mc));
    for leads in [false, true] {
        let refused = catch_unwind(AssertUnwindSafe(|| {
            goes.mutate(|mc, _| {
                let shared = mc.alloc(Shared(count));
                if leads {
                    mc.finalize(mc.alloc(Leads(shared)));
                } else {
                    mc.finalize(shared);
                }
            });
        }));
        let message = *refused.unwrap_err().downcast::<String>().expect("a formatted message");
        let name = if leads { "Leads" } else { "Shared" };
        assert!(message.contains(name) && message.contains("Trace::SENDS"), "{message}");
    }
    goes.mutate(|mc, told| {
        let (text, children, next) = (String::new(), Vec::new(), Cell::new(None));
        let node = Some(mc.alloc(Node { number: 7, text, children, next }));
        mc.finalize(mc.alloc(Tells { told: *told.as_ref(), node }));
    });
    let told = thread::spawn(move || {
        goes.collect();
        assert_eq!(goes.run_finalizers(9), 1);
        goes.mutate(|_, told| told.last())
    });
    assert_eq!((told.join().unwrap(), count.get()), (Some(7), 1));
}

#[test]
fn a_root_that_is_send_goes_with_its_realm_whatever_it_is() {
    type Root = Rootable!['gc => Static<(Vec<u8>, std::sync::Arc<str>)>];
    let root = || Static((vec![7], "shared".into()));
    let mut realm = SendRealm::<Root>::sendable(|_| root());
    thread::spawn(move || realm.mutate(|_, root| assert_eq!(root.0.0, [7]))).join().unwrap();
    let mut realm = SendRealm::<Root>::sendable(|_| root());
    let inside = AssertUnwindSafe(|| realm.mutate(|mc, _| _ = mc.alloc(root())));
    assert!(
        catch_unwind(inside).is_err(),
        "of a value that the root need not lead to it is not known"
    );
}
