//! Settings of connections with several paths.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::coordination::bundle::BundleConfig;
use crate::limits::PATHS;
use crate::scheduling::path::{
    PathScheduler, ReinjectionConfig, ReinjectionOrder, SCHEDULERS, WaterFilling,
};
use crate::settings::{Choice, Derived, Domain, FieldValue, Make, Settings, Table, Value, field};

/// Configuration of a multipath connection (draft-ietf-quic-multipath-21).
///
/// Both ends must enable it. The client opens paths
/// ([`Connection::open_path`](crate::Connection::open_path)).
#[derive(Clone)]
pub struct MultipathConfig {
    /// Maximum number of open paths, from 1 to 16. The smaller number of both ends applies.
    pub max_paths: u32,
    /// Maximum interval between probes of a path that does not answer while others do. The first
    /// probes follow each other faster; after half a minute the interval grows further.
    pub probe_interval: Duration,
    /// Time after which a path that does not answer is abandoned, with
    /// [`ErrorCode::PATH_UNSTABLE_OR_POOR`](crate::ErrorCode::PATH_UNSTABLE_OR_POOR), if another one
    /// answers; `None` disables that.
    pub give_up_after: Option<Duration>,
    /// Time without a packet on a path after which a PING is sent there, on backup paths too, so that
    /// NATs keep their mappings and round-trip times stay current; `None` disables that. It keeps the
    /// connection from being idle.
    pub keep_alive: Option<Duration>,
    /// Creates the scheduler that assigns this end's stream data to paths.
    pub scheduler: Make<dyn PathScheduler>,
    /// Whether an otherwise idle faster path carries copies of data in flight on a slower one; `None` disables that.
    pub reinjection: Option<ReinjectionConfig>,
    /// Client: number of paths between the addresses of the handshake that it opens by itself, from 1. Those
    /// beyond the first are opened once, as soon as the peer permits: an abandoned one is not replaced.
    pub same_tuple_paths: u32,
    /// Coordination of this end's sending on paths that share one 4-tuple; with `None` they are
    /// independent. Such a connection does not resume an earlier one's capacity.
    pub bundle_paths: Option<Arc<BundleConfig>>,
}

impl Default for MultipathConfig {
    /// Four paths: Wi-Fi, mobile, and a spare one for each. A slower path carries data that faster ones would deliver
    /// later, and faster ones carry copies of the end of a transfer. A suspected path is probed each second and
    /// abandoned after half a minute. Idle paths are not kept alive: that costs battery, and only the application knows
    /// whether a path is behind a NAT (most mappings expire after 30 s).
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

/// Range of timeouts of paths: at most a day.
const WAIT: Domain = Domain::time(Duration::from_millis(1), Duration::from_secs(24 * 3600));

impl MultipathConfig {
    /// Maximum number of open paths, regardless of the configuration.
    pub const MAX_PATHS: u32 = PATHS;

    /// The keys in settings.
    pub const SETTINGS: Settings<Self> = &[
        field!(max_paths: Domain::integer(1, PATHS as u64), "Maximum number of open paths"),
        &Choice {
            key: "scheduler",
            about: "Scheduler that selects the path of this end's next packet",
            registry: &SCHEDULERS,
            get: |c: &Self| (c.scheduler)().spec(),
            field: |c: &mut Self| &mut c.scheduler,
        },
        field!(probe_interval: WAIT, "Maximum interval between probes of a path that does not answer"),
        field!(give_up_after: WAIT.or("never"), "Time without an answer after which a path is abandoned"),
        field!(keep_alive: WAIT.or("never"), "Time without a packet after which a PING is sent on a path"),
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
            about: "Data that is copied first",
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
        field!(same_tuple_paths: Domain::integer(1, PATHS as u64), "Client: number of paths between the addresses of the handshake"),
        &Table {
            key: "bundle_paths",
            about: "Coordination of paths that share one 4-tuple",
            settings: BundleConfig::SETTINGS,
            bases: BundleConfig::BASES,
            get: |c: &Self| c.bundle_paths.as_deref(),
            open: |c: &mut Self| Arc::make_mut(c.bundle_paths.get_or_insert_default()),
            off: Some(|c: &mut Self| c.bundle_paths = None),
        },
    ];

    /// The largest path ID that the peer may use initially: `initial_max_path_id`.
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
