//! Connections and datagrams between machines: time on the way, cuts, resets and losses of power.

use purlin_world::net::{
    Epoll, Family, HUP, IN, MachineId, Net, OUT, RDHUP, SocketId, Speed, Watch,
};
use purlin_world::streams::{Stream, Use};
use purlin_world::{Errno, Refusal};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const A: MachineId = MachineId(1);
const B: MachineId = MachineId(2);
const C: MachineId = MachineId(3);

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// Latency of the links below.
const WAY: u64 = 5 * MS;

fn ip(machine: MachineId) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, machine.0 as u8).into()
}

fn net() -> Net {
    let mut net = Net::new(Stream::new(1, 0, 0, Use::Links));
    for machine in [A, B, C] {
        net.add_machine(machine, vec![ip(machine)]);
    }
    let speed = Speed {
        latency: WAY,
        ..Speed::NETWORK
    };
    for (from, to) in [(A, B), (B, A), (A, C), (C, A), (B, C), (C, B)] {
        net.set_speed(from, to, speed);
    }
    net
}

fn wait(net: &mut Net, time: u64) {
    net.run_until(net.now() + time);
}

fn listener(net: &mut Net, machine: MachineId, backlog: usize) -> (SocketId, SocketAddr) {
    let socket = net.tcp(machine, Family::V4);
    net.listen(socket, backlog).expect("a free port");
    let port = net.name(socket).expect("its name").port();
    (socket, SocketAddr::new(ip(machine), port))
}

/// Makes a connection from A to B, and returns both ends.
fn connection(net: &mut Net) -> (SocketId, SocketId) {
    let (listener, at) = listener(net, B, 5);
    let client = net.tcp(A, Family::V4);
    assert_eq!(net.connect(client, at), Err(Errno::EINPROGRESS.into()));
    wait(net, 4 * WAY);
    assert_eq!(net.connect(client, at), Ok(()));
    (client, net.accept(listener).expect("a connection").0)
}

#[test]
fn each_step_takes_a_links_time() {
    let mut net = net();
    let (listener, at) = listener(&mut net, B, 5);
    let client = net.tcp(A, Family::V4);
    assert_eq!(net.connect(client, at), Err(Errno::EINPROGRESS.into()));
    wait(&mut net, 2 * WAY - 1);
    assert_eq!(
        (net.ready(client), net.connect(client, at)),
        (Ok(0), Err(Errno::EALREADY.into()))
    );
    wait(&mut net, 1);
    assert_eq!((net.ready(client), net.ready(listener)), (Ok(OUT), Ok(0)));
    assert_eq!(net.accept(listener), Err(Errno::EAGAIN.into()));
    wait(&mut net, WAY);
    let (server, from) = net.accept(listener).expect("a connection");
    assert_eq!((from.ip(), net.name(client)), (ip(A), Ok(from)));
    assert_eq!((net.name(server), net.peer_name(client)), (Ok(at), Ok(at)));
    assert_eq!(net.send(client, b"hello"), Ok(5));
    wait(&mut net, WAY - 1);
    assert_eq!(net.recv(server, 9), Err(Errno::EAGAIN.into()));
    wait(&mut net, 1);
    assert_eq!(net.recv(server, 9), Ok(b"hello".to_vec()));
    // Without a listener the answer takes the way back, too.
    let other = net.tcp(C, Family::V4);
    let nowhere = SocketAddr::new(ip(B), 1025);
    assert_eq!(net.connect(other, nowhere), Err(Errno::EINPROGRESS.into()));
    wait(&mut net, 2 * WAY - 1);
    assert_eq!(net.take_error(other), Ok(None));
    wait(&mut net, 1);
    assert_eq!(net.take_error(other), Ok(Some(Errno::ECONNREFUSED)));
    let third = net.tcp(C, Family::V4);
    let no_machine = SocketAddr::new(ip(MachineId(99)), 1025);
    assert_eq!(
        net.connect(third, no_machine),
        Err(Errno::EHOSTUNREACH.into())
    );
}

#[test]
fn bytes_keep_their_order_whatever_the_jitter() {
    let mut net = net();
    let speed = Speed {
        latency: WAY,
        jitter: 20 * WAY,
        bandwidth: 0,
    };
    net.set_speed(A, B, speed);
    let (listener, at) = listener(&mut net, B, 5);
    let client = net.tcp(A, Family::V4);
    assert_eq!(net.connect(client, at), Err(Errno::EINPROGRESS.into()));
    wait(&mut net, SECOND / 2);
    let server = net.accept(listener).expect("a connection").0;
    let sent: Vec<u8> = (0..200).collect();
    for byte in &sent {
        assert_eq!(net.send(client, &[*byte]), Ok(1));
        wait(&mut net, MS);
    }
    net.close(client).expect("a socket");
    wait(&mut net, SECOND);
    assert_eq!(net.recv(server, 999), Ok(sent));
    assert_eq!(net.recv(server, 999), Ok(vec![]));
}

