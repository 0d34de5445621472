//! Natives of module `zlib`: streams behind magic references.
//!
//! A stream belongs to one process (its controller), which every native checks. The mutex around
//! the state makes the check and the use one step.

use crate::cx::{BifResult, Env, Fail};
use crate::{bifs, lazy_atoms};
use libz_sys as z;
use purlin_native::native_state;
use purlin_term::frag::OwnedTerm;
use purlin_term::iolist::{self, IoSlice, IoVec};
use purlin_term::payer::Billed;
use purlin_term::release::{self, DICTIONARY_CHECKSUMS_UNSIGNED};
use purlin_term::sync::{Mutex, MutexGuard};
use purlin_term::{Alloc, NIL, Term, am, copy};
use std::ffi::c_int;

lazy_atoms! {
    pub(crate) not_on_controlling_process = "not_on_controlling_process";
    not_initialized = "not_initialized";
    already_initialized = "already_initialized";
    pub(crate) continue_ = "continue";
    finished = "finished";
    need_dictionary = "need_dictionary";
    empty = "empty";
    stream_end = "stream_end";
    stream_error = "stream_error";
    data_error = "data_error";
    mem_error = "mem_error";
    buf_error = "buf_error";
    version_error = "version_error";
    unknown_error = "unknown_error";
}

unsafe extern "C" {
    fn inflateGetDictionary(s: z::z_streamp, dict: *mut u8, len: *mut z::uInt) -> c_int;
}

/// Maximum size of a window, and so of a dictionary, in bytes.
const MAX_DICTIONARY: usize = 32768;
/// Maximum number of parts taken from an input vector in one call.
const ENQUEUE_PARTS: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Deflate,
    Inflate,
    Closed,
}

/// The treatment of input after the end of the stream while inflating.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtEnd {
    Error,
    Reset,
    Cut,
}

struct Stream {
    /// Boxed: zlib's inner state points back at it.
    s: Box<z::z_stream>,
    state: State,
    at_end: AtEnd,
    eos_seen: bool,
    raw: bool,
    input_crc: Option<u32>,
    output_crc: Option<u32>,
    input: IoVec,
    stash: Option<OwnedTerm>,
    chunk_size: i32,
    /// The process that may use it.
    controller: Term,
    /// The bill for what zlib has allocated for it.
    billed: Option<Billed>,
}

/// Bytes that zlib allocates for a deflating stream with a window of `bits` bits.
fn deflating_bytes(bits: i32, mem: i32) -> usize {
    window_bytes(bits) * 4 + (512 << mem.clamp(1, 9)) + STATE_BYTES
}
/// The same for an inflating one.
fn inflating_bytes(bits: i32) -> usize {
    window_bytes(bits) + STATE_BYTES
}
/// Bytes of a window; the number of bits also says what lies around the data.
fn window_bytes(bits: i32) -> usize {
    match bits.unsigned_abs() & 15 {
        0 => 1 << 15,
        n => 1 << n,
    }
}
/// Bytes of the state of a stream without its window and tables.
const STATE_BYTES: usize = 6 << 10;

// SAFETY: the stream's memory is its own; all use is under the mutex.
unsafe impl Send for Stream {}

extern "C" fn z_alloc(_: *mut libc::c_void, n: z::uInt, size: z::uInt) -> *mut libc::c_void {
    // SAFETY: calloc checks the product.
    unsafe { libc::calloc(n as usize, size as usize) }
}
extern "C" fn z_free(_: *mut libc::c_void, p: *mut libc::c_void) {
    // SAFETY: memory from z_alloc.
    unsafe { libc::free(p) }
}

