//! The user at the other end of a connection on the loopback device.
//!
//! The address of the page passes through other programs on its way to the browser, so other users
//! of the machine may see its token and could use it first. The system says who owns the socket at
//! the other end. Only the user, root, and the user who became root by `sudo` to start this get an
//! answer, or occupy one of the connections.
//!
//! On a system without `/proc/net` the owner is unknown, and the token is the only protection.

use std::fs;
use std::net::{SocketAddr, TcpStream};

/// The state of a socket that is open at both ends. A socket that its owner has closed belongs to
/// no process.
const ESTABLISHED: &str = "01";

/// Whether the owner of the other end is allowed to connect.
pub fn is_admitted(stream: &TcpStream) -> bool {
    let (Ok(near), Ok(far)) = (stream.local_addr(), stream.peer_addr()) else {
        return false;
    };
    let tables: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .collect();
    if tables.is_empty() {
        return true;
    }
    let owner = tables.iter().find_map(|table| owner(table, far, near));
    owner.is_some_and(may_ask)
}

fn may_ask(uid: u32) -> bool {
    // SAFETY: takes no arguments and cannot fail.
    let own = unsafe { libc::geteuid() };
    let sudo = || std::env::var("SUDO_UID").ok()?.parse::<u32>().ok();
    uid == own || uid == 0 || own == 0 && sudo() == Some(uid)
}

/// The owner of the socket `near` that is connected to `far`, according to a table of the system.
fn owner(table: &str, near: SocketAddr, far: SocketAddr) -> Option<u32> {
    let (near, far) = (names(near)?, names(far)?);
    table.lines().skip(1).find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (from, to, state) = (words.next()?, words.next()?, words.next()?);
        let is_it = near.iter().any(|n| n == from) && far.iter().any(|n| n == to);
        let uid = words.nth(3)?.parse().ok();
        uid.filter(|_| is_it && state == ESTABLISHED)
    })
}

/// The forms of an address in the tables: its words in the byte order of the processor, as IPv4 and
/// as IPv6.
fn names(address: SocketAddr) -> Option<[String; 2]> {
    let SocketAddr::V4(address) = address else {
        return None;
    };
    let word = u32::from_ne_bytes(address.ip().octets());
    let mapped = u32::from_ne_bytes([0, 0, 0xFF, 0xFF]);
    let port = address.port();
    Some([
        format!("{word:08X}:{port:04X}"),
        format!("{:016X}{mapped:08X}{word:08X}:{port:04X}", 0),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    #[cfg(target_endian = "little")]
    fn owners_are_read_from_tables() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
             0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0 20 4 30 10 -1\n   \
             1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 2 1 0 20 4 30 10 -1\n   \
             2: 0100007F:C351 0100007F:1F90 05 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1\n   \
             3: 0000000000000000FFFF00000100007F:C352 0000000000000000FFFF00000100007F:1F90 01 0:0 00:0 0  1002 0 2 1\n";
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(owner(table, at(0xC350), at(0x1F90)), Some(1001));
        assert_eq!(owner(table, at(0xC352), at(0x1F90)), Some(1002));
        // Closed by its owner; connected to another port; not there.
        assert_eq!(owner(table, at(0xC351), at(0x1F90)), None);
        assert_eq!(owner(table, at(0xC350), at(0x1F91)), None);
        assert_eq!(owner(table, at(0xC353), at(0x1F90)), None);
    }

    #[test]
    fn this_user_is_admitted_while_connected() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let address = listener.local_addr().expect("has an address");
        let client = TcpStream::connect(address).expect("connects");
        let (stream, _) = listener.accept().expect("accepts");
        assert!(is_admitted(&stream));
        drop(client);
        if std::path::Path::new("/proc/net/tcp").exists() {
            // A child that another test has just forked may hold the connection until it executes
            // its program.
            let gone = (0..500).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(10));
                !is_admitted(&stream)
            });
            assert!(gone);
        }
        assert!(may_ask(0) && !may_ask(u32::MAX));
    }
}
