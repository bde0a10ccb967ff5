use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// Bytes of a packet.
const PACKET: usize = 1400;

const MILLISECOND: Duration = Duration::from_millis(1);

/// The rate of light flows, in bytes per second.
const LIGHT: f64 = 25_000.0;

fn at(milliseconds: u64) -> Time {
    Time::ZERO + Duration::from_millis(milliseconds)
}

/// A path of `rate` bytes per second with a delay in milliseconds.
fn path(id: u32, rate: f64, delay: u64) -> Candidate {
    Candidate {
        id: PathId(id),
        is_backup: false,
        rate,
        waiting: 0,
        delay: Duration::from_millis(delay),
        jitter: Duration::ZERO,
    }
}

fn backup(path: Candidate) -> Candidate {
    Candidate {
        is_backup: true,
        ..path
    }
}

fn packet(flow: u64) -> Arrived {
    Arrived { flow, size: PACKET }
}

fn choose(table: &mut FlowTable, now: Time, flow: u64, paths: &[Candidate]) -> u32 {
    table.choose(now, packet(flow), paths).unwrap().path.0
}

#[test]
fn a_small_flow_takes_the_path_on_which_it_arrives_first() {
    let mut table = FlowTable::new(false, LIGHT);
    let near = path(0, 1e6, 10);
    let far = path(1, 1e7, 30);
    assert_eq!(choose(&mut table, at(0), 1, &[near, far]), 0);
    // 50 ms behind what waits.
    let full = Candidate {
        waiting: 50_000,
        ..near
    };
    assert_eq!(choose(&mut table, at(1), 2, &[full, far]), 1);
    // A flow moves to a path that is clearly earlier once what it has sent has arrived, and not before.
    assert_eq!(choose(&mut table, at(2), 2, &[near, far]), 1);
    assert_eq!(choose(&mut table, at(30), 2, &[near, far]), 0);
    let hardly_earlier = path(1, 1e7, 9);
    assert_eq!(choose(&mut table, at(99), 2, &[near, hardly_earlier]), 0);
}

#[test]
fn backups_carry_flows_only_while_nothing_else_does() {
    let mut table = FlowTable::new(false, LIGHT);
    let both = [path(0, 1e6, 50), backup(path(1, 1e7, 5))];
    assert_eq!(choose(&mut table, at(0), 1, &both), 0);
    // The path does not answer: at once.
    let slow_backup = [path(0, 1e6, 5), backup(path(1, 1e7, 50))];
    assert_eq!(choose(&mut table, at(1), 1, &slow_backup[1..]), 1);
    // It answers again: without a packet before those on the backup.
    let choice = table.choose(at(2), packet(1), &slow_backup).unwrap();
    assert_eq!(choice.path, PathId(0));
    assert!(choice.paused_until.is_some());
    // A full path does not make a backup one.
    let full = Candidate {
        waiting: 1 << 20,
        ..both[0]
    };
    assert_eq!(choose(&mut table, at(500), 2, &[full, both[1]]), 0);
}

#[test]
fn one_flow_pauses_at_a_time() {
    let mut table = FlowTable::new(false, LIGHT);
    let slow = [backup(path(0, 1e6, 60))];
    for flow in 0..2 {
        table.choose(at(0), packet(flow), &slow).unwrap();
    }
    let back = [slow[0], path(1, 1e6, 10)];
    let pauses = |choice: Choice| choice.paused_until.is_some();
    let first = table.choose(at(1), packet(0), &back).unwrap();
    assert!(pauses(first));
    let second = table.choose(at(1), packet(1), &back).unwrap();
    assert_eq!((second.path, pauses(second)), (PathId(0), false));
    // The pause is over.
    let first = table.choose(at(100), packet(0), &back).unwrap();
    assert_eq!((first.path, pauses(first)), (PathId(1), false));
    assert_eq!(choose(&mut table, at(100), 1, &back), 1);
}

