//! Encoding: from terms to the external format.
//!
//! [`Encoder::step`] writes up to a number of terms and returns, so a caller can yield in between.
//! The terms that are still to be written are in a list, so no depth of nesting costs native stack.
//!
//! # Invariants
//! - Between two steps the caller keeps all terms in place: the list has addresses of them.
//! - The contents of counted binaries may be left out of the result ([`Parts`]). The sizes that are
//!   written count them all the same.
//! - A term that the format cannot express gives no encoding, not a wrong one.

use super::{VERSION, aliases, pid_leaves, tag};
use crate::atom;
use crate::compare::cmp_exact;
use crate::ending;
use crate::layout::{Bits, FunView, RefView};
use crate::magic;
use crate::node;
use crate::parts::{hashmap_pairs, pid_parts, port_parts, ref_parts};
use crate::print::format_float_scientific;
use crate::release::{self, EXACT_FUN_SIZES, PORTS_OF_64_BITS, UTF8_ATOMS_OUT};
use crate::word::Term;

/// Options of encoding; the default is that of `term_to_binary/1`.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// 0: floats as text. 1: floats as 8 bytes. 2: also all atoms as UTF-8.
    pub minor_version: u8,
    /// Level of compression, 1 to 9; 0 for none. A term that would not become smaller is left
    /// uncompressed.
    pub compressed: u32,
    /// Keys of maps in term order, so that equal maps give equal bytes in every runtime.
    pub deterministic: bool,
    /// For this runtime only: its identifiers stay its own even if the node gets another name.
    pub local: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            minor_version: if release::has(UTF8_ATOMS_OUT) { 2 } else { 1 },
            compressed: 0,
            deterministic: false,
            local: false,
        }
    }
}

/// Largest port number for which `NEW_PORT_EXT` is used, in the releases that use it.
const MAX_V3_PORT: u64 = (1 << 28) - 1;
/// Number of bytes before a term that is encoded for this runtime only: version, tag and hash.
const LOCAL_HEAD: usize = 6;
/// Initial capacity in bytes.
const FIRST_ROOM: usize = 256;
/// Maximum length of a list that is encoded as a string.
const MAX_STRING: usize = 0xFFFF;

/// Number of slots of the atom cache of a connection to another node, in each direction.
pub const ATOM_SLOTS: usize = 2048;
/// Maximum number of atoms that one message refers to by their slots.
const MAX_ATOM_REFS: usize = 255;

/// The slot of an atom.
#[inline]
pub fn atom_slot(t: Term) -> usize {
    t.atom_index() as usize % ATOM_SLOTS
}

/// The atoms of one message, which its header has in full or by their slots:
/// [`tag::ATOM_CACHE_REF`] refers to them.
pub struct AtomRefs {
    /// For each slot the place of the atom, from 1; 0: no atom of that slot yet.
    at: Box<[u8; ATOM_SLOTS]>,
    atoms: Vec<Term>,
}

impl AtomRefs {
    pub fn new() -> AtomRefs {
        AtomRefs {
            at: Box::new([0; ATOM_SLOTS]),
            atoms: Vec::new(),
        }
    }
    /// The place of an atom. None: the caller encodes it in full.
    fn place(&mut self, t: Term) -> Option<u8> {
        let at = &mut self.at[atom_slot(t)];
        match *at {
            0 if self.atoms.len() < MAX_ATOM_REFS => {
                self.atoms.push(t);
                *at = self.atoms.len() as u8;
                Some(*at - 1)
            }
            0 => None,
            n => (self.atoms[n as usize - 1] == t).then(|| n - 1),
        }
    }
    /// Restores the places of atoms that [`AtomRefs::take`] returned. There are none yet.
    pub fn put_back(&mut self, atoms: &[Term]) {
        for &t in atoms {
            self.place(t);
        }
    }
    /// Takes out the atoms in order of their places.
    pub fn take(&mut self) -> Vec<Term> {
        for &t in &self.atoms {
            self.at[atom_slot(t)] = 0;
        }
        std::mem::take(&mut self.atoms)
    }
}

impl Default for AtomRefs {
    fn default() -> Self {
        Self::new()
    }
}

