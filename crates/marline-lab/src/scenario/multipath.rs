//! How an endpoint uses several paths at once.

use std::sync::Arc;

use marline::MultipathConfig;
use marline::coordination::bundle::BundleConfig;
use marline::scheduling::path::{Hbes, HbesConfig, PathAlgorithm, QueueModel, ReinjectionConfig};
use serde::Serialize;

use super::bundle::DescribedBundle;

/// What is different from the profile's way with several paths. `None` is the profile's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Multipath {
    /// Whether connections may have several paths. A client that may opens all that a scenario names.
    pub on: Option<bool>,
    /// What chooses among them.
    pub scheduler: Option<PathSchedulerKind>,
    /// Bytes that are copied to faster paths at the end, as a part of all; 0 is none.
    pub reinjection: Option<f64>,
    /// Paths between the addresses on which connections begin.
    pub same_tuple_paths: Option<u32>,
    /// How those are coordinated.
    pub bundle_paths: Option<BundleConfig>,
}

/// What chooses among the paths of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathSchedulerKind {
    /// One that comes with the stack, with its own switches.
    Known(PathAlgorithm),
    /// HBES, for which a packet that finds room in the window does not wait.
    HbesFreeWindow,
}

impl PathSchedulerKind {
    /// Every kind, with the name it has in scenarios.
    pub const NAMES: [(&'static str, Self); 8] = [
        ("rr", Self::Known(PathAlgorithm::Rr)),
        ("lrf", Self::Known(PathAlgorithm::Lrf)),
        ("ecf", Self::Known(PathAlgorithm::Ecf)),
        ("sa_ecf", Self::Known(PathAlgorithm::SaEcf)),
        ("hbes", Self::Known(PathAlgorithm::Hbes)),
        ("hbes_free_window", Self::HbesFreeWindow),
        ("redundant", Self::Known(PathAlgorithm::Redundant)),
        ("water_filling", Self::Known(PathAlgorithm::WaterFilling)),
    ];
}

impl Multipath {
    /// The paths that a connection may have at once where a scenario asks for several.
    const MAX_PATHS: u32 = 16;

    /// Makes `config` so.
    pub(super) fn apply(&self, config: &mut Option<MultipathConfig>) {
        match self.on {
            None => {}
            Some(false) => *config = None,
            Some(true) => {
                config
                    .get_or_insert_with(MultipathConfig::default)
                    .max_paths = Self::MAX_PATHS;
            }
        }
        let Some(config) = config else { return };
        if let Some(budget) = self.reinjection {
            config.reinjection = (budget > 0.0).then(|| ReinjectionConfig {
                budget,
                ..ReinjectionConfig::default()
            });
        }
        if let Some(paths) = self.same_tuple_paths {
            config.same_tuple_paths = paths;
        }
        if let Some(bundle) = &self.bundle_paths {
            config.bundle_paths = Some(Arc::new(bundle.clone()));
        }
        config.scheduler = match self.scheduler {
            None => return,
            Some(PathSchedulerKind::Known(algorithm)) => Arc::new(move || algorithm.build()),
            Some(PathSchedulerKind::HbesFreeWindow) => Arc::new(|| {
                Box::new(Hbes::new(HbesConfig {
                    queue_model: QueueModel::FreeWindow,
                    ..HbesConfig::default()
                }))
            }),
        };
    }
}

/// The same as it comes out.
#[derive(Serialize)]
pub(super) struct DescribedMultipath {
    max_paths: u32,
    path_scheduler: &'static str,
    reinjection: Option<f64>,
    #[serde(skip_serializing_if = "is_one")]
    same_tuple_paths: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    bundle_paths: Option<DescribedBundle>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it")]
const fn is_one(count: &u32) -> bool {
    *count == 1
}

impl From<&MultipathConfig> for DescribedMultipath {
    fn from(config: &MultipathConfig) -> Self {
        Self {
            max_paths: config.max_paths,
            path_scheduler: (config.scheduler)().name(),
            reinjection: config.reinjection.map(|reinjection| reinjection.budget),
            same_tuple_paths: config.same_tuple_paths,
            bundle_paths: config.bundle_paths.as_deref().map(DescribedBundle::from),
        }
    }
}
