//! The certificates of a server, and the task that obtains and renews them.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use marline::Runtime;
use marline_http::log::{Level, Subject, emit};
use marline_http::server::{Challenges, Identity, StateDirectory};
use tokio::sync::Notify;

use crate::acme::Authority;
use crate::config::{Challenge, Wanted};
use crate::error::CertificateError;
use crate::schedule::{self, Drawn, LOOK_AGAIN, Window};
use crate::stapling::Stapling;
use crate::store::{Attempts, Failed, Store};

/// The certificates of a server that it obtains by itself. All clones are one.
#[derive(Clone)]
pub struct Certificates(Arc<Inner>);

struct Inner {
    store: Store,
    runtime: Arc<dyn Runtime>,
    challenges: Challenges,
    stapling: Stapling,
    /// The challenges that the server can answer, the preferred one first.
    kinds: Vec<Challenge>,
    managed: Mutex<Vec<Arc<Managed>>>,
    changed: Notify,
    orders: AtomicU64,
}

/// Certificates for a configuration that is not yet in use.
#[must_use]
#[derive(Default)]
pub struct Prepared(Vec<Arc<Managed>>);

/// A certificate that is obtained by itself.
#[derive(Clone, Debug)]
pub struct PreparedCertificate {
    /// Its names.
    pub names: Vec<String>,
    /// The certificate, which [`Certificates::run`] replaces.
    pub identity: Identity,
}

/// A certificate, and the time of its next attempt.
pub(crate) struct Managed {
    wanted: Wanted,
    file: String,
    identity: Identity,
    plan: Mutex<Plan>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    /// Whether the authority has issued the present certificate, for the wanted names.
    is_issued: bool,
    /// When it is renewed.
    renew_at: Duration,
    /// The window that `renew_at` was drawn from, if the authority has one.
    window: Option<Window>,
    /// When renewal information is asked for.
    ask_at: Duration,
    succeeded: Option<bool>,
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates")
            .field("managed", &self.managed().len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("certificates", &self.0.len())
            .finish()
    }
}

impl Managed {
    /// The first name.
    pub(crate) fn name(&self) -> &str {
        &self.wanted.names()[0]
    }

    /// Whether the last attempt succeeded, if there was one.
    pub(crate) fn last_result(&self) -> Option<bool> {
        self.plan().succeeded
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time of the next order, after those that `attempts` have failed.
    fn due(&self, attempts: &Attempts) -> Duration {
        let plan = *self.plan();
        let wanted = if plan.is_issued {
            plan.renew_at
        } else {
            Duration::ZERO
        };
        match attempts.failed.get(&self.file) {
            Some(failed) => wanted.max(failed.next()),
            None => wanted,
        }
    }
}

/// Logs a message for the operator.
fn report(level: Level, text: &str) {
    emit(level, Subject::Tls, text);
}

impl Certificates {
    /// Without certificates so far. They are kept in `state`; `challenges` are those of the server, which can answer `kinds` of
    /// them. Messages go to the [log](marline_http::log) of the process.
    pub fn new(
        state: Arc<StateDirectory>,
        runtime: Arc<dyn Runtime>,
        challenges: Challenges,
        stapling: Stapling,
        kinds: Vec<Challenge>,
    ) -> Self {
        Self(Arc::new(Inner {
            store: Store::new(state),
            runtime,
            challenges,
            stapling,
            kinds,
            managed: Mutex::default(),
            changed: Notify::new(),
            orders: AtomicU64::new(0),
        }))
    }

    /// The certificates `wanted`: those that are in use, or in the state directory, or copies of `until_then` until an authority has
    /// issued one. Nothing changes before [`apply`](Self::apply).
    ///
    /// # Errors
    /// A file of the state directory cannot be used.
    pub fn prepare(
        &self,
        wanted: Vec<Wanted>,
        until_then: &Identity,
    ) -> Result<Prepared, CertificateError> {
        let present = self.managed();
        let mut prepared = Vec::with_capacity(wanted.len());
        for wanted in wanted {
            if let Some(same) = present.iter().find(|one| one.wanted == wanted) {
                prepared.push(Arc::clone(same));
                continue;
            }
            let file = wanted.file();
            let stored = self.0.store.certificate(&file)?;
            let mut plan = Plan::default();
            let identity = match stored {
                Some(stored) => {
                    plan.is_issued = stored.names == wanted.names();
                    plan.renew_at = self.renew_at(&stored.identity);
                    stored.identity
                }
                None => until_then.detached(),
            };
            prepared.push(Arc::new(Managed {
                wanted,
                file,
                identity,
                plan: Mutex::new(plan),
            }));
        }
        Ok(Prepared(prepared))
    }

