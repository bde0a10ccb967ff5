//! A bundle as its members' owner drives it: signals and views in, directives out.
//!
//! RFC 9040 calls what happens here ensemble sharing.

mod admit;

use std::sync::Arc;
use std::time::Duration;

use super::loss_based::{Fluctuation, LossBased, LossBasedConfig};
use super::member::{Decision, Directive, MemberView, Signal};
use super::{BundleConfig, Coalesce, MAX_MEMBERS, Newcomer, Scope};
use super::{equalize_rates, split_initial_window};
use crate::observe::events::{BundleAction, BundlePhase, BundleTrigger};
use crate::time::Instant;

/// What a fluctuation event is taken to leave of a window until one was measured.
const USUAL_BACKOFF: f64 = 0.7;

/// What a round of slow start is taken to make of a window until one was measured.
const USUAL_GROWTH: f64 = 2.0;

/// A packet of an initial window, in bytes: what every path carries (RFC 9000, section 14).
const DATAGRAM: u64 = crate::limits::MIN_DATAGRAM_SIZE as u64;

/// Bounds of what is believed of a measurement.
const BACKOFFS: (f64, f64) = (0.3, 0.95);
const GROWTHS: (f64, f64) = (1.1, 2.0);

/// Members that belong together; `M` is what their owner calls one.
#[derive(Debug)]
pub struct Bundle<M> {
    number: u64,
    config: Arc<BundleConfig>,
    members: Vec<Member<M>>,
    /// Members that ever joined.
    joined: u64,
    engine: LossBased,
    counted_at: Option<Instant>,
    backoff: f64,
    growth: f64,
}

#[derive(Debug)]
struct Member<M> {
    key: M,
    /// When an event last counted, and when the round-trip time last rose.
    counted_at: Option<Instant>,
    delayed_at: Option<Instant>,
    /// Whether a round has passed since all were looked at.
    reported: bool,
    /// The window when all were looked at, if in slow start.
    window: Option<u64>,
    share: f64,
    /// Whether persistent congestion took its window, and it has not found its way back yet.
    collapsed: bool,
}

impl<M> Member<M> {
    const fn new(key: M) -> Self {
        Self {
            key,
            counted_at: None,
            delayed_at: None,
            reported: false,
            window: None,
            share: 1.0,
            collapsed: false,
        }
    }
}

/// Members that take part in a decision: their places in the bundle, and how they stand.
struct Part {
    places: Vec<usize>,
    views: Vec<MemberView>,
}

impl Part {
    fn windows(&self) -> Vec<u64> {
        self.views.iter().map(|view| view.window).collect()
    }

    fn longest_round(&self) -> Duration {
        let rtts = self.views.iter().map(|view| view.smoothed_rtt);
        rtts.max().unwrap_or_default()
    }

    fn is_rate_based(&self) -> bool {
        self.views.iter().any(|view| view.rate_based)
    }
}

impl<M: Copy + PartialEq> Bundle<M> {
    /// An empty bundle, `number` to those who watch.
    pub fn new(number: u64, config: Arc<BundleConfig>) -> Self {
        Self {
            number,
            members: Vec::new(),
            joined: 0,
            engine: engine(&config),
            counted_at: None,
            backoff: config.backoff.unwrap_or(USUAL_BACKOFF),
            growth: config.slow_start_growth.unwrap_or(USUAL_GROWTH),
            config,
        }
    }

    /// How many members there are (N).
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Takes in a member; `None` if the bundle is full.
    pub fn join(&mut self, key: M, newcomer: &Newcomer) -> Option<Directive> {
        if !self.takes(key) {
            return None;
        }
        let most = MAX_MEMBERS as u64;
        let sharers = newcomer
            .announced
            .unwrap_or(self.config.connections)
            .clamp(1, most)
            .max(self.members.len() as u64 + 1);
        let packets = newcomer.initial_window / DATAGRAM;
        let place = self.joined % sharers;
        self.joined += 1;
        let window = match self.config.split_initial_window {
            true => split_initial_window(packets, sharers)
                .nth(place as usize)
                .map(|packets| packets.max(self.config.floor_packets) * DATAGRAM),
            false => None,
        };
        let window = window.unwrap_or(newcomer.window);
        self.members.push(Member::new(key));
        let trigger = match newcomer.moved {
            true => BundleTrigger::Moved,
            false => BundleTrigger::Joined,
        };
        let why = (trigger, BundleAction::Split, None);
        let decision = self.decision(why, vec![newcomer.window], vec![window]);
        let mut directive = Directive {
            window: Some(window),
            decision: Some((Arc::new(decision), 0)),
            ..Directive::default()
        };
        if self.config.fair {
            directive.share = Some(self.set_share(self.members.len() - 1, self.members.len()));
        }
        Some(directive)
    }

