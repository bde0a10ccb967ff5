//! The secrets of a server.

use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use marline::{default_crypto_provider, hmac_sha256};
use serde::{Deserialize, Serialize};

use super::StateError;
use super::files::{self, Existing};

/// Time after which the secret of tokens and tickets is replaced. Recorded resumed connections can be decrypted with
/// it, so it is not kept for long.
pub(super) const ROTATION: Duration = Duration::from_secs(24 * 3600);

const FORMAT: u32 = 1;

/// All secrets.
#[derive(Clone)]
pub(super) struct Keys {
    reset: [u8; 32],
    present: Epoch,
    previous: Option<Epoch>,
}

/// A secret of tokens and tickets, and when it was made.
#[derive(Clone, PartialEq)]
pub(super) struct Epoch {
    /// Seconds since 1970.
    since: u64,
    secret: [u8; 32],
}

impl Epoch {
    /// New keys, for the file at `path`.
    fn new(path: &Path, unix_time: Duration) -> Result<Self, StateError> {
        Ok(Self {
            since: unix_time.as_secs(),
            secret: secret(path)?,
        })
    }

    pub(super) fn token(&self) -> [u8; 32] {
        hmac_sha256(&self.secret, b"address tokens")
    }

    pub(super) fn ticket(&self) -> [u8; 32] {
        hmac_sha256(&self.secret, b"session tickets")
    }
}

impl Keys {
    pub(super) fn load_or_create(path: &Path, unix_time: Duration) -> Result<Self, StateError> {
        if let Some(text) = files::read(path)? {
            return Self::parse(path, &text);
        }
        let created = Self {
            reset: secret(path)?,
            present: Epoch::new(path, unix_time)?,
            previous: None,
        };
        created.write(path, Existing::Keep)?;
        // Another server may have been the first.
        match files::read(path)? {
            Some(text) => Self::parse(path, &text),
            None => Ok(created),
        }
    }

    /// Whether the file at `path`, if there is one, can be used.
    pub(super) fn check(path: &Path) -> Result<(), StateError> {
        match files::read(path)? {
            Some(text) => Self::parse(path, &text).map(drop),
            None => Ok(()),
        }
    }

    pub(super) fn reset(&self) -> [u8; 32] {
        self.reset
    }

    pub(super) fn present(&self) -> &Epoch {
        &self.present
    }

    pub(super) fn previous(&self) -> Option<&Epoch> {
        self.previous.as_ref()
    }

    /// The remaining time of use of the present secret.
    pub(super) fn left(&self, unix_time: Duration) -> Duration {
        let age = unix_time.saturating_sub(Duration::from_secs(self.present.since));
        ROTATION.saturating_sub(age).max(Duration::from_secs(1))
    }

