//! Ciphers of module `crypto`: block ciphers in their modes, ChaCha20, and both with authentication.
//!
//! The ciphers are those of OpenSSL 3's default provider; the ones that it keeps apart as legacy (`rc4`, `blowfish_cbc`,
//! `des_cbc` …) are known by name and refused, as stock does where the library lacks them. The block functions come from
//! the RustCrypto project; the modes are here, since what stock's interface lets a program choose (partial updates, the
//! length of a tag or an initial vector) isn't what the crates' types fix.
//!
//! A state under way is the value of a magic reference, behind a lock: updates change it, as in stock.

use super::crypto::{bytes, fail};
use super::{long, native_state};
use crate::cx::{BifResult, Cx, Fail};
use crate::{bifs, lazy_atoms};
use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockDecrypt, BlockEncrypt, KeyInit};
use chacha20::cipher::{KeyIvInit, StreamCipherCore, StreamCipherSeekCore, consts::U10};
use ghash::universal_hash::UniversalHash;
use purlin_term::print::{Style, format_term};
use purlin_term::{Alloc, Term, am, atom, map};
use std::sync::Mutex;
use subtle::ConstantTimeEq;

lazy_atoms! {
    block_size = "block_size";
    key_length = "key_length";
    iv_length = "iv_length";
    prop_aead = "prop_aead";
    mode = "mode";
    padding = "padding";
    padding_size = "padding_size";
    padding_type = "padding_type";
    encrypt = "encrypt";
    zero = "zero";
    random = "random";
    pkcs_padding = "pkcs_padding";
}

/// Bytes of the largest block, that of ChaCha20.
const MAX_BLOCK: usize = 64;
/// Bytes of data from which on the work is done on a dirty thread.
const LONG: usize = 1 << 20;

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Ecb,
    Cbc,
    /// Feedback of single bytes.
    Cfb8,
    /// Feedback of whole blocks.
    Cfb,
    Ofb,
    Ctr,
    ChaCha,
    Gcm,
    Ccm,
    ChaChaPoly,
    /// Known by name only.
    Legacy,
}

/// A cipher; lengths are in bytes. `number` is that of the cipher among OpenSSL's objects, 0 if it has none.
struct Row {
    name: &'static str,
    key: usize,
    iv: usize,
    block: usize,
    mode: Mode,
    number: i64,
}

const fn row(
    name: &'static str,
    key: usize,
    iv: usize,
    block: usize,
    mode: Mode,
    number: i64,
) -> Row {
    Row {
        name,
        key,
        iv,
        block,
        mode,
        number,
    }
}

static CIPHERS: &[Row] = &[
    row("aes_128_cbc", 16, 16, 16, Mode::Cbc, 419),
    row("aes_192_cbc", 24, 16, 16, Mode::Cbc, 423),
    row("aes_256_cbc", 32, 16, 16, Mode::Cbc, 427),
    row("aes_128_ecb", 16, 0, 16, Mode::Ecb, 418),
    row("aes_192_ecb", 24, 0, 16, Mode::Ecb, 422),
    row("aes_256_ecb", 32, 0, 16, Mode::Ecb, 426),
    row("aes_128_ofb", 16, 16, 1, Mode::Ofb, 420),
    row("aes_192_ofb", 24, 16, 1, Mode::Ofb, 424),
    row("aes_256_ofb", 32, 16, 1, Mode::Ofb, 428),
    row("aes_128_cfb8", 16, 16, 1, Mode::Cfb8, 421),
    row("aes_192_cfb8", 24, 16, 1, Mode::Cfb8, 425),
    row("aes_256_cfb8", 32, 16, 1, Mode::Cfb8, 429),
    row("aes_128_cfb128", 16, 16, 1, Mode::Cfb, 421),
    row("aes_192_cfb128", 24, 16, 1, Mode::Cfb, 425),
    row("aes_256_cfb128", 32, 16, 1, Mode::Cfb, 429),
    row("aes_128_ctr", 16, 16, 1, Mode::Ctr, 0),
    row("aes_192_ctr", 24, 16, 1, Mode::Ctr, 0),
    row("aes_256_ctr", 32, 16, 1, Mode::Ctr, 0),
    row("des_ede3_cbc", 24, 8, 8, Mode::Cbc, 44),
    row("des_ede3_cfb", 24, 8, 1, Mode::Cfb, 30),
    row("chacha20", 32, 16, 1, Mode::ChaCha, 0),
    row("aes_128_gcm", 16, 12, 1, Mode::Gcm, 895),
    row("aes_192_gcm", 24, 12, 1, Mode::Gcm, 898),
    row("aes_256_gcm", 32, 12, 1, Mode::Gcm, 901),
    row("aes_128_ccm", 16, 12, 1, Mode::Ccm, 896),
    row("aes_192_ccm", 24, 12, 1, Mode::Ccm, 899),
    row("aes_256_ccm", 32, 12, 1, Mode::Ccm, 902),
    row("chacha20_poly1305", 32, 12, 1, Mode::ChaChaPoly, 0),
    row("rc2_cbc", 0, 0, 0, Mode::Legacy, 0),
    row("rc4", 0, 0, 0, Mode::Legacy, 0),
    row("des_cbc", 0, 0, 0, Mode::Legacy, 0),
    row("des_cfb", 0, 0, 0, Mode::Legacy, 0),
    row("des_ecb", 0, 0, 0, Mode::Legacy, 0),
    row("blowfish_cbc", 0, 0, 0, Mode::Legacy, 0),
    row("blowfish_cfb64", 0, 0, 0, Mode::Legacy, 0),
    row("blowfish_ofb64", 0, 0, 0, Mode::Legacy, 0),
    row("blowfish_ecb", 0, 0, 0, Mode::Legacy, 0),
];

