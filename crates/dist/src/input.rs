//! The receiving side: frames become control messages, and those become signals.
//!
//! All input is untrusted. A malformed frame ends the connection, which is logged, as in stock. A
//! frame is handled under the lock of the node's input, so that the input of one connection keeps
//! its order. The thread that hands it in may hold the lock of a port, so nothing here waits, and
//! large messages are left to their receivers to decode.

use super::control::{altact, frame, op, to_number};
use super::cx::Cx;
use super::exports::CodeHooks;
use super::frame::{AtomCache, FRAGMENT, HEADER, MORE, read_atoms};
use super::process::ext::RefKey;
use super::process::registry;
use super::process::remote::{Link, RemotePid, RemoteRef, Watcher};
use super::report::{self, Level, Text};
use super::share::{Share, most_waiting};
use super::signal::bounds::{self, FromFar};
use super::signal::token::{self, Token};
use super::signal::{Kind, Signal, handle, send};
use super::signals::spawn_request as spawn_request_;
use super::signals::{self, signal_of};
use super::table::{IN_PORT, Node, State};
use super::{events, exports, flags, lazy_atoms, process};
use purlin_io::port::channel::{More, Read};
use purlin_kernel::budgets;
use purlin_kernel::explore::far;
use purlin_kernel::lifecycle::spawn::{self, SpawnError};
use purlin_kernel::message::external::{Step, Undecoded};
use purlin_kernel::os::world;
use purlin_kernel::sched;
use purlin_term::etf::VERSION;
use purlin_term::etf::decode::{Decoder, Options};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::iolist::{Gathered, IoSlice};
use purlin_term::layout::RefView;
use purlin_term::print::{Style, format_atom, format_term};
use purlin_term::release::{self, NODES_OF_25_LEAST};
use purlin_term::{Alloc, NIL, Term, am, copy, node};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

lazy_atoms! {
    pub(crate) erts_internal = "erts_internal";
    dist_spawn_init = "dist_spawn_init";
}

/// Maximum size of a message that is decoded here; larger ones are decoded by their receivers.
const DECODED_AT_ONCE: usize = 4096;
/// Maximum number of fragmented messages in progress.
const MOST_SEQUENCES: usize = 100_000;
/// Bytes charged for a fragmented message beyond its contents.
const SEQUENCE_BYTES: usize = 256;
/// Maximum room made before the bytes arrive: the announced number of fragments is only a claim.
const MOST_ROOM: usize = 128 << 20;
/// Number of bytes before those of a fragment: version, kind, number of its sequence, its own
/// number.
const MORE_HEAD: usize = 18;

/// The state of a connection's input.
#[derive(Default)]
pub struct Input {
    /// The number of the connection.
    id: u32,
    cache: AtomCache,
    /// Incomplete fragmented messages, by their numbers.
    sequences: HashMap<u64, Sequence>,
    /// Number of bytes that they take.
    waiting: Share,
    /// The message whose next fragment is being read into place.
    reading: Option<u64>,
    /// Bytes of an incomplete packet that the port holds.
    held: usize,
}

impl Input {
    /// Whether the input belongs to that connection. It starts to belong to it if the connection is
    /// up and has brought nothing yet.
    fn is_of(&mut self, n: &Node, id: u32) -> bool {
        if self.id != id {
            let i = n.inner();
            if i.state != State::Connected || i.id != id {
                return false;
            }
            drop(i);
            *self = Input {
                id,
                ..Input::default()
            };
        }
        true
    }
    /// Charges more bytes for incomplete messages. Returns false if that is too much.
    fn add(&mut self, bytes: usize) -> bool {
        self.waiting.add_if_it_fits(bytes, most_waiting())
    }
    /// Begins fragment number `at`, counted from the end, of a message, and makes room for its
    /// bytes.
    fn next_of(&mut self, sequence: u64, at: u64, bytes: usize) -> Result<&mut Gathered, Bad> {
        let s = self.sequences.get_mut(&sequence).ok_or(Bad::Data)?;
        if at == 0 || s.at.checked_sub(1) != Some(at) {
            return Err(Bad::Data);
        }
        let before = s.bytes.room();
        s.bytes.reserve(bytes);
        let more = s.bytes.room() - before;
        if !self.waiting.add(more, most_waiting()) {
            return Err(Bad::TooMuch);
        }
        s.at = at;
        Ok(&mut s.bytes)
    }
    /// Removes the message if its last fragment has arrived.
    fn whole(&mut self, sequence: u64) -> Option<Sequence> {
        self.sequences.get(&sequence).filter(|s| s.at == 1)?;
        let s = self.sequences.remove(&sequence)?;
        self.waiting.give_back(s.takes());
        Some(s)
    }
}

/// A message whose fragments are arriving.
struct Sequence {
    bytes: Gathered,
    atoms: Vec<Term>,
    /// Number of the last fragment that arrived. The final fragment has number 1.
    at: u64,
}

impl Sequence {
    /// Bytes of memory that it takes.
    fn takes(&self) -> usize {
        self.bytes.room() + SEQUENCE_BYTES + size_of_val(&*self.atoms)
    }
}

// SAFETY: the terms in it are atoms.
unsafe impl Send for Sequence {}

/// The error of a frame.
enum Bad {
    /// A packet of another protocol.
    Version,
    /// A malformed header.
    Header,
    /// Malformed terms, or fragments out of sequence.
    Data,
    /// An unknown control message.
    Message,
    /// Incomplete messages take too much memory.
    TooMuch,
}

/// The bytes of a message.
enum Bytes<'a> {
    /// In one frame, which goes away afterwards.
    Frame(&'a [u8]),
    /// Assembled from fragments.
    Gathered(IoSlice),
}

impl Bytes<'_> {
    fn all(&self) -> &[u8] {
        match self {
            Bytes::Frame(b) => b,
            Bytes::Gathered(b) => b.as_bytes(),
        }
    }
}

/// The payload of a control message.
struct Payload<'a> {
    bytes: Bytes<'a>,
    /// Where it begins.
    at: usize,
    /// Whether a version comes first.
    versioned: bool,
    atoms: Vec<Term>,
}

impl Payload<'_> {
    fn bytes(&self) -> &[u8] {
        &self.bytes.all()[self.at..]
    }
    /// Whether there is no payload, or it does not begin like a term.
    fn is_none(&self) -> bool {
        match self.bytes() {
            [] => true,
            [first, ..] => self.versioned && *first != VERSION,
        }
    }
    /// Decodes the term. As in stock, bytes behind it are ignored.
    fn decode<A: Alloc + ?Sized>(&self, a: &mut A) -> Result<Term, Bad> {
        let (t, _) = decode(self.bytes(), self.versioned, &self.atoms, a)?;
        Ok(t)
    }
    fn owned(&self) -> Result<OwnedTerm, Bad> {
        let mut f = Fragment::new();
        match self.decode(&mut f) {
            Ok(t) => Ok(OwnedTerm::from_parts(t, f)),
            Err(e) => {
                drop(OwnedTerm::from_parts(NIL, f));
                Err(e)
            }
        }
    }
    /// Leaves the payload to its receiver to decode.
    fn undecoded(self, n: &Arc<Node>, id: u32) -> Box<dyn Undecoded> {
        let bytes = match self.bytes {
            Bytes::Frame(b) => IoSlice::copy_of(&b[self.at..]),
            Bytes::Gathered(mut b) => {
                b.advance(self.at);
                b
            }
        };
        Box::new(Left {
            node: n.clone(),
            connection: id,
            bytes,
            // A payload without a version was refused before.
            at: usize::from(self.versioned),
            atoms: self.atoms,
            decoder: None,
        })
    }
}

