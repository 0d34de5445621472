//! Requests of other nodes to spawn processes, and the replies to this node's own.

use super::{Bad, Payload, dist_spawn_init, erts_internal, is_old, is_ref, signal_with};
use crate::control::{frame, op};
use crate::cx::Cx;
use crate::process::ext::RefKey;
use crate::process::remote::{Link, RemotePid, RemoteRef, Watcher};
use crate::signal::token::{self, Token};
use crate::signal::{Kind, Signal, handle, send};
use crate::signals::{self, spawn_request as spawn_request_};
use crate::table::Node;
use crate::{exports, process};
use purlin_kernel::lifecycle::spawn::{self, SpawnError};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::layout::RefView;
use purlin_term::{Alloc, NIL, Term, am, node};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

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

// Flags of the reply to a spawn request.
const LINKED: i64 = 1;

const MONITORED: i64 = 2;

pub(super) fn spawn_request(
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
    pub(super) node: Arc<Node>,
    pub(super) connection: u32,
    pub(super) pid: Term,
    /// The process that requested it.
    pub(super) by: RemotePid,
    /// The reference of the request, which a monitor uses too.
    reference: OwnedTerm,
    pub(super) key: RemoteRef,
    pub(super) leader: OwnedTerm,
    initial_call: Option<(Term, Term, u32)>,
    link: bool,
    watch: bool,
    /// Whether the process is in the set of ties of the connection, or does not need to be.
    pub(super) tied: bool,
    /// The token of the request, and the request itself as a traced message.
    pub(super) token: Option<(Token, OwnedTerm)>,
}

impl Spawned {
    /// The flags of the reply.
    pub(super) fn flags(&self) -> Term {
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
        let mut args = args.map(crate::control::Arg::from).to_vec();
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

pub(super) fn spawn_reply(
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
