//! The client: one tunnel to a server, and its place in the routes of this host.

mod session;
mod up;

pub(crate) use self::session::{Asked, accepted, request};
pub use self::session::{Ended, OpenError, Session, set_transport};
pub use self::up::{DnsChoice, Report, UpConfig, UpError, up};
pub(crate) use self::up::{origin, with_datagrams};
pub use crate::caps::{Cap, CapsError, InvalidCap, MAX_CAPS, Used};
pub use crate::mode::Mode;
pub use crate::selection::{InvalidSelected, Selected, Selection};
