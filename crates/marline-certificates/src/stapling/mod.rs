//! The status of certificates that ask to be stapled to handshakes (RFC 7633), from their responders.

mod kept;
mod responder;

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use marline::Runtime;
use marline_http::client::ClientError;
use marline_http::log::{Level, Subject, emit};
use marline_http::server::{
    CertificateStatus, Identity, MetricsSource, StateDirectory, StatusError, StatusHealth,
    StatusQuery, metric_head,
};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use self::kept::{Fingerprint, Kept, fingerprint};
use self::responder::Responders;
use crate::schedule::{self, Drawn, LOOK_AGAIN, earliest};

/// Certificates whose responders are asked at the same time.
const MAX_AT_ONCE: usize = 8;

/// The status of the certificates of a server. All clones are one.
#[derive(Clone)]
pub struct Stapling(Arc<Inner>);

struct Inner {
    state: Option<Arc<StateDirectory>>,
    runtime: Arc<dyn Runtime>,
    responders: Responders,
    identities: Mutex<Vec<Identity>>,
    /// Of the certificates of `identities` that ask.
    known: Mutex<BTreeMap<Fingerprint, Known>>,
    changed: Notify,
    /// Requests to responders without a status in the end.
    failures: AtomicU64,
}

/// The knowledge about a certificate.
#[derive(Clone, Debug, Default)]
struct Known {
    name: String,
    status: Option<CertificateStatus>,
    /// When its responder is asked next.
    next: Duration,
    failures: u32,
    problem: Option<String>,
}

impl Known {
    /// When something is to be done.
    fn due(&self) -> Duration {
        let end = self.status.as_ref().map(CertificateStatus::next_update);
        end.map_or(self.next, |end| end.min(self.next))
    }
}

/// A certificate that asks, and all identities that have it.
struct Asking {
    query: StatusQuery,
    identities: Vec<Identity>,
}

impl fmt::Debug for Stapling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stapling")
            .field("known", &self.known().len())
            .finish_non_exhaustive()
    }
}

