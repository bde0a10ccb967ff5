//! An owner whose members are controllers without packets, which follow directives at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::congestion::slow_start::NoExit;
use crate::congestion::{Algorithm, Controller, ControllerConfig, ControllerFactory};
use crate::samples::{AckSample, LossSample, RttView};
use crate::time::Instant;

pub(crate) const MTU: u64 = 1200;
pub(crate) const RTT: Duration = Duration::from_millis(40);

/// Time between two events of any kind.
pub(crate) const TICK: Duration = Duration::from_millis(1);

pub(crate) struct Member {
    pub(crate) controller: Box<dyn Controller>,
    pub(crate) datagram: u64,
    pub(crate) rate: Option<u64>,
    pub(crate) rate_based: bool,
    pub(crate) rtt: Duration,
    pub(crate) active: bool,
    pub(crate) share: f64,
    collapsed: bool,
}

impl Member {
    /// A member with the initial window that it would have outside a bundle.
    fn new(datagram: u64) -> Self {
        let controller = Algorithm::NewReno.build(ControllerConfig {
            initial_window: 32 * datagram,
            slow_start_exit: Box::new(NoExit),
            backoff: Some(0.7),
            ..ControllerConfig::new(datagram)
        });
        Self {
            controller,
            datagram,
            rate: None,
            rate_based: false,
            rtt: RTT,
            active: true,
            share: 1.0,
            collapsed: false,
        }
    }

    pub(crate) fn view(&self) -> MemberView {
        MemberView {
            window: self.controller.window(),
            datagram: self.datagram,
            in_slow_start: self.controller.in_slow_start(),
            rate_based: self.rate_based,
            rate: self.rate,
            smoothed_rtt: self.rtt,
            active: self.active,
        }
    }

    fn apply_directive(&mut self, directive: &Directive) {
        if let Some(share) = directive.share {
            self.share = share;
        }
        if directive.slow_start == Some(true) {
            self.controller.enter_slow_start();
        }
        if let Some(window) = directive.window {
            self.controller.set_window(window);
        }
        if directive.slow_start == Some(false) {
            self.controller.exit_slow_start();
        }
        if let Some(rate) = directive.rate {
            self.rate = Some(rate);
        }
    }
}

pub(crate) struct Owner {
    pub(crate) now: Instant,
    pub(crate) config: BundleConfig,
    pub(crate) bundle: Bundle<u32>,
    pub(crate) members: BTreeMap<u32, Member>,
    next: u32,
}

/// An event. A member is named by its position among the members, modulo their number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// A connection joins: size of its datagrams, and the number of members that its client announced.
    Join(u64, Option<u64>),
    /// A connection is added to others that send: size of its datagrams.
    Admit(u64),
    /// Every member's window is acknowledged.
    Rounds,
    /// Milliseconds pass.
    Wait(u64),
    To(usize, What),
}

/// An event of one member.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Leave,
    Lose,
    Collapse,
    Delay,
    Round,
    Active(bool),
    /// Its round-trip time, in milliseconds.
    Rtt(u64),
    /// Its rate, in bytes per second.
    Rate(u64),
    /// Its window, in full datagrams.
    Window(u64),
}

/// The directives that answer a signal.
pub(crate) type Directives = Vec<MemberDirective<u32>>;

impl Owner {
    pub(crate) fn new(config: BundleConfig) -> Self {
        Self {
            now: Instant::from_nanos(1_000_000_000),
            bundle: Bundle::new(7, Arc::new(config.clone())),
            config,
            members: BTreeMap::new(),
            next: 0,
        }
    }

    /// An owner whose bundle has `count` members with windows of `packets` in slow start.
    pub(crate) fn with(config: BundleConfig, count: usize, packets: u64) -> Self {
        let mut owner = Self::new(config);
        for _ in 0..count {
            let key = owner.join().expect("the bundle is not full");
            owner.set(key, packets);
        }
        owner
    }

    /// Lets an event happen, and checks the rules that hold after each.
    pub(crate) fn take(&mut self, op: Op) {
        let keys: Vec<u32> = self.members.keys().copied().collect();
        let is_full = keys.len() == MAX_MEMBERS;
        match op {
            Op::Join(datagram, announced) => {
                assert_eq!(self.join_with(datagram, announced).is_none(), is_full);
            }
            Op::Admit(datagram) => assert_eq!(self.admit(datagram).is_none(), is_full),
            Op::Rounds => drop(self.rounds()),
            Op::Wait(ms) => self.wait(Duration::from_millis(ms)),
            Op::To(n, what) => {
                if let Some(&key) = keys.get(n % keys.len().max(1)) {
                    self.happen(key, what);
                }
            }
        }
        assert_eq!(self.bundle.len(), self.members.len());
    }

    fn happen(&mut self, key: u32, what: What) {
        match what {
            What::Leave => self.leave(key),
            What::Lose => drop(self.lose(key)),
            What::Collapse => assert!(self.lose_as(key, true).is_empty()),
            What::Delay => drop(self.delay(key)),
            What::Round => drop(self.round(key)),
            What::Active(is) => self.member(key).active = is,
            What::Rtt(ms) => self.member(key).rtt = Duration::from_millis(ms),
            What::Rate(rate) => self.member(key).rate = Some(rate),
            What::Window(packets) => self.set(key, packets),
        }
    }

