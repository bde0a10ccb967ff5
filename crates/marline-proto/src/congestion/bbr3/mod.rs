//! BBR version 3 (draft-ietf-ccwg-bbr-06); section numbers without a document refer to that draft.
//!
//! A model of the path (bandwidth, delay, and capacity without excessive losses) gives the pacing rate and the window.
//! Unlike version 1 it responds to loss: a failed probe bounds the bytes in flight until a later one finds more room, and
//! losses between probes lower the rate to the delivery rate.
//!
//! | subject | section | file |
//! | --- | --- | --- |
//! | startup and drain | 5.3.1, 5.3.2 | [`startup`], [`full_pipe`] |
//! | probing for bandwidth | 5.3.3 | [`probe_bw`] |
//! | measuring the delay | 5.3.4, 5.5.7 | [`probe_rtt`], [`min_rtt`] |
//! | bandwidth | 5.5.2 to 5.5.6 | [`bandwidth`] |
//! | aggregation | 5.5.9 | [`aggregation`] |
//! | losses, and those that were spurious | 5.5.10, 5.5.11, 5.6.4.4 | [`loss`], [`bounds`], [`latest`] |
//! | marks | 3.7 | [`ecn`] |
//! | pacing rate and window | 5.6 | [`window`] |
//!
//! Extensions to the draft, each a parameter of its own; [`Bbr3Config::WIRELESS`] has all:
//!
//! | parameter | file |
//! | --- | --- |
//! | `random_loss`: random loss is not congestion | [`random_loss`] |
//! | `coexist`: cross traffic gets its share | [`cross_traffic`] |
//! | `rare_probe_rtt`: the path is drained only if its delay is not known otherwise | [`min_rtt`], [`probe_rtt`] |
//! | `startup_by_window`: startup is as fast as slow start | [`window`] |
//! | `fast_reprobe`: the path is probed again as soon as it seems to have room | [`fast_reprobe`] |
//! | `jitter`: delay variation is part of the path's delay | [`jitter`] |
//! | `coupled`: paths of a connection that share a bottleneck take the share of one flow | [`coupling`] |
//!
//! A coordinator may start it from the model of another connection: [`seed`].
//!
//! Differences that QUIC or other parts of this crate require, or from Linux's version 3:
//!
//! - The window does not grow while sending is app-limited (RFC 9002, section 7.8).
//! - Persistent congestion takes the place of a retransmission timeout: the window collapses to 4 datagrams, and then
//!   grows by the bytes acknowledged (section 5.6.4.4). Losses of a probe timeout alone are ordinary losses.
//! - Recovery lasts until a packet is acknowledged that was sent after it began (RFC 9002, section 7.3.2), so startup
//!   ends by losses after a full round since the first of them, not after a round in recovery (section 5.3.1.3).
//! - The state that losses change is saved when recovery begins, as in Linux, not with the first loss of each round: the end
//!   of a probe begins a round anew, and further losses of the same flight would overwrite it (section 5.5.11.1).
//! - Bytes in flight are compared with the long-term bound as they were before the acknowledgment, and with a datagram
//!   of tolerance: afterwards they are always below the window.
//! - With `coexist` the bytes in flight halfway through an acknowledgment end `ProbeBW_DOWN`, not those after it.
//! - Drain paces at half the bandwidth and `ProbeBW_DOWN` at 0.9 of it, as in the draft (Linux: 0.35 and 0.91); drain at
//!   0.85 of it with `startup_by_window`.

mod aggregation;
mod bandwidth;
mod bounds;
mod coupling;
mod cross_traffic;
mod ecn;
mod fast_reprobe;
mod full_pipe;
mod jitter;
mod latest;
mod loss;
mod min_rtt;
mod probe_bw;
mod probe_rtt;
mod random_loss;
mod rows;
mod seed;
mod startup;
mod window;

use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng;
use rand_pcg::Pcg32;

use self::aggregation::{AckedBurst, ExtraAcked};
use self::bandwidth::MaxBandwidth;
use self::bounds::{Bounds, UNBOUNDED};
use self::coupling::{CoupledPaths, Coupling};
use self::cross_traffic::CrossTraffic;
use self::ecn::Marks;
use self::fast_reprobe::FastReprobe;
use self::full_pipe::FullPipe;
use self::latest::LatestDelivery;
use self::loss::{LossRecovery, Undo};
use self::min_rtt::{MinRtt, RoundRtt};
use self::probe_bw::{Cycle, ProbeBwPhase};
use self::probe_rtt::ProbeRtt;
use self::random_loss::RandomLoss;
use self::seed::Seed;
use self::startup::StartupLosses;
use self::window::WindowUse;
use super::rounds::Rounds;
use super::{Controller, ControllerConfig, ControllerFactory, Coordinated, PathModel, Phase};
use crate::Instant;
use crate::samples::{
    AckSample, CeSample, LossSample, PacketLoss, RateSample, RttView, SentSample,
};
use crate::settings::{Domain, Entry, Field, Settings, Spec};