/// A message that is left to its receiver to decode.
struct Left {
    node: Arc<Node>,
    connection: u32,
    bytes: IoSlice,
    /// The start of the term, behind the version if there is one.
    at: usize,
    atoms: Vec<Term>,
    /// Set when decoding has begun.
    decoder: Option<Decoder<'static, 'static>>,
}

// SAFETY: the terms in it are atoms and those that the decoder has made so far. They are in a
// fragment that moves along with this.
unsafe impl Send for Left {}

impl Undecoded for Left {
    fn step(&mut self, to: &mut Fragment, budget: usize) -> (Step, usize) {
        let d = match self.decoder.take() {
            Some(d) => d,
            None => {
                let all = self.bytes.part(0, self.bytes.len());
                Decoder::keeping(all, self.at, self.atoms.clone())
            }
        };
        let d = self.decoder.insert(d);
        let before = d.used();
        let step = match d.step(to, &CodeHooks, budget) {
            Ok(None) => Step::More,
            Ok(Some(t)) => Step::Whole(t),
            Err(_) => Step::Bad,
        };
        (step, d.used().saturating_sub(before))
    }
    fn node(&self) -> Term {
        self.node.name
    }
    fn refused(&self) {
        corrupted(&self.node, self.bytes.as_bytes(), &self.atoms);
        self.node.kill(self.connection);
    }
}

/// Logs that bytes were no valid term.
fn corrupted(n: &Node, bytes: &[u8], atoms: &[Term]) {
    let name = |t| format_atom(t, Style::Display);
    let atoms: Vec<String> = atoms
        .iter()
        .enumerate()
        .map(|(i, &a)| format!("{i}={}", name(a)))
        .collect();
    let text = format!(
        "{} got a corrupted external term from {} on distribution channel 0\n<<...,{}>>\nATOM_CACHE_REF translations: {}",
        name(node::this_name()),
        name(n.name),
        shown(bytes),
        match &atoms[..] {
            [] => "none".to_owned(),
            all => all.join(", "),
        }
    );
    report::send(Level::Warning, NIL, NIL, Text::Plain(&text));
}

/// The first bytes as text, for a log.
fn shown(bytes: &[u8]) -> String {
    let list: Vec<String> = bytes.iter().take(SHOWN).map(u8::to_string).collect();
    list.join(",")
}

/// Number of bytes of a malformed frame that are logged.
const SHOWN: usize = 200;

/// Decodes the term at the start. Returns it and the number of its bytes.
fn decode<A: Alloc + ?Sized>(
    bytes: &[u8],
    versioned: bool,
    atoms: &[Term],
    a: &mut A,
) -> Result<(Term, usize), Bad> {
    let options = Options {
        atom_cache: atoms,
        ..Options::default()
    };
    // Neither the compressed form nor the runtime's private form: these belong to `term_to_binary`,
    // not to nodes. So a term takes memory in proportion to its bytes.
    let at = usize::from(versioned);
    let bare = match bytes.first() {
        Some(&VERSION) if versioned => &bytes[1..],
        _ if versioned => return Err(Bad::Data),
        _ => bytes,
    };
    let mut d = Decoder::bare(bare, options);
    loop {
        match d.step(a, &CodeHooks, usize::MAX) {
            Ok(Some(t)) => return Ok((t, at + d.used())),
            Ok(None) => {}
            Err(_) => return Err(Bad::Data),
        }
    }
}

/// How to make a process for another node.
pub struct Wanted {
    pub options: spawn::Options,
    pub link: bool,
    pub monitor: bool,
}

/// Parses the options of a process that another node requests. None if they are invalid.
static OPTIONS: OnceLock<fn(Term) -> Option<Wanted>> = OnceLock::new();

/// Sets the function that parses options of new processes.
pub fn set_options(f: fn(Term) -> Option<Wanted>) {
    let _ = OPTIONS.set(f);
}

/// Whether a process that another node requested expects an atom behind its arguments, which marks
/// their end.
static ARGUMENTS_END: AtomicBool = AtomicBool::new(false);

/// Records that the library's `erts_internal` expects that atom. Some versions of a release do and
/// others do not.
pub fn end_arguments() {
    ARGUMENTS_END.store(true, Ordering::Relaxed);
}

/// Handles a packet that a port, whose lock is held, or a process has brought. Returns false if the
/// packet is malformed; the connection must then be killed.
pub fn packet(n: &Arc<Node>, id: u32, bytes: &[u8]) -> bool {
    if bytes.is_empty() {
        // An empty packet only shows that the other side is alive.
        return true;
    }
    handle_packet(n, id, bytes, |with| take(n, id, with, bytes))
}

/// Runs `act` on a packet with the flags of the connection, if the connection is up. Returns false
/// if the packet is malformed; if its header is, `bytes` are logged.
fn handle_packet(
    n: &Arc<Node>,
    id: u32,
    bytes: &[u8],
    act: impl FnOnce(u64) -> Result<(), Bad>,
) -> bool {
    if !node::is_alive() {
        return true;
    }
    let (up, with, port) = {
        let i = n.inner();
        let port = i.controller.term().filter(|t| t.is_local_port());
        (i.state == State::Connected && i.id == id, i.flags, port)
    };
    if !up {
        return true;
    }
    let before = IN_PORT.replace(port.map_or(0, |p| p.raw()));
    let home = n.home.load(Ordering::Relaxed);
    let (r, home) = sched::in_order(home, || act(with));
    n.home.store(home, Ordering::Relaxed);
    IN_PORT.set(before);
    if with & flags::FRAGMENTS != 0 {
        drop_lost_input(n, id);
    }
    let Err(bad) = r else {
        let n = n.inner();
        // Its replies have filled the output queue.
        return n.id != id || !n.too_much;
    };
    let tell = |text: &str| report::send(Level::Error, NIL, NIL, Text::Plain(text));
    match bad {
        Bad::Version => {
            tell("** Got message from incompatible erlang on channel 0\n");
        }
        Bad::Header => {
            let name = |t| format_atom(t, Style::Display);
            let text = format!(
                "{} got a corrupted distribution header from {} on distribution channel 0\n<<{}>>",
                name(node::this_name()),
                name(n.name),
                shown(bytes)
            );
            report::send(Level::Warning, NIL, NIL, Text::Plain(&text));
        }
        Bad::TooMuch => too_much(n),
        Bad::Data | Bad::Message => {}
    }
    false
}

/// Logs that a connection ends because its incomplete messages take too much memory.
fn too_much(n: &Node) {
    let text = format!(
        "Messages from {} that are not complete take too much memory",
        format_atom(n.name, Style::Display)
    );
    report::send(Level::Error, NIL, NIL, Text::Plain(&text));
}

/// Records how many bytes of an incomplete packet the port holds. Returns false if that is too
/// much.
pub fn report_held(n: &Node, id: u32, bytes: usize) -> bool {
    let mut input = n.input.lock();
    if !input.is_of(n, id) {
        return true;
    }
    let before = std::mem::take(&mut input.held);
    input.waiting.give_back(before);
    let fits = bytes == 0 || input.add(bytes);
    if fits {
        input.held = bytes;
    }
    drop(input);
    drop_lost_input(n, id);
    if !fits {
        too_much(n);
    }
    fits
}

/// Drops the received fragments if the connection has ended meanwhile. The thread that ended it
/// could not do it, because they were in use.
fn drop_lost_input(n: &Node, id: u32) {
    let mut input = n.input.lock();
    if input.id != id || (input.sequences.is_empty() && input.held == 0) {
        return;
    }
    let up = {
        let i = n.inner();
        i.state == State::Connected && i.id == id
    };
    if !up {
        *input = Input::default();
    }
}

