//! Names and passwords (RFC 7617), from files as `htpasswd` makes them.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordVerifier};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use marline::{Runtime, TokioRuntime, hmac_sha256};
use marline_http::read_regular_file;
use tokio::sync::Semaphore;

/// The largest size of a file of users, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Passwords that are checked at once. Each takes a processor for a tenth of a second; further ones wait.
const CHECKING: usize = 2;

/// Passwords that are waited for. Further requests are refused without a check.
const WAITING: usize = 64;

/// Passwords found right that are remembered, by a keyed hash.
const MAX_KNOWN: usize = 1024;

/// A hash of bcrypt that no password has.
const NOBODY: &str = "$2b$10$C6UzMDM.H6dfI/f/IKcEeO7ZrjT5hHcI2eHyhGnUoHZI9OmiYI3IW";

/// The most memory that a hash of Argon2 may take, in KiB: twice the second recommended choice of RFC 9106, section 4.
const MAX_ARGON2_MEMORY: u32 = 128 << 10;

/// The most work of a hash of Argon2, in KiB times passes: 0.6 s of a processor of a server.
const MAX_ARGON2_WORK: u64 = 1 << 20;

/// The reason why a file of users cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BasicAuthError {
    /// It cannot be read.
    #[error("cannot read the users of {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        cause: std::io::Error,
    },
    /// A line does not define a user.
    #[error(
        "{}:{line}: {problem}; make it with `htpasswd -B` (bcrypt), or as NAME:HASH with a hash of Argon2",
        path.display()
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The problem with it.
        problem: &'static str,
    },
    /// There is no key for the cache.
    #[error("cannot make a key: {0}")]
    NoKey(std::io::Error),
}

/// The users of a file.
pub(crate) struct BasicAuth {
    users: Arc<HashMap<String, Hash>>,
    /// The hash that is checked for names that do not exist, so that they take as long as others: that of a user.
    nobody: Hash,
    key: [u8; 32],
    known: Mutex<HashMap<[u8; 32], ()>>,
    checking: Semaphore,
    waiting: Semaphore,
}

/// The hash of a password.
#[derive(Clone)]
enum Hash {
    Bcrypt(String),
    Argon2(String),
}

impl Hash {
    /// Reads a hash, or says why it is none.
    fn read(text: &str) -> Result<Self, &'static str> {
        if ["$2y$", "$2a$", "$2b$"]
            .iter()
            .any(|id| text.starts_with(id))
        {
            let cost = text.get(4..6).and_then(|cost| cost.parse::<u32>().ok());
            return match (cost, text.len()) {
                (Some(4..=17), 60) => Ok(Self::Bcrypt(text.to_owned())),
                (Some(18..), 60) => Err("its hash takes seconds to check"),
                _ => Err("its hash of bcrypt is damaged"),
            };
        }
        if text.starts_with("$argon2") {
            return match PasswordHash::new(text) {
                Ok(hash) => match argon2::Params::try_from(&hash) {
                    Ok(costs) if costs.m_cost() > MAX_ARGON2_MEMORY => {
                        Err("its hash takes more than 128 MiB of memory to check")
                    }
                    Ok(costs) if work(&costs) > MAX_ARGON2_WORK => {
                        Err("its hash takes seconds to check")
                    }
                    Ok(_) => Ok(Self::Argon2(text.to_owned())),
                    Err(_) => Err("its hash of Argon2 is damaged"),
                },
                Err(_) => Err("its hash of Argon2 is damaged"),
            };
        }
        if text.starts_with("$apr1$") || text.starts_with("{SHA}") {
            return Err("its hash can be guessed too fast");
        }
        Err("its hash is of no kind that is supported")
    }

    /// The time that a check takes, roughly, in KiB times passes of Argon2. An iteration of bcrypt was measured to take 99 of these.
    fn cost(&self) -> u64 {
        match self {
            Self::Bcrypt(hash) => {
                let cost = hash.get(4..6).and_then(|cost| cost.parse().ok());
                100 << cost.unwrap_or(0u32)
            }
            Self::Argon2(hash) => {
                let costs = PasswordHash::new(hash)
                    .ok()
                    .and_then(|hash| argon2::Params::try_from(&hash).ok());
                costs.map_or(0, |costs| work(&costs))
            }
        }
    }

    fn accepts(&self, password: &[u8]) -> bool {
        match self {
            Self::Bcrypt(hash) => bcrypt::verify(password, hash).unwrap_or(false),
            Self::Argon2(hash) => PasswordHash::new(hash).is_ok_and(|hash| {
                let argon = Argon2::default();
                argon.verify_password(password, &hash).is_ok()
            }),
        }
    }
}

