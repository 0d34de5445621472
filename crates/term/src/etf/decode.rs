//! Decoding: from the external format to terms.
//!
//! [`Decoder::step`] reads up to a number of terms and returns, so a caller can yield in between.
//! Compound terms that are not complete are in a list of frames; their finished parts are in
//! another list. No depth of nesting costs native stack.
//!
//! # Invariants
//! - The input may be hostile. No input makes the decoder panic, read behind its end, or reserve
//!   more memory than some multiple of the bytes that are there ([`MAX_INFLATION`]).
//! - Before the first new atom is made, a term of up to [`CHECKED_BYTES`] is checked as a whole, as
//!   far as lengths and tags tell ([`Skip`]): if it is incomplete, it leaves no atoms behind.
//! - Between two steps the finished terms must stay in place: a caller that yields decodes into a
//!   fragment of its own.

use super::{VERSION, aliases, tag};
use crate::alloc::Alloc;
use crate::atom;
use crate::bin::RcBin;
use crate::definition;
use crate::ending;
use crate::fun::{Export, FunEntry, FunName};
use crate::iolist::IoSlice;
use crate::layout::{FUN_WORDS, heap_bin_limit};
use crate::magic::MagicRef;
use crate::map;
use crate::node;
use crate::pressure;
use crate::record::Definition;
use crate::release::{self, LONG_REFERENCES_TAKEN, NATIVE_RECORDS, NO_BITS_REFUSED};
use crate::unassigned_ids;
use crate::word::{MAX_SMALL, NIL, PID_DATA_BITS, PID_NUM_BITS, Subtag, Term, header};
use std::borrow::Cow;

/// Bits of the first word of a reference in the older formats, and in any that this node makes.
const REF_FIRST_BITS: u32 = 18;

/// Reason why bytes are no term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// They are damaged, cut off, or have an unknown tag; with the offset where that was seen (in
    /// the inflated data, if compressed).
    Malformed(usize),
    /// `safe` was asked for and the term names an atom, function or module that does not exist.
    Unsafe,
    /// The table of atoms is full.
    AtomTableFull,
    /// The process that decodes has used up the memory that it may take ([`Options::bounded`]).
    NoRoom,
    /// A fun of this node where the caller offers no code.
    NoFuns,
}

/// Services of the running system that decoding needs.
pub trait Hooks {
    /// The export for `fun m:f/arity`; None if the caller has no exports, or, with `only_existing`,
    /// if there is none yet.
    fn export(&self, m: Term, f: Term, arity: u32, only_existing: bool) -> Option<*const Export>;
    /// The entry of a local fun, made if it is not known. Decoding adds one to its count.
    fn fun_entry(&self, name: FunName) -> Option<*const FunEntry>;
    /// The native value behind a local reference with these numbers, if it is alive.
    fn magic(&self, _num: [u32; 3]) -> Option<*const MagicRef> {
        None
    }
}

/// Hooks of a caller that has no code: funs do not decode.
pub struct NoHooks;

impl Hooks for NoHooks {
    fn export(&self, _: Term, _: Term, _: u32, _: bool) -> Option<*const Export> {
        None
    }
    fn fun_entry(&self, _: FunName) -> Option<*const FunEntry> {
        None
    }
}

/// Options of decoding.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Make no new atoms and no new exports.
    pub safe: bool,
    /// Give up where the term takes more memory than the process of this thread may use.
    pub bounded: bool,
    /// Atoms that `ATOM_CACHE_REF` refers to, by position (distribution).
    pub atom_cache: &'a [Term],
}

/// Maximum factor by which deflate can shrink data.
const MAX_INFLATION: usize = 1040;

enum Kind {
    Tuple,
    List,
    Map,
    /// Module, name, keys, values.
    Record {
        exported: bool,
    },
    Fun {
        arity: u8,
        uniq: [u8; 16],
        index: u32,
    },
}

/// A compound term under construction: the number of missing parts, and the index of its first part
/// among the finished terms.
struct Frame {
    kind: Kind,
    left: usize,
    base: usize,
}

