//! How `libheapwright.so` is linked: see link.rs.

mod link;
use link::Library;

fn main() {
    link::link(&Library { soname: "libheapwright.so", sources: ".", own: &[], parts: &[] });
}
