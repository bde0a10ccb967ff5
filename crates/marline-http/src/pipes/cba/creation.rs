//! The creation of pipes (section IV-C, figure 4).

use marline::settings::{Named, Word};

/// The method by which pipes are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Creation {
    /// OD+: one spare pipe is open in advance; an object that needs a pipe gets it at once.
    #[default]
    Spare,
    /// OD: a pipe is opened when an object needs one, and the object waits for the handshake.
    OnDemand,
}

impl Named for Creation {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "od+",
            about: "One spare pipe is open in advance (OD+)",
            value: Self::Spare,
        },
        Word {
            name: "od",
            about: "When an object needs one, which waits for the handshake (OD)",
            value: Self::OnDemand,
        },
    ];
}

/// Pipes to an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeCounts {
    /// Pipes that carry objects.
    pub created: usize,
    /// Pipes that are open in advance.
    pub spare: usize,
    /// Pipe_max.
    pub most: usize,
}

/// The decision on pipes to open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreationDecision {
    /// Whether a pipe is opened for an object, which waits for the handshake.
    pub establish: bool,
    /// Whether a spare pipe gets an object.
    pub promote: bool,
    /// Whether a spare pipe is opened in advance.
    pub precreate: bool,
}

/// Decides which pipes to open; `need` is whether no pipe has capacity for an object. Spare pipes count against
/// Pipe_max.
pub fn creation(method: Creation, counts: PipeCounts, need: bool) -> CreationDecision {
    let PipeCounts {
        created,
        spare,
        most,
    } = counts;
    let may_add = need && created < most;
    let promote = may_add && method == Creation::Spare && spare > 0;
    let establish = may_add && !promote;
    let (created, spare) = (created + usize::from(may_add), spare - usize::from(promote));
    CreationDecision {
        establish,
        promote,
        precreate: method == Creation::Spare && spare == 0 && created < most,
    }
}

/// Whether an application's earlier requests justify a spare pipe: `requests` is the mean number of its requests in a
/// session, unknown before the first has ended. The paper uses the history without specifying how; here, a spare pipe
/// is opened in advance only if there used to be more requests than pipes, and in the first session, for which there is
/// no history.
pub fn history_allows_spare(requests: Option<f64>, created: usize) -> bool {
    requests.is_none_or(|requests| requests > created as f64)
}
