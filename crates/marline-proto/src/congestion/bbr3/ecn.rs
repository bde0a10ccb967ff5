//! The part of delivered bytes that is marked Congestion Experienced.

/// Weight of a round in the average (1/16 in Linux).
const GAIN: f64 = 1.0 / 16.0;

/// The part of the bytes in flight that is removed if all are marked (a third in Linux).
const FACTOR: f64 = 1.0 / 3.0;

/// The marked part of a round above which its sending rate was too high (one half in Linux).
const TOO_HIGH: f64 = 0.5;

/// Such rounds in a row that end startup (2 in Linux).
const STARTUP_ROUNDS: u32 = 2;

/// Marks of a round, and their average over rounds.
///
/// The draft has no response of its own to ECN and requires marks to count as congestion (section 3.7). This is Linux's:
/// the bytes in flight are reduced in proportion to the marked part, so that one mark among many packets costs little.
/// Linux does so on paths of at most 5 ms whose marks are known to mean a short queue; here it applies to every path. The
/// average begins with the first mark, at the full reduction.
///
/// A mark of a packet with ECT(0) also counts as its loss (RFC 3168, section 5): it replaced a drop. Marks of packets
/// with ECT(1) come from a short queue, and are frequent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    /// The average part that is marked; `None` before the first mark.
    average: Option<f64>,
    /// Bytes marked since the round began.
    bytes: u64,
    /// Those of them whose marks count as losses.
    like_lost: u64,
    /// Bytes delivered when it began.
    delivered: u64,
    /// Whether this round has unanswered marks.
    in_round: bool,
    /// Whether one of them counts as a loss.
    like_losses: bool,
    /// Whether too much of the latest complete round counts as lost.
    is_too_lossy: bool,
    /// Rounds of startup in a row with too many marks.
    startup_rounds: u32,
}

impl Marks {
    pub(super) fn in_round(&self) -> bool {
        self.in_round
    }

    /// Whether this round has marks that count as losses.
    pub(super) fn are_like_losses(&self) -> bool {
        self.like_losses
    }

    /// Counts `bytes` marked; `l4s` is whether a short queue marked them.
    pub(super) fn on_marked(&mut self, bytes: u64, l4s: bool) {
        self.bytes = self.bytes.saturating_add(bytes);
        if !l4s {
            self.like_losses = true;
            self.like_lost = self.like_lost.saturating_add(bytes);
        }
        self.in_round = true;
        self.average.get_or_insert(1.0);
    }

    /// A round ends with `delivered` bytes in all. Returns whether the bytes in flight were too many: half of them were
    /// marked, or more than the part `loss_threshold` counts as lost.
    pub(super) fn end_round(&mut self, delivered: u64, loss_threshold: f64) -> bool {
        let marked = std::mem::take(&mut self.bytes);
        let like_lost = std::mem::take(&mut self.like_lost);
        let in_round = delivered.saturating_sub(self.delivered);
        self.delivered = delivered;
        if in_round == 0 {
            return false;
        }
        let part = (marked as f64 / in_round as f64).min(1.0);
        if let Some(average) = &mut self.average {
            *average += GAIN * (part - *average);
        }
        self.is_too_lossy = like_lost as f64 > in_round as f64 * loss_threshold;
        let is_too_high = self.is_too_lossy || part >= TOO_HIGH;
        self.startup_rounds = match is_too_high {
            true => self.startup_rounds.saturating_add(1),
            false => 0,
        };
        is_too_high
    }

    /// Whether too much of the latest complete round was marked and counts as lost.
    pub(super) fn is_too_lossy(&self) -> bool {
        self.is_too_lossy
    }

    /// Whether enough rounds in a row had too many marks to end startup.
    pub(super) fn end_startup(&self) -> bool {
        self.startup_rounds >= STARTUP_ROUNDS
    }

    /// The part of the bytes in flight that the average leaves.
    pub(super) fn remainder(&self) -> f64 {
        1.0 - FACTOR * self.average.unwrap_or_default()
    }

    /// Clears the marks of this round once they are answered.
    pub(super) fn clear_round(&mut self) {
        self.in_round = false;
        self.like_losses = false;
    }
}
