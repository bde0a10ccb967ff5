//! Confidence intervals by bootstrap resampling (Efron, 1979; the percentile method).

use marline_link::Seed;
use rand::Rng;

use super::quantile::{between, position};
use super::summary::mean;
use super::{Statistic, quantile};

/// Lower and upper bound.
pub type Interval = [f64; 2];

/// The 95 % confidence interval of `statistic` of the distribution of `values`. `None` for less
/// than 2 values, and for the smallest and the largest, which resampling cannot estimate.
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
            _ => Some([values[0]; 2]),
        };
    }
    let mut draws = Draws::new(values.len(), seed);
    let found = (0..resamples).map(|_| {
        sample.clear();
        draws.each(|index| sample.add(index));
        sample.statistic()
    });
    bounds(found)
}

/// The 95 % confidence interval of `statistic` of `a` divided by that of `b`. The values are
/// pairs: those at one index have the same seed, and are drawn together. `None` for less than 2 pairs,
/// and where `b` may be 0.
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
    bounds(found)
}

fn bounds(found: impl Iterator<Item = f64>) -> Option<Interval> {
    let mut found: Vec<_> = found.collect();
    found.sort_by(f64::total_cmp);
    let bounds = [quantile(&found, 0.025), quantile(&found, 0.975)];
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

    /// As many as there are values. Each takes 32 random bits: uneven by one in many millions.
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
    Quantile(usize, f64),
    Mean,
    Std,
    Cov,
}

/// A resample that is never sorted: it counts how often each value was drawn.
struct Sample {
    /// Values in order.
    sorted: Vec<f64>,
    /// The place of each value in that order.
    ranks: Vec<u32>,
    /// How often the value of each rank was drawn.
    counts: Vec<u32>,
    sum: f64,
    /// The mean of all values, from which squares are counted: sums of large squares lose digits.
    center: f64,
    squares: f64,
    target: Target,
}

fn quantile_at(last: usize, p: f64) -> Target {
    let (below, share) = position(last, p);
    Target::Quantile(below, share)
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
            Target::Quantile(below, share) => {
                let (low, seen) = self.at(below, 0, 0);
                let high = if share > 0.0 {
                    self.at(below + 1, low, seen).0
                } else {
                    low
                };
                between(self.sorted[low], self.sorted[high], share)
            }
        }
    }

    /// The standard deviation, by n - 1.
    fn deviation(&self, n: f64) -> f64 {
        let squares = self.squares - self.sum * self.sum / n;
        (squares.max(0.0) / (n - 1.0)).sqrt()
    }

    /// The rank of the drawn value at `place` among the drawn, and how many were drawn below that
    /// rank; the search begins at `rank`, with `seen` drawn below it.
    fn at(&self, place: usize, mut rank: usize, mut seen: usize) -> (usize, usize) {
        while rank + 1 < self.counts.len() && seen + self.counts[rank] as usize <= place {
            seen += self.counts[rank] as usize;
            rank += 1;
        }
        (rank, seen)
    }
}
