//! Expected values that no formula gives in one line, computed again from their equations.

use marline_link::Seed;
use rand::RngExt;

use super::promises::Expected;
use super::quantity::{Quantity, Stations};
use super::{MODELS, WORKLOADS};

/// Slot, and SIFS with three slots (AIFS of best effort), in microseconds.
const SLOT: f64 = 9.0;
const AIFS: f64 = 43.0;
/// A PPDU of one MPDU of 1,538 bytes at 65 Mb/s: a preamble of 36 us, and symbols of 4 us and 260 bits.
const PPDU: f64 = 36.0 + 4.0 * 48.0;
/// Channel time of a success: SIFS and an ACK of 28 us follow, then the AIFS.
const SUCCESS: f64 = PPDU + 16.0 + 28.0 + AIFS;
/// Channel time of a collision: the stations wait for an ACK until SIFS, a slot and 20 us have passed.
const COLLISION: f64 = PPDU + 16.0 + SLOT + 20.0 + AIFS;
/// UDP payload of a packet of 1,500 bytes, in bits.
const PAYLOAD: f64 = 8.0 * 1472.0;
/// Backoffs are uniform from 0 to one less than this, by the number of failures before. An eighth failure is the last.
const WINDOWS: [u32; 8] = [16, 32, 64, 128, 256, 512, 1024, 1024];

/// The saturation throughput of `stations` in Mb/s, as Bianchi (2000) computes it: transmissions of a station collide
/// with a probability that does not depend on its past. Two rules of the standard are kept that he simplifies. A packet is
/// dropped after eight attempts. Backoffs count idle slots only, so that only a station that has just transmitted can
/// transmit at once, if it draws 0 (Tinnirello, Bianchi, Xiao: "Refinements on IEEE 802.11 Distributed Coordination Function
/// Modeling Approaches", 2010).
fn saturation(stations: u32) -> f64 {
    let n = f64::from(stations);
    let others = i32::try_from(stations).unwrap() - 1;
    // From the probability that a station transmits after an idle slot: the attempts and the successes in a slot.
    let rates = |chance: f64| {
        let collides = 1.0 - (1.0 - chance).powi(others);
        // At once after a collision, if one of the others draws 0 as well, mostly from the second window.
        let together = if collides > 0.0 {
            (n - 1.0) * chance / collides / f64::from(WINDOWS[1])
        } else {
            0.0
        };
        let (mut share, mut attempts, mut slots, mut waited, mut successes) =
            (1.0, 0.0, 0.0, 0.0, 0.0);
        for (failures, window) in WINDOWS.into_iter().enumerate() {
            let window = f64::from(window);
            let at_once = 1.0 / window;
            let fails_at_once = if failures == 0 { 0.0 } else { together };
            let fails = (1.0 - at_once) * collides + at_once * fails_at_once;
            attempts += share;
            waited += share * (1.0 - at_once);
            slots += share * (window - 1.0) / 2.0;
            successes += share * (1.0 - fails);
            share *= fails;
        }
        [waited / slots, attempts / slots, successes / slots]
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let chance = f64::midpoint(low, high);
        match rates(chance)[0] > chance {
            true => low = chance,
            false => high = chance,
        }
    }
    let [chance, attempts, successes] = rates(low);
    let (attempts, successes) = (n * attempts, n * successes);
    // Stations in a collision, of those that waited.
    let one = n * chance * (1.0 - chance).powi(others);
    let several = 1.0 - (1.0 - chance).powi(others + 1) - one;
    let collisions = if several > 1e-9 {
        (attempts - successes) / ((n * chance - one) / several)
    } else {
        0.0
    };
    successes * PAYLOAD / (SLOT + successes * SUCCESS + collisions * COLLISION)
}