/// Parses a frame, and handles the message when it is complete.
fn take(n: &Arc<Node>, id: u32, with: u64, bytes: &[u8]) -> Result<(), Bad> {
    let mut input = n.input.lock();
    if !input.is_of(n, id) {
        // The connection has ended meanwhile, and the input may belong to the next one.
        return Ok(());
    }
    if with & (flags::DIST_HDR_ATOM_CACHE | flags::FRAGMENTS) == 0 {
        // The first byte means that there is no header.
        let bytes = &bytes[1..];
        if bytes.len() < 2 || bytes[0] != VERSION {
            return Err(Bad::Version);
        }
        return message(n, id, Bytes::Frame(bytes), true, Vec::new());
    }
    let (&[version, kind, ..], Some(rest)) = (bytes, bytes.get(2..)) else {
        return Err(Bad::Version);
    };
    if version != VERSION {
        return Err(Bad::Version);
    }
    let number = |at| number(rest, at);
    match kind {
        HEADER => {
            let (atoms, at) = read_atoms(rest, &mut input.cache).ok_or(Bad::Header)?;
            message(n, id, Bytes::Frame(&rest[at..]), false, atoms)
        }
        FRAGMENT if with & flags::FRAGMENTS != 0 => {
            let (Some(sequence), Some(left)) = (number(0), number(8)) else {
                return Err(Bad::Header);
            };
            let rest = &rest[16..];
            let (atoms, at) = read_atoms(rest, &mut input.cache).ok_or(Bad::Header)?;
            if left <= 1 {
                return message(n, id, Bytes::Frame(&rest[at..]), false, atoms);
            }
            let most = input.sequences.len() >= MOST_SEQUENCES;
            if most || input.sequences.contains_key(&sequence) {
                return Err(Bad::Data);
            }
            let bytes = &rest[at..];
            // As in stock, the control message must be whole in the first fragment.
            drop(control_of(n, bytes, false, &atoms)?);
            // The other fragments are as long as this one, except for the last.
            let room = usize::try_from(left)
                .unwrap_or(usize::MAX)
                .saturating_mul(bytes.len());
            let s = Sequence {
                bytes: Gathered::new(bytes, room.min(MOST_ROOM)),
                atoms,
                at: left,
            };
            if !input.add(s.takes()) {
                return Err(Bad::TooMuch);
            }
            input.sequences.insert(sequence, s);
            Ok(())
        }
        MORE if with & flags::FRAGMENTS != 0 => {
            let (Some(sequence), Some(at)) = (number(0), number(8)) else {
                return Err(Bad::Header);
            };
            let bytes = &rest[16..];
            input.next_of(sequence, at, bytes.len())?.extend(bytes);
            match input.whole(sequence) {
                Some(s) => gathered(n, id, s),
                None => Ok(()),
            }
        }
        _ => Err(Bad::Header),
    }
}

/// The number at an offset.
fn number(bytes: &[u8], at: usize) -> Option<u64> {
    let b = bytes.get(at..at + 8)?.try_into().ok()?;
    Some(u64::from_be_bytes(b))
}

/// Handles a message that has arrived in fragments.
fn gathered(n: &Arc<Node>, id: u32, s: Sequence) -> Result<(), Bad> {
    message(n, id, Bytes::Gathered(s.bytes.finish()), false, s.atoms)
}

/// Takes the first bytes of a packet of which `left` more will come, if the packet only continues a
/// fragmented message. Returns false if it must be handled whole by [`packet`], like any other.
pub fn begin_packet(n: &Node, id: u32, bytes: &[u8], left: usize) -> bool {
    let (Some([VERSION, MORE]), Some(sequence), Some(at)) =
        (bytes.get(..2), number(bytes, 2), number(bytes, 10))
    else {
        return false;
    };
    let bytes = &bytes[MORE_HEAD..];
    let mut input = n.input.lock();
    // An invalid one is refused like any other packet.
    let goes_on = |s: &Sequence| at != 0 && s.at.checked_sub(1) == Some(at);
    if input.id != id || !input.sequences.get(&sequence).is_some_and(goes_on) {
        return false;
    }
    let Ok(to) = input.next_of(sequence, at, bytes.len().saturating_add(left)) else {
        return false;
    };
    to.extend(bytes);
    input.reading = Some(sequence);
    true
}

/// Reads more of such a packet into place; `left` bytes are missing.
pub fn read_more(n: &Arc<Node>, id: u32, left: usize, read: &mut Read<'_>) -> More {
    let (r, whole) = {
        let mut input = n.input.lock();
        let i = &mut *input;
        let place = match i.reading {
            Some(sequence) if i.id == id => i.sequences.get_mut(&sequence),
            _ => None,
        };
        // The connection has ended, and its input is gone.
        let Some(s) = place else { return More::Bad };
        let r = s.bytes.fill(left, read);
        let whole = match r {
            Ok(n) if n == left => i.reading.take().and_then(|s| i.whole(s)),
            _ => None,
        };
        (r, whole)
    };
    let good = match whole {
        Some(s) => handle_packet(n, id, &[], |_| gathered(n, id, s)),
        None => {
            drop_lost_input(n, id);
            true
        }
    };
    match good {
        true => More::Read(r),
        false => More::Bad,
    }
}

/// Decodes the control message at the start. Returns it and the number of its bytes. Logs an
/// error.
fn control_of(
    n: &Node,
    bytes: &[u8],
    versioned: bool,
    atoms: &[Term],
) -> Result<(OwnedTerm, usize), Bad> {
    let mut place = Fragment::new();
    match decode(bytes, versioned, atoms, &mut place) {
        Ok((term, used)) => Ok((OwnedTerm::from_parts(term, place), used)),
        Err(e) => {
            drop(OwnedTerm::from_parts(NIL, place));
            corrupted(n, bytes, atoms);
            Err(e)
        }
    }
}

/// Handles a message: the control message and its payload.
fn message(
    n: &Arc<Node>,
    id: u32,
    bytes: Bytes<'_>,
    versioned: bool,
    atoms: Vec<Term>,
) -> Result<(), Bad> {
    let (control, used) = control_of(n, bytes.all(), versioned, &atoms)?;
    let payload = Payload {
        bytes,
        at: used,
        versioned,
        atoms,
    };
    let r = act(n, id, control.term(), payload);
    if let Err(Bad::Message) = r {
        let text = format_term(control.term(), Style::Display, 200);
        let text = format!("Invalid distribution message: {text}");
        report::send(Level::Error, NIL, NIL, Text::Plain(&text));
    }
    r
}

/// Whether a process belongs to that node.
fn is_of(t: Term, n: &Node) -> bool {
    t.is_pid() && t.as_external().is_some_and(|(of, _)| of.name == n.name)
}
/// Whether a process belongs to any other node, or to an earlier incarnation of this one.
fn is_far(t: Term) -> bool {
    RemotePid::of(t).is_some()
}
/// Whether a pid belongs to an earlier incarnation of this node.
fn is_old(t: Term) -> bool {
    let name = node::this_name();
    t.as_external().is_some_and(|(of, _)| of.name == name)
}
fn is_ref(t: Term) -> bool {
    t.as_ref_view().is_some()
}
/// Whether a reference belongs to any other node, or to an earlier incarnation of this one.
fn is_far_ref(t: Term) -> bool {
    matches!(t.as_ref_view(), Some(RefView::External { .. }))
}

/// The reason of an exit signal or the like.
enum Reason {
    Here(OwnedTerm),
    /// A long reason, which the receiving process decodes.
    Later(Box<dyn Undecoded>),
}