    fn takes(&self, key: M) -> bool {
        self.members.len() < MAX_MEMBERS && self.members.iter().all(|member| member.key != key)
    }

    /// Forgets a member.
    pub fn leave(&mut self, key: M) {
        self.members.retain(|member| member.key != key);
    }

    /// Acts on what `key` reports. `view` tells how a member stands, or nothing if it is gone.
    pub fn on_signal(
        &mut self,
        now: Instant,
        key: M,
        signal: Signal,
        view: &mut dyn FnMut(M) -> Option<MemberView>,
    ) -> Vec<(M, Directive)> {
        let Some(own) = self.members.iter().position(|member| member.key == key) else {
            return Vec::new();
        };
        let Some(own_view) = view(key) else {
            return Vec::new();
        };
        match signal {
            Signal::Fluctuation {
                loss,
                persistent,
                before,
                after,
            } => {
                self.members[own].collapsed |= persistent;
                if persistent || own_view.rate_based {
                    return Vec::new();
                }
                let part = self.part(own, &own_view, view);
                self.on_fluctuation(now, own, loss, (before, after), &part)
            }
            Signal::Round => {
                self.members[own].reported = true;
                let part = self.part(own, &own_view, view);
                self.on_round(&part)
            }
        }
    }

    /// Who takes part in a decision about `own`.
    fn part(
        &mut self,
        own: usize,
        own_view: &MemberView,
        view: &mut dyn FnMut(M) -> Option<MemberView>,
    ) -> Part {
        let mut part = Part {
            places: Vec::with_capacity(self.members.len()),
            views: Vec::with_capacity(self.members.len()),
        };
        for (place, member) in self.members.iter_mut().enumerate() {
            let seen = if place == own {
                Some(*own_view)
            } else {
                view(member.key).filter(|view| self.config.scope == Scope::All || view.active)
            };
            let Some(seen) = seen else { continue };
            // Until it is back where it was, what it has says nothing of the path to the others.
            member.collapsed &= seen.in_slow_start;
            if member.collapsed {
                member.reported = false;
                member.window = None;
            } else {
                part.places.push(place);
                part.views.push(seen);
            }
        }
        part
    }

