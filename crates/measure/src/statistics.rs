//! Summaries of measured numbers, and comparisons of two commands.
//!
//! Each run of one command is paired with each run of the other, as a ratio; the median ratio is
//! reported. If both commands draw their numbers from one distribution, the count of ratios above
//! one is that of the rank-sum test (Mann and Whitney), so the ratios between two ranks of that
//! test contain the true ratio with a known confidence (Hodges and Lehmann). An interval that
//! contains one is called noise. Nothing is assumed about the distribution, and an outlier counts
//! as one number among others.

/// The confidence of a verdict on two commands. With more commands, the error probability is
/// divided among the comparisons.
pub const CONFIDENCE: f64 = 0.99;

/// A summary of one quantity for one command.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub min: f64,
    pub median: f64,
    /// `None` if a number is zero.
    pub geometric_mean: Option<f64>,
    pub max: f64,
    /// The interquartile range divided by the median; `None` if that is zero.
    pub spread: Option<f64>,
}

impl Summary {
    /// `None` if there are no numbers.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let median = quantile(&sorted, 0.5);
        let positive = min > 0.0;
        let logs: f64 = sorted.iter().map(|v| v.ln()).sum();
        Some(Summary {
            min,
            median,
            geometric_mean: positive.then(|| (logs / sorted.len() as f64).exp()),
            max,
            spread: (median > 0.0)
                .then(|| (quantile(&sorted, 0.75) - quantile(&sorted, 0.25)) / median),
        })
    }
}

/// The quantile, interpolated linearly between its neighbours.
fn quantile(sorted: &[f64], at: f64) -> f64 {
    let place = at * (sorted.len() - 1) as f64;
    let low = sorted[place.floor() as usize];
    let high = sorted[place.ceil() as usize];
    low + (high - low) * place.fract()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Less,
    More,
    /// The difference may be chance.
    Noise,
    /// There are too few runs to show any difference.
    TooFew,
}

/// A comparison of one command's numbers with another's.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub ratio: f64,
    /// The interval that contains the true ratio with the requested confidence; `None` if there are
    /// too few numbers.
    pub interval: Option<(f64, f64)>,
    pub verdict: Verdict,
}

/// Compares `other` with `base`. `None` if there are no numbers, or one is zero and ratios mean
/// nothing.
pub fn compare(base: &[f64], other: &[f64], confidence: f64) -> Option<Comparison> {
    if base.is_empty() || other.is_empty() || base.iter().chain(other).any(|v| *v <= 0.0) {
        return None;
    }
    let pairs = base.iter().flat_map(|b| other.iter().map(move |o| o / b));
    let mut ratios: Vec<f64> = pairs.collect();
    ratios.sort_by(f64::total_cmp);
    let ratio = quantile(&ratios, 0.5);
    let rank = critical_rank(base.len(), other.len(), (1.0 - confidence) / 2.0);
    let interval = rank.map(|rank| (ratios[rank - 1], ratios[ratios.len() - rank]));
    let verdict = match interval {
        None => Verdict::TooFew,
        Some((_, high)) if high < 1.0 => Verdict::Less,
        Some((low, _)) if low > 1.0 => Verdict::More,
        Some(_) => Verdict::Noise,
    };
    Some(Comparison {
        ratio,
        interval,
        verdict,
    })
}

/// The confidence for each of several comparisons, such that all of them are right with
/// [`CONFIDENCE`].
pub fn confidence_of_each(comparisons: usize) -> f64 {
    1.0 - (1.0 - CONFIDENCE) / comparisons.max(1) as f64
}

/// The minimum number of runs of each of two commands for a verdict.
pub fn least_runs(confidence: f64) -> usize {
    (1..)
        .find(|n| critical_rank(*n, *n, (1.0 - confidence) / 2.0).is_some())
        .unwrap_or_default()
}

/// The rank, from either end, of the ratio at which the interval ends: the largest such that fewer
/// ratios than that have a probability of at most `tail`. `None` if even no ratio is more likely
/// than that.
fn critical_rank(n: usize, m: usize, tail: f64) -> Option<usize> {
    /// With more numbers on each side, the normal distribution is accurate enough.
    const EXACT: usize = 40;
    if n > EXACT || m > EXACT {
        let (n, m) = (n as f64, m as f64);
        let deviation = (n * m * (n + m + 1.0) / 12.0).sqrt();
        let rank = (n * m / 2.0 - normal_quantile(tail) * deviation).floor();
        return (rank >= 1.0).then_some(rank as usize);
    }
    let counts = counts(n, m);
    let total: f64 = counts.iter().sum();
    let mut below = 0.0;
    let rank = counts
        .iter()
        .take_while(|count| {
            below += **count / total;
            below <= tail
        })
        .count();
    (rank > 0).then_some(rank)
}

/// The number of orders of `n` and `m` different numbers, by the count of pairs whose first is
/// larger.
fn counts(n: usize, m: usize) -> Vec<f64> {
    // `row[i]`: for i numbers of the first kind and the numbers of the second kind processed so
    // far.
    let mut row: Vec<Vec<f64>> = (0..=n).map(|_| vec![1.0]).collect();
    for j in 1..=m {
        for i in 1..=n {
            // The largest is of the first kind, and larger than all j, or it is of the second.
            let mut sums = vec![0.0; i * j + 1];
            row[i].iter().enumerate().for_each(|(u, c)| sums[u] += c);
            let first = row[i - 1].iter().enumerate();
            first.for_each(|(u, c)| sums[u + j] += c);
            row[i] = sums;
        }
    }
    row.swap_remove(n)
}

