//! Natives of module `zstd` (OTP 28): contexts and dictionaries of the library behind magic
//! references.
//!
//! A context belongs to the process that made it, which every native checks. The mutex around it
//! makes the check and the use one step. Dictionaries never change, and live as long as a context
//! refers to them.

use super::zlib::continue_;
use super::zlib::not_on_controlling_process;
use crate::cx::{BifResult, Env, Fail};
use crate::{bifs, lazy_atoms};
use purlin_native::native_state;
use purlin_term::sync::{Mutex, MutexGuard};
use purlin_term::{Alloc, Term, am, atom, iolist, map};
use std::ffi::{CStr, c_int, c_uint};
use std::mem::MaybeUninit;
use std::sync::Arc;
use zstd_sys::{
    self as c, ZSTD_EndDirective as Directive, ZSTD_ResetDirective as Reset,
    ZSTD_cParameter as Parameter, ZSTD_dParameter,
};

lazy_atoms! {
    zstd_error = "zstd_error";
    invalid_key = "invalid_key";
    invalid_value = "invalid_value";
    invalid_compress_dict = "invalid_compress_dict";
    invalid_decompress_dict = "invalid_decompress_dict";
    done = "done";
}

/// The results of the library's functions if the data does not give a size, and if it is no frame.
const SIZE_UNKNOWN: u64 = c::ZSTD_CONTENTSIZE_UNKNOWN as u64;
const SIZE_ERROR: u64 = c::ZSTD_CONTENTSIZE_ERROR as u64;
/// The result of the library's functions for data of a wrong size: error number 72.
const SRC_SIZE_WRONG: usize = 72usize.wrapping_neg();
/// Bytes that count as one reduction.
const REDUCTION_BYTES: usize = 1024;

/// The form of a parameter's value in programs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Flag,
    Strategy,
}

/// The parameters of compression by name.
const PARAMETERS: &[(&str, Parameter, Kind)] = &[
    (
        "compressionLevel",
        Parameter::ZSTD_c_compressionLevel,
        Kind::Number,
    ),
    ("windowLog", Parameter::ZSTD_c_windowLog, Kind::Number),
    ("hashLog", Parameter::ZSTD_c_hashLog, Kind::Number),
    ("chainLog", Parameter::ZSTD_c_chainLog, Kind::Number),
    ("searchLog", Parameter::ZSTD_c_searchLog, Kind::Number),
    ("minMatch", Parameter::ZSTD_c_minMatch, Kind::Number),
    ("targetLength", Parameter::ZSTD_c_targetLength, Kind::Number),
    ("strategy", Parameter::ZSTD_c_strategy, Kind::Strategy),
    (
        "targetCBlockSize",
        Parameter::ZSTD_c_targetCBlockSize,
        Kind::Number,
    ),
    (
        "enableLongDistanceMatching",
        Parameter::ZSTD_c_enableLongDistanceMatching,
        Kind::Flag,
    ),
    ("ldmHashLog", Parameter::ZSTD_c_ldmHashLog, Kind::Number),
    ("ldmMinMatch", Parameter::ZSTD_c_ldmMinMatch, Kind::Number),
    (
        "ldmBucketSizeLog",
        Parameter::ZSTD_c_ldmBucketSizeLog,
        Kind::Number,
    ),
    (
        "ldmHashRateLog",
        Parameter::ZSTD_c_ldmHashRateLog,
        Kind::Number,
    ),
    (
        "contentSizeFlag",
        Parameter::ZSTD_c_contentSizeFlag,
        Kind::Flag,
    ),
    ("checksumFlag", Parameter::ZSTD_c_checksumFlag, Kind::Flag),
    ("dictIDFlag", Parameter::ZSTD_c_dictIDFlag, Kind::Flag),
];
const STRATEGIES: &[&str] = &[
    "default", "fast", "dfast", "greedy", "lazy", "lazy2", "btlazy2", "btopt", "btultra",
    "btultra2",
];
struct CDict(*mut c::ZSTD_CDict);
struct DDict(*mut c::ZSTD_DDict);
// SAFETY: the library only reads dictionaries, from any number of threads.
unsafe impl Send for CDict {}
// SAFETY: the library only reads dictionaries, from any number of threads.
unsafe impl Sync for CDict {}
// SAFETY: the library only reads dictionaries, from any number of threads.
unsafe impl Send for DDict {}
// SAFETY: the library only reads dictionaries, from any number of threads.
unsafe impl Sync for DDict {}
impl Drop for CDict {
    fn drop(&mut self) {
        // SAFETY: made by the library, and this was the last reference to it.
        unsafe { c::ZSTD_freeCDict(self.0) };
    }
}
impl Drop for DDict {
    fn drop(&mut self) {
        // SAFETY: made by the library, and this was the last reference to it.
        unsafe { c::ZSTD_freeDDict(self.0) };
    }
}

