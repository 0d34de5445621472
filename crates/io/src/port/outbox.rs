//! The messages of ports to processes. Unit tests collect them instead.

#[cfg(not(test))]
pub use live::*;
#[cfg(test)]
pub use record::*;

#[cfg(not(test))]
mod live {
    use crate::signal::send::push_or_free;
    use crate::signal::{Kind, Signal};
    use purlin_term::{Alloc, Term};

    /// Sends a message. Drops it if there is no such process.
    pub fn message(to: Term, build: impl FnOnce(&mut dyn Alloc) -> Term) {
        crate::signal::send_with(to, build);
    }
    /// Sends a message of exactly `words` words. Drops it if there is no such process.
    pub(crate) fn message_of(to: Term, words: usize, build: impl FnOnce(&mut dyn Alloc) -> Term) {
        let s = Signal::build(Kind::Message, words, build);
        // SAFETY: a fresh signal.
        unsafe { push_or_free(to, s) };
    }
    /// Breaks the link between `port` and `to`.
    pub fn link_exit(port: Term, to: Term, reason: Term) {
        crate::signal::send::link_exit(port, to, reason);
    }
    /// Sends an exit signal that is not a broken link.
    pub fn exit_signal(port: Term, to: Term, reason: Term) {
        crate::signal::send::exit_signal(port, to, reason);
    }
    /// Tells `to`, which monitored `object` by `reference`, that it has ended.
    pub fn down(to: Term, reference: Term, object: Term, reason: Term) {
        crate::signal::send::monitor_down(to, reference, purlin_term::am::PORT, object, reason);
    }
    /// Enters the link with `port` at the end of the process `to`. If there is no such process,
    /// calls `broken` with port, process and reason.
    pub(crate) fn enter_link(to: Term, port: Term, broken: fn(Term, Term, Term)) {
        let task = move |cx: Option<&mut crate::cx::Cx>| match cx {
            Some(cx) => {
                let link = crate::process::ext::Link { unlinking: 0 };
                cx.process()
                    .ext_mut()
                    .links
                    .insert(crate::process::ext::Peer::of(port), link);
            }
            None => broken(port, to, purlin_term::am::NOPROC),
        };
        crate::signal::send::run_in(to, Box::new(task));
    }
    /// Removes the link with `port` at the end of the process `to`.
    pub(crate) fn leave_link(to: Term, port: Term) {
        let task = move |cx: Option<&mut crate::cx::Cx>| {
            if let Some(e) = cx.and_then(|cx| cx.process().ext()) {
                e.links.remove(&crate::process::ext::Peer::of(port));
            }
        };
        crate::signal::send::run_in(to, Box::new(task));
    }
    /// Whether there is such a process.
    pub fn is_alive(pid: Term) -> bool {
        crate::process::table().find(pid).is_some()
    }
    /// Asks the process that sends a list in parts, wherever it is, to leave the rest to the port,
    /// which `stop` does.
    pub(crate) fn ask_rest(pid: Term, stop: fn(&mut crate::cx::Cx)) {
        let task = move |cx: Option<&mut crate::cx::Cx>| {
            cx.into_iter().for_each(stop);
        };
        crate::signal::send::run_in(pid, Box::new(task));
    }
    /// Wakes a process that waits for a busy port.
    pub fn wake(pid: Term) {
        crate::signal::send::wake(pid);
    }
}

#[cfg(test)]
mod record {
    use purlin_term::frag::{Fragment, OwnedTerm};
    use purlin_term::sync::Mutex;
    use purlin_term::{Alloc, Term, am, atom, print};

    static SENT: Mutex<Vec<(u64, String)>> = Mutex::new(Vec::new());

    fn put(to: Term, text: String) {
        let mut s = SENT.lock();
        s.push((to.raw(), text));
    }
    /// Takes everything sent to `to` so far, as text.
    pub fn taken(to: Term) -> Vec<String> {
        let mut s = SENT.lock();
        let (mine, rest) = std::mem::take(&mut *s)
            .into_iter()
            .partition(|m| m.0 == to.raw());
        *s = rest;
        mine.into_iter().map(|m: (u64, String)| m.1).collect()
    }
    /// Waits until `n` things were sent to `to`, or five seconds have passed.
    pub(crate) fn wait_for(to: Term, n: usize) -> Vec<String> {
        let mut got = Vec::new();
        for _ in 0..500 {
            got.extend(taken(to));
            if got.len() >= n {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        got
    }
    pub fn message(to: Term, build: impl FnOnce(&mut dyn Alloc) -> Term) {
        let mut f = Fragment::new();
        let t = build(&mut f);
        let o = OwnedTerm::from_parts(t, f);
        put(
            to,
            print::format_term(o.term(), print::Style::Display, print::LONGEST_TEXT),
        );
    }
    pub(crate) fn message_of(to: Term, words: usize, build: impl FnOnce(&mut dyn Alloc) -> Term) {
        let mut f = Fragment::new();
        let t = build(&mut f);
        assert_eq!(f.used_words(), words, "words of a message");
        let o = OwnedTerm::from_parts(t, f);
        put(
            to,
            print::format_term(o.term(), print::Style::Display, print::LONGEST_TEXT),
        );
    }
    fn note(to: Term, what: &str, terms: &[Term]) {
        message(to, |a| {
            let v: Vec<Term> = [atom::intern(what)].iter().chain(terms).copied().collect();
            a.tuple(&v)
        });
    }
    pub fn link_exit(port: Term, to: Term, reason: Term) {
        note(to, "link_exit", &[port, reason]);
    }
    pub fn exit_signal(port: Term, to: Term, reason: Term) {
        note(to, "exit", &[port, reason]);
    }
    pub fn down(to: Term, reference: Term, object: Term, reason: Term) {
        let _ = reference;
        note(to, "down", &[am::PORT, object, reason]);
    }
    pub(crate) fn enter_link(to: Term, port: Term, _: fn(Term, Term, Term)) {
        note(to, "link", &[port]);
    }
    pub(crate) fn leave_link(to: Term, port: Term) {
        note(to, "unlink", &[port]);
    }
    pub fn is_alive(_: Term) -> bool {
        true
    }
    pub(crate) fn ask_rest(pid: Term, _: fn(&mut crate::cx::Cx)) {
        put(pid, "ask_rest".into());
    }
    pub fn wake(pid: Term) {
        put(pid, "wake".into());
    }
}
