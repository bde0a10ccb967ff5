//! Initial receive windows of a connection (RFC 9000, section 4.1).

use marline_wire::Side;

use super::TransportConfig;

/// A client requested the data and has few connections: its windows hold the data that a fast link with a long round
/// trip delivers while lost packets are retransmitted.
const CLIENT: ReceiveWindows = ReceiveWindows {
    stream: 8 << 20,
    all: 16 << 20,
};

/// A server does not know its clients, and has many of them.
const SERVER: ReceiveWindows = ReceiveWindows {
    stream: 512 << 10,
    all: 1 << 20,
};

/// Initial receive windows, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiveWindows {
    /// Window of a stream.
    pub(crate) stream: u64,
    /// Window of all streams.
    pub(crate) all: u64,
}

impl TransportConfig {
    /// Initial receive windows of `side`: as configured, else those of the role, within the limits of auto-tuning.
    pub(crate) fn receive_windows(&self, side: Side) -> ReceiveWindows {
        let of_role = match side {
            Side::Client => CLIENT,
            Side::Server => SERVER,
        };
        ReceiveWindows {
            stream: self
                .stream_receive_window
                .unwrap_or(of_role.stream.min(self.max_stream_receive_window)),
            all: self
                .receive_window
                .unwrap_or(of_role.all.min(self.max_receive_window)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_the_role_unless_configured_or_limited() {
        let mut config = TransportConfig::default();
        assert_eq!(config.receive_windows(Side::Client), CLIENT);
        assert_eq!(config.receive_windows(Side::Server), SERVER);
        config.max_receive_window = 2 << 20;
        config.stream_receive_window = Some(64 << 10);
        let narrow = ReceiveWindows {
            stream: 64 << 10,
            all: 2 << 20,
        };
        assert_eq!(config.receive_windows(Side::Client), narrow);
    }
}