impl Stream {
    fn new(controller: Term) -> Stream {
        Stream {
            s: Box::new(z::z_stream {
                next_in: std::ptr::null_mut(),
                avail_in: 0,
                total_in: 0,
                next_out: std::ptr::null_mut(),
                avail_out: 0,
                total_out: 0,
                msg: std::ptr::null_mut(),
                state: std::ptr::null_mut(),
                zalloc: z_alloc,
                zfree: z_free,
                opaque: std::ptr::null_mut(),
                data_type: 0,
                adler: 0,
                reserved: 0,
            }),
            state: State::New,
            at_end: AtEnd::Cut,
            eos_seen: false,
            raw: false,
            input_crc: None,
            output_crc: None,
            input: IoVec::default(),
            stash: None,
            chunk_size: 4000,
            controller,
            billed: None,
        }
    }
    /// Makes a new stream a deflating one. `bits` of the window: negative for raw data, plus 16 for
    /// gzip.
    fn start_deflate(
        &mut self,
        level: i32,
        method: i32,
        bits: i32,
        mem: i32,
        strategy: i32,
    ) -> c_int {
        // SAFETY: a stream that is not in use; its address stays (boxed).
        let rc = unsafe {
            z::deflateInit2_(
                &mut *self.s,
                level,
                method,
                bits,
                mem,
                strategy,
                z::zlibVersion(),
                size_of::<z::z_stream>() as c_int,
            )
        };
        if rc == z::Z_OK {
            self.state = State::Deflate;
            self.billed = Some(Billed::new(deflating_bytes(bits, mem)));
            self.eos_seen = false;
            self.raw = bits < 0;
            self.input_crc = self.raw.then_some(0);
            self.output_crc = None;
        }
        rc
    }
    /// Makes a new stream an inflating one; `bits` as for deflating.
    fn start_inflate(&mut self, bits: i32, at_end: AtEnd) -> c_int {
        // SAFETY: a stream that is not in use; its address stays (boxed).
        let rc = unsafe {
            z::inflateInit2_(
                &mut *self.s,
                bits,
                z::zlibVersion(),
                size_of::<z::z_stream>() as c_int,
            )
        };
        if rc == z::Z_OK {
            self.state = State::Inflate;
            self.billed = Some(Billed::new(inflating_bytes(bits)));
            self.at_end = at_end;
            self.eos_seen = false;
            self.raw = bits < 0;
            self.output_crc = self.raw.then_some(0);
            self.input_crc = None;
        }
        rc
    }
    fn end(&mut self) -> c_int {
        self.billed = None;
        // SAFETY: initialised by the matching init, as the state says.
        unsafe {
            match self.state {
                State::Deflate => z::deflateEnd(&mut *self.s),
                State::Inflate => z::inflateEnd(&mut *self.s),
                _ => z::Z_OK,
            }
        }
    }
    fn reset_input(&mut self) {
        self.input = IoVec::default();
        self.stash = None;
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.end();
    }
}

type Guard<'a> = MutexGuard<'a, Stream>;

/// Returns the stream behind `t`, for its controller only.
fn stream<'a>(cx: &mut Env, t: Term) -> Result<Guard<'a>, Fail> {
    let s = native_state::get::<Mutex<Stream>>(t)
        .ok_or(Fail::Badarg)?
        .lock();
    if s.controller != cx.self_pid() {
        return Err(cx.error(not_on_controlling_process()));
    }
    Ok(s)
}
fn stream_in<'a>(cx: &mut Env, t: Term, state: State) -> Result<Guard<'a>, Fail> {
    let s = stream(cx, t)?;
    if s.state != state {
        return Err(cx.error(not_initialized()));
    }
    Ok(s)
}

fn int(t: Term) -> Result<i32, Fail> {
    t.as_small()
        .and_then(|n| i32::try_from(n).ok())
        .ok_or(Fail::Badarg)
}

/// Returns the value or error of a return code of zlib.
fn code(cx: &mut Env, rc: c_int) -> BifResult {
    Ok(match rc {
        z::Z_OK => am::OK,
        z::Z_STREAM_END => stream_end(),
        z::Z_STREAM_ERROR => return Err(cx.error(stream_error())),
        z::Z_DATA_ERROR => return Err(cx.error(data_error())),
        z::Z_MEM_ERROR => mem_error(),
        z::Z_BUF_ERROR => buf_error(),
        z::Z_VERSION_ERROR => version_error(),
        _ => unknown_error(),
    })
}

fn crc(start: u32, bytes: &[u8]) -> u32 {
    let parts = bytes.chunks(z::uInt::MAX as usize);
    parts.fold(start, |sum, part| {
        // SAFETY: a slice with its length, which the type holds.
        unsafe { z::crc32(sum as _, part.as_ptr(), part.len() as z::uInt) as u32 }
    })
}