/// The owner of the bytes that are decoded.
enum Keeper {
    Caller,
    Inflated(#[expect(dead_code, reason = "it is held, not read")] Vec<u8>),
    /// A counted block, of which counted binaries may be parts.
    Block(IoSlice),
}

/// Minimum number of bytes of a binary that becomes a part of the block in which it came. It must
/// also have at least half of the bytes of that block.
const SHARED_BYTES: usize = 64 * 1024;

/// Decoding in progress. Holds terms: between steps the caller must keep `Alloc`'s terms in place
/// (decode into a fragment of its own when yielding).
pub struct Decoder<'b, 'o> {
    /// Those of `keeper`, if it has any: none of them is handed out for `'b`.
    bytes: &'b [u8],
    keeper: Keeper,
    at: usize,
    /// Number of input bytes used, if the input is not `bytes`.
    used: Option<usize>,
    safe: bool,
    /// See [`Options::atom_cache`].
    atoms: Cow<'o, [Term]>,
    frames: Vec<Frame>,
    done: Vec<Term>,
    finished: bool,
    /// Start of the term, until it is known that all of it is there.
    unchecked: Option<usize>,
    /// Start of a term that was encoded for this runtime only, and its hash.
    local: Option<(usize, u32)>,
    /// The definition of the last record.
    definition: Option<Term>,
    /// Number of atoms looked up, and the last ones of them if there are many.
    looked_up: u32,
    recent: Option<Box<Recent>>,
}

/// Atoms that were looked up recently, by their names: large terms repeat the same few.
struct Recent([(ShortName, Term); RECENT]);

const RECENT: usize = 32;
/// Terms with fewer atoms do not use it.
const MANY_ATOMS: u32 = 16;

/// A name of up to 16 bytes, and its length.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ShortName(u128, usize);

impl ShortName {
    #[inline]
    fn of(name: &[u8]) -> Option<ShortName> {
        let mut bytes = [0; 16];
        bytes.get_mut(..name.len())?.copy_from_slice(name);
        Some(ShortName(u128::from_le_bytes(bytes), name.len()))
    }
    fn place(self) -> usize {
        let mixed = (self.0 as u64 ^ (self.0 >> 64) as u64 ^ self.1 as u64)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 59) as usize
    }
}

const _: () = assert!(RECENT == 1 << (64 - 59));

/// Bytes of a list cell.
const CELL_BYTES: usize = 16;

/// Maximum number of bytes to check before a new atom is made: atoms are never freed.
const CHECKED_BYTES: usize = 1 << 20;

/// The term that starts (with the version byte) at `bytes[0]`, and the number of bytes that it
/// took.
pub fn decode<A: Alloc + ?Sized>(
    bytes: &[u8],
    a: &mut A,
    hooks: &dyn Hooks,
    opts: Options,
) -> Result<(Term, usize), DecodeError> {
    let mut d = Decoder::new(bytes, opts)?;
    let left = pressure::allowance();
    while !ending::is_over() {
        if let Some(t) = d.step(a, hooks, ending::STEPS)? {
            return Ok((t, d.used()));
        }
        if opts.bounded && left != pressure::NO_LIMIT {
            // Terms that wait for the end of their list become cells of it.
            let made = left.saturating_sub(pressure::allowance());
            let more = isize::try_from(d.done.len() * CELL_BYTES).unwrap_or(isize::MAX);
            if made.saturating_add(more) > pressure::part_to_make(left) {
                return Err(DecodeError::NoRoom);
            }
        }
    }
    Err(DecodeError::Malformed(d.used()))
}

/// Bytes inflated between two checks whether anybody still waits for them.
const INFLATED_AT_ONCE: usize = 1 << 16;

fn inflate(data: &[u8], size: usize) -> Result<(Vec<u8>, usize), DecodeError> {
    if size / MAX_INFLATION > data.len() {
        return Err(DecodeError::Malformed(2));
    }
    let mut out = Vec::with_capacity(size);
    let mut z = flate2::Decompress::new(true);
    let mut spent = false;
    loop {
        let at = z.total_in() as usize;
        let before = out.len();
        let here = &data[at..];
        let (some, how) = match here.split_at_checked(INFLATED_AT_ONCE) {
            Some((some, [_, ..])) => (some, flate2::FlushDecompress::None),
            _ => (here, flate2::FlushDecompress::Finish),
        };
        let s = z
            .decompress_vec(some, &mut out, how)
            .map_err(|_| DecodeError::Malformed(6))?;
        if ending::is_over() {
            return Err(DecodeError::Malformed(6));
        }
        match s {
            flate2::Status::StreamEnd if out.len() == size => {
                return Ok((out, z.total_in() as usize));
            }
            flate2::Status::StreamEnd => return Err(DecodeError::Malformed(6)),
            // A full buffer may need one more call to see the end of the stream.
            _ if out.len() == before && z.total_in() as usize == at => {
                if spent {
                    return Err(DecodeError::Malformed(6));
                }
                spent = true;
            }
            _ => {}
        }
    }
}

/// Whether an identifier belongs to this node.
fn is_this_node(name: Term, creation: u32) -> bool {
    name == NIL || (name, creation) == node::this_node()
}

