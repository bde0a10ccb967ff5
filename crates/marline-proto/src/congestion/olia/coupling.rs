//! The growth of each of several paths (Khalili et al., IEEE/ACM ToN 2013, section IV).

use std::time::Duration;

/// The measure of the best path; l is the number of bytes delivered between two losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OliaMetric {
    /// l / rtt², as in the paper and the implementations.
    #[default]
    PerSquaredRtt,
    /// l² / rtt, as in an early draft.
    SquaredPerRtt,
}

/// The state of a path as the others see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OliaPath {
    /// The window, in any unit that is the same for all paths.
    pub window: f64,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// Bytes acknowledged between the last two losses, l1.
    pub between_losses: u64,
    /// Bytes acknowledged since the last loss, l2.
    pub since_loss: u64,
}

impl OliaPath {
    fn seconds(&self) -> f64 {
        self.rtt.max(Duration::from_nanos(1)).as_secs_f64()
    }

    /// The window over the round-trip time.
    fn rate(&self) -> f64 {
        self.window / self.seconds()
    }

    fn score(&self, metric: OliaMetric) -> f64 {
        let bytes = self.between_losses.max(self.since_loss) as f64;
        let rtt = self.seconds();
        match metric {
            OliaMetric::PerSquaredRtt => bytes / (rtt * rtt),
            OliaMetric::SquaredPerRtt => bytes * bytes / rtt,
        }
    }
}

/// The coupling of a connection's paths, except those without a round-trip sample.
#[derive(Clone, Copy, Debug)]
pub struct OliaCoupling {
    metric: OliaMetric,
    paths: f64,
    /// The sum of all paths' rates.
    rate: f64,
    largest_window: f64,
    best_score: f64,
    /// Number of paths with the largest window: M.
    largest: f64,
    /// Number of best paths that are not among these: B \ M.
    collected: f64,
}

impl OliaCoupling {
    /// The coupling of `paths`.
    pub fn of(paths: &[OliaPath], metric: OliaMetric) -> Self {
        let most = |value: &dyn Fn(&OliaPath) -> f64| paths.iter().map(value).fold(0.0, f64::max);
        let mut coupling = Self {
            metric,
            paths: paths.len() as f64,
            rate: paths.iter().map(OliaPath::rate).sum(),
            largest_window: most(&|path| path.window),
            best_score: most(&|path| path.score(metric)),
            largest: 0.0,
            collected: 0.0,
        };
        for path in paths {
            if coupling.is_largest(path) {
                coupling.largest += 1.0;
            } else if coupling.is_best(path) {
                coupling.collected += 1.0;
            }
        }
        coupling
    }

    /// Whether no path has a larger window: it is in M.
    pub fn is_largest(&self, path: &OliaPath) -> bool {
        path.window >= self.largest_window
    }

    /// Whether no path delivers better: it is in B.
    pub fn is_best(&self, path: &OliaPath) -> bool {
        path.score(self.metric) >= self.best_score
    }

    /// The part of the growth of `path`, one of them, that shifts traffic, in datagrams a round trip: best
    /// paths with small windows gain what the largest windows lose. The sum over all paths is 0.
    pub fn alpha(&self, path: &OliaPath) -> f64 {
        if self.collected == 0.0 {
            0.0
        } else if self.is_largest(path) {
            -1.0 / (self.paths * self.largest)
        } else if self.is_best(path) {
            1.0 / (self.paths * self.collected)
        } else {
            0.0
        }
    }

    /// The growth of `path`, one of them, in datagrams a round trip, in any unit of windows; 1 is Reno's
    /// growth.
    pub fn growth(&self, path: &OliaPath) -> f64 {
        let part = path.rate() / self.rate;
        part * part + self.alpha(path)
    }

    /// The growth of the window of `path`, one of them, for each acknowledged datagram, in datagrams, if
    /// windows are in datagrams.
    pub fn increase(&self, path: &OliaPath) -> f64 {
        self.growth(path) / path.window
    }
}
