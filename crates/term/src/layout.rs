//! The layouts of boxed objects, drawn once, and safe views over them.
//!
//! ```text
//! tuple          hdr(n)         e1 … en
//! float          hdr(1)         bits of the f64
//! bignum         hdr(n)         n 64-bit digits, least significant first; sign in the subtag
//! ref, plain     hdr(2)         marker u32 | num0 u32 << 32  num1 | num2 << 32
//! ref, with pid  hdr(3)         marker | num0  num1 | num2  pid         (alias, spawn request)
//! ref, magic     hdr(2)         *MagicRef  next
//! fun            hdr(4+env)     *FunEntry or *Export  next
//!                               arity | num_free << 8 | external << 16  creator  env…
//! refc binary    hdr(5)         size in bytes  next  *RcBin  *bytes  flags
//! heap binary    hdr(1+words)   size in bytes  bytes…
//! sub-binary     hdr(4)         size in bytes  offset in bytes
//!                               bitsize | bitoffs << 8 | writable << 16  original
//! match context  hdr(4+slots)   original  *bytes  offset in bits  end in bits  saved offsets…
//! external       hdr(2+n)       *Node  next  n data words
//!                               (pid: number | serial << 32; port: id;
//!                               ref: halves: count, numbers)
//! flat map       MAP hdr        size  keys (a tuple)  values…           keys in term order
//! hash map root  MAP hdr        size  children…   (16, or as many as the bitmap has bits)
//! hash map node  MAP hdr        children…
//! record         hdr(1+n)       definition (a tuple)  values…           see `record.rs`
//! ```
//! `next` is always word 2: it links the objects of one heap that own something outside it
//! ([`crate::off_heap::OffHeap`]). Map headers hold, above the subtag: 2 bits of kind, 8 bits of
//! arity, 16 bits of bitmap.

use crate::release::{self, FUNS_OF_INIT};
use crate::word::{Subtag, Term, header, header_arity, header_subtag};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Words of each object, header included.
pub const FLOAT_WORDS: usize = 2;
pub(crate) const REF_WORDS: usize = 3;
pub(crate) const PID_REF_WORDS: usize = 4;
pub(crate) const MAGIC_REF_WORDS: usize = 3;
/// Without the environment.
pub const FUN_WORDS: usize = 5;
pub const REFC_BIN_WORDS: usize = 6;
/// Without the bytes.
pub const HEAP_BIN_HEAD_WORDS: usize = 2;
pub const SUB_BIN_WORDS: usize = 5;
/// Without save slots.
pub const MATCH_CONTEXT_WORDS: usize = 5;
/// Without data words.
pub(crate) const EXTERNAL_HEAD_WORDS: usize = 3;
pub(crate) const EXT_PID_WORDS: usize = 4;

// Indices of words within objects, as drawn above. The header is word 0.

/// Head and tail of a cons cell, which has no header.
pub const CONS_HEAD: usize = 0;
pub const CONS_TAIL: usize = 1;
/// The first element of a tuple.
pub const TUPLE_FIRST: usize = 1;
/// The bits of a float.
pub const FLOAT_BITS: usize = 1;
/// Fun: its entry or export, the bits that [`FunWords`] reads, its creator. The environment begins
/// at [`FUN_WORDS`].
pub const FUN_TARGET: usize = 1;
pub const FUN_BITS: usize = 3;
pub const FUN_CREATOR: usize = 4;
/// Size in bytes of any binary; for a sub-binary the number of whole bytes.
pub const BIN_SIZE: usize = 1;
/// Counted binary: its block, its first byte, its flags.
pub const REFC_BIN_BLOCK: usize = 3;
pub const REFC_BIN_BYTES: usize = 4;
pub const REFC_BIN_FLAGS: usize = 5;
/// Sub-binary: offset in bytes, odd bits, original. The lowest byte of the odd bits is the number
/// of those after the last whole byte, the byte at [`SUB_BIN_START_SHIFT`] that of those before the
/// first.
pub const SUB_BIN_OFFSET: usize = 2;
pub const SUB_BIN_BITS: usize = 3;
pub const SUB_BIN_START_SHIFT: u32 = 8;
pub const SUB_BIN_ORIGINAL: usize = 4;
/// Match context. Positions count bits from the first byte of the original. Save slots begin at
/// [`MATCH_CONTEXT_WORDS`].
pub const MATCH_ORIGINAL: usize = 1;
pub const MATCH_BYTES: usize = 2;
pub const MATCH_POSITION: usize = 3;
pub const MATCH_END: usize = 4;
/// Root of any map: the number of pairs. Flat map: the tuple of keys. Its values begin at
/// [`FLATMAP_HEAD_WORDS`].
pub const MAP_SIZE: usize = 1;
pub const FLATMAP_KEYS: usize = 2;