impl Row {
    fn is_aead(&self) -> bool {
        matches!(self.mode, Mode::Gcm | Mode::Ccm | Mode::ChaChaPoly)
    }
    /// Whether the cipher is looked up by the length of its key too.
    fn by_key(&self) -> bool {
        self.name.starts_with("aes") || self.mode == Mode::ChaCha
    }
}

fn cipher(t: Term) -> Option<&'static Row> {
    let name = t.is_atom().then(|| atom::name(t))?;
    CIPHERS.iter().find(|c| c.name == name)
}

/// A block cipher and its key.
enum Block {
    Aes128(Box<aes::Aes128>),
    Aes192(Box<aes::Aes192>),
    Aes256(Box<aes::Aes256>),
    Des3(Box<des::TdesEde3>),
}

impl Block {
    /// None if no cipher has keys of such a length.
    fn new(key: &[u8], block: usize) -> Option<Block> {
        Some(match (key.len(), block) {
            (16, 16) => Block::Aes128(Box::new(KeyInit::new_from_slice(key).ok()?)),
            (24, 16) => Block::Aes192(Box::new(KeyInit::new_from_slice(key).ok()?)),
            (32, 16) => Block::Aes256(Box::new(KeyInit::new_from_slice(key).ok()?)),
            (24, 8) => Block::Des3(Box::new(KeyInit::new_from_slice(key).ok()?)),
            _ => return None,
        })
    }
    fn size(&self) -> usize {
        match self {
            Block::Des3(_) => 8,
            _ => 16,
        }
    }
    /// `b` is one block.
    fn encrypt(&self, b: &mut [u8]) {
        let b = &mut b[..self.size()];
        match self {
            Block::Aes128(c) => c.encrypt_block(GenericArray::from_mut_slice(b)),
            Block::Aes192(c) => c.encrypt_block(GenericArray::from_mut_slice(b)),
            Block::Aes256(c) => c.encrypt_block(GenericArray::from_mut_slice(b)),
            Block::Des3(c) => c.encrypt_block(GenericArray::from_mut_slice(b)),
        }
    }
    /// `b` is one block.
    fn decrypt(&self, b: &mut [u8]) {
        let b = &mut b[..self.size()];
        match self {
            Block::Aes128(c) => c.decrypt_block(GenericArray::from_mut_slice(b)),
            Block::Aes192(c) => c.decrypt_block(GenericArray::from_mut_slice(b)),
            Block::Aes256(c) => c.decrypt_block(GenericArray::from_mut_slice(b)),
            Block::Des3(c) => c.decrypt_block(GenericArray::from_mut_slice(b)),
        }
    }
}

/// The blocks of ChaCha20's key stream. The counter is the four bytes before the nonce; where it overflows it carries
/// into the nonce, as OpenSSL's does.
struct ChaCha {
    key: [u8; 32],
    nonce: [u8; 12],
    next: u32,
    core: chacha20::ChaChaCore<U10>,
}

