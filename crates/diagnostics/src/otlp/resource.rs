//! The resource: the node that sends, as a collector knows it.

use crate::protobuf::Message;
use purlin_kernel::options;
use purlin_term::{atom, node};

/// Maximum number of attributes, and of bytes of each, that the environment may give.
const MOST_ATTRIBUTES: usize = 128;
const MOST_BYTES: usize = 1024;

/// An attribute's value.
enum Value {
    Text(String),
    Int(u64),
}

/// A resource: the attributes by which a collector knows the node. Its name may change while it
/// runs, so this is made each time.
pub fn resource() -> Message {
    let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let name = node::is_alive().then(|| atom::name(node::this_name()).to_string());
    let mut all = own(name.as_deref());
    let mut set = |key: &str, value: Value| {
        all.retain(|(k, _)| k != key);
        all.push((key.to_string(), value));
    };
    for (key, value) in listed(&variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default()) {
        set(&key, Value::Text(value));
    }
    if let Some(service) = variable("OTEL_SERVICE_NAME") {
        set("service.name", Value::Text(service));
    }
    let mut m = Message::default();
    for (key, value) in &all {
        let value = match value {
            Value::Text(text) => {
                let mut v = Message::default();
                v.text(1, text);
                v
            }
            Value::Int(n) => {
                let mut v = Message::default();
                v.number(3, *n);
                v
            }
        };
        m.message(1, key_value(key, value));
    }
    m
}

/// A key and an `AnyValue`.
pub fn key_value(key: &str, value: Message) -> Message {
    let mut m = Message::default();
    m.text(1, key).message(2, value);
    m
}

/// The attributes that no variable of the environment gives, in a node of that name.
fn own(name: Option<&str>) -> Vec<(String, Value)> {
    let release = std::env::var("RELEASE_NAME").ok();
    let short = name.and_then(|n| n.split('@').next());
    let service = short.or(release.as_deref().filter(|r| !r.is_empty()));
    let otp = options::try_current().map_or("", |o| o.otp.version.as_str());
    let version = env!("CARGO_PKG_VERSION");
    let mut all = vec![
        (
            "service.name",
            Value::Text(service.unwrap_or("unknown_service:purlin").into()),
        ),
        ("host.name", Value::Text(host_name())),
        ("process.pid", Value::Int(std::process::id().into())),
        ("process.runtime.name", Value::Text("purlin".into())),
        ("process.runtime.version", Value::Text(version.into())),
        (
            "process.runtime.description",
            Value::Text(format!("Purlin {version} with Erlang/OTP {otp}")),
        ),
        ("telemetry.sdk.name", Value::Text("purlin".into())),
        ("telemetry.sdk.language", Value::Text("erlang".into())),
        ("telemetry.sdk.version", Value::Text(version.into())),
    ];
    if let Some(name) = name {
        all.push(("service.instance.id", Value::Text(name.into())));
    }
    all.into_iter().map(|(k, v)| (k.to_string(), v)).collect()
}

fn host_name() -> String {
    let mut bytes = [0u8; 256];
    // SAFETY: writes at most that many bytes to the array. The last stays 0.
    let done = unsafe { libc::gethostname(bytes.as_mut_ptr().cast(), bytes.len() - 1) };
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(0);
    match done {
        0 => String::from_utf8_lossy(&bytes[..end]).into_owned(),
        _ => String::new(),
    }
}

/// The attributes in a value of `OTEL_RESOURCE_ATTRIBUTES`: `key=value`, separated by commas, with
/// percent-encoded values. Those that are malformed are left out.
fn listed(text: &str) -> Vec<(String, String)> {
    let one = |pair: &str| {
        let (key, value) = pair.split_once('=')?;
        let value = decoded(value.trim())?;
        let key = key.trim();
        let fits = !key.is_empty() && key.len() <= MOST_BYTES && value.len() <= MOST_BYTES;
        fits.then(|| (key.to_string(), value))
    };
    text.split(',')
        .filter_map(one)
        .take(MOST_ATTRIBUTES)
        .collect()
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&b, more)) = rest.split_first() {
        rest = more;
        if b != b'%' {
            bytes.push(b);
            continue;
        }
        let (digits, more) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        let known = digits.bytes().all(|d| d.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| known)?);
        rest = more;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_the_environment_are_decoded() {
        let pair = |k: &str, v: &str| (k.to_string(), v.to_string());
        assert_eq!(
            listed("a=b, deployment.environment.name=in%20use ,x,=y,z=%zz,k="),
            [
                pair("a", "b"),
                pair("deployment.environment.name", "in use"),
                pair("k", "")
            ]
        );
        assert!(listed("").is_empty());
    }
}