/// Fields of the word [`FUN_BITS`]: the fun's own arguments in the low byte, the words of its
/// environment in the next, and whether it is external (`fun M:F/A`).
pub const FUN_ARITY_MASK: u64 = 0xFF;
pub const FUN_FREE_SHIFT: u32 = 8;
pub const FUN_FREE_MASK: u64 = 0xFF;
pub const FUN_BY_NAME: u64 = 1 << 16;
/// The bits that equal the arity exactly if a fun has no environment and is not external.
pub const FUN_BARE_MASK: u64 = FUN_ARITY_MASK | FUN_FREE_MASK << FUN_FREE_SHIFT | FUN_BY_NAME;

/// The words of a fun, for code that calls it. [`FunView`] has all of it.
#[derive(Clone, Copy)]
pub struct FunWords(*const Term);

impl FunWords {
    #[inline(always)]
    fn bits(self) -> u64 {
        // SAFETY: made from a fun in hand.
        unsafe { (*self.0.add(FUN_BITS)).raw() }
    }
    #[inline(always)]
    pub fn arity(self) -> usize {
        (self.bits() & FUN_ARITY_MASK) as usize
    }
    /// Words of its environment.
    #[inline(always)]
    pub fn free(self) -> usize {
        (self.bits() >> FUN_FREE_SHIFT & FUN_FREE_MASK) as usize
    }
    /// Whether it has code of its own, `n` arguments, and no environment.
    #[inline(always)]
    pub fn is_bare(self, n: usize) -> bool {
        self.bits() & FUN_BARE_MASK == n as u64
    }
    /// The export of an external fun.
    #[inline(always)]
    pub fn export(self) -> Option<&'static crate::fun::Export> {
        // SAFETY: the layout of external funs; exports are never freed.
        (self.bits() & FUN_BY_NAME != 0)
            .then(|| unsafe { &*((*self.0.add(FUN_TARGET)).raw() as *const crate::fun::Export) })
    }
    /// The entry of a local fun.
    ///
    /// # Safety
    /// The fun is local, and it is in hand while the entry is used.
    #[inline(always)]
    pub unsafe fn entry<'a>(self) -> &'a crate::fun::FunEntry {
        // SAFETY: by the contract, a local fun has its entry there.
        unsafe { &*((*self.0.add(FUN_TARGET)).raw() as *const crate::fun::FunEntry) }
    }
    /// The first word of its environment.
    #[inline(always)]
    pub fn environment(self) -> *const Term {
        self.0.wrapping_add(FUN_WORDS)
    }
    /// Writes the words of a fun at `p`, except its environment and, for a local fun, the link.
    ///
    /// # Safety
    /// `p` has room for [`FUN_WORDS`] words and the environment. `target` is the export, or an
    /// entry that counts this fun.
    #[inline(always)]
    pub unsafe fn write(p: *mut Term, target: Target, arity: u8, free: u8, creator: Term) {
        let w = p as *mut u64;
        let bits = u64::from(arity) | u64::from(free) << FUN_FREE_SHIFT;
        // SAFETY: by the contract, there is room for the words.
        unsafe {
            w.write(header(Subtag::Fun, FUN_WORDS - 1 + free as usize));
            match target {
                Target::Entry(e) => {
                    w.add(FUN_TARGET).write(e as u64);
                    w.add(FUN_BITS).write(bits);
                }
                Target::Export(e) => {
                    w.add(FUN_TARGET).write(e as u64);
                    w.add(NEXT).write(0);
                    w.add(FUN_BITS).write(bits | FUN_BY_NAME);
                }
            }
            p.add(FUN_CREATOR).write(creator);
        }
    }
}

/// The target of a fun.
#[derive(Clone, Copy)]
pub enum Target {
    Entry(*const crate::fun::FunEntry),
    Export(*const crate::fun::Export),
}