impl ChaCha {
    /// None if a length isn't right.
    fn new(key: &[u8], iv: &[u8]) -> Option<ChaCha> {
        let key: [u8; 32] = key.try_into().ok()?;
        let (count, nonce) = iv.split_first_chunk::<4>()?;
        let nonce: [u8; 12] = nonce.try_into().ok()?;
        let next = u32::from_le_bytes(*count);
        let mut core = chacha20::ChaChaCore::<U10>::new(&key.into(), &nonce.into());
        core.set_block_pos(next);
        Some(ChaCha {
            key,
            nonce,
            next,
            core,
        })
    }
    fn block(&mut self, b: &mut [u8; MAX_BLOCK]) {
        self.core.write_keystream_block(b.into());
        self.next = self.next.wrapping_add(1);
        if self.next == 0 {
            for byte in &mut self.nonce[..4] {
                *byte = byte.wrapping_add(1);
                if *byte != 0 {
                    break;
                }
            }
            self.core = chacha20::ChaChaCore::<U10>::new(&self.key.into(), &self.nonce.into());
        }
    }
}

enum Engine {
    Block(Block),
    ChaCha(Box<ChaCha>),
}

/// A cipher at work.
struct Cipher {
    engine: Engine,
    mode: Mode,
    encrypt: bool,
    /// Whether the last block is filled up, and the filling taken away again.
    pkcs: bool,
    /// What the next block depends on: the block before, or the counter.
    iv: [u8; 16],
    /// A block of the key stream, and the bytes of it that are used up.
    stream: [u8; MAX_BLOCK],
    used: usize,
    /// Data that is no full block yet.
    held: Vec<u8>,
}

fn xor(to: &mut [u8], with: &[u8]) {
    for (a, b) in to.iter_mut().zip(with) {
        *a ^= b;
    }
}

/// Counts up a number in big-endian bytes, around its end.
fn count_up(n: &mut [u8]) {
    for byte in n.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return;
        }
    }
}

impl Cipher {
    /// None if a length isn't that of the cipher.
    fn new(row: &Row, key: &[u8], iv: &[u8], encrypt: bool, pkcs: bool) -> Option<Cipher> {
        let mut first = [0; 16];
        let engine = if row.mode == Mode::ChaCha {
            Engine::ChaCha(Box::new(ChaCha::new(key, iv)?))
        } else {
            first.get_mut(..iv.len())?.copy_from_slice(iv);
            Engine::Block(Block::new(
                key,
                if row.name.starts_with("des") { 8 } else { 16 },
            )?)
        };
        Some(Cipher {
            engine,
            mode: row.mode,
            encrypt,
            pkcs,
            iv: first,
            stream: [0; MAX_BLOCK],
            used: 0,
            held: Vec::new(),
        })
    }

    /// What `data` gives; in the modes of whole blocks what isn't one is held back, and of what may be the filled one
    /// the last.
    fn update(&mut self, data: &[u8]) -> Vec<u8> {
        let Engine::Block(block) = &self.engine else {
            let mut out = data.to_vec();
            self.stream_over(&mut out);
            return out;
        };
        let n = block.size();
        match self.mode {
            Mode::Ecb | Mode::Cbc => {
                let mut out = std::mem::take(&mut self.held);
                out.extend_from_slice(data);
                let mut whole = out.len() / n * n;
                if !self.encrypt && self.pkcs && whole == out.len() && whole > 0 {
                    whole -= n;
                }
                self.held = out.split_off(whole);
                for b in out.chunks_exact_mut(n) {
                    match (self.mode, self.encrypt) {
                        (Mode::Ecb, true) => block.encrypt(b),
                        (Mode::Ecb, false) => block.decrypt(b),
                        (_, true) => {
                            xor(b, &self.iv);
                            block.encrypt(b);
                            self.iv[..n].copy_from_slice(b);
                        }
                        (_, false) => {
                            let mut before = [0; 16];
                            before[..n].copy_from_slice(b);
                            block.decrypt(b);
                            xor(b, &self.iv);
                            self.iv = before;
                        }
                    }
                }
                out
            }
            Mode::Cfb8 => {
                let mut out = data.to_vec();
                for b in &mut out {
                    let mut s = self.iv;
                    block.encrypt(&mut s);
                    let given = *b;
                    *b ^= s[0];
                    self.iv.copy_within(1..n, 0);
                    self.iv[n - 1] = if self.encrypt { *b } else { given };
                }
                out
            }
            Mode::Cfb => {
                let mut out = data.to_vec();
                for b in &mut out {
                    if self.used == 0 {
                        block.encrypt(&mut self.iv);
                    }
                    let given = *b;
                    *b ^= self.iv[self.used];
                    self.iv[self.used] = if self.encrypt { *b } else { given };
                    self.used = (self.used + 1) % n;
                }
                out
            }
            _ => {
                let mut out = data.to_vec();
                self.stream_over(&mut out);
                out
            }
        }
    }