impl<'b, 'o> Decoder<'b, 'o> {
    /// Starts at a version byte; inflates compressed data at once.
    pub fn new(bytes: &'b [u8], opts: Options<'o>) -> Result<Self, DecodeError> {
        match bytes {
            [VERSION, tag::COMPRESSED, a, b, c, d, rest @ ..] => {
                let size = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
                let (data, used) = inflate(rest, size)?;
                let mut s = Self::inflated(data, opts);
                s.used = Some(6 + used);
                s.enter_local();
                Ok(s)
            }
            [VERSION, ..] => {
                let mut s = Self::at(bytes, 1, opts);
                s.enter_local();
                Ok(s)
            }
            _ => Err(DecodeError::Malformed(0)),
        }
    }
    /// Starts at a tag, without a version byte before it (distribution).
    pub fn bare(bytes: &'b [u8], opts: Options<'o>) -> Self {
        Self::at(bytes, 0, opts)
    }
    /// As [`Decoder::bare`], from the byte with index `at` on, of bytes and atoms that the decoder
    /// owns.
    pub fn keeping(bytes: IoSlice, at: usize, atoms: Vec<Term>) -> Decoder<'static, 'static> {
        let at = at.min(bytes.len());
        let mut d = Decoder::in_block(bytes, at, Options::default());
        d.atoms = Cow::Owned(atoms);
        d
    }
    /// Starts at the beginning of inflated data.
    fn inflated(data: Vec<u8>, opts: Options<'o>) -> Self {
        // SAFETY: the decoder owns them, and they do not move with it.
        let bytes = unsafe { std::slice::from_raw_parts(data.as_ptr(), data.len()) };
        let mut d = Self::at(bytes, 0, opts);
        d.keeper = Keeper::Inflated(data);
        d
    }
    fn in_block(block: IoSlice, at: usize, opts: Options<'o>) -> Self {
        let all = block.as_bytes();
        // SAFETY: the decoder keeps the block, whose bytes do not move.
        let bytes = unsafe { std::slice::from_raw_parts(all.as_ptr(), all.len()) };
        let mut d = Self::at(bytes, at, opts);
        d.keeper = Keeper::Block(block);
        d
    }
    fn at(bytes: &'b [u8], at: usize, opts: Options<'o>) -> Self {
        Decoder {
            bytes,
            keeper: Keeper::Caller,
            at,
            used: None,
            safe: opts.safe,
            atoms: Cow::Borrowed(opts.atom_cache),
            frames: Vec::new(),
            done: Vec::new(),
            finished: false,
            unchecked: Some(at),
            local: None,
            definition: None,
            looked_up: 0,
            recent: None,
        }
    }
    /// Steps over the head of a term that was encoded for this runtime only, if there is one.
    fn enter_local(&mut self) {
        if let [tag::LOCAL, a, b, c, d, ..] = self.bytes[self.at..] {
            self.at += 5;
            self.unchecked = Some(self.at);
            self.local = Some((self.at, u32::from_be_bytes([a, b, c, d])));
        }
    }
    /// Number of input bytes used so far; after the end, by the whole term.
    pub fn used(&self) -> usize {
        self.used.unwrap_or(self.at)
    }

