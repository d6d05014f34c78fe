//! Stacks on Linux: x86-64 and aarch64.
//!
//! ```text
//!   walk      memo      modules      the walk, its memory, facts for reports
//!   bounds    cache     image        readable memory, rules, modules in memory
//!             shared    mapped       rules of other processes; modules by the kernel's list
//!   x86_64 or aarch64                registers and their places in signal frames
//! ```
//!
//! Unwind tables tell the frames, because most code has no frame pointers. `_dl_find_object` of
//! glibc (2.35 and later) finds the tables without a wait. Without it (musl, an older glibc, static
//! programs), `mapped` finds them. musl itself has no tables: a walk passes musl's frames by the
//! frame pointer, or ends there.

mod bounds;
mod cache;
mod image;
mod mapped;
mod memo;
mod modules;
mod shared;
mod walk;

#[allow(clippy::module_inception, reason = "one choice within another")]
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
mod machine;

pub(super) use cache::forget_code;
pub(super) use machine::registers;
pub(super) use modules::{module_of, module_range, symbol_of};
pub(super) use shared::{BYTES as SHARED_BYTES, share};
pub use walk::Scratch;
pub(super) use walk::{above, capture, of_context, own_module, prepare, spare_foreign_stacks};
#[cfg(all(test, target_env = "gnu"))]
pub(super) use walk::{capture_by_walking, registers_for_test};
