//! The history store of `serve`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use marline::coordination::history::{
    HistoryConfig, HistoryPolicy, MemoryStore, PathStore, StoreLimits,
};
use marline::settings::RawValue;
use marline::{Profile, Runtime, TokioRuntime, TransportConfig};
use marline_memory::{ConnectError, FileStore, ServerState, SharedStore};

use crate::failure::{Failure, print_message};

/// The time to wait at the end for records to be written to a file: enough for a slow disk.
const TO_FILE: Duration = Duration::from_secs(10);

/// The time to wait at the end for records to be written to a server.
const TO_SERVER: Duration = Duration::from_secs(1);

/// The key of the policy of initial windows.
pub(crate) const INITIAL_WINDOW: &str = "initial_window";

/// The advice for an `initial_window` that only scenarios accept, because it is not a policy that connections choose by
/// that key.
pub(crate) fn instead_of_initial_window(written: &RawValue) -> Option<String> {
    let policy = match written {
        RawValue::Text(word) if word == "careful" => HistoryPolicy::Careful,
        RawValue::Text(word) if word == "history" => HistoryPolicy::Average,
        RawValue::Integer(packets) => {
            return Some(format!(
                "this must be a policy, not {packets}; write {INITIAL_WINDOW}=\"fixed(packets={packets})\""
            ));
        }
        _ => return None,
    };
    Some(format!(
        "{written} needs a store of history; write policy = \"{}\" in the table [history] of a file for \
         `marline serve`, or give --profile history",
        policy.name()
    ))
}

/// The settings of history.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct History {
    pub(crate) policy: HistoryPolicy,
    /// Whether clients also store the saved parameters in tokens.
    pub(crate) tokens: bool,
    pub(crate) config: HistoryConfig,
    pub(crate) limits: StoreLimits,
    /// The largest window that careful resume jumps to, in bytes.
    pub(crate) max_jump: Option<u64>,
    pub(crate) location: StoreLocation,
}

/// The location of the history store.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum StoreLocation {
    /// In memory, until the process ends.
    #[default]
    Memory,
    File(PathBuf),
    Server {
        url: String,
        namespace: String,
        /// The places of `url` and `namespace` in the configuration, for messages.
        named_at: [String; 2],
    },
}

/// An open store. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) enum Store {
    Memory(Arc<MemoryStore>),
    File(Arc<FileStore>, PathBuf),
    Shared(Arc<SharedStore>),
}

impl History {
    /// Makes the configuration of connections that use `store`, from `profile`.
    pub(crate) fn with_store(&self, profile: Profile, store: &Store) -> TransportConfig {
        let mut transport = profile.with_history(self.policy, self.config.clone(), store.paths());
        transport.careful_resume.max_jump = self.max_jump;
        transport.careful_resume.tokens = self.tokens;
        transport
    }

    /// Whether a store that was opened for `other` is the one of these settings.
    pub(crate) fn has_store_of(&self, other: &Self) -> bool {
        self.location == other.location && self.limits == other.limits
    }

    /// Opens the store.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) fn open(&self) -> Result<Store, Failure> {
        let runtime = TokioRuntime::current()
            .map_err(|error| Failure::Failed(format!("cannot start: {error}")))?;
        let (now, unix_time) = (runtime.now(), runtime.unix_time());
        match &self.location {
            StoreLocation::Memory => Ok(Store::Memory(Arc::new(MemoryStore::new(self.limits)))),
            StoreLocation::File(path) => {
                let store = FileStore::open(path, self.limits, now, unix_time)
                    .map_err(|error| Failure::Failed(format!("history: {error}")))?;
                let records = store.statistics().records;
                errln!("records of paths in {}: {records}", path.display());
                Ok(Store::File(Arc::new(store), path.clone()))
            }
            StoreLocation::Server {
                url,
                namespace,
                named_at: [url_at, namespace_at],
            } => match SharedStore::connect_reporting(
                url,
                namespace,
                self.limits,
                now,
                unix_time,
                |state| print_message(&describe(&state)),
            ) {
                Ok(store) => Ok(Store::Shared(Arc::new(store))),
                Err(error @ ConnectError::Url { .. }) => {
                    Err(Failure::Usage(format!("{url_at}: {error}")))
                }
                Err(error @ ConnectError::Namespace(_)) => {
                    Err(Failure::Usage(format!("{namespace_at}: {error}")))
                }
                Err(error @ ConnectError::Thread(_)) => Err(Failure::Failed(error.to_string())),
            },
        }
    }
}

/// A message about the server of history.
fn describe(state: &ServerState) -> String {
    match state {
        ServerState::Available => "history: the server of [history] answers again".to_owned(),
        ServerState::Unavailable(reason) => format!(
            "history: the server of [history] cannot be used: {reason}; until it can, history is in memory"
        ),
    }
}

impl Store {
    fn paths(&self) -> Arc<dyn PathStore> {
        match self {
            Self::Memory(store) => store.clone(),
            Self::File(store, _) => store.clone(),
            Self::Shared(store) => store.clone(),
        }
    }

    /// Writes the records of the last connections.
    pub(crate) fn finish(&self) {
        let is_kept = match self {
            Self::Memory(_) => true,
            Self::File(store, _) => store.flush(TO_FILE),
            Self::Shared(store) => store.flush(TO_SERVER),
        };
        if !is_kept {
            let place = match self {
                Self::File(_, path) => path.display().to_string(),
                Self::Memory(_) | Self::Shared(_) => "the server of [history]".to_owned(),
            };
            print_message(&format!(
                "the last records of paths were not written to {place}: writing takes too long"
            ));
        }
    }
}