impl Stapling {
    /// For no certificates so far. Responses are kept in `state`, if there is one.
    ///
    /// # Errors
    /// There can be no client of responders.
    pub fn new(
        state: Option<Arc<StateDirectory>>,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, ClientError> {
        Ok(Self(Arc::new(Inner {
            state,
            runtime,
            responders: Responders::new()?,
            identities: Mutex::default(),
            known: Mutex::default(),
            changed: Notify::new(),
            failures: AtomicU64::new(0),
        })))
    }

    /// Staples what is known of the certificate of `identity`, so that its first handshakes have it.
    pub fn prepare(&self, identity: &Identity) {
        if let Some(query) = identity.status_query() {
            let known = self.known_of(&query);
            // A key that does not match is reported by the server that uses it.
            let _ = identity.staple(known.status.as_ref());
        }
    }

    /// Staples to these from now on, and to no others. Responders that have failed are asked again at once.
    pub fn apply(&self, identities: Vec<Identity>) {
        *lock(&self.0.identities) = identities;
        let mut known = self.known();
        let failed = known.values_mut().filter(|one| one.problem.is_some());
        failed.for_each(|one| one.next = Duration::ZERO);
        drop(known);
        self.0.changed.notify_one();
    }

    /// Asks the responder of a certificate that is to be used, and staples the answer.
    pub(crate) async fn attach(&self, identity: &Identity) {
        if let Some(query) = identity.status_query() {
            let identities = vec![identity.clone()];
            self.attend(Asking { query, identities }).await;
        }
        self.0.changed.notify_one();
    }

    /// Asks responders, and staples their answers, until it is dropped.
    pub async fn run(self) {
        loop {
            self.attend_all().await;
            let next = self.known().values().map(Known::due).min();
            let wait = next.map_or(LOOK_AGAIN, |next| next.saturating_sub(self.now()));
            tokio::select! {
                () = tokio::time::sleep(wait.min(LOOK_AGAIN)) => {}
                () = self.0.changed.notified() => {}
            }
        }
    }

    /// Does what is due for all certificates.
    async fn attend_all(&self) {
        let asking = self.asking();
        if asking.is_empty() {
            // Perhaps not so far: the state directory keeps what it has.
            return;
        }
        self.known().retain(|key, _| asking.contains_key(key));
        let mut running = JoinSet::new();
        for one in asking.into_values() {
            if running.len() >= MAX_AT_ONCE {
                running.join_next().await;
            }
            let stapling = self.clone();
            running.spawn(async move { stapling.attend(one).await });
        }
        while running.join_next().await.is_some() {}
        self.keep();
    }

    /// The certificates that ask.
    fn asking(&self) -> BTreeMap<Fingerprint, Asking> {
        let mut asking = BTreeMap::<_, Asking>::new();
        for identity in lock(&self.0.identities).iter() {
            let Some(query) = identity.status_query() else {
                continue;
            };
            let of_certificate = asking.entry(fingerprint(&query)).or_insert_with(|| Asking {
                query,
                identities: Vec::new(),
            });
            of_certificate.identities.push(identity.clone());
        }
        asking
    }

    /// Does what is due for a certificate.
    async fn attend(&self, one: Asking) {
        let Asking { query, identities } = one;
        let mut known = self.known_of(&query);
        let name = &known.name.clone();
        if known
            .status
            .as_ref()
            .is_some_and(|status| status.next_update() <= self.now())
        {
            known.status = None;
            if known.failures == 0 {
                known.next = self.now();
            }
            let text = format!(
                "the status of the certificate of {name} has expired: nothing is stapled, and clients may refuse it"
            );
            emit(Level::Error, Subject::Tls, &text);
        }
        if known.next <= self.now() {
            self.renew(&query, &mut known).await;
        }
        for identity in &identities {
            let _ = identity.staple(known.status.as_ref());
        }
        self.known().insert(fingerprint(&query), known);
    }

    /// Asks a responder.
    async fn renew(&self, query: &StatusQuery, known: &mut Known) {
        let name = query.name();
        let asked = match query.responder(known.failures) {
            Ok(url) => self.0.responders.ask(url, query, self.now()).await,
            Err(error) => Err(error.into()),
        };
        match asked {
            Ok(status) => {
                if status.is_revoked() {
                    let text = format!(
                        "the certificate of {name} is revoked: clients that see its stapled status refuse it; get another"
                    );
                    emit(Level::Error, Subject::Tls, &text);
                }
                known.next = schedule::renew_status_at(&status, self.now(), self.draw());
                known.status = Some(status);
                known.failures = 0;
                known.problem = None;
            }
            Err(error) => {
                self.0.failures.fetch_add(1, Relaxed);
                known.failures = known.failures.saturating_add(1);
                let wait = schedule::retry_status_after(known.failures, self.draw());
                known.next = self.now() + wait;
                let present = match &known.status {
                    Some(status) => format!("the present one stays ({status})"),
                    None => "nothing is stapled, and clients may refuse it".to_owned(),
                };
                let text = format!(
                    "no new status for the certificate of {name}, which asks to be stapled: {error}; {present}; the next attempt is in {} minutes",
                    wait.as_secs().div_ceil(60)
                );
                emit(Level::Warning, Subject::Tls, &text);
                known.problem = Some(error.to_string());
            }
        }
    }

    /// The knowledge about a certificate: so far, what the state directory has.
    fn known_of(&self, query: &StatusQuery) -> Known {
        if let Some(known) = self.known().get(&fingerprint(query)) {
            return known.clone();
        }
        let state = self.0.state.as_deref();
        let kept = state.and_then(|state| state.load(kept::FILE).ok().flatten());
        let status = kept.and_then(|kept| Kept::read(&kept).status(query, self.now()));
        let next = status.as_ref().map_or(Duration::ZERO, |status| {
            schedule::renew_status_at(status, status.this_update(), self.draw())
        });
        Known {
            name: query.name().to_owned(),
            status,
            next,
            ..Known::default()
        }
    }

    /// Keeps all that is known in the state directory, if it has changed.
    fn keep(&self) {
        let Some(state) = &self.0.state else {
            return;
        };
        let known = self.known().clone();
        let has_status = known
            .iter()
            .filter_map(|(key, one)| Some((key, one.status.as_ref()?)));
        let kept = Kept::of(has_status);
        let before = state.load(kept::FILE).ok().flatten();
        let before = before.map_or_else(Kept::default, |text| Kept::read(&text));
        if before != kept
            && let Err(error) = state.save(kept::FILE, &kept.text())
        {
            emit(Level::Error, Subject::Tls, &error.to_string());
        }
    }

    fn draw(&self) -> Drawn {
        schedule::draw(&*self.0.runtime)
    }

    fn now(&self) -> Duration {
        self.0.runtime.unix_time()
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Fingerprint, Known>> {
        lock(&self.0.known)
    }
}

impl MetricsSource for Stapling {
    fn write(&self, out: &mut String) -> fmt::Result {
        let now = self.now().as_secs_f64();
        let name = "marline_ocsp_staple_seconds";
        let help = "Seconds until the stapled status of a certificate ends; 0 if there is none.";
        metric_head(out, name, "gauge", help)?;
        let known = self.known();
        let left = known.values().map(|one| {
            let end = one.status.as_ref().map(CertificateStatus::next_update);
            let left = end.map_or(0.0, |end| (end.as_secs_f64() - now).max(0.0));
            (one.name.as_str(), left)
        });
        for (certificate, left) in earliest(left) {
            writeln!(out, "{name}{{name=\"{certificate}\"}} {left:.0}")?;
        }
        let name = "marline_ocsp_failures_total";
        let help = "Requests for the status of certificates that brought none.";
        metric_head(out, name, "counter", help)?;
        writeln!(out, "{name} {}", self.0.failures.load(Relaxed))
    }

    fn statuses(&self) -> Vec<StatusHealth> {
        let known = self.known();
        let all = known.values().map(|one| StatusHealth {
            certificate: one.name.clone(),
            stapled: one.status.as_ref().map(ToString::to_string),
            problem: one.problem.clone(),
        });
        all.collect()
    }
}

/// The status of the certificate of `identity` in the state directory at `state`, if it asks to be stapled.
pub fn kept_status(
    identity: &Identity,
    state: Option<&Path>,
    unix_time: Duration,
) -> Option<KeptStatus> {
    let query = identity.status_query()?;
    let text = state.and_then(|state| std::fs::read_to_string(state.join(kept::FILE)).ok());
    Some(KeptStatus {
        name: query.name().to_owned(),
        status: text.and_then(|text| Kept::read(&text).status(&query, unix_time)),
        problem: query.request().err().or_else(|| query.responder(0).err()),
    })
}

/// See [`kept_status`].
#[derive(Clone, Debug)]
pub struct KeptStatus {
    /// A name of the certificate.
    pub name: String,
    /// The one that the server kept last, if it is valid.
    pub status: Option<CertificateStatus>,
    /// The reason why there will be none.
    pub problem: Option<StatusError>,
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