/// The same by drawing the backoffs of all stations: mean and standard deviation of 30 s.
fn drawn_saturation(stations: usize) -> [f64; 2] {
    const BLOCKS: usize = 60;
    const ACCESSES: usize = 8000;
    let mut rng = Seed::new(1).of("backoffs").rng();
    let mut failures = vec![0; stations];
    let mut backoffs = vec![0; stations];
    let (mut blocks, mut time) = (Vec::new(), 0.0);
    for _ in 0..BLOCKS {
        let (mut took, mut successes) = (0.0, 0.0);
        for _ in 0..ACCESSES {
            let idle = *backoffs.iter().min().unwrap();
            let transmit = backoffs.iter().filter(|backoff| **backoff == idle).count();
            took += f64::from(idle) * SLOT;
            if transmit == 1 {
                took += SUCCESS;
                successes += 1.0;
            } else {
                took += COLLISION;
            }
            for (backoff, failures) in backoffs.iter_mut().zip(&mut failures) {
                if *backoff > idle {
                    *backoff -= idle;
                    continue;
                }
                *failures = if transmit == 1 {
                    0
                } else {
                    (*failures + 1) % WINDOWS.len()
                };
                *backoff = rng.random_range(0..WINDOWS[*failures]);
            }
        }
        blocks.push(successes * PAYLOAD / took);
        time += took;
    }
    let count = BLOCKS as f64;
    let mean = blocks.iter().sum::<f64>() / count;
    let squares: f64 = blocks.iter().map(|block| (block - mean).powi(2)).sum();
    let variance = squares / (count - 1.0);
    // Of a mean over 30 s, by blocks that do not depend on each other.
    [mean, (variance * time / count / 30e6).sqrt()]
}

#[test]
fn throughputs_of_stations_are_those_of_the_equations_within_their_error() {
    let model = MODELS.iter().find(|model| model.name == "wifi-stations");
    let promises = model.unwrap().promises;
    assert_eq!(promises.len(), 10);
    for (promise, count) in promises.iter().zip(1..) {
        assert_eq!(promise.quantity, Quantity::Saturated(Stations::new(count)));
        let Expected::Near(value, tolerance) = promise.expected else {
            panic!("{promise:?}");
        };
        let expected = saturation(count.into());
        let [drawn, deviation] = drawn_saturation(count.into());
        println!("{count}: {expected:.3}, drawn {drawn:.3} ± {deviation:.3}");
        assert!((value - expected).abs() < 0.006, "{count}: {expected}");
        let error = (drawn - expected).abs() + 4.0 * deviation;
        assert!(error <= tolerance, "{count}: {error}");
    }
    // A mean backoff of 7.5 slots.
    let alone = PAYLOAD / (SUCCESS + 7.5 * SLOT);
    assert!((saturation(1) - alone).abs() < 1e-6, "{alone}");
}

/// A video on a link that is busy while a segment is on its way.
struct Player<'a> {
    /// The bit rates in kb/s.
    ladder: &'a [f64],
    segments: usize,
    /// Seconds that the buffer holds.
    buffer: f64,
    /// The share of the rate of the link that is content.
    content: f64,
    /// Bytes of packets of the handshake and of the first request.
    handshake: f64,
}

/// The outcome of playing a video.
#[derive(Debug, Default)]
struct Shown {
    rungs: Vec<usize>,
    start: f64,
    stalls: u32,
    stalled: f64,
}

impl Player<'_> {
    /// Rate of the link in kb/s, round-trip time and length of a segment in seconds.
    const RATE: f64 = 600.0;
    const RTT: f64 = 0.04;
    const SEGMENT: f64 = 4.0;

    /// Plays with the rungs that `choose` takes from the buffer in seconds and the last rung.
    fn play(&self, choose: impl Fn(f64, usize) -> usize) -> Shown {
        let mut shown = Shown::default();
        let mut level = 0.0_f64;
        for number in 0..self.segments {
            level = level.min(self.buffer - Self::SEGMENT);
            let rung = choose(level, shown.rungs.last().copied().unwrap_or(0));
            let mut took =
                Self::RTT + self.ladder[rung] * Self::SEGMENT / (self.content * Self::RATE);
            if number == 0 {
                took += Self::RTT + self.handshake * 8e-3 / Self::RATE;
                shown.start = took;
            } else if took > level {
                shown.stalls += 1;
                shown.stalled += took - level;
            }
            level = (level - took).max(0.0) + Self::SEGMENT;
            shown.rungs.push(rung);
        }
        shown
    }

    fn rate(&self, shown: &Shown) -> f64 {
        let rates = shown.rungs.iter().map(|rung| self.ladder[*rung]);
        rates.sum::<f64>() / 1e3 / shown.rungs.len() as f64
    }
}

/// Shares of content and bytes of handshakes: headers are 50 to 75 bytes of datagrams of 1,228 to 1,500, and the handshake
/// is two to five datagrams of 1,228 bytes.
fn bounds() -> impl Iterator<Item = (f64, f64)> {
    let [least, most] = [1.0 - 75.0 / 1228.0, 1.0 - 50.0 / 1500.0];
    let shares = (0..=100).map(move |part| least + (most - least) * f64::from(part) / 100.0);
    shares.flat_map(|share| [2.0, 5.0].map(|datagrams| (share, 1228.0 * datagrams)))
}

