//! The safe door: a collected heap whose references the compiler watches.
//!
//! **This crate is an implementation detail of [heapwright](https://crates.io/crates/heapwright),
//! which has everything public in it as `heapwright::gc`. Use that.**
//!
//! ```text
//!   Realm<Rootable!['gc => Root<'gc>]>
//!     |  mutate(|mc, root| ...)        'gc: a lifetime of this call alone
//!     |       mc: &Mutation<'gc>       allocates
//!     |       root: Gc<'gc, Root>      leads to everything
//!     |
//!     +- between two calls: collects   no Gc<'gc, T> exists but those in the heap itself
//! ```
//!
//! **Why it is sound.** `mutate` takes a function that works for *every* lifetime `'gc`, so nothing
//! that has `'gc` in its type can leave it: not by its result, not through anything it borrows, not
//! by another realm, whose lifetime is another one (brands, after Launchbury and Peyton Jones's
//! `runST`; for Rust after gc-arena by Catherine West). While it runs nothing is collected: only
//! lazily swept what the last collection found dead. So in `mutate` every `Gc` leads to an object,
//! and between two calls the only ones that exist lie in objects that the root leads to, and whose
//! [`Trace`] reports them all. There is no stack to be scanned, and no root to be forgotten.
//!
//! A root's type must not bring in by another way what the function must not know. The compiler
//! takes the types of a function's arguments for well-formed, and looks at those of a
//! `dyn for<'gc> Rootable<'gc, Root = ...>` not at all: one that is well-formed for `'static`
//! alone, as `&'static &'gc ()` is, would make `'gc` that. So [`Trace`] is not implemented for
//! such, nor for anything that names such (its contract says so), and what a root is must be
//! `Trace`, of every lifetime.
//!
//! **Why objects can be moved.** Moving one changes what leads to it, and nobody must have kept
//! where it was. A Rust reference to it (`&T`, what a `Gc` shows) lives as long as `'gc`: none is
//! left when `mutate` has returned. A `Gc` in another object is a word of that object, whose
//! address `Trace` reports by lending itself; the collector changes that word by way of its own
//! pointer to the heap, while no reference to the object exists. A `Gc` that lies elsewhere, in a
//! `Box`, a `Vec` or a map's memory, it must not change (`Trace` lends what is shared): what that
//! leads to stays where it is as long as it does. So does what [`Mutation::pin`] was called for.
//! What is left of an address that somebody has noted is a number.
//!
//! **Stores.** An object is shared by all that have a `Gc` to it, so it changes through cells:
//! [`Cell`] for what is copied, [`Lock`] for what is borrowed. Both are given the object in which
//! they lie, because a store into an object that was looked at has to be reported to the collector
//! (the write barrier), and they look whether they do.
//!
//! **What does not compile**, each beside what does:
//!
//! ```
//! # use heapwright::{Rootable, gc::{Cell, Gc, Realm}};
//! # type Root = Rootable!['gc => Cell<Option<Gc<'gc, u32>>>];
//! let mut realm = Realm::<Root>::new(|mc| Cell::new(Some(mc.alloc(7))));
//! let copied: u32 = realm.mutate(|_, root| *root.get().unwrap()); // a value may leave
//! # assert_eq!(copied, 7);
//! ```
//!
//! ```compile_fail
//! # use heapwright::{Rootable, gc::{Cell, Gc, Realm}};
//! # type Root = Rootable!['gc => Cell<Option<Gc<'gc, u32>>>];
//! let mut realm = Realm::<Root>::new(|mc| Cell::new(Some(mc.alloc(7))));
//! let kept: Gc<'_, u32> = realm.mutate(|_, root| root.get().unwrap()); // a reference may not
//! ```
//!
//! ```compile_fail
//! # use heapwright::{Rootable, gc::{Cell, Gc, Realm}};
//! # type Root = Rootable!['gc => Cell<Option<Gc<'gc, u32>>>];
//! let mut realm = Realm::<Root>::new(|mc| Cell::new(Some(mc.alloc(7))));
//! let mut kept = None;
//! realm.mutate(|_, root| kept = root.get()); // nor through what the function borrows
//! ```
//!
//! ```compile_fail
//! # use heapwright::{Rootable, gc::{Cell, Gc, Realm}};
//! # type Root = Rootable!['gc => Cell<Option<Gc<'gc, u32>>>];
//! let mut one = Realm::<Root>::new(|mc| Cell::new(Some(mc.alloc(7))));
//! let mut two = Realm::<Root>::new(|_| Cell::new(None));
//! one.mutate(|_, from| two.mutate(|mc, to| to.set(mc, to, from.get()))); // nor into another realm
//! ```
//!
//! ```compile_fail
//! # use heapwright::{Rootable, gc::{Cell, Gc, Realm}};
//! # type Root = Rootable!['gc => Cell<Option<Gc<'gc, u32>>>];
//! let mut realm = Realm::<Root>::new(|mc| Cell::new(Some(mc.alloc(7))));
//! std::thread::spawn(move || realm.collect()); // nor the realm to another thread
//! ```
//!
//! ```compile_fail
//! # use core::cell::Cell;
//! # use heapwright::{Rootable, gc::{Realm, Trace, Tracer}};
//! # struct Noisy<'a>(&'a Cell<u32>);
//! # unsafe impl Trace for Noisy<'_> { fn trace(&self, _: &Tracer) {} }
//! let mut realm = Realm::<Rootable!['gc => u8]>::new(|_| 0);
//! let count = Cell::new(0);
//! realm.mutate(|mc, _| { mc.alloc(Noisy(&count)); }); // nor may what lives shorter come in
//! ```
//!
//! ```compile_fail
//! # use core::marker::PhantomData;
//! # use heapwright::{Rootable, gc::{Gc, Realm}};
//! // nor may a root's type say that all references are of one lifetime
//! let mut realm = Realm::<Rootable!['gc => PhantomData<&'static &'gc ()>]>::new(|_| PhantomData);
//! let kept: Gc<'static, u32> = realm.mutate(|mc, _| mc.alloc(7));
//! ```
//!
//! ```compile_fail
//! # use heapwright::{Rootable, gc::{Cell, Gc, Realm, Weak}};
//! // wherever in it
//! type Root = Rootable!['gc => Cell<Option<Weak<'gc, &'static &'gc ()>>>];
//! let mut realm = Realm::<Root>::new(|_| Cell::new(None));
//! ```
//!
//! ```compile_fail
//! # use heapwright::gc::{Gc, Trace};
//! #[derive(Trace)]
//! struct Inner<'a, 'gc: 'a>(Gc<'gc, u32>, Gc<'a, u32>);
//! // nor may a type of its own leave to be inferred what is not asked for there, `'gc: 'a`:
//! #[derive(Trace)]
//! struct Outer<'a, 'gc>(Option<Inner<'a, 'gc>>);
//! ```
//!
//! ```compile_fail
//! # use heapwright::{Rootable, gc::{Gc, Realm, Trace}};
//! #[derive(Trace)]
//! struct Inner<'a, 'gc: 'a>(Gc<'gc, u32>, Gc<'a, u32>);
//! #[derive(Trace)]
//! struct Outer<'a, 'gc: 'a>(Option<Inner<'a, 'gc>>);
//! // written, it is asked for, and this root has it for 'static alone
//! let mut realm = Realm::<Rootable!['gc => Outer<'static, 'gc>]>::new(|_| Outer(None));
//! let kept: Gc<'static, String> = realm.mutate(|mc, _| mc.alloc(String::from("kept")));
//! ```
//!
//! ```
//! # #[cfg(feature = "derive")] {
//! # use heapwright::{Rootable, gc::{Gc, Realm, Trace}};
//! # #[derive(Trace)]
//! # struct Inner<'a, 'gc: 'a>(Gc<'gc, u32>, Gc<'a, u32>);
//! # #[derive(Trace)]
//! # struct Outer<'a, 'gc: 'a>(Option<Inner<'a, 'gc>>);
//! // as of every lifetime, which is longer than itself
//! let mut realm = Realm::<Rootable!['gc => Outer<'gc, 'gc>]>::new(|_| Outer(None));
//! assert!(realm.mutate(|_, root| root.0.is_none()));
//! # }
//! ```
//!
//! ```compile_fail
//! # use heapwright::gc::{Realm, Rootable};
//! struct Like<T>(T);
//! impl<'gc> Rootable<'gc> for Like<for<'a> fn(&'a u8)> { type Root = [usize; 2]; }
//! impl<'gc> Rootable<'gc> for Like<fn(&'static u8)> { type Root = &'static str; }
//! let realm = Realm::<Like<for<'a> fn(&'a u8)>>::new(|_| [1, 2]);
//! let other: Realm<Like<fn(&'static u8)>> = realm; // a realm is of one type of root, not of its subtypes
//! ```
//!
//! ```
//! # #[cfg(feature = "derive")] {
//! # use heapwright::gc::{Gc, Trace};
//! #[derive(Trace)]
//! struct Held<'gc> {
//!     value: Gc<'gc, u32>,
//!     #[trace(skip)]
//!     file: Option<std::fs::File>, // what is skipped is 'static, and may be dropped
//! }
//! # }
//! ```
//!
//! ```compile_fail
//! # use heapwright::{Rootable, gc::{Gc, Realm, Trace}};
//! #[derive(Trace)]
//! struct Held<'gc> {
//!     #[trace(skip)]
//!     value: Gc<'gc, u32>, // a reference may not be skipped: this is `Trace` for 'static alone
//! }
//! Realm::<Rootable!['gc => Held<'gc>]>::new(|mc| Held { value: mc.alloc(7) });
//! ```
//!
//! ```compile_fail
//! # use heapwright::gc::{Gc, Trace};
//! #[derive(Trace)]
//! struct Held<'gc> {
//!     value: Gc<'gc, u32>,
//! }
//! impl Drop for Held<'_> {
//!     fn drop(&mut self) {
//!         println!("{}", self.value); // what it leads to may be gone
//!     }
//! }
//! ```
//!
//! - `realm`, `mutation`: the heap, and what may be done with it
//! - `pointer`: references, and what stands before each object
//! - `cells`: interior mutability with a write barrier
//! - `slice`: arrays and strings in a slot of their own; `text`: how strings are built
//! - `buffer`: room for values, `growing`: that grows; `collections`: vector, deque, map and set,
//!   made of it without unsafe code
//! - `trace`: the trait; `standard`: the types of core and std that implement it
//! - `weak`: references that keep nothing; `finalize`: what is done when nothing else leads to a
//!   value
//! - `send`: realms that go from thread to thread
//!
//! One thread's at a time. Threads of the heap's own may call `trace`, which reads and
//! nothing else, while `mutate` does not run.