/// Its name in settings.
pub(super) const ENTRY: Entry<Arc<dyn ControllerFactory>, Bbr3Config> = Entry {
    name: "bbr3",
    about: "BBR version 3: as bbr, and losses and marks bound what is in flight",
    parameters: Bbr3Config::SETTINGS,
    default: Bbr3Config::default,
    make: |config| Arc::new(config),
};

/// The name in settings of [`Bbr3Config::WIRELESS`].
pub(super) const WIRELESS: Entry<Arc<dyn ControllerFactory>, ()> = Entry::plain(
    "wireless",
    "bbr3 with all its parameters: fast where packets are lost by chance, fair to CUBIC",
    |()| Arc::new(Bbr3Config::WIRELESS),
);

/// The settings of [`Bbr3`]; the default is the draft's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bbr3Config {
    /// Whether to estimate random loss, the loss rate without a queue, and to count only losses in excess of it as
    /// congestion.
    pub random_loss: bool,
    /// Whether to respond to losses caused by cross traffic as loss-based flows do, and to leave it more room. On long paths
    /// 4 ms then count as a queue, and the queue of a probe is drained even if an acknowledgment covers many packets.
    pub coexist: bool,
    /// Whether the path is drained to measure its delay only if no sample of the last 5 seconds came near the smallest, and
    /// after 30 seconds.
    pub rare_probe_rtt: bool,
    /// Whether startup resembles slow start: it paces at two windows a round trip at least, its window grows until three
    /// initial windows are acknowledged and then follows the delays of the latest round while the bandwidth grows, and its
    /// queue is drained at 0.85 of the bandwidth.
    pub startup_by_window: bool,
    /// Whether to probe for bandwidth before the draft's time while the queue is empty or probes find more, if no cross
    /// traffic fills it and no losses answered before, and to widen short-term bounds while the queue is empty.
    pub fast_reprobe: bool,
    /// Whether the variation of round-trip times counts as delay of the path.
    pub jitter: bool,
    /// Whether paths of a connection whose queues show that they share a bottleneck take the share of one flow.
    pub coupled: bool,
}

impl Bbr3Config {
    /// The controller for wireless links, with all extensions to the draft.
    pub const WIRELESS: Self = Self {
        random_loss: true,
        coexist: true,
        rare_probe_rtt: true,
        startup_by_window: true,
        fast_reprobe: true,
        jitter: true,
        coupled: true,
    };

    /// Its parameters in settings.
    pub const SETTINGS: Settings<Self> = &[
        &Field::new(
            "random_loss",
            Domain::SWITCH,
            "Count as congestion only losses beyond what the path loses without a queue",
            |c: &mut Self| &mut c.random_loss,
        ).formerly("chance_losses"),
        &Field::new(
            "coexist",
            Domain::SWITCH,
            "Answer losses of other flows as loss-based flows do, leave them more room, and take short queues of long paths for queues",
            |c: &mut Self| &mut c.coexist,
        ).formerly("yields"),
        &Field::new(
            "rare_probe_rtt",
            Domain::SWITCH,
            "Drain the path to measure its delay only if no sample of the last 5 s came near the smallest, and after 30 s",
            |c: &mut Self| &mut c.rare_probe_rtt,
        ),
        &Field::new(
            "startup_by_window",
            Domain::SWITCH,
            "Pace startup at two windows a round trip at least, as slow start; its window goes by the delays of the latest round, after three initial ones; drain at 0.85 of the bandwidth",
            |c: &mut Self| &mut c.startup_by_window,
        ),
        &Field::new(
            "fast_reprobe",
            Domain::SWITCH,
            "Probe for bandwidth again early while the queue is empty or probes find more, without losses or other flows; widen the bounds of losses while it is empty",
            |c: &mut Self| &mut c.fast_reprobe,
        ).formerly("early_probes"),
        &Field::new(
            "jitter",
            Domain::SWITCH,
            "Count what round-trip times vary by, beyond half of the smallest, as delay of the path",
            |c: &mut Self| &mut c.jitter,
        ),
        &Field::new(
            "coupled",
            Domain::SWITCH,
            "Take the share of one flow with all paths of a connection that share a bottleneck",
            |c: &mut Self| &mut c.coupled,
        ),
    ];
}

