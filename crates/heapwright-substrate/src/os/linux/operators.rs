//! Modules with an `operator new` of their own, by what they import.
//!
//! A shared library that has the C++ runtime linked in makes blocks by an `operator new` that nobody sees, which calls
//! `malloc`; but where it imports `operator delete`, it gives them back by ours. That is no mistake of the
//! program's, and only what such a module imports tells: a `delete`, and no `new`.
//!
//! ```text
//!   module   PT_DYNAMIC -> DT_SYMTAB | DT_STRTAB | DT_GNU_HASH (imports come first: as many as its second word says)
//! ```
//!
//! Takes the loader's lock, and some microseconds a module; asked where a finding would be reported, and remembered as long
//! as no module is loaded.
//!
//! Called by the hardened heap.

use core::ffi::{CStr, c_void};
use core::ptr;

use super::keeping_errno;
use core::sync::atomic::{AtomicU64, Ordering};

const PT_DYNAMIC: u32 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

/// What was found, and when: how many modules had ever been loaded, less one bit for the answer. 0: nothing was.
static KNOWN: AtomicU64 = AtomicU64::new(0);

/// What is found in all modules.
struct Found {
    /// Modules loaded so far, in the process's life.
    loaded: u64,
    has_own_new: bool,
}

/// Whether a module imports C++'s `operator delete` and no `operator new`.
pub fn some_module_has_its_own_new() -> bool {
    let mut found = Found { loaded: 0, has_own_new: false };
    let argument = ptr::from_mut(&mut found).cast();
    // SAFETY: `look` takes what it is given, and the pointer is valid for the call.
    keeping_errno(|| unsafe { libc::dl_iterate_phdr(Some(look), argument) });
    KNOWN.store(found.loaded << 1 | u64::from(found.has_own_new), Ordering::Relaxed);
    found.has_own_new
}

/// Looks at one module. Not 0: no other needs to be looked at.
unsafe extern "C" fn look(
    module: *mut libc::dl_phdr_info,
    size: libc::size_t,
    argument: *mut c_void,
) -> libc::c_int {
    // SAFETY: the pointer that was given to `dl_iterate_phdr`.
    let found = unsafe { &mut *argument.cast::<Found>() };
    // SAFETY: the loader's description of a module, which is valid for this call.
    let module = unsafe { &*module };
    if found.loaded == 0 && size >= core::mem::offset_of!(libc::dl_phdr_info, dlpi_subs) {
        found.loaded = module.dlpi_adds;
        let known = KNOWN.load(Ordering::Relaxed);
        if known != 0 && known >> 1 == found.loaded {
            found.has_own_new = known & 1 != 0;
            return 1;
        }
    }
    found.has_own_new |= has_its_own_new(module);
    libc::c_int::from(found.has_own_new)
}

fn has_its_own_new(module: &libc::dl_phdr_info) -> bool {
    let base = module.dlpi_addr as usize;
    let headers = (0..module.dlpi_phnum as usize).map(|at| {
        // SAFETY: a module has so many program headers, which stay as long as it is loaded.
        unsafe { &*module.dlpi_phdr.wrapping_add(at) }
    });
    let Some(dynamic) = headers.into_iter().find(|header| header.p_type == PT_DYNAMIC) else {
        return false;
    };
    let mut at =
        ptr::with_exposed_provenance::<[i64; 2]>(base.wrapping_add(dynamic.p_vaddr as usize));
    let (mut names, mut symbols, mut hash) = (0, 0, 0);
    loop {
        // SAFETY: the dynamic section of a loaded module, which ends with a tag of 0.
        let [tag, value] = unsafe { at.read() };
        match tag {
            0 => break,
            DT_STRTAB => names = value as usize,
            DT_SYMTAB => symbols = value as usize,
            DT_GNU_HASH => hash = value as usize,
            _ => {}
        }
        at = at.wrapping_add(1);
    }
    // The loader has made addresses of them, but for those of the kernel's own module, which are below its base.
    if names < base || symbols < base || hash < base || names == 0 || symbols == 0 || hash == 0 {
        return false;
    }
    let hash = ptr::with_exposed_provenance::<u32>(hash);
    // SAFETY: the table's second word: the first symbol that is in it, behind all that are imported.
    let imports = unsafe { hash.wrapping_add(1).read() };
    let (mut gives, mut makes) = (false, false);
    for index in 1..imports as usize {
        let symbol = ptr::with_exposed_provenance::<libc::Elf64_Sym>(symbols).wrapping_add(index);
        // SAFETY: a symbol of the module, below the number of those that are imported.
        let name = unsafe { &raw const (*symbol).st_name };
        // SAFETY: a field of that symbol.
        let name = unsafe { name.read() } as usize;
        let name = ptr::with_exposed_provenance(names.wrapping_add(name));
        // SAFETY: the name of a symbol in the module's string table, which ends with a zero.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        gives |= name.starts_with(b"_Zdl") || name.starts_with(b"_Zda");
        makes |= name.starts_with(b"_Znw") || name.starts_with(b"_Zna");
    }
    gives && !makes
}
