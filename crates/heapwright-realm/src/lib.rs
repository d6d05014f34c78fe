//! The collected heap in safe Rust: the compiler tracks its references.
//!
//! **This crate is an implementation detail of [heapwright](https://crates.io/crates/heapwright),
//! which re-exports all its public names as `heapwright::gc`. Use that.**
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
//! [`Realm`] says why this is sound: a mutation never collects, and no reference leaves it.
//!
//! The compiler assumes that the types of a function's arguments are well-formed, and does not
//! check the types in a `dyn for<'gc> Rootable<'gc, Root = ...>`. A root's type that is well-formed
//! for `'static` alone, as `&'static &'gc ()` is, would make `'gc` equal to `'static`. So [`Trace`]
//! is implemented neither for such types nor for types that name them. A root must be `Trace` for
//! every lifetime.
//!
//! **Why objects can be moved.** A move changes every reference to the object. A Rust reference to
//! the object (`&T`, which a `Gc` derefs to) lives as long as `'gc`, so none is left when `mutate`
//! has returned. A `Gc` in another object is a word of that object. The `trace` of the `Gc` reports
//! the word's address. The collector changes the word by its own pointer to the heap, while no
//! reference to the object exists. It must not change a `Gc` in a `Box`, a `Vec` or a map, because
//! `Trace` lends such a `Gc` as shared. Such a `Gc` pins its object, and so does [`Mutation::pin`].
//!
//! **Stores.** Every holder of a `Gc` shares the object, so the object changes through cells: a
//! [`Cell`] for values that are copied, a [`Lock`] for values that are borrowed. See `cells`.
//!
//! **Programs that do not compile**, and similar ones that do:
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
//! realm.mutate(|mc, _| { mc.alloc(Noisy(&count)); }); // nor may a value with a shorter life enter
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
//! // nor may a type leave its bound `'gc: 'a` to be inferred
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
//! // a written bound is checked, and this root meets it for 'static alone
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
//! // every lifetime outlives itself, so this root meets the bound
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
//!     file: Option<std::fs::File>, // a skipped field is 'static, and may be dropped
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
//!         println!("{}", self.value); // its object may be gone
//!     }
//! }
//! ```
//!
//! - `realm`, `mutation`: the heap, and the operations of one mutation
//! - `pointer`: references, and the header before each value
//! - `cells`: interior mutability with a write barrier
//! - `slice`: arrays and strings in a slot of their own; `text`: how strings are built
//! - `buffer`: room for values; `growing`: room that grows; `collections`: vector, deque, map and
//!   set, built on these two (unsafe code only for `Trace`)
//! - `trace`: the trait; `standard`: the types of core and std that implement it
//! - `weak`: references that keep no object alive; `finalize`: functions for unreachable values
//! - `send`: realms that move between threads
//! - `printing`: `Debug` of values that lead to themselves; `copied`: references that are `Copy`
//!
//! One thread uses a realm at a time. Threads of the heap's own may call `trace`, which only reads,
//! while no `mutate` runs.

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

/// The examples of the document run as doc tests.
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
mod printing;
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
pub use mutation::{Fuel, Mutation, Rootable};
pub use pointer::Gc;
pub use realm::Realm;
pub use send::{AnyThread, Mode, OneThread, SendRealm};
pub use slice::{Object, Slice, Str};
pub use standard::Static;
pub use text::StrBuilder;
pub use trace::Trace;
pub use weak::{Ephemeron, Weak};

/// The words of a thread, for the unit tests. In other builds, the crate above defines them.
#[cfg(test)]
mod words {
    #[allow(dead_code, reason = "the words of `os::portable` begin without it")]
    static NOWHERE: usize = 0;

    heapwright_substrate::os::tls::define_words!(NOWHERE);
}
