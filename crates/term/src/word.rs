//! The term word: one 64-bit word per term, with the field's usual tags.
//!
//! ```text
//!   pppppppp...ppp01  cons: pointer to two words, head and tail
//!   pppppppp...ppp10  boxed: pointer to a header word
//!   ..............00  header (in an object) or code address (on a stack)
//!   nnnnnnnn..nn0011  local pid (28 bits of data)
//!   nnnnnnnn..nn0111  local port (28 bits of data)
//!   iiiiiiii..ii1111  small: 60-bit two's complement
//!   iiiiii..ii001011  atom: index into the atom table
//!   cccccc..cc011011  catch mark (stack only)
//!               0x3b  nil
//!
//!   header: arity or payload words << 6 | 4-bit subtag << 2 | 00
//! ```
//!
//! # The contract of a term in hand
//! A `Term` is a plain word, `Copy`, without a lifetime. The object that it points at stays where
//! it is until one of the `unsafe` functions that move or free terms runs (a collection, the
//! release of a fragment or region). Safe code may read through any `Term` that it was given during
//! the native call in which it was given. It must not keep a `Term` beyond that call: a term that
//! has to live longer is copied into a buffer of its own ([`crate::frag::OwnedTerm`]). Making a
//! pointer term out of raw bits is `unsafe`.

/// Primary tags (two low bits).
pub const TAG_MASK: u64 = 3;
pub const TAG_HEADER: u64 = 0;
pub const TAG_LIST: u64 = 1;
pub const TAG_BOXED: u64 = 2;
pub const TAG_IMMED: u64 = 3;

/// Four-bit tags of immediates.
pub const TAG4_MASK: u64 = 0xF;
pub const TAG_PID: u64 = 0x3;
pub const TAG_PORT: u64 = 0x7;
pub const TAG_SMALL: u64 = 0xF;
/// Bits below the value of a small, pid or port.
pub const SMALL_SHIFT: u32 = 4;

/// Six-bit tags of immediates.
pub const TAG6_MASK: u64 = 0x3F;
pub const TAG_ATOM: u64 = 0x0B;
pub const TAG_CATCH: u64 = 0x1B;
pub const NIL_WORD: u64 = 0x3B;

/// Number of classes of terms: see [`Term::type_class`].
pub const TYPE_CLASSES: usize = 22;
/// Class of cons cells. The classes below it are those of boxed terms, by subtag.
pub const CLASS_LIST: usize = 16;
pub const CLASS_NIL: usize = 17;
/// Classes of other immediates, by the upper half of the four-bit tag.
pub const CLASS_PID: usize = 18;
pub const CLASS_PORT: usize = 19;
pub const CLASS_ATOM: usize = 20;
pub const CLASS_SMALL: usize = 21;

/// Least and greatest small integers (60 bits).
pub const MIN_SMALL: i64 = -(1 << 59);
pub const MAX_SMALL: i64 = (1 << 59) - 1;

/// Bits of data in a local pid or port.
pub const PID_DATA_BITS: u32 = 28;
/// Bits of a pid's data that are its number; the others are its serial.
pub const PID_NUM_BITS: u32 = 15;

/// The kind of a boxed object: the subtag of its header.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Subtag {
    Tuple = 0x0,
    MatchContext = 0x1,
    PosBig = 0x2,
    NegBig = 0x3,
    Ref = 0x4,
    Fun = 0x5,
    Float = 0x6,
    /// A native record.
    Record = 0x7,
    RefcBin = 0x8,
    HeapBin = 0x9,
    SubBin = 0xA,
    /// Belongs to no object: a mark that the collector sets and removes again.
    UnusedB = 0xB,
    ExtPid = 0xC,
    ExtPort = 0xD,
    ExtRef = 0xE,
    Map = 0xF,
}

/// One term word. See the module head for what holding one means.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Term(u64);

/// The empty list.
pub const NIL: Term = Term(NIL_WORD);

