//! Explicit congestion notification.

use crate::settings::{FieldValue, Value};

/// ECN marking of sent packets, and the response to CE marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EcnMode {
    /// Packets are not marked, and CE marks are ignored.
    Off,
    /// ECT(0): a CE mark counts as a loss (RFC 9000, section 13.4; RFC 9002, section 7.1).
    #[default]
    Classic,
    /// ECT(1), for short queues (L4S, RFC 9331), if the controller
    /// [is scalable](crate::congestion::Controller::is_scalable); otherwise as [`Classic`](Self::Classic).
    L4s,
}

impl EcnMode {
    /// Notation of [`L4s`](Self::L4s) in settings.
    pub(super) const L4S: &'static str = "l4s";
}

impl FieldValue for EcnMode {
    fn to_value(&self) -> Value {
        match self {
            Self::Off => Value::Switch(false),
            Self::Classic => Value::Switch(true),
            Self::L4s => Value::Word(Self::L4S.to_owned()),
        }
    }

    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Switch(false) => Ok(Self::Off),
            Value::Switch(true) => Ok(Self::Classic),
            Value::Word(word) if word == Self::L4S => Ok(Self::L4s),
            _ => Err("it is not a way to use ECN".to_owned()),
        }
    }
}