    pub(crate) fn set(&mut self, key: u32, packets: u64) {
        let member = self.member(key);
        let window = packets * member.datagram;
        member.controller.set_window(window);
    }

    pub(crate) fn member(&mut self, key: u32) -> &mut Member {
        self.members.get_mut(&key).expect("it is a member")
    }

    pub(crate) fn windows(&self) -> Vec<u64> {
        let windows = self.members.values().map(|m| m.controller.window());
        windows.collect()
    }

    pub(crate) fn sum(&self) -> u64 {
        self.windows().iter().sum()
    }

    pub(crate) fn join(&mut self) -> Option<u32> {
        self.join_with(MTU, None)
    }

    pub(crate) fn join_with(&mut self, datagram: u64, announced: Option<u64>) -> Option<u32> {
        let mut member = Member::new(datagram);
        let key = self.next;
        let joining = JoiningMember {
            announced,
            // It may have changed during the handshake.
            initial_window: 32 * MTU,
            rate_based: false,
            window: member.controller.window(),
            moved: false,
        };
        let directive = self.bundle.join(key, &joining)?;
        let window = directive.window.expect("it begins with a window");
        assert!(window >= self.floor(MTU) && window <= 32 * datagram);
        assert_eq!(directive.slow_start, None);
        member.apply_directive(&directive);
        self.next += 1;
        self.members.insert(key, member);
        Some(key)
    }

    /// Adds a member to the others, with the initial window that it would have on its own.
    pub(crate) fn admit(&mut self, datagram: u64) -> Option<Directives> {
        let key = self.next;
        let before: u64 = self.sum();
        let is_full = self.members.len() == MAX_MEMBERS;
        let is_first = self.members.is_empty();
        self.members.insert(key, Member::new(datagram));
        let members = &self.members;
        let directives = self
            .bundle
            .admit(key, &mut |key| members.get(&key).map(Member::view));
        if is_full {
            assert!(directives.is_empty());
            self.members.remove(&key);
            return None;
        }
        self.next += 1;
        for MemberDirective { member, directive } in &directives {
            self.member(*member).apply_directive(directive);
            let reason = directive.decision.as_ref().expect("it has a reason");
            let window = self.member(*member).controller.window();
            assert_eq!(window, reason.decision.after[reason.own], "{directive:?}");
        }
        let rate_based = self.members.values().any(|member| member.rate_based);
        if self.config.split_initial_window && !is_first && !rate_based {
            let floors = self.members.len() as u64 * self.floor(1500);
            let sum = self.sum();
            // A member that collapsed keeps its window, and the joining member's part comes on top.
            let collapsed = self.members.values().any(|member| member.collapsed);
            let part = u64::from(collapsed) * 32 * datagram;
            let most = before.max(32 * datagram) + floors + part;
            assert!(sum <= most, "{before} became {sum}");
        }
        Some(directives)
    }

    pub(crate) fn leave(&mut self, key: u32) {
        self.members.remove(&key);
        self.bundle.leave(key);
    }

    /// A member loses a packet of its present flight.
    pub(crate) fn lose(&mut self, key: u32) -> Directives {
        self.lose_as(key, false)
    }

    pub(crate) fn lose_as(&mut self, key: u32, persistent: bool) -> Directives {
        let signal = self.react(key, persistent);
        self.signal(key, signal)
    }

    /// A member's own reaction to a loss, and what it would report.
    pub(crate) fn react(&mut self, key: u32, persistent: bool) -> Signal {
        self.now += TICK;
        let now = self.now;
        let member = self.member(key);
        let before = member.controller.window();
        member.controller.on_loss(
            now,
            &LossSample {
                bytes: member.datagram,
                packets: 1,
                largest_lost: 0,
                latest_sent_at: now,
                largest_sent: 1,
                bytes_in_flight: before,
                persistent,
            },
        );
        member.collapsed |= persistent;
        Signal::Fluctuation {
            loss: true,
            persistent,
            before,
            after: member.controller.window(),
        }
    }

    /// The round-trip time of a member rises.
    pub(crate) fn delay(&mut self, key: u32) -> Directives {
        self.now += TICK;
        let member = self.member(key);
        member.controller.exit_slow_start();
        let window = member.controller.window();
        let signal = Signal::Fluctuation {
            loss: false,
            persistent: false,
            before: window,
            after: window,
        };
        self.signal(key, signal)
    }

    /// A member's window is acknowledged.
    pub(crate) fn round(&mut self, key: u32) -> Directives {
        self.now += TICK;
        let now = self.now;
        let member = self.member(key);
        let bytes = member.controller.window();
        let rtt = RttView {
            latest: member.rtt,
            adjusted: member.rtt,
            smoothed: member.rtt,
            min: member.rtt,
            variance: Duration::ZERO,
        };
        member.controller.on_ack(
            now,
            &AckSample {
                bytes,
                bytes_in_flight: 0,
                prior_in_flight: bytes,
                largest_acked: 1,
                largest_sent: 1,
                largest_acked_sent_at: now,
                rtt,
                rtt_updated: true,
                rate: None,
                app_limited: false,
            },
        );
        self.signal(key, Signal::Round)
    }