impl Reason {
    /// Decodes the reason. None if it was no valid term; the connection has been ended then.
    fn get(self) -> Option<OwnedTerm> {
        let mut u = match self {
            Reason::Here(t) => return Some(t),
            Reason::Later(u) => u,
        };
        let mut place = Fragment::new();
        loop {
            match u.step(&mut place, usize::MAX).0 {
                Step::More => {}
                Step::Whole(t) => return Some(OwnedTerm::from_parts(t, place)),
                Step::Bad => {
                    drop(OwnedTerm::from_parts(NIL, place));
                    u.refused();
                    return None;
                }
            }
        }
    }
}

/// The reason of an exit signal or the like: the last element of the control message, or its
/// payload.
fn reason_of(
    n: &Arc<Node>,
    id: u32,
    inside: Option<Term>,
    payload: Payload<'_>,
) -> Result<Reason, Bad> {
    if let Some(t) = inside {
        return Ok(Reason::Here(OwnedTerm::copy_of(t)));
    }
    if payload.is_none() {
        return Err(Bad::Data);
    }
    match payload.bytes().len() {
        0..=DECODED_AT_ONCE => payload.owned().map(Reason::Here),
        _ => Ok(Reason::Later(payload.undecoded(n, id))),
    }
}

/// Dispatches a control message by its number and the shape of its other elements.
fn act(n: &Arc<Node>, id: u32, control: Term, payload: Payload<'_>) -> Result<(), Bad> {
    let Some((&code, args)) = control.as_tuple().and_then(|t| t.split_first()) else {
        return Err(Bad::Message);
    };
    let code = code
        .as_small()
        .and_then(|c| u8::try_from(c).ok())
        .ok_or(Bad::Message)?;
    match (code, args) {
        (op::LINK, &[from, to]) if is_of(from, n) => link(n, id, from, to),
        (op::UNLINK_ID, &[number, from, to]) if is_of(from, n) => {
            let number = to_number(number).filter(|&i| i != 0).ok_or(Bad::Message)?;
            unlink(n, id, from, to, Some(number))
        }
        // Releases that connect to nodes of 25 at least do not know the old one.
        (op::UNLINK, &[from, to]) if is_of(from, n) && !release::has(NODES_OF_25_LEAST) => {
            unlink(n, id, from, to, None)
        }
        (op::UNLINK_ID_ACK, &[number, from, to]) if is_of(from, n) => {
            let number = to_number(number).ok_or(Bad::Message)?;
            unlink_ack(id, from, to, number)
        }
        (op::MONITOR_P, &[by, watched, r]) if is_of(by, n) && is_ref(r) => {
            monitor(n, id, by, watched, r)
        }
        (op::DEMONITOR_P, &[by, watched, r]) if is_of(by, n) && is_ref(r) => {
            demonitor(by, watched, r)
        }
        (op::MONITOR_P_EXIT, &[watched, by, r, reason]) if is_ref(r) => {
            let reason = reason_of(n, id, Some(reason), payload)?;
            down(n, watched, by, r, reason)
        }
        (op::PAYLOAD_MONITOR_P_EXIT, &[watched, by, r]) if is_ref(r) => {
            let reason = reason_of(n, id, None, payload)?;
            down(n, watched, by, r, reason)
        }
        (op::SEND | op::SEND_SENDER, &[_, to]) => message_to(n, id, to, None, payload),
        (op::SEND_TT | op::SEND_SENDER_TT, &[_, to, token]) => {
            message_to(n, id, to, Some(token), payload)
        }
        (op::REG_SEND, &[from, _, to]) if from.is_pid() && to.is_atom() => {
            message_to_name(n, id, to, None, payload)
        }
        (op::REG_SEND_TT, &[from, _, to, token]) if from.is_pid() && to.is_atom() => {
            message_to_name(n, id, to, Some(token), payload)
        }
        (op::ALIAS_SEND, &[_, alias]) if is_ref(alias) => {
            message_to_alias(n, id, alias, None, payload, false)
        }
        (op::ALIAS_SEND_TT, &[_, alias, token]) if is_ref(alias) => {
            message_to_alias(n, id, alias, Some(token), payload, false)
        }
        (op::EXIT, &[from, to, reason]) if is_of(from, n) && to.is_local_pid() => {
            link_exit(from, to, None, reason_of(n, id, Some(reason), payload)?)
        }
        (op::EXIT_TT, &[from, to, token, reason]) if is_of(from, n) && to.is_local_pid() => {
            let reason = reason_of(n, id, Some(reason), payload)?;
            link_exit(from, to, Some(token), reason)
        }
        (op::PAYLOAD_EXIT, &[from, to]) if is_of(from, n) && to.is_local_pid() => {
            link_exit(from, to, None, reason_of(n, id, None, payload)?)
        }
        (op::PAYLOAD_EXIT_TT, &[from, to, token]) if is_of(from, n) && to.is_local_pid() => {
            link_exit(from, to, Some(token), reason_of(n, id, None, payload)?)
        }
        (op::EXIT2, &[from, to, reason]) if is_of(from, n) => {
            exit(from, to, None, reason_of(n, id, Some(reason), payload)?)
        }
        (op::EXIT2_TT, &[from, to, token, reason]) if is_of(from, n) => {
            let reason = reason_of(n, id, Some(reason), payload)?;
            exit(from, to, Some(token), reason)
        }
        (op::PAYLOAD_EXIT2, &[from, to]) if is_of(from, n) => {
            exit(from, to, None, reason_of(n, id, None, payload)?)
        }
        (op::PAYLOAD_EXIT2_TT, &[from, to, token]) if is_of(from, n) => {
            exit(from, to, Some(token), reason_of(n, id, None, payload)?)
        }
        (op::GROUP_LEADER, &[leader, of]) if leader.is_pid() && of.is_pid() => {
            if of.is_local_pid() {
                group_leader(leader, of);
            }
            Ok(())
        }
        (op::SPAWN_REQUEST, &[r, from, leader, mfa, options])
            if leader.is_pid() && is_far(from) && is_far_ref(r) =>
        {
            spawn_request(n, id, [r, from, leader, mfa, options], None, payload)
        }
        (op::SPAWN_REQUEST_TT, &[r, from, leader, mfa, options, token])
            if leader.is_pid() && is_far(from) && is_far_ref(r) =>
        {
            spawn_request(n, id, [r, from, leader, mfa, options], Some(token), payload)
        }
        (op::SPAWN_REPLY, &[r, to, told, result]) if result.is_atom() || is_far(result) => {
            spawn_reply(n, id, [r, to, told, result], None)
        }
        (op::SPAWN_REPLY_TT, &[r, to, told, result, token])
            if result.is_atom() || is_far(result) =>
        {
            spawn_reply(n, id, [r, to, told, result], Some(token))
        }
        (op::ALTACT_SIG_SEND, &[how, from, to, ref token @ ..]) if from.is_pid() => {
            altact_signal(n, id, [how, from, to], token, payload)
        }
        _ => Err(Bad::Message),
    }
}

const EXIT_BY_ALIAS: u64 = altact::EXIT | altact::ALIAS;

/// Handles an [`op::ALTACT_SIG_SEND`], with `token` holding what follows the receiver.
fn altact_signal(
    n: &Arc<Node>,
    id: u32,
    [how, from, to]: [Term; 3],
    token: &[Term],
    payload: Payload<'_>,
) -> Result<(), Bad> {
    let how = to_number(how).filter(|h| h & !altact::ALL == 0);
    let how = how.ok_or(Bad::Message)?;
    let token = match (how & altact::TOKEN != 0, token) {
        (true, &[token]) => Some(token),
        (false, &[]) => None,
        _ => return Err(Bad::Message),
    };
    let urgent = how & altact::PRIORITY != 0;
    match how & (altact::ALIAS | altact::NAME | altact::EXIT) {
        0 => message_to(n, id, to, token, payload),
        altact::NAME if to.is_atom() => message_to_name(n, id, to, token, payload),
        altact::ALIAS if is_ref(to) => message_to_alias(n, id, to, token, payload, urgent),
        altact::EXIT if is_of(from, n) => exit(from, to, token, reason_of(n, id, None, payload)?),
        EXIT_BY_ALIAS if is_of(from, n) && is_ref(to) => {
            let reason = reason_of(n, id, None, payload)?;
            exit_by_alias(from, to, reason, urgent);
            Ok(())
        }
        _ => Err(Bad::Message),
    }
}