    fn on_fluctuation(
        &mut self,
        now: Instant,
        own: usize,
        loss: bool,
        (before, after): (u64, u64),
        part: &Part,
    ) -> Vec<(M, Directive)> {
        let trigger = match loss {
            true => BundleTrigger::Loss,
            false => BundleTrigger::SlowStartExit,
        };
        let Some(place) = part.places.iter().position(|&place| place == own) else {
            return Vec::new();
        };
        let backs_off = loss || self.config.backoff_on_delay;
        if loss && before > 0 && self.config.backoff.is_none() {
            self.backoff = (after as f64 / before as f64).clamp(BACKOFFS.0, BACKOFFS.1);
        }
        let round = part.longest_round();
        let recent = |at: Option<Instant>, within: Duration| at.is_some_and(|at| now < at + within);
        let coalesces = self.config.fair && recent(self.counted_at, round)
            || match self.config.coalesce {
                Coalesce::Never => false,
                Coalesce::Member => {
                    let rtt = part.views[place].smoothed_rtt;
                    recent(self.members[own].counted_at, rtt)
                }
                Coalesce::Bundle => recent(self.counted_at, round),
            };
        if !loss {
            self.members[own].delayed_at = Some(now);
        }
        let delayed = part.places.iter().filter(|&&place| {
            let member = &self.members[place];
            recent(member.delayed_at, round)
        });
        let is_corroborated = !loss
            && self.config.sync_state
            && self
                .config
                .corroborated_by
                .is_some_and(|members| delayed.count() >= members.min(part.places.len()));
        // What costs a fair bundle nothing must not pay for a loss.
        if !coalesces && (backs_off || !self.config.fair) {
            self.counted_at = Some(now);
            self.members[own].counted_at = Some(now);
        }

        let mut windows: Vec<f64> = part.views.iter().map(|view| view.window as f64).collect();
        let was = self.engine.phase();
        let stands = self.stands();
        if !loss && backs_off && !stands && was == BundlePhase::SlowStart {
            windows[place] *= self.backoff;
        }
        let action = if self.config.fair {
            // Unless another's event set the window before this one was heard of.
            if part.views[place].window == after {
                windows[place] = before as f64;
            }
            self.engine.exit();
            if !coalesces && backs_off {
                let each = windows.iter().sum::<f64>() * self.backoff / windows.len() as f64;
                windows.fill(each);
                BundleAction::BackedOff
            } else {
                BundleAction::Coalesced
            }
        } else if stands {
            BundleAction::None
        } else if is_corroborated {
            self.engine.exit();
            BundleAction::Exited
        } else if coalesces {
            BundleAction::Coalesced
        } else {
            let event = Fluctuation {
                affected: place,
                members: self.members.len(),
                backoff: self.backoff,
                slow_start_growth: self.growth,
            };
            self.engine.set_floor(self.floor(&part.views[place]));
            self.engine.on_fluctuation(&event, &mut windows)
        };
        self.follow(part);
        let slow_start = match self.engine.phase() {
            BundlePhase::CongestionAvoidance => Some(false),
            BundlePhase::SlowStart if self.config.sync_state => Some(true),
            BundlePhase::SlowStart => None,
        };
        self.directives(
            part,
            (trigger, action, Some(place)),
            &windows,
            |place, out| {
                if stands {
                    out.window = None;
                    return;
                }
                let seen = &part.views[place];
                out.slow_start = match slow_start {
                    Some(enters) => (enters != seen.in_slow_start).then_some(enters),
                    // Without its state, a window that was made equal must not search again.
                    None => (!seen.in_slow_start).then_some(false),
                };
            },
        )
    }

    /// Whether events leave windows and slow start as they are: in congestion avoidance members go
    /// their own ways, and without anything to synchronize they do so always.
    fn stands(&self) -> bool {
        let BundleConfig {
            sync_windows,
            sync_state,
            fair,
            ..
        } = *self.config;
        let avoids = self.engine.phase() == BundlePhase::CongestionAvoidance;
        !fair && (avoids || !sync_windows && !sync_state)
    }

    /// Without its state, a bundle is in slow start for as long as one of its members is.
    fn follow(&mut self, part: &Part) {
        let searches = part.views.iter().any(|view| view.in_slow_start);
        if !self.config.sync_state && !searches && !part.views.is_empty() {
            self.engine.exit();
        }
    }

    /// All have reported: drifting windows or rates become equal.
    fn on_round(&mut self, part: &Part) -> Vec<(M, Directive)> {
        if part
            .places
            .iter()
            .any(|&place| !self.members[place].reported)
        {
            return Vec::new();
        }
        self.measure_growth(part);
        self.follow(part);
        let mut shares = Vec::new();
        if self.config.fair {
            for &place in &part.places {
                let share = self.members[place].share;
                let new = self.set_share(place, part.places.len());
                if new != share {
                    let directive = Directive {
                        share: Some(new),
                        ..Directive::default()
                    };
                    shares.push((self.members[place].key, directive));
                }
            }
        }
        let told = if part.is_rate_based() {
            self.equalize_rates(part)
        } else {
            self.equalize_windows(part)
        };
        shares.into_iter().chain(told).collect()
    }

    fn equalize_windows(&mut self, part: &Part) -> Vec<(M, Directive)> {
        let mut windows: Vec<f64> = part.views.iter().map(|view| view.window as f64).collect();
        let floor = part.views.first().map_or(0.0, |view| self.floor(view));
        self.engine.set_floor(floor);
        let action = self.engine.on_round(&mut windows);
        if action == BundleAction::None {
            return Vec::new();
        }
        let why = (BundleTrigger::Round, action, None);
        let ends = self.config.sync_state || self.config.fair;
        self.directives(part, why, &windows, |place, out| {
            // A member that joined late stops searching: it knows what the others have found.
            out.slow_start = (ends && part.views[place].in_slow_start).then_some(false);
        })
    }

