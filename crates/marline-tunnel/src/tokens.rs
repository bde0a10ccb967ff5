//! The users of a server, who prove by a token or a certificate who they are.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use marline::{Runtime, Sha256, TokioRuntime};
use marline_http::server::{ClientCertificates, TlsClient};
use subtle::ConstantTimeEq;

/// Bytes of a token, which is random: nobody guesses one of 256 bits, nor finds one by its hash.
const TOKEN_BYTES: usize = 32;

/// Bytes of a file of tokens: some 10,000 users.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Users, and the hashes of their tokens.
///
/// The file has a line for each user: the name, and the SHA-256 of the token in hexadecimal digits. Empty lines, and those that begin with `#`, are comments.
#[derive(Clone, Default)]
pub struct Tokens {
    entries: Vec<Entry>,
    certificates: Vec<ClientCertificates>,
}

/// A user, and the hash of the token.
#[derive(Clone, PartialEq, Eq)]
struct Entry {
    user: Arc<str>,
    hash: [u8; 32],
}

/// A user who has shown a token or a certificate.
#[derive(Clone)]
pub struct User(Proof);

#[derive(Clone)]
enum Proof {
    Token(Entry),
    /// The certificate of a connection.
    Certificate {
        name: Arc<str>,
        account: Arc<str>,
        client: TlsClient,
    },
}

impl User {
    /// The name: that of the token, or the subject of the certificate, or its fingerprint if that is empty.
    pub fn name(&self) -> &str {
        match &self.0 {
            Proof::Token(entry) => &entry.user,
            Proof::Certificate { name, .. } => name,
        }
    }

    /// The name by which limits and addresses are kept: those of a certificate have that of its issuer, since authorities may give the
    /// same one, and no token has a name with spaces.
    pub fn account(&self) -> &str {
        match &self.0 {
            Proof::Token(entry) => &entry.user,
            Proof::Certificate { account, .. } => account,
        }
    }

    /// Why a tunnel of a user who is not among the users any more has ended.
    pub(crate) fn end(&self) -> &'static str {
        match &self.0 {
            Proof::Token(_) => "its token was revoked",
            Proof::Certificate { .. } => "its certificate is not accepted any more",
        }
    }
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("User").field(&self.name()).finish()
    }
}

/// A new token, to be given to its user.
pub struct Token {
    text: String,
}

/// Why there are no tokens.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// The file cannot be read.
    #[error("cannot read the tokens in {}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: std::io::Error,
    },
    /// A line is neither a comment nor a user with a hash.
    #[error(
        "{}:{line}: not a user and the SHA-256 of a token; `marline tunnel token NAME` prints such a line",
        path.display()
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
    },
    /// Two lines have the same hash.
    #[error("{}:{line}: the token of an earlier line", path.display())]
    Repeated {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
    },
    /// Two lines have the same user.
    #[error(
        "{}:{line}: {user} has a token in line {first} already; remove one of the lines, or write another name, as {user}-phone",
        path.display()
    )]
    SameUser {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The number of the line before.
        first: usize,
        /// The name.
        user: String,
    },
    /// There is no user: everybody would be refused.
    #[error("{} has no user; add the line that `marline tunnel token NAME` prints", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl Tokens {
    /// Reads a file, which may have no user: the last was revoked.
    ///
    /// # Errors
    /// See [`TokensError`].
    pub fn read(path: &Path) -> Result<Self, TokensError> {
        let text = marline_http::read_regular_file(path, MAX_FILE_BYTES)
            .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other))
            .map_err(|cause| TokensError::File {
                path: path.to_owned(),
                cause,
            })?;
        Self::parse(&text, path)
    }

    /// Reads a file that has a user.
    ///
    /// # Errors
    /// See [`TokensError`].
    pub fn read_some(path: &Path) -> Result<Self, TokensError> {
        let tokens = Self::read(path)?;
        match tokens.is_empty() {
            true => Err(TokensError::Empty {
                path: path.to_owned(),
            }),
            false => Ok(tokens),
        }
    }

    /// Reads the text of the file `path`.
    fn parse(text: &str, path: &Path) -> Result<Self, TokensError> {
        let path = || path.to_owned();
        let (mut known, mut users) = (HashSet::new(), HashMap::new());
        let mut entries = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let number = index + 1;
            let entry = entry(line).ok_or(TokensError::Line {
                path: path(),
                line: number,
            })?;
            if !known.insert(entry.hash) {
                return Err(TokensError::Repeated {
                    path: path(),
                    line: number,
                });
            }
            if let Some(first) = users.insert(Arc::clone(&entry.user), number) {
                return Err(TokensError::SameUser {
                    path: path(),
                    line: number,
                    first,
                    user: entry.user.to_string(),
                });
            }
            entries.push(entry);
        }
        Ok(Self {
            entries,
            certificates: Vec::new(),
        })
    }

    /// The user with this token. It takes the same time whoever has it, and whether anyone has.
    pub fn user_of(&self, token: &str) -> Option<User> {
        let hash = Sha256::of(token.as_bytes());
        let mut found = None;
        for entry in &self.entries {
            if bool::from(entry.hash.ct_eq(&hash)) {
                found = Some(entry);
            }
        }
        found.cloned().map(|entry| User(Proof::Token(entry)))
    }

    /// These, and whoever has a certificate that one of `certificates` accepts.
    #[must_use]
    pub fn with_certificates(mut self, certificates: Vec<ClientCertificates>) -> Self {
        self.certificates = certificates;
        self
    }

    /// The user with the certificate of a connection, if that is accepted.
    pub fn user_with(&self, client: &TlsClient) -> Option<User> {
        let certificate = client.certificate()?;
        let name = match certificate.subject() {
            "" => format!("sha256:{}", certificate.fingerprint()),
            subject => subject.to_owned(),
        };
        let proof = Proof::Certificate {
            account: format!("{name} issued by {}", certificate.issuer()).into(),
            name: name.into(),
            client: client.clone(),
        };
        self.accept(client).then_some(User(proof))
    }

    /// Whether the token or certificate that `user` has shown is still accepted.
    pub fn has(&self, user: &User) -> bool {
        match &user.0 {
            Proof::Token(entry) => self.entries.contains(entry),
            Proof::Certificate { client, .. } => self.accept(client),
        }
    }

    /// Whether the certificate is valid now.
    fn accept(&self, client: &TlsClient) -> bool {
        let Some(certificate) = client.certificate() else {
            return false;
        };
        let now = TokioRuntime::current().map(|runtime| runtime.unix_time());
        let mut rules = self.certificates.iter();
        now.is_ok_and(|now| rules.any(|rules| rules.still_accept(certificate, now)))
    }

    /// The number of users.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no user.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether a user has this name.
    pub fn has_name(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| &*entry.user == name)
    }
}