/// Sets the group leader of a process of this node.
fn group_leader(leader: Term, of: Term) {
    let leader = OwnedTerm::copy_of(leader);
    let task = move |cx: Option<&mut Cx>| {
        if let Some(cx) = cx {
            process::set_group_leader(cx.process(), leader.term());
        }
    };
    send::run_in(of, Box::new(task));
}

/// Sends an exit signal to the process that made an alias.
fn exit_by_alias(from: Term, alias: Term, reason: Reason, urgent: bool) {
    let (Some(RefView::Local { pid: Some(pid), .. }), Some(key)) =
        (alias.as_ref_view(), RefKey::of(alias))
    else {
        return;
    };
    let from = OwnedTerm::copy_of(from);
    let task = move |cx: Option<&mut Cx>| {
        if let Some(cx) = cx
            && let Some(reason) = reason.get()
        {
            handle::exit_by_alias(cx, key, from.term(), reason.term(), urgent);
        }
    };
    send::run_in(pid, Box::new(task));
}

/// Sends a message to a process of this node.
fn message_to(
    n: &Arc<Node>,
    id: u32,
    to: Term,
    token: Option<Term>,
    payload: Payload<'_>,
) -> Result<(), Bad> {
    if to.is_local_pid() {
        return deliver(n, id, to, None, token, payload);
    }
    // A process of an earlier incarnation of this node, or of another node: the message is dropped.
    match to.is_pid() {
        true => Ok(()),
        false => Err(Bad::Message),
    }
}

/// Sends a message to a registered process.
fn message_to_name(
    n: &Arc<Node>,
    id: u32,
    name: Term,
    token: Option<Term>,
    payload: Payload<'_>,
) -> Result<(), Bad> {
    match registry::whereis(name).filter(|t| t.is_local_pid()) {
        Some(pid) => deliver(n, id, pid, None, token, payload),
        None => Ok(()),
    }
}

/// Sends a message to a process by an alias.
fn message_to_alias(
    n: &Arc<Node>,
    id: u32,
    alias: Term,
    token: Option<Term>,
    payload: Payload<'_>,
    urgent: bool,
) -> Result<(), Bad> {
    match alias.as_ref_view() {
        Some(RefView::Local { pid: Some(pid), .. }) => {
            let alias = OwnedTerm::copy_of(alias);
            deliver(n, id, pid, Some((alias, urgent)), token, payload)
        }
        _ => Ok(()),
    }
}

/// Delivers a message to a process of this node.
fn deliver(
    n: &Arc<Node>,
    id: u32,
    to: Term,
    alias: Option<(OwnedTerm, bool)>,
    token: Option<Term>,
    payload: Payload<'_>,
) -> Result<(), Bad> {
    // A term that is no token counts as none.
    let token = token.and_then(Token::of_term);
    if world::is_on()
        && let Ok(message) = payload.owned()
    {
        far::gets(n.name, to, message.term());
    }
    let urgent = alias.as_ref().is_some_and(|a| a.1);
    if alias.is_none() && budgets::on() {
        match bounds::from_far(to) {
            FromFar::Arrives => {}
            FromFar::Waits => n.full.note(to),
            FromFar::Dropped => return Ok(()),
        }
    }
    // The receiver's budget pays for what waits in its mailbox.
    let _paying = budgets::on().then(|| budgets::pays(budgets::of_pid(to)));
    let s = signal_with(n, id, alias.map(|a| a.0), token, payload)?;
    // SAFETY: a fresh signal.
    unsafe {
        if urgent {
            (*s).set_urgent();
        }
        send::push_or_free(to, s);
    }
    Ok(())
}

/// The signal of a message. The receiver decodes a long payload, or one that is no valid term,
/// which does no harm before it is decoded.
fn signal_with(
    n: &Arc<Node>,
    id: u32,
    alias: Option<OwnedTerm>,
    token: Option<Token>,
    payload: Payload<'_>,
) -> Result<*mut Signal, Bad> {
    if payload.is_none() {
        return Err(Bad::Data);
    }
    if payload.bytes().len() <= DECODED_AT_ONCE
        && let Ok(msg) = payload.owned()
    {
        return Ok(signal_of(
            Some(n.name),
            alias.as_ref(),
            token.as_ref(),
            msg.term(),
        ));
    }
    Ok(Signal::external(payload.undecoded(n, id), alias, token))
}

fn link(n: &Arc<Node>, id: u32, from: Term, to: Term) -> Result<(), Bad> {
    let key = RemotePid::of(from).ok_or(Bad::Message)?;
    if !to.is_local_pid() {
        if to.is_pid() && !is_old(to) {
            return Err(Bad::Message);
        }
        // A process of an earlier incarnation of this node, or a term that is no process, is
        // reported as gone.
        signals::send_link_exit(id, to, &key, am::NOPROC);
        return Ok(());
    }
    let tied = n.tie(id, to);
    let n = n.clone();
    let task = move |cx: Option<&mut Cx>| match cx {
        None => {
            n.untie(id, to);
            signals::send_link_exit(id, to, &key, am::NOPROC);
        }
        Some(cx) => {
            if tied {
                signals::was_tied(cx, &n, id);
            }
            let from = key.owned();
            events::tie(cx.process(), events::Tie::GettingLinked, from.term());
            let ties = cx.process().ext_mut().remote.get_or_insert_default();
            // A request that crosses one of our own makes a single link.
            let is_there = ties.links.get(&key).is_some_and(|l| l.connection == id);
            if !tied {
                handle::remote_link_broke(cx, from.term(), am::NOCONNECTION, None, false);
            } else if !is_there {
                let l = Link {
                    unlinking: 0,
                    connection: id,
                    urgent: false,
                };
                ties.links.insert(key, l);
            }
        }
    };
    send::run_in(to, Box::new(task));
    Ok(())
}

fn unlink(n: &Arc<Node>, id: u32, from: Term, to: Term, number: Option<u64>) -> Result<(), Bad> {
    // As in stock, which also refuses a process of an earlier incarnation of this node.
    if !to.is_local_pid() {
        return Err(Bad::Message);
    }
    let key = RemotePid::of(from).ok_or(Bad::Message)?;
    let n = n.clone();
    let task = move |cx: Option<&mut Cx>| {
        if let Some(cx) = cx
            && let Some(ties) = ties(cx)
            && ties.links.get(&key).is_some_and(|l| l.unlinking == 0)
        {
            ties.links.remove(&key);
            let from = key.owned();
            events::tie(cx.process(), events::Tie::GettingUnlinked, from.term());
        }
        if let (Some(number), Some(r)) = (number, n.ready(false).filter(|r| r.id == id)) {
            let from = key.owned();
            let args = [
                super::control::Arg::Number(number),
                to.into(),
                from.term().into(),
            ];
            n.send(
                id,
                frame(op::UNLINK_ID_ACK, &args, None, r.cached(), to.raw()),
            );
        }
    };
    send::run_in(to, Box::new(task));
    Ok(())
}

/// The ties of the process to other nodes, if it has any.
fn ties(cx: &mut Cx) -> Option<&mut process::remote::Remote> {
    cx.process().ext()?.rare()?.remote.as_deref_mut()
}