impl ControllerFactory for Bbr3Config {
    fn build(&self, config: ControllerConfig) -> Box<dyn Controller> {
        Box::new(Bbr3::with_settings(&config, *self))
    }

    fn of_connection(&self) -> Option<Arc<dyn ControllerFactory>> {
        self.coupled
            .then(|| Arc::new(CoupledPaths::new(*self)) as _)
    }
}

/// The state of the state machine (`BBR.state`, section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain {
        /// The round in which it began.
        since: u64,
    },
    ProbeBw(ProbeBwPhase),
    ProbeRtt,
}

/// Paces at the bandwidth of the bottleneck, and keeps the bytes in flight below the amount that caused losses.
#[derive(Debug)]
pub struct Bbr3 {
    config: Bbr3Config,
    state: State,
    rng: Pcg32,
    window: u64,
    initial_window: u64,
    max_datagram_size: u64,
    /// Bytes per second; `None` before there is a round-trip sample.
    pacing_rate: Option<u64>,
    bandwidth: MaxBandwidth,
    /// Packets sent before this many bytes were delivered measure the rate before a coordinator lowered it.
    overruled: u64,
    min_rtt: MinRtt,
    /// The smallest round-trip time of each round, for startup.
    round_rtt: RoundRtt,
    /// Delay variation in excess of the room in the window.
    jitter: Duration,
    bounds: Bounds,
    latest: LatestDelivery,
    extra_acked: ExtraAcked,
    marks: Marks,
    rounds: Rounds,
    /// Whether the newest sample began a round.
    round_begins: bool,
    /// Bytes that the connection delivered so far, those that this controller saw delivered, and bytes in flight.
    delivered: u64,
    delivered_here: u64,
    in_flight: u64,
    full_pipe: FullPipe,
    startup_losses: StartupLosses,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    recovery: LossRecovery,
    undo: Undo,
    random_loss: RandomLoss,
    cross_traffic: CrossTraffic,
    fast_reprobe: FastReprobe,
    seed: Option<Seed>,
    /// Whether it began from a model since startup began.
    is_seeded: bool,
    window_use: WindowUse,
    /// The other paths of the connection, if there can be any.
    coupling: Option<Box<Coupling>>,
    /// Whether sending resumes after a pause: the delay of the empty path need not be probed.
    was_idle: bool,
    app_limited: bool,
}

impl Bbr3 {
    /// A controller for a new path, as specified by the draft.
    pub fn new(config: &ControllerConfig) -> Self {
        Self::with_settings(config, Bbr3Config::default())
    }

    /// A controller for a new path.
    pub fn with_settings(config: &ControllerConfig, settings: Bbr3Config) -> Self {
        let mut bbr = Self {
            config: settings,
            state: State::Startup,
            rng: Pcg32::seed_from_u64(config.seed),
            window: 0,
            initial_window: config.initial_window,
            max_datagram_size: config.max_datagram_size,
            pacing_rate: None,
            bandwidth: MaxBandwidth::default(),
            overruled: 0,
            min_rtt: MinRtt::default(),
            round_rtt: RoundRtt::default(),
            jitter: Duration::ZERO,
            bounds: Bounds::default(),
            latest: LatestDelivery::default(),
            extra_acked: ExtraAcked::default(),
            marks: Marks::default(),
            rounds: Rounds::default(),
            round_begins: false,
            delivered: 0,
            delivered_here: 0,
            in_flight: 0,
            full_pipe: FullPipe::default(),
            startup_losses: StartupLosses::default(),
            cycle: Cycle::default(),
            probe_rtt: ProbeRtt::default(),
            recovery: LossRecovery::default(),
            undo: Undo::default(),
            random_loss: RandomLoss::default(),
            cross_traffic: CrossTraffic::default(),
            fast_reprobe: FastReprobe::default(),
            seed: None,
            is_seeded: false,
            window_use: WindowUse::default(),
            coupling: None,
            was_idle: false,
            app_limited: false,
        };
        bbr.put(config.initial_window);
        bbr
    }

    /// The bandwidth to send at in bytes per second (`BBR.bw`); 0 before the first sample.
    fn bandwidth_now(&self) -> u64 {
        self.bandwidth.get().min(self.bounds.short_bandwidth)
    }

    /// `gain` times the product of `bandwidth` and delay, in bytes; the initial window before the delay is known.
    fn product_of(&self, bandwidth: u64, gain: f64) -> u64 {
        let Some(min_rtt) = self.min_rtt.get() else {
            return self.initial_window;
        };
        window::product(bandwidth, min_rtt + self.jitter, gain)
    }

