//! The number of a server's workers.

use std::num::NonZero;
use std::str::FromStr;
use std::thread::available_parallelism;

use marline::EndpointConfig;
use marline::proto::WORKER_ID_LEN;

/// The most workers: connection IDs have a byte for their number.
pub(crate) const MOST: u64 = 255;

/// The number of threads that serve connections: as given, or one for each core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Workers(Option<usize>);

impl Workers {
    /// The number in a configuration file.
    pub(crate) fn given(count: usize) -> Self {
        Self(Some(count))
    }

    /// The number for a server whose endpoint has these settings.
    ///
    /// # Errors
    /// This system distributes connections over one only.
    pub(crate) fn count(self, endpoint: Option<&EndpointConfig>) -> Result<usize, String> {
        let shares_ports = cfg!(target_os = "linux");
        match self.0 {
            Some(count) if count > 1 && !shares_ports => Err(format!(
                "workers: {count} share a port on Linux alone; leave it out, or write 1"
            )),
            Some(count) => Ok(count),
            None if !shares_ports => Ok(1),
            // Shorter connection IDs have no room for a number.
            None if endpoint.is_some_and(|config| config.connection_id_len < WORKER_ID_LEN) => {
                Ok(1)
            }
            None => Ok(available_parallelism()
                .map_or(1, NonZero::get)
                .min(MOST as usize)),
        }
    }
}

impl FromStr for Workers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self(None));
        }
        let count = text.parse().ok().filter(|count| (1..=MOST).contains(count));
        let count = count.ok_or_else(|| format!("must be auto, or an integer from 1 to {MOST}"))?;
        Ok(Self(usize::try_from(count).ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_auto_is_read() {
        assert_eq!("auto".parse(), Ok(Workers(None)));
        assert_eq!("255".parse(), Ok(Workers::given(255)));
        for wrong in ["0", "256", "-1", "two", ""] {
            let refused = wrong.parse::<Workers>().unwrap_err();
            assert!(refused.contains("1 to 255"), "{wrong}: {refused}");
        }
    }

    #[test]
    fn connection_ids_without_room_for_a_number_have_one_worker() {
        let mut endpoint = EndpointConfig::from_seed([0; 32]);
        assert!(Workers::default().count(Some(&endpoint)).unwrap() >= 1);
        endpoint.connection_id_len = 7;
        assert_eq!(Workers::default().count(Some(&endpoint)), Ok(1));
        assert_eq!(Workers::given(1).count(None), Ok(1));
    }
}
