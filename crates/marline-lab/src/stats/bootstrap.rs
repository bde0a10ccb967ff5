//! Confidence intervals by bootstrap resampling (Efron, 1979): the expanded percentile method of Hesterberg ("What Teachers
//! Should Know About the Bootstrap", The American Statistician 69, 2015, section 5.3.2). Resamples of few values vary less
//! than samples do, so that plain percentiles give intervals that are too narrow.

use marline_link::Seed;
use rand::Rng;

use super::quantile::{Position, between, position};
use super::student::{critical, normal_beyond};
use super::summary::mean;
use super::{Statistic, quantile};

/// Lower and upper bound.
pub type Interval = [f64; 2];

/// The fewest values between whose extremes the true median lies with 95 % confidence: all n are on one side of it with
/// a probability of 2 * 0.5^n. Bootstrap intervals of fewer are unreliable.
pub const MIN_SURE: usize = 6;

/// The 95 % confidence interval of `statistic` of the distribution of `values`. `None` with fewer than 2
/// values, and for minimum and maximum, which resampling cannot estimate.
pub fn interval(
    values: &[f64],
    statistic: Statistic,
    resamples: usize,
    seed: Seed,
) -> Option<Interval> {
    let mut sample = Sample::of(values, statistic)?;
    if sample.is_constant() {
        return match statistic {
            Statistic::Std | Statistic::Cov => Some([0.0; 2]),
            _ => Some([values[0]; 2]).filter(|[value, _]| value.is_finite()),
        };
    }
    let mut draws = Draws::new(values.len(), seed);
    let found = (0..resamples).map(|_| {
        sample.clear();
        draws.each(|index| sample.add(index));
        sample.statistic()
    });
    bounds(found, values.len())
}

/// The 95 % confidence interval of the ratio of `statistic` of `a` to that of `b`. Values at one index are a
/// pair with the same seed, and are drawn together. `None` with fewer than 2 pairs, and if the statistic of
/// `b` may be 0.
pub fn ratio_interval(
    a: &[f64],
    b: &[f64],
    statistic: Statistic,
    resamples: usize,
    seed: Seed,
) -> Option<Interval> {
    if a.len() != b.len() {
        return None;
    }
    let (mut above, mut below) = (Sample::of(a, statistic)?, Sample::of(b, statistic)?);
    let mut draws = Draws::new(a.len(), seed);
    let found = (0..resamples).map(|_| {
        above.clear();
        below.clear();
        draws.each(|index| {
            above.add(index);
            below.add(index);
        });
        above.statistic() / below.statistic()
    });
    bounds(found, a.len())
}

/// The share of resamples of `count` values beyond each end of an interval: 2.5 % for many values, less for few.
fn beyond(count: usize) -> f64 {
    let freedom = count.saturating_sub(1).max(1);
    let larger = (count as f64 / freedom as f64).sqrt();
    normal_beyond(larger * critical(freedom))
}

/// The interval of a statistic of `count` values, which is `found` in resamples.
fn bounds(found: impl Iterator<Item = f64>, count: usize) -> Option<Interval> {
    let mut found: Vec<_> = found.collect();
    found.sort_by(f64::total_cmp);
    let beyond = beyond(count);
    let bounds = [quantile(&found, beyond), quantile(&found, 1.0 - beyond)];
    bounds
        .iter()
        .all(|bound| bound.is_finite())
        .then_some(bounds)
}

/// Indices drawn with replacement.
struct Draws {
    count: usize,
    rng: rand_pcg::Pcg64Mcg,
}

impl Draws {
    fn new(count: usize, seed: Seed) -> Self {
        Self {
            count,
            rng: seed.of("bootstrap").rng(),
        }
    }

    /// Draws as many indices as there are values. Each takes 32 random bits; the bias is below one in a
    /// million.
    fn each(&mut self, mut use_index: impl FnMut(usize)) {
        let count = self.count as u64;
        let index = |bits: u64| ((bits * count) >> 32) as usize;
        for _ in 0..self.count / 2 {
            let bits = self.rng.next_u64();
            use_index(index(bits >> 32));
            use_index(index(bits & 0xffff_ffff));
        }
        if self.count % 2 == 1 {
            use_index(index(self.rng.next_u64() >> 32));
        }
    }
}