/// Bits of a header below its subtag, and below its arity.
pub const SUBTAG_SHIFT: u32 = 2;
pub const ARITY_SHIFT: u32 = 6;
/// The bits of a header that hold the tag and the subtag, but not the arity.
pub const KIND_MASK: u64 = (1 << ARITY_SHIFT) - 1;
/// The word of "no value", [`Term::NON_VALUE`].
pub const NON_VALUE_WORD: u64 = header(Subtag::Float, 0);

/// The bits of a header that give the kind of its object: tag and subtag.
#[inline]
pub const fn header_kind(hdr: u64) -> u64 {
    hdr & KIND_MASK
}

/// Whether a word, read as a term, is an immediate.
#[inline(always)]
pub const fn is_immed_word(w: u64) -> bool {
    w & TAG_MASK == TAG_IMMED
}

/// Whether a word, read as a term, is a small integer.
#[inline(always)]
pub const fn is_small_word(w: u64) -> bool {
    w & TAG4_MASK == TAG_SMALL
}

/// Whether a word is a header, or a code address on a stack.
#[inline(always)]
pub const fn is_header_word(w: u64) -> bool {
    w & TAG_MASK == TAG_HEADER
}

/// Header word of an object with `arity` payload words (for tuples: elements).
#[inline]
pub const fn header(subtag: Subtag, arity: usize) -> u64 {
    ((arity as u64) << ARITY_SHIFT) | ((subtag as u64) << SUBTAG_SHIFT)
}

/// Payload words (tuples: elements) that `hdr` announces. Not for maps: see
/// [`crate::layout::map_words`].
#[inline]
pub const fn header_arity(hdr: u64) -> usize {
    (hdr >> ARITY_SHIFT) as usize
}

/// The subtag of a header word.
#[inline]
pub const fn header_subtag(hdr: u64) -> Subtag {
    // All sixteen values are declared.
    match (hdr >> SUBTAG_SHIFT) & 0xF {
        0x0 => Subtag::Tuple,
        0x1 => Subtag::MatchContext,
        0x2 => Subtag::PosBig,
        0x3 => Subtag::NegBig,
        0x4 => Subtag::Ref,
        0x5 => Subtag::Fun,
        0x6 => Subtag::Float,
        0x7 => Subtag::Record,
        0x8 => Subtag::RefcBin,
        0x9 => Subtag::HeapBin,
        0xA => Subtag::SubBin,
        0xB => Subtag::UnusedB,
        0xC => Subtag::ExtPid,
        0xD => Subtag::ExtPort,
        0xE => Subtag::ExtRef,
        _ => Subtag::Map,
    }
}

impl Term {
    /// A word that is no term: the header of a float without words. Marks "no value" in registers
    /// and results.
    pub const NON_VALUE: Term = Term(NON_VALUE_WORD);

    /// The word itself.
    #[inline(always)]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Makes a term of its word.
    ///
    /// # Safety
    /// If the word has a list or boxed tag, it must point at a well-formed object of that kind that
    /// stays in place as the module head describes.
    #[inline(always)]
    pub const unsafe fn from_raw(w: u64) -> Term {
        Term(w)
    }

    /// Makes a local pid of its 28 data bits.
    #[inline]
    pub const fn pid(data: u32) -> Term {
        Term(((data as u64) << 4) | TAG_PID)
    }
    /// Makes a local port of its 28 data bits.
    #[inline]
    pub const fn port(data: u32) -> Term {
        Term(((data as u64) << 4) | TAG_PORT)
    }
    /// The atom with this index in the atom table.
    #[inline]
    pub const fn atom(index: u32) -> Term {
        Term(((index as u64) << 6) | TAG_ATOM)
    }
    /// A small. The value must lie between [`MIN_SMALL`] and [`MAX_SMALL`] (checked in debug
    /// builds).
    #[inline(always)]
    pub const fn small(v: i64) -> Term {
        debug_assert!(v >= MIN_SMALL && v <= MAX_SMALL);
        Term(((v as u64) << SMALL_SHIFT) | TAG_SMALL)
    }
    /// A small, if the value fits one.
    #[inline(always)]
    pub const fn try_small(v: i64) -> Option<Term> {
        if v >= MIN_SMALL && v <= MAX_SMALL {
            Some(Term(((v as u64) << SMALL_SHIFT) | TAG_SMALL))
        } else {
            None
        }
    }
    /// A catch mark for the stack: the address of the handler, a multiple of 8 below 2^48.
    #[inline]
    pub const fn catch(addr: u64) -> Term {
        Term((addr << 6) | TAG_CATCH)
    }

