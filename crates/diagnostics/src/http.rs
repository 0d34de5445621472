//! The part of HTTP/1.1 that pages and metrics need: one request without a body per connection, and
//! its response.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// Maximum size of a request, in bytes.
const MOST_BYTES: usize = 8 << 10;
/// Time limit for a request to arrive.
const ARRIVAL_TIME_LIMIT: Duration = Duration::from_secs(5);
/// The request.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// The part after `?`, undecoded.
    pub query: String,
    headers: Vec<(String, String)>,
}

impl Request {
    /// A header that occurs exactly once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self
            .headers
            .iter()
            .filter(|(n, _)| n.eq_ignore_ascii_case(name));
        let value = found.next().map(|(_, v)| v.as_str());
        value.filter(|_| found.next().is_none())
    }
}

/// The reason why there is no request: a status and its text, or `None` if there is nobody to tell.
pub type Refused = Option<(u16, &'static str)>;

/// Reads a request. The time limit also holds if it arrives byte by byte.
pub fn read(from: &mut impl Read) -> Result<Request, Refused> {
    let begun = Instant::now();
    let mut bytes = Vec::new();
    let mut part = [0; 2048];
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break end;
        }
        if bytes.len() > MOST_BYTES {
            return Err(Some((431, "the request is too large")));
        }
        if begun.elapsed() > ARRIVAL_TIME_LIMIT {
            return Err(Some((408, "the request took too long")));
        }
        match from.read(&mut part) {
            Ok(0) if bytes.is_empty() => return Err(None),
            Ok(0) => return Err(Some((400, "the request ends early"))),
            Ok(n) => bytes.extend_from_slice(&part[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(Some((408, "the request took too long"))),
        }
    };
    let request = parse(&bytes[..end]).map_err(Some)?;
    let length = request.header("content-length").unwrap_or("0");
    let chunked = request
        .headers
        .iter()
        .any(|(n, _)| n.eq_ignore_ascii_case("transfer-encoding"));
    if length != "0" || chunked {
        return Err(Some((413, "no request here has a body")));
    }
    Ok(request)
}

fn parse(head: &[u8]) -> Result<Request, (u16, &'static str)> {
    const WRONG: (u16, &str) = (400, "the request is malformed");
    let text = std::str::from_utf8(head).map_err(|_| WRONG)?;
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(WRONG);
    };
    let printable = |t: &str| t.bytes().all(|b| b.is_ascii_graphic());
    if !version.starts_with("HTTP/1.") || method.is_empty() || !printable(target) {
        return Err(WRONG);
    }
    if !target.starts_with('/') {
        return Err(WRONG);
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(WRONG)?;
        if name.is_empty() || !printable(name) || value.contains(['\r', '\n', '\0']) {
            return Err(WRONG);
        }
        headers.push((name.to_string(), value.trim().to_string()));
    }
    Ok(Request {
        method: method.to_string(),
        path: path.to_string(),
        query: query.to_string(),
        headers,
    })
}

/// A response.
pub struct Answer {
    pub status: u16,
    pub kind: &'static str,
    pub body: String,
    /// The allowed sources of scripts and styles, for the page itself.
    pub policy: Option<String>,
}

impl Answer {
    pub fn json(status: u16, body: String) -> Answer {
        Answer {
            status,
            kind: "application/json",
            body,
            policy: None,
        }
    }
    pub fn text(status: u16, body: String) -> Answer {
        Answer {
            kind: "text/plain",
            ..Answer::json(status, body)
        }
    }
    /// Writes the response, after which the connection is closed.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let policy = self.policy.as_deref().unwrap_or("default-src 'none'");
        let head = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nContent-Security-Policy: {policy}\r\nX-Content-Type-Options: nosniff\r\n\
             X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
             Cross-Origin-Opener-Policy: same-origin\r\n\r\n",
            self.status,
            reason(self.status),
            self.kind,
            self.body.len(),
        );
        to.write_all(head.as_bytes())?;
        to.write_all(self.body.as_bytes())?;
        to.flush()
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        410 => "Gone",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(text: &[u8]) -> u16 {
        match read(&mut &text[..]) {
            Ok(_) => 200,
            Err(Some((status, _))) => status,
            Err(None) => 0,
        }
    }

    #[test]
    fn requests_are_read() {
        let text =
            b"GET /api/processes?sort=memory&filter=a%20b HTTP/1.1\r\nHost: a:1\r\nX: y \r\n\r\n";
        let r = read(&mut &text[..]).expect("is one");
        assert_eq!(
            (r.method.as_str(), r.path.as_str()),
            ("GET", "/api/processes")
        );
        assert_eq!(r.query, "sort=memory&filter=a%20b");
        assert_eq!(r.header("host"), Some("a:1"));
        assert_eq!(r.header("x"), Some("y"));
        assert_eq!(r.header("y"), None);
        let twice = b"GET / HTTP/1.1\r\nHost: a:1\r\nHost: b:1\r\n\r\n";
        assert_eq!(read(&mut &twice[..]).expect("is one").header("host"), None);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (text, expected) in [
            (&b""[..], 0),
            (b"\r\n\r\n", 400),
            (b"GET", 400),
            (b"GET / HTTP/1.1\r\n", 400),
            (b"GET /\r\n\r\n", 400),
            (b"GET / HTTP/2\r\n\r\n", 400),
            (b"GET  / HTTP/1.1\r\n\r\n", 400),
            (b"GET http://a/ HTTP/1.1\r\n\r\n", 400),
            (b"GET /\x01 HTTP/1.1\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nno header\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\n: x\r\n\r\n", 400),
            (b"GET /\xff HTTP/1.1\r\n\r\n", 400),
            (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
            (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 413),
            (
                b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                413,
            ),
        ] {
            assert_eq!(status(text), expected, "{}", String::from_utf8_lossy(text));
        }
        let mut long = b"GET /".to_vec();
        long.extend(vec![b'x'; 1 << 20]);
        assert_eq!(status(&long), 431);
    }
}