struct Compressor {
    /// Null once it is closed.
    at: *mut c::ZSTD_CCtx,
    /// Kept as long as the context refers to it.
    dict: Option<Arc<CDict>>,
    owner: Term,
}
struct Decompressor {
    /// Null once it is closed.
    at: *mut c::ZSTD_DCtx,
    /// Kept as long as the context refers to it.
    dict: Option<Arc<DDict>>,
    owner: Term,
    /// Whether it is within a frame.
    in_use: bool,
}
// SAFETY: all use is under the mutex.
unsafe impl Send for Compressor {}
// SAFETY: all use is under the mutex.
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
        // SAFETY: made by the library, or null, which is allowed too; not used afterwards.
        unsafe { c::ZSTD_freeCCtx(self.at) };
        self.at = std::ptr::null_mut();
        self.dict = None;
    }
    fn reset(&mut self) {
        // SAFETY: an open context.
        unsafe { c::ZSTD_CCtx_reset(self.at, Reset::ZSTD_reset_session_only) };
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
        // SAFETY: an open context.
        unsafe { c::ZSTD_freeDCtx(self.at) };
        self.at = std::ptr::null_mut();
        self.dict = None;
    }
    fn reset(&mut self) {
        // SAFETY: an open context.
        unsafe { c::ZSTD_DCtx_reset(self.at, Reset::ZSTD_reset_session_only) };
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

/// Returns the context behind `t`, for its process only.
fn context<'a, T: Context>(cx: &mut Env, t: Term) -> Result<MutexGuard<'a, T>, Fail> {
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

/// Returns the number that a function of the library returned, or its error as an exception.
fn checked(cx: &mut Env, code: usize) -> Result<usize, Fail> {
    // SAFETY: any number is allowed, and names of errors are constants of the library.
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
fn wrong(cx: &mut Env, why: Term, t: Term) -> Fail {
    let what = cx.tuple(&[why, t]);
    cx.error2(am::BADARG, what)
}

fn parameter(cx: &mut Env, key: Term) -> Result<(Parameter, Kind), Fail> {
    let known = key.is_atom().then(|| atom::name(key));
    let found = PARAMETERS.iter().find(|p| Some(p.0) == known);
    found
        .map(|p| (p.1, p.2))
        .ok_or_else(|| wrong(cx, invalid_key(), key))
}
fn window_log_max(cx: &mut Env, key: Term) -> Result<ZSTD_dParameter, Fail> {
    match key.is_atom() && atom::name(key) == "windowLogMax" {
        true => Ok(ZSTD_dParameter::ZSTD_d_windowLogMax),
        false => Err(wrong(cx, invalid_key(), key)),
    }
}

fn init_compress_0(cx: &mut Env, []: [Term; 0]) -> BifResult {
    let owner = cx.self_pid();
    // SAFETY: there are no preconditions.
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
fn init_decompress_0(cx: &mut Env, []: [Term; 0]) -> BifResult {
    let owner = cx.self_pid();
    // SAFETY: there are no preconditions.
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

fn load_compress_dictionary_2(cx: &mut Env, [t, dict]: [Term; 2]) -> BifResult {
    let mut s = context::<Compressor>(cx, t)?;
    let d = bytes(dict)?;
    // SAFETY: an open context, which copies the bytes.
    let code = unsafe { c::ZSTD_CCtx_loadDictionary(s.at, d.as_ptr().cast(), d.len()) };
    if checked(cx, code).is_ok() {
        s.dict = None;
    }
    checked(cx, code).map(|_| am::OK)
}
fn load_decompress_dictionary_2(cx: &mut Env, [t, dict]: [Term; 2]) -> BifResult {
    let mut s = context::<Decompressor>(cx, t)?;
    let d = bytes(dict)?;
    // SAFETY: an open context, which copies the bytes.
    let code = unsafe { c::ZSTD_DCtx_loadDictionary(s.at, d.as_ptr().cast(), d.len()) };
    if checked(cx, code).is_ok() {
        s.dict = None;
    }
    checked(cx, code).map(|_| am::OK)
}
fn ref_compress_dictionary_2(cx: &mut Env, [t, dict]: [Term; 2]) -> BifResult {
    let mut s = context::<Compressor>(cx, t)?;
    let d = native_state::get::<Arc<CDict>>(dict).ok_or(Fail::Badarg)?;
    // SAFETY: an open context; the dictionary is kept as long as it is referred to.
    let code = unsafe { c::ZSTD_CCtx_refCDict(s.at, d.0) };
    checked(cx, code)?;
    s.dict = Some(d.clone());
    Ok(am::OK)
}
fn ref_decompress_dictionary_2(cx: &mut Env, [t, dict]: [Term; 2]) -> BifResult {
    let mut s = context::<Decompressor>(cx, t)?;
    let d = native_state::get::<Arc<DDict>>(dict).ok_or(Fail::Badarg)?;
    // SAFETY: an open context; the dictionary is kept as long as it is referred to.
    let code = unsafe { c::ZSTD_DCtx_refDDict(s.at, d.0) };
    checked(cx, code)?;
    s.dict = Some(d.clone());
    Ok(am::OK)
}

fn set_compress_parameter_3(cx: &mut Env, [t, key, value]: [Term; 3]) -> BifResult {
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
fn get_compress_parameter_2(cx: &mut Env, [t, key]: [Term; 2]) -> BifResult {
    let s = context::<Compressor>(cx, t)?;
    let (number, kind) = parameter(cx, key)?;
    let mut n = 0;
    // SAFETY: an open context, and a place for the number.
    let code = unsafe { c::ZSTD_CCtx_getParameter(s.at, number, &mut n) };
    let code = checked(cx, code)?;
    Ok(match kind {
        Kind::Number => Term::small(i64::from(n)),
        // Stock uses the return code of the library's function, which is 0 for success.
        Kind::Flag => Term::bool(code != 0),
        Kind::Strategy => {
            let name = usize::try_from(n).ok().and_then(|n| STRATEGIES.get(n));
            atom::intern(name.ok_or(Fail::Badarg)?)
        }
    })
}
fn set_decompress_parameter_3(cx: &mut Env, [t, key, value]: [Term; 3]) -> BifResult {
    let s = context::<Decompressor>(cx, t)?;
    let n = int(value)?;
    let number = window_log_max(cx, key)?;
    // SAFETY: an open context.
    let code = unsafe { c::ZSTD_DCtx_setParameter(s.at, number, n) };
    checked(cx, code).map(|_| am::OK)
}
fn get_decompress_parameter_2(cx: &mut Env, [t, key]: [Term; 2]) -> BifResult {
    let s = context::<Decompressor>(cx, t)?;
    let number = window_log_max(cx, key)?;
    let mut n = 0;
    // SAFETY: an open context, and a place for the number.
    let code = unsafe { c::ZSTD_DCtx_getParameter(s.at, number, &mut n) };
    checked(cx, code)?;
    Ok(Term::small(i64::from(n)))
}
fn set_pledged_src_size_2(cx: &mut Env, [t, size]: [Term; 2]) -> BifResult {
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

/// Returns the directive for the end of the data. It is a number since OTP 29; before, it says
/// whether the data is the last.
fn directive(t: Term) -> Result<Directive, Fail> {
    match (t.as_bool(), t.as_small()) {
        (Some(true), _) | (_, Some(2)) => Ok(Directive::ZSTD_e_end),
        (Some(false), _) | (_, Some(0)) => Ok(Directive::ZSTD_e_continue),
        (_, Some(1)) => Ok(Directive::ZSTD_e_flush),
        _ => Err(Fail::Badarg),
    }
}

/// Feeds data through `codec` into at most `room` bytes.
fn run(
    cx: &mut Env,
    data: Term,
    room: usize,
    how: Directive,
    mut codec: impl FnMut(&mut c::ZSTD_outBuffer, &mut c::ZSTD_inBuffer) -> usize,
) -> BifResult {
    let input = data.as_binary().ok_or(Fail::Badarg)?;
    let mut output = vec![0u8; room];
    let mut to = c::ZSTD_outBuffer {
        dst: output.as_mut_ptr().cast(),
        size: room,
        pos: 0,
    };
    let mut from = c::ZSTD_inBuffer {
        src: input.as_ptr().cast(),
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
        Directive::ZSTD_e_continue => continue_(),
        _ if full && left > 0 => am::FLUSH,
        _ => done(),
    };
    Ok(cx.tuple(&[tag, made]))
}

fn compress_stream_3(cx: &mut Env, [t, data, how]: [Term; 3]) -> BifResult {
    let mut s = context::<Compressor>(cx, t)?;
    let how = directive(how)?;
    let at = s.at;
    // SAFETY: there are no preconditions.
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
fn decompress_stream_3(cx: &mut Env, [t, data, how]: [Term; 3]) -> BifResult {
    let mut s = context::<Decompressor>(cx, t)?;
    let how = directive(how)?;
    // SAFETY: there are no preconditions.
    let mut room = unsafe { c::ZSTD_DStreamOutSize() };
    if !s.in_use {
        let input = data.as_binary().ok_or(Fail::Badarg)?;
        if input.is_empty() && matches!(how, Directive::ZSTD_e_end) {
            return Ok(cx.tuple(&[done(), data]));
        }
        // SAFETY: bytes with their number.
        let size = unsafe { c::ZSTD_findDecompressedSize(input.as_ptr().cast(), input.len()) };
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

fn with<T: Context>(cx: &mut Env, t: Term, act: impl FnOnce(&mut T)) -> BifResult {
    act(&mut *context::<T>(cx, t)?);
    Ok(am::OK)
}
fn compress_reset_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    with(cx, t, Compressor::reset)
}
fn decompress_reset_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    with(cx, t, Decompressor::reset)
}
fn compress_close_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    with(cx, t, Compressor::close)
}
fn decompress_close_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    with(cx, t, Decompressor::close)
}

fn create_cdict_2(cx: &mut Env, [dict, level]: [Term; 2]) -> BifResult {
    let d = dict.as_binary().ok_or(Fail::Badarg)?;
    let level = int(level)?;
    // SAFETY: bytes with their number, which are copied; the allocator is a constant of the
    // library.
    let made = unsafe {
        let parameters = c::ZSTD_getCParams(level, 0, d.len());
        c::ZSTD_createCDict_advanced(
            d.as_ptr().cast(),
            d.len(),
            c::ZSTD_dictLoadMethod_e::ZSTD_dlm_byCopy,
            c::ZSTD_dictContentType_e::ZSTD_dct_auto,
            parameters,
            // The default allocator in the library's header is not an exported symbol.
            c::ZSTD_customMem {
                customAlloc: None,
                customFree: None,
                opaque: std::ptr::null_mut(),
            },
        )
    };
    if made.is_null() {
        return Ok(cx.tuple(&[am::ERROR, invalid_compress_dict()]));
    }
    Ok(native_state::make(cx, Arc::new(CDict(made))))
}
fn create_ddict_1(cx: &mut Env, [dict]: [Term; 1]) -> BifResult {
    let d = dict.as_binary().ok_or(Fail::Badarg)?;
    // SAFETY: bytes with their number, which are copied.
    let made = unsafe { c::ZSTD_createDDict(d.as_ptr().cast(), d.len()) };
    if made.is_null() {
        return Ok(cx.tuple(&[am::ERROR, invalid_decompress_dict()]));
    }
    Ok(native_state::make(cx, Arc::new(DDict(made))))
}
fn id(n: c_uint) -> BifResult {
    Ok(Term::small(i64::from(n)))
}
fn dict_id_of_cdict_1(_: &mut Env, [t]: [Term; 1]) -> BifResult {
    let d = native_state::get::<Arc<CDict>>(t).ok_or(Fail::Badarg)?;
    // SAFETY: a valid dictionary.
    id(unsafe { c::ZSTD_getDictID_fromCDict(d.0) })
}
fn dict_id_of_ddict_1(_: &mut Env, [t]: [Term; 1]) -> BifResult {
    let d = native_state::get::<Arc<DDict>>(t).ok_or(Fail::Badarg)?;
    // SAFETY: a valid dictionary.
    id(unsafe { c::ZSTD_getDictID_fromDDict(d.0) })
}
fn dict_id_of_dict_1(_: &mut Env, [t]: [Term; 1]) -> BifResult {
    let d = bytes(t)?;
    // SAFETY: bytes with their number.
    id(unsafe { c::ZSTD_getDictID_fromDict(d.as_ptr().cast(), d.len()) })
}
fn dict_id_of_frame_1(_: &mut Env, [t]: [Term; 1]) -> BifResult {
    let d = bytes(t)?;
    // SAFETY: bytes with their number.
    id(unsafe { c::ZSTD_getDictID_fromFrame(d.as_ptr().cast(), d.len()) })
}
fn get_frame_header_1(cx: &mut Env, [t]: [Term; 1]) -> BifResult {
    let d = bytes(t)?;
    let mut h = MaybeUninit::zeroed();
    // SAFETY: bytes with their number, and a place for the header.
    let code = unsafe { c::ZSTD_getFrameHeader(h.as_mut_ptr(), d.as_ptr().cast(), d.len()) };
    // If bytes of the header are missing, the library only returns how many there should be.
    if checked(cx, code)? > 0 {
        checked(cx, SRC_SIZE_WRONG)?;
    }
    // SAFETY: it was filled in; if the library left it as it was, zeros are valid numbers and a
    // valid kind of frame.
    let h: c::ZSTD_FrameHeader = unsafe { h.assume_init() };
    let number = |n: c_uint| Term::small(i64::from(n));
    let content = match h.frameContentSize {
        SIZE_UNKNOWN => am::UNDEFINED,
        n => cx.uint(n),
    };
    let kind = match h.frameType {
        c::ZSTD_FrameType_e::ZSTD_frame => "ZSTD_frame",
        c::ZSTD_FrameType_e::ZSTD_skippableFrame => "ZSTD_skippableFrame",
    };
    let window = cx.uint(h.windowSize);
    let pairs = [
        ("frameContentSize", content),
        ("windowSize", window),
        ("blockSizeMax", number(h.blockSizeMax)),
        ("frameType", atom::intern(kind)),
        ("headerSize", number(h.headerSize)),
        ("dictID", number(h.dictID)),
        ("checksumFlag", Term::bool(h.checksumFlag != 0)),
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