    /// Takes the key stream and `data` together.
    fn stream_over(&mut self, data: &mut [u8]) {
        let n = match &self.engine {
            Engine::Block(b) => b.size(),
            Engine::ChaCha(_) => MAX_BLOCK,
        };
        let mut rest = data;
        while !rest.is_empty() {
            if self.used == 0 {
                match &mut self.engine {
                    Engine::ChaCha(c) => c.block(&mut self.stream),
                    Engine::Block(b) => {
                        if self.mode == Mode::Ofb {
                            b.encrypt(&mut self.iv);
                            self.stream[..n].copy_from_slice(&self.iv[..n]);
                        } else {
                            self.stream[..n].copy_from_slice(&self.iv[..n]);
                            b.encrypt(&mut self.stream);
                            count_up(&mut self.iv[..n]);
                        }
                    }
                }
            }
            let take = rest.len().min(n - self.used);
            let (now, later) = rest.split_at_mut(take);
            xor(now, &self.stream[self.used..]);
            self.used = (self.used + take) % n;
            rest = later;
        }
    }

    /// The end of the data; None if it can't end there.
    fn last(&mut self) -> Option<Vec<u8>> {
        let Engine::Block(block) = &self.engine else {
            return Some(Vec::new());
        };
        if !matches!(self.mode, Mode::Ecb | Mode::Cbc) {
            return Some(Vec::new());
        }
        let n = block.size();
        if !self.pkcs {
            return self.held.is_empty().then(Vec::new);
        }
        if self.encrypt {
            let fill = n - self.held.len();
            return Some(self.update(&vec![fill as u8; fill]));
        }
        if self.held.len() != n {
            return None;
        }
        self.pkcs = false;
        let mut out = self.update(&[]);
        self.pkcs = true;
        let fill = usize::from(*out.last()?);
        if fill == 0 || fill > n || out[n - fill..].iter().any(|&b| usize::from(b) != fill) {
            return None;
        }
        out.truncate(n - fill);
        Some(out)
    }
}

/// A cipher under way, as programs see it.
struct Work {
    cipher: Cipher,
    block: usize,
    padding: Term,
    /// Bytes given so far.
    size: usize,
    /// Bytes that the last block was filled up with; -1 before.
    padded: i64,
}

/// What a reference to a cipher under way holds.
struct State(Mutex<Work>);

/// `true | false | [{encrypt, boolean()} | {padding, Padding}]`: whether to encrypt, and the padding.
fn options(cx: &mut Cx, t: Term, arg: i64) -> Result<(bool, Term), Fail> {
    let mut refuse = |line, text: &str| Err(fail(cx, am::BADARG, line, arg, text));
    if t == am::TRUE || t == am::FALSE {
        return Ok((t == am::TRUE, am::UNDEFINED));
    }
    let Some(list) = t.list_to_vec() else {
        return refuse(line!(), "Options are not a boolean or a proper list");
    };
    let (mut way, mut filling) = (None, None);
    for o in list {
        let Some(&[tag, value]) = o.as_tuple() else {
            return refuse(line!(), "Options must be a property list!");
        };
        if tag == encrypt() {
            if way.is_some() {
                return refuse(line!(), "'encrypt' option is present more than once!");
            }
            if value != am::TRUE && value != am::FALSE {
                return refuse(line!(), "The 'encrypt' option must be a boolean!");
            }
            way = Some(value == am::TRUE);
        } else if tag == padding() {
            if filling.is_some() {
                return refuse(line!(), "The 'padding' option is present more than once!");
            }
            let known = [am::UNDEFINED, am::NONE, zero(), random(), pkcs_padding()];
            if !known.contains(&value) {
                return refuse(line!(), "Bad 'padding' option value");
            }
            filling = Some(value);
        } else {
            let tag = format_term(tag, Style::Display, 40);
            return refuse(line!(), &format!("Bad tag in option: {tag}"));
        }
    }
    Ok((way.unwrap_or(true), filling.unwrap_or(am::UNDEFINED)))
}

