//! Natives of module `zstd` (OTP 28): contexts and dictionaries of the library behind magic references.
//!
//! A context belongs to the process that made it; every native checks that. The mutex around it makes the check and the use one
//! step. Dictionaries are never changed, and those that a context refers to live as long as it does.

use crate::cx::{BifResult, Cx, Fail};
use crate::{bifs, lazy_atoms};
use purlin_native::native_state;
use purlin_term::sync::{Mutex, MutexGuard};
use purlin_term::{Alloc, Term, am, atom, iolist, map};
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::Arc;
use zstd_sys as _;

lazy_atoms! {
    not_on_controlling_process = "not_on_controlling_process";
    zstd_error = "zstd_error";
    invalid_key = "invalid_key";
    invalid_value = "invalid_value";
    invalid_compress_dict = "invalid_compress_dict";
    invalid_decompress_dict = "invalid_decompress_dict";
    continue_ = "continue";
    flush = "flush";
    done = "done";
}

/// The interface of the library, as far as it is used: parts of it are for those only who link it statically.
mod c {
    use super::*;

    #[repr(C)]
    pub struct OutBuffer {
        pub dst: *mut u8,
        pub size: usize,
        pub pos: usize,
    }
    #[repr(C)]
    pub struct InBuffer {
        pub src: *const u8,
        pub size: usize,
        pub pos: usize,
    }
    /// The library's own way to allocate, if all are null.
    #[repr(C)]
    pub struct CustomMem(pub [*mut c_void; 3]);
    #[repr(C)]
    pub struct CompressionParameters([c_uint; 7]);
    #[repr(C)]
    #[derive(Default)]
    pub struct FrameHeader {
        pub content_size: c_ulonglong,
        pub window_size: c_ulonglong,
        pub block_size_max: c_uint,
        pub frame_type: c_uint,
        pub header_size: c_uint,
        pub dict_id: c_uint,
        pub checksum: c_uint,
        pub reserved: [c_uint; 2],
    }
    pub enum CCtx {}
    pub enum DCtx {}
    pub enum CDict {}
    pub enum DDict {}

    unsafe extern "C" {
        pub fn ZSTD_createCCtx() -> *mut CCtx;
        pub fn ZSTD_freeCCtx(c: *mut CCtx) -> usize;
        pub fn ZSTD_CCtx_reset(c: *mut CCtx, what: c_int) -> usize;
        pub fn ZSTD_CCtx_loadDictionary(c: *mut CCtx, dict: *const u8, n: usize) -> usize;
        pub fn ZSTD_CCtx_refCDict(c: *mut CCtx, dict: *const CDict) -> usize;
        pub fn ZSTD_CCtx_setParameter(c: *mut CCtx, key: c_int, value: c_int) -> usize;
        pub fn ZSTD_CCtx_getParameter(c: *const CCtx, key: c_int, value: *mut c_int) -> usize;
        pub fn ZSTD_CCtx_setPledgedSrcSize(c: *mut CCtx, n: c_ulonglong) -> usize;
        pub fn ZSTD_compressStream2(
            c: *mut CCtx,
            out: *mut OutBuffer,
            from: *mut InBuffer,
            how: c_int,
        ) -> usize;
        pub fn ZSTD_CStreamOutSize() -> usize;
        pub fn ZSTD_createDCtx() -> *mut DCtx;
        pub fn ZSTD_freeDCtx(c: *mut DCtx) -> usize;
        pub fn ZSTD_DCtx_reset(c: *mut DCtx, what: c_int) -> usize;
        pub fn ZSTD_DCtx_loadDictionary(c: *mut DCtx, dict: *const u8, n: usize) -> usize;
        pub fn ZSTD_DCtx_refDDict(c: *mut DCtx, dict: *const DDict) -> usize;
        pub fn ZSTD_DCtx_setParameter(c: *mut DCtx, key: c_int, value: c_int) -> usize;
        pub fn ZSTD_DCtx_getParameter(c: *mut DCtx, key: c_int, value: *mut c_int) -> usize;
        pub fn ZSTD_decompressStream(
            c: *mut DCtx,
            out: *mut OutBuffer,
            from: *mut InBuffer,
        ) -> usize;
        pub fn ZSTD_DStreamOutSize() -> usize;
        pub fn ZSTD_findDecompressedSize(from: *const u8, n: usize) -> c_ulonglong;
        pub fn ZSTD_getCParams(level: c_int, n: c_ulonglong, dict: usize) -> CompressionParameters;
        pub fn ZSTD_createCDict_advanced(
            dict: *const u8,
            n: usize,
            load: c_int,
            content: c_int,
            parameters: CompressionParameters,
            mem: CustomMem,
        ) -> *mut CDict;
        pub fn ZSTD_freeCDict(d: *mut CDict) -> usize;
        pub fn ZSTD_createDDict(dict: *const u8, n: usize) -> *mut DDict;
        pub fn ZSTD_freeDDict(d: *mut DDict) -> usize;
        pub fn ZSTD_getDictID_fromCDict(d: *const CDict) -> c_uint;
        pub fn ZSTD_getDictID_fromDDict(d: *const DDict) -> c_uint;
        pub fn ZSTD_getDictID_fromDict(dict: *const u8, n: usize) -> c_uint;
        pub fn ZSTD_getDictID_fromFrame(from: *const u8, n: usize) -> c_uint;
        pub fn ZSTD_getFrameHeader(to: *mut FrameHeader, from: *const u8, n: usize) -> usize;
        pub fn ZSTD_isError(code: usize) -> c_uint;
        pub fn ZSTD_getErrorName(code: usize) -> *const c_char;
    }
}

