//! Models reports of the poll thread to a socket: bytes are read only if they are wanted, and
//! wanted bytes that are there are always delivered.

#[path = "../../io/src/net/inet/interest.rs"]
#[allow(dead_code)]
mod interest;
#[path = "../../kernel/src/poll/wish.rs"]
#[allow(dead_code)]
mod wish;

use interest::Interest;
use loom::sync::Arc;
use loom::thread;
use purlin_models::{explore, sync};
use sync::Mutex;
use wish::{Asked, Events, How, Wish};

/// The kernel's end: the bytes that have come, and the events that it reports, once or again.
#[derive(Default)]
struct Kernel {
    bytes: usize,
    asked: (bool, bool),
    lasting: bool,
}

impl Kernel {
    /// Returns the pending events, if any are enabled, and disables them unless they last.
    fn wait(&mut self) -> Option<Events> {
        let (read, write) = (self.asked.0 && self.bytes > 0, self.asked.1);
        (read || write).then(|| {
            if !self.lasting {
                self.asked = (false, false);
            }
            (read, write, false)
        })
    }
}

/// The socket's end.
#[derive(Default)]
struct Socket {
    interest: Interest,
    /// Number of messages that the owner has asked for.
    active: usize,
    /// Number of delivered bytes.
    got: usize,
    written: bool,
}

/// The world. The locks are taken in this order.
#[derive(Default)]
struct World {
    /// The socket acts on a report without checking its present state: the fault that these models
    /// are to find.
    careless: bool,
    /// Schedulers poll: requests for input last.
    lasts: bool,
    socket: Mutex<Socket>,
    table: Mutex<Asked>,
    kernel: Mutex<Kernel>,
}

impl World {
    fn new(bytes: usize) -> Arc<World> {
        let w = World::default();
        w.kernel.lock().bytes = bytes;
        Arc::new(w)
    }
    /// As `new`, with requests that last.
    fn lasting(bytes: usize) -> Arc<World> {
        let w = World {
            lasts: true,
            ..World::default()
        };
        w.kernel.lock().bytes = bytes;
        Arc::new(w)
    }
    fn send(&self) {
        self.kernel.lock().bytes += 1;
    }
    fn ask(&self, wish: Wish, how: How) {
        let mut k = self.kernel.lock();
        k.asked = (wish.read, wish.write);
        k.lasting = how == How::Lasting;
    }
    fn arm(&self, s: &Socket) {
        let mut asked = self.table.lock();
        let (read, write) = s.interest.wanted();
        if let Some(how) = asked.replace((read, write, false), self.lasts) {
            self.ask(asked.wish, how);
        }
    }
    /// The owner asks for `messages` messages.
    fn activate(&self, messages: usize) {
        let mut s = self.socket.lock();
        s.active = messages;
        s.interest.select(Some(messages > 0), None);
        self.arm(&s);
    }
    /// Others use the descriptor, or no longer.
    fn suspend(&self, on: bool) {
        let mut s = self.socket.lock();
        s.interest.suspend(on);
        self.arm(&s);
    }
    /// A process has more to send than the kernel takes.
    fn write(&self) {
        let mut s = self.socket.lock();
        s.interest.select(None, Some(true));
        self.arm(&s);
    }
    /// Polls once without blocking. Returns whether there was an event.
    fn poll(&self) -> bool {
        let Some(events) = self.kernel.lock().wait() else {
            return false;
        };
        let told = {
            let mut asked = self.table.lock();
            let (told, again) = asked.take(events);
            if again {
                self.ask(asked.wish, How::Once);
            }
            told
        };
        if told.0 || told.1 {
            self.ready(told.0, told.1);
        }
        true
    }
    fn ready(&self, readable: bool, writable: bool) {
        let mut s = self.socket.lock();
        let (read, write) = match self.careless {
            true => (readable, writable),
            false => s.interest.still(readable, writable),
        };
        if write {
            s.written = true;
            s.interest.select(None, Some(false));
        }
        if read {
            assert!(!s.interest.is_suspended(), "others use the descriptor");
            let mut kernel = self.kernel.lock();
            if kernel.bytes > 0 {
                kernel.bytes -= 1;
                s.active = s.active.checked_sub(1).expect("somebody wants it");
                s.got += 1;
            }
            let more = s.active > 0;
            s.interest.select(Some(more), None);
        }
        self.arm(&s);
    }
    /// Polls until there are no more events.
    fn settle(&self) {
        while self.poll() {}
    }
    fn got(&self) -> usize {
        self.socket.lock().got
    }
    fn left(&self) -> usize {
        self.kernel.lock().bytes
    }
}