/// The distance from the mean, in standard deviations, above which a share of `tail` lies.
fn normal_quantile(tail: f64) -> f64 {
    // By bisection: the share is a decreasing function of the distance.
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if share_above(middle) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The share of a normal distribution above a distance of at least zero, by Laplace's continued
/// fraction or, near zero, by a series.
fn share_above(x: f64) -> f64 {
    let density = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if x < 2.5 {
        let (mut term, mut sum) = (x, x);
        for k in 1..100 {
            term *= x * x / f64::from(2 * k + 1);
            sum += term;
        }
        return 0.5 - density * sum;
    }
    let mut fraction = x;
    for k in (1..200).rev() {
        fraction = x + f64::from(k) / fraction;
    }
    density / fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries() {
        assert_eq!(Summary::of(&[]), None);
        let one = Summary::of(&[4.0]).expect("there is one");
        assert_eq!((one.min, one.median, one.max), (4.0, 4.0, 4.0));
        assert_eq!(one.spread, Some(0.0));
        let s = Summary::of(&[8.0, 1.0, 2.0, 4.0]).expect("there are four");
        assert_eq!((s.min, s.median, s.max), (1.0, 3.0, 8.0));
        let mean = s.geometric_mean.expect("none is zero");
        assert!((mean - 8f64.sqrt()).abs() < 1e-12, "{mean}");
        // Quartiles at 1.75 and 5.
        assert!((s.spread.expect("median") - 3.25 / 3.0).abs() < 1e-12);
        let zero = Summary::of(&[0.0, 0.0, 1.0]).expect("there are three");
        assert_eq!((zero.geometric_mean, zero.spread), (None, None));
    }

    #[test]
    fn orders_are_counted() {
        assert_eq!(counts(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
        assert_eq!(counts(1, 3), [1.0; 4]);
        let all: f64 = counts(5, 5).iter().sum();
        assert_eq!(all, 252.0);
    }

    /// Tables of the rank-sum test list the largest significant count, which is one less.
    #[test]
    fn critical_ranks_are_those_of_tables() {
        for (n, m, two_sided, count) in [
            (5, 5, 0.05, 2),
            (5, 5, 0.01, 0),
            (10, 10, 0.05, 23),
            (10, 10, 0.01, 16),
            (8, 12, 0.01, 15),
            (20, 20, 0.05, 127),
            (20, 20, 0.01, 105),
        ] {
            assert_eq!(
                critical_rank(n, m, two_sided / 2.0),
                Some(count + 1),
                "{n} {m}"
            );
        }
        assert_eq!(critical_rank(4, 4, 0.005), None);
        assert_eq!(least_runs(0.99), 5);
        assert!(least_runs(confidence_of_each(4)) > 5);
        // Where one method takes over from the other, both give about the same.
        let exact = critical_rank(40, 40, 0.005).expect("exact") as f64;
        let normal = 800.0 - normal_quantile(0.005) * (1600.0f64 * 81.0 / 12.0).sqrt();
        assert!((exact - normal).abs() < 3.0, "{exact} {normal}");
        assert!((normal_quantile(0.005) - 2.575_829).abs() < 1e-5);
        assert!((normal_quantile(0.025) - 1.959_964).abs() < 1e-5);
    }

    /// A generator whose numbers are the same in each run of the test.
    fn random(seed: &mut u64) -> f64 {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        (*seed >> 11) as f64 / (1u64 << 53) as f64
    }

    #[test]
    fn what_is_the_same_is_noise_and_what_differs_is_not() {
        let mut seed = 0x2545_f491_4f6c_dd1d;
        let mut draw = |factor: f64| -> Vec<f64> {
            let noisy =
                |s: &mut u64| factor * (1.0 + 0.1 * random(s) + 3.0 * f64::from(random(s) > 0.9));
            (0..12).map(|_| noisy(&mut seed)).collect()
        };
        let mut wrong = 0;
        for _ in 0..1000 {
            let (a, b) = (draw(1.0), draw(1.0));
            let c = compare(&a, &b, CONFIDENCE).expect("is there");
            wrong += usize::from(c.verdict != Verdict::Noise);
        }
        // The confidence promises one in a hundred.
        assert!(wrong <= 20, "{wrong} of 1000");
        let mut found = 0;
        for _ in 0..100 {
            let (a, b) = (draw(1.0), draw(1.3));
            let c = compare(&a, &b, CONFIDENCE).expect("is there");
            found += usize::from(c.verdict == Verdict::More && (c.ratio - 1.3).abs() < 0.1);
        }
        assert!(found >= 80, "{found} of 100");
    }

    #[test]
    fn comparisons_of_few_equal_and_no_numbers() {
        let verdict = |a: &[f64], b: &[f64]| compare(a, b, CONFIDENCE).map(|c| c.verdict);
        assert_eq!(verdict(&[], &[1.0]), None);
        assert_eq!(verdict(&[0.0, 1.0], &[1.0]), None);
        assert_eq!(verdict(&[1.0; 4], &[2.0; 4]), Some(Verdict::TooFew));
        assert_eq!(verdict(&[1.0; 5], &[2.0; 5]), Some(Verdict::More));
        assert_eq!(verdict(&[2.0; 5], &[1.0; 5]), Some(Verdict::Less));
        assert_eq!(verdict(&[1.0; 50], &[1.0; 50]), Some(Verdict::Noise));
        let c = compare(&[2.0; 5], &[1.0; 5], CONFIDENCE).expect("is there");
        assert_eq!((c.ratio, c.interval), (0.5, Some((0.5, 0.5))));
    }
}