/// A reference of this runtime that lies on no heap, for terms that are copied at once.
pub struct RefWords([u64; REF_WORDS]);

impl RefWords {
    /// Makes the reference with these numbers.
    #[inline]
    pub fn new(num: [u32; 3]) -> RefWords {
        RefWords([
            REF_HEADER,
            REF_MARKER as u64 | u64::from(num[0]) << 32,
            u64::from(num[1]) | u64::from(num[2]) << 32,
        ])
    }
    /// The reference. It is valid as long as `self` lives and does not move.
    #[inline]
    pub fn term(&self) -> Term {
        // SAFETY: the words are those of a reference, and 8-aligned.
        unsafe { Term::boxed_at(self.0.as_ptr() as *const Term) }
    }
}

/// Default of [`heap_bin_limit`]: binaries up to this many bytes are copied with their term, not
/// shared.
pub const HEAP_BIN_LIMIT: usize = 64;
/// Greatest [`heap_bin_limit`].
pub(crate) const HEAP_BIN_LIMIT_MAX: usize = 65535;
static HEAP_BIN: AtomicUsize = AtomicUsize::new(HEAP_BIN_LIMIT);

/// Binaries up to this many bytes are made on the heap. The limit may change at any time: read it
/// once per use.
#[inline]
pub fn heap_bin_limit() -> usize {
    HEAP_BIN.load(Ordering::Relaxed)
}
/// Sets [`heap_bin_limit`] to at most [`HEAP_BIN_LIMIT_MAX`], for binaries made from now on.
pub fn set_heap_bin_limit(n: usize) {
    HEAP_BIN.store(n.min(HEAP_BIN_LIMIT_MAX), Ordering::Relaxed)
}
/// Words of a flat map before its values: header, size, keys.
pub const FLATMAP_HEAD_WORDS: usize = 3;
/// Maps up to this many pairs are flat.
pub const FLATMAP_LIMIT: usize = 32;

/// Index of the `next` word in every object that is on an off-heap list.
pub const NEXT: usize = 2;

/// Low half of word 1 of a reference that is not magic. No pointer has this low half.
pub(crate) const REF_MARKER: u32 = 0xFFFF_FFFF;

/// Positions of kind and bitmap in the header of a map.
pub const MAP_KIND_SHIFT: u32 = 6;
pub const MAP_BITMAP_SHIFT: u32 = 16;
/// Kind bits of a map header.
pub const MAP_FLAT: u64 = 0;
pub const MAP_NODE: u64 = 1;
pub const MAP_HEAD_ARRAY: u64 = 2;
pub const MAP_HEAD_BITMAP: u64 = 3;

/// Levels of a hash tree that one hash covers.
pub const MAP_LEVELS: usize = 8;

const MAP_SUBTAG_BITS: u64 = (Subtag::Map as u64) << 2;

pub const FLATMAP_HEADER: u64 = MAP_SUBTAG_BITS | (MAP_FLAT << MAP_KIND_SHIFT);
/// Header of a hash map's root with all 16 children.
pub const HASHMAP_ARRAY_HEADER: u64 =
    MAP_SUBTAG_BITS | (MAP_HEAD_ARRAY << MAP_KIND_SHIFT) | (1 << 8) | (0xFFFF << MAP_BITMAP_SHIFT);
/// Header of a hash map's root with the children of `bitmap`.
#[inline]
pub(crate) const fn hashmap_root_header(bitmap: u16) -> u64 {
    MAP_SUBTAG_BITS
        | (MAP_HEAD_BITMAP << MAP_KIND_SHIFT)
        | (1 << 8)
        | ((bitmap as u64) << MAP_BITMAP_SHIFT)
}
/// Header of an inner node of a hash map with the children of `bitmap`.
#[inline]
pub(crate) const fn hashmap_node_header(bitmap: u16) -> u64 {
    MAP_SUBTAG_BITS | (MAP_NODE << MAP_KIND_SHIFT) | ((bitmap as u64) << MAP_BITMAP_SHIFT)
}
/// Kind bits of a map header: one of the `MAP_*` kinds.
#[inline]
pub const fn map_kind(hdr: u64) -> u64 {
    (hdr >> MAP_KIND_SHIFT) & 3
}
/// Bitmap of a hash map header.
#[inline]
pub(crate) const fn map_bitmap(hdr: u64) -> u16 {
    (hdr >> MAP_BITMAP_SHIFT) as u16
}