/// Appends a term to `out`, as a connection to another node sends it: without version, with atoms
/// as UTF-8, or referred to by `refs`. Leaves out the whole bytes of binaries of at least
/// `leave_out` bytes: `binaries` gets them, each with the index of the byte that they belong in
/// front of.
pub fn encode_bare(
    t: Term,
    out: &mut Vec<u8>,
    binaries: &mut Vec<(usize, Term)>,
    leave_out: usize,
    refs: Option<AtomRefs>,
) -> Option<AtomRefs> {
    let opts = Options {
        minor_version: 2,
        ..Options::default()
    };
    let mut e = Encoder::bare(t, opts, std::mem::take(out));
    e.leave_out = leave_out;
    e.left_out = std::mem::take(binaries);
    e.refs = refs;
    loop {
        if let Some(bytes) = e.step(usize::MAX) {
            *out = bytes;
            *binaries = e.left_out;
            return e.refs;
        }
    }
}

enum Todo {
    /// Consecutive terms: their address and number.
    Terms(*const Term, usize),
    One(Term),
    /// The rest of a list whose length is written.
    Rest(Term),
    /// Pairs of a map from an index on.
    Pairs(Vec<(Term, Term)>, usize),
    /// Keys and values of a flat map: their addresses and number.
    Flat(*const Term, *const Term, usize),
    /// Write the size of the fun that starts there; with the number of bytes left out before it.
    FunSize(usize, usize),
}

/// Encoding in progress. Holds terms, which the caller keeps in place between steps.
pub struct Encoder {
    out: Vec<u8>,
    todo: Vec<Todo>,
    opts: Options,
    /// Whether version byte and compression are left out.
    bare: bool,
    /// Binaries of at least this many bytes are left out.
    leave_out: usize,
    /// Binaries that were left out, each with the number of encoded bytes before it.
    left_out: Vec<(usize, Term)>,
    /// Number of bytes of those.
    left_bytes: usize,
    /// Number of funs whose size has yet to be written.
    open_funs: usize,
    /// Atoms that are referred to.
    refs: Option<AtomRefs>,
    /// Bytes that `external_size` reports beyond the actual ones: stock counts five for each small
    /// integer in a fun.
    spare_bytes: usize,
    /// A binary has more bytes than the format can express: the result is no encoding.
    too_long: bool,
}

/// An encoding without the contents of its counted binaries.
pub struct Parts {
    pub bytes: Vec<u8>,
    /// Bitstrings whose whole bytes belong in front of the byte with that index.
    pub binaries: Vec<(usize, Term)>,
    /// Number of bytes of the whole, including those that only stock's `external_size` counts.
    pub size: usize,
}

/// Encodes without compression, except the contents of byte-aligned binaries of at least
/// `leave_out` bytes. None if a binary has 4 GiB or more, which the format cannot express, or if
/// nobody waits for the result any more.
pub fn encode_parts(t: Term, opts: Options, leave_out: usize) -> Option<Parts> {
    let opts = Options {
        compressed: 0,
        ..opts
    };
    let mut e = Encoder::new(t, opts);
    e.leave_out = leave_out;
    while !ending::is_over() {
        if let Some(bytes) = e.step(ending::STEPS) {
            return (!e.too_long).then(|| Parts {
                size: bytes.len() + e.left_bytes + e.spare_bytes,
                bytes,
                binaries: e.left_out,
            });
        }
    }
    None
}

/// `term_to_binary/2`.
pub fn encode(t: Term, opts: Options) -> Vec<u8> {
    let mut e = Encoder::new(t, opts);
    loop {
        if let Some(v) = e.step(usize::MAX) {
            return v;
        }
    }
}

/// As [`encode`]; None as for [`encode_parts`].
pub fn encode_all(t: Term, opts: Options) -> Option<Vec<u8>> {
    let mut e = Encoder::new(t, opts);
    while !ending::is_over() {
        if let Some(v) = e.step(ending::STEPS) {
            return (!e.too_long).then_some(v);
        }
    }
    None
}

/// The result of `external_size`: the number of bytes that [`encode`] makes without compression,
/// and those that stock counts beyond them. None as for [`encode_parts`].
pub fn external_size(t: Term, opts: Options) -> Option<usize> {
    let opts = Options {
        compressed: 0,
        ..opts
    };
    let mut e = Encoder::new(t, opts);
    e.leave_out = 0;
    let mut size = 0;
    while !ending::is_over() {
        if let Some(bytes) = e.step(TERMS_KEPT) {
            return (!e.too_long).then_some(size + bytes.len() + e.left_bytes + e.spare_bytes);
        }
        // Nobody reads the bytes: they are dropped once measured, unless the size of a fun has yet
        // to be written there.
        if !opts.local && e.open_funs == 0 {
            size += e.out.len();
            e.out.clear();
            e.left_out.clear();
        }
    }
    None
}

/// Bytes compressed between two checks whether anybody still waits for them: a few milliseconds.
const COMPRESSED_AT_ONCE: usize = 1 << 16;

