//! The replaceable part of a running server's configuration.

use std::sync::{Arc, PoisonError, RwLock};

use marline::TransportConfig;

use super::tcp::Tls;
use super::{AccessLog, ClientRules, ServerLimits, Site, TrustedProxies};

/// The part of a configuration that [`Handle::reload`](super::Handle::reload) replaces.
pub(super) struct Current {
    pub(super) site: Site,
    pub(super) log: Option<AccessLog>,
    pub(super) limits: ServerLimits,
    pub(super) trusted: TrustedProxies,
    pub(super) transport: Arc<TransportConfig>,
    pub(super) client_rules: ClientRules,
    /// TLS over TCP.
    pub(super) tls: Option<Tls>,
}

/// A value that is replaced as a whole.
pub(super) struct Replaceable<T>(RwLock<Arc<T>>);

impl<T> Replaceable<T> {
    pub(super) fn new(value: T) -> Self {
        Self(RwLock::new(Arc::new(value)))
    }

    pub(super) fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn replace(&self, value: T) {
        self.replace_shared(Arc::new(value));
    }

    /// Replaces it by what `change` makes of it, if that is something, before anyone else does.
    pub(super) fn update(&self, change: impl FnOnce(&T) -> Option<T>) {
        let mut value = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(new) = change(&value) {
            *value = Arc::new(new);
        }
    }

    pub(super) fn replace_shared(&self, value: Arc<T>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value;
    }
}
