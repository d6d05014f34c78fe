//! The unstable `Allocator` of the standard library.

super::allocator::implement!(core::alloc);
