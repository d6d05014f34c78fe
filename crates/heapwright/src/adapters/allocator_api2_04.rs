//! `Allocator` of `allocator-api2` 0.4: talc, blink-alloc, plurality.

super::allocator::implement!(allocator_api2_04::alloc);
