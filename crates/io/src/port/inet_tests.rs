//! Tests of sockets without processes: their messages are collected.

use crate::net::inet::opts::opt;
use crate::net::inet::{CONTROL_BASE, addr::family, req};
use crate::port::outbox::{taken, wait_for};
use crate::port::{How, Outcome, Port, control, exit, find, open};
use purlin_term::frag::Fragment;
use purlin_term::{Alloc, Term, am, atom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A distinct pid for each socket.
fn owner() -> Term {
    static NEXT: AtomicU32 = AtomicU32::new(500_000);
    Term::pid(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A socket and its owner.
struct Socket {
    p: Arc<Port>,
    me: Term,
}

const FOREVER: [u8; 4] = [255; 4];

impl Socket {
    fn new(driver: &str, kind: u8) -> Socket {
        let me = owner();
        let mut m = Fragment::new();
        let name = m.string(driver);
        let name = m.tuple(&[atom::intern("spawn_driver"), name]);
        let options = m.list(&[am::BINARY]);
        let p = open::open(me, name, options).unwrap_or_else(|e| panic!("{e:?}"));
        let s = Socket { p, me };
        assert_eq!(s.ctl(req::OPEN, &[family::INET, kind]), Ok(vec![]));
        s
    }
    fn tcp() -> Socket {
        Socket::new("tcp_inet", 1)
    }
    fn udp() -> Socket {
        Socket::new("udp_inet", 2)
    }
    fn ctl(&self, op: u32, data: &[u8]) -> Result<Vec<u8>, String> {
        let r = control(&self.p, self.me, op + CONTROL_BASE, data).expect("an answer");
        match r.bytes.split_first() {
            Some((1, b)) => Ok(b.to_vec()),
            Some((0, b)) => Err(String::from_utf8_lossy(b).into_owned()),
            other => panic!("{other:?}"),
        }
    }
    fn set(&self, o: u8, v: i32) {
        let b = [&[o][..], &v.to_be_bytes()].concat();
        assert_eq!(self.ctl(req::SETOPTS, &b), Ok(vec![]));
    }
    /// Binds it to a port of the loopback interface.
    fn bind(&self) -> u16 {
        let b = self
            .ctl(req::BIND, &[family::INET, 0, 0, 127, 0, 0, 1])
            .expect("bound");
        u16::from_be_bytes([b[0], b[1]])
    }
    fn connect(&self, port: u16) -> Result<Vec<u8>, String> {
        let to = [&FOREVER[..], &[family::LOOPBACK], &port.to_be_bytes()].concat();
        // The shortest form is too short for the request.
        let long = [
            &FOREVER[..],
            &[family::INET],
            &port.to_be_bytes(),
            &[127, 0, 0, 1],
        ]
        .concat();
        assert_eq!(to.len(), 7);
        self.ctl(req::CONNECT, &long)
    }
    fn send(&self, data: &[u8]) {
        assert_eq!(self.output(data), Outcome::Done);
    }
    fn output(&self, data: &[u8]) -> Outcome {
        let mut m = Fragment::new();
        let t = m.binary(data);
        self.p
            .output(
                self.me,
                self.me,
                (super::Reference::None, t),
                How::default(),
            )
            .unwrap_or_else(|e| panic!("{e:?}"))
    }
    fn recv(&self, n: u32, timeout_ms: u32) -> Result<Vec<u8>, String> {
        self.ctl(
            req::RECV,
            &[timeout_ms.to_be_bytes(), n.to_be_bytes()].concat(),
        )
    }
    /// The next `n` messages, without the socket's name.
    fn got(&self, n: usize) -> Vec<String> {
        let id = format!("#Port<0.{}>", self.p.id.pid_data());
        let v = wait_for(self.me, n);
        v.into_iter().map(|s| s.replace(&id, "S")).collect()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = exit(&self.p, self.me, am::NORMAL);
    }
}

/// A connected pair, the accepted socket last.
fn pair() -> (Socket, Socket) {
    let l = Socket::tcp();
    let port = l.bind();
    assert_eq!(l.ctl(req::LISTEN, &[0, 5]), Ok(vec![]));
    assert_eq!(l.ctl(req::ACCEPT, &FOREVER), Ok(vec![0, 0]));
    let c = Socket::tcp();
    assert_eq!(c.connect(port), Ok(vec![0, 0]));
    assert_eq!(c.got(1), ["{inet_async,S,0,ok}"]);
    let v = l.got(2);
    let number = v
        .iter()
        .find_map(|s| s.strip_prefix("{inet_async,S,0,{ok,#Port<0."))
        .and_then(|s| s.strip_suffix(">}}"))
        .unwrap_or_else(|| panic!("{v:?}"));
    assert!(v.iter().any(|s| s.starts_with("{link,#Port<0.")), "{v:?}");
    let id = Term::port(number.parse().expect("a number"));
    let a = Socket {
        p: find(id).expect("the accepted port"),
        me: l.me,
    };
    drop(l);
    taken(a.me);
    (c, a)
}

#[test]
fn streams_connect_send_and_close() {
    let (c, a) = pair();
    c.set(opt::MODE, 1);
    a.set(opt::MODE, 1);
    c.send(b"hello");
    assert_eq!(c.got(1), ["{inet_reply,S,ok}"]);
    assert_eq!(a.recv(3, 1000), Ok(vec![0, 0]));
    assert_eq!(a.got(1), ["{inet_async,S,0,{ok,<<\"hel\">>}}"]);
    assert_eq!(a.recv(0, 1000), Ok(vec![0, 1]));
    assert_eq!(a.got(1), ["{inet_async,S,1,{ok,<<\"lo\">>}}"]);
    assert_eq!(a.recv(0, 20), Ok(vec![0, 2]));
    assert_eq!(a.recv(0, 20), Err("ealready".into()));
    assert_eq!(a.got(1), ["{inet_async,S,2,{error,timeout}}"]);
    assert_eq!(a.recv(0, 0), Ok(vec![0, 3]));
    assert_eq!(a.got(1), ["{inet_async,S,3,{error,timeout}}"]);
    let names = (c.ctl(req::NAME, &[]), c.ctl(req::PEER, &[]));
    assert_eq!((a.ctl(req::PEER, &[]), a.ctl(req::NAME, &[])), names);
    assert_eq!(
        c.ctl(req::GETSTAT, &[5, 10]),
        Ok(vec![5, 0, 0, 0, 1, 10, 0, 0, 0, 0, 0, 0, 0, 5])
    );

    a.set(opt::ACTIVE, 1);
    c.send(b"more");
    assert_eq!(a.got(1), ["{tcp,S,<<\"more\">>}"]);
    drop(c);
    assert_eq!(a.got(2), ["{tcp_closed,S}", "{unlink,S}"]);
    assert!(find(a.p.id).is_none());
}

#[test]
fn active_once_and_counted() {
    let (c, a) = pair();
    a.set(opt::PACKET, 1);
    c.set(opt::PACKET, 1);
    for data in [&b"one"[..], b"two", b"three", b"four"] {
        c.send(data);
    }
    a.set(opt::ACTIVE, 2);
    assert_eq!(a.got(1), ["{tcp,S,\"one\"}"]);
    let two = [&[opt::ACTIVE, 0, 0, 0, 3][..], &[0, 2]].concat();
    assert_eq!(a.ctl(req::SETOPTS, &two), Ok(vec![]));
    assert_eq!(
        a.got(3),
        ["{tcp,S,\"two\"}", "{tcp,S,\"three\"}", "{tcp_passive,S}"]
    );
    assert_eq!(a.recv(0, 1000), Ok(vec![0, 0]));
    assert_eq!(a.got(1), ["{inet_async,S,0,{ok,\"four\"}}"]);
    // The other side closes: a waiting receiver gets the error, then the socket is not connected.
    assert_eq!(a.recv(0, 5000), Ok(vec![0, 1]));
    drop(c);
    assert_eq!(a.got(1), ["{inet_async,S,1,{error,closed}}"]);
    assert_eq!(a.recv(0, 1000), Err("enotconn".into()));
    a.send(b"x");
    assert_eq!(a.got(1), ["{inet_reply,S,{error,closed}}"]);
    a.send(b"x");
    assert_eq!(a.got(1), ["{inet_reply,S,{error,enotconn}}"]);
}

#[test]
fn lines_and_http() {
    let (c, a) = pair();
    a.set(opt::PACKET, 8);
    a.set(opt::ACTIVE, 1);
    c.send(b"one\ntwo\nthr");
    assert_eq!(a.got(2), ["{tcp,S,\"one\\n\"}", "{tcp,S,\"two\\n\"}"]);
    c.send(b"ee\n");
    assert_eq!(a.got(1), ["{tcp,S,\"three\\n\"}"]);
    a.set(opt::PACKET, 13);
    c.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(
        a.got(3),
        [
            "{http,S,{http_request,'GET',{abs_path,<<\"/\">>},{1,1}}}",
            "{http,S,{http_header,14,'Host',<<\"Host\">>,<<\"x\">>}}",
            "{http,S,http_eoh}"
        ]
    );
}

#[test]
fn a_slow_receiver_makes_the_port_busy() {
    let (c, a) = pair();
    let chunk = vec![7u8; 1 << 20];
    let mut sent = 0;
    // Fills the kernel's buffers, then the queue.
    while c.output(&chunk) == Outcome::Done {
        sent += chunk.len();
        if c.ctl(req::GETSTATUS, &[]).expect("a status")[3] & 0x80 != 0 {
            break;
        }
        assert!(sent < 1 << 30);
    }
    let answered = wait_for(c.me, 1).len() + taken(c.me).len();
    assert_eq!(answered, sent / chunk.len() - 1);
    assert_eq!(c.ctl(req::SUBSCRIBE, &[1]).expect("queued").len(), 5);
    a.set(opt::MODE, 1);
    a.set(opt::BUFFER, 1 << 20);
    let mut got = 0;
    while got < sent {
        assert_eq!(a.recv(1 << 20, 5000).map(|b| b.len()), Ok(2));
        let v = a.got(1);
        assert!(v[0].contains("{ok,<<7,7"), "{}", &v[0][..60]);
        got += 1 << 20;
    }
    let mut rest = c.got(2);
    rest.sort();
    assert_eq!(rest, ["{empty_out_q,S}", "{inet_reply,S,ok}"]);
}

#[test]
fn what_is_queued_is_sent_after_closing() {
    let (c, a) = pair();
    let data = vec![1u8; 8 << 20];
    c.send(&data);
    drop(c);
    let mut got = 0;
    a.set(opt::MODE, 1);
    while got < data.len() {
        assert_eq!(a.recv(1 << 20, 5000).map(|b| b.len()), Ok(2));
        assert!(a.got(1)[0].contains("{ok,<<1,1"));
        got += 1 << 20;
    }
    assert!(a.recv(0, 5000).is_ok());
    assert!(a.got(1)[0].ends_with("{error,closed}}"));
}

#[test]
fn refused_and_bad_requests() {
    let l = Socket::tcp();
    let port = l.bind();
    let c = Socket::tcp();
    match c.connect(port) {
        Ok(_) => assert_eq!(c.got(1), ["{inet_async,S,0,{error,econnrefused}}"]),
        Err(e) => assert_eq!(e, "econnrefused"),
    }
    assert_eq!(c.ctl(req::ACCEPT, &FOREVER), Err("einval".into()));
    assert_eq!(c.recv(0, 0), Err("enotconn".into()));
    assert_eq!(c.ctl(req::PEER, &[]), Err("enotconn".into()));
    assert_eq!(c.ctl(req::OPEN, &[1, 1]), Err("exbadseq".into()));
    assert_eq!(
        c.ctl(req::SETOPTS, &[250, 0, 0, 0, 0]),
        Err("einval".into())
    );
    assert_eq!(c.ctl(99, &[]), Err("exbadport".into()));
    assert_eq!(c.ctl(req::BIND, &[family::INET, 0]), Err("einval".into()));
    c.send(b"x");
    assert_eq!(c.got(1), ["{inet_reply,S,{error,enotconn}}"]);
    for op in 0..64 {
        for n in 0..30 {
            let s = Socket::tcp();
            let _ = control(&s.p, s.me, op + CONTROL_BASE, &vec![n as u8; n]);
            let s = Socket::udp();
            let _ = control(&s.p, s.me, op + CONTROL_BASE, &vec![n as u8; n]);
        }
    }
}

#[test]
fn options_are_told_as_they_are_set() {
    let s = Socket::tcp();
    for (o, v) in [
        (opt::NODELAY, 1),
        (opt::KEEPALIVE, 1),
        (opt::HIGH_WATERMARK, 100),
        (opt::SEND_TIMEOUT, 5),
        (opt::PRIORITY, 3),
        (opt::TOS, 16),
        (opt::HEADER, 2),
        (opt::SHOW_ECONNRESET, 1),
    ] {
        s.set(o, v);
        let want = [&[o][..], &v.to_be_bytes()].concat();
        assert_eq!(s.ctl(req::GETOPTS, &[o]), Ok(want));
    }
    let linger = [&[opt::LINGER][..], &1i32.to_be_bytes(), &7i32.to_be_bytes()].concat();
    assert_eq!(s.ctl(req::SETOPTS, &linger), Ok(vec![]));
    assert_eq!(s.ctl(req::GETOPTS, &[opt::LINGER]), Ok(linger));
    let name = s.ctl(req::GETHOSTNAME, &[]).expect("a name");
    assert!(!name.is_empty());
    let all = s.ctl(req::GETIFADDRS, &[]).expect("interfaces");
    assert!(all.windows(3).any(|w| w == b"lo\0"));
}

#[test]
fn datagrams() {
    let (a, b) = (Socket::udp(), Socket::udp());
    let port = b.bind();
    a.bind();
    b.set(opt::MODE, 1);
    let [hi, lo] = port.to_be_bytes();
    let datagram = [
        &[family::INET, hi, lo, 127, 0, 0, 1, 0, 0, 0, 0][..],
        b"hello",
    ]
    .concat();
    a.send(&datagram);
    assert_eq!(a.got(1), ["{inet_reply,S,ok}"]);
    let ask = [&FOREVER[..], &[0; 4]].concat();
    assert_eq!(b.ctl(req::PACKET_RECV, &ask), Ok(vec![0, 0]));
    let from = a.ctl(req::NAME, &[]).expect("a name");
    let list: Vec<String> = from.iter().map(|b| b.to_string()).collect();
    assert_eq!(
        b.got(1),
        [format!(
            "{{inet_async,S,0,{{ok,[{}|<<\"hello\">>]}}}}",
            list.join(",")
        )]
    );
    b.set(opt::ACTIVE, 1);
    a.send(&datagram);
    let p = u16::from_be_bytes([from[1], from[2]]);
    assert_eq!(
        b.got(1),
        [format!("{{udp,S,{{127,0,0,1}},{p},<<\"hello\">>}}")]
    );
    // With the time to live of the datagram.
    b.set(opt::RECVTTL, 1);
    a.send(&datagram);
    assert_eq!(
        b.got(1),
        [format!(
            "{{udp,S,{{127,0,0,1}},{p},[{{ttl,64}}],<<\"hello\">>}}"
        )]
    );
    let mut ttl = datagram.clone();
    ttl.splice(7..11, [0, 0, 0, 5, opt::TTL, 0, 0, 0, 9]);
    taken(a.me);
    a.send(&ttl);
    assert_eq!(a.got(1), ["{inet_reply,S,ok}"]);
    assert_eq!(
        b.got(1),
        [format!(
            "{{udp,S,{{127,0,0,1}},{p},[{{ttl,9}}],<<\"hello\">>}}"
        )]
    );
}