/// Words of the object that starts with header `hdr` at `p`, header included.
///
/// # Safety
/// `p` points at a well-formed boxed object (a flat map's size is read).
#[inline(always)]
pub unsafe fn object_words(p: *const Term) -> usize {
    // SAFETY: by the contract, the object has a header.
    unsafe {
        let hdr = (*p).raw();
        if header_subtag(hdr) as u8 == Subtag::Map as u8 {
            map_words(p)
        } else {
            1 + header_arity(hdr)
        }
    }
}

/// Words of the map object (root or inner node) at `p`, header included.
///
/// # Safety
/// `p` points at a well-formed map object.
#[inline]
pub(crate) unsafe fn map_words(p: *const Term) -> usize {
    // SAFETY: by the contract; word 1 of a flat map is its size.
    unsafe {
        let hdr = (*p).raw();
        match map_kind(hdr) {
            MAP_FLAT => 3 + (*p.add(1)).raw() as usize,
            MAP_NODE => 1 + map_bitmap(hdr).count_ones() as usize,
            _ => 2 + map_bitmap(hdr).count_ones() as usize,
        }
    }
}

/// For the object at `p`: the range of its words that are terms, as (first index, end index). All
/// other words are raw.
///
/// # Safety
/// `p` points at a well-formed boxed object.
#[inline]
pub unsafe fn term_range(p: *const Term) -> (usize, usize) {
    // SAFETY: by the contract; word 1 of a flat map is its size.
    unsafe {
        let hdr = (*p).raw();
        let n = header_arity(hdr);
        match header_subtag(hdr) {
            Subtag::Tuple | Subtag::Record => (1, n + 1),
            Subtag::Fun => (4, n + 1),
            Subtag::SubBin => (4, 5),
            Subtag::MatchContext => (1, 2),
            Subtag::Map => match map_kind(hdr) {
                MAP_FLAT => (2, 3 + (*p.add(1)).raw() as usize),
                MAP_NODE => (1, map_words(p)),
                _ => (2, map_words(p)),
            },
            _ => (0, 0),
        }
    }
}

/// Whether objects with this subtag are linked on an off-heap list. A plain `Ref` is not: see
/// [`is_magic`].
#[inline]
pub(crate) const fn may_be_off_heap(s: Subtag) -> bool {
    matches!(
        s,
        Subtag::RefcBin | Subtag::Fun | Subtag::ExtPid | Subtag::ExtPort | Subtag::ExtRef
    )
}

/// Whether the `Ref` object at `p` is a magic reference.
///
/// # Safety
/// `p` points at an object with subtag `Ref`.
#[inline]
pub(crate) unsafe fn is_magic(p: *const Term) -> bool {
    // SAFETY: by the contract, it has a word 1.
    unsafe { (*p.add(1)).raw() as u32 != REF_MARKER }
}

/// Whether the object at `p` is a magic reference to something whose end is visible outside the
/// runtime.
///
/// # Safety
/// `p` points at a boxed object.
pub(crate) unsafe fn ends_outside(p: *const Term) -> bool {
    // SAFETY: by the contract; a magic reference has the address of its live value in word 1.
    unsafe {
        header_subtag((*p).raw()) == Subtag::Ref
            && is_magic(p)
            && (*((*p.add(1)).raw() as *const crate::magic::MagicRef)).ends_outside
    }
}

/// Where the data of a bitstring lies: its first byte, its first bit there, and its length in bits.
#[derive(Clone, Copy, Debug)]
pub struct Bits {
    /// First byte that holds a bit of the string.
    pub base: *const u8,
    /// Bits to skip in the first byte, 0 to 7.
    pub bit_offset: u32,
    /// Length in bits.
    pub bit_len: usize,
}

