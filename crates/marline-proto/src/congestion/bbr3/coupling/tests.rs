use super::*;

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Two paths of a connection: the first delivers 2 MB/s, the second 1 MB/s.
struct Two {
    paths: [Coupling; 2],
    now: Instant,
    /// Whether they see cross traffic.
    others: bool,
}

impl Two {
    fn new() -> Self {
        let slots: Arc<[Slot; COUPLED_PATHS]> = Arc::default();
        let coupling = |place: usize| {
            slots[place].is_taken.store(true, Ordering::Relaxed);
            Coupling {
                slots: Arc::clone(&slots),
                place,
                pairs: [Similarity::default(); COUPLED_PATHS],
                sampled_at: None,
                queue: None,
                rests_for: None,
                rested_for: None,
                mistakes: 0,
            }
        };
        Self {
            paths: [coupling(0), coupling(1)],
            now: Instant::EPOCH + millis(1),
            others: true,
        }
    }

    /// Runs for `seconds` with the queueing delays that `queues` gives for the time in
    /// milliseconds.
    fn run(&mut self, seconds: u64, queues: impl Fn(u64) -> [u64; 2]) {
        for _ in 0..seconds * 50 {
            self.now += millis(20);
            let time = (self.now - Instant::EPOCH).as_millis() as u64;
            let [first, second] = queues(time);
            self.paths[0].on_sample(self.now, millis(first), 2_000_000, self.others);
            self.paths[1].on_sample(self.now, millis(second), 1_000_000, self.others);
        }
    }

    fn rests(&self) -> [bool; 2] {
        [0, 1].map(|path| self.paths[path].resting_rate().is_some())
    }
}

/// A queue that fills in `period` milliseconds and then drops to half, as that of a CUBIC flow.
fn sawtooth(time: u64, period: u64) -> u64 {
    10 + time % period * 10 / period
}

#[test]
fn the_slower_of_two_paths_through_one_queue_rests() {
    let mut two = Two::new();
    two.run(1, |time| [sawtooth(time, 700); 2]);
    assert_eq!(two.rests(), [false, false], "too early to tell");
    two.run(2, |time| [sawtooth(time, 700); 2]);
    assert_eq!(two.rests(), [false, true]);
    assert_eq!(two.paths[1].resting_rate(), Some(2_000_000 / RESTING_PART));
    assert!(two.paths[0].takes_over(), "there may be other flows");
    assert!(!two.paths[0].takes_over(), "once");
    two.run(30, |time| [sawtooth(time, 700); 2]);
    assert_eq!(two.rests(), [false, true]);
}

#[test]
fn paths_through_queues_of_their_own_do_not_rest() {
    let mut two = Two::new();
    two.run(30, |time| [sawtooth(time, 700), sawtooth(time, 1100)]);
    assert_eq!(two.rests(), [false, false]);
}

#[test]
fn paths_whose_own_probes_coincide_do_not_rest() {
    let mut two = Two::new();
    two.others = false;
    two.run(30, |time| [sawtooth(time, 700); 2]);
    assert_eq!(two.rests(), [false, false]);
}

#[test]
fn queues_that_do_not_vary_tell_nothing() {
    let mut two = Two::new();
    two.run(30, |_| [20, 20]);
    assert_eq!(two.rests(), [false, false]);
}

#[test]
fn a_path_that_rested_by_mistake_goes_on_and_asks_for_longer_evidence() {
    let mut two = Two::new();
    two.run(3, |time| [sawtooth(time, 700); 2]);
    assert_eq!(two.rests(), [false, true]);
    two.run(10, |time| [sawtooth(time, 700), 0]);
    assert_eq!(two.rests(), [false, false]);
    two.run(2, |time| [sawtooth(time, 700); 2]);
    assert_eq!(two.rests(), [false, false]);
}

#[test]
fn a_path_goes_on_when_the_other_is_abandoned() {
    let mut two = Two::new();
    two.run(3, |time| [sawtooth(time, 700); 2]);
    assert_eq!(two.rests(), [false, true]);
    two.paths[0].slots[0].sampled_at.store(0, Ordering::Relaxed);
    two.paths[1].on_sample(two.now + millis(20), millis(10), 1_000_000, true);
    assert_eq!(two.rests(), [false, false]);
}

#[test]
fn a_path_goes_on_when_the_other_falls_silent() {
    let mut two = Two::new();
    two.run(3, |time| [sawtooth(time, 700); 2]);
    assert_eq!(two.rests(), [false, true]);
    assert!(two.paths[0].takes_over());
    for after in [260, 280, 300] {
        two.paths[1].on_sample(two.now + millis(after), millis(10), 1_000_000, true);
        assert_eq!(two.rests(), [false, false]);
    }
    two.now += millis(300);
    two.run(1, |time| [sawtooth(time, 700); 2]);
    assert_eq!(two.rests(), [false, true]);
    assert!(
        !two.paths[0].takes_over(),
        "it has gone back to half before"
    );
}

/// The losses were in the queue that both have filled.
#[test]
fn a_path_that_goes_on_for_another_forgets_the_losses_that_it_took_for_chance() {
    let Two {
        paths: [first, _],
        now,
        ..
    } = Two::new();
    let slots = Arc::clone(&first.slots);
    let config = ControllerConfig::new(1200);
    let mut bbr = Bbr3::with_settings(&config, Bbr3Config::WIRELESS);
    bbr.coupling = Some(Box::new(first));
    bbr.state = State::ProbeRtt;
    bbr.min_rtt.update(now, Some(millis(20)));
    bbr.random_loss.seed(0.08);
    bbr.compare_queues(now, millis(40));
    assert!(bbr.random_loss.share() > 0.0);
    slots[0].is_relied_on.store(true, Ordering::Relaxed);
    bbr.compare_queues(now + millis(20), millis(40));
    assert_eq!(bbr.random_loss.share(), 0.0);
}

#[test]
fn the_profile_of_wireless_links_couples_its_paths_and_the_draft_does_not() {
    assert!(Bbr3Config::WIRELESS.of_connection().is_some());
    assert!(Bbr3Config::default().of_connection().is_none());
}