/// `ZSTD_reset_session_only`
const SESSION: c_int = 1;
/// Of `ZSTD_EndDirective`.
const CONTINUE: c_int = 0;
const END: c_int = 2;
const SIZE_UNKNOWN: u64 = u64::MAX;
const SIZE_ERROR: u64 = u64::MAX - 1;
/// The result of the library's functions for data of a wrong size: the error of number 72.
const SRC_SIZE_WRONG: usize = 72usize.wrapping_neg();
/// Bytes that count as a reduction.
const REDUCTION_BYTES: usize = 1024;

/// The form of a parameter's value to programs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Flag,
    Strategy,
}

/// The parameters of compression: names and numbers.
const PARAMETERS: &[(&str, c_int, Kind)] = &[
    ("compressionLevel", 100, Kind::Number),
    ("windowLog", 101, Kind::Number),
    ("hashLog", 102, Kind::Number),
    ("chainLog", 103, Kind::Number),
    ("searchLog", 104, Kind::Number),
    ("minMatch", 105, Kind::Number),
    ("targetLength", 106, Kind::Number),
    ("strategy", 107, Kind::Strategy),
    ("targetCBlockSize", 130, Kind::Number),
    ("enableLongDistanceMatching", 160, Kind::Flag),
    ("ldmHashLog", 161, Kind::Number),
    ("ldmMinMatch", 162, Kind::Number),
    ("ldmBucketSizeLog", 163, Kind::Number),
    ("ldmHashRateLog", 164, Kind::Number),
    ("contentSizeFlag", 200, Kind::Flag),
    ("checksumFlag", 201, Kind::Flag),
    ("dictIDFlag", 202, Kind::Flag),
];
const STRATEGIES: &[&str] = &[
    "default", "fast", "dfast", "greedy", "lazy", "lazy2", "btlazy2", "btopt", "btultra",
    "btultra2",
];
/// `ZSTD_d_windowLogMax`
const WINDOW_LOG_MAX: c_int = 100;

struct CDict(*mut c::CDict);
struct DDict(*mut c::DDict);
// SAFETY: the library only reads dictionaries, from any number of threads.
unsafe impl Send for CDict {}
// SAFETY: as above.
unsafe impl Sync for CDict {}
// SAFETY: as above.
unsafe impl Send for DDict {}
// SAFETY: as above.
unsafe impl Sync for DDict {}
impl Drop for CDict {
    fn drop(&mut self) {
        // SAFETY: made by the library, and this was the last that referred to it.
        unsafe { c::ZSTD_freeCDict(self.0) };
    }
}
impl Drop for DDict {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { c::ZSTD_freeDDict(self.0) };
    }
}