#[test]
fn bandwidth_delays_what_is_sent() {
    let mut net = net();
    let (client, server) = connection(&mut net);
    let speed = Speed {
        latency: WAY,
        jitter: 0,
        bandwidth: 1_000_000,
    };
    net.set_speed(A, B, speed);
    // A hundred thousand bytes take 100 ms, and those behind them another 100.
    for _ in 0..2 {
        assert_eq!(net.send(client, &[7; 100_000]), Ok(100_000));
    }
    wait(&mut net, 100 * MS + WAY - 1);
    assert_eq!(net.recv(server, 1), Err(Errno::EAGAIN.into()));
    wait(&mut net, 1);
    assert_eq!(net.recv(server, 1 << 20).map(|d| d.len()), Ok(100_000));
    wait(&mut net, 100 * MS - 1);
    assert_eq!(net.recv(server, 1), Err(Errno::EAGAIN.into()));
    wait(&mut net, 1);
    assert_eq!(net.recv(server, 1 << 20).map(|d| d.len()), Ok(100_000));
}

#[test]
fn a_sender_without_a_reader_gets_eagain_and_is_woken() {
    let mut net = net();
    let (client, server) = connection(&mut net);
    let mut sent = 0;
    let full = loop {
        match net.send(client, &[1; 10_000]) {
            Ok(n) => sent += n,
            Err(e) => break e,
        }
        wait(&mut net, WAY);
    };
    assert_eq!(full, Errno::EAGAIN.into());
    assert_eq!(sent, 512 << 10);
    assert_eq!(net.ready(client).map(|r| r & OUT), Ok(0));
    let mut epoll = Epoll::default();
    let watch = Watch {
        events: OUT,
        edge: true,
        once: false,
    };
    epoll.add(&net, client, watch).expect("a socket");
    assert_eq!(epoll.wait(&net), []);
    let mut received = 0;
    while received < sent {
        received += net.recv(server, 100_000).expect("bytes").len();
        wait(&mut net, 2 * WAY);
    }
    assert_eq!(epoll.wait(&net), [(client, OUT)]);
    assert_eq!(epoll.wait(&net), []);
    assert_eq!(net.send(client, b"x"), Ok(1));
}

#[test]
fn a_cut_holds_bytes_and_loses_datagrams() {
    let mut net = net();
    let (client, server) = connection(&mut net);
    let (a, b) = (net.udp(A, Family::V4), net.udp(B, Family::V4));
    net.bind(b, SocketAddr::new(ip(B), 0)).expect("a free port");
    let to = net.name(b).expect("its name");
    net.send(client, b"1").expect("room");
    net.part(&[A], &[B, C]);
    net.send(client, b"2").expect("room");
    assert_eq!(net.send_datagram(a, b"lost", Some(to)), Ok(4));
    wait(&mut net, 100 * SECOND);
    assert_eq!(net.recv(server, 9), Err(Errno::EAGAIN.into()));
    net.send(client, b"3").expect("room");
    net.send(server, b"back").expect("room");
    // One direction alone heals.
    net.heal(B, A);
    wait(&mut net, WAY);
    assert_eq!(net.recv(client, 9), Ok(b"back".to_vec()));
    assert_eq!(net.recv(server, 9), Err(Errno::EAGAIN.into()));
    net.heal(A, B);
    net.send(client, b"4").expect("room");
    assert_eq!(net.send_datagram(a, b"sent", Some(to)), Ok(4));
    wait(&mut net, WAY - 1);
    assert_eq!(net.recv(server, 9), Err(Errno::EAGAIN.into()));
    wait(&mut net, 1);
    assert_eq!(net.recv(server, 9), Ok(b"1234".to_vec()));
    assert_eq!(net.recv_datagram(b, 9).map(|d| d.1), Ok(b"sent".to_vec()));
    assert_eq!(net.recv_datagram(b, 9), Err(Errno::EAGAIN.into()));
}