fn open_0(cx: &mut Env, []: [Term; 0]) -> BifResult {
    let s = Stream::new(cx.self_pid());
    Ok(native_state::make(cx, Mutex::new(s)))
}

fn close_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    let mut s = stream(cx, t)?;
    if s.state == State::Closed {
        return Err(cx.error(not_initialized()));
    }
    s.end();
    s.state = State::Closed;
    s.reset_input();
    Ok(am::OK)
}

fn set_controller_2(cx: &mut Env, [t, pid]: [Term; 2]) -> BifResult {
    if !pid.is_local_pid() {
        return Err(Fail::Badarg);
    }
    stream(cx, t)?.controller = pid;
    Ok(am::OK)
}

fn deflate_init_6(cx: &mut Env, [t, level, method, bits, mem, strategy]: [Term; 6]) -> BifResult {
    let (level, method, bits) = (int(level)?, int(method)?, int(bits)?);
    let (mem, strategy) = (int(mem)?, int(strategy)?);
    let mut s = stream(cx, t)?;
    if s.state != State::New {
        return Err(cx.error(already_initialized()));
    }
    let rc = s.start_deflate(level, method, bits, mem, strategy);
    code(cx, rc)
}

fn inflate_init_3(cx: &mut Env, [t, bits, at_end]: [Term; 3]) -> BifResult {
    let bits = int(bits)?;
    let at_end = match int(at_end)? {
        0 => AtEnd::Error,
        1 => AtEnd::Reset,
        2 => AtEnd::Cut,
        _ => return Err(Fail::Badarg),
    };
    let mut s = stream(cx, t)?;
    if s.state != State::New {
        return Err(cx.error(already_initialized()));
    }
    let rc = s.start_inflate(bits, at_end);
    code(cx, rc)
}

/// Returns the checksum of a dictionary.
fn checksum(sum: u32) -> Term {
    match release::has(DICTIONARY_CHECKSUMS_UNSIGNED) {
        true => Term::small(i64::from(sum)),
        false => Term::small(i64::from(sum as i32)),
    }
}

/// Returns a dictionary: an I/O list below 2 GB.
fn dictionary(t: Term) -> Result<Vec<u8>, Fail> {
    iolist::to_vec(t)
        .ok()
        .filter(|d| d.len() <= i32::MAX as usize)
        .ok_or(Fail::Badarg)
}

fn deflate_set_dictionary_2(cx: &mut Env, [t, dict]: [Term; 2]) -> BifResult {
    let d = dictionary(dict)?;
    let mut s = stream_in(cx, t, State::Deflate)?;
    // SAFETY: initialised for deflating; a slice with its length.
    let rc = unsafe { z::deflateSetDictionary(&mut *s.s, d.as_ptr(), d.len() as z::uInt) };
    if rc != z::Z_OK {
        return code(cx, rc);
    }
    // A raw stream keeps no checksum of it.
    let sum = if s.raw {
        // SAFETY: a slice with its length.
        unsafe { z::adler32(0, d.as_ptr(), d.len() as z::uInt) as u32 }
    } else {
        s.s.adler as u32
    };
    Ok(checksum(sum))
}

fn inflate_set_dictionary_2(cx: &mut Env, [t, dict]: [Term; 2]) -> BifResult {
    let d = dictionary(dict)?;
    let mut s = stream_in(cx, t, State::Inflate)?;
    // SAFETY: initialised for inflating; a slice with its length.
    let rc = unsafe { z::inflateSetDictionary(&mut *s.s, d.as_ptr(), d.len() as z::uInt) };
    code(cx, rc)
}

fn inflate_get_dictionary_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    let mut s = stream_in(cx, t, State::Inflate)?;
    let mut buf = vec![0u8; MAX_DICTIONARY];
    let mut n: z::uInt = 0;
    // SAFETY: initialised for inflating; the buffer is as large as a window can be.
    let rc = unsafe { inflateGetDictionary(&mut *s.s, buf.as_mut_ptr(), &mut n) };
    if rc < 0 {
        return code(cx, rc);
    }
    Ok(cx.binary(&buf[..n as usize]))
}

