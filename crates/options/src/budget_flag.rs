//! The argument of `+Fbudget`: who gets a budget, and its limits.

use super::OverMessages;

/// A budget for an application, or for what a registered process starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetFlag {
    /// Whether `name` is that of an application; otherwise a process registers it.
    pub application: bool,
    pub name: String,
    /// Limits; `None` for no limit.
    pub memory: Option<u64>,
    /// Percentage of one processor.
    pub cpu: Option<u64>,
    pub cpu_weight: Option<u64>,
    pub processes: Option<u64>,
    pub messages: Option<u64>,
    pub atoms: Option<u64>,
    pub ports: Option<u64>,
    pub tables: Option<u64>,
    pub over_messages: OverMessages,
}

/// Reads a number with an optional suffix `k`, `m` or `g`.
fn amount(s: &str, suffix: bool) -> Option<u64> {
    let (digits, shift) = match s.as_bytes().last()?.to_ascii_lowercase() {
        b'k' if suffix => (&s[..s.len() - 1], 10),
        b'm' if suffix => (&s[..s.len() - 1], 20),
        b'g' if suffix => (&s[..s.len() - 1], 30),
        _ => (s, 0),
    };
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let n: u64 = digits.parse().ok()?;
    n.checked_mul(1 << shift)
        .filter(|&n| i64::try_from(n).is_ok_and(|n| n < i64::MAX))
}

/// Reads the argument: `app:NAME` or `name:NAME`, then `LIMIT=N`, separated by commas.
pub(super) fn read(text: &str) -> Option<BudgetFlag> {
    let mut parts = text.split(',');
    let (kind, name) = parts.next()?.split_once(':')?;
    let application = match kind {
        "app" => true,
        "name" => false,
        _ => return None,
    };
    if name.is_empty() || name.chars().count() > 255 {
        return None;
    }
    let mut b = BudgetFlag {
        application,
        name: name.to_owned(),
        memory: None,
        cpu: None,
        cpu_weight: None,
        processes: None,
        messages: None,
        atoms: None,
        ports: None,
        tables: None,
        over_messages: OverMessages::Wait,
    };
    for part in parts {
        let (key, value) = part.split_once('=')?;
        let limit = match key {
            "memory" => {
                b.memory = Some(amount(value, true)?);
                continue;
            }
            "cpu" => {
                b.cpu = Some(amount(value, false).filter(|n| (1..=100_000).contains(n))?);
                continue;
            }
            "cpu_weight" => {
                b.cpu_weight = Some(amount(value, false).filter(|n| (1..=10_000).contains(n))?);
                continue;
            }
            "over_messages" => {
                b.over_messages = OverMessages::from_word(value)?;
                continue;
            }
            "processes" => &mut b.processes,
            "messages" => &mut b.messages,
            "atoms" => &mut b.atoms,
            "ports" => &mut b.ports,
            "tables" => &mut b.tables,
            _ => return None,
        };
        *limit = Some(amount(value, false)?);
    }
    Some(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read() {
        let b = read("app:shop,memory=64m,processes=10,over_messages=drop").expect("valid");
        assert!(b.application && b.name == "shop" && b.memory == Some(64 << 20));
        assert!(b.processes == Some(10) && b.over_messages == OverMessages::Drop);
        assert!(b.messages.is_none());
        assert!(!read("name:worker").expect("no limits").application);
        for bad in [
            "",
            "shop",
            "app:",
            "app:a,",
            "app:a,memory",
            "app:a,memory=-1",
            "app:a,memory=1t",
            "app:a,processes=1k",
            "app:a,size=1",
            "app:a,over_messages=keep",
            "app:a,cpu_weight=0",
            "app:a,cpu_weight=10001",
            "pid:a",
            "app:a,memory=99999999999g",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
