//! What `serve` remembers of paths, and where.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use marline::coordination::history::{
    HistoryConfig, HistoryPolicy, MemoryStore, PathStore, StoreLimits,
};
use marline::{Profile, Runtime, TokioRuntime, TransportConfig};
use marline_memory::{ConnectError, FileStore, SharedStore};

use crate::failure::{Failure, tell};

/// How long the end waits for what is still to be written to a file: a slow disk, not a broken one.
const TO_FILE: Duration = Duration::from_secs(10);

/// And to a server.
const TO_SERVER: Duration = Duration::from_secs(1);

/// What an operator chose of history.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct History {
    pub(crate) policy: HistoryPolicy,
    /// Whether clients carry what careful resume needs, too.
    pub(crate) tokens: bool,
    pub(crate) config: HistoryConfig,
    pub(crate) limits: StoreLimits,
    /// The most that careful resume jumps to, in bytes.
    pub(crate) max_jump: Option<u64>,
    pub(crate) place: Place,
}

/// Where what is learnt is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Place {
    /// In memory, until the process ends.
    #[default]
    Memory,
    File(PathBuf),
    Server {
        url: String,
        namespace: String,
        /// Where the configuration names `url` and `namespace`, for messages.
        named_at: [String; 2],
    },
}

/// A store that is open.
#[derive(Debug)]
pub(crate) enum Store {
    Memory(Arc<MemoryStore>),
    File(Arc<FileStore>, PathBuf),
    Shared(Arc<SharedStore>),
}

impl History {
    /// Opens the store, and has the connections of `profile` learn into it.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(crate) fn begin(&self, profile: Profile) -> Result<(TransportConfig, Store), Failure> {
        let store = self.open()?;
        let mut transport = profile.with_history(self.policy, self.config.clone(), store.paths());
        transport.careful_resume.max_jump = self.max_jump;
        transport.careful_resume.tokens = self.tokens;
        Ok((transport, store))
    }

    fn open(&self) -> Result<Store, Failure> {
        let runtime = TokioRuntime::current()
            .map_err(|error| Failure::Failed(format!("cannot start: {error}")))?;
        let (now, unix_time) = (runtime.now(), runtime.unix_time());
        match &self.place {
            Place::Memory => Ok(Store::Memory(Arc::new(MemoryStore::new(self.limits)))),
            Place::File(path) => {
                let store = FileStore::open(path, self.limits, now, unix_time)
                    .map_err(|error| Failure::Failed(format!("history: {error}")))?;
                let records = store.statistics().records;
                eprintln!("paths remembered in {}: {records}", path.display());
                Ok(Store::File(Arc::new(store), path.clone()))
            }
            Place::Server {
                url,
                namespace,
                named_at: [url_at, namespace_at],
            } => match SharedStore::connect(url, namespace, self.limits, now, unix_time) {
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

impl Store {
    fn paths(&self) -> Arc<dyn PathStore> {
        match self {
            Self::Memory(store) => store.clone(),
            Self::File(store, _) => store.clone(),
            Self::Shared(store) => store.clone(),
        }
    }

    /// Writes down what the last connections left.
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
            tell(&format!(
                "what was learnt of paths in the end is not in {place}: it takes too long"
            ));
        }
    }
}