/// The work of a hash of Argon2, in KiB times passes.
fn work(costs: &argon2::Params) -> u64 {
    u64::from(costs.m_cost()) * u64::from(costs.t_cost())
}

/// The name and the password of a request.
pub(crate) struct Credentials {
    user: String,
    password: Vec<u8>,
}

impl Credentials {
    /// Those of a request, if it has some of this scheme.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(AUTHORIZATION)?.as_bytes();
        let (scheme, encoded) = value.split_at_checked(6)?;
        if !scheme.eq_ignore_ascii_case(b"basic ") {
            return None;
        }
        let pair = STANDARD.decode(encoded.trim_ascii()).ok()?;
        let colon = pair.iter().position(|&byte| byte == b':')?;
        Some(Self {
            user: String::from_utf8(pair[..colon].to_vec()).ok()?,
            password: pair[colon + 1..].to_vec(),
        })
    }
}

impl BasicAuth {
    /// Reads a file: a line NAME:HASH for each user, and comments after `#`.
    pub(crate) fn read(path: &Path) -> Result<Self, BasicAuthError> {
        let unreadable = |cause| BasicAuthError::Unreadable {
            path: path.to_owned(),
            cause,
        };
        let content = read_regular_file(path, MAX_BYTES).map_err(unreadable)?;
        let mut users = HashMap::new();
        for (index, line) in content.split(|&byte| byte == b'\n').enumerate() {
            let wrong = |problem| BasicAuthError::Line {
                path: path.to_owned(),
                line: index + 1,
                problem,
            };
            let line = std::str::from_utf8(line).map_err(|_| wrong("it is not text in UTF-8"))?;
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (user, hash) = line
                .split_once(':')
                .ok_or_else(|| wrong("it has no colon between a name and a hash"))?;
            let hash = Hash::read(hash.trim()).map_err(wrong)?;
            if users.insert(user.to_owned(), hash).is_some() {
                return Err(wrong("its name is there twice"));
            }
        }
        let nobody = users
            .values()
            .max_by_key(|hash: &&Hash| hash.cost())
            .cloned();
        let seed = TokioRuntime::current().and_then(|runtime| runtime.seed());
        Ok(Self {
            users: Arc::new(users),
            nobody: nobody.unwrap_or_else(|| Hash::Bcrypt(NOBODY.to_owned())),
            key: seed.map_err(BasicAuthError::NoKey)?,
            known: Mutex::default(),
            checking: Semaphore::new(CHECKING),
            waiting: Semaphore::new(WAITING),
        })
    }

    /// Whether the name is that of a user with this password.
    pub(crate) async fn accepts(&self, credentials: Credentials) -> bool {
        let Credentials { user, password } = credentials;
        let length = (user.len() as u64).to_be_bytes();
        let all = [&length[..], user.as_bytes(), &password].concat();
        let digest = hmac_sha256(&self.key, &all);
        if self.known().contains_key(&digest) {
            return true;
        }
        let Ok(_place) = self.waiting.try_acquire() else {
            return false;
        };
        let Ok(_turn) = self.checking.acquire().await else {
            return false;
        };
        let hash = self.users.get(&user).cloned();
        let is_user = hash.is_some();
        let hash = hash.unwrap_or_else(|| self.nobody.clone());
        let checked = tokio::task::spawn_blocking(move || hash.accepts(&password)).await;
        let is_right = is_user && checked.unwrap_or(false);
        if is_right {
            let mut known = self.known();
            if known.len() >= MAX_KNOWN {
                known.clear();
            }
            known.insert(digest, ());
        }
        is_right
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], ()>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for BasicAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BasicAuth")
            .field("users", &self.users.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn users(lines: &str) -> Result<BasicAuth, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("users");
        fs::write(&path, lines).unwrap();
        BasicAuth::read(&path).map_err(|error| error.to_string())
    }

