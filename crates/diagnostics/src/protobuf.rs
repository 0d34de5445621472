//! Protocol buffers: messages are written and read field by field. The numbers of fields are facts
//! of the formats that others define.

/// A message under construction.
#[derive(Default)]
pub struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }
    /// A whole number of variable length. Zero is written too.
    pub fn number(&mut self, field: u64, n: u64) -> &mut Self {
        self.varint(field << 3);
        self.varint(n);
        self
    }
    /// A whole number of eight bytes.
    pub fn fixed(&mut self, field: u64, n: u64) -> &mut Self {
        self.varint(field << 3 | 1);
        self.0.extend_from_slice(&n.to_le_bytes());
        self
    }
    pub fn float(&mut self, field: u64, x: f64) -> &mut Self {
        self.fixed(field, x.to_bits())
    }
    pub fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }
    pub fn text(&mut self, field: u64, text: &str) -> &mut Self {
        self.bytes(field, text.as_bytes())
    }
    pub fn message(&mut self, field: u64, m: Message) -> &mut Self {
        self.bytes(field, &m.0)
    }
    /// A repeated whole number of variable length.
    pub fn packed(&mut self, field: u64, numbers: impl Iterator<Item = u64>) -> &mut Self {
        let mut m = Message::default();
        numbers.for_each(|n| m.varint(n));
        self.bytes(field, &m.0)
    }
    /// A repeated number of eight bytes.
    pub fn packed_fixed(&mut self, field: u64, numbers: impl Iterator<Item = u64>) -> &mut Self {
        let bytes: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
        self.bytes(field, &bytes)
    }
    /// Appends the fields of another message.
    pub fn append(&mut self, m: Message) -> &mut Self {
        self.0.extend_from_slice(&m.0);
        self
    }
    /// The bytes.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// A field of a message.
pub enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message; `None` if it is damaged.
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub fn of(bytes: &'a [u8]) -> Fields<'a> {
        Fields(bytes)
    }
    fn varint(&mut self) -> Option<u64> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let (&b, rest) = self.0.split_first()?;
            self.0 = rest;
            n |= u64::from(b & 0x7f) << shift;
            if b < 0x80 {
                return Some(n);
            }
        }
        None
    }
    fn take(&mut self, n: u64) -> Option<&'a [u8]> {
        let (part, rest) = self.0.split_at_checked(usize::try_from(n).ok()?)?;
        self.0 = rest;
        Some(part)
    }
    fn field(&mut self) -> Option<(u64, Field<'a>)> {
        let tag = self.varint()?;
        let field = match tag & 7 {
            0 => Field::Number(self.varint()?),
            1 => Field::Bytes(self.take(8)?),
            2 => {
                let n = self.varint()?;
                Field::Bytes(self.take(n)?)
            }
            5 => Field::Bytes(self.take(4)?),
            _ => return None,
        };
        Some((tag >> 3, field))
    }
    /// All of them, with their numbers.
    pub fn all(mut self) -> Option<Vec<(u64, Field<'a>)>> {
        let mut all = Vec::new();
        while !self.0.is_empty() {
            all.push(self.field()?);
        }
        Some(all)
    }
}

/// The number of the last field of that number; 0 if there is none.
pub fn field(all: &[(u64, Field)], number: u64) -> u64 {
    let found = all.iter().rev().find_map(|f| match f {
        (n, Field::Number(value)) if *n == number => Some(*value),
        _ => None,
    });
    found.unwrap_or(0)
}

/// The numbers of a repeated field, packed or not.
pub fn numbers(all: &[(u64, Field)], number: u64) -> Option<Vec<u64>> {
    let mut list = Vec::new();
    for (_, f) in all.iter().filter(|f| f.0 == number) {
        match f {
            Field::Number(value) => list.push(*value),
            Field::Bytes(bytes) => {
                let mut part = Fields(bytes);
                while !part.0.is_empty() {
                    list.push(part.varint()?);
                }
            }
        }
    }
    Some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut inner = Message::default();
        inner.text(1, "a").packed(2, [1, 300, u64::MAX].into_iter());
        let mut m = Message::default();
        m.number(1, 0).fixed(2, 7).float(3, 1.5).message(4, inner);
        let bytes = m.finish();
        let all = Fields::of(&bytes).all().expect("is whole");
        assert_eq!(all.len(), 4);
        let [
            _,
            (2, Field::Bytes(seven)),
            (3, Field::Bytes(float)),
            (4, Field::Bytes(inner)),
        ] = &all[..]
        else {
            panic!("other fields")
        };
        assert_eq!(*seven, 7u64.to_le_bytes());
        assert_eq!(*float, 1.5f64.to_le_bytes());
        let inner = Fields::of(inner).all().expect("is whole");
        assert_eq!(numbers(&inner, 2), Some(vec![1, 300, u64::MAX]));
        for end in 1..bytes.len() {
            let part = Fields::of(&bytes[..end]).all();
            assert!(part.is_none_or(|p| p.len() < 4), "{end}");
        }
    }
}