fn deflate_reset_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    let mut s = stream_in(cx, t, State::Deflate)?;
    // SAFETY: initialised for deflating.
    let rc = unsafe { z::deflateReset(&mut *s.s) };
    s.input_crc = s.input_crc.map(|_| 0);
    s.eos_seen = false;
    s.reset_input();
    code(cx, rc)
}

fn inflate_reset_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    let mut s = stream_in(cx, t, State::Inflate)?;
    // SAFETY: initialised for inflating.
    let rc = unsafe { z::inflateReset(&mut *s.s) };
    s.output_crc = s.output_crc.map(|_| 0);
    s.eos_seen = false;
    s.reset_input();
    code(cx, rc)
}

fn deflate_end_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    let mut s = stream_in(cx, t, State::Deflate)?;
    let mut rc = s.end();
    if rc == z::Z_OK && s.input.bytes > 0 {
        rc = z::Z_DATA_ERROR;
    }
    s.reset_input();
    s.state = State::New;
    code(cx, rc)
}

fn inflate_end_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    let mut s = stream_in(cx, t, State::Inflate)?;
    let mut rc = s.end();
    if rc == z::Z_OK && (!s.eos_seen || s.input.bytes > 0) {
        rc = z::Z_DATA_ERROR;
    }
    s.reset_input();
    s.state = State::New;
    code(cx, rc)
}

fn deflate_params_3(cx: &mut Env, [t, level, strategy]: [Term; 3]) -> BifResult {
    let (level, strategy) = (int(level)?, int(strategy)?);
    let mut s = stream_in(cx, t, State::Deflate)?;
    // The library has flushed all output before, so none is expected; one byte of room shows if
    // there is any.
    let mut room = 0u8;
    s.s.next_in = std::ptr::null_mut();
    s.s.avail_in = 0;
    s.s.next_out = &mut room;
    s.s.avail_out = 1;
    // SAFETY: initialised for deflating; the room outlives the call, and is not used after it.
    let rc = unsafe { z::deflateParams(&mut *s.s, level, strategy) };
    let wrote = s.s.avail_out == 0;
    s.s.next_out = std::ptr::null_mut();
    s.s.avail_out = 0;
    code(cx, if wrote { z::Z_STREAM_ERROR } else { rc })
}

type Codec = unsafe extern "C" fn(z::z_streamp, c_int) -> c_int;

/// Feeds up to `max_in` bytes of the queue through `codec` into at most `max_out` bytes.
///
/// # Safety
/// The stream is initialised for that codec.
unsafe fn run(
    cx: &mut Env,
    s: &mut Stream,
    codec: Codec,
    max_in: i32,
    max_out: i32,
    flush: c_int,
) -> BifResult {
    let (Ok(max_in), Ok(max_out)) = (usize::try_from(max_in), usize::try_from(max_out)) else {
        return Err(Fail::Badarg);
    };
    let mut out = vec![0u8; max_out];
    s.s.next_out = out.as_mut_ptr();
    s.s.avail_out = max_out as z::uInt;
    let (mut rc, mut consumed) = (z::Z_OK, 0);
    for part in s.input.parts.iter() {
        if rc != z::Z_OK || consumed >= max_in {
            break;
        }
        let b = part.as_bytes();
        let b = &b[..b.len().min(max_in)];
        s.s.next_in = b.as_ptr() as *mut u8;
        s.s.avail_in = b.len() as z::uInt;
        // SAFETY: by the contract, initialised for this codec; buffers are slices with their
        // lengths.
        rc = unsafe { codec(&mut *s.s, z::Z_NO_FLUSH) };
        let n = b.len() - s.s.avail_in as usize;
        consumed += n;
        if let Some(c) = &mut s.input_crc {
            *c = crc(*c, &b[..n]);
        }
    }
    s.input.advance(consumed);
    let remaining = s.input.bytes;
    s.s.next_in = std::ptr::null_mut();
    s.s.avail_in = 0;
    if rc == z::Z_OK && remaining == 0 && s.s.avail_out > 0 {
        // SAFETY: by the contract, initialised for this codec. There is no input, and the room is
        // what is left of `out`.
        rc = unsafe { codec(&mut *s.s, flush) };
    }
    let produced = max_out - s.s.avail_out as usize;
    s.s.next_out = std::ptr::null_mut();
    s.s.avail_out = 0;
    cx.bump((consumed + produced) / 64 + 1);
    if rc < 0 && rc != z::Z_BUF_ERROR {
        return code(cx, rc);
    }
    if rc == z::Z_STREAM_END {
        s.eos_seen = true;
    }
    out.truncate(produced);
    if let Some(c) = &mut s.output_crc {
        *c = crc(*c, &out);
    }
    if consumed == 0 && produced == 0 && remaining != 0 {
        return code(cx, z::Z_DATA_ERROR);
    }
    let list = if out.is_empty() {
        NIL
    } else {
        let b = cx.binary(&out);
        cx.list(&[b])
    };
    Ok(if remaining == 0 && produced < max_out {
        cx.tuple(&[finished(), list])
    } else if rc != z::Z_NEED_DICT {
        cx.tuple(&[continue_(), list])
    } else {
        let sum = checksum(s.s.adler as u32);
        cx.tuple(&[need_dictionary(), sum, list])
    })
}