struct Compressor {
    /// Null once it is closed.
    at: *mut c::CCtx,
    /// Kept as long as the context refers to it.
    dict: Option<Arc<CDict>>,
    owner: Term,
}
struct Decompressor {
    /// Null once it is closed.
    at: *mut c::DCtx,
    /// Kept as long as the context refers to it.
    dict: Option<Arc<DDict>>,
    owner: Term,
    /// Whether it is in the midst of a frame.
    in_use: bool,
}
// SAFETY: all use is under the mutex.
unsafe impl Send for Compressor {}
// SAFETY: as above.
unsafe impl Send for Decompressor {}

/// The common part of both kinds of contexts.
trait Context: 'static {
    fn is_open(&self) -> bool;
    fn owner(&self) -> Term;
    fn close(&mut self);
    fn reset(&mut self);
}
impl Context for Compressor {
    fn is_open(&self) -> bool {
        !self.at.is_null()
    }
    fn owner(&self) -> Term {
        self.owner
    }
    fn close(&mut self) {
        // SAFETY: made by the library, or null, which it takes too; it is not used any more.
        unsafe { c::ZSTD_freeCCtx(self.at) };
        self.at = std::ptr::null_mut();
        self.dict = None;
    }
    fn reset(&mut self) {
        // SAFETY: an open context.
        unsafe { c::ZSTD_CCtx_reset(self.at, SESSION) };
    }
}
impl Context for Decompressor {
    fn is_open(&self) -> bool {
        !self.at.is_null()
    }
    fn owner(&self) -> Term {
        self.owner
    }
    fn close(&mut self) {
        // SAFETY: as for a compressor.
        unsafe { c::ZSTD_freeDCtx(self.at) };
        self.at = std::ptr::null_mut();
        self.dict = None;
    }
    fn reset(&mut self) {
        // SAFETY: an open context.
        unsafe { c::ZSTD_DCtx_reset(self.at, SESSION) };
        self.in_use = false;
    }
}
impl Drop for Compressor {
    fn drop(&mut self) {
        self.close();
    }
}
impl Drop for Decompressor {
    fn drop(&mut self) {
        self.close();
    }
}

/// The context behind `t`, for its process only.
fn context<'a, T: Context>(cx: &mut Cx, t: Term) -> Result<MutexGuard<'a, T>, Fail> {
    let s = native_state::get::<Mutex<T>>(t).ok_or(Fail::Badarg)?;
    let s = s.lock();
    if !s.is_open() {
        return Err(Fail::Badarg);
    }
    if s.owner() != cx.self_pid() {
        return Err(cx.error(not_on_controlling_process()));
    }
    Ok(s)
}

/// The number that a function of the library gave, or its error as an exception.
fn checked(cx: &mut Cx, code: usize) -> Result<usize, Fail> {
    // SAFETY: any number may be asked about, and names of errors are constants of the library.
    let name = unsafe {
        if c::ZSTD_isError(code) == 0 {
            return Ok(code);
        }
        CStr::from_ptr(c::ZSTD_getErrorName(code))
    };
    let text = cx.binary(name.to_bytes());
    Err(cx.error2(zstd_error(), text))
}

fn int(t: Term) -> Result<c_int, Fail> {
    let n = t.as_small().ok_or(Fail::Badarg)?;
    c_int::try_from(n).map_err(|_| Fail::Badarg)
}
fn bytes(t: Term) -> Result<Vec<u8>, Fail> {
    iolist::to_vec(t).map_err(|_| Fail::Badarg)
}

/// `error:{badarg, {Why, T}}`
fn wrong(cx: &mut Cx, why: Term, t: Term) -> Fail {
    let what = cx.tuple(&[why, t]);
    cx.error2(am::BADARG, what)
}

fn parameter(cx: &mut Cx, key: Term) -> Result<(c_int, Kind), Fail> {
    let known = key.is_atom().then(|| atom::name(key));
    let found = PARAMETERS.iter().find(|p| Some(p.0) == known);
    found
        .map(|p| (p.1, p.2))
        .ok_or_else(|| wrong(cx, invalid_key(), key))
}
fn window_log_max(cx: &mut Cx, key: Term) -> Result<c_int, Fail> {
    match key.is_atom() && atom::name(key) == "windowLogMax" {
        true => Ok(WINDOW_LOG_MAX),
        false => Err(wrong(cx, invalid_key(), key)),
    }
}