fn unlink_ack(id: u32, from: Term, to: Term, number: u64) -> Result<(), Bad> {
    // As in stock, which also refuses a process of an earlier incarnation of this node.
    if !to.is_local_pid() {
        return Err(Bad::Message);
    }
    let key = RemotePid::of(from).ok_or(Bad::Message)?;
    let task = move |cx: Option<&mut Cx>| {
        if let Some(ties) = cx.and_then(ties)
            && (ties.links.get(&key)).is_some_and(|l| l.unlinking == number && l.connection == id)
        {
            ties.links.remove(&key);
        }
    };
    send::run_in(to, Box::new(task));
    Ok(())
}

fn monitor(n: &Arc<Node>, id: u32, by: Term, watched: Term, r: Term) -> Result<(), Bad> {
    let (Some(key), Some(by)) = (RemoteRef::of(r), RemotePid::of(by)) else {
        return Err(Bad::Message);
    };
    let (to, name) = if watched.is_local_pid() {
        (Some(watched), NIL)
    } else if watched.is_atom() {
        let to = registry::whereis(watched).filter(|t| t.is_local_pid());
        (to, watched)
    } else if watched.is_pid() && is_old(watched) {
        (None, NIL)
    } else {
        return Err(Bad::Message);
    };
    let Some(to) = to else {
        let (by, r) = (by.owned(), key.owned());
        signals::send_down(id, watched, by.term(), r.term(), am::NOPROC, NIL);
        return Ok(());
    };
    if !n.tie(id, to) {
        return Ok(());
    }
    let n = n.clone();
    let task = move |cx: Option<&mut Cx>| match cx {
        None => {
            n.untie(id, to);
            let (by, r) = (by.owned(), key.owned());
            let watched = if name == NIL { to } else { name };
            signals::send_down(id, watched, by.term(), r.term(), am::NOPROC, to);
        }
        Some(cx) => {
            signals::was_tied(cx, &n, id);
            let ties = cx.process().ext_mut().remote.get_or_insert_default();
            let w = Watcher {
                by,
                name,
                connection: id,
            };
            ties.watchers.insert(key, w);
        }
    };
    send::run_in(to, Box::new(task));
    Ok(())
}

fn demonitor(by: Term, watched: Term, r: Term) -> Result<(), Bad> {
    let key = RemoteRef::of(r).filter(|_| by.is_pid());
    let key = key.ok_or(Bad::Message)?;
    // A monitor by pid cannot be removed by a name.
    let remove = move |ties: &mut process::remote::Remote| {
        let by_name = watched.is_atom();
        ties.watchers
            .remove(&key, |w| !by_name || w.name == watched);
    };
    let to = match watched {
        t if t.is_local_pid() => t,
        t if t.is_atom() => {
            // The process that had the name when it was monitored, if it still has it. Otherwise
            // the end of the connection or of the process removes the monitor.
            match registry::whereis(t).filter(|t| t.is_local_pid()) {
                Some(pid) => pid,
                None => return Ok(()),
            }
        }
        t if t.is_pid() && is_old(t) => return Ok(()),
        _ => return Err(Bad::Message),
    };
    let task = move |cx: Option<&mut Cx>| {
        cx.and_then(ties).map(remove);
    };
    send::run_in(to, Box::new(task));
    Ok(())
}

/// Handles the end of a process that this node monitors.
fn down(n: &Node, watched: Term, by: Term, r: Term, reason: Reason) -> Result<(), Bad> {
    if !watched.is_atom() && !is_far(watched) || !by.is_pid() {
        return Err(Bad::Message);
    }
    if !by.is_local_pid() {
        return match is_old(by) {
            true => Ok(()),
            false => Err(Bad::Message),
        };
    }
    let mut place = Fragment::new();
    let object = match watched.is_atom() {
        true => place.tuple(&[watched, n.name]),
        false => copy::copy(watched, &mut place),
    };
    let object = OwnedTerm::from_parts(object, place);
    if let Reason::Here(reason) = reason {
        send::monitor_down(by, r, am::PROCESS, object.term(), reason.term());
        return Ok(());
    }
    let r = OwnedTerm::copy_of(r);
    let task = move |cx: Option<&mut Cx>| {
        if let Some(cx) = cx
            && let Some(reason) = reason.get()
        {
            let s = send::down_signal(r.term(), am::PROCESS, object.term(), reason.term());
            // SAFETY: a fresh signal of the end of what is watched.
            unsafe { handle::handle_here(cx, s) };
        }
    };
    send::run_in(by, Box::new(task));
    Ok(())
}

fn link_exit(from: Term, to: Term, token: Option<Term>, reason: Reason) -> Result<(), Bad> {
    let token = token.and_then(Token::of_term);
    let key = RemotePid::of(from).ok_or(Bad::Message)?;
    let task = move |cx: Option<&mut Cx>| {
        let Some(cx) = cx else { return };
        let Some(reason) = reason.get() else { return };
        // Only a link that exists and is not being removed breaks.
        let broken = ties(cx).and_then(|t| {
            t.links.get(&key).filter(|l| l.unlinking == 0)?;
            t.links.remove(&key)
        });
        if let Some(l) = broken {
            let from = key.owned();
            handle::remote_link_broke(cx, from.term(), reason.term(), token.as_ref(), l.urgent);
        }
    };
    send::run_in(to, Box::new(task));
    Ok(())
}

fn exit(from: Term, to: Term, token: Option<Term>, reason: Reason) -> Result<(), Bad> {
    if to.is_local_pid() {
        let token = token.and_then(Token::of_term);
        if let Reason::Here(reason) = reason {
            let s = send::exit_as_signal(token.as_ref(), from, reason.term());
            // SAFETY: a fresh signal.
            unsafe { send::push_or_free(to, s) };
            return Ok(());
        }
        let from = OwnedTerm::copy_of(from);
        let task = move |cx: Option<&mut Cx>| {
            if let Some(cx) = cx
                && let Some(reason) = reason.get()
            {
                let s = send::exit_as_signal(token.as_ref(), from.term(), reason.term());
                // SAFETY: a fresh exit signal.
                unsafe { handle::handle_here(cx, s) };
            }
        };
        send::run_in(to, Box::new(task));
        return Ok(());
    }
    match to.is_pid() && is_old(to) {
        true => Ok(()),
        false => Err(Bad::Message),
    }
}

// Flags of the reply to a spawn request.
const LINKED: i64 = 1;
const MONITORED: i64 = 2;

