//! Requests a page from an HTTP server at a rate that does not depend on its response times, and
//! reports their latencies:
//!
//!     cargo run --release -p purlin-measure --example http_rate -- \
//!         PORT PATH RATE CONNECTIONS SECONDS
//!
//! Each connection has its requests due at fixed, evenly spread times. A latency counts from when
//! the request was due, so requests that wait behind a late response are late, too. The first
//! second is not counted. One thread does everything; `behind` is the longest time between two of
//! its looks at the connections, which bounds the accuracy of the other figures.
//!
//! With a rate of 0 each connection sends the next request as soon as it has a response. `others`
//! is then the number of responses on all connections between a request and its own response. It
//! measures fairness independently of the machine's load: it equals the number of connections if
//! they are served in the order of their requests.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

struct Connection {
    stream: TcpStream,
    /// When the next request is due and when the current one was, and the number of responses
    /// before that.
    due: Instant,
    asked: Option<(Instant, usize)>,
    /// The received part of the response's head, and the remaining bytes of its body, once known.
    head: Vec<u8>,
    left: Option<usize>,
}

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [port, path, rate, connections, seconds] = &args[..] else {
        eprintln!("usage: http_rate PORT PATH RATE CONNECTIONS SECONDS");
        std::process::exit(2);
    };
    let number = |s: &String| s.parse::<u32>().map_err(std::io::Error::other);
    let (rate, count) = (number(rate)?, number(connections)?.max(1));
    let seconds = Duration::from_secs(u64::from(number(seconds)?));
    let port = u16::try_from(number(port)?).map_err(std::io::Error::other)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let each = (Duration::from_secs(1) * count).checked_div(rate);
    let mut all = Vec::new();
    for _ in 0..count {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let now = Instant::now();
        all.push(Connection {
            stream,
            due: now,
            asked: None,
            head: Vec::new(),
            left: None,
        });
    }
    let start = Instant::now();
    for (i, c) in (0..).zip(&mut all) {
        c.due = start + each.unwrap_or_default() * i / count;
    }
    let warm = start + Duration::from_secs(1);
    let end = warm + seconds;
    let mut took: Vec<Duration> = Vec::new();
    let mut others: Vec<usize> = Vec::new();
    let mut answers = 0;
    let mut behind = Duration::ZERO;
    let mut room = vec![0; 1 << 18];
    let mut fds: Vec<libc::pollfd> = Vec::new();
    let mut looked = Instant::now();
    loop {
        let now = Instant::now();
        if now > end {
            break;
        }
        for c in &mut all {
            if c.asked.is_none() && c.due <= now {
                c.stream.write_all(request.as_bytes())?;
                c.asked = Some((c.due, answers));
                c.due = each.map_or(now, |e| c.due + e);
            }
        }
        let next = all
            .iter()
            .filter(|c| c.asked.is_none())
            .map(|c| c.due)
            .min();
        let wait = next
            .unwrap_or(end)
            .saturating_duration_since(Instant::now());
        fds.clear();
        fds.extend(all.iter().map(|c| libc::pollfd {
            fd: if c.asked.is_some() {
                c.stream.as_raw_fd()
            } else {
                -1
            },
            events: libc::POLLIN,
            revents: 0,
        }));
        // Waits of less than a millisecond are busy.
        let wait = wait.as_millis().min(100) as i32;
        behind = behind.max(looked.elapsed());
        // SAFETY: that many entries, which live during the call.
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, wait) };
        looked = Instant::now();
        for (c, f) in all.iter_mut().zip(&fds) {
            if f.revents != 0 && answered(c, &mut room)? {
                let now = Instant::now();
                answers += 1;
                if let Some((due, before)) = c.asked.take()
                    && due > warm
                {
                    took.push(now - due);
                    others.push(answers - before);
                }
                c.due = each.map_or(now, |_| c.due);
            }
        }
    }
    took.sort();
    let at = |share: f64| {
        took.get(((took.len() as f64) * share) as usize)
            .or(took.last())
    };
    let ms = |t: Option<&Duration>| t.map_or(0.0, |t| t.as_secs_f64() * 1000.0);
    // Requests without a response count as well.
    let open = all.iter().filter(|c| {
        c.asked
            .is_some_and(|(d, _)| d > warm && d + seconds / 2 < end)
    });
    println!(
        "{:.0} answers/s, ms: p50 {:.2} p90 {:.2} p99 {:.2} p99.9 {:.2} max {:.2}; behind {:.2}; open {}",
        took.len() as f64 / seconds.as_secs_f64(),
        ms(at(0.5)),
        ms(at(0.9)),
        ms(at(0.99)),
        ms(at(0.999)),
        ms(took.last()),
        behind.as_secs_f64() * 1000.0,
        open.count()
    );
    if rate == 0 {
        others.sort_unstable();
        let at = |share: f64| others.get(((others.len() as f64) * share) as usize);
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|p| at(p).copied().unwrap_or(0));
        let most = others.last().copied().unwrap_or(0);
        println!("others: p50 {p50} p99 {p99} p99.9 {p999} max {most}");
    }
    Ok(())
}

/// Reads what has arrived. Returns whether the response is complete.
fn answered(c: &mut Connection, room: &mut [u8]) -> std::io::Result<bool> {
    loop {
        let n = match c.stream.read(room) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(e),
        };
        let body = match c.left {
            Some(left) => left.checked_sub(n),
            None => {
                c.head.extend_from_slice(&room[..n]);
                let Some(end) = c.head.windows(4).position(|w| w == b"\r\n\r\n") else {
                    continue;
                };
                let head = String::from_utf8_lossy(&c.head[..end]);
                let mut lines = head.lines().map(str::to_ascii_lowercase);
                let length =
                    lines.find_map(|l| l.strip_prefix("content-length:")?.trim().parse().ok());
                let length: usize = length.ok_or(ErrorKind::InvalidData)?;
                length.checked_sub(c.head.len() - end - 4)
            }
        };
        c.left = Some(body.ok_or(ErrorKind::InvalidData)?);
        if c.left == Some(0) {
            c.left = None;
            c.head.clear();
            return Ok(true);
        }
    }
}