/// Asserts that `values` fill the range that the workload `name` promises, to a hundredth of them.
fn assert_promised(name: &str, quantity: Quantity, values: &[f64]) {
    let workload = WORKLOADS.iter().find(|workload| workload.name == name);
    let mut promises = workload.unwrap().promises.iter();
    let promise = promises.find(|promise| promise.quantity == quantity);
    let expected = promise.unwrap().expected;
    let [low, high] = match expected {
        Expected::Near(value, _) => [value; 2],
        Expected::Between(low, high) => [low, high],
    };
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    println!("{name}: {quantity:?} {least} to {most}");
    let is_close = |value: f64, bound: f64| (value - bound).abs() <= 0.01 * bound.max(0.01);
    assert!(
        is_close(least, low) && is_close(most, high),
        "{name}: {quantity:?} {least} to {most}"
    );
    assert!(expected.holds(least.max(low)) && expected.holds(most.min(high)));
}

const LADDER: [f64; 4] = [100.0, 200.0, 400.0, 800.0];

/// The rung of BBA-0, after figure 5 and algorithm 1 of Huang et al. (2014): a map of the buffer from 13.5 s of 36 s, which is
/// the lowest bit rate, to 32.4 s, which is the highest. The rung stays until the map passes the next one.
fn bba(level: f64, last: usize) -> usize {
    let mapped = (level - 13.5) / (32.4 - 13.5) * 700.0 + 100.0;
    if mapped <= 100.0 {
        0
    } else if mapped >= 800.0 {
        3
    } else if last < 3 && mapped >= LADDER[last + 1] {
        LADDER.iter().filter(|rate| **rate < mapped).count() - 1
    } else if last > 0 && mapped <= LADDER[last - 1] {
        LADDER.iter().filter(|rate| **rate <= mapped).count()
    } else {
        last
    }
}

#[test]
fn videos_by_the_buffer_are_those_of_the_equations() {
    let [mut rates, mut switches, mut stalls] = [const { Vec::new() }; 3];
    for (content, handshake) in bounds() {
        let player = Player {
            ladder: &LADDER,
            segments: 60,
            buffer: 40.0,
            content,
            handshake,
        };
        let shown = player.play(bba);
        let changes = shown.rungs.windows(2).filter(|pair| pair[0] != pair[1]);
        rates.push(player.rate(&shown));
        switches.push(changes.count() as f64);
        stalls.push(f64::from(shown.stalls));
    }
    assert_promised("video-buffer", Quantity::VideoRate, &rates);
    assert_promised("video-buffer", Quantity::VideoSwitches, &switches);
    assert_promised("video-buffer", Quantity::VideoStalls, &stalls);
}

#[test]
fn videos_by_the_throughput_are_those_of_the_equations() {
    let [mut rates, mut starts] = [const { Vec::new() }; 2];
    for (content, handshake) in bounds() {
        let player = Player {
            ladder: &LADDER,
            segments: 20,
            buffer: 30.0,
            content,
            handshake,
        };
        // Nine tenths of any throughput are between 400 and 800 kb/s: the second segment and all later ones have that rung.
        let first = player.play(|_, _| 0);
        let slowest = LADDER[0] * Player::SEGMENT / first.start;
        assert!((400.0..800.0).contains(&(0.9 * slowest)), "{slowest}");
        const { assert!(0.9 * Player::RATE < 800.0) };
        let shown = player.play(|level, _| if level == 0.0 { 0 } else { 2 });
        rates.push(player.rate(&shown));
        assert_eq!(shown.stalls, 0);
        starts.push(shown.start);
    }
    assert_promised("video-throughput", Quantity::VideoRate, &rates);
    assert_promised("video-throughput", Quantity::VideoStart, &starts);
}

#[test]
fn stalls_of_a_video_are_those_of_the_equations() {
    let [mut stalls, mut stalled] = [const { Vec::new() }; 2];
    for (content, handshake) in bounds() {
        let player = Player {
            ladder: &[900.0],
            segments: 10,
            buffer: 30.0,
            content,
            handshake,
        };
        let shown = player.play(|_, _| 0);
        stalls.push(f64::from(shown.stalls));
        stalled.push(shown.stalled);
    }
    assert_promised("video-stalls", Quantity::VideoStalls, &stalls);
    assert_promised("video-stalls", Quantity::VideoStalled, &stalled);
}
