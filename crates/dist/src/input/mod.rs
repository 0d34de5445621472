//! The receiving side: frames become control messages, and those become signals.
//!
//! All input is untrusted. A malformed frame ends the connection, which is logged, as in stock. A
//! frame is handled under the lock of the node's input, so that the input of one connection keeps
//! its order. The thread that hands it in may hold the lock of a port, so nothing here waits, and
//! large messages are left to their receivers to decode.

mod operations;
mod spawning;

use crate::exports::CodeHooks;
use crate::frame::{AtomCache, FRAGMENT, HEADER, MORE, read_atoms};
use crate::process::remote::RemotePid;
use crate::report::{self, Level, Text};
use crate::share::{Share, most_waiting};
use crate::signal::Signal;
use crate::signal::token::Token;
use crate::signals::signal_of;
use crate::table::{IN_PORT, Node, State};
use crate::{flags, lazy_atoms};
use operations::act;
use purlin_io::port::channel::{More, Read};
use purlin_kernel::message::external::{Step, Undecoded};
use purlin_kernel::sched;
use purlin_term::etf::VERSION;
use purlin_term::etf::decode::{Decoder, Options};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::iolist::{Gathered, IoSlice};
use purlin_term::layout::RefView;
use purlin_term::print::{Style, format_atom, format_term};
use purlin_term::{Alloc, NIL, Term, node};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub use spawning::{Wanted, end_arguments, set_options};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::op;
    use crate::table::{self, Controller};
    use purlin_term::am;
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
