//! The features of a transfer from which the Wi-Fi study derives its throughput (section 6.2.1).

use crate::stats::Dispersion;

/// The data packets of a transfer, and the state of its sender. Times are in microseconds since the same moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Packets in the order in which they were sent; their numbers increase.
    pub sent: Vec<PacketEvent>,
    /// Packets that arrived, in the order of their arrival.
    pub received: Vec<PacketEvent>,
    /// Acknowledgments that the receiver sent.
    pub acks: u64,
    /// The congestion window at each acknowledgment, in bytes.
    pub windows: Vec<f64>,
    /// Phases of the sender, in their order.
    pub phases: Vec<PhaseSince>,
    /// The end of the transfer.
    pub end_us: f64,
}

/// A packet passes an end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketEvent {
    /// The number of the packet.
    pub number: u64,
    /// The time.
    pub at_us: f64,
}

/// A phase, and when it began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseSince {
    /// The phase.
    pub phase: TransferPhase,
    /// When it began.
    pub at_us: f64,
}

/// The phase of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferPhase {
    /// The window doubles in a round trip.
    SlowStart,
    /// The window grows slowly, or probes.
    CongestionAvoidance,
    /// The application has less to send than the window allows.
    ApplicationLimited,
    /// Lost data is sent again, and the window does not grow.
    Recovery,
}

impl TransferPhase {
    /// The phase that a controller reports as `name`; the start-up of BBR is slow start, its later phases are congestion
    /// avoidance.
    pub fn of(name: &str) -> Self {
        match name {
            "slow_start" | "startup" => Self::SlowStart,
            "recovery" => Self::Recovery,
            "application_limited" => Self::ApplicationLimited,
            _ => Self::CongestionAvoidance,
        }
    }
}

/// A feature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feature {
    /// Its name, with the unit.
    pub name: &'static str,
    /// Its value; `None` if it is undefined.
    pub value: Option<f64>,
}

impl Trace {
    /// All 17 features. Burstiness is that of sums of `window` intervals. Variances are those of a population.
    pub fn features(&self, window: usize) -> Vec<Feature> {
        let server = intervals(&self.sent);
        let client = intervals(&self.received);
        let delays = self.delays();
        let sent = self.sent.len() as f64;
        let of_sent = |count: f64| (sent > 0.0).then(|| count / sent);
        let feature = |name, value| Feature { name, value };
        let burstiness = Dispersion::over(window);
        vec![
            feature("server_mean_ipt_us", mean(&server)),
            feature("client_mean_ipt_us", mean(&client)),
            feature("server_var_ipt", variance(&server)),
            feature("client_var_ipt", variance(&client)),
            feature("server_burstiness", burstiness.of(&server)),
            feature("client_burstiness", burstiness.of(&client)),
            feature("mean_delay_us", mean(&delays)),
            feature("var_delay", variance(&delays)),
            feature(
                "loss_probability",
                of_sent((self.sent.len() - delays.len()) as f64),
            ),
            feature(
                "out_of_order_probability",
                of_sent(self.out_of_order() as f64),
            ),
            feature("ack_freq", of_sent(self.acks as f64)),
            feature("mean_cwnd_bytes", mean(&self.windows)),
            feature("var_cwnd", variance(&self.windows)),
            feature(
                "slow_start_freq_percent",
                self.percent(TransferPhase::SlowStart),
            ),
            feature(
                "congestion_avoidance_freq_percent",
                self.percent(TransferPhase::CongestionAvoidance),
            ),
            feature(
                "app_limited_freq_percent",
                self.percent(TransferPhase::ApplicationLimited),
            ),
            feature(
                "recovery_freq_percent",
                self.percent(TransferPhase::Recovery),
            ),
        ]
    }

    /// Burstiness of sums of `window` intervals between packets, at the server and at the client.
    pub fn burstiness(&self, window: usize) -> [Option<f64>; 2] {
        [&self.sent, &self.received].map(|packets| Dispersion::over(window).of(&intervals(packets)))
    }

    /// One-way delays of the packets that arrived, in microseconds.
    fn delays(&self) -> Vec<f64> {
        let delay = |arrived: &PacketEvent| {
            let sent = self
                .sent
                .binary_search_by_key(&arrived.number, |sent| sent.number);
            Some(arrived.at_us - self.sent.get(sent.ok()?)?.at_us)
        };
        self.received.iter().filter_map(delay).collect()
    }

    /// Packets that arrived after one with a higher number.
    fn out_of_order(&self) -> usize {
        let mut highest = 0;
        let numbers = self.received.iter().map(|packet| packet.number);
        numbers
            .filter(|&number| {
                highest = highest.max(number);
                number < highest
            })
            .count()
    }

    /// The percentage of the time in `phase`.
    fn percent(&self, phase: TransferPhase) -> Option<f64> {
        let begin = self.phases.first()?.at_us;
        let ends = self.phases.iter().skip(1).map(|next| next.at_us);
        let spans = self.phases.iter().zip(ends.chain([self.end_us]));
        let inside = spans.filter(|(since, _)| since.phase == phase);
        let spans = inside.map(|(since, end)| end - since.at_us);
        let time = spans.fold(0.0, |sum, span| sum + span);
        let all = self.end_us - begin;
        (all > 0.0).then(|| 100.0 * time / all)
    }
}

fn intervals(packets: &[PacketEvent]) -> Vec<f64> {
    let pairs = packets.windows(2);
    pairs.map(|pair| pair[1].at_us - pair[0].at_us).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The variance of a population.
fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    Some(squares.sum::<f64>() / values.len() as f64)
}