fn init_compress_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let owner = cx.self_pid();
    // SAFETY: nothing is asked of the caller.
    let at = unsafe { c::ZSTD_createCCtx() };
    if at.is_null() {
        return Err(Fail::SystemLimit);
    }
    let dict = None;
    Ok(native_state::make(
        cx,
        Mutex::new(Compressor { at, dict, owner }),
    ))
}
fn init_decompress_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let owner = cx.self_pid();
    // SAFETY: nothing is asked of the caller.
    let at = unsafe { c::ZSTD_createDCtx() };
    if at.is_null() {
        return Err(Fail::SystemLimit);
    }
    let made = Decompressor {
        at,
        dict: None,
        owner,
        in_use: false,
    };
    Ok(native_state::make(cx, Mutex::new(made)))
}

fn load_compress_dictionary_2(cx: &mut Cx, [t, dict]: [Term; 2]) -> BifResult {
    let mut s = context::<Compressor>(cx, t)?;
    let d = bytes(dict)?;
    // SAFETY: an open context, which copies the bytes.
    let code = unsafe { c::ZSTD_CCtx_loadDictionary(s.at, d.as_ptr(), d.len()) };
    if checked(cx, code).is_ok() {
        s.dict = None;
    }
    checked(cx, code).map(|_| am::OK)
}
fn load_decompress_dictionary_2(cx: &mut Cx, [t, dict]: [Term; 2]) -> BifResult {
    let mut s = context::<Decompressor>(cx, t)?;
    let d = bytes(dict)?;
    // SAFETY: an open context, which copies the bytes.
    let code = unsafe { c::ZSTD_DCtx_loadDictionary(s.at, d.as_ptr(), d.len()) };
    if checked(cx, code).is_ok() {
        s.dict = None;
    }
    checked(cx, code).map(|_| am::OK)
}
fn ref_compress_dictionary_2(cx: &mut Cx, [t, dict]: [Term; 2]) -> BifResult {
    let mut s = context::<Compressor>(cx, t)?;
    let d = native_state::get::<Arc<CDict>>(dict).ok_or(Fail::Badarg)?;
    // SAFETY: an open context; the dictionary is kept as long as it is referred to.
    let code = unsafe { c::ZSTD_CCtx_refCDict(s.at, d.0) };
    checked(cx, code)?;
    s.dict = Some(d.clone());
    Ok(am::OK)
}
fn ref_decompress_dictionary_2(cx: &mut Cx, [t, dict]: [Term; 2]) -> BifResult {
    let mut s = context::<Decompressor>(cx, t)?;
    let d = native_state::get::<Arc<DDict>>(dict).ok_or(Fail::Badarg)?;
    // SAFETY: as above.
    let code = unsafe { c::ZSTD_DCtx_refDDict(s.at, d.0) };
    checked(cx, code)?;
    s.dict = Some(d.clone());
    Ok(am::OK)
}

