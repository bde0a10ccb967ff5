//! The client: one tunnel to a server, and its place in the routes of this host.

mod session;
mod up;

pub use self::session::{Ended, OpenError, Session, set_transport};
pub use self::up::{Report, UpConfig, UpError, up};
