//! The `Allocator` of `allocator-api2` 0.4, the version of talc, blink-alloc and plurality.

super::allocator::implement!(allocator_api2_04::alloc);
