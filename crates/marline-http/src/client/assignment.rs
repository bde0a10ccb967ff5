//! The assignment of requests to connections of a host.

use std::num::NonZeroUsize;

/// The choice among several connections to a host for the next request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Assignment {
    /// One that is free, or has the fewest requests.
    #[default]
    Free,
    /// Each in turn, regardless of its number of requests: [`Alternation`].
    Alternate,
    /// The first, whose server sends the most urgent object first: the others carry only ranges of large objects. For
    /// connections that together send what one would.
    First,
}

/// Assigns the requests to one host and port to sessions: a request opens a session while there are fewer than allowed,
/// later ones use the sessions in strict alternation (H2-Parallel; Manzoor, doctoral thesis, 2019, section 5.2.1).
#[derive(Clone, Debug)]
pub struct Alternation {
    sessions: NonZeroUsize,
    opened: usize,
    /// The session of the next request once all are open.
    next: usize,
}

/// The session of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssignedSession {
    /// Its index, from 0.
    pub index: usize,
    /// Whether the request opens it.
    pub is_new: bool,
}

impl Alternation {
    /// An alternation over at most `sessions` sessions, none of which is open.
    pub const fn new(sessions: NonZeroUsize) -> Self {
        Self {
            sessions,
            opened: 0,
            next: 0,
        }
    }

    /// The session of the next request, without assigning it.
    pub fn peek(&self) -> AssignedSession {
        let is_new = self.opened < self.sessions.get();
        AssignedSession {
            index: if is_new { self.opened } else { self.next },
            is_new,
        }
    }

    /// Assigns the next request.
    pub fn assign(&mut self) -> AssignedSession {
        let assigned = self.peek();
        match assigned.is_new {
            true => self.opened += 1,
            false => self.next = (self.next + 1) % self.sessions,
        }
        assigned
    }
}