/// Runs `others` on threads of their own, and `here` on this one.
fn beside(world: &Arc<World>, others: &[fn(&World)], here: fn(&World)) {
    let others: Vec<_> = others
        .iter()
        .map(|&f| {
            let w = world.clone();
            thread::spawn(move || f(&w))
        })
        .collect();
    here(world);
    for t in others {
        t.join().expect("runs");
    }
}

/// Explores `f` in a world where requests end with a report, and in one where they last. `f` makes
/// the world by its argument.
fn in_both_worlds(name: &str, f: fn(fn(usize) -> Arc<World>)) {
    explore(name, Some(3), move || f(World::new));
    explore(&format!("{name}, lasting"), Some(3), move || {
        f(World::lasting)
    });
}

fn poll_once(w: &World) {
    w.poll();
}
fn poll_twice(w: &World) {
    w.poll();
    w.poll();
}

/// The owner asks for a message and cancels that, while two threads poll: the byte is delivered to
/// the owner, or stays.
#[test]
fn unwanted_bytes_stay() {
    in_both_worlds("unwanted bytes stay", |new| {
        let w = new(1);
        beside(&w, &[poll_once, poll_twice], |w| {
            w.activate(1);
            w.activate(0);
        });
        w.settle();
        assert_eq!(w.got() + w.left(), 1, "nothing is lost");
        w.activate(1);
        w.settle();
        assert_eq!((w.got(), w.left()), (1, 0));
    });
}

/// A socket that reads at every report loses the byte, and the model finds that.
#[test]
#[should_panic(expected = "somebody wants it")]
fn a_careless_socket_is_found_out() {
    explore("a careless socket is found out", Some(3), || {
        let w = World {
            careless: true,
            ..World::default()
        };
        w.send();
        beside(&Arc::new(w), &[poll_once], |w| {
            w.activate(1);
            w.activate(0);
        });
    });
}

/// The owner asks, cancels and asks again while bytes come: the last request is served.
#[test]
fn the_last_request_is_served() {
    in_both_worlds("the last request is served", |new| {
        let w = new(0);
        beside(&w, &[poll_twice, World::send], |w| {
            w.activate(2);
            w.activate(0);
            w.activate(2);
        });
        w.settle();
        assert_eq!((w.got(), w.left()), (1, 0));
    });
}

/// The same while a process waits to send: a report of one event keeps the other enabled.
#[test]
fn input_and_output_do_not_hide_each_other() {
    in_both_worlds("input and output do not hide each other", |new| {
        let w = new(0);
        let writes: fn(&World) = |w| {
            w.write();
            w.send();
        };
        beside(&w, &[poll_twice, writes], |w| {
            w.activate(1);
            w.activate(0);
            w.activate(1);
        });
        w.settle();
        assert_eq!((w.got(), w.left()), (1, 0));
        assert!(w.socket.lock().written);
    });
}

/// An active socket is used by others for a while.
#[test]
fn others_may_use_the_descriptor() {
    in_both_worlds("others may use the descriptor", |new| {
        let w = new(1);
        beside(&w, &[poll_once, poll_once], |w| {
            w.activate(1);
            w.suspend(true);
            w.suspend(false);
        });
        w.settle();
        assert_eq!((w.got(), w.left()), (1, 0));
    });
}