    #[inline(always)]
    pub const fn is_list_ptr(self) -> bool {
        self.0 & TAG_MASK == TAG_LIST
    }
    #[inline(always)]
    pub const fn is_boxed(self) -> bool {
        self.0 & TAG_MASK == TAG_BOXED
    }
    /// Whether this is no pointer: a pid, port, small, atom, catch mark or nil.
    #[inline(always)]
    pub const fn is_immed(self) -> bool {
        is_immed_word(self.0)
    }
    /// Whether this is a header word or a code address on a stack.
    #[inline(always)]
    pub const fn is_header(self) -> bool {
        self.0 & TAG_MASK == TAG_HEADER
    }
    #[inline(always)]
    pub const fn is_nil(self) -> bool {
        self.0 == NIL_WORD
    }
    /// Whether this is a cons cell or nil.
    #[inline(always)]
    pub const fn is_list(self) -> bool {
        self.is_list_ptr() || self.is_nil()
    }
    #[inline(always)]
    pub const fn is_small(self) -> bool {
        self.0 & TAG4_MASK == TAG_SMALL
    }
    #[inline(always)]
    pub const fn is_atom(self) -> bool {
        self.0 & TAG6_MASK == TAG_ATOM
    }
    #[inline(always)]
    pub const fn is_catch(self) -> bool {
        self.0 & TAG6_MASK == TAG_CATCH
    }
    /// Whether this is a pid of this runtime.
    #[inline(always)]
    pub const fn is_local_pid(self) -> bool {
        self.0 & TAG4_MASK == TAG_PID
    }
    /// Whether this is a port of this runtime.
    #[inline(always)]
    pub const fn is_local_port(self) -> bool {
        self.0 & TAG4_MASK == TAG_PORT
    }
    /// The value of a small. Meaningless for anything else.
    #[inline(always)]
    pub const fn small_value(self) -> i64 {
        (self.0 as i64) >> SMALL_SHIFT
    }
    /// The value, if this is a small.
    #[inline(always)]
    pub const fn as_small(self) -> Option<i64> {
        if self.is_small() {
            Some(self.small_value())
        } else {
            None
        }
    }
    /// The index of an atom. Meaningless for anything else.
    #[inline(always)]
    pub const fn atom_index(self) -> u32 {
        (self.0 >> 6) as u32
    }
    /// The data bits of a local pid or port.
    #[inline(always)]
    pub const fn pid_data(self) -> u32 {
        (self.0 >> 4) as u32
    }
    /// The handler address in a catch mark.
    #[inline]
    pub const fn catch_addr(self) -> u64 {
        self.0 >> 6
    }

    /// The address that a cons or boxed term points at. Meaningless for immediates.
    #[inline(always)]
    pub const fn ptr(self) -> *mut Term {
        (self.0 & !TAG_MASK) as *mut Term
    }
    /// A cons term that points at `p`.
    ///
    /// # Safety
    /// `p` is 8-aligned and points at two initialised words.
    #[inline(always)]
    pub unsafe fn cons_at(p: *const Term) -> Term {
        Term(p as u64 | TAG_LIST)
    }
    /// A boxed term that points at `p`.
    ///
    /// # Safety
    /// `p` is 8-aligned and points at a well-formed boxed object.
    #[inline(always)]
    pub unsafe fn boxed_at(p: *const Term) -> Term {
        Term(p as u64 | TAG_BOXED)
    }

