//! Messages with codes.

/// Returns a message without its code, which its first line must have.
pub fn without_code(message: &str) -> String {
    let (first, rest) = message.split_at(message.find('\n').unwrap_or(message.len()));
    let (text, code) = first.rsplit_once(" [").unwrap_or((first, ""));
    let code = code.strip_suffix(']').unwrap_or(code);
    let known = purlin_messages::Code::of_word(code).and_then(purlin_messages::Code::row);
    assert!(known.is_some(), "no code: {message}");
    format!("{text}{rest}")
}