    /// Every member's window is acknowledged.
    pub(crate) fn rounds(&mut self) -> Directives {
        let keys: Vec<_> = self.members.keys().copied().collect();
        let directives = keys.into_iter().map(|key| self.round(key));
        directives.flatten().collect()
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    /// Sends a signal to the engine, applies its directives, and checks the invariants.
    pub(crate) fn signal(&mut self, key: u32, signal: Signal) -> Directives {
        let members = &self.members;
        let views: BTreeMap<u32, MemberView> =
            members.iter().map(|(&key, m)| (key, m.view())).collect();
        let directives = self
            .bundle
            .on_signal(self.now, key, signal, &mut |key| views.get(&key).copied());
        let own = views.get(&key);
        for (place, MemberDirective { member, directive }) in directives.iter().enumerate() {
            let view = views.get(member).expect("only members get directives");
            self.check(*view, own.expect("only members report"), directive);
            let collapsed = &mut self.member(*member).collapsed;
            *collapsed &= view.in_slow_start;
            assert!(!*collapsed, "a collapsed member takes no part");
            let earlier = &directives[..place];
            let twice = earlier
                .iter()
                .any(|other| other.member == *member && other.directive.decision.is_some());
            assert!(!twice, "one decision, one directive");
        }
        self.check_sum(&views, signal, &directives);
        for MemberDirective {
            member: key,
            directive,
        } in &directives
        {
            let member = self.member(*key);
            member.apply_directive(directive);
            let Some(MemberDecision { decision, own }) = &directive.decision else {
                continue;
            };
            if decision.action == DecisionAction::EqualizedRates {
                continue;
            }
            assert_eq!(
                member.controller.window(),
                decision.after[*own],
                "the decision names the window in use: {directive:?}"
            );
            let avoids = decision.phase == EnginePhase::CongestionAvoidance
                && decision.action != DecisionAction::None;
            let searches = self.member(*key).controller.in_slow_start();
            let ends = self.config.sync_state || self.config.fair;
            assert!(
                !(ends && avoids && searches),
                "slow start has ended: {directive:?}"
            );
        }
        directives
    }

    fn floor(&self, datagram: u64) -> u64 {
        self.config.floor_packets * datagram
    }

    fn check(&self, view: MemberView, own: &MemberView, directive: &Directive) {
        let is_own = view == *own;
        assert!(is_own || view.active || self.config.scope == BundleScope::All);
        if let Some(window) = directive.window {
            let floor = self.floor(view.datagram).min(view.window);
            assert!(window >= floor, "{directive:?}");
        }
        if let Some(share) = directive.share {
            assert!(share > 0.0 && share <= 1.0 && self.config.fair);
        }
        let BundleConfig {
            sync_windows,
            sync_state,
            fair,
            ..
        } = self.config;
        if !fair && !sync_state {
            let leaves = directive.slow_start == Some(false) && view.in_slow_start;
            assert!(!leaves && directive.slow_start != Some(true));
            assert!(sync_windows || directive.window.is_none());
        }
        let Some(MemberDecision { decision, own }) = &directive.decision else {
            return;
        };
        assert_eq!(decision.bundle, 7);
        assert_eq!(decision.before.len(), decision.after.len());
        assert!(decision.before.len() <= MAX_MEMBERS && *own < decision.after.len());
        assert!(decision.affected.is_none_or(|it| it < decision.after.len()));
        let least = self.config.affected_growth.min(1.1) - 1e-9;
        assert!(
            decision.gamma >= least && decision.gamma <= 2.0,
            "{decision:?}"
        );
        if decision.action == DecisionAction::EqualizedRates {
            assert_eq!(Some(decision.before[*own]), view.rate);
        } else {
            assert_eq!(decision.before[*own], view.window);
            let after = directive.window.unwrap_or(view.window);
            assert_eq!(decision.after[*own], after);
        }
    }

    /// The sum of the windows does not grow.
    fn check_sum(
        &self,
        views: &BTreeMap<u32, MemberView>,
        signal: Signal,
        directives: &Directives,
    ) {
        let mut reasons = directives
            .iter()
            .filter_map(|it| it.directive.decision.as_ref());
        let Some(MemberDecision { decision, .. }) = reasons.next() else {
            return;
        };
        if matches!(
            decision.action,
            DecisionAction::EqualizedRates | DecisionAction::Split
        ) {
            return;
        }
        let mut before: u64 = decision.before.iter().sum();
        if let (true, Signal::Fluctuation { before: own, .. }, Some(affected)) =
            (self.config.fair, signal, decision.affected)
        {
            before += own.saturating_sub(decision.before[affected]);
        }
        let datagram = views.values().map(|view| view.datagram).max().unwrap_or(0);
        let least = self.floor(datagram) * decision.before.len() as u64;
        let after: u64 = decision.after.iter().sum();
        assert!(
            after <= before.max(least),
            "{before} to {after}: {decision:?}"
        );
    }
}