    fn credentials(pair: &str) -> Credentials {
        let mut headers = HeaderMap::new();
        let value = format!("bASIC {}", STANDARD.encode(pair));
        headers.insert(AUTHORIZATION, value.parse().unwrap());
        Credentials::of(&headers).unwrap()
    }

    #[tokio::test]
    async fn a_user_has_one_password() {
        let hash = bcrypt::hash("secret:x", 4).unwrap();
        let users = users(&format!("# people\n\nana:{hash}\n")).unwrap();
        for (pair, expected) in [
            ("ana:secret:x", true),
            ("ana:secret", false),
            ("ana:", false),
            ("bob:secret:x", false),
            ("ana:secret:x", true),
        ] {
            assert_eq!(users.accepts(credentials(pair)).await, expected, "{pair}");
        }
        assert_eq!(users.known().len(), 1);
    }

    #[tokio::test]
    async fn argon2_is_a_hash_as_well() {
        use argon2::password_hash::{PasswordHasher, SaltString};
        let salt = SaltString::from_b64("c2FsdHNhbHRzYWx0").unwrap();
        let params = argon2::Params::new(64, 1, 1, None).unwrap();
        let argon = Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
        let hash = argon.hash_password(b"secret", &salt).unwrap();
        let users = users(&format!("ana:{hash}\n")).unwrap();
        assert!(users.accepts(credentials("ana:secret")).await);
        assert!(!users.accepts(credentials("ana:secret2")).await);
    }

    #[tokio::test]
    async fn a_line_that_is_no_user_is_named() {
        for (lines, words) in [
            ("ana:$apr1$x$y\n", "users:1: its hash can be guessed"),
            ("\nana\n", "users:2: it has no colon"),
            ("ana:secret", "no kind that is supported"),
            ("ana:$2y$10$short", "its hash of bcrypt is damaged"),
            ("ana:$argon2id$x", "Argon2 is damaged"),
            (
                "ana:$argon2id$v=19$m=2097152,t=1,p=4$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaA",
                "users:1: its hash takes more than 128 MiB of memory",
            ),
            (
                "ana:$argon2id$v=19$m=65536,t=400,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaA",
                "users:1: its hash takes seconds",
            ),
        ] {
            let error = users(lines).err().unwrap();
            assert!(error.contains(words), "{error}");
        }
        let hash = bcrypt::hash("a", 4).unwrap();
        let twice = users(&format!("a:{hash}\na:{hash}")).err().unwrap();
        assert!(
            twice.contains("users:2: its name is there twice"),
            "{twice}"
        );
    }

    #[tokio::test]
    async fn names_that_do_not_exist_take_as_long_as_the_slowest_hash() {
        let hashes = [4, 6, 5].map(|cost| bcrypt::hash("x", cost).unwrap());
        let [quick, slow, other] = &hashes;
        let users = users(&format!("a:{quick}\nb:{slow}\nc:{other}\n")).unwrap();
        assert!(matches!(&users.nobody, Hash::Bcrypt(hash) if hash == slow));
        assert!(!users.accepts(credentials("nobody:x")).await);
    }

    #[tokio::test]
    async fn nobody_has_a_hash_that_is_valid() {
        assert!(bcrypt::verify("x", NOBODY).is_ok_and(|is_right| !is_right));
    }

    #[test]
    fn what_is_no_pair_is_none() {
        for value in ["Basic", "Basic !", "Bearer x", "Basic YQ=="] {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            assert!(Credentials::of(&headers).is_none(), "{value}");
        }
    }
}