/// A cipher that begins; `opts` is argument number `opts_arg`, what comes before is in the first three.
fn begin(cx: &mut Cx, [name, key, iv, opts]: [Term; 4], opts_arg: i64) -> Result<Work, Fail> {
    let (way, filling) = options(cx, opts, opts_arg)?;
    let Some(key) = bytes(cx, key) else {
        return Err(fail(cx, am::BADARG, line!(), 1, "Bad key"));
    };
    if !name.is_atom() {
        return Err(fail(cx, am::BADARG, line!(), 0, "Cipher id is not an atom"));
    }
    let Some(row) = cipher(name) else {
        return Err(fail(cx, am::BADARG, line!(), 0, "Unknown cipher"));
    };
    if row.by_key() && key.len() != row.key {
        return Err(fail(cx, am::BADARG, line!(), 1, "Bad key size"));
    }
    if row.is_aead() {
        let text = "Missing arguments for this cipher";
        return Err(fail(cx, am::BADARG, line!(), 0, text));
    }
    if row.mode == Mode::Legacy {
        let text = "Cipher not supported in this libcrypto version";
        return Err(fail(cx, am::NOTSUP, line!(), 0, text));
    }
    if iv == am::UNDEFINED {
        let text = "Dynamic IV is not supported for libcrypto versions >= 3.0";
        return Err(fail(cx, am::NOTSUP, line!(), -1, text));
    }
    let mut first = std::borrow::Cow::Borrowed(&[][..]);
    if row.iv != 0 {
        match bytes(cx, iv) {
            None => return Err(fail(cx, am::BADARG, line!(), 2, "Bad iv type")),
            Some(b) if b.len() != row.iv => {
                return Err(fail(cx, am::BADARG, line!(), 2, "Bad iv size"));
            }
            Some(b) => first = b,
        }
    }
    let Some(cipher) = Cipher::new(row, &key, &first, way, filling == pkcs_padding()) else {
        let text = "Can't initialize context, key_length";
        return Err(fail(cx, am::ERROR, line!(), 1, text));
    };
    Ok(Work {
        cipher,
        block: row.block,
        padding: filling,
        size: 0,
        padded: -1,
    })
}

impl Work {
    fn update(&mut self, data: &[u8]) -> Vec<u8> {
        self.size += data.len();
        self.cipher.update(data)
    }

    /// The end; an error is the text of one.
    fn last(&mut self) -> Result<Vec<u8>, &'static str> {
        let missing = self.size.next_multiple_of(self.block) - self.size;
        if !self.cipher.encrypt {
            if self.padding == am::UNDEFINED {
                return Ok(Vec::new());
            }
            return self.cipher.last().ok_or("Can't finalize");
        }
        self.padded = missing as i64;
        if self.padding == am::UNDEFINED {
            return Ok(Vec::new());
        }
        if self.padding == am::NONE {
            let text = "Padding 'none' but unfilled last block";
            return self.cipher.last().ok_or(text);
        }
        if self.padding == pkcs_padding() {
            if missing == 0 {
                self.padded = self.block as i64;
            }
            return self.cipher.last().ok_or("Can't finalize");
        }
        let mut filling = vec![0; missing];
        if self.padding == random() && getrandom::fill(&mut filling).is_err() {
            return Err("Can't pad");
        }
        Ok(self.cipher.update(&filling))
    }
}

fn init_4(cx: &mut Cx, [name, key, iv, opts]: [Term; 4]) -> BifResult {
    if !name.is_atom() {
        let Some(State(s)) = native_state::get::<State>(name) else {
            let text = "Expected cipher name atom";
            return Err(fail(cx, am::BADARG, line!(), 0, text));
        };
        if opts != am::TRUE && opts != am::FALSE {
            return Err(fail(cx, am::BADARG, line!(), 3, "Expected true or false"));
        }
        let mut s = s.lock().unwrap_or_else(|e| e.into_inner());
        s.cipher.encrypt = opts == am::TRUE;
        return Ok(name);
    }
    let work = begin(cx, [name, key, iv, opts], 3)?;
    Ok(native_state::make(cx, State(Mutex::new(work))))
}

fn update_2(cx: &mut Cx, [state, data]: [Term; 2]) -> BifResult {
    let Some(b) = bytes(cx, data) else {
        return Err(fail(cx, am::BADARG, line!(), 1, "expected binary"));
    };
    let Some(State(s)) = native_state::get::<State>(state) else {
        return Err(fail(cx, am::BADARG, line!(), 0, "Bad State"));
    };
    long::leave_if(cx, "crypto", "ng_crypto_update_nif", &[state, data], || {
        b.len() > LONG
    })?;
    let out = s.lock().unwrap_or_else(|e| e.into_inner()).update(&b);
    Ok(cx.binary(&out))
}