fn deflate_4(cx: &mut Env, [t, max_in, max_out, flush]: [Term; 4]) -> BifResult {
    let (i, o, f) = (int(max_in)?, int(max_out)?, int(flush)?);
    let mut s = stream_in(cx, t, State::Deflate)?;
    // SAFETY: a stream in this state is initialised for deflating.
    unsafe { run(cx, &mut s, z::deflate, i, o, f) }
}

fn inflate_4(cx: &mut Env, [t, max_in, max_out, flush]: [Term; 4]) -> BifResult {
    let (i, o, f) = (int(max_in)?, int(max_out)?, int(flush)?);
    let mut s = stream_in(cx, t, State::Inflate)?;
    if s.eos_seen && s.input.bytes > 0 {
        match s.at_end {
            AtEnd::Error => return code(cx, z::Z_DATA_ERROR),
            AtEnd::Reset => {
                // SAFETY: initialised for inflating.
                let rc = unsafe { z::inflateReset(&mut *s.s) };
                if rc != z::Z_OK {
                    return code(cx, rc);
                }
                s.eos_seen = false;
            }
            AtEnd::Cut => s.reset_input(),
        }
    }
    // SAFETY: a stream in this state is initialised for inflating.
    unsafe { run(cx, &mut s, z::inflate, i, o, f) }
}

fn crc32_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    let s = stream(cx, t)?;
    let c = match s.state {
        State::Deflate => s.input_crc,
        State::Inflate => s.output_crc,
        _ => return Err(cx.error(not_initialized())),
    };
    Ok(Term::small(c.unwrap_or(0) as i64))
}

fn get_stash_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    let s = stream(cx, t)?;
    Ok(match &s.stash {
        None => empty(),
        Some(o) => {
            let t = copy::copy(o.term(), cx);
            cx.ok(t)
        }
    })
}
fn clear_stash_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    match stream(cx, t)?.stash.take() {
        Some(_) => Ok(am::OK),
        None => Err(cx.error(am::ERROR)),
    }
}
fn set_stash_2(cx: &mut Env, [t, v]: [Term; 2]) -> BifResult {
    let mut s = stream(cx, t)?;
    if s.stash.is_some() {
        return Err(cx.error(am::ERROR));
    }
    s.stash = Some(OwnedTerm::copy_of(v));
    Ok(am::OK)
}

fn get_buf_size_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    Ok(Term::small(stream(cx, t)?.chunk_size as i64))
}
fn set_buf_size_2(cx: &mut Env, [t, n]: [Term; 2]) -> BifResult {
    let mut s = stream(cx, t)?;
    s.chunk_size = int(n)?;
    Ok(am::OK)
}

fn enqueue_2(cx: &mut Env, [t, iovec]: [Term; 2]) -> BifResult {
    let mut s = stream(cx, t)?;
    if s.state != State::Deflate && s.state != State::Inflate {
        return Err(cx.error(not_initialized()));
    }
    let mut parts = Vec::new();
    let mut rest = iovec;
    while let Some((h, tail)) = rest.as_cons() {
        if parts.len() == ENQUEUE_PARTS {
            break;
        }
        parts.push(IoSlice::of_binary(h).ok_or(Fail::Badarg)?);
        rest = tail;
    }
    if !rest.is_list() {
        return Err(Fail::Badarg);
    }
    for p in parts {
        s.input.push(p);
    }
    Ok(if rest.is_nil() {
        am::OK
    } else {
        cx.tuple(&[continue_(), rest])
    })
}