    /// Obtains and renews these certificates from now on, and no others. Authorities are asked at once when these are to be renewed.
    pub fn apply(&self, prepared: Prepared) {
        for one in &prepared.0 {
            one.plan().ask_at = Duration::ZERO;
            if !one.plan().is_issued {
                report(
                    Level::Information,
                    &format!(
                        "{} is served with another certificate until {} has issued one",
                        one.wanted.names().join(", "),
                        one.wanted.acme().directory
                    ),
                );
            }
        }
        *self
            .0
            .managed
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = prepared.0;
        self.0.changed.notify_one();
    }

    /// Obtains and renews certificates, until it is dropped.
    pub async fn run(self) {
        let mut authorities = HashMap::new();
        loop {
            let next = self.next();
            let wait = next.saturating_sub(self.now()).min(LOOK_AGAIN);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.0.changed.notified() => {}
            }
            for one in self.managed() {
                self.attend(&one, &mut authorities).await;
            }
        }
    }

    /// The time at which something is to be done.
    fn next(&self) -> Duration {
        let attempts = self.0.store.attempts();
        let managed = self.managed();
        let times = managed.iter().map(|one| {
            let plan = *one.plan();
            match plan.is_issued {
                true => one.due(&attempts).min(plan.ask_at),
                false => one.due(&attempts),
            }
        });
        times.min().unwrap_or(Duration::MAX)
    }

    /// Does what is due for a certificate.
    async fn attend(&self, one: &Managed, authorities: &mut HashMap<String, Authority>) {
        let plan = *one.plan();
        if plan.is_issued && plan.ask_at <= self.now() {
            self.ask(one, authorities).await;
        }
        let mut attempts = self.0.store.attempts();
        let now = self.now();
        if one.due(&attempts) > now {
            return;
        }
        let before = attempts
            .failed
            .get(&one.file)
            .map_or(0, |failed| failed.times);
        let result = match attempts.orders.begin(now) {
            Ok(()) => {
                // Counted before it begins: a server that does not live until its end has made it nevertheless.
                let _ = self.0.store.keep_attempts(&attempts);
                self.obtain(one, before, authorities).await
            }
            Err(again) => {
                let next = Failed {
                    times: before,
                    next: again.as_secs() + 1,
                };
                attempts.failed.insert(one.file.clone(), next);
                let _ = self.0.store.keep_attempts(&attempts);
                return report(
                    Level::Warning,
                    &format!(
                        "the certificate of {} waits: there have been many orders within an hour",
                        one.name()
                    ),
                );
            }
        };
        let mut attempts = self.0.store.attempts();
        match result {
            Ok(()) => drop(attempts.failed.remove(&one.file)),
            Err(error) => {
                let times = before.saturating_add(1);
                let named = authorities.get(&one.wanted.acme().account());
                let least = named.and_then(Authority::wait).unwrap_or_default();
                let wait = schedule::retry_after(times, self.draw()).max(least);
                let next = (self.now() + wait).as_secs() + 1;
                attempts
                    .failed
                    .insert(one.file.clone(), Failed { times, next });
                one.plan().succeeded = Some(false);
                report(
                    Level::Error,
                    &format!(
                        "no certificate for {}: {error}; the next attempt is in {} minutes",
                        one.wanted.names().join(", "),
                        wait.as_secs().div_ceil(60)
                    ),
                );
            }
        }
        if let Err(error) = self.0.store.keep_attempts(&attempts) {
            report(Level::Error, &error.to_string());
        }
    }

