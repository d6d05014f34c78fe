//! Finds modules with an `operator new` of their own.
//!
//! A shared library that contains the C++ runtime makes blocks with its own `operator new`, which
//! calls `malloc`. It frees these blocks with the process's `operator delete`, which is ours. This
//! is no mistake of the program. The dynamic symbols of such a library define `new`.
//!
//! ```text
//!   module   PT_DYNAMIC -> DT_SYMTAB | DT_STRTAB | DT_GNU_HASH -> a defined symbol, by its name
//! ```
//!
//! The search takes the loader's lock. It runs before a finding is reported. Its result stays valid
//! until another module is loaded. Called by the hardened heap.

use core::ffi::{CStr, c_void};
use core::ptr;

use super::keeping_errno;
use core::sync::atomic::{AtomicU64, Ordering};

const DT_SONAME: i64 = 14;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

/// Twice the number of modules loaded so far, plus 1 if one had its own `new`. 0: not searched yet.
static KNOWN: AtomicU64 = AtomicU64::new(0);

struct Found {
    loaded: u64,
    has_own_new: bool,
}

/// Whether a module other than this one has an `operator new` of its own.
pub fn some_module_has_its_own_new() -> bool {
    let mut found = Found { loaded: 0, has_own_new: false };
    let argument = ptr::from_mut(&mut found).cast();
    // SAFETY: `look` takes this pointer, which is valid for the call.
    keeping_errno(|| unsafe { libc::dl_iterate_phdr(Some(look), argument) });
    KNOWN.store(found.loaded << 1 | u64::from(found.has_own_new), Ordering::Relaxed);
    found.has_own_new
}

unsafe extern "C" fn look(
    module: *mut libc::dl_phdr_info,
    size: libc::size_t,
    argument: *mut c_void,
) -> libc::c_int {
    // SAFETY: the pointer that was given to `dl_iterate_phdr`.
    let found = unsafe { &mut *argument.cast::<Found>() };
    // SAFETY: the loader's description of a module, valid for this call.
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

fn has_its_own_new(module_of_headers: &libc::dl_phdr_info) -> bool {
    let base = module_of_headers.dlpi_addr as usize;
    let Some(dynamic) = headers(module_of_headers).find(|header| header.p_type == libc::PT_DYNAMIC)
    else {
        return false;
    };
    let mut at =
        ptr::with_exposed_provenance::<[i64; 2]>(base.wrapping_add(dynamic.p_vaddr as usize));
    let (mut names, mut symbols, mut hash, mut soname) = (0, 0, 0, None);
    loop {
        // SAFETY: the dynamic section of a loaded module, which ends with a tag of 0.
        let [tag, value] = unsafe { at.read() };
        match tag {
            0 => break,
            DT_STRTAB => names = value as usize,
            DT_SYMTAB => symbols = value as usize,
            DT_GNU_HASH => hash = value as usize,
            DT_SONAME => soname = Some(value as usize),
            _ => {}
        }
        at = at.wrapping_add(1);
    }
    // The loader has made addresses of the offsets, except in the kernel's own module.
    if names < base || symbols < base || hash < base || names == 0 || symbols == 0 || hash == 0 {
        return false;
    }
    let module = Symbols {
        names,
        symbols: ptr::with_exposed_provenance(symbols),
        hash: ptr::with_exposed_provenance(hash),
    };
    // The C++ runtime does not count: it defines the operator, but its own calls go to ours.
    let is_runtime = soname.is_some_and(|soname| {
        let name = module.text(soname);
        name.starts_with(b"libstdc++.") || name.starts_with(b"libc++")
    });
    let is_ours = headers(module_of_headers).any(|header| {
        let start = base.wrapping_add(header.p_vaddr as usize);
        header.p_type == libc::PT_LOAD
            && (start..start + header.p_memsz as usize).contains(&ptr::from_ref(&KNOWN).addr())
    });
    !is_ours && !is_runtime && module.defines(NEW)
}

const NEW: &[u8] = b"_Znwm";

fn headers(module: &libc::dl_phdr_info) -> impl Iterator<Item = &libc::Elf64_Phdr> {
    (0..module.dlpi_phnum as usize).map(|at| {
        // SAFETY: a module has this number of program headers while it is loaded.
        unsafe { &*module.dlpi_phdr.wrapping_add(at) }
    })
}

struct Symbols {
    names: usize,
    symbols: *const libc::Elf64_Sym,
    hash: *const u32,
}

impl Symbols {
    fn text(&self, at: usize) -> &[u8] {
        let text = ptr::with_exposed_provenance(self.names.wrapping_add(at));
        // SAFETY: a text of the module's string table, which ends with a zero.
        unsafe { CStr::from_ptr(text) }.to_bytes()
    }

    fn name(&self, index: usize) -> &[u8] {
        // SAFETY: a symbol of the module: callers pass numbers of its table.
        let symbol = unsafe { self.symbols.wrapping_add(index).read() };
        self.text(symbol.st_name as usize)
    }

    /// A word of the hash table. Its first words: the number of buckets, the first symbol's number,
    /// the number of filter words, the filter's shift. Then: filter, buckets, a word a symbol.
    fn word(&self, at: usize) -> u32 {
        // SAFETY: a word of the table: callers pass places in it.
        unsafe { self.hash.wrapping_add(at).read() }
    }

    fn defines(&self, wanted: &[u8]) -> bool {
        let (buckets, first, filter) =
            (self.word(0) as usize, self.word(1) as usize, self.word(2) as usize);
        if buckets == 0 {
            return false;
        }
        let hash = wanted
            .iter()
            .fold(5381u32, |hash, &byte| hash.wrapping_mul(33).wrapping_add(byte.into()));
        let chains = 4 + 2 * filter + buckets;
        let mut index = self.word(4 + 2 * filter + hash as usize % buckets) as usize;
        while index >= first {
            let word = self.word(chains + index - first);
            if word | 1 == hash | 1 && self.name(index) == wanted {
                return true;
            }
            if word & 1 != 0 {
                break;
            }
            index += 1;
        }
        false
    }
}