/// A connection of TCP in the model: a window that grows by a packet in a round trip, and is halved if a packet has waited.
struct Source {
    window: f64,
    in_flight: f64,
    reduced_at: Time,
    /// The numbers of packets that were sent, and the largest that has arrived.
    sent: u64,
    arrived: u64,
}

/// A path in the model: packets leave at its rate.
struct Link {
    rate: f64,
    delay: Duration,
    free_at: Time,
    carried: u64,
}

struct OnTheWay {
    arrives: Time,
    acknowledged: Time,
    flow: usize,
    number: u64,
    waited: Duration,
}

/// Connections over links, of a rate in bytes per second and a delay in milliseconds.
struct Model {
    links: Vec<Link>,
    sources: Vec<Source>,
    table: FlowTable,
    on_the_way: Vec<OnTheWay>,
    held: VecDeque<(Time, usize, usize, u64)>,
    reordered: u64,
    /// Whether the estimate of a path without packets for a second is a tenth of its rate.
    forgets: bool,
    now: Time,
}

impl Model {
    fn new(links: &[(f64, u64)], flows: usize) -> Self {
        Self {
            links: links
                .iter()
                .map(|&(rate, delay)| Link {
                    rate,
                    delay: Duration::from_millis(delay),
                    free_at: Time::ZERO,
                    carried: 0,
                })
                .collect(),
            sources: (0..flows)
                .map(|_| Source {
                    window: 10.0,
                    in_flight: 0.0,
                    reduced_at: Time::ZERO,
                    sent: 0,
                    arrived: 0,
                })
                .collect(),
            table: FlowTable::new(true, LIGHT),
            on_the_way: Vec::new(),
            held: VecDeque::new(),
            reordered: 0,
            forgets: false,
            now: Time::ZERO,
        }
    }

    fn candidates(&self) -> Vec<Candidate> {
        let candidate = |(id, link): (usize, &Link)| {
            let waits = link.free_at.since(self.now).as_secs_f64();
            let is_forgotten = self.forgets && link.free_at + Duration::from_secs(1) < self.now;
            let estimate = if is_forgotten { 0.1 } else { 1.0 } * link.rate;
            Candidate {
                waiting: (waits * link.rate) as u64,
                delay: link.delay,
                ..path(id as u32, estimate, 0)
            }
        };
        self.links.iter().enumerate().map(candidate).collect()
    }

    fn transmit(&mut self, link: usize, flow: usize, number: u64) {
        let link = &mut self.links[link];
        let begins = link.free_at.max(self.now);
        link.free_at = begins + Duration::from_secs_f64(PACKET as f64 / link.rate);
        link.carried += PACKET as u64;
        self.on_the_way.push(OnTheWay {
            arrives: link.free_at + link.delay,
            acknowledged: link.free_at + 2 * link.delay,
            flow,
            number,
            waited: begins.since(self.now),
        });
    }

    /// Runs the model; returns the bytes that the links carried.
    fn run(&mut self, time: Duration) -> u64 {
        let carried = |model: &Self| model.links.iter().map(|link| link.carried).sum::<u64>();
        let before = carried(self);
        let end = self.now + time;
        while self.now < end {
            self.step();
            self.now += MILLISECOND / 2;
        }
        carried(self) - before
    }