    fn bad<T>(&self) -> Result<T, DecodeError> {
        Err(DecodeError::Malformed(self.at))
    }
    #[inline]
    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }
    #[inline]
    fn take(&mut self, n: usize) -> Result<&[u8], DecodeError> {
        if self.left() < n {
            return self.bad();
        }
        self.at += n;
        Ok(&self.bytes[self.at - n..self.at])
    }
    #[inline]
    fn u8(&mut self) -> Result<u8, DecodeError> {
        let Some(&b) = self.bytes.get(self.at) else {
            return self.bad();
        };
        self.at += 1;
        Ok(b)
    }
    #[inline]
    fn u16(&mut self) -> Result<u16, DecodeError> {
        let b = self.take(2)?;
        Ok(u16::from_be_bytes([b[0], b[1]]))
    }
    #[inline]
    fn u32(&mut self) -> Result<u32, DecodeError> {
        let b = self.take(4)?;
        Ok(u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }
    fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok((self.u32()? as u64) << 32 | self.u32()? as u64)
    }

    /// The atom with tag `t`, whose data follow.
    fn atom(&mut self, t: u8) -> Result<Term, DecodeError> {
        let at = self.at;
        let (len, latin1) = match t {
            tag::ATOM => (self.u16()? as usize, true),
            tag::SMALL_ATOM => (self.u8()? as usize, true),
            tag::ATOM_UTF8 => (self.u16()? as usize, false),
            tag::SMALL_ATOM_UTF8 => (self.u8()? as usize, false),
            tag::ATOM_CACHE_REF => {
                let i = self.u8()? as usize;
                return self.atoms.get(i).copied().ok_or(DecodeError::Malformed(at));
            }
            _ => return Err(DecodeError::Malformed(at)),
        };
        let safe = self.safe;
        self.take(len)?;
        let b = &self.bytes[self.at - len..self.at];
        // ASCII means the same under each tag.
        let short = match &self.recent {
            Some(recent) if !latin1 || b.is_ascii() => {
                let short = ShortName::of(b);
                if let Some(short) = short
                    && let (known, t) = recent.0[short.place()]
                    && known == short
                {
                    return Ok(t);
                }
                short
            }
            _ => None,
        };
        let owned;
        let name = if latin1 && !b.is_ascii() {
            owned = b.iter().map(|&c| c as char).collect::<String>();
            &owned
        } else {
            std::str::from_utf8(b).map_err(|_| DecodeError::Malformed(at))?
        };
        if safe {
            return atom::existing(name).ok_or(DecodeError::Unsafe);
        }
        if let Some(known) = atom::existing(name) {
            if let (Some(recent), Some(short)) = (&mut self.recent, short) {
                recent.0[short.place()] = (short, known);
            }
            self.looked_up = self.looked_up.saturating_add(1);
            if self.looked_up == MANY_ATOMS {
                // No name is this long.
                let none = (ShortName(0, usize::MAX), known);
                self.recent = Some(Box::new(Recent([none; RECENT])));
            }
            return Ok(known);
        }
        if let Some(start) = self.unchecked
            && self.bytes.len() - start <= CHECKED_BYTES
            && !Skip(&self.bytes[start..], self.local.is_some()).term()
        {
            return Err(DecodeError::Malformed(at));
        }
        let made = atom::try_intern(name);
        self.unchecked = None;
        made.map_err(|e| match e {
            atom::AtomError::TooLong => DecodeError::Malformed(at),
            atom::AtomError::TableFull => DecodeError::AtomTableFull,
        })
    }
    /// The name of a node: NIL for the encoding node in a term for that node only.
    fn node_name(&mut self) -> Result<Term, DecodeError> {
        if self.local.is_some() && self.bytes.get(self.at) == Some(&tag::NIL) {
            self.at += 1;
            return Ok(NIL);
        }
        self.tagged_atom()
    }
    fn tagged_atom(&mut self) -> Result<Term, DecodeError> {
        let t = self.u8()?;
        self.atom(t)
    }
    fn creation(&mut self, short: bool) -> Result<u32, DecodeError> {
        if short {
            // The old formats have two bits for it.
            match self.u8()? {
                c @ 0..=3 => Ok(c as u32),
                _ => self.bad(),
            }
        } else {
            self.u32()
        }
    }

    fn pid<A: Alloc + ?Sized>(&mut self, a: &mut A, short: bool) -> Result<Term, DecodeError> {
        let name = self.node_name()?;
        let (num, serial) = (self.u32()?, self.u32()?);
        let creation = self.creation(short)?;
        if is_this_node(name, creation) {
            if num >> PID_NUM_BITS != 0 || serial >> (PID_DATA_BITS - PID_NUM_BITS) != 0 {
                let unassigned =
                    unassigned_ids::unassigned_id(Subtag::ExtPid, num.into(), serial, a);
                return unassigned.map_or_else(|| self.bad(), Ok);
            }
            return Ok(Term::pid(num | serial << PID_NUM_BITS));
        }
        let n = node::intern(name, creation);
        Ok(a.external(Subtag::ExtPid, n, num as u64 | (serial as u64) << 32))
    }
    fn port<A: Alloc + ?Sized>(&mut self, a: &mut A, t: u8) -> Result<Term, DecodeError> {
        let name = self.node_name()?;
        let id = if t == tag::V4_PORT {
            self.u64()?
        } else {
            self.u32()? as u64
        };
        let creation = self.creation(t == tag::PORT)?;
        if is_this_node(name, creation) {
            if id >> PID_DATA_BITS != 0 {
                let unassigned = unassigned_ids::unassigned_id(Subtag::ExtPort, id, 0, a);
                return unassigned.map_or_else(|| self.bad(), Ok);
            }
            return Ok(Term::port(id as u32));
        }
        let n = node::intern(name, creation);
        Ok(a.external(Subtag::ExtPort, n, id))
    }
    fn reference<A: Alloc + ?Sized>(
        &mut self,
        a: &mut A,
        hooks: &dyn Hooks,
        t: u8,
    ) -> Result<Term, DecodeError> {
        let count = if t == tag::REFERENCE {
            1
        } else {
            self.u16()? as usize
        };
        // Stock's decoder takes one of no words too, and reads the first word all the same.
        if count > 5 {
            return self.bad();
        }
        let name = self.node_name()?;
        let mut nums = [0u32; 5];
        let creation;
        if t == tag::REFERENCE {
            nums[0] = self.u32()?;
            creation = self.creation(true)?;
        } else {
            creation = self.creation(t == tag::NEW_REFERENCE)?;
            // Where nothing follows, stock reads what lies behind the encoding.
            let cut = count == 0 && self.left() < 4;
            for n in &mut nums[..if cut { 0 } else { count.max(1) }] {
                *n = self.u32()?;
            }
        }
        let wide = nums[0] >> REF_FIRST_BITS != 0;
        if wide && t != tag::NEWER_REFERENCE {
            return self.bad();
        }
        if is_this_node(name, creation) {
            // This node makes no references with more words, nor with more bits in the first.
            if count > 3 && !release::has(LONG_REFERENCES_TAKEN) || wide {
                return self.bad();
            }
            let num = [nums[0], nums[1], nums[2]];
            if let Some(pid) = aliases::process_of(num) {
                return Ok(a.pid_ref(num, pid));
            }
            if let Some(m) = hooks.magic(num) {
                // SAFETY: the hook returns a value that is alive.
                return Ok(unsafe { a.magic_ref(m) });
            }
            return Ok(a.local_ref(num));
        }
        let n = node::intern(name, creation);
        Ok(a.external_ref(n, &nums[..count]))
    }

    fn integer<A: Alloc + ?Sized>(&mut self, a: &mut A, len: usize) -> Result<Term, DecodeError> {
        if len > 8 * crate::arith::max_digits() {
            return self.bad();
        }
        let negative = self.u8()? != 0;
        let b = self.take(len)?;
        let digits: smallvec::SmallVec<[u64; 8]> = b
            .chunks(8)
            .map(|c| {
                let mut w = [0u8; 8];
                w[..c.len()].copy_from_slice(c);
                u64::from_le_bytes(w)
            })
            .collect();
        Ok(a.big(negative, &digits))
    }

    /// The arity of an external fun, which may be encoded as any integer. As on stock, it may be
    /// any small integer that is not negative, of which 32 bits count.
    fn arity(&mut self) -> Result<u32, DecodeError> {
        let (at, t) = (self.at, self.u8()?);
        let magnitude = match t {
            tag::SMALL_INTEGER => return Ok(self.u8()?.into()),
            tag::INTEGER => {
                let n = self.u32()?;
                return match n as i32 {
                    0.. => Ok(n),
                    _ => Err(DecodeError::Malformed(at)),
                };
            }
            tag::SMALL_BIG | tag::LARGE_BIG => {
                let n = match t {
                    tag::SMALL_BIG => self.u8()? as usize,
                    _ => self.u32()? as usize,
                };
                let negative = self.u8()? != 0;
                let digits = self.take(n)?;
                let (low, high) = digits.split_at(digits.len().min(8));
                let mut word = [0; 8];
                word[..low.len()].copy_from_slice(low);
                match u64::from_le_bytes(word) {
                    n if high.iter().any(|&b| b != 0) || negative && n != 0 => None,
                    n => (n <= MAX_SMALL as u64).then_some(n),
                }
            }
            _ => None,
        };
        magnitude
            .map(|n| n as u32)
            .ok_or(DecodeError::Malformed(at))
    }

    fn float<A: Alloc + ?Sized>(&self, a: &mut A, f: f64) -> Result<Term, DecodeError> {
        if f.is_finite() {
            Ok(a.float(f))
        } else {
            self.bad()
        }
    }

    /// Opens a compound of `n` parts; each takes at least one byte, so lying about `n` costs
    /// nothing.
    #[inline]
    fn open(&mut self, kind: Kind, n: usize) -> Result<Option<Term>, DecodeError> {
        if n > self.left() {
            return self.bad();
        }
        self.frames.push(Frame {
            kind,
            left: n,
            base: self.done.len(),
        });
        Ok(None)
    }

    #[inline]
    fn binary<A: Alloc + ?Sized>(&mut self, a: &mut A) -> Result<Term, DecodeError> {
        let n = self.u32()? as usize;
        let at = self.at;
        let b = self.take(n)?;
        if n < SHARED_BYTES {
            return Ok(a.binary(b));
        }
        Ok(match &self.keeper {
            Keeper::Block(all) if n >= all.len() / 2 => all.part(at, n).to_term(a),
            _ => a.binary(&self.bytes[at..at + n]),
        })
    }
    fn bit_binary<A: Alloc + ?Sized>(&mut self, a: &mut A) -> Result<Term, DecodeError> {
        let n = self.u32()? as usize;
        let bits = self.u8()? as usize;
        if (bits == 0) != (n == 0) || bits > 8 || n == 0 && release::has(NO_BITS_REFUSED) {
            return self.bad();
        }
        let b = self.take(n)?;
        let last = match b.split_last() {
            None => return Ok(a.binary(&[])),
            Some(_) if bits == 8 => return Ok(a.binary(b)),
            Some((last, _)) => last & (0xFFu8 << (8 - bits)),
        };
        let bin = if n <= heap_bin_limit() {
            let (t, p) = a.heap_bin(n);
            // SAFETY: `heap_bin` made room for n bytes.
            unsafe {
                std::ptr::copy_nonoverlapping(b.as_ptr(), p, n);
                p.add(n - 1).write(last);
            }
            t
        } else {
            let r = RcBin::from_bytes(b);
            // SAFETY: the block is new, and n bytes long; its count is handed over.
            unsafe {
                RcBin::bytes(r).add(n - 1).write(last);
                a.refc_bin(r, n)
            }
        };
        Ok(a.sub_binary(bin, 0, n * 8 - 8 + bits))
    }
    fn external_fun<A: Alloc + ?Sized>(
        &mut self,
        a: &mut A,
        hooks: &dyn Hooks,
    ) -> Result<Term, DecodeError> {
        let m = self.tagged_atom()?;
        let f = self.tagged_atom()?;
        let arity = self.arity()?;
        let safe = self.safe;
        let e = hooks.export(m, f, arity, safe).ok_or(if safe {
            DecodeError::Unsafe
        } else {
            DecodeError::NoFuns
        })?;
        let p = a.alloc(FUN_WORDS);
        // SAFETY: all words of the fun are written; it owns nothing, since exports are never freed.
        Ok(unsafe {
            let w = p as *mut u64;
            w.write(header(Subtag::Fun, FUN_WORDS - 1));
            w.add(1).write(e as u64);
            w.add(2).write(0);
            w.add(3).write(u64::from(arity as u8) | 1 << 16);
            p.add(4).write(NIL);
            Term::boxed_at(p)
        })
    }
    /// Decodes one term or the start of one. None if a compound was opened.
    fn next<A: Alloc + ?Sized>(
        &mut self,
        a: &mut A,
        hooks: &dyn Hooks,
    ) -> Result<Option<Term>, DecodeError> {
        let t = self.u8()?;
        Ok(Some(match t {
            tag::SMALL_INTEGER => Term::small(self.u8()? as i64),
            tag::INTEGER => Term::small(self.u32()? as i32 as i64),
            tag::SMALL_BIG => {
                let n = self.u8()? as usize;
                self.integer(a, n)?
            }
            tag::LARGE_BIG => {
                let n = self.u32()? as usize;
                self.integer(a, n)?
            }
            tag::NEW_FLOAT => {
                let f = f64::from_bits(self.u64()?);
                self.float(a, f)?
            }
            tag::FLOAT => {
                let at = self.at;
                let b = self.take(31)?;
                let end = b.iter().position(|&c| c == 0).unwrap_or(b.len());
                let f = text_float(&b[..end]).ok_or(DecodeError::Malformed(at))?;
                self.float(a, f)?
            }
            tag::ATOM
            | tag::SMALL_ATOM
            | tag::ATOM_UTF8
            | tag::SMALL_ATOM_UTF8
            | tag::ATOM_CACHE_REF => self.atom(t)?,
            tag::NIL => NIL,
            tag::STRING => {
                let n = self.u16()? as usize;
                let b = self.take(n)?;
                a.byte_list(b, NIL)
            }
            tag::LIST => {
                let n = self.u32()? as usize;
                return self.open(Kind::List, n + 1);
            }
            tag::SMALL_TUPLE | tag::LARGE_TUPLE => {
                let n = if t == tag::SMALL_TUPLE {
                    self.u8()? as usize
                } else {
                    self.u32()? as usize
                };
                if n == 0 {
                    a.tuple(&[])
                } else {
                    return self.open(Kind::Tuple, n);
                }
            }
            tag::MAP => {
                let n = self.u32()? as usize;
                if n == 0 {
                    a.flatmap(&[], &[])
                } else {
                    return self.open(Kind::Map, 2 * n);
                }
            }
            tag::RECORD if release::has(NATIVE_RECORDS) => {
                let n = self.u32()? as usize;
                let exported = match self.u8()? {
                    0 => false,
                    1 => true,
                    _ => return self.bad(),
                };
                return self.open(Kind::Record { exported }, 2 + 2 * n);
            }
            tag::BINARY => self.binary(a)?,
            tag::BIT_BINARY => self.bit_binary(a)?,
            tag::PID | tag::NEW_PID => self.pid(a, t == tag::PID)?,
            tag::PORT | tag::NEW_PORT | tag::V4_PORT => self.port(a, t)?,
            tag::REFERENCE | tag::NEW_REFERENCE | tag::NEWER_REFERENCE => {
                self.reference(a, hooks, t)?
            }
            tag::EXPORT => self.external_fun(a, hooks)?,
            tag::NEW_FUN => {
                self.u32()?;
                let arity = self.u8()?;
                let mut uniq = [0u8; 16];
                uniq.copy_from_slice(self.take(16)?);
                let index = self.u32()?;
                let num_free = self.u32()? as usize;
                if num_free > 255 {
                    return self.bad();
                }
                return self.open(Kind::Fun { arity, uniq, index }, 4 + num_free);
            }
            _ => {
                self.at -= 1;
                return self.bad();
            }
        }))
    }

    /// Makes the compound whose parts are all there.
    fn close<A: Alloc + ?Sized>(
        &mut self,
        a: &mut A,
        hooks: &dyn Hooks,
        f: Frame,
    ) -> Result<Term, DecodeError> {
        let at = self.at;
        let parts = &self.done[f.base..];
        let t = match f.kind {
            Kind::Tuple => a.tuple(parts),
            Kind::List => match parts.split_last() {
                Some((tail, items)) => a.list_tail(items, *tail),
                None => NIL,
            },
            Kind::Map => map::from_parts_unique(a, parts).ok_or(DecodeError::Malformed(at))?,
            Kind::Record { exported } => {
                let (keys, values) = parts[2..].split_at(parts.len() / 2 - 1);
                if !parts[..2].iter().chain(keys).all(|t| t.is_atom()) {
                    return self.bad();
                }
                let (module, name) = (parts[0], parts[1]);
                // Consecutive records are mostly of one kind.
                let known = self.definition.and_then(Definition::of).filter(|d| {
                    d.module() == module
                        && d.name() == name
                        && d.is_exported() == exported
                        && d.keys() == keys
                });
                let known = match known {
                    Some(d) => d,
                    None => definition::define(a, module, name, exported, keys)
                        .and_then(Definition::of)
                        .ok_or(DecodeError::Malformed(at))?,
                };
                let t = definition::record(a, known, values);
                self.definition = Some(known.term());
                t
            }
            Kind::Fun { arity, uniq, index } => {
                let (Some(old_index), Some(old_uniq)) = (parts[1].as_small(), parts[2].as_small())
                else {
                    return self.bad();
                };
                let (module, creator, env) = (parts[0], parts[3], &parts[4..]);
                if !module.is_atom() || !creator.is_pid() {
                    return self.bad();
                }
                let e = hooks
                    .fun_entry(FunName {
                        module,
                        old_uniq,
                        old_index: old_index as u32,
                        uniq,
                        index,
                        arity,
                        num_free: env.len() as u8,
                    })
                    .ok_or(DecodeError::NoFuns)?;
                let p = a.alloc(FUN_WORDS + env.len());
                // SAFETY: the entry is alive (hook); all words are written, the third by `link`.
                unsafe {
                    (*e).retain();
                    let w = p as *mut u64;
                    w.write(header(Subtag::Fun, FUN_WORDS - 1 + env.len()));
                    w.add(1).write(e as u64);
                    w.add(3).write(arity as u64 | (env.len() as u64) << 8);
                    p.add(4).write(creator);
                    for (i, t) in env.iter().enumerate() {
                        p.add(5 + i).write(*t);
                    }
                    a.off_heap().link(p);
                    Term::boxed_at(p)
                }
            }
        };
        self.done.truncate(f.base);
        Ok(t)
    }

    /// Continues for up to `budget` terms; returns the term once it is complete, None if there is
    /// more to do.
    pub fn step<A: Alloc + ?Sized>(
        &mut self,
        a: &mut A,
        hooks: &dyn Hooks,
        budget: usize,
    ) -> Result<Option<Term>, DecodeError> {
        if self.finished {
            return self.bad();
        }
        for _ in 0..budget {
            let Some(mut t) = self.next(a, hooks)? else {
                continue;
            };
            loop {
                let Some(f) = self.frames.last_mut() else {
                    self.finished = true;
                    if let Some((start, hash)) = self.local
                        && hash != super::local_hash(&self.bytes[start..self.at])
                    {
                        return self.bad();
                    }
                    debug_assert!(self.unchecked.is_none_or(|start| {
                        Skip(&self.bytes[start..], self.local.is_some()).term()
                    }));
                    return Ok(Some(t));
                };
                self.done.push(t);
                f.left -= 1;
                if f.left > 0 {
                    break;
                }
                let Some(f) = self.frames.pop() else {
                    return self.bad();
                };
                t = self.close(a, hooks, f)?;
            }
        }
        Ok(None)
    }
}