    /// Replaces the present secret if it is old: by the one that another server wrote to the file, or a new one.
    /// Returns whether it did.
    pub(super) fn rotate(&mut self, path: &Path, unix_time: Duration) -> Result<bool, StateError> {
        let is_old = |epoch: &Epoch| {
            // A time in the future: the clock was wrong when the secret was made, or is now.
            let age = unix_time.as_secs().checked_sub(epoch.since);
            age.is_none_or(|age| age >= ROTATION.as_secs())
        };
        if !is_old(&self.present) {
            return Ok(false);
        }
        let mut next = Self::load_or_create(path, unix_time)?;
        if is_old(&next.present) {
            let present = Epoch::new(path, unix_time)?;
            next.previous = Some(std::mem::replace(&mut next.present, present));
            next.write(path, Existing::Replace)?;
        }
        let has_changed = next.present != self.present;
        *self = next;
        Ok(has_changed)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, StateError> {
        let written: RawValue = serde_json::from_str(text)
            .map_err(|error| StateError::malformed(path, error.to_string()))?;
        let keys = (written.format == FORMAT).then(|| written.keys()).flatten();
        keys.ok_or_else(|| StateError::malformed(path, "another format, or keys of another length"))
    }

    fn write(&self, path: &Path, existing: Existing) -> Result<(), StateError> {
        let text = serde_json::to_string_pretty(&RawValue::of(self))
            .map_err(|error| StateError::io(path, error.into()))?;
        files::write(path, (text + "\n").as_bytes(), existing)
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

/// The content of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawValue {
    format: u32,
    reset: String,
    present: WrittenEpoch,
    previous: Option<WrittenEpoch>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenEpoch {
    since: u64,
    secret: String,
}

impl WrittenEpoch {
    fn of(epoch: &Epoch) -> Self {
        Self {
            since: epoch.since,
            secret: STANDARD.encode(epoch.secret),
        }
    }

    fn epoch(&self) -> Option<Epoch> {
        Some(Epoch {
            since: self.since,
            secret: decode(&self.secret)?,
        })
    }
}

impl RawValue {
    fn of(keys: &Keys) -> Self {
        Self {
            format: FORMAT,
            reset: STANDARD.encode(keys.reset),
            present: WrittenEpoch::of(&keys.present),
            previous: keys.previous.as_ref().map(WrittenEpoch::of),
        }
    }

    fn keys(&self) -> Option<Keys> {
        let previous = match &self.previous {
            Some(previous) => Some(previous.epoch()?),
            None => None,
        };
        Some(Keys {
            reset: decode(&self.reset)?,
            present: self.present.epoch()?,
            previous,
        })
    }
}

fn decode(text: &str) -> Option<[u8; 32]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

/// 32 random bytes, for the file at `path`.
fn secret(path: &Path) -> Result<[u8; 32], StateError> {
    let mut secret = [0; 32];
    match default_crypto_provider().secure_random.fill(&mut secret) {
        Ok(()) => Ok(secret),
        Err(_) => {
            let cause = std::io::Error::other("the system's random number generator failed");
            Err(StateError::io(path, cause))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = ROTATION;
    const NOW: Duration = Duration::from_secs(1_800_000_000);

    #[test]
    fn keys_survive_a_restart_and_rotate_by_the_day() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        let mut keys = Keys::load_or_create(&path, NOW).unwrap();
        let again = Keys::load_or_create(&path, NOW).unwrap();
        assert!(again.present == keys.present && again.reset == keys.reset);
        let first = keys.present.clone();

        assert!(
            !keys
                .rotate(&path, NOW + DAY - Duration::from_secs(1))
                .unwrap()
        );
        assert!(keys.rotate(&path, NOW + DAY).unwrap());
        assert!(keys.present != first && keys.previous == Some(first));
        assert_eq!(keys.reset, again.reset);
        // The other server uses the key made by the first one.
        let mut other = again;
        assert!(other.rotate(&path, NOW + DAY).unwrap());
        assert!(other.present == keys.present);
        assert_eq!(keys.left(NOW + DAY), DAY);
    }

    #[test]
    fn a_wrong_file_is_refused_by_its_name_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        let good = {
            Keys::load_or_create(&path, NOW).unwrap();
            std::fs::read_to_string(&path).unwrap()
        };
        let newer = good.replace("\"format\": 1", "\"format\": 2");
        let short = good.replacen("=\"", "\"", 1);
        for text in ["", "{}", "keys", &newer, &short] {
            files::write(&path, text.as_bytes(), Existing::Replace).unwrap();
            let error = Keys::load_or_create(&path, NOW).unwrap_err();
            assert!(
                error.to_string().contains(path.to_str().unwrap()),
                "{error}"
            );
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[cfg(unix)]
    #[test]
    fn files_are_for_their_owner_only() {
        use std::os::unix::fs::PermissionsExt;

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        Keys::load_or_create(&path, NOW).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        let error = Keys::load_or_create(&path, NOW).unwrap_err();
        assert!(matches!(error, StateError::Exposed { .. }), "{error}");
    }
}