/// With an initial vector of its own, which OpenSSL 3 doesn't have.
fn update_3(cx: &mut Cx, [state, data, _]: [Term; 3]) -> BifResult {
    if bytes(cx, data).is_none() {
        return Err(fail(cx, am::BADARG, line!(), 1, "expected binary"));
    }
    if native_state::get::<State>(state).is_none() {
        return Err(fail(cx, am::BADARG, line!(), 0, "Bad State"));
    }
    let text = "Dynamic IV is not supported for libcrypto versions >= 3.0";
    Err(fail(cx, am::NOTSUP, line!(), -1, text))
}

fn final_1(cx: &mut Cx, [state]: [Term; 1]) -> BifResult {
    let Some(State(s)) = native_state::get::<State>(state) else {
        return Err(fail(cx, am::BADARG, line!(), 0, "Bad State"));
    };
    let last = s.lock().unwrap_or_else(|e| e.into_inner()).last();
    match last {
        Ok(b) => Ok(cx.binary(&b)),
        Err(text) => Err(fail(cx, am::ERROR, line!(), -1, text)),
    }
}

fn get_data_1(cx: &mut Cx, [state]: [Term; 1]) -> BifResult {
    let Some(State(s)) = native_state::get::<State>(state) else {
        return Err(fail(cx, am::BADARG, line!(), 0, "Bad State"));
    };
    let s = s.lock().unwrap_or_else(|e| e.into_inner());
    let pairs = [
        (am::SIZE, Term::small(s.size as i64)),
        (padding_size(), Term::small(s.padded)),
        (padding_type(), s.padding),
        (encrypt(), Term::bool(s.cipher.encrypt)),
    ];
    Ok(map::from_pairs(cx, &pairs))
}

fn one_time_5(cx: &mut Cx, [name, key, iv, data, opts]: [Term; 5]) -> BifResult {
    let Some(b) = bytes(cx, data) else {
        return Err(fail(cx, am::BADARG, line!(), 3, "expected binary as data"));
    };
    let args = [name, key, iv, data, opts];
    long::leave_if(cx, "crypto", "ng_crypto_one_time_nif", &args, || {
        b.len() > LONG
    })?;
    let mut work = begin(cx, [name, key, iv, opts], 4)?;
    let mut out = work.update(&b);
    match work.last() {
        Ok(last) => out.extend_from_slice(&last),
        Err(text) => return Err(fail(cx, am::ERROR, line!(), -1, text)),
    }
    Ok(cx.binary(&out))
}

/// A cipher with authentication: `seal` gives the text and its tag of 16 bytes for either way.
enum Sealing {
    Gcm {
        block: Block,
        first: [u8; 16],
    },
    Ccm {
        block: Block,
        nonce: Vec<u8>,
        tag: usize,
    },
    ChaChaPoly(Box<ChaCha>),
}

impl Sealing {
    fn gcm(block: Block, iv: &[u8]) -> Sealing {
        let mut first = [0; 16];
        if iv.len() == 12 {
            first[..12].copy_from_slice(iv);
            first[15] = 1;
        } else {
            let mut h = Sealing::ghash(&block);
            h.update_padded(iv);
            h.update(&[lengths(0, iv.len(), |n| (n * 8).to_be_bytes()).into()]);
            first.copy_from_slice(&h.finalize());
        }
        Sealing::Gcm { block, first }
    }

    fn ghash(block: &Block) -> ghash::GHash {
        let mut key = [0; 16];
        block.encrypt(&mut key);
        ghash::universal_hash::KeyInit::new(&key.into())
    }