/// A statistic of a resample.
enum Target {
    /// The value at a rank, interpolated towards the next one.
    Quantile(Position),
    Mean,
    Std,
    Cov,
}

/// A resample that is never sorted: it counts how often each value was drawn.
struct Sample {
    /// The values in ascending order.
    sorted: Vec<f64>,
    /// The rank of each value.
    ranks: Vec<u32>,
    /// The number of times that the value of each rank was drawn.
    counts: Vec<u32>,
    sum: f64,
    /// The mean of all values. Squares are of distances from it, as sums of large squares lose precision.
    center: f64,
    squares: f64,
    target: Target,
}

/// A value of a resample.
#[derive(Clone, Copy)]
struct Drawn {
    /// Its rank among all values.
    rank: usize,
    /// The number of draws of lower ranks.
    before: usize,
}

fn quantile_at(last: usize, p: f64) -> Target {
    Target::Quantile(position(last, p))
}

impl Sample {
    fn of(values: &[f64], statistic: Statistic) -> Option<Self> {
        let last = values.len().checked_sub(1).filter(|last| *last > 0)?;
        let target = match statistic {
            Statistic::Median => quantile_at(last, 0.5),
            Statistic::P95 => quantile_at(last, 0.95),
            Statistic::Mean => Target::Mean,
            Statistic::Std => Target::Std,
            Statistic::Cov => Target::Cov,
            Statistic::Min | Statistic::Max => return None,
        };
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
        let mut ranks = vec![0; values.len()];
        for (rank, &index) in order.iter().enumerate() {
            ranks[index] = u32::try_from(rank).ok()?;
        }
        Some(Self {
            sorted: order.iter().map(|&index| values[index]).collect(),
            counts: vec![0; values.len()],
            ranks,
            sum: 0.0,
            center: mean(values),
            squares: 0.0,
            target,
        })
    }

    fn is_constant(&self) -> bool {
        self.sorted.first() == self.sorted.last()
    }

    fn clear(&mut self) {
        self.counts.fill(0);
        (self.sum, self.squares) = (0.0, 0.0);
    }

    fn add(&mut self, index: usize) {
        let rank = self.ranks[index] as usize;
        match self.target {
            Target::Quantile(..) => self.counts[rank] += 1,
            Target::Mean => self.sum += self.sorted[rank],
            Target::Std | Target::Cov => {
                let deviation = self.sorted[rank] - self.center;
                self.sum += deviation;
                self.squares += deviation * deviation;
            }
        }
    }

    fn statistic(&self) -> f64 {
        let n = self.sorted.len() as f64;
        match self.target {
            Target::Mean => self.sum / n,
            Target::Std => self.deviation(n),
            Target::Cov => self.deviation(n) / (self.center + self.sum / n),
            Target::Quantile(Position { below, share }) => {
                let low = self.find(below, Drawn { rank: 0, before: 0 });
                let high = if share > 0.0 {
                    self.find(below + 1, low).rank
                } else {
                    low.rank
                };
                between(self.sorted[low.rank], self.sorted[high], share)
            }
        }
    }

    /// The standard deviation, with n - 1.
    fn deviation(&self, n: f64) -> f64 {
        let squares = self.squares - self.sum * self.sum / n;
        (squares.max(0.0) / (n - 1.0)).sqrt()
    }

    /// The drawn value at `index` of the resample in ascending order. The search begins at `from`.
    fn find(&self, index: usize, from: Drawn) -> Drawn {
        let Drawn {
            mut rank,
            mut before,
        } = from;
        while rank + 1 < self.counts.len() && before + self.counts[rank] as usize <= index {
            before += self.counts[rank] as usize;
            rank += 1;
        }
        Drawn { rank, before }
    }
}