impl Bits {
    /// The bytes, if the string is byte-aligned and a whole number of bytes long.
    #[inline]
    pub fn as_bytes<'a>(&self) -> Option<&'a [u8]> {
        if self.bit_offset == 0 && self.bit_len & 7 == 0 {
            // SAFETY: made from a bitstring in hand, whose bytes stay in place (term contract).
            Some(unsafe { std::slice::from_raw_parts(self.base, self.bit_len >> 3) })
        } else {
            None
        }
    }
    /// The bytes, shifted into place if they are not aligned. None if it is not a whole number of
    /// bytes.
    pub fn to_bytes<'a>(&self) -> Option<std::borrow::Cow<'a, [u8]>> {
        if self.bit_len & 7 != 0 {
            return None;
        }
        Some(match self.as_bytes() {
            Some(b) => std::borrow::Cow::Borrowed(b),
            None => std::borrow::Cow::Owned(self.shifted()),
        })
    }
    /// A copy that starts at bit 0; the last byte is padded with zero bits.
    pub fn shifted(&self) -> Vec<u8> {
        let n = self.bit_len.div_ceil(8);
        let src_n = (self.bit_offset as usize + self.bit_len).div_ceil(8);
        // SAFETY: made from a bitstring in hand, whose bytes stay in place (term contract).
        let src = unsafe { std::slice::from_raw_parts(self.base, src_n) };
        let s = self.bit_offset;
        let mut out = Vec::with_capacity(n);
        for i in 0..n {
            let hi = if s == 0 { src[i] } else { src[i] << s };
            let lo = if s == 0 || i + 1 >= src_n {
                0
            } else {
                src[i + 1] >> (8 - s)
            };
            out.push(hi | lo);
        }
        if self.bit_len & 7 != 0
            && let Some(l) = out.last_mut()
        {
            *l &= 0xFFu8 << (8 - (self.bit_len & 7));
        }
        out
    }
}

/// Flags in the last word of a refc binary: it may be appended to in place; it has an active
/// writer.
pub const PB_IS_WRITABLE: u64 = 1;
pub const PB_ACTIVE_WRITER: u64 = 2;
/// In the word [`SUB_BIN_BITS`]: the original may be appended to behind its end.
pub const SUB_WRITABLE: u64 = 1 << 16;

