//! What is made of what earlier connections saw, in one word.

use std::sync::Arc;

use super::{CarefulWindow, HistoryConfig, HistoryWindow, PathStore};
use crate::congestion::InitialWindow;

/// How a connection uses what earlier ones saw of its path. The default is what `--profile history` does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HistoryPolicy {
    /// It begins with their average window ([`HistoryWindow`]).
    Average,
    /// It begins like any other, and goes to what they found once the path has taken its first window well
    /// ([`CarefulWindow`]; RFC 9959).
    #[default]
    Careful,
}

impl HistoryPolicy {
    /// Every policy.
    pub const ALL: [Self; 2] = [Self::Average, Self::Careful];

    /// Its name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Average => "average",
            Self::Careful => "careful",
        }
    }

    /// First windows that are learnt into `store`; `fallback` is that of a path of which nothing is known.
    pub fn window(
        self,
        config: HistoryConfig,
        store: Arc<dyn PathStore>,
        fallback: Arc<dyn InitialWindow>,
    ) -> Arc<dyn InitialWindow> {
        match self {
            Self::Average => Arc::new(HistoryWindow::new(config, store, fallback)),
            Self::Careful => Arc::new(CarefulWindow::new(config, store, fallback)),
        }
    }
}