#![no_std]
#![cfg(not(loom))]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_types,
        clippy::disallowed_macros,
        reason = "tests run on std, whose allocator is not this one"
    )
)]

/// The examples of the document run as those of the sources do.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/gc-realm.md")]
struct Document;

mod buffer;
mod cells;
mod collections;
mod copied;
mod finalize;
mod growing;
mod mutation;
mod pointer;
mod realm;
mod send;
mod slice;
mod standard;
mod text;
mod trace;
mod weak;

pub use cells::{Cell, Lock};
pub use collections::{
    deque::Deque,
    hash::{Folding, Seeded},
    map::Map,
    set::Set,
    vector::Vector,
};
pub use finalize::Finalize;
#[cfg(feature = "derive")]
pub use heapwright_derive::Trace;
pub use mutation::{Mutation, Rootable};
pub use pointer::Gc;
pub use realm::Realm;
pub use send::{AnyThread, Mode, OneThread, SendRealm};
pub use slice::{Object, Slice, Str};
pub use standard::Static;
pub use text::StrBuilder;
pub use trace::Trace;
pub use weak::{Ephemeron, Weak};

/// The words of a thread, which the crate above defines, for the unit tests, above which there is
/// none.
#[cfg(test)]
mod words {
    /// What a thread's fast word leads to: nothing here asks.
    #[allow(dead_code, reason = "the words of `os::portable` begin without it")]
    static NOWHERE: usize = 0;

    heapwright_substrate::os::tls::define_words!(NOWHERE);
}
