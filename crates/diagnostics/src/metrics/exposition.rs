//! Families of samples: as the text of an answer, in the format of OpenMetrics 1.0 or in
//! Prometheus's text format 0.0.4, or as messages of OTLP.
//!
//! The texts differ in three points. A counter's family has no `_total` in OpenMetrics; a family
//! without a type is `unknown` there and `untyped` in Prometheus; OpenMetrics ends with `# EOF`.
//!
//! In OTLP a counter is a cumulative sum since the start, and everything that has no type is a
//! gauge. Names are those of OpenMetrics.

use crate::protobuf::Message;
use std::fmt::{self, Display, Write};

/// A format of answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    OpenMetrics,
    Prometheus,
}

impl Format {
    /// Returns the format for an `Accept` header: OpenMetrics if the client names it.
    pub fn accepted(header: Option<&str>) -> Format {
        let mut kinds = header.unwrap_or_default().split(',');
        match kinds.any(|k| k.trim().starts_with("application/openmetrics-text")) {
            true => Format::OpenMetrics,
            false => Format::Prometheus,
        }
    }

    /// The media type, without a character set.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0",
            Format::Prometheus => "text/plain; version=0.0.4",
        }
    }
}

/// Types of families.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// Only rises. The name of its samples ends in `_total`.
    Counter,
    Gauge,
    Histogram,
    /// No type is given: for names that others chose, which the rules for types forbid.
    Unknown,
}

/// A sample's value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    Int(u64),
    Float(f64),
}

impl From<usize> for Value {
    fn from(n: usize) -> Value {
        Value::Int(n as u64)
    }
}
impl From<u64> for Value {
    fn from(n: u64) -> Value {
        Value::Int(n)
    }
}
impl From<bool> for Value {
    fn from(b: bool) -> Value {
        Value::Int(b.into())
    }
}
impl From<f64> for Value {
    fn from(x: f64) -> Value {
        Value::Float(x)
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Value::Int(n) => n.fmt(f),
            Value::Float(x) => x.fmt(f),
        }
    }
}

/// Names and values of labels.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// The times of samples in OTLP, in nanoseconds since 1970: the start of what is counted, and now.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub start: u64,
    pub now: u64,
}

/// A family as a message, while samples are added.
struct Metric {
    kind: Type,
    /// Name, description and unit.
    head: Message,
    points: Message,
    empty: bool,
}

/// Families that are being written.
pub struct Exposition {
    format: Format,
    text: String,
    /// For OTLP, which has no text.
    otlp: Option<(Times, Vec<Metric>)>,
}

/// A family to which samples are added.
pub struct Family<'a> {
    to: &'a mut Exposition,
    name: &'a str,
    suffix: &'static str,
}

impl Exposition {
    pub fn new(format: Format) -> Exposition {
        Exposition {
            format,
            text: String::with_capacity(32 << 10),
            otlp: None,
        }
    }

    /// For OTLP: see [`Exposition::metrics`].
    pub fn otlp(times: Times) -> Exposition {
        Exposition {
            format: Format::OpenMetrics,
            text: String::new(),
            otlp: Some((times, Vec::new())),
        }
    }

    /// Begins a family. `name` has no `_total` if it is a counter.
    pub fn family<'a>(&'a mut self, name: &'a str, kind: Type, help: &str) -> Family<'a> {
        let suffix = match kind {
            Type::Counter => "_total",
            _ => "",
        };
        let (told, word) = match (self.format, kind) {
            (Format::OpenMetrics, Type::Counter) => ("", "counter"),
            (Format::Prometheus, Type::Counter) => ("_total", "counter"),
            (_, Type::Gauge) => ("", "gauge"),
            (_, Type::Histogram) => ("", "histogram"),
            (Format::OpenMetrics, Type::Unknown) => ("", "unknown"),
            (Format::Prometheus, Type::Unknown) => ("", "untyped"),
        };
        match &mut self.otlp {
            Some((_, all)) => all.push(Metric::new(name, kind, help)),
            // Writing to a String cannot fail.
            None => drop(write!(
                self.text,
                "# HELP {name}{told} {help}\n# TYPE {name}{told} {word}\n"
            )),
        }
        Family {
            to: self,
            name,
            suffix,
        }
    }

    /// A family with one sample that has no labels.
    pub fn one(&mut self, name: &str, kind: Type, help: &str, value: impl Into<Value>) {
        self.family(name, kind, help).sample(&[], value);
    }

    /// The messages `Metric` of OTLP.
    pub fn metrics(self) -> Vec<Message> {
        let (_, all) = self
            .otlp
            .unwrap_or((Times { start: 0, now: 0 }, Vec::new()));
        let full = all.into_iter().filter(|m| !m.empty);
        full.map(Metric::finish).collect()
    }

