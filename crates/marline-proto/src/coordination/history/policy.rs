//! The use of earlier connections' history.

use std::sync::Arc;

use super::{CarefulHistory, HistoryConfig, HistoryWindow, PathHistory, PathStore};
use crate::congestion::InitialWindow;
use crate::settings::{Named, Word};

/// The use of the history of a path by a new connection. The default is that of `--profile history`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HistoryPolicy {
    /// It begins with their average window ([`HistoryWindow`]).
    Average,
    /// It begins with the default window and resumes the saved capacity once its first flight has been
    /// acknowledged without a loss ([`CarefulHistory`]; RFC 9959).
    #[default]
    Careful,
}

/// The components of a policy, over one store.
#[derive(Clone, Debug)]
pub struct HistoryParts {
    /// Chooses initial windows.
    pub initial_window: Arc<dyn InitialWindow>,
    /// Learns from connections.
    pub history: Arc<dyn PathHistory>,
}

impl HistoryPolicy {
    /// Every policy.
    pub const ALL: [Self; 2] = [Self::Average, Self::Careful];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        Named::name(self)
    }

    /// Learns into `store`; `fallback` chooses the initial window where nothing is known of a path.
    pub fn build(
        self,
        config: HistoryConfig,
        store: Arc<dyn PathStore>,
        fallback: Arc<dyn InitialWindow>,
    ) -> HistoryParts {
        match self {
            Self::Average => {
                let window = Arc::new(HistoryWindow::new(config, store, fallback));
                HistoryParts {
                    initial_window: window.clone(),
                    history: window,
                }
            }
            Self::Careful => HistoryParts {
                initial_window: fallback,
                history: Arc::new(CarefulHistory::new(config, store)),
            },
        }
    }
}

impl Named for HistoryPolicy {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "average",
            about: "Begin with the average window of earlier connections",
            value: Self::Average,
        },
        Word {
            name: "careful",
            about: "Begin with the default window, and return to the saved capacity by careful resume (RFC 9959)",
            value: Self::Careful,
        },
    ];
}