    fn product(&self, gain: f64) -> u64 {
        self.product_of(self.bandwidth_now(), gain)
    }

    /// The target for the bytes in flight: the product, unless congestion left less of the window.
    fn target_in_flight(&self) -> u64 {
        self.product(1.0).min(self.window)
    }

    /// The steps of section 5.2.3 that process a delivery sample.
    fn update_model(&mut self, now: Instant, ack: &AckSample, rate: &RateSample) {
        self.delivered = self.delivered.max(rate.delivered_total);
        self.latest.update(rate);
        self.update_bandwidth(rate);
        self.update_marks(now, rate);
        if self.latest.round_ended() {
            self.answer_congestion(now, rate);
        }
        let burst = AckedBurst {
            bytes: ack.bytes,
            bandwidth: self.bandwidth_now(),
            round: self.rounds.count(),
            window: self.window,
            is_startup: !self.full_pipe.is_reached(),
        };
        self.extra_acked.update(now, &burst);
        if self.round_begins && !rate.app_limited {
            self.full_pipe.on_round(rate.bytes_per_second());
        }
        self.check_startup(rate);
        self.check_drain(now);
        self.update_cycle(now, ack, rate);
    }

    /// Counts rounds (section 5.5.1) and updates the bandwidth. An app-limited sample is a lower bound.
    fn update_bandwidth(&mut self, rate: &RateSample) {
        self.round_begins = self.rounds.update(rate);
        if self.round_begins {
            self.cycle.on_round();
            self.window_use.on_round();
        }
        let bandwidth = rate.bytes_per_second();
        let is_overruled = rate.prior_delivered < self.overruled;
        if !is_overruled && (!rate.app_limited || bandwidth >= self.bandwidth.get()) {
            self.bandwidth.update(bandwidth);
        }
    }

    /// The present round ends only with a packet sent from now on.
    fn restart_round(&mut self) {
        self.rounds.restart(self.delivered);
    }

    fn is_probing_bandwidth(&self) -> bool {
        matches!(
            self.state,
            State::Startup | State::ProbeBw(ProbeBwPhase::Refill | ProbeBwPhase::Up)
        )
    }
}

impl Controller for Bbr3 {
    fn on_sent(&mut self, _now: Instant, sent: &SentSample) {
        self.in_flight = sent.bytes_in_flight;
        let full = self.window.saturating_sub(self.max_datagram_size);
        self.window_use.on_sent(sent.bytes_in_flight > full);
        if let Some(seed) = &mut self.seed {
            seed.on_sent(sent.packet_number, sent.bytes);
        }
    }

    fn on_ack(&mut self, now: Instant, ack: &AckSample) {
        let is_resting = self.resting_rate().is_some();
        let ack = &AckSample {
            app_limited: ack.app_limited || is_resting,
            ..*ack
        };
        self.app_limited = ack.app_limited;
        self.in_flight = ack.bytes_in_flight;
        self.delivered_here = self.delivered_here.saturating_add(ack.bytes);
        self.round_begins = false;
        self.leave_recovery(ack.largest_acked_sent_at);
        let rate = ack.rate.map(|rate| RateSample {
            app_limited: rate.app_limited
                || is_resting
                || self.probe_rtt.limits(rate.prior_delivered),
            ..rate
        });
        if let Some(rate) = &rate {
            self.update_model(now, ack, rate);
        }
        let rtt = ack.rtt_updated.then_some(ack.rtt.latest);
        if self.config.rare_probe_rtt && !self.cross_traffic.is_present() {
            self.min_rtt.confirm(now, rtt);
        }
        let expired = self.min_rtt.update(now, rtt);
        self.round_rtt.update(self.round_begins, rtt);
        self.update_jitter(&ack.rtt);
        if ack.rtt_updated {
            self.note_queue(&ack.rtt);
            self.compare_queues(now, ack.rtt.adjusted);
        }
        self.count_arrived(ack.bytes);
        self.check_probe_rtt(now, expired);
        self.was_idle = false;
        let leaves_room = self.leaves_room();
        self.cross_traffic.set_room(now, leaves_room);
        if let Some(rate) = &rate {
            self.latest.advance(rate);
        }
        self.update_seed(ack);
        self.update_pacing_rate(ack);
        self.update_window(ack);
    }

    fn on_packet_lost(&mut self, now: Instant, lost: &PacketLoss) {
        self.delivered = self.delivered.max(lost.delivered_total);
        self.handle_lost_packet(now, lost);
        self.note_seed_loss(lost);
    }

    fn on_loss(&mut self, now: Instant, loss: &LossSample) {
        self.in_flight = loss.bytes_in_flight;
        if loss.persistent {
            self.collapse(now);
        }
    }