#[test]
fn a_connection_is_made_after_a_cut_or_not_at_all() {
    let mut net = net();
    let (listener, at) = listener(&mut net, B, 5);
    net.part(&[A], &[B]);
    let (client, late) = (net.tcp(A, Family::V4), net.tcp(A, Family::V4));
    assert_eq!(net.connect(client, at), Err(Errno::EINPROGRESS.into()));
    // Sent again after 1, 3, 7 and 15 seconds.
    wait(&mut net, 10 * SECOND);
    net.join(&[A], &[B]);
    wait(&mut net, 5 * SECOND - 1);
    assert_eq!(net.accept(listener), Err(Errno::EAGAIN.into()));
    wait(&mut net, 4 * WAY);
    assert!(net.accept(listener).is_ok());
    assert_eq!(net.connect(client, at), Ok(()));
    net.part(&[A], &[B]);
    assert_eq!(net.connect(late, at), Err(Errno::EINPROGRESS.into()));
    wait(&mut net, 127 * SECOND - 1);
    assert_eq!(net.connect(late, at), Err(Errno::EALREADY.into()));
    wait(&mut net, 1);
    assert_eq!(net.connect(late, at), Err(Errno::ETIMEDOUT.into()));
}

#[test]
fn a_reset_reaches_each_end_after_its_link() {
    let mut net = net();
    let (client, server) = connection(&mut net);
    net.send(client, b"x").expect("room");
    net.reset(client).expect("a connection");
    wait(&mut net, WAY - 1);
    let lost = Err(Errno::ECONNRESET.into());
    assert_eq!(net.recv(client, 9), Err(Errno::EAGAIN.into()));
    wait(&mut net, 1);
    assert_eq!(net.recv(client, 9), lost);
    assert_eq!(net.send(client, b"y"), Err(Errno::EPIPE.into()));
    // What had left before is read first.
    assert_eq!(net.recv(server, 9), Ok(b"x".to_vec()));
    assert_eq!(net.recv(server, 9), lost);
}

#[test]
fn a_reset_in_a_cut_leaves_a_half_open_connection() {
    let mut net = net();
    let (client, server) = connection(&mut net);
    net.part(&[A], &[B]);
    net.set_aborts(client, true).expect("a socket");
    net.close(client).expect("a socket");
    wait(&mut net, SECOND);
    net.join(&[A], &[B]);
    wait(&mut net, SECOND);
    assert_eq!(net.recv(server, 9), Err(Errno::EAGAIN.into()));
    // The server learns it when it sends.
    assert_eq!(net.send(server, b"x"), Ok(1));
    wait(&mut net, 2 * WAY);
    assert_eq!(net.recv(server, 9), Err(Errno::ECONNRESET.into()));
}

#[test]
fn a_machine_without_power_says_nothing() {
    let mut net = net();
    let (client, server) = connection(&mut net);
    net.machine_stops(B);
    assert_eq!(net.send(server, b"x"), Err(Errno::EBADF.into()));
    assert_eq!(net.send(client, b"x"), Ok(1));
    wait(&mut net, SECOND);
    assert_eq!(net.ready(client), Ok(OUT));
    net.machine_starts(B);
    assert_eq!(net.send(client, b"y"), Ok(1));
    wait(&mut net, 2 * WAY);
    assert_eq!(net.recv(client, 9), Err(Errno::ECONNRESET.into()));
    // Its ports are free again.
    assert!(net.tcp(B, Family::V4) != server);
}

#[test]
fn a_full_backlog_delays_connections() {
    let mut net = net();
    let (listener, at) = listener(&mut net, B, 1);
    let clients: Vec<SocketId> = (0..3).map(|_| net.tcp(A, Family::V4)).collect();
    for client in &clients {
        assert_eq!(net.connect(*client, at), Err(Errno::EINPROGRESS.into()));
    }
    wait(&mut net, SECOND / 2);
    let made = |net: &Net| clients.iter().filter(|c| net.ready(**c) == Ok(OUT)).count();
    assert_eq!(made(&net), 2);
    assert!(net.accept(listener).is_ok());
    wait(&mut net, SECOND);
    assert_eq!(made(&net), 3);
}

#[test]
fn a_port_is_kept_for_a_minute_by_the_end_that_closed_first() {
    let mut net = net();
    let (listener, at) = listener(&mut net, B, 5);
    let client = net.tcp(A, Family::V4);
    assert_eq!(net.connect(client, at), Err(Errno::EINPROGRESS.into()));
    wait(&mut net, SECOND);
    let (server, _) = net.accept(listener).expect("a connection");
    net.close(listener).expect("a socket");
    net.close(server).expect("a socket");
    wait(&mut net, WAY);
    assert_eq!(net.ready(client), Ok(IN | OUT | RDHUP));
    net.close(client).expect("a socket");
    wait(&mut net, SECOND);
    let again = net.tcp(B, Family::V4);
    assert_eq!(net.bind(again, at), Err(Errno::EADDRINUSE.into()));
    wait(&mut net, 60 * SECOND);
    assert_eq!(net.bind(again, at), Ok(()));
    assert_eq!(net.ready(again), Ok(OUT | HUP));
}