impl Term {
    /// The data of a bitstring of any representation; None for anything else (match contexts too).
    #[inline]
    pub fn as_bits(self) -> Option<Bits> {
        let s = self.subtag()?;
        let p = self.ptr();
        // SAFETY: layouts above; a term in hand is well formed.
        unsafe {
            match s {
                Subtag::HeapBin => Some(Bits {
                    base: p.add(HEAP_BIN_HEAD_WORDS) as *const u8,
                    bit_offset: 0,
                    bit_len: (*p.add(BIN_SIZE)).raw() as usize * 8,
                }),
                Subtag::RefcBin => Some(Bits {
                    base: (*p.add(REFC_BIN_BYTES)).raw() as *const u8,
                    bit_offset: 0,
                    bit_len: (*p.add(BIN_SIZE)).raw() as usize * 8,
                }),
                Subtag::SubBin => {
                    let orig = (*p.add(SUB_BIN_ORIGINAL)).ptr();
                    let base = match header_subtag((*orig).raw()) {
                        Subtag::HeapBin => orig.add(HEAP_BIN_HEAD_WORDS) as *const u8,
                        _ => (*orig.add(REFC_BIN_BYTES)).raw() as *const u8,
                    };
                    let m = (*p.add(SUB_BIN_BITS)).raw();
                    Some(Bits {
                        base: base.add((*p.add(SUB_BIN_OFFSET)).raw() as usize),
                        bit_offset: (m >> SUB_BIN_START_SHIFT) as u32 & 0xFF,
                        bit_len: (*p.add(BIN_SIZE)).raw() as usize * 8 + (m & 0xFF) as usize,
                    })
                }
                _ => None,
            }
        }
    }
    /// The original of a sub-binary; any other term itself.
    #[inline]
    pub fn whole(self) -> Term {
        match self.subtag() {
            // SAFETY: layouts above; a term in hand is well formed.
            Some(Subtag::SubBin) => unsafe { *self.ptr().add(SUB_BIN_ORIGINAL) },
            _ => self,
        }
    }
    /// The block of a counted binary that is no sub-binary; None for any other term.
    #[inline]
    pub fn block(self) -> Option<*mut crate::bin::RcBin> {
        match self.subtag()? {
            // SAFETY: layouts above; a term in hand is well formed.
            Subtag::RefcBin => Some(unsafe { (*self.ptr().add(REFC_BIN_BLOCK)).raw() } as *mut _),
            _ => None,
        }
    }
    /// The words of a fun; None for anything else.
    #[inline(always)]
    pub fn fun_words(self) -> Option<FunWords> {
        self.is_fun().then(|| FunWords(self.ptr()))
    }
    /// The number of bits that a match context has left; None for any other term.
    pub fn bits_left(self) -> Option<usize> {
        if self.subtag()? != Subtag::MatchContext {
            return None;
        }
        let p = self.ptr();
        // SAFETY: layout above; a term in hand is well formed.
        let (offset, end) = unsafe { ((*p.add(MATCH_POSITION)).raw(), (*p.add(MATCH_END)).raw()) };
        Some(end.saturating_sub(offset) as usize)
    }
    /// Size in bytes of a binary, without a look at where the bytes lie. None for bitstrings with
    /// odd bits and for any other term.
    #[inline(always)]
    pub(crate) fn whole_bytes(self) -> Option<usize> {
        let s = self.subtag()?;
        let p = self.ptr();
        // SAFETY: layouts above; a term in hand is well formed.
        unsafe {
            let whole = match s {
                Subtag::RefcBin | Subtag::HeapBin => true,
                Subtag::SubBin => (*p.add(SUB_BIN_BITS)).raw() & 0xFF == 0,
                _ => false,
            };
            whole.then(|| (*p.add(BIN_SIZE)).raw() as usize)
        }
    }
    /// The bytes of a heap binary or counted binary, which start at the front of its data; None for
    /// any other term.
    #[inline]
    pub(crate) fn front_bytes<'a>(self) -> Option<&'a [u8]> {
        let s = self.subtag()?;
        let p = self.ptr();
        // SAFETY: layouts above; a term in hand is well formed.
        unsafe {
            let base = match s {
                Subtag::RefcBin => (*p.add(4)).raw() as *const u8,
                Subtag::HeapBin => p.add(2) as *const u8,
                _ => return None,
            };
            Some(std::slice::from_raw_parts(base, (*p.add(1)).raw() as usize))
        }
    }
    /// The bytes of a binary. None if it is no bitstring or has odd bits.
    #[inline]
    pub fn as_binary<'a>(self) -> Option<std::borrow::Cow<'a, [u8]>> {
        self.as_bits()?.to_bytes()
    }
    /// Whether this is a binary: a bitstring of a whole number of bytes.
    #[inline]
    pub fn is_binary(self) -> bool {
        self.as_bits().is_some_and(|b| b.bit_len & 7 == 0)
    }