    fn step(&mut self) {
        self.on_the_way.sort_by_key(|packet| packet.arrives);
        for packet in &self.on_the_way {
            let source = &mut self.sources[packet.flow];
            if packet.arrives <= self.now && packet.number != u64::MAX {
                self.reordered += u64::from(packet.number < source.arrived);
                source.arrived = source.arrived.max(packet.number);
            }
        }
        let now = self.now;
        for packet in &mut self.on_the_way {
            if packet.arrives <= now {
                packet.number = u64::MAX;
            }
        }
        let sources = &mut self.sources;
        self.on_the_way.retain(|packet| {
            if packet.acknowledged > now {
                return true;
            }
            let source = &mut sources[packet.flow];
            source.in_flight -= 1.0;
            source.window += 1.0 / source.window;
            if packet.waited > 15 * MILLISECOND && now > source.reduced_at + 50 * MILLISECOND {
                source.window = (source.window * 0.7).max(2.0);
                source.reduced_at = now;
            }
            false
        });
        while self.held.front().is_some_and(|held| held.0 <= now) {
            let Some((_, link, flow, number)) = self.held.pop_front() else {
                return;
            };
            self.transmit(link, flow, number);
        }
        // In turns, as FQ-CoDel serves them.
        loop {
            let mut any = false;
            for flow in 0..self.sources.len() {
                let source = &mut self.sources[flow];
                if source.in_flight + 1.0 > source.window {
                    continue;
                }
                any = true;
                source.in_flight += 1.0;
                source.sent += 1;
                let number = source.sent;
                let choice = self
                    .table
                    .choose(now, packet(flow as u64), &self.candidates())
                    .unwrap();
                if let Some(path) = choice.filler {
                    let link = &mut self.links[path.0 as usize];
                    let time = Duration::from_secs_f64(PACKET as f64 / link.rate);
                    link.free_at = link.free_at.max(now) + time;
                }
                let link = choice.path.0 as usize;
                match choice.paused_until {
                    Some(until) => self.held.push_back((until, link, flow, number)),
                    None => self.transmit(link, flow, number),
                }
            }
            if !any {
                break;
            }
        }
    }
}

/// Pairs of paths: megabytes per second and delays.
const PAIRS: [[(f64, u64); 2]; 5] = [
    [(2e6, 10), (2e6, 10)],
    [(2e6, 10), (2e6, 40)],
    [(4e6, 40), (1e6, 10)],
    [(1e6, 10), (4e6, 40)],
    [(4e6, 10), (1.5e6, 25)],
];

#[test]
fn several_flows_have_the_sum_of_two_paths() {
    for links in PAIRS {
        let mut model = Model::new(&links, 8);
        model.run(Duration::from_secs(3));
        let carried = model.run(Duration::from_secs(5)) as f64 / 5.0;
        let sum: f64 = links.iter().map(|link| link.0).sum();
        assert!(carried > 0.85 * sum, "{links:?}: {carried} of {sum}");
        assert_eq!(model.reordered, 0, "{links:?}");
    }
}

#[test]
fn one_flow_has_the_better_path() {
    for links in PAIRS {
        let alone = links.map(|link| {
            let mut model = Model::new(&[link], 1);
            model.run(Duration::from_secs(5));
            model.run(Duration::from_secs(10))
        });
        let mut model = Model::new(&links, 1);
        model.run(Duration::from_secs(5));
        let carried = model.run(Duration::from_secs(10)) as f64;
        let better = alone[0].max(alone[1]) as f64;
        assert!(carried > 0.95 * better, "{links:?}: {carried} of {better}");
        assert_eq!(model.reordered, 0, "{links:?}");
    }
}

/// Without filler, a flow is slower for a second, and again until its window has grown.
#[test]
fn one_flow_stays_on_the_better_path_while_the_other_is_tried() {
    for links in PAIRS {
        let from_the_beginning = |links: &[(f64, u64)]| {
            let mut model = Model::new(links, 1);
            let carried = model.run(Duration::from_secs(10)) as f64;
            assert_eq!(model.reordered, 0, "{links:?}");
            carried
        };
        let first = from_the_beginning(&links[..1]);
        let carried = from_the_beginning(&links);
        assert!(carried > 0.98 * first, "{links:?}: {carried} of {first}");
    }
}

#[test]
fn filler_ends_the_trial_of_a_path_that_carries_less() {
    let mut table = FlowTable::new(true, LIGHT);
    let mut filled = Vec::new();
    for millisecond in 0..4000 {
        // 1.4 MB/s, all that the first path has; of as much filler, the second carries a half.
        let filler_waits = filled.last().is_some_and(|last| last + 1 >= millisecond);
        let paths = [
            Candidate {
                waiting: 1,
                ..path(0, 1.4e6, 15)
            },
            Candidate {
                waiting: u64::from(filler_waits),
                ..path(1, 0.7e6, 32)
            },
        ];
        let choice = table.choose(at(millisecond), packet(1), &paths).unwrap();
        assert_eq!(choice.path, PathId(0));
        if let Some(filler) = choice.filler {
            assert_eq!(filler, PathId(1));
            filled.push(millisecond);
        }
    }
    let (first, last) = (filled[0], filled[filled.len() - 1]);
    assert!(first >= 1000 && last - first < 600, "{first} to {last}");
}