#[test]
fn what_is_not_known_is_refused() {
    let mut net = net();
    let (client, _) = connection(&mut net);
    let udp = net.udp(A, Family::V4);
    let refused = |answer: Result<(), Refusal>| matches!(answer, Err(Refusal::NotModelled(_)));
    let both = purlin_world::net::Direction::Both;
    assert!(refused(net.shutdown(udp, both)));
    let fresh = net.tcp(A, Family::V4);
    assert!(refused(net.shutdown(fresh, both)));
    assert!(refused(net.bind(fresh, SocketAddr::new(ip(A), 80))));
    assert!(refused(net.connect(udp, SocketAddr::new(ip(B), 0))));
    assert!(refused(
        net.connect(udp, "224.0.0.1:2000".parse().expect("an address"))
    ));
    assert!(net.recv_datagram(client, 1).is_err());
}

/// The same seed gives the same run, another one a different one.
#[test]
fn a_seed_decides_everything() {
    let run = |seed| {
        let mut net = Net::new(Stream::new(seed, 0, 0, Use::Links));
        let mut log = Vec::new();
        for machine in [A, B, C] {
            net.add_machine(machine, vec![ip(machine)]);
        }
        let speed = Speed {
            latency: MS,
            jitter: 3 * MS,
            bandwidth: 1_000_000,
        };
        for (from, to) in [(A, B), (B, A), (C, B), (B, C)] {
            net.set_speed(from, to, speed);
        }
        let (listener, at) = listener(&mut net, B, 50);
        let clients: Vec<_> = (0..20)
            .map(|n| net.tcp(if n % 2 == 0 { A } else { C }, Family::V4))
            .collect();
        for client in clients {
            let _ = net.connect(client, at);
        }
        while let Some(next) = net.next_time().filter(|t| *t < SECOND) {
            net.run_until(next);
            while let Ok((new, from)) = net.accept(listener) {
                log.push((net.now(), from, net.send(new, &[1; 500])));
            }
        }
        log
    };
    assert_eq!(run(7).len(), 20);
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

/// Whatever cuts come and go, each byte arrives once and in its order, and then the end.
#[test]
fn cuts_that_heal_lose_no_byte() {
    for seed in 0..150 {
        let mut numbers = Stream::from_state(seed);
        let mut net = net();
        let all = [A, B, C];
        let any = |numbers: &mut Stream| all[numbers.below(3) as usize];
        for _ in 0..3 {
            let speed = Speed {
                latency: numbers.below(20 * MS),
                jitter: numbers.below(50 * MS),
                bandwidth: numbers.below(3) * 100_000,
            };
            net.set_speed(any(&mut numbers), any(&mut numbers), speed);
        }
        let mut pairs = Vec::new();
        for _ in 0..4 {
            let (from, to) = (any(&mut numbers), any(&mut numbers));
            let (listener, at) = listener(&mut net, to, 5);
            let client = net.tcp(from, Family::V4);
            assert_eq!(net.connect(client, at), Err(Errno::EINPROGRESS.into()));
            wait(&mut net, SECOND);
            let server = net.accept(listener).expect("a connection").0;
            pairs.push((client, server, Vec::<u8>::new(), Vec::<u8>::new()));
        }
        for step in 0..120u32 {
            let (from, to) = (any(&mut numbers), any(&mut numbers));
            match numbers.below(6) {
                0 => net.cut(from, to),
                1 => net.heal(from, to),
                _ => {}
            }
            let which = numbers.below(4) as usize;
            let (client, server, sent, received) = &mut pairs[which];
            let data = vec![step as u8; numbers.below(30_000) as usize];
            match net.send(*client, &data) {
                Ok(n) => sent.extend(&data[..n]),
                Err(e) => assert_eq!(e, Errno::EAGAIN.into()),
            }
            if let Ok(data) = net.recv(*server, numbers.below(50_000) as usize + 1) {
                received.extend(data);
            }
            wait(&mut net, numbers.below(100 * MS));
        }
        for (from, to) in all.iter().flat_map(|a| all.map(|b| (*a, b))) {
            net.heal(from, to);
        }
        for (client, ..) in &pairs {
            net.close(*client).expect("a socket");
        }
        for (_, server, sent, received) in &mut pairs {
            loop {
                match net.recv(*server, 1 << 20) {
                    Ok(data) if data.is_empty() => break,
                    Ok(data) => received.extend(data),
                    Err(e) => assert_eq!(e, Errno::EAGAIN.into(), "seed {seed}"),
                }
                wait(&mut net, SECOND);
                assert!(net.now() < 10_000 * SECOND, "seed {seed}: no end");
            }
            assert!(sent == received, "seed {seed}: other bytes");
        }
    }
}