    /// Number of pairs in a map; None if it is no map.
    #[inline]
    pub fn map_size(self) -> Option<usize> {
        // SAFETY: word 1 of a map root is its size.
        if self.is_map() {
            Some(unsafe { (*self.ptr().add(1)).raw() } as usize)
        } else {
            None
        }
    }
    /// Keys and values of a flat map, in order; None for anything else.
    #[inline]
    pub fn as_flatmap<'a>(self) -> Option<(&'a [Term], &'a [Term])> {
        if self.boxed_header()? != FLATMAP_HEADER {
            return None;
        }
        // SAFETY: layout of flat maps above.
        unsafe {
            let p = self.ptr();
            let n = (*p.add(MAP_SIZE)).raw() as usize;
            Some((
                std::slice::from_raw_parts((*p.add(FLATMAP_KEYS)).ptr().add(1), n),
                std::slice::from_raw_parts(p.add(FLATMAP_HEAD_WORDS), n),
            ))
        }
    }

    /// View of a fun (local or external); None for anything else.
    #[inline]
    pub fn as_fun<'a>(self) -> Option<FunView<'a>> {
        if !self.is_fun() {
            return None;
        }
        // SAFETY: layout of funs above.
        unsafe {
            let p = self.ptr();
            let words = FunWords(p);
            Some(FunView {
                entry: (*p.add(FUN_TARGET)).raw(),
                arity: words.arity() as u8,
                external: words.bits() & FUN_BY_NAME != 0,
                creator: *p.add(FUN_CREATOR),
                env: std::slice::from_raw_parts(p.add(FUN_WORDS), words.free()),
            })
        }
    }

    /// The words of a reference that is neither magic nor carries a pid nor belongs to another
    /// node; None for anything else. Two such references are equal if their words are.
    #[inline]
    pub fn plain_ref(self) -> Option<[u64; REF_WORDS]> {
        if !self.is_boxed() {
            return None;
        }
        let p = self.ptr();
        // SAFETY: a boxed term points at a header, and this header is that of an object of as many
        // words.
        unsafe {
            ((*p).raw() == REF_HEADER && !is_magic(p))
                .then(|| std::array::from_fn(|i| (*p.add(i)).raw()))
        }
    }

    /// View of a reference of any kind; None for anything else.
    #[inline]
    pub fn as_ref_view<'a>(self) -> Option<RefView<'a>> {
        let p = self.ptr();
        // SAFETY: layouts above.
        unsafe {
            match self.subtag()? {
                Subtag::Ref if is_magic(p) => Some(RefView::Magic(
                    &*((*p.add(1)).raw() as *const crate::magic::MagicRef),
                )),
                Subtag::Ref => {
                    let (a, b) = ((*p.add(1)).raw(), (*p.add(2)).raw());
                    let num = [(a >> 32) as u32, b as u32, (b >> 32) as u32];
                    let pid = (header_arity((*p).raw()) == 3).then(|| *p.add(3));
                    Some(RefView::Local { num, pid })
                }
                Subtag::ExtRef => {
                    let half = p.add(3) as *const u32;
                    Some(RefView::External {
                        node: &*((*p.add(1)).raw() as *const crate::node::Node),
                        nums: std::slice::from_raw_parts(half.add(1), half.read() as usize),
                    })
                }
                _ => None,
            }
        }
    }
    /// Node and data word of a pid or port of another node; None for anything else.
    pub fn as_external<'a>(self) -> Option<(&'a crate::node::Node, u64)> {
        match self.subtag()? {
            // SAFETY: layouts above.
            Subtag::ExtPid | Subtag::ExtPort => unsafe {
                let p = self.ptr();
                Some((
                    &*((*p.add(1)).raw() as *const crate::node::Node),
                    (*p.add(3)).raw(),
                ))
            },
            _ => None,
        }
    }
}

/// The content of a fun term.
#[derive(Clone, Copy)]
pub struct FunView<'a> {
    /// Address of a [`crate::fun::FunEntry`], or of a [`crate::fun::Export`] if `external`.
    pub entry: u64,
    pub arity: u8,
    /// `fun M:F/A`.
    pub external: bool,
    /// The pid of the process that made it; nil if external. [`FunView::maker`] is the pid to show.
    pub creator: Term,
    pub env: &'a [Term],
}

impl<'a> FunView<'a> {
    /// The pid to show as the maker of a local fun.
    pub fn maker(&self) -> Term {
        match release::has(FUNS_OF_INIT) {
            true => Term::pid(0),
            false => self.creator,
        }
    }
    /// The entry of a local fun.
    #[inline]
    pub fn local(&self) -> Option<&'a crate::fun::FunEntry> {
        // SAFETY: entries live as long as funs that refer to them (counted).
        (!self.external).then(|| unsafe { &*(self.entry as *const crate::fun::FunEntry) })
    }
    /// The export of an external fun.
    #[inline]
    pub fn export(&self) -> Option<&'a crate::fun::Export> {
        // SAFETY: exports are never freed.
        self.external
            .then(|| unsafe { &*(self.entry as *const crate::fun::Export) })
    }
}

/// The content of a reference term.
pub enum RefView<'a> {
    Local {
        num: [u32; 3],
        pid: Option<Term>,
    },
    Magic(&'a crate::magic::MagicRef),
    External {
        node: &'a crate::node::Node,
        nums: &'a [u32],
    },
}

impl RefView<'_> {
    /// The three numbers of a reference of this runtime.
    #[inline]
    pub fn local_nums(&self) -> Option<[u32; 3]> {
        match self {
            RefView::Local { num, .. } => Some(*num),
            RefView::Magic(m) => Some(m.num),
            RefView::External { .. } => None,
        }
    }
}

/// Header word of a plain reference.
pub(crate) const REF_HEADER: u64 = header(Subtag::Ref, REF_WORDS - 1);
/// Header word of a reference that carries a pid.
pub(crate) const PID_REF_HEADER: u64 = header(Subtag::Ref, PID_REF_WORDS - 1);