fn set_compress_parameter_3(cx: &mut Cx, [t, key, value]: [Term; 3]) -> BifResult {
    let s = context::<Compressor>(cx, t)?;
    let (number, kind) = parameter(cx, key)?;
    let named = value.is_atom().then(|| atom::name(value));
    let n = match kind {
        Kind::Number => int(value).ok(),
        Kind::Flag => value.as_bool().map(c_int::from),
        Kind::Strategy => named
            .and_then(|v| STRATEGIES.iter().position(|&s| s == v))
            .map(|n| n as c_int),
    };
    let n = n.ok_or_else(|| wrong(cx, invalid_value(), value))?;
    // SAFETY: an open context.
    let code = unsafe { c::ZSTD_CCtx_setParameter(s.at, number, n) };
    checked(cx, code).map(|_| am::OK)
}
fn get_compress_parameter_2(cx: &mut Cx, [t, key]: [Term; 2]) -> BifResult {
    let s = context::<Compressor>(cx, t)?;
    let (number, kind) = parameter(cx, key)?;
    let mut n = 0;
    // SAFETY: an open context, and a place for the number.
    let code = unsafe { c::ZSTD_CCtx_getParameter(s.at, number, &mut n) };
    let code = checked(cx, code)?;
    Ok(match kind {
        Kind::Number => Term::small(i64::from(n)),
        // Stock looks at what the library gave to say that all went well, which is 0.
        Kind::Flag => Term::bool(code != 0),
        Kind::Strategy => {
            let name = usize::try_from(n).ok().and_then(|n| STRATEGIES.get(n));
            atom::intern(name.ok_or(Fail::Badarg)?)
        }
    })
}
fn set_decompress_parameter_3(cx: &mut Cx, [t, key, value]: [Term; 3]) -> BifResult {
    let s = context::<Decompressor>(cx, t)?;
    let n = int(value)?;
    let number = window_log_max(cx, key)?;
    // SAFETY: an open context.
    let code = unsafe { c::ZSTD_DCtx_setParameter(s.at, number, n) };
    checked(cx, code).map(|_| am::OK)
}
fn get_decompress_parameter_2(cx: &mut Cx, [t, key]: [Term; 2]) -> BifResult {
    let s = context::<Decompressor>(cx, t)?;
    let number = window_log_max(cx, key)?;
    let mut n = 0;
    // SAFETY: an open context, and a place for the number.
    let code = unsafe { c::ZSTD_DCtx_getParameter(s.at, number, &mut n) };
    checked(cx, code)?;
    Ok(Term::small(i64::from(n)))
}
fn set_pledged_src_size_2(cx: &mut Cx, [t, size]: [Term; 2]) -> BifResult {
    let s = context::<Compressor>(cx, t)?;
    let n = match (size.as_small(), size.as_big()) {
        (Some(n), _) => u64::try_from(n).map_err(|_| Fail::Badarg)?,
        (None, Some((false, &[n]))) => n,
        _ => return Err(Fail::Badarg),
    };
    // SAFETY: an open context.
    let code = unsafe { c::ZSTD_CCtx_setPledgedSrcSize(s.at, n) };
    checked(cx, code).map(|_| am::OK)
}

/// The directive for the end of the data: a number since OTP 29; before, whether the data are the last.
fn directive(t: Term) -> Result<c_int, Fail> {
    match t.as_bool() {
        Some(true) => Ok(END),
        Some(false) => Ok(CONTINUE),
        None => int(t)
            .ok()
            .filter(|n| (0..=END).contains(n))
            .ok_or(Fail::Badarg),
    }
}

/// Feeds data through `codec` into at most `room` bytes.
fn run(
    cx: &mut Cx,
    data: Term,
    room: usize,
    how: c_int,
    mut codec: impl FnMut(&mut c::OutBuffer, &mut c::InBuffer) -> usize,
) -> BifResult {
    let input = data.as_binary().ok_or(Fail::Badarg)?;
    let mut output = vec![0u8; room];
    let mut to = c::OutBuffer {
        dst: output.as_mut_ptr(),
        size: room,
        pos: 0,
    };
    let mut from = c::InBuffer {
        src: input.as_ptr(),
        size: input.len(),
        pos: 0,
    };
    let left = loop {
        let left = codec(&mut to, &mut from);
        let left = checked(cx, left)?;
        if from.pos >= from.size || to.pos >= to.size {
            break left;
        }
    };
    let (read, full) = (from.pos, to.pos == to.size);
    output.truncate(to.pos);
    cx.bump((read / REDUCTION_BYTES).max(1));
    let made = cx.binary(&output);
    if read < input.len() {
        let rest = cx.part(data, read, input.len() - read);
        return Ok(cx.tuple(&[continue_(), rest, made]));
    }
    let tag = match how {
        CONTINUE => continue_(),
        _ if full && left > 0 => flush(),
        _ => done(),
    };
    Ok(cx.tuple(&[tag, made]))
}

