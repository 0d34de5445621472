//! Binaries: bytes that C code owns, bytes that it inspects, and external terms.
//!
//! An `ErlNifBinary` whose `ref_bin` is not null owns a counted block. An inspected binary points
//! to the bytes of the term or, if those do not start at a byte boundary, to a copy that lives as
//! long as the environment.

use crate::abi::Binary;
use crate::env::ErlNifEnv;
use purlin_native::exports::CodeHooks;
use purlin_term::bin::RcBin;
use purlin_term::layout::{Bits, heap_bin_limit};
use purlin_term::pressure::refuses;
use purlin_term::{Alloc, Term, etf, iolist};
use std::ffi::{c_int, c_uint};

/// A flag of `enif_binary_to_term`: make no atoms.
const SAFE: c_uint = 0x2000_0000;

impl Binary {
    fn borrowed(data: *const u8, size: usize) -> Binary {
        Binary {
            size,
            data: data as *mut u8,
            ref_bin: std::ptr::null_mut(),
        }
    }
    /// Makes a binary that owns `bin`, all of whose bytes are used.
    ///
    /// # Safety
    /// `bin` has `size` bytes, and the caller's count passes to the binary.
    pub unsafe fn owned(bin: *mut RcBin, size: usize) -> Binary {
        Binary {
            size,
            // SAFETY: `bin` is alive.
            data: unsafe { RcBin::bytes(bin) },
            ref_bin: bin,
        }
    }
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: that many bytes are there.
        unsafe { crate::terms::slice(self.data, self.size) }
    }
}

/// Returns the bytes of a binary, valid for the life of the environment.
///
/// # Safety
/// The environment belongs to this call, and `t` is a term of it.
#[inline(always)]
unsafe fn inspect(env: *mut ErlNifEnv, t: Term) -> Option<Binary> {
    let bits = t.as_bits()?;
    if bits.bit_len & 7 != 0 {
        return None;
    }
    if let Some(b) = bits.as_bytes() {
        return Some(Binary::borrowed(b.as_ptr(), b.len()));
    }
    // SAFETY: by the contract of this function.
    unsafe { Some(shifted(env, bits)) }
}

/// Does the same for bytes that do not start at a byte boundary.
///
/// # Safety
/// The environment belongs to this call, and the bits are those of a term of it.
#[cold]
#[inline(never)]
unsafe fn shifted(env: *mut ErlNifEnv, bits: Bits) -> Binary {
    let copy = bits.shifted();
    let n = copy.len();
    // SAFETY: the environment is this call's.
    unsafe { Binary::borrowed((*env).keep_bytes(copy.into()), n) }
}

exported! {
    fn enif_is_binary(_env: *mut ErlNifEnv, t: Term) -> c_int {
        c_int::from(t.is_binary())
    }
    fn enif_inspect_binary(env: *mut ErlNifEnv, t: Term, to: *mut Binary) -> c_int {
        match inspect(env, t) {
            Some(b) => {
                to.write(b);
                1
            }
            None => 0,
        }
    }
    fn enif_inspect_iolist_as_binary(env: *mut ErlNifEnv, t: Term, to: *mut Binary) -> c_int {
        if let Some(b) = inspect(env, t) {
            to.write(b);
            return 1;
        }
        if !t.is_list() {
            return 0;
        }
        let Ok(bytes) = iolist::to_vec(t) else {
            return 0;
        };
        let n = bytes.len();
        to.write(Binary::borrowed((*env).keep_bytes(bytes.into()), n));
        1
    }
    fn enif_alloc_binary(size: usize, to: *mut Binary) -> c_int {
        if refuses(size) {
            return 0;
        }
        match RcBin::try_alloc(size) {
            Some(b) => {
                to.write(Binary::owned(b, size));
                1
            }
            None => 0,
        }
    }
    fn enif_realloc_binary(bin: *mut Binary, size: usize) -> c_int {
        let b = &mut *bin;
        if size > b.size && refuses(size - b.size) {
            return 0;
        }
        if b.ref_bin.is_null() {
            let Some(new) = RcBin::try_alloc(size) else {
                return 0;
            };
            std::ptr::copy_nonoverlapping(b.data, RcBin::bytes(new), size.min(b.size));
            *b = Binary::owned(new, size);
            return 1;
        }
        let Some(new) = RcBin::try_grow(b.ref_bin, size) else {
            return 0;
        };
        *b = Binary::owned(new, size);
        1
    }
    fn enif_release_binary(bin: *mut Binary) {
        let b = &mut *bin;
        if !b.ref_bin.is_null() {
            RcBin::release(b.ref_bin);
            b.ref_bin = std::ptr::null_mut();
        }
    }
    /// The block passes to the term. C code may still read the bytes as long as the term exists.
    fn enif_make_binary(env: *mut ErlNifEnv, bin: *mut Binary) -> Term {
        let b = &mut *bin;
        if b.ref_bin.is_null() {
            return (*env).binary(b.bytes());
        }
        let block = std::mem::replace(&mut b.ref_bin, std::ptr::null_mut());
        (*env).refc_bin(block, b.size)
    }
    fn enif_make_new_binary(env: *mut ErlNifEnv, size: usize, to: *mut Term) -> *mut u8 {
        let (t, p) = match size <= heap_bin_limit() {
            true => (*env).heap_bin(size),
            false => {
                let b = RcBin::alloc(size);
                ((*env).refc_bin(b, size), RcBin::bytes(b))
            }
        };
        to.write(t);
        p
    }
    fn enif_make_sub_binary(env: *mut ErlNifEnv, t: Term, at: usize, size: usize) -> Term {
        let bytes = t.as_bits().map_or(0, |b| b.bit_len / 8);
        match at.checked_add(size) {
            Some(end) if end <= bytes && t.is_bitstring() => (*env).sub_binary(t, at * 8, size * 8),
            _ => (*env).badarg(),
        }
    }
    fn enif_term_to_binary(_env: *mut ErlNifEnv, t: Term, to: *mut Binary) -> c_int {
        let Some(bytes) = etf::encode::encode_all(t, etf::encode::Options::default()) else {
            return 0;
        };
        let Some(b) = RcBin::try_alloc(bytes.len()) else {
            return 0;
        };
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), RcBin::bytes(b), bytes.len());
        to.write(Binary::owned(b, bytes.len()));
        1
    }
    fn enif_binary_to_term(
        env: *mut ErlNifEnv, data: *const u8, size: usize, to: *mut Term, options: c_uint,
    ) -> usize {
        if options != 0 && options != SAFE {
            return 0;
        }
        let options = etf::Options {
            safe: options == SAFE,
            ..etf::Options::default()
        };
        let bytes = crate::terms::slice(data, size);
        // Compressed terms are not accepted.
        if bytes.get(1) == Some(&etf::tag::COMPRESSED) {
            return 0;
        }
        match etf::decode(bytes, &mut *env, &CodeHooks, options) {
            Ok((t, used)) => {
                to.write(t);
                used
            }
            Err(_) => 0,
        }
    }
}