/// Number of terms measured before their bytes are dropped.
const TERMS_KEPT: usize = 4096;

impl Encoder {
    /// Starts with a version byte.
    pub fn new(t: Term, opts: Options) -> Encoder {
        Encoder {
            out: match opts.local {
                // The hash comes when the term is complete.
                true => vec![VERSION, tag::LOCAL, 0, 0, 0, 0],
                false => {
                    let mut out = Vec::with_capacity(FIRST_ROOM);
                    out.push(VERSION);
                    out
                }
            },
            todo: vec![Todo::One(t)],
            opts,
            bare: false,
            leave_out: usize::MAX,
            left_out: Vec::new(),
            left_bytes: 0,
            open_funs: 0,
            refs: None,
            spare_bytes: 0,
            too_long: false,
        }
    }
    /// Without version byte and compression, behind what `out` already holds (distribution).
    pub fn bare(t: Term, opts: Options, out: Vec<u8>) -> Encoder {
        Encoder {
            out,
            todo: vec![Todo::One(t)],
            opts,
            bare: true,
            leave_out: usize::MAX,
            left_out: Vec::new(),
            left_bytes: 0,
            open_funs: 0,
            refs: None,
            spare_bytes: 0,
            too_long: false,
        }
    }
    fn u16(&mut self, v: u16) {
        self.out.extend(v.to_be_bytes());
    }
    fn u32(&mut self, v: u32) {
        self.out.extend(v.to_be_bytes());
    }
    fn atom(&mut self, t: Term) {
        if let Some(n) = self.refs.as_mut().and_then(|r| r.place(t)) {
            self.out.extend([tag::ATOM_CACHE_REF, n]);
            return;
        }
        let name = atom::name(t);
        if self.opts.minor_version < 2 && name.is_ascii() {
            self.out.push(tag::ATOM);
            self.u16(name.len() as u16);
            self.out.extend(name.as_bytes());
        } else if self.opts.minor_version < 2 && name.chars().all(|c| (c as u32) < 256) {
            self.out.push(tag::ATOM);
            self.u16(name.chars().count() as u16);
            self.out.extend(name.chars().map(|c| c as u8));
        } else if name.len() < 256 {
            self.out.extend([tag::SMALL_ATOM_UTF8, name.len() as u8]);
            self.out.extend(name.as_bytes());
        } else {
            self.out.push(tag::ATOM_UTF8);
            self.u16(name.len() as u16);
            self.out.extend(name.as_bytes());
        }
    }
    /// Writes the name of a node; returns the creation to be written behind it.
    fn node(&mut self, name: Term, creation: u32) -> u32 {
        if self.opts.local && (name, creation) == node::this_node() {
            self.out.push(tag::NIL);
            return 0;
        }
        self.atom(name);
        creation
    }
    fn small(&mut self, v: i64) {
        if (0..256).contains(&v) {
            self.out.extend([tag::SMALL_INTEGER, v as u8]);
        } else if let Ok(v) = i32::try_from(v) {
            self.out.push(tag::INTEGER);
            self.out.extend(v.to_be_bytes());
        } else {
            self.big(v < 0, &[v.unsigned_abs()]);
        }
    }
    fn big(&mut self, negative: bool, digits: &[u64]) {
        let top = digits
            .last()
            .map_or(0, |d| 8 - d.leading_zeros() as usize / 8);
        let n = digits.len().saturating_sub(1) * 8 + top;
        if n < 256 {
            self.out.extend([tag::SMALL_BIG, n as u8]);
        } else {
            self.out.push(tag::LARGE_BIG);
            self.u32(n as u32);
        }
        self.out.push(negative as u8);
        let start = self.out.len();
        self.out.extend(digits.iter().flat_map(|d| d.to_le_bytes()));
        self.out.truncate(start + n);
    }
    fn list(&mut self, t: Term) {
        let (mut n, mut bytes, mut at) = (0usize, true, t);
        while let Some((h, tl)) = at.as_cons() {
            n += 1;
            bytes &= h.as_small().is_some_and(|v| (0..256).contains(&v));
            at = tl;
        }
        if bytes && n <= MAX_STRING && at.is_nil() {
            self.out.push(tag::STRING);
            self.u16(n as u16);
            self.out
                .extend(t.list_iter().map(|h| h.small_value() as u8));
        } else {
            self.out.push(tag::LIST);
            self.u32(n as u32);
            self.todo.push(Todo::Rest(t));
        }
    }
    #[inline]
    fn float(&mut self, f: f64) {
        if self.opts.minor_version == 0 {
            self.out.push(tag::FLOAT);
            let end = self.out.len() + 31;
            self.out.extend(format_float_scientific(f, 20).as_bytes());
            self.out.resize(end, 0);
        } else {
            self.out.push(tag::NEW_FLOAT);
            self.out.extend(f.to_bits().to_be_bytes());
        }
    }
    /// Writes the bitstring `t`, whose data are `b`.
    #[inline]
    fn bits(&mut self, t: Term, b: &Bits) {
        let n = b.bit_len.div_ceil(8);
        // The sender measures what goes to another node.
        if u32::try_from(n).is_err() && !self.bare {
            self.too_long = true;
            self.todo.clear();
            return;
        }
        let left = (b.bit_len & 7) as u8;
        self.out.push(if left == 0 {
            tag::BINARY
        } else {
            tag::BIT_BINARY
        });
        self.u32(n as u32);
        if left != 0 {
            self.out.push(left);
        }
        let whole = b.bit_len / 8;
        if b.bit_offset == 0 && whole >= self.leave_out {
            // Its whole bytes: the bits behind them follow as a byte of their own.
            self.left_out.push((self.out.len(), t));
            self.left_bytes += whole;
            if left != 0 {
                // SAFETY: the bits left over lie in the byte behind the whole ones.
                let last = unsafe { *b.base.add(whole) };
                self.out.push(last & (0xFF << (8 - left)));
            }
        } else {
            match b.as_bytes() {
                Some(s) => self.out.extend(s),
                None => self.out.extend(b.shifted()),
            }
        }
    }
    /// Writes the head of the map `t` of `n` pairs.
    #[inline]
    fn map(&mut self, t: Term, n: usize) {
        self.out.push(tag::MAP);
        self.u32(n as u32);
        if let Some((keys, values)) = t.as_flatmap().filter(|_| !self.opts.deterministic) {
            self.todo
                .push(Todo::Flat(keys.as_ptr(), values.as_ptr(), keys.len()));
            return;
        }
        let mut pairs = Vec::with_capacity(n);
        hashmap_pairs(t, &mut pairs);
        if self.opts.deterministic {
            pairs.sort_by(|x, y| cmp_exact(x.0, y.0));
        }
        self.todo.push(Todo::Pairs(pairs, 0));
    }
    #[inline]
    fn fun(&mut self, f: FunView) {
        if let Some(e) = f.export() {
            self.out.push(tag::EXPORT);
            self.atom(e.module);
            self.atom(e.function);
            self.small(e.arity as i64);
        } else if let Some(e) = f.local() {
            self.out.push(tag::NEW_FUN);
            self.open_funs += 1;
            self.todo
                .push(Todo::FunSize(self.out.len(), self.left_bytes));
            self.u32(0);
            self.out.push(f.arity);
            self.out.extend(e.uniq);
            self.u32(e.index);
            self.u32(f.env.len() as u32);
            self.atom(e.module);
            let at = self.out.len();
            self.small(e.old_index as i64);
            self.small(e.old_uniq);
            if !release::has(EXACT_FUN_SIZES) {
                self.spare_bytes += 10usize.saturating_sub(self.out.len() - at);
            }
            self.todo.push(Todo::Terms(f.env.as_ptr(), f.env.len()));
            self.todo.push(Todo::One(f.maker()));
        }
    }
    /// Writes a pid, port or reference.
    #[inline]
    fn identifier(&mut self, t: Term) {
        if let Some((num, serial, name, creation)) = pid_parts(t) {
            if t.is_local_pid() {
                pid_leaves(t);
            }
            self.out.push(tag::NEW_PID);
            let creation = self.node(name, creation);
            self.u32(num);
            self.u32(serial);
            self.u32(creation);
        } else if let Some((num, name, creation)) = port_parts(t) {
            let long = num > MAX_V3_PORT || release::has(PORTS_OF_64_BITS);
            self.out
                .push(if long { tag::V4_PORT } else { tag::NEW_PORT });
            let creation = self.node(name, creation);
            if long {
                self.u32((num >> 32) as u32);
            }
            self.u32(num as u32);
            self.u32(creation);
        } else if let Some((nums, name, creation)) = ref_parts(t) {
            match t.as_ref_view() {
                Some(RefView::Local {
                    num: n,
                    pid: Some(p),
                }) => {
                    aliases::leaves(n, p);
                    pid_leaves(p);
                }
                Some(RefView::Magic(m)) => magic::encoded(m),
                _ => {}
            }
            self.out.push(tag::NEWER_REFERENCE);
            self.u16(nums.len() as u16);
            let creation = self.node(name, creation);
            self.u32(creation);
            for n in nums {
                self.u32(n);
            }
        }
    }
    fn term(&mut self, t: Term) {
        if let Some(v) = t.as_small() {
            self.small(v);
        } else if t.is_atom() {
            self.atom(t);
        } else if t.is_nil() {
            self.out.push(tag::NIL);
        } else if t.is_list_ptr() {
            self.list(t);
        } else if let Some(e) = t.as_tuple() {
            if e.len() < 256 {
                self.out.extend([tag::SMALL_TUPLE, e.len() as u8]);
            } else {
                self.out.push(tag::LARGE_TUPLE);
                self.u32(e.len() as u32);
            }
            self.todo.push(Todo::Terms(e.as_ptr(), e.len()));
        } else if let Some((neg, d)) = t.as_big() {
            self.big(neg, d);
        } else if let Some(f) = t.as_float() {
            self.float(f);
        } else if let Some(b) = t.as_bits() {
            self.bits(t, &b);
        } else if let Some(r) = t.as_record() {
            self.out.push(tag::RECORD);
            self.u32(r.values.len() as u32);
            self.out.push(r.definition.is_exported() as u8);
            self.atom(r.definition.module());
            self.atom(r.definition.name());
            for &k in r.definition.keys() {
                self.atom(k);
            }
            self.todo
                .push(Todo::Terms(r.values.as_ptr(), r.values.len()));
        } else if let Some(n) = t.map_size() {
            self.map(t, n);
        } else if let Some(f) = t.as_fun() {
            self.fun(f);
        } else {
            self.identifier(t);
        }
    }
    fn finish(&mut self) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.out);
        if self.opts.local && !self.bare {
            let (head, term) = out.split_at_mut(LOCAL_HEAD);
            head[2..].copy_from_slice(&super::local_hash(term).to_be_bytes());
        }
        if self.opts.compressed == 0 || self.bare {
            return out;
        }
        use std::io::Write;
        let size = out.len() - 1;
        let mut head = vec![VERSION, tag::COMPRESSED];
        head.extend((size as u32).to_be_bytes());
        let level = flate2::Compression::new(self.opts.compressed.min(9));
        let mut z = flate2::write::ZlibEncoder::new(head, level);
        for part in out[1..].chunks(COMPRESSED_AT_ONCE) {
            if ending::is_over() || z.write_all(part).is_err() {
                return out;
            }
        }
        match z.finish() {
            Ok(v) if v.len() <= out.len() => v,
            _ => out,
        }
    }
    /// Continues for up to `budget` terms; returns the bytes once they are complete, None if there
    /// is more to do.
    pub fn step(&mut self, budget: usize) -> Option<Vec<u8>> {
        for _ in 0..budget {
            let t = match self.todo.last_mut() {
                None => return Some(self.finish()),
                Some(Todo::One(t)) => {
                    let t = *t;
                    self.todo.pop();
                    t
                }
                Some(Todo::Terms(p, n)) => {
                    if *n == 0 {
                        self.todo.pop();
                        continue;
                    }
                    // SAFETY: `n` words are left there (elements of a tuple or environment in
                    // hand).
                    unsafe {
                        let t = **p;
                        *p = p.add(1);
                        *n -= 1;
                        t
                    }
                }
                Some(Todo::Rest(at)) => match at.as_cons() {
                    Some((h, tl)) => {
                        *at = tl;
                        h
                    }
                    None => {
                        let t = *at;
                        self.todo.pop();
                        t
                    }
                },
                Some(Todo::Pairs(v, i)) => {
                    let Some((k, x)) = v.get(*i / 2) else {
                        self.todo.pop();
                        continue;
                    };
                    let t = if *i & 1 == 0 { *k } else { *x };
                    *i += 1;
                    t
                }
                Some(Todo::Flat(keys, values, n)) => {
                    if *n == 0 {
                        self.todo.pop();
                        continue;
                    }
                    // SAFETY: `n` keys and as many values are left there (of a flat map in hand).
                    let (k, v) = unsafe {
                        let pair = (**keys, **values);
                        *keys = keys.add(1);
                        *values = values.add(1);
                        *n -= 1;
                        pair
                    };
                    self.todo.push(Todo::One(v));
                    k
                }
                Some(Todo::FunSize(at, left)) => {
                    let at = *at;
                    let n = (self.out.len() - at + self.left_bytes - *left) as u32;
                    self.out[at..at + 4].copy_from_slice(&n.to_be_bytes());
                    self.open_funs -= 1;
                    self.todo.pop();
                    continue;
                }
            };
            self.term(t);
        }
        None
    }
}