fn compress_stream_3(cx: &mut Cx, [t, data, how]: [Term; 3]) -> BifResult {
    let mut s = context::<Compressor>(cx, t)?;
    let how = directive(how)?;
    let at = s.at;
    // SAFETY: nothing is asked of the caller.
    let room = unsafe { c::ZSTD_CStreamOutSize() };
    let made = run(cx, data, room, how, |to, from| {
        // SAFETY: an open context, and buffers with their sizes.
        unsafe { c::ZSTD_compressStream2(at, to, from, how) }
    });
    if made.is_err() {
        s.reset();
    }
    made
}
fn decompress_stream_3(cx: &mut Cx, [t, data, how]: [Term; 3]) -> BifResult {
    let mut s = context::<Decompressor>(cx, t)?;
    let how = directive(how)?;
    // SAFETY: nothing is asked of the caller.
    let mut room = unsafe { c::ZSTD_DStreamOutSize() };
    if !s.in_use {
        let input = data.as_binary().ok_or(Fail::Badarg)?;
        if input.is_empty() && how == END {
            return Ok(cx.tuple(&[done(), data]));
        }
        // SAFETY: bytes with their number.
        let size = unsafe { c::ZSTD_findDecompressedSize(input.as_ptr(), input.len()) };
        if size != SIZE_UNKNOWN && size != SIZE_ERROR {
            room = room.min(usize::try_from(size).unwrap_or(room));
        }
        s.in_use = true;
    }
    let at = s.at;
    let made = run(cx, data, room, how, |to, from| {
        // SAFETY: an open context, and buffers with their sizes.
        unsafe { c::ZSTD_decompressStream(at, to, from) }
    });
    if made.is_err() {
        s.reset();
    }
    made
}

fn with<T: Context>(cx: &mut Cx, t: Term, act: impl FnOnce(&mut T)) -> BifResult {
    act(&mut *context::<T>(cx, t)?);
    Ok(am::OK)
}
fn compress_reset_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    with(cx, t, Compressor::reset)
}
fn decompress_reset_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    with(cx, t, Decompressor::reset)
}
fn compress_close_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    with(cx, t, Compressor::close)
}
fn decompress_close_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    with(cx, t, Decompressor::close)
}

fn create_cdict_2(cx: &mut Cx, [dict, level]: [Term; 2]) -> BifResult {
    let d = dict.as_binary().ok_or(Fail::Badarg)?;
    let level = int(level)?;
    // SAFETY: bytes with their number, which are copied, and null pointers for the library's own allocator.
    let made = unsafe {
        let parameters = c::ZSTD_getCParams(level, 0, d.len());
        let mem = c::CustomMem([std::ptr::null_mut(); 3]);
        c::ZSTD_createCDict_advanced(d.as_ptr(), d.len(), 0, 0, parameters, mem)
    };
    if made.is_null() {
        return Ok(cx.tuple(&[am::ERROR, invalid_compress_dict()]));
    }
    Ok(native_state::make(cx, Arc::new(CDict(made))))
}
fn create_ddict_1(cx: &mut Cx, [dict]: [Term; 1]) -> BifResult {
    let d = dict.as_binary().ok_or(Fail::Badarg)?;
    // SAFETY: bytes with their number, which are copied.
    let made = unsafe { c::ZSTD_createDDict(d.as_ptr(), d.len()) };
    if made.is_null() {
        return Ok(cx.tuple(&[am::ERROR, invalid_decompress_dict()]));
    }
    Ok(native_state::make(cx, Arc::new(DDict(made))))
}
fn id(n: c_uint) -> BifResult {
    Ok(Term::small(i64::from(n)))
}
fn dict_id_of_cdict_1(_: &mut Cx, [t]: [Term; 1]) -> BifResult {
    let d = native_state::get::<Arc<CDict>>(t).ok_or(Fail::Badarg)?;
    // SAFETY: a dictionary that is there.
    id(unsafe { c::ZSTD_getDictID_fromCDict(d.0) })
}
fn dict_id_of_ddict_1(_: &mut Cx, [t]: [Term; 1]) -> BifResult {
    let d = native_state::get::<Arc<DDict>>(t).ok_or(Fail::Badarg)?;
    // SAFETY: a dictionary that is there.
    id(unsafe { c::ZSTD_getDictID_fromDDict(d.0) })
}
fn dict_id_of_dict_1(_: &mut Cx, [t]: [Term; 1]) -> BifResult {
    let d = bytes(t)?;
    // SAFETY: bytes with their number.
    id(unsafe { c::ZSTD_getDictID_fromDict(d.as_ptr(), d.len()) })
}
fn dict_id_of_frame_1(_: &mut Cx, [t]: [Term; 1]) -> BifResult {
    let d = bytes(t)?;
    // SAFETY: bytes with their number.
    id(unsafe { c::ZSTD_getDictID_fromFrame(d.as_ptr(), d.len()) })
}
fn get_frame_header_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    let d = bytes(t)?;
    let mut h = c::FrameHeader::default();
    // SAFETY: bytes with their number, and a place for what is in them.
    let code = unsafe { c::ZSTD_getFrameHeader(&mut h, d.as_ptr(), d.len()) };
    // Where bytes of the header are missing, the library says how many there should be, and nothing else.
    if checked(cx, code)? > 0 {
        checked(cx, SRC_SIZE_WRONG)?;
    }
    let number = |n: c_uint| Term::small(i64::from(n));
    let content = match h.content_size {
        SIZE_UNKNOWN => am::UNDEFINED,
        n => cx.uint(n),
    };
    let kind = match h.frame_type {
        0 => "ZSTD_frame",
        _ => "ZSTD_skippableFrame",
    };
    let window = cx.uint(h.window_size);
    let pairs = [
        ("frameContentSize", content),
        ("windowSize", window),
        ("blockSizeMax", number(h.block_size_max)),
        ("frameType", atom::intern(kind)),
        ("headerSize", number(h.header_size)),
        ("dictID", number(h.dict_id)),
        ("checksumFlag", Term::bool(h.checksum != 0)),
    ]
    .map(|(k, v)| (atom::intern(k), v));
    let m = map::from_pairs(cx, &pairs);
    Ok(cx.ok(m))
}