bifs! {
    Plain "zlib":"open_nif"/0 = open_0;
    Plain "zlib":"close_nif"/1 = close_1;
    Plain "zlib":"set_controller_nif"/2 = set_controller_2;
    Plain "zlib":"deflateInit_nif"/6 = deflate_init_6;
    Plain "zlib":"deflateSetDictionary_nif"/2 = deflate_set_dictionary_2;
    Plain "zlib":"deflateReset_nif"/1 = deflate_reset_1;
    Plain "zlib":"deflateEnd_nif"/1 = deflate_end_1;
    Plain "zlib":"deflateParams_nif"/3 = deflate_params_3;
    Plain "zlib":"deflate_nif"/4 = deflate_4;
    Plain "zlib":"inflateInit_nif"/3 = inflate_init_3;
    Plain "zlib":"inflateSetDictionary_nif"/2 = inflate_set_dictionary_2;
    Plain "zlib":"inflateGetDictionary_nif"/1 = inflate_get_dictionary_1;
    Plain "zlib":"inflateReset_nif"/1 = inflate_reset_1;
    Plain "zlib":"inflateEnd_nif"/1 = inflate_end_1;
    Plain "zlib":"inflate_nif"/4 = inflate_4;
    Plain "zlib":"crc32_nif"/1 = crc32_1;
    Plain "zlib":"getStash_nif"/1 = get_stash_1;
    Plain "zlib":"clearStash_nif"/1 = clear_stash_1;
    Plain "zlib":"setStash_nif"/2 = set_stash_2;
    Plain "zlib":"getBufSize_nif"/1 = get_buf_size_1;
    Plain "zlib":"setBufSize_nif"/2 = set_buf_size_2;
    Plain "zlib":"enqueue_nif"/2 = enqueue_2;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive(cx: &mut Env, s: &mut Stream, codec: Codec, input: &[u8]) -> Vec<u8> {
        s.input.push(IoSlice::copy_of(input));
        let mut out = Vec::new();
        loop {
            // SAFETY: the tests initialise the stream for the codec.
            let Ok(t) = (unsafe { run(cx, s, codec, 1000, 700, z::Z_FINISH) }) else {
                panic!("failed")
            };
            let t = t.as_tuple().expect("a tuple");
            iolist::append_to(t[1], &mut out).expect("output");
            if t[0] == finished() {
                return out;
            }
        }
    }

    #[test]
    fn what_was_deflated_inflates_to_itself() {
        let mut cx = Env::boxed(0);
        let data: Vec<u8> = (0..50_000u32).map(|i| ((i * i) >> 7) as u8).collect();
        for bits in [15, -15, 31] {
            let mut d = Stream::new(NIL);
            assert_eq!(d.start_deflate(6, 8, bits, 8, 0), z::Z_OK);
            let packed = drive(&mut cx, &mut d, z::deflate, &data);
            assert!(packed.len() < data.len());
            let mut i = Stream::new(NIL);
            assert_eq!(i.start_inflate(bits, AtEnd::Cut), z::Z_OK);
            assert_eq!(drive(&mut cx, &mut i, z::inflate, &packed), data);
            assert!(i.eos_seen);
            if bits < 0 {
                assert_eq!(i.output_crc, Some(crc(0, &data)));
                assert_eq!(d.input_crc, i.output_crc);
            }
        }
    }

    #[test]
    fn damaged_data_is_data_error() {
        let mut cx = Env::boxed(0);
        let mut i = Stream::new(NIL);
        assert_eq!(i.start_inflate(15, AtEnd::Cut), z::Z_OK);
        i.input.push(IoSlice::copy_of(b"no zlib data"));
        assert_eq!(
            // SAFETY: initialised for inflating.
            unsafe { run(&mut cx, &mut i, z::inflate, 1000, 1000, 0) },
            Err(Fail::Raised)
        );
        assert_eq!(cx.exc.value, data_error());
    }
}