    /// Head and tail, if this is a cons cell.
    #[inline(always)]
    pub fn as_cons(self) -> Option<(Term, Term)> {
        // SAFETY: a list-tagged term in hand points at two words (module head).
        if self.is_list_ptr() {
            unsafe { Some((*self.ptr(), *self.ptr().add(1))) }
        } else {
            None
        }
    }
    /// The header word, if this is boxed.
    #[inline(always)]
    pub fn boxed_header(self) -> Option<u64> {
        // SAFETY: a boxed term in hand points at a header (module head).
        if self.is_boxed() {
            unsafe { Some((*self.ptr()).0) }
        } else {
            None
        }
    }
    /// The kind of object that this boxed term points at; None for conses and immediates.
    #[inline(always)]
    pub fn subtag(self) -> Option<Subtag> {
        self.boxed_header().map(header_subtag)
    }
    /// Returns a number below [`TYPE_CLASSES`] that answers all type tests except those that read
    /// the object's contents.
    #[inline(always)]
    pub fn type_class(self) -> usize {
        match self.boxed_header() {
            Some(h) => (h >> 2 & 0xF) as usize,
            None if self.is_list_ptr() => CLASS_LIST,
            None if self.is_nil() => CLASS_NIL,
            None => CLASS_PID + (self.0 >> 2 & 3) as usize,
        }
    }
    #[inline(always)]
    fn has_subtag(self, s: Subtag) -> bool {
        match self.boxed_header() {
            Some(h) => h & 0x3F == (s as u64) << 2,
            None => false,
        }
    }
    #[inline(always)]
    pub fn is_tuple(self) -> bool {
        self.has_subtag(Subtag::Tuple)
    }
    /// The elements, if this is a tuple. Like the term, the slice is valid during the native call.
    #[inline(always)]
    pub fn as_tuple<'a>(self) -> Option<&'a [Term]> {
        if self.is_tuple() {
            // SAFETY: the header of a tuple in hand says how many words follow it (module head).
            unsafe {
                Some(std::slice::from_raw_parts(
                    self.ptr().add(1),
                    header_arity((*self.ptr()).0),
                ))
            }
        } else {
            None
        }
    }
    #[inline(always)]
    pub fn is_float(self) -> bool {
        self.has_subtag(Subtag::Float)
    }
    /// The value, if this is a float.
    #[inline(always)]
    pub fn as_float(self) -> Option<f64> {
        // SAFETY: a float object is a header and the bits of an f64.
        if self.is_float() {
            unsafe { Some(f64::from_bits((*self.ptr().add(1)).0)) }
        } else {
            None
        }
    }
    #[inline(always)]
    pub fn is_big(self) -> bool {
        match self.boxed_header() {
            Some(h) => h & 0x3B == (Subtag::PosBig as u64) << 2,
            None => false,
        }
    }
    #[inline(always)]
    pub fn is_integer(self) -> bool {
        self.is_small() || self.is_big()
    }
    #[inline(always)]
    pub fn is_number(self) -> bool {
        self.is_integer() || self.is_float()
    }
    /// Sign (true: negative) and magnitude, in 64-bit digits, least significant first, if this is a
    /// bignum.
    #[inline]
    pub fn as_big<'a>(self) -> Option<(bool, &'a [u64])> {
        if !self.is_big() {
            return None;
        }
        // SAFETY: a bignum is a header and as many digit words as it says.
        unsafe {
            let h = (*self.ptr()).0;
            Some((
                header_subtag(h) as u8 == Subtag::NegBig as u8,
                std::slice::from_raw_parts(self.ptr().add(1) as *const u64, header_arity(h)),
            ))
        }
    }
    #[inline(always)]
    pub fn is_map(self) -> bool {
        self.has_subtag(Subtag::Map)
    }
    /// Whether this is a native record.
    #[inline(always)]
    pub fn is_record(self) -> bool {
        self.has_subtag(Subtag::Record)
    }
    #[inline(always)]
    pub fn is_fun(self) -> bool {
        self.has_subtag(Subtag::Fun)
    }
    /// Whether this is a binary or bitstring of any representation (not a match context).
    #[inline(always)]
    pub fn is_bitstring(self) -> bool {
        match self.subtag() {
            Some(s) => matches!(s, Subtag::RefcBin | Subtag::HeapBin | Subtag::SubBin),
            None => false,
        }
    }
    #[inline(always)]
    pub fn is_match_context(self) -> bool {
        self.has_subtag(Subtag::MatchContext)
    }
    /// Whether this is a pid, local or of another node.
    #[inline(always)]
    pub fn is_pid(self) -> bool {
        self.is_local_pid() || self.has_subtag(Subtag::ExtPid)
    }
    /// Whether this is a port, local or of another node.
    #[inline(always)]
    pub fn is_port(self) -> bool {
        self.is_local_port() || self.has_subtag(Subtag::ExtPort)
    }
    /// Whether this is a reference, local or of another node.
    #[inline(always)]
    pub fn is_ref(self) -> bool {
        self.has_subtag(Subtag::Ref) || self.has_subtag(Subtag::ExtRef)
    }

    /// Number of cells of a list, and the term that follows the last of them.
    ///
    /// The cells of most lists lie at equal distances, because they were built or copied one after
    /// another. So the next address is guessed, and the cell's tail is compared with the guess: the
    /// processor then reads ahead, where it would otherwise wait for each cell to learn where the
    /// next one is. This takes 0.6 ns a cell; following the tails takes 1.4.
    pub fn cells(self) -> (usize, Term) {
        self.cells_within(usize::MAX)
    }
    /// As [`Term::cells`], but stops before a cell once it has walked `most` cells, or a few more:
    /// it checks only at every eighth cell, so that the check costs nothing.
    #[inline]
    pub fn cells_within(self, most: usize) -> (usize, Term) {
        const AT_ONCE: usize = 8;
        let mut n = 0;
        let mut at = self.0;
        let mut step = 0u64;
        while n < most {
            for i in 0..AT_ONCE {
                if at & 3 != TAG_LIST {
                    return (n + i, Term(at));
                }
                let guess = at.wrapping_add(step);
                // SAFETY: a list-tagged term in hand points at two words (module head).
                let next = unsafe { (at.wrapping_add(8 - TAG_LIST) as *const u64).read() };
                if next == guess {
                    at = unrelated(guess);
                } else {
                    step = next.wrapping_sub(at);
                    at = next;
                }
            }
            n += AT_ONCE;
        }
        (n, Term(at))
    }
    /// Walks a list: yields its elements; [`ListIter::tail`] returns how it ended.
    #[inline]
    pub fn list_iter(self) -> ListIter {
        ListIter { at: self }
    }
    /// All elements of a proper list; None if it is improper or no list.
    pub fn list_to_vec(self) -> Option<Vec<Term>> {
        let mut it = self.list_iter();
        let v: Vec<Term> = it.by_ref().collect();
        it.tail().is_nil().then_some(v)
    }
}

/// Iterator over the elements of a list. Stops at the first tail that is no cons cell.
pub struct ListIter {
    at: Term,
}

impl ListIter {
    /// The rest behind the elements yielded so far; after the end, nil if the list is proper.
    #[inline]
    pub fn tail(&self) -> Term {
        self.at
    }
}

impl Iterator for ListIter {
    type Item = Term;
    #[inline(always)]
    fn next(&mut self) -> Option<Term> {
        let (h, t) = self.at.as_cons()?;
        self.at = t;
        Some(h)
    }
}

/// Returns `w` in a way that hides from the compiler that it equals another value.
#[inline(always)]
fn unrelated(w: u64) -> u64 {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        let mut w = w;
        // SAFETY: the assembly has no instruction.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) w, options(pure, nomem, nostack, preserves_flags));
        }
        w
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    w
}