    fn on_ce(&mut self, _now: Instant, ce: &CeSample) {
        let bytes = ce.new_ce.saturating_mul(self.max_datagram_size);
        self.marks.on_marked(bytes, ce.l4s);
        self.fast_reprobe.on_full();
        if !ce.l4s {
            self.cross_traffic.on_marked(ce.sent_at);
        }
        self.undo.forbid();
    }

    fn on_spurious_loss(&mut self, _now: Instant, _sent_at: Instant) {
        self.undo_losses();
    }

    fn on_idle(&mut self, now: Instant, _idle: Duration) {
        if self.app_limited {
            self.restart_from_idle(now);
        }
    }

    fn on_mtu(&mut self, mtu: u64) {
        self.max_datagram_size = mtu.max(1);
        self.put(self.window);
    }

    fn window(&self) -> u64 {
        match self.resting_rate() {
            Some(_) => self.window.min(self.minimum_window()),
            None => self.window,
        }
    }

    fn pacing_rate(&self, rtt: &RttView) -> u64 {
        let rate = self.pacing_rate;
        let rate = rate.unwrap_or_else(|| self.initial_pacing_rate(rtt)).max(1);
        rate.min(self.resting_rate().unwrap_or(rate))
    }

    fn phase(&self) -> Phase {
        if self.recovery.is_collapsed() {
            return Phase::Recovery;
        }
        match self.state {
            State::ProbeRtt => Phase::ProbeRtt,
            _ if self.app_limited => Phase::ApplicationLimited,
            State::Startup => Phase::Startup,
            State::Drain { .. } => Phase::Drain,
            State::ProbeBw(_) => Phase::ProbeBw,
        }
    }

    fn in_slow_start(&self) -> bool {
        !self.full_pipe.is_reached()
    }

    fn ssthresh(&self) -> Option<u64> {
        None
    }

    fn is_rate_based(&self) -> bool {
        true
    }

    fn is_scalable(&self) -> bool {
        true
    }

    fn bandwidth(&self) -> Option<u64> {
        let bandwidth = self.bandwidth_now();
        let bandwidth = bandwidth.min(self.resting_rate().unwrap_or(bandwidth));
        Some(bandwidth).filter(|bandwidth| *bandwidth > 0)
    }

    fn name(&self) -> &'static str {
        match self.config == Bbr3Config::WIRELESS {
            true => WIRELESS.name,
            false => ENTRY.name,
        }
    }

    fn spec(&self) -> Spec {
        match self.config == Bbr3Config::WIRELESS {
            true => WIRELESS.spec(&()),
            false => ENTRY.spec(&self.config),
        }
    }
}

impl Coordinated for Bbr3 {
    fn set_window(&mut self, bytes: u64) {
        self.put(bytes);
        self.recovery.set_window(self.window);
        self.undo = Undo::default();
        if self.bandwidth.get() == 0 {
            self.initial_window = self.window;
        }
    }

    fn enter_slow_start(&mut self) {
        self.full_pipe = FullPipe::default();
        self.fast_reprobe = FastReprobe::default();
        self.bounds = Bounds::default();
        self.undo = Undo::default();
        self.seed = None;
        self.is_seeded = false;
        if self.state != State::ProbeRtt {
            self.state = State::Startup;
        }
    }

    fn exit_slow_start(&mut self) {
        self.full_pipe.set_reached(true);
        if self.state == State::Startup {
            self.enter_drain();
        }
    }

    fn set_bandwidth(&mut self, bytes_per_second: u64) {
        let bandwidth = bytes_per_second.max(1);
        if bandwidth < self.bandwidth.get() {
            // Packets in flight still arrive at the old rate.
            self.overruled = self.delivered.saturating_add(self.in_flight);
        }
        self.bandwidth.reset(bandwidth);
        self.bounds.short_bandwidth = UNBOUNDED;
        self.full_pipe.rebase(bandwidth);
        self.pacing_rate = Some(self.modelled_pacing_rate(self.pacing_gain()));
        self.put(self.window.min(self.max_in_flight()));
    }

    fn model(&self) -> Option<PathModel> {
        let model = PathModel {
            bandwidth: self.bandwidth.get(),
            is_limit: self.full_pipe.is_reached(),
            min_rtt: self.min_rtt.get()?,
            random_loss: self.random_loss.share(),
        };
        model.is_sound().then_some(model)
    }

    fn seed(&mut self, now: Instant, model: &PathModel, first_rate: u64) -> bool {
        self.begin_from(now, model, first_rate)
    }
}

#[cfg(test)]
mod tests;