    /// Obtains a certificate after `failures`, and puts it in use.
    async fn obtain(
        &self,
        one: &Managed,
        failures: u32,
        authorities: &mut HashMap<String, Authority>,
    ) -> Result<(), CertificateError> {
        let acme = one.wanted.acme();
        let replaces = one.plan().is_issued.then_some(&one.identity);
        // What failed one way may succeed another.
        let mut kinds = self.0.kinds.clone();
        if !kinds.is_empty() {
            let first = failures as usize % kinds.len();
            kinds.rotate_left(first);
        }
        let authority = self.authority(one, authorities).await?;
        self.0.orders.fetch_add(1, Relaxed);
        let challenges = &self.0.challenges;
        let mut issued = authority
            .obtain(&one.wanted, replaces, &kinds, challenges)
            .await;
        if matches!(&issued, Err(error) if error.is("accountDoesNotExist")) {
            let renewed = Authority::renew(acme, &self.0.store).await?;
            authorities.insert(acme.account(), renewed);
            let authority = self.authority(one, authorities).await?;
            issued = authority
                .obtain(&one.wanted, replaces, &kinds, challenges)
                .await;
        }
        let issued = issued?;
        self.0.stapling.attach(&issued).await;
        one.identity.replace(&issued)?;
        let renew_at = self.renew_at(&issued);
        *one.plan() = Plan {
            is_issued: true,
            renew_at,
            window: None,
            ask_at: Duration::ZERO,
            succeeded: Some(true),
        };
        report(
            Level::Information,
            &format!(
                "{} has a new certificate of {}",
                one.wanted.names().join(", "),
                acme.directory
            ),
        );
        self.0.store.keep(&one.file, one.wanted.names(), &issued)
    }

    /// Asks the authority when a certificate is to be renewed. Without an answer, the time stays as it is.
    async fn ask(&self, one: &Managed, authorities: &mut HashMap<String, Authority>) {
        let advice = match self.authority(one, authorities).await {
            Ok(authority) => authority.advice(&one.identity).await,
            Err(error) => Err(error),
        };
        let now = self.now();
        let mut plan = one.plan();
        plan.ask_at = now + LOOK_AGAIN;
        let (Ok(Some(advice)), Some(dates)) = (advice, one.identity.dates()) else {
            return;
        };
        plan.ask_at = now + schedule::ask_again(advice.again);
        // A time is drawn once for each window.
        if plan.window != Some(advice.window) {
            plan.window = Some(advice.window);
            plan.renew_at = schedule::suggested(advice.window, dates, self.draw());
        }
    }

    /// The authority of a certificate, with its account.
    async fn authority<'a>(
        &self,
        one: &Managed,
        authorities: &'a mut HashMap<String, Authority>,
    ) -> Result<&'a Authority, CertificateError> {
        let acme = one.wanted.acme();
        let account = acme.account();
        if !authorities.contains_key(&account) {
            let opened = Authority::open(acme, &self.0.store).await?;
            if let Some(terms) = opened.agreed() {
                report(
                    Level::Information,
                    &format!(
                        "made an account at {}, which agrees to its terms of service: {terms}",
                        acme.directory
                    ),
                );
            }
            authorities.insert(account.clone(), opened);
        }
        Ok(&authorities[&account])
    }

    fn renew_at(&self, identity: &Identity) -> Duration {
        let dates = identity.dates();
        dates.map_or(Duration::ZERO, |dates| {
            schedule::renew_at(dates, self.draw())
        })
    }

    /// A number from 0 to 1.
    fn draw(&self) -> Drawn {
        schedule::draw(&*self.0.runtime)
    }

    fn now(&self) -> Duration {
        self.0.runtime.unix_time()
    }

    pub(crate) fn managed(&self) -> Vec<Arc<Managed>> {
        self.0
            .managed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn orders(&self) -> &AtomicU64 {
        &self.0.orders
    }
}

impl Prepared {
    /// The certificates, in the order in which they are wanted.
    pub fn certificates(&self) -> Vec<PreparedCertificate> {
        let all = self.0.iter().map(|one| PreparedCertificate {
            names: one.wanted.names().to_vec(),
            identity: one.identity.clone(),
        });
        all.collect()
    }
}
