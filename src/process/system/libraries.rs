//! Releases the pages of shared libraries.

use std::ffi::{c_int, c_void};
use std::{ptr, slice};

use nix::libc;

/// Releases the read-only pages of the shared libraries from this process, optionally except those of the C library. Pages that are used
/// again are read from the file, which stays in the page cache while there is room.
pub(crate) fn give_back_libraries(keeps_c_library: bool) {
    let flag = ptr::without_provenance_mut(usize::from(keeps_c_library));
    // SAFETY: the function has the signature that the call requires, and its argument is a flag and no pointer.
    unsafe { libc::dl_iterate_phdr(Some(give_back_library), flag) };
}

/// Releases the pages of one loaded object, unless it is this program, or an object whose text the loader has changed.
extern "C" fn give_back_library(object: *mut libc::dl_phdr_info, _: usize, keeps_c_library: *mut c_void) -> c_int {
    const GO_ON: c_int = 0;
    // SAFETY: the object is valid for this call, because the loader unloads no object meanwhile.
    let (base, headers) = unsafe {
        let object = &*object;
        (to_address(object.dlpi_addr), slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()))
    };
    let segments = headers.iter().map(|header| {
        let start = base.wrapping_add(to_address(header.p_vaddr));
        (header.p_type, start..start.wrapping_add(to_address(header.p_memsz)), header.p_flags & libc::PF_W != 0)
    });
    let holds = |address| segments.clone().any(|(kind, range, _)| kind == libc::PT_LOAD && range.contains(&address));
    let own = give_back_libraries as fn(bool) as usize;
    let of_c_library = libc::getpid as unsafe extern "C" fn() -> libc::pid_t as usize;
    let is_kept = holds(own) || (!keeps_c_library.is_null() && holds(of_c_library));
    // The kernel's own object has no file. SAFETY: the call reads a number of this process.
    let vdso = to_address(unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) });
    let mut dynamic = segments.clone().filter(|(kind, ..)| *kind == libc::PT_DYNAMIC);
    if is_kept || holds(vdso) || dynamic.any(|(_, range, _)| has_changed_text(range.start)) {
        return GO_ON;
    }
    // SAFETY: the call reads a number of this system.
    let page = to_address(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).max(1);
    for (_, range, _) in segments.filter(|(kind, _, is_written)| *kind == libc::PT_LOAD && !is_written) {
        let (first, end) = (range.start.next_multiple_of(page), range.end / page * page);
        let pages = ptr::with_exposed_provenance_mut(first);
        // SAFETY: these are whole pages of a file that were never written to, so they have the same content when they are loaded again.
        unsafe { libc::madvise(pages, end.saturating_sub(first), libc::MADV_DONTNEED) };
    }
    GO_ON
}

/// Whether the loader has changed an object's text, according to the object's dynamic section.
fn has_changed_text(dynamic: usize) -> bool {
    const END: usize = 0;
    const TEXTREL: usize = 22;
    const FLAGS: usize = 30;
    const TEXTREL_IN_FLAGS: usize = 4;
    let mut entry: *const [usize; 2] = ptr::with_exposed_provenance(dynamic);
    loop {
        // SAFETY: the section is loaded, and the loop ends at its last entry, which has the tag 0.
        let ([tag, value], next) = unsafe { (*entry, entry.add(1)) };
        match tag {
            END => return false,
            TEXTREL => return true,
            FLAGS if value & TEXTREL_IN_FLAGS != 0 => return true,
            _ => entry = next,
        }
    }
}

/// Converts a number of the loader, which always fits.
fn to_address(number: impl TryInto<usize>) -> usize {
    number.try_into().unwrap_or_default()
}