    /// What the text becomes, and the tag over the encrypted text and `aad`.
    fn seal(self, aad: &[u8], text: &[u8], encrypt: bool) -> (Vec<u8>, [u8; 16]) {
        let mut out = text.to_vec();
        let mut tag = [0; 16];
        match self {
            Sealing::Gcm { block, first } => {
                let mut counter = first;
                for b in out.chunks_mut(16) {
                    // The upper 96 bits stay.
                    count_up(&mut counter[12..]);
                    let mut s = counter;
                    block.encrypt(&mut s);
                    xor(b, &s);
                }
                let mut h = Sealing::ghash(&block);
                h.update_padded(aad);
                h.update_padded(if encrypt { &out } else { text });
                h.update(&[lengths(aad.len(), text.len(), |n| (n * 8).to_be_bytes()).into()]);
                tag.copy_from_slice(&h.finalize());
                let mut s = first;
                block.encrypt(&mut s);
                xor(&mut tag, &s);
            }
            Sealing::Ccm {
                block,
                nonce,
                tag: length,
            } => {
                let mut counter = [0; 16];
                counter[0] = (14 - nonce.len()) as u8;
                counter[1..=nonce.len()].copy_from_slice(&nonce);
                let mut s = counter;
                block.encrypt(&mut s);
                let count = 1 + nonce.len()..16;
                let mut key = counter;
                for b in out.chunks_mut(16) {
                    count_up(&mut key[count.clone()]);
                    let mut s = key;
                    block.encrypt(&mut s);
                    xor(b, &s);
                }
                // The tag is over the plain text, after a block of lengths and `aad` with its own.
                let mut sum = counter;
                sum[0] |= ((length as u8 - 2) / 2) << 3 | if aad.is_empty() { 0 } else { 64 };
                let n = (text.len() as u64).to_be_bytes();
                let width = count.len().min(8);
                sum[16 - width..].copy_from_slice(&n[8 - width..]);
                block.encrypt(&mut sum);
                let mut head = Vec::new();
                match aad.len() {
                    0 => {}
                    n @ ..0xFF00 => head.extend_from_slice(&(n as u16).to_be_bytes()),
                    n => {
                        head.extend_from_slice(&[0xFF, 0xFE]);
                        head.extend_from_slice(&(n as u32).to_be_bytes());
                    }
                }
                head.extend_from_slice(aad);
                let plain = if encrypt { text } else { &out };
                for b in head.chunks(16).chain(plain.chunks(16)) {
                    xor(&mut sum, b);
                    block.encrypt(&mut sum);
                }
                xor(&mut sum, &s);
                tag = sum;
            }
            Sealing::ChaChaPoly(mut c) => {
                let mut s = [0; MAX_BLOCK];
                c.block(&mut s);
                let key: &[u8; 32] = s.first_chunk().unwrap_or(&[0; 32]);
                let mut sum = <poly1305::Poly1305 as KeyInit>::new(key.into());
                for b in out.chunks_mut(MAX_BLOCK) {
                    let mut s = [0; MAX_BLOCK];
                    c.block(&mut s);
                    xor(b, &s);
                }
                sum.update_padded(aad);
                sum.update_padded(if encrypt { &out } else { text });
                sum.update(&[lengths(aad.len(), text.len(), u64::to_le_bytes).into()]);
                tag.copy_from_slice(&sum.finalize());
            }
        }
        (out, tag)
    }
}

/// A block of two lengths.
fn lengths(a: usize, b: usize, write: fn(u64) -> [u8; 8]) -> [u8; 16] {
    let mut l = [0; 16];
    l[..8].copy_from_slice(&write(a as u64));
    l[8..].copy_from_slice(&write(b as u64));
    l
}

