//! The configuration of Careful Resume.

use std::time::Duration;

use crate::settings::{Derived, Domain, Field, FieldValue, Named, Settings, Value, Word};

/// The flight whose acknowledgment confirms a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reconnaissance {
    /// That of the server's handshake: the jump may replace the initial window. For rate-based controllers, whose jump is paced
    /// and bounded by the saved bandwidth; a bundle's members and window-based controllers wait for the first flight.
    Handshake,
    /// The initial window of application data (RFC 9959, section 3.2).
    FirstFlight,
}

impl Named for Reconnaissance {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "handshake",
            about: "The handshake's, with a rate-based controller",
            value: Self::Handshake,
        },
        Word {
            name: "first_flight",
            about: "The initial window (RFC 9959)",
            value: Self::FirstFlight,
        },
    ];
}

/// Settings of the return to remembered capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CarefulResumeConfig {
    /// Upper bound of the jump, in bytes (max_jump), besides half of the remembered window; `None` is no
    /// further bound.
    pub max_jump: Option<u64>,
    /// Age above which remembered capacity is not used (section 4.3.1).
    pub lifetime: Duration,
    /// Slow-start threshold after a retreat, as a part of the pipe size (section 3.5); clamped to 0.5 to 1.
    pub beta: f64,
    /// Server: whether its clients store the capacity that it measured, sealed in their address tokens, and
    /// present it when they return. Then the server need not remember anything, one client cannot change
    /// the remembered capacity of another, and clients behind one address have separate records. The
    /// server's `address_tokens` must be on.
    pub tokens: bool,
    /// The flight that has to be acknowledged before the jump.
    pub reconnaissance: Reconnaissance,
}

impl CarefulResumeConfig {
    /// Its keys in settings.
    pub const SETTINGS: Settings<Self> = &[
        &Field::new(
            "max_jump",
            Domain::bytes(1, 1 << 32).or("none"),
            "The largest window to jump to",
            |c: &mut Self| &mut c.max_jump,
        ),
        &Derived {
            key: "lifetime",
            domain: Domain::LIFETIME,
            about: "How long a saved capacity may be used",
            get: |c: &Self| {
                Some(
                    (c.lifetime != Duration::MAX)
                        .then_some(c.lifetime)
                        .to_value(),
                )
            },
            set: |c: &mut Self, value: &Value| {
                c.lifetime = Duration::from_value(value).unwrap_or(Duration::MAX);
                Ok(())
            },
        },
        &Field::new(
            "beta",
            Domain::number(0.5, 1.0),
            "The slow start threshold after a retreat, as a part of the data that was acknowledged",
            |c: &mut Self| &mut c.beta,
        ),
        &Field::new(
            "tokens",
            Domain::SWITCH,
            "Whether the server saves the capacity in the client's address tokens, encrypted",
            |c: &mut Self| &mut c.tokens,
        ),
        &Field::new(
            "reconnaissance",
            Domain::words::<Reconnaissance>(),
            "The flight acknowledged before a jump",
            |c: &mut Self| &mut c.reconnaissance,
        ),
    ];
}

impl Default for CarefulResumeConfig {
    fn default() -> Self {
        Self {
            max_jump: None,
            lifetime: Duration::from_secs(3600),
            beta: 0.5,
            tokens: false,
            reconnaissance: Reconnaissance::Handshake,
        }
    }
}