/// The line of a user.
fn entry(line: &str) -> Option<Entry> {
    let mut words = line.split_ascii_whitespace();
    let (user, digits, None) = (words.next()?, words.next()?, words.next()) else {
        return None;
    };
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(digits.as_bytes().chunks(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(Entry {
        user: user.into(),
        hash,
    })
}

impl Token {
    /// A random token.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random() -> Result<Self, std::io::Error> {
        let mut bytes = [0; TOKEN_BYTES];
        let provider = marline::default_crypto_provider();
        let filled = provider.secure_random.fill(&mut bytes);
        filled.map_err(|_| std::io::Error::other("the system has no random numbers"))?;
        Ok(Self {
            text: URL_SAFE_NO_PAD.encode(bytes),
        })
    }

    /// The token, as the user gives it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The line of `user` for the file of the server.
    pub fn line(&self, user: &str) -> String {
        let hash = Sha256::of(self.text.as_bytes());
        let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{user} {digits}")
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let users = self.entries.iter().map(|entry| &entry.user);
        f.debug_set().entries(users).finish()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Tokens, TokensError> {
        Tokens::parse(text, Path::new("tokens"))
    }

    #[test]
    fn a_token_shows_its_user() {
        let (a, b) = (Token::random().unwrap(), Token::random().unwrap());
        let text = format!("# users\n\n{}\n {} \n", a.line("anna"), b.line("bob"));
        let tokens = parse(&text).unwrap();
        let name = |token: &str| tokens.user_of(token).map(|user| user.name().to_owned());
        assert_eq!(name(a.as_str()).as_deref(), Some("anna"));
        assert_eq!(name(b.as_str()).as_deref(), Some("bob"));
        for other in ["", "x", &a.line("anna"), &a.as_str()[1..]] {
            assert_eq!(name(other), None);
        }
    }

    #[test]
    fn a_user_with_another_token_is_not_the_one_who_has_shown_the_first() {
        let (old, new) = (Token::random().unwrap(), Token::random().unwrap());
        let before = parse(&old.line("anna")).unwrap();
        let anna = before.user_of(old.as_str()).unwrap();
        assert!(before.has(&anna));
        assert!(!parse(&new.line("anna")).unwrap().has(&anna));
        assert!(!parse(&old.line("bob")).unwrap().has(&anna));
    }

    #[test]
    fn errors_name_the_line() {
        let line = Token::random().unwrap().line("anna");
        let hash = line.split(' ').nth(1).unwrap();
        for text in [
            "anna",
            &format!("anna {hash} x"),
            &format!("anna {}", &hash[1..]),
            &line.replace(hash, &"é".repeat(32)),
        ] {
            let error = parse(&format!("#\n{text}")).unwrap_err();
            assert!(error.to_string().starts_with("tokens:2: "), "{error}");
        }
        let repeated = parse(&format!("{line}\nbob {hash}")).unwrap_err();
        assert!(matches!(repeated, TokensError::Repeated { line: 2, .. }));
        let other = Token::random().unwrap().line("anna");
        let same = parse(&format!("{line}\n\n{other}"))
            .unwrap_err()
            .to_string();
        assert!(
            same.starts_with("tokens:3: anna has a token in line 1 already"),
            "{same}"
        );
        assert!(parse("# none\n").unwrap().is_empty());
    }

    #[test]
    fn tokens_are_not_shown() {
        let token = Token::random().unwrap();
        let tokens = parse(&token.line("anna")).unwrap();
        assert_eq!(format!("{tokens:?}"), "{\"anna\"}");
        assert!(!format!("{token:?}").contains(token.as_str()));
    }
}