/// `aead_cipher_nif(Cipher, Key, IV, Text, AAD, Tag | TagLength, Encrypt)`
fn aead_7(cx: &mut Cx, args: [Term; 7]) -> BifResult {
    let [name, key, iv, text, aad, tag, way] = args;
    let refuse = |cx: &mut Cx, line, arg, text| Err(fail(cx, am::BADARG, line, arg, text));
    if way != am::TRUE && way != am::FALSE {
        return refuse(cx, line!(), 6, "Bad enc flag");
    }
    let encrypt = way == am::TRUE;
    if !name.is_atom() {
        return refuse(cx, line!(), 0, "non-atom cipher type");
    }
    let Some(key) = bytes(cx, key) else {
        return refuse(cx, line!(), 1, "non-binary key");
    };
    let Some(iv) = bytes(cx, iv) else {
        return refuse(cx, line!(), 2, "non-binary iv");
    };
    let Some(text) = bytes(cx, text) else {
        return refuse(cx, line!(), 3, "non-binary text");
    };
    let Some(aad) = bytes(cx, aad) else {
        return refuse(cx, line!(), 4, "non-binary AAD");
    };
    let (given, length) = if encrypt {
        let n = tag.as_small().and_then(|n| u32::try_from(n).ok());
        let Some(n) = n else {
            return refuse(cx, line!(), 5, "Bad Tag length");
        };
        (None, n as usize)
    } else {
        let Some(b) = bytes(cx, tag) else {
            return refuse(cx, line!(), 5, "non-binary Tag");
        };
        let n = b.len();
        (Some(b), n)
    };
    let all = [length, key.len(), iv.len(), text.len(), aad.len()];
    if all.iter().any(|&n| n > i32::MAX as usize) {
        return refuse(cx, line!(), 5, "binary too long");
    }
    long::leave_if(cx, "crypto", "aead_cipher_nif", &args, || {
        text.len() + aad.len() > LONG
    })?;
    let row = cipher(name).filter(|r| !r.by_key() || r.key == key.len());
    let Some(row) = row else {
        let text = "Unknown cipher or invalid key size";
        return refuse(cx, line!(), 0, text);
    };
    if !row.is_aead() {
        return refuse(cx, line!(), 0, "Not aead cipher");
    }
    let ivs = match row.mode {
        Mode::Gcm => 1..=128,
        Mode::Ccm => 7..=13,
        _ => 12..=12,
    };
    if !ivs.contains(&iv.len()) {
        return refuse(cx, line!(), 2, "Bad IV length");
    }
    let sealing = match row.mode {
        Mode::ChaChaPoly => {
            let first = [&[0; 4], &iv[..]].concat();
            ChaCha::new(&key, &first).map(|c| Sealing::ChaChaPoly(Box::new(c)))
        }
        Mode::Gcm => Block::new(&key, 16).map(|b| Sealing::gcm(b, &iv)),
        _ => {
            if length % 2 != 0 || !(4..=16).contains(&length) {
                return refuse(cx, line!(), 5, "Can't set tag");
            }
            // The bytes that the nonce leaves hold the length of the text.
            if iv.len() > 12 && text.len() >= 1 << (8 * (15 - iv.len())) {
                if !encrypt {
                    return Ok(am::ERROR);
                }
                return refuse(cx, line!(), 3, "Can't set in-text");
            }
            Block::new(&key, 16).map(|block| Sealing::Ccm {
                block,
                nonce: iv.to_vec(),
                tag: length,
            })
        }
    };
    let Some(sealing) = sealing else {
        return Err(fail(cx, am::ERROR, line!(), -1, "Can't set key and iv"));
    };
    if !(1..=16).contains(&length) {
        return match encrypt {
            true => Err(fail(cx, am::ERROR, line!(), -1, "Can't get Tag")),
            false => Ok(am::ERROR),
        };
    }
    let (out, tag) = sealing.seal(&aad, &text, encrypt);
    match given {
        None => {
            let out = cx.binary(&out);
            let tag = cx.binary(&tag[..length]);
            Ok(cx.tuple(&[out, tag]))
        }
        Some(given) if bool::from(tag[..length].ct_eq(&given)) => Ok(cx.binary(&out)),
        Some(_) => Ok(am::ERROR),
    }
}

fn cipher_info_1(cx: &mut Cx, [name]: [Term; 1]) -> BifResult {
    let row = cipher(name).ok_or(Fail::Badarg)?;
    let mode_name = match row.mode {
        Mode::Ecb => "ecb_mode",
        Mode::Cbc => "cbc_mode",
        Mode::Cfb8 | Mode::Cfb => "cfb_mode",
        Mode::Ofb => "ofb_mode",
        Mode::Ctr => "ctr_mode",
        Mode::Gcm => "gcm_mode",
        Mode::Ccm => "ccm_mode",
        Mode::ChaCha | Mode::ChaChaPoly => "stream_cipher",
        Mode::Legacy => return Err(cx.error(am::NOTSUP)),
    };
    let number = match row.number {
        0 => am::UNDEFINED,
        n => Term::small(n),
    };
    let pairs = [
        (am::TYPE, number),
        (key_length(), Term::small(row.key as i64)),
        (iv_length(), Term::small(row.iv as i64)),
        (block_size(), Term::small(row.block as i64)),
        (prop_aead(), Term::bool(row.is_aead())),
        (mode(), atom::intern(mode_name)),
    ];
    Ok(map::from_pairs(cx, &pairs))
}

fn cipher_algorithms_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let there = CIPHERS.iter().filter(|r| r.mode != Mode::Legacy);
    let names: Vec<Term> = there.map(|r| atom::intern(r.name)).collect();
    Ok(cx.list(&names))
}

bifs! {
    Plain "crypto":"ng_crypto_init_nif"/4 = init_4;
    Plain "crypto":"ng_crypto_update_nif"/2 = update_2;
    Plain "crypto":"ng_crypto_update_nif"/3 = update_3;
    Plain "crypto":"ng_crypto_final_nif"/1 = final_1;
    Plain "crypto":"ng_crypto_get_data_nif"/1 = get_data_1;
    Plain "crypto":"ng_crypto_one_time_nif"/5 = one_time_5;
    Plain "crypto":"aead_cipher_nif"/7 = aead_7;
    Plain "crypto":"cipher_info_nif"/1 = cipher_info_1;
    Plain "crypto":"cipher_algorithms"/0 = cipher_algorithms_0;
}