/// Bytes that are checked to be a term, as far as lengths and tags tell; and whether the term was
/// encoded for this runtime only.
struct Skip<'b>(&'b [u8], bool);

impl Skip<'_> {
    fn bytes(&mut self, n: usize) -> Option<()> {
        self.0 = self.0.get(n..)?;
        Some(())
    }
    /// Reads a number of `n` bytes.
    fn number(&mut self, n: usize) -> Option<usize> {
        let (b, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(b.iter().fold(0, |x, &b| x << 8 | usize::from(b)))
    }
    fn sized(&mut self, n: usize, more: usize) -> Option<()> {
        let size = self.number(n)?;
        self.bytes(size + more)
    }
    fn atom(&mut self) -> Option<()> {
        match self.number(1)? as u8 {
            tag::ATOM | tag::ATOM_UTF8 => self.sized(2, 0),
            tag::SMALL_ATOM | tag::SMALL_ATOM_UTF8 => self.sized(1, 0),
            tag::ATOM_CACHE_REF => self.bytes(1),
            _ => None,
        }
    }
    fn named(&mut self, more: usize) -> Option<()> {
        match self.0 {
            [tag::NIL, rest @ ..] if self.1 => self.0 = rest,
            _ => self.atom()?,
        }
        self.bytes(more)
    }
    /// Whether a term starts here.
    fn term(mut self) -> bool {
        let mut left = 1;
        while left > 0 {
            left -= 1;
            match self.one() {
                // Each takes at least one byte.
                Some(parts) if parts <= self.0.len() => left += parts,
                _ => return false,
            }
            if left > self.0.len() {
                return false;
            }
        }
        true
    }
    /// Skips a term without its parts; returns the number of parts.
    fn one(&mut self) -> Option<usize> {
        let all = self.0;
        let mut parts = 0;
        match self.number(1)? as u8 {
            tag::SMALL_INTEGER => self.bytes(1)?,
            tag::INTEGER => self.bytes(4)?,
            tag::SMALL_BIG => self.sized(1, 1)?,
            tag::LARGE_BIG => self.sized(4, 1)?,
            tag::NEW_FLOAT => self.bytes(8)?,
            tag::FLOAT => self.bytes(31)?,
            tag::NIL => {}
            tag::STRING => self.sized(2, 0)?,
            tag::LIST => parts = self.number(4)? + 1,
            tag::SMALL_TUPLE => parts = self.number(1)?,
            tag::LARGE_TUPLE => parts = self.number(4)?,
            tag::MAP => parts = 2 * self.number(4)?,
            tag::RECORD => {
                let n = self.number(4)?;
                self.bytes(1)?;
                parts = 2 + 2 * n;
            }
            tag::BINARY => self.sized(4, 0)?,
            tag::BIT_BINARY => self.sized(4, 1)?,
            tag::PID => self.named(9)?,
            tag::NEW_PID | tag::V4_PORT => self.named(12)?,
            tag::PORT | tag::REFERENCE => self.named(5)?,
            tag::NEW_PORT => self.named(8)?,
            t @ (tag::NEW_REFERENCE | tag::NEWER_REFERENCE) => {
                let words = self.number(2)?;
                let creation = if t == tag::NEW_REFERENCE { 1 } else { 4 };
                self.named(creation + 4 * words)?;
            }
            tag::EXPORT => {
                self.atom()?;
                self.atom()?;
                // The arity, encoded as any integer.
                parts = 1;
            }
            tag::NEW_FUN => {
                self.bytes(25)?;
                parts = 4 + self.number(4)?;
            }
            _ => {
                self.0 = all;
                self.atom()?;
            }
        }
        Some(parts)
    }
}