/// A path that has carried little seems to take seconds for what waits.
#[test]
fn a_flow_leaves_a_path_whose_rate_was_underestimated() {
    let mut table = FlowTable::new(false, LIGHT);
    let good = path(0, 2.4e6, 15);
    for millisecond in 0..1200 {
        let full = Candidate { waiting: 1, ..good };
        let unknown = path(1, 18_000.0, 32);
        for _ in 0..2 {
            choose(&mut table, at(millisecond), 1, &[full, unknown]);
        }
    }
    let unknown = Candidate {
        waiting: 189_000,
        ..path(1, 18_000.0, 32)
    };
    assert_eq!(choose(&mut table, at(1200), 1, &[good, unknown]), 1);
    let known = Candidate {
        waiting: 1,
        ..path(1, 1.2e6, 32)
    };
    let paths =
        (1201..3000).map(|millisecond| choose(&mut table, at(millisecond), 1, &[good, known]));
    assert!(paths.last() == Some(0));
}

#[test]
fn one_flow_returns_to_the_better_path_whose_estimate_has_fallen() {
    for links in [[(2.5e6, 15), (1.25e6, 32)], [(1e6, 10), (4e6, 40)]] {
        let carried = |links: &[(f64, u64)]| {
            let mut model = Model::new(links, 1);
            model.forgets = true;
            model.run(Duration::from_secs(5));
            let carried = model.run(Duration::from_secs(20)) as f64;
            assert_eq!(model.reordered, 0, "{links:?}");
            carried
        };
        let better = carried(&links[..1]).max(carried(&links[1..]));
        let carried = carried(&links);
        assert!(carried > 0.9 * better, "{links:?}: {carried} of {better}");
    }
}

proptest! {
    #[test]
    fn any_sequence_of_packets_gets_paths_that_work_and_bounded_pauses(
        packets in prop::collection::vec((0..20_000_u64, 0..3_u32, 1..8_u8, 0..200_000_u64), 1..2000),
    ) {
        let mut table = FlowTable::new(false, LIGHT);
        let mut now = Time::ZERO;
        for (flow, pause, which, waiting) in packets {
            now += MILLISECOND * pause;
            let all = [
                Candidate { waiting, ..path(0, 1e6, 10) },
                path(1, 3e5, 60),
                backup(path(2, 0.0, 1000)),
            ];
            let paths: Vec<_> = (0..3).filter(|n| which >> n & 1 == 1).map(|n| all[n]).collect();
            let choice = table.choose(now, packet(flow), &paths).unwrap();
            prop_assert!(paths.iter().any(|path| path.id == choice.path));
            if let Some(until) = choice.paused_until {
                prop_assert!(until.since(now) <= MAX_PAUSE);
            }
        }
        prop_assert_eq!(table.sets.len(), SETS);
        prop_assert!(table.usage.len() <= 3);
    }
}

#[test]
fn a_full_set_forgets_the_flow_without_packets_for_the_longest_time() {
    let mut table = FlowTable::new(false, LIGHT);
    let same_set = |n: u64| n * SETS as u64;
    let paths = [path(0, 1e6, 10)];
    for n in 0..=WAYS as u64 {
        choose(&mut table, at(n), same_set(n), &paths);
    }
    let hashes: Vec<_> = table.sets[0]
        .iter()
        .flatten()
        .map(|flow| flow.hash)
        .collect();
    assert_eq!(hashes.len(), WAYS);
    assert!(!hashes.contains(&0));
    assert!(table.sets[1..].iter().flatten().all(Option::is_none));
}