    /// The whole text.
    pub fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

const CUMULATIVE: u64 = 2;

impl Metric {
    fn new(name: &str, kind: Type, help: &str) -> Metric {
        let ends = |unit: &str| name.trim_end_matches("_total").ends_with(unit);
        let unit = match () {
            () if ends("_bytes") => "By",
            () if ends("_milliseconds") => "ms",
            () if ends("_seconds") => "s",
            () => "",
        };
        let mut head = Message::default();
        head.text(1, name).text(2, help).text(3, unit);
        Metric {
            kind,
            head,
            points: Message::default(),
            empty: true,
        }
    }
    fn point(&mut self, m: Message) {
        self.points.message(1, m);
        self.empty = false;
    }
    fn finish(mut self) -> Message {
        let number = match self.kind {
            Type::Counter => {
                self.points.number(2, CUMULATIVE).number(3, 1);
                7
            }
            Type::Gauge | Type::Unknown => 5,
            Type::Histogram => {
                self.points.number(2, CUMULATIVE);
                9
            }
        };
        self.head.message(number, self.points);
        self.head
    }
}

/// Adds labels as attributes, and times.
fn begin_point(m: &mut Message, attributes: u64, labels: Labels, times: Times) {
    for (key, value) in labels {
        let (mut v, mut pair) = (Message::default(), Message::default());
        v.text(1, value);
        pair.text(1, key).message(2, v);
        m.message(attributes, pair);
    }
    m.fixed(2, times.start).fixed(3, times.now);
}

impl Family<'_> {
    /// Adds a sample.
    pub fn sample(&mut self, labels: Labels, value: impl Into<Value>) -> &mut Self {
        let suffix = self.suffix;
        let value = value.into();
        if let Some((times, all)) = &mut self.to.otlp {
            let mut m = Message::default();
            begin_point(&mut m, 7, labels, *times);
            match value {
                Value::Int(n) => m.fixed(6, n),
                Value::Float(x) => m.float(4, x),
            };
            if let Some(family) = all.last_mut() {
                family.point(m);
            }
            return self;
        }
        self.line(suffix, labels, None, value);
        self
    }

    /// Adds a histogram: pairs of an upper bound and the number of observations above the bound
    /// before, the number above all bounds, and the sum of all observations if it is known.
    pub fn histogram(
        &mut self,
        labels: Labels,
        classes: impl IntoIterator<Item = (f64, u64)>,
        above: u64,
        sum: Option<f64>,
    ) -> &mut Self {
        if let Some((times, all)) = &mut self.to.otlp {
            let (bounds, mut counts): (Vec<f64>, Vec<u64>) = classes.into_iter().unzip();
            counts.push(above);
            let mut m = Message::default();
            begin_point(&mut m, 9, labels, *times);
            m.fixed(4, counts.iter().sum());
            if let Some(sum) = sum {
                m.float(5, sum);
            }
            m.packed_fixed(6, counts.into_iter());
            m.packed_fixed(7, bounds.into_iter().map(f64::to_bits));
            if let Some(family) = all.last_mut() {
                family.point(m);
            }
            return self;
        }
        let mut count = 0;
        for (bound, n) in classes {
            count += n;
            let bound = format!("{bound:?}");
            self.line("_bucket", labels, Some(&bound), count.into());
        }
        count += above;
        self.line("_bucket", labels, Some("+Inf"), count.into());
        self.line("_count", labels, None, count.into());
        if let Some(sum) = sum {
            self.line("_sum", labels, None, sum.into());
        }
        self
    }

    fn line(&mut self, suffix: &str, labels: Labels, bound: Option<&str>, value: Value) {
        let text = &mut self.to.text;
        text.push_str(self.name);
        text.push_str(suffix);
        let bound = bound.map(|b| ("le", b));
        let mut begin = '{';
        for (name, value) in labels.iter().copied().chain(bound) {
            let _ = write!(text, "{begin}{name}=\"");
            escape(text, value);
            text.push('"');
            begin = ',';
        }
        if begin == ',' {
            text.push('}');
        }
        let _ = writeln!(text, " {value}");
    }
}

/// Appends a label's value with its special characters escaped.
fn escape(text: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(format: Format) -> String {
        let mut e = Exposition::new(format);
        e.one("a_bytes", Type::Counter, "Bytes.", 7_usize);
        e.family("b_total", Type::Unknown, "Others' name.")
            .sample(&[("kind", "x\"\\\ny")], 1.5);
        e.family("c_seconds", Type::Histogram, "Waits.").histogram(
            &[("kind", "ready")],
            [(0.000001, 2), (1.0, 3)],
            4,
            Some(20.25),
        );
        e.finish()
    }

    #[test]
    fn formats_are_those_of_their_specifications() {
        let common = "b_total{kind=\"x\\\"\\\\\\ny\"} 1.5\n\
            # HELP c_seconds Waits.\n# TYPE c_seconds histogram\n\
            c_seconds_bucket{kind=\"ready\",le=\"1e-6\"} 2\n\
            c_seconds_bucket{kind=\"ready\",le=\"1.0\"} 5\n\
            c_seconds_bucket{kind=\"ready\",le=\"+Inf\"} 9\n\
            c_seconds_count{kind=\"ready\"} 9\n\
            c_seconds_sum{kind=\"ready\"} 20.25\n";
        assert_eq!(
            text(Format::Prometheus),
            format!(
                "# HELP a_bytes_total Bytes.\n# TYPE a_bytes_total counter\na_bytes_total 7\n\
                 # HELP b_total Others' name.\n# TYPE b_total untyped\n{common}"
            )
        );
        assert_eq!(
            text(Format::OpenMetrics),
            format!(
                "# HELP a_bytes Bytes.\n# TYPE a_bytes counter\na_bytes_total 7\n\
                 # HELP b_total Others' name.\n# TYPE b_total unknown\n{common}# EOF\n"
            )
        );
    }

    #[test]
    fn a_client_chooses_the_format() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
        assert_eq!(Format::accepted(Some(prometheus)), Format::OpenMetrics);
        assert_eq!(Format::accepted(Some("text/plain")), Format::Prometheus);
        assert_eq!(Format::accepted(None), Format::Prometheus);
    }
}