/// A float in the format of older encoders: digits, a point or a comma, digits, and optionally a
/// power of ten.
fn text_float(text: &[u8]) -> Option<f64> {
    let after_digits = |s: &[u8]| {
        let n = s.iter().take_while(|c| c.is_ascii_digit()).count();
        (n > 0).then_some(n)
    };
    let sign = |s: &[u8]| matches!(s.first(), Some(b'+' | b'-')) as usize;
    let mut at = sign(text);
    at += after_digits(&text[at..])?;
    let point = at;
    if !matches!(text.get(at), Some(b'.' | b',')) {
        return None;
    }
    at += 1;
    at += after_digits(&text[at..])?;
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        at += sign(&text[at..]);
        at += after_digits(&text[at..])?;
    }
    if at != text.len() {
        return None;
    }
    let mut plain = text.to_vec();
    plain[point] = b'.';
    std::str::from_utf8(&plain).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frag::Fragment;

    fn check(bytes: &[u8], ok: bool) {
        let mut f = Fragment::new();
        let r = decode(bytes, &mut f, &NoHooks, Options::default());
        assert_eq!(r.is_ok(), ok, "{bytes:?}: {r:?}");
        if let Ok((_, used)) = r {
            assert_eq!(used, bytes.len());
        }
    }

    #[test]
    fn lies_about_lengths_are_refused() {
        check(&[131, 97, 1], true);
        check(&[131], false);
        check(&[131, 105, 255, 255, 255, 255, 97], false);
        check(&[131, 108, 255, 255, 255, 255, 106], false);
        check(&[131, 109, 255, 255, 255, 255, 106], false);
        check(&[131, 80, 255, 255, 255, 255, 120, 156], false);
        check(&[131, 116, 0, 0, 0, 2, 97, 1, 97, 1, 97, 1, 97, 2], false);
        check(&[131, 70, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0], false);
    }

    #[test]
    fn what_is_no_term_makes_no_atoms() {
        let new = b"an atom that nobody has made";
        let named = |tail: &[u8]| {
            let mut b = vec![131, 104, 2, 119, new.len() as u8];
            b.extend(new);
            b.extend(tail);
            b
        };
        for tail in [&b""[..], b"m\0\0\0\x02a", b"\x01", b"l\0\0\0\x01j"] {
            check(&named(tail), false);
            assert!(atom::existing(std::str::from_utf8(new).unwrap_or_default()).is_none());
        }
        check(&named(b"j"), true);
        assert!(atom::existing(std::str::from_utf8(new).unwrap_or_default()).is_some());
    }

    #[test]
    fn deep_terms_decode() {
        let mut b = vec![131];
        for _ in 0..1_000_000 {
            b.extend([104, 1]);
        }
        b.push(106);
        check(&b, true);
    }
}
