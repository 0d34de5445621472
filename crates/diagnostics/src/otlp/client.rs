//! The part of HTTP/1.1 that sends to a collector: one request per connection.

use purlin_kernel::options::HttpUrl;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Time limits: for a connection, and for a request and its response.
const CONNECT_TIME_LIMIT: Duration = Duration::from_secs(5);
const REQUEST_TIME_LIMIT: Duration = Duration::from_secs(10);
/// Maximum size of a response, in bytes.
const MOST_BYTES: usize = 64 << 10;
/// Maximum number of seconds that a response may ask to wait.
const MOST_SECONDS: u64 = 3600;

/// A response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// How long the next request should wait.
    pub retry_after: Option<Duration>,
    pub body: Vec<u8>,
}

/// Sends a protocol buffer, and returns the response.
pub fn post(to: &HttpUrl, path: &str, body: &[u8]) -> io::Result<Response> {
    let mut stream = connect(to)?;
    stream.set_write_timeout(Some(REQUEST_TIME_LIMIT))?;
    let head = format!(
        "POST {}{path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: purlin/{}\r\n\
         Content-Type: application/x-protobuf\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        to.path,
        to.authority(),
        env!("CARGO_PKG_VERSION"),
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    response(&mut stream)
}

fn connect(to: &HttpUrl) -> io::Result<TcpStream> {
    let mut last = io::ErrorKind::NotFound.into();
    for address in (to.host.as_str(), to.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIME_LIMIT) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// Reads a response, up to its length or the end of the connection. The time limit also holds if it
/// arrives byte by byte.
fn response(stream: &mut TcpStream) -> io::Result<Response> {
    let until = Instant::now() + REQUEST_TIME_LIMIT;
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        if let Some(whole) = parse(&bytes, false) {
            return Ok(whole);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(n) => bytes.extend_from_slice(&part[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(e) => return Err(e),
        }
        if bytes.len() > MOST_BYTES {
            break;
        }
    }
    parse(&bytes, true).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The response in these bytes. `None` if it is malformed, or has not arrived yet. `ended`: nothing
/// more will arrive.
fn parse(bytes: &[u8], ended: bool) -> Option<Response> {
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let body = &bytes[end + 4..];
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    if !words.next()?.starts_with("HTTP/1.") {
        return None;
    }
    let status = words.next()?.parse().ok()?;
    let headers: Vec<(&str, &str)> = lines.filter_map(|l| l.split_once(':')).collect();
    let number = |name: &str| {
        let mut named = headers.iter().filter(|h| h.0.eq_ignore_ascii_case(name));
        named.next()?.1.trim().parse::<u64>().ok()
    };
    let length = number("content-length").map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    if !ended && length.is_none_or(|n| body.len() < n) {
        return None;
    }
    let seconds = number("retry-after").map(|n| n.min(MOST_SECONDS));
    Some(Response {
        status,
        retry_after: seconds.map(Duration::from_secs),
        body: body[..length.unwrap_or(body.len()).min(body.len())].to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_read_when_they_are_whole() {
        let text = b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\ncontent-length: 2\r\n\r\nnomore";
        for end in 0..text.len() - 4 {
            assert!(parse(&text[..end], false).is_none(), "{end}");
        }
        let r = parse(text, false).expect("is whole");
        assert_eq!(
            (r.status, r.retry_after, &r.body[..]),
            (503, Some(Duration::from_secs(7)), &b"no"[..])
        );
        // Without a length it ends with the connection.
        let text = b"HTTP/1.0 200 OK\r\n\r\nall";
        assert!(parse(text, false).is_none());
        assert_eq!(parse(text, true).expect("is whole").body, b"all");
        for text in [
            &b""[..],
            b"HTTP/1.1 200",
            b"SSH-2.0\r\n\r\n",
            b"HTTP/1.1 x\r\n\r\n",
        ] {
            assert!(parse(text, true).is_none());
        }
    }
}