    fn equalize_rates(&mut self, part: &Part) -> Vec<(M, Directive)> {
        let mut rates: Vec<_> = part
            .views
            .iter()
            .map(|v| v.rate.map(|r| r as f64))
            .collect();
        if !self.config.sync_windows || !equalize_rates(&mut rates, self.config.rate_imbalance) {
            return Vec::new();
        }
        let before = part.views.iter().filter_map(|view| view.rate).collect();
        let after: Vec<_> = rates
            .iter()
            .flatten()
            .map(|&rate| rate.round() as u64)
            .collect();
        let why = (BundleTrigger::Round, BundleAction::EqualizedRates, None);
        let decision = Arc::new(self.decision(why, before, after.clone()));
        let told = part.places.iter().zip(&after).enumerate();
        told.map(|(place, (&member, &rate))| {
            let directive = Directive {
                rate: Some(rate),
                decision: Some((Arc::clone(&decision), place)),
                ..Directive::default()
            };
            (self.members[member].key, directive)
        })
        .collect()
    }

    /// What a round of slow start made of the windows, where it did not change them itself.
    fn measure_growth(&mut self, part: &Part) {
        let (mut earlier, mut later) = (0, 0);
        for (&place, view) in part.places.iter().zip(&part.views) {
            let member = &mut self.members[place];
            member.reported = false;
            let window = view.in_slow_start.then_some(view.window);
            if let (Some(before), Some(now)) = (member.window, window) {
                earlier += before;
                later += now;
            }
            member.window = window;
        }
        if self.config.slow_start_growth.is_none() && earlier > 0 && later > earlier {
            self.growth = (later as f64 / earlier as f64).clamp(GROWTHS.0, GROWTHS.1);
        }
    }

    /// Tells everybody who took part; `more` adds to what one is told.
    fn directives(
        &mut self,
        part: &Part,
        why: (BundleTrigger, BundleAction, Option<usize>),
        windows: &[f64],
        more: impl Fn(usize, &mut Directive),
    ) -> Vec<(M, Directive)> {
        let bounded = |(&window, view): (&f64, &MemberView)| {
            let least = self.floor(view) as u64;
            // Rounded down: together they get no byte more.
            (window as u64).max(least.min(view.window))
        };
        let after: Vec<u64> = windows.iter().zip(&part.views).map(bounded).collect();
        let decision = Arc::new(self.decision(why, part.windows(), after.clone()));
        let mut told = Vec::with_capacity(part.places.len());
        for (place, &member) in part.places.iter().enumerate() {
            let member = &mut self.members[member];
            let window = after[place];
            // What it grew by was not slow start alone.
            member.window = None;
            let mut directive = Directive {
                window: (window != part.views[place].window).then_some(window),
                decision: Some((Arc::clone(&decision), place)),
                ..Directive::default()
            };
            more(place, &mut directive);
            told.push((member.key, directive));
        }
        told
    }

    fn decision(
        &self,
        (trigger, action, affected): (BundleTrigger, BundleAction, Option<usize>),
        before: Vec<u64>,
        after: Vec<u64>,
    ) -> Decision {
        Decision {
            bundle: self.number,
            trigger,
            action,
            phase: self.engine.phase(),
            affected,
            gamma: self.engine.gamma().unwrap_or(self.growth),
            fluctuations: self.engine.events(),
            before,
            after,
        }
    }

    fn set_share(&mut self, place: usize, sharers: usize) -> f64 {
        let share = 1.0 / sharers.max(1) as f64;
        self.members[place].share = share;
        share
    }

    fn floor(&self, view: &MemberView) -> f64 {
        (self.config.floor_packets * view.datagram) as f64
    }
}

fn engine(config: &BundleConfig) -> LossBased {
    LossBased::new(LossBasedConfig {
        affected_growth: config.affected_growth,
        avoidance_growth: config.avoidance_growth,
        imbalance: config.imbalance,
        floor: 0.0,
        sync_windows: config.sync_windows,
        sync_state: config.sync_state,
    })
}