fn spawn_request(
    n: &Arc<Node>,
    id: u32,
    [r, from, leader, mfa, options]: [Term; 5],
    token: Option<Term>,
    payload: Payload<'_>,
) -> Result<(), Bad> {
    let token = token.and_then(Token::of_term);
    let (Some(key), Some(by)) = (RemoteRef::of(r), RemotePid::of(from)) else {
        return Err(Bad::Message);
    };
    let Some(&[m, f, arity]) = mfa.as_tuple() else {
        return Err(Bad::Message);
    };
    if !m.is_atom() || !f.is_atom() || arity.as_small().is_none() {
        return Err(Bad::Message);
    }
    let mut place = Fragment::new();
    let request = token.as_ref().map(|_| {
        let parts = [spawn_request_(), r, from, leader, mfa, options];
        OwnedTerm::copy_of(place.tuple(&parts))
    });
    drop(OwnedTerm::from_parts(NIL, place));
    let refuse = |why: Term| {
        let t = token.as_ref().zip(request.as_ref());
        let t = t.map(|(t, q)| token::refused(t, q.term(), r, from, why));
        answer(n, id, [r, from, Term::small(0), why], t.as_ref(), NIL);
    };
    let wanted = OPTIONS.get().and_then(|f| f(options));
    let Some(mut wanted) = wanted else {
        refuse(am::BADOPT);
        return Ok(());
    };
    // Links and monitors belong to the other node; they are entered below.
    wanted.options.link = false;
    wanted.options.monitor = None;
    let args = signal_with(n, id, None, token.as_ref().map(Token::duplicate), payload)?;
    let mut place = Fragment::new();
    let first = place.list(&[mfa]);
    // SAFETY: no parent.
    let made = unsafe {
        let init = (erts_internal(), dist_spawn_init());
        spawn::spawn(std::ptr::null_mut(), init.0, init.1, first, wanted.options)
    };
    drop(OwnedTerm::from_parts(NIL, place));
    let pid = match made {
        Ok((pid, _)) => pid,
        Err(SpawnError::SystemLimit | SpawnError::Budget) => {
            // SAFETY: no other code has the signal yet.
            unsafe { Signal::free(args) };
            refuse(am::SYSTEM_LIMIT);
            return Ok(());
        }
    };
    let arity = arity
        .as_small()
        .and_then(|n| u8::try_from(n).ok())
        .map(u32::from);
    let (link, watch) = (wanted.link, wanted.monitor);
    let spawned = Spawned {
        node: n.clone(),
        connection: id,
        pid,
        by,
        reference: OwnedTerm::copy_of(r),
        key,
        leader: OwnedTerm::copy_of(leader),
        initial_call: arity.map(|n| (m, f, n)),
        link,
        watch,
        tied: (!link && !watch) || n.tie(id, pid),
        token: token.zip(request),
    };
    // The process waits for its arguments, so all this happens before its code runs.
    let task = move |cx: Option<&mut Cx>| match cx {
        Some(cx) => spawned.begin(cx),
        None => spawned.gone(),
    };
    send::run_in(pid, Box::new(task));
    // SAFETY: fresh signals.
    unsafe {
        send::push_or_free(pid, args);
        if ARGUMENTS_END.load(Ordering::Relaxed) {
            // The signal has no sender: the process keeps the token that came with the arguments.
            send::push_or_free(pid, Signal::copy_of(Kind::Message, dist_spawn_init()));
        }
    }
    Ok(())
}

/// A process that was made for another node and has not run yet.
struct Spawned {
    node: Arc<Node>,
    connection: u32,
    pid: Term,
    /// The process that requested it.
    by: RemotePid,
    /// The reference of the request, which a monitor uses too.
    reference: OwnedTerm,
    key: RemoteRef,
    leader: OwnedTerm,
    initial_call: Option<(Term, Term, u32)>,
    link: bool,
    watch: bool,
    /// Whether the process is in the set of ties of the connection, or does not need to be.
    tied: bool,
    /// The token of the request, and the request itself as a traced message.
    token: Option<(Token, OwnedTerm)>,
}

impl Spawned {
    /// The flags of the reply.
    fn flags(&self) -> Term {
        let link = if self.link { LINKED } else { 0 };
        let watch = if self.watch { MONITORED } else { 0 };
        Term::small(link | watch)
    }

    /// Sends the reply, with a token if there is one.
    fn reply(&self, token: Option<&Token>) {
        let from = self.by.owned();
        let args = [self.reference.term(), from.term(), self.flags(), self.pid];
        answer(&self.node, self.connection, args, token, self.pid);
    }

    /// Handles that the process was ended before it began. The requesting process still waits for a
    /// reply.
    fn gone(self) {
        let (id, pid) = (self.connection, self.pid);
        self.reply(None);
        if self.tied && self.link {
            signals::send_link_exit(id, pid, &self.by, am::NOPROC);
        }
        if self.tied && self.watch {
            let (from, r) = (self.by.owned(), self.key.owned());
            signals::send_down(id, pid, from.term(), r.term(), am::NOPROC, pid);
        }
        self.node.untie(id, pid);
    }

    /// Enters the link and the monitor in the process, and replies.
    fn begin(mut self, cx: &mut Cx) {
        let id = self.connection;
        let has_tie = self.tied && (self.link || self.watch);
        if has_tie {
            signals::was_tied(cx, &self.node, id);
        }
        let p = cx.process();
        process::set_group_leader(p, self.leader.term());
        if let Some((m, f, n)) = self.initial_call {
            p.initial_call = exports::export(m, f, n);
        }
        if has_tie {
            let ties = p.ext_mut().remote.get_or_insert_default();
            if self.link {
                let l = Link {
                    unlinking: 0,
                    connection: id,
                    urgent: false,
                };
                ties.links.insert(self.by.clone(), l);
            }
            if self.watch {
                let w = Watcher {
                    by: self.by.clone(),
                    name: NIL,
                    connection: id,
                };
                ties.watchers.insert(self.key.clone(), w);
            }
        }
        let from = self.by.owned();
        let token = self.token.take().map(|(t, q)| {
            token::spawned_far(
                cx.process(),
                t,
                q.term(),
                self.reference.term(),
                from.term(),
            )
        });
        self.reply(token.as_ref());
        if self.link && !self.tied {
            handle::remote_link_broke(cx, from.term(), am::NOCONNECTION, None, false);
        }
    }
}

/// Sends the reply to a spawn request, with a token if the request came with one.
fn answer(n: &Node, id: u32, args: [Term; 4], token: Option<&Token>, sender: Term) {
    if let Some(r) = n.ready(false).filter(|r| r.id == id) {
        let mut args = args.map(super::control::Arg::from).to_vec();
        let mut code = op::SPAWN_REPLY;
        let mut place = Fragment::new();
        if let Some(t) = token.filter(|t| r.can_take(t)) {
            code = op::SPAWN_REPLY_TT;
            args.push(t.term(&mut place).into());
        }
        let f = frame(code, &args, None, r.cached(), sender.raw());
        drop(OwnedTerm::from_parts(NIL, place));
        n.send(id, f);
    }
}