bifs! {
    Plain "zstd":"init_compress_nif"/0 = init_compress_0;
    Plain "zstd":"init_decompress_nif"/0 = init_decompress_0;
    DirtyCpu "zstd":"load_compress_dictionary_nif"/2 = load_compress_dictionary_2;
    DirtyCpu "zstd":"load_decompress_dictionary_nif"/2 = load_decompress_dictionary_2;
    Plain "zstd":"ref_compress_dictionary_nif"/2 = ref_compress_dictionary_2;
    Plain "zstd":"ref_decompress_dictionary_nif"/2 = ref_decompress_dictionary_2;
    Plain "zstd":"set_compress_parameter_nif"/3 = set_compress_parameter_3;
    Plain "zstd":"get_compress_parameter_nif"/2 = get_compress_parameter_2;
    Plain "zstd":"set_decompress_parameter_nif"/3 = set_decompress_parameter_3;
    Plain "zstd":"get_decompress_parameter_nif"/2 = get_decompress_parameter_2;
    Plain "zstd":"set_pledged_src_size_nif"/2 = set_pledged_src_size_2;
    Plain "zstd":"compress_stream_nif"/3 = compress_stream_3;
    Plain "zstd":"decompress_stream_nif"/3 = decompress_stream_3;
    Plain "zstd":"compress_reset_nif"/1 = compress_reset_1;
    Plain "zstd":"decompress_reset_nif"/1 = decompress_reset_1;
    Plain "zstd":"compress_close_nif"/1 = compress_close_1;
    Plain "zstd":"decompress_close_nif"/1 = decompress_close_1;
    DirtyCpu "zstd":"create_cdict_nif"/2 = create_cdict_2;
    DirtyCpu "zstd":"create_ddict_nif"/1 = create_ddict_1;
    Plain "zstd":"getDictId_fromCDict_nif"/1 = dict_id_of_cdict_1;
    Plain "zstd":"getDictId_fromDDict_nif"/1 = dict_id_of_ddict_1;
    Plain "zstd":"getDictId_fromDict_nif"/1 = dict_id_of_dict_1;
    Plain "zstd":"getDictId_fromFrame_nif"/1 = dict_id_of_frame_1;
    Plain "zstd":"get_frame_header_nif"/1 = get_frame_header_1;
}
