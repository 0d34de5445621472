//! The values of flags: words and numbers, parsed as in stock, with stock's texts for errors.

pub(crate) fn word<T>(
    from: fn(&str) -> Option<T>,
    text: &str,
    error: impl FnOnce() -> String,
) -> Result<T, String> {
    from(text).ok_or_else(error)
}

pub(crate) fn boolean(text: &str, error: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("{error} {text}"))
}

pub(crate) fn quoted_boolean(text: &str, error: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("{error} '{text}'"))
}

pub(crate) fn heap_size(text: &str) -> Result<u32, String> {
    in_range(text, &(1..=i32::MAX as u32), "bad heap size")
}

/// Parses a number at the start of `text`; ignores the text after it, as stock does.
pub(crate) fn in_range(
    text: &str,
    range: &std::ops::RangeInclusive<u32>,
    error: &str,
) -> Result<u32, String> {
    let number = c_long(text).and_then(|number| u32::try_from(number).ok());
    number
        .filter(|number| range.contains(number))
        .ok_or_else(|| format!("{error} {text}"))
}

pub(crate) fn natural(text: &str, error: &str) -> Result<u64, String> {
    c_long(text)
        .and_then(|number| u64::try_from(number).ok())
        .ok_or_else(|| format!("{error} {text}"))
}

/// Parses a number and nothing else, for flags that stock does not have.
pub(crate) fn bounded(
    text: &str,
    range: std::ops::RangeInclusive<u32>,
    error: &str,
) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| format!("{error} {text}"))
}

pub(crate) fn limit(text: &str, error: &str) -> Result<u32, String> {
    let (number, _) = scan_int(text).ok_or_else(|| format!("{error} {text}"))?;
    u32::try_from(number).map_err(|_| format!("{error} {number}"))
}

pub(crate) fn scan_range(text: &str, range: std::ops::RangeInclusive<i32>) -> Option<i32> {
    scan_int(text)
        .map(|(number, _)| number)
        .filter(|number| range.contains(number))
}

pub(crate) fn scan_or_zero(text: &str) -> i32 {
    scan_int(text).map_or(0, |(number, _)| number)
}

/// Parses `A:B`, `A` or `:B` of a count of schedulers; a missing number follows from the other.
pub(crate) fn counts(text: &str, configured: u32, online: u32) -> Option<(i32, i32)> {
    match scan_int(text) {
        None => {
            let (online, _) = scan_int(text.strip_prefix(':')?)?;
            Some((configured as i32, online))
        }
        Some((total, rest)) => match rest.strip_prefix(':').and_then(scan_int) {
            Some((online, _)) => Some((total, online)),
            None => Some((total, total.min(online as i32))),
        },
    }
}

pub(crate) fn percentages(text: &str) -> Option<(i32, i32)> {
    let pair = match scan_int(text) {
        None => (100, scan_int(text.strip_prefix(':')?)?.0),
        Some((total, rest)) => match rest.strip_prefix(':').and_then(scan_int) {
            Some((online, _)) => (total, online),
            None => (total, total.min(100)),
        },
    };
    (pair.0 >= 0 && pair.1 >= 0).then_some(pair)
}

pub(crate) fn relative(count: i32, base: u32) -> i64 {
    if count > 0 {
        i64::from(count)
    } else {
        i64::from(base) + i64::from(count)
    }
}

/// Returns the integer at the start of `text`, after white space; 0 if there is none, `None` on
/// overflow.
pub(crate) fn c_long(text: &str) -> Option<i64> {
    let text = text.trim_start();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 {
        return Some(0);
    }
    text[..text.len() - digits.len() + length].parse().ok()
}

/// Whether `text` starts with an integer.
pub(crate) fn starts_long(text: &str) -> bool {
    let text = text.trim_start();
    text.strip_prefix(['+', '-'])
        .unwrap_or(text)
        .starts_with(|c: char| c.is_ascii_digit())
}

/// Returns the `int` at the start of `text`, clamped to its range, and the rest.
pub(crate) fn scan_int(text: &str) -> Option<(i32, &str)> {
    if !starts_long(text) {
        return None;
    }
    let trimmed = text.trim_start();
    let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    let number = c_long(trimmed).unwrap_or(if trimmed.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    });
    let number = number.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
    Some((number, &digits[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_like_c_does() {
        for (text, number, rest) in [
            ("12", Some(12), ""),
            (" -7:x", Some(-7), ":x"),
            ("99999999999999999999z", Some(i32::MAX), "z"),
            ("x", None, ""),
            ("", None, ""),
            ("-", None, ""),
        ] {
            assert_eq!(
                scan_int(text),
                number.map(|number| (number, rest)),
                "{text:?}"
            );
        }
        assert_eq!(c_long("99999999999999999999"), None);
    }
}