fn spawn_reply(
    n: &Arc<Node>,
    id: u32,
    [r, to, told, result]: [Term; 4],
    token: Option<Term>,
) -> Result<(), Bad> {
    let token = token.and_then(Token::of_term);
    let told = told.as_small().filter(|&t| (0..1 << 27).contains(&t));
    let told = told.ok_or(Bad::Message)?;
    let old = |t: Term| match t.as_ref_view() {
        Some(RefView::External { node: of, .. }) => of.name == node::this_name(),
        _ => is_old(t),
    };
    if old(to) || is_ref(r) && old(r) {
        return Ok(());
    }
    let key = RefKey::of(r).filter(|_| to.is_local_pid());
    let key = key.ok_or(Bad::Message)?;
    let result = OwnedTerm::copy_of(result);
    let reference = OwnedTerm::copy_of(r);
    let name = n.name;
    let task = move |cx: Option<&mut Cx>| {
        if let Some(cx) = cx {
            let linked = told & LINKED != 0;
            let result = result.term();
            return signals::spawned(cx, key, (name, id), (result, linked), token.as_ref());
        }
        // The requesting process has ended.
        let Some(key) = RemotePid::of(result.term()) else {
            return;
        };
        if told & MONITORED != 0 {
            let w = process::remote::Watched {
                object: result,
                reference,
                connection: id,
            };
            signals::demonitor(to, &w);
        }
        if told & LINKED != 0 {
            signals::send_link_exit(id, to, &key, am::NOPROC);
        }
    };
    send::run_in(to, Box::new(task));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::table::{self, Controller};
    use super::*;
    use purlin_term::atom;
    use purlin_term::etf::tag;

    /// A connection with a node of that name, without a controller.
    fn connect(name: &str, without: u64) -> (Arc<Node>, u32) {
        purlin_term::region::init();
        node::set_this(atom::intern("this@tests"), 1);
        let n = table::get(atom::intern(name));
        let id = n.connection();
        let with = flags::of_release(25).default & !without;
        let up = n.connected(Controller::Process(Term::pid(1)), with, 1, || {});
        assert_eq!(up, Some(id));
        (n, id)
    }

    fn pid(name: &str, number: u32) -> Vec<u8> {
        let mut b = vec![tag::NEW_PID, tag::SMALL_ATOM_UTF8, name.len() as u8];
        b.extend(name.as_bytes());
        for n in [number, 0, 1] {
            b.extend(n.to_be_bytes());
        }
        b
    }

    #[test]
    fn what_is_asked_of_processes_that_are_not_there_leaves_nothing() {
        let (n, id) = connect("asks@tests", flags::DIST_HDR_ATOM_CACHE | flags::FRAGMENTS);
        // Behind the name of its node a reference has the creation, then its numbers: as many bytes
        // here as a pid has behind the name.
        let reference = [
            &[tag::NEWER_REFERENCE, 0, 2][..],
            &pid("asks@tests", 7)[1..],
        ]
        .concat();
        for number in 0..100 {
            let (from, to) = (pid("asks@tests", number), pid("this@tests", 1000 + number));
            let head = |code, n| vec![112, VERSION, tag::SMALL_TUPLE, n, tag::SMALL_INTEGER, code];
            let link = [head(op::LINK, 3), from.clone(), to.clone()].concat();
            let watch = [head(op::MONITOR_P, 4), from, to, reference.clone()].concat();
            assert!(packet(&n, id, &link));
            assert!(packet(&n, id, &watch));
        }
        assert_eq!(n.tied(), 0);
        let answers = std::iter::from_fn(|| n.next(id)).count();
        assert_eq!(answers, 200);
        n.down(id, am::NORMAL);
    }

    #[test]
    fn answers_that_nobody_reads_are_bounded() {
        let without = flags::DIST_HDR_ATOM_CACHE | flags::FRAGMENTS;
        let (n, id) = connect("deaf@tests", without);
        let _ = purlin_kernel::report::set_system_logger(am::UNDEFINED);
        n.inner().most = 10_000;
        let (from, to) = (pid("deaf@tests", 1), pid("this@tests", 2000));
        let head = [
            112,
            VERSION,
            tag::SMALL_TUPLE,
            3,
            tag::SMALL_INTEGER,
            op::LINK,
        ];
        let link = [&head[..], &from, &to].concat();
        let taken = (0..1000).take_while(|_| packet(&n, id, &link)).count();
        assert!((10..200).contains(&taken), "{taken}");
        // Nothing more is accepted, and the next connection starts afresh.
        let waits = n.inner().out.bytes();
        assert!(!packet(&n, id, &link));
        assert_eq!(n.inner().out.bytes(), waits);
        n.down(id, am::NORMAL);
        let (n, id) = connect("deaf@tests", without);
        assert!(packet(&n, id, &link));
        n.down(id, am::NORMAL);
    }

    #[test]
    fn messages_that_never_end_are_bounded() {
        let (n, id) = connect("endless@tests", 0);
        let first = |sequence: u64| {
            let mut b = vec![VERSION, FRAGMENT];
            b.extend(sequence.to_be_bytes());
            b.extend(9u64.to_be_bytes());
            b.extend([0, tag::SMALL_TUPLE, 0]);
            b
        };
        assert!((0..MOST_SEQUENCES as u64).all(|s| packet(&n, id, &first(s))));
        assert!(!packet(&n, id, &first(MOST_SEQUENCES as u64)));
        n.down(id, am::NORMAL);
        let input = n.input.lock();
        assert!(input.sequences.is_empty());
        drop(input);
        let mut i = Input::default();
        assert!(most_waiting() == usize::MAX || !i.add(most_waiting() + 1));
    }

    /// Reads `bytes` as part of a packet.
    fn piece(n: &Arc<Node>, id: u32, left: usize, bytes: &[u8]) -> bool {
        let r = read_more(n, id, left, &mut |to| {
            Ok(to[..bytes.len()].write_copy_of_slice(bytes))
        });
        matches!(r, More::Read(Ok(n)) if n == bytes.len())
    }

    #[test]
    fn fragments_may_come_in_pieces() {
        let (n, id) = connect("pieces@tests", 0);
        let head = |code, n| vec![tag::SMALL_TUPLE, n, tag::SMALL_INTEGER, code];
        let (from, to) = (pid("pieces@tests", 1), pid("this@tests", 3000));
        let link = [head(op::LINK, 3), from, to].concat();
        let (a, b, c) = (&link[..], &[7; 20][..], &[8; 20][..]);
        let numbers = |kind, left: u64| {
            let mut v = vec![VERSION, kind];
            v.extend(7u64.to_be_bytes());
            v.extend(left.to_be_bytes());
            v
        };
        let first = [numbers(FRAGMENT, 3), vec![0], a.to_vec()].concat();
        for _ in 0..3 {
            // No packet continues without a beginning.
            assert!(!begin_packet(&n, id, &numbers(MORE, 2), b.len()));
            assert!(packet(&n, id, &first));
            assert!(!begin_packet(&n, id, &numbers(MORE, 1), c.len()));
            assert!(!begin_packet(&n, id, &numbers(FRAGMENT, 2), b.len()));
            assert!(begin_packet(&n, id, &numbers(MORE, 2), b.len()));
            assert!(piece(&n, id, b.len(), &b[..1]));
            assert!(piece(&n, id, b.len() - 1, &b[1..]));
            let more = [numbers(MORE, 1), c[..5].to_vec()].concat();
            assert!(begin_packet(&n, id, &more, c.len() - 5));
            assert!(n.next(id).is_none());
            assert!(piece(&n, id, c.len() - 5, &c[5..]));
            // There is no such process.
            assert!(n.next(id).is_some());
            assert_eq!(n.input.lock().waiting.bytes(), 0);
        }
        // The connection ends in the middle of a message.
        assert!(packet(&n, id, &first));
        assert!(begin_packet(&n, id, &numbers(MORE, 2), b.len()));
        n.down(id, am::NORMAL);
        assert!(!piece(&n, id, b.len(), b));
        assert!(!begin_packet(&n, id, &numbers(MORE, 2), b.len()));
        assert!(n.input.lock().sequences.is_empty());
    }

    #[test]
    fn what_a_port_has_of_a_packet_counts() {
        let (n, id) = connect("halves@tests", 0);
        assert!(report_held(&n, id, 1 << 20) && report_held(&n, id, 3 << 20));
        assert_eq!(n.input.lock().waiting.bytes(), 3 << 20);
        assert!(report_held(&n, id, 0));
        assert_eq!(n.input.lock().waiting.bytes(), 0);
        let _ = purlin_kernel::report::set_system_logger(am::UNDEFINED);
        assert!(most_waiting() == usize::MAX || !report_held(&n, id, most_waiting() + 1));
        n.down(id, am::NORMAL);
        assert_eq!(n.input.lock().waiting.bytes(), 0);
        // The input of another connection is not affected.
        assert!(report_held(&n, id, 2 << 20));
        assert_eq!(n.input.lock().waiting.bytes(), 0);
    }

    #[test]
    fn what_is_compressed_is_no_term() {
        let (n, id) = connect("packs@tests", flags::DIST_HDR_ATOM_CACHE | flags::FRAGMENTS);
        // `[]`, by zlib without compression.
        let packed = [
            80, 0, 0, 0, 1, 0x78, 1, 1, 1, 0, 0xFE, 0xFF, 106, 0, 0x6B, 0, 0x6B,
        ];
        let _ = purlin_kernel::report::set_system_logger(am::UNDEFINED);
        assert!(!packet(&n, id, &[&[112, VERSION][..], &packed].concat()));
        n.down(id, am::NORMAL);
    }
}
