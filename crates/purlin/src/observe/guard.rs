//! Access control of the page.
//!
//! The printed address has a token after `#`, which browsers do not send. The page exchanges the
//! token for a key, which it keeps and sends with each request. It is not a cookie, since other
//! servers on this machine would get that. The token works once, so an address found later, in a
//! history or among the arguments of a browser, is useless.
//!
//! Other pages can neither read the answers nor send the key. Another name for this address (DNS
//! rebinding) does not help them: the requested host must be a name of the loopback device.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Mutex;

/// Bytes of a token or key.
const TOKEN_BYTES: usize = 24;

/// A random secret in hexadecimal digits.
pub fn secret() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let mut text = String::new();
    for b in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{b:02x}");
    }
    Ok(text)
}

/// Compares two texts in constant time.
pub fn same(a: &str, b: &str) -> bool {
    let differences = a.bytes().zip(b.bytes()).fold(0, |d, (a, b)| d | (a ^ b));
    std::hint::black_box(differences) == 0 && a.len() == b.len()
}

/// The key that the page must send.
pub struct Guard {
    token: Mutex<Option<String>>,
    key: String,
    port: u16,
}

impl Guard {
    pub fn new(port: u16) -> io::Result<Guard> {
        Ok(Guard {
            token: Mutex::new(Some(secret()?)),
            key: secret()?,
            port,
        })
    }
    /// The token, until it is used.
    pub fn token(&self) -> Option<String> {
        self.token.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
    /// The key in exchange for the token, once.
    pub fn exchange(&self, token: &str) -> Option<&str> {
        let mut t = self.token.lock().unwrap_or_else(|e| e.into_inner());
        t.take_if(|t| same(t, token)).map(|_| self.key.as_str())
    }
    /// Whether the authorization of a request is the key.
    pub fn admits(&self, authorization: Option<&str>) -> bool {
        let key = authorization.and_then(|a| a.strip_prefix("Bearer "));
        key.is_some_and(|k| same(k, &self.key))
    }
    /// Whether the requested host is this server.
    pub fn is_own_host(&self, host: Option<&str>) -> bool {
        let Some((name, port)) = host.and_then(|h| h.rsplit_once(':')) else {
            return false;
        };
        (name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost"))
            && port == self.port.to_string()
    }
    /// Whether a request comes from the page itself, if it names its origin.
    pub fn is_own_origin(&self, origin: Option<&str>) -> bool {
        origin.is_none_or(|o| self.is_own_host(o.strip_prefix("http://")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_once_and_a_key_always() {
        let guard = Guard::new(4040).expect("there are random numbers");
        let token = guard.token().expect("is there");
        assert_eq!(token.len(), 2 * TOKEN_BYTES);
        assert_ne!(token, secret().expect("there are random numbers"));
        for wrong in ["", "x", &token[1..], &format!("{token}0")] {
            assert_eq!(guard.exchange(wrong), None, "{wrong}");
        }
        let key = guard.exchange(&token).expect("is given").to_string();
        assert_eq!(guard.exchange(&token), None);
        assert_eq!(guard.token(), None);
        assert!(guard.admits(Some(&format!("Bearer {key}"))));
        for wrong in [
            None,
            Some(""),
            Some("Bearer "),
            Some(&*key),
            Some(&*format!("Bearer {token}")),
        ] {
            assert!(!guard.admits(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn other_names_and_origins_are_not_this_host() {
        let guard = Guard::new(4040).expect("there are random numbers");
        for host in ["127.0.0.1:4040", "localhost:4040", "LocalHost:4040"] {
            assert!(guard.is_own_host(Some(host)), "{host}");
            assert!(
                guard.is_own_origin(Some(&format!("http://{host}"))),
                "{host}"
            );
        }
        assert!(guard.is_own_origin(None));
        for host in [
            "",
            "127.0.0.1",
            "127.0.0.1:4041",
            "evil.example:4040",
            "localhost.evil:4040",
            "127.0.0.1:04040",
            "0.0.0.0:4040",
        ] {
            assert!(!guard.is_own_host(Some(host)), "{host}");
            assert!(
                !guard.is_own_origin(Some(&format!("http://{host}"))),
                "{host}"
            );
        }
        assert!(!guard.is_own_host(None));
        assert!(!guard.is_own_origin(Some("null")));
        assert!(!guard.is_own_origin(Some("https://127.0.0.1:4040")));
    }
}
