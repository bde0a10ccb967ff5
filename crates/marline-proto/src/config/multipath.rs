//! Settings of connections with several paths.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::coordination::bundle::BundleConfig;
use crate::limits::PATHS;
use crate::scheduling::path::{
    PathScheduler, ReinjectionConfig, ReinjectionOrder, SCHEDULERS, WaterFilling,
};
use crate::settings::{Choice, Derived, Domain, Field, FieldValue, Make, Settings, Table, Value};

/// How a connection uses several paths at once (draft-ietf-quic-multipath-21).
///
/// Both ends must want it. The client opens paths ([`Connection::open_path`](crate::Connection::open_path)).
#[derive(Clone)]
pub struct MultipathConfig {
    /// Paths that the connection may have at once, from 1 to 16. The smaller of both ends' numbers
    /// counts.
    pub max_paths: u32,
    /// The longest pause between two probes of a path that does not answer while there are others.
    /// Probes come sooner at first, and ever more rarely after half a minute.
    pub probe_interval: Duration,
    /// A path that has not answered for this long is abandoned, with
    /// [`ErrorCode::PATH_UNSTABLE_OR_POOR`](crate::ErrorCode::PATH_UNSTABLE_OR_POOR), if another one
    /// answers; `None` is never.
    pub give_up_after: Option<Duration>,
    /// A PING leaves on each path after this long without a packet there, on backup paths too, so that
    /// NATs keep them and their round-trip times stay known; `None` is never. It keeps the connection
    /// from being idle.
    pub keep_alive: Option<Duration>,
    /// Makes what decides which path carries stream data of this end.
    pub scheduler: Make<dyn PathScheduler>,
    /// Whether a faster path carries copies of what a slow one still has on its way, when there is nothing
    /// else to send. `None` is without.
    pub reinjection: Option<ReinjectionConfig>,
    /// Client: paths between the addresses of the handshake that it has by itself, from 1. Those beyond
    /// the first are opened as soon as the peer takes them, once: one that is abandoned is not replaced.
    pub same_tuple_paths: u32,
    /// How paths that share one 4-tuple are coordinated in what this end sends; `None` leaves each on its
    /// own. Such a connection does not resume an earlier one's capacity.
    pub bundle_paths: Option<Arc<BundleConfig>>,
}

impl Default for MultipathConfig {
    /// Four paths: Wi-Fi, mobile, and one to change to for each. A slower one carries what faster ones would
    /// deliver later, and copies of what ends a transfer. A suspected one is probed each second and abandoned after half a minute. None is
    /// kept alive while it is idle: that costs battery, and only the application knows whether a path
    /// stands behind a NAT (most forget after 30 s).
    fn default() -> Self {
        Self {
            max_paths: 4,
            probe_interval: Duration::from_secs(1),
            give_up_after: Some(Duration::from_secs(30)),
            keep_alive: None,
            scheduler: Arc::new(|| Box::new(WaterFilling)),
            reinjection: Some(ReinjectionConfig::default()),
            same_tuple_paths: 1,
            bundle_paths: None,
        }
    }
}

/// Times that a path can wait for something: a day at most.
const WAIT: Domain = Domain::time(Duration::from_millis(1), Duration::from_secs(24 * 3600));

impl MultipathConfig {
    /// Paths that a connection may have at once, whatever is configured.
    pub const MAX_PATHS: u32 = PATHS;

    /// Its keys in settings.
    pub const SETTINGS: Settings<Self> = &[
        &Field::new(
            "max_paths",
            Domain::integer(1, PATHS as u64),
            "Paths that a connection may have at once",
            |c: &mut Self| &mut c.max_paths,
        ),
        &Choice {
            key: "scheduler",
            about: "What decides which path carries the next packet that this end sends",
            registry: &SCHEDULERS,
            get: |c: &Self| (c.scheduler)().spec(),
            field: |c: &mut Self| &mut c.scheduler,
        },
        &Field::new(
            "probe_interval",
            WAIT,
            "The longest pause between two probes of a path that does not answer",
            |c: &mut Self| &mut c.probe_interval,
        ),
        &Field::new(
            "give_up_after",
            WAIT.or("never"),
            "How long a path may be without an answer before it is abandoned",
            |c: &mut Self| &mut c.give_up_after,
        ),
        &Field::new(
            "keep_alive",
            WAIT.or("never"),
            "How long a path may be idle before it is pinged",
            |c: &mut Self| &mut c.keep_alive,
        ),
        &Derived {
            key: "reinjection",
            domain: Domain::number(0.0, 1.0)
                .or("none")
                .or_true(ReinjectionConfig::BUDGET),
            about: "The part of what is sent that may be copies on a faster path; 0 is none",
            get: |c: &Self| {
                Some(
                    c.reinjection
                        .map(|reinjection| reinjection.budget)
                        .to_value(),
                )
            },
            set: |c: &mut Self, value: &Value| {
                let budget = f64::from_value(value).filter(|budget| *budget > 0.0);
                let before = c.reinjection.unwrap_or_default();
                c.reinjection = budget.map(|budget| ReinjectionConfig { budget, ..before });
                Ok(())
            },
        },
        &Derived {
            key: "reinjection_order",
            domain: Domain::words::<ReinjectionOrder>(),
            about: "What is copied first",
            get: |c: &Self| Some(c.reinjection?.order.to_value()),
            set: |c: &mut Self, value: &Value| match (
                &mut c.reinjection,
                ReinjectionOrder::from_value(value),
            ) {
                (Some(reinjection), Some(order)) => {
                    reinjection.order = order;
                    Ok(())
                }
                _ => Err("there is no order without reinjection".to_owned()),
            },
        },
        &Field::new(
            "same_tuple_paths",
            Domain::integer(1, PATHS as u64),
            "Client: paths between the addresses of the handshake",
            |c: &mut Self| &mut c.same_tuple_paths,
        ),
        &Table {
            key: "bundle_paths",
            about: "How paths that share one 4-tuple are coordinated",
            settings: BundleConfig::SETTINGS,
            bases: BundleConfig::BASES,
            get: |c: &Self| c.bundle_paths.as_deref(),
            open: |c: &mut Self| Arc::make_mut(c.bundle_paths.get_or_insert_default()),
            off: Some(|c: &mut Self| c.bundle_paths = None),
        },
    ];

    /// The last path that the peer may use at first: `initial_max_path_id`.
    pub(crate) fn last_path(&self) -> u32 {
        self.max_paths.clamp(1, PATHS) - 1
    }
}

impl fmt::Debug for MultipathConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultipathConfig")
            .field("max_paths", &self.max_paths)
            .field("probe_interval", &self.probe_interval)
            .field("give_up_after", &self.give_up_after)
            .field("keep_alive", &self.keep_alive)
            .field("reinjection", &self.reinjection)
            .field("same_tuple_paths", &self.same_tuple_paths)
            .field("bundle_paths", &self.bundle_paths)
            .finish_non_exhaustive()
    }
}
