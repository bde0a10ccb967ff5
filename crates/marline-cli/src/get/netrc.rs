//! Names and passwords of hosts in a file `.netrc`.

use std::collections::BTreeMap;

use marline_http::client::Credentials;

/// The credentials of a file, by lower-case host. The first entry of a host counts; macros are passed over.
pub(super) fn read(text: &str) -> BTreeMap<String, Credentials> {
    let mut found = BTreeMap::new();
    let mut entry = Entry::default();
    let mut words = words(text).into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "machine" => {
                std::mem::take(&mut entry).end(&mut found);
                entry.host = words.next().map(|host| host.to_ascii_lowercase());
            }
            "default" => std::mem::take(&mut entry).end(&mut found),
            "login" => entry.login = words.next(),
            "password" => entry.password = words.next(),
            "account" => {
                words.next();
            }
            _ => {}
        }
    }
    entry.end(&mut found);
    found
}

#[derive(Default)]
struct Entry {
    host: Option<String>,
    login: Option<String>,
    password: Option<String>,
}

impl Entry {
    fn end(self, found: &mut BTreeMap<String, Credentials>) {
        if let (Some(host), Some(login)) = (self.host, self.login) {
            let password = self.password.unwrap_or_default();
            found
                .entry(host)
                .or_insert_with(|| Credentials::basic(login.as_bytes(), password.as_bytes()));
        }
    }
}

/// The words of a file without its comments and macros; those in quotes may have blanks.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut rest = line.trim_start();
        while !rest.is_empty() && !rest.starts_with('#') {
            let (word, after) = match rest.strip_prefix('"') {
                Some(quoted) => quoted_word(quoted),
                None => {
                    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                    (rest[..end].to_owned(), &rest[end..])
                }
            };
            rest = after.trim_start();
            if word == "macdef" {
                // A macro ends with an empty line.
                lines
                    .by_ref()
                    .take_while(|line| !line.trim().is_empty())
                    .for_each(drop);
                break;
            }
            words.push(word);
        }
    }
    words
}

/// A word that ends with a quote, and what follows.
fn quoted_word(text: &str) -> (String, &str) {
    let mut word = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (word, &text[at + 1..]),
            '\\' => word.extend(characters.next().map(|(_, escaped)| escaped)),
            other => word.push(other),
        }
    }
    (word, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_belong_to_their_hosts() {
        let text = "# mine\nmachine A.test login me password \"p \\\"q\"\nmacdef init\ncd /\n\n\
                    machine b.test\n  login you\n  password x # note\nmachine a.test login other\ndefault login d password e\n";
        let found = read(text);
        let credentials = |user: &str, password: &str| {
            Some(Credentials::basic(user.as_bytes(), password.as_bytes()))
        };
        assert_eq!(found.get("a.test").cloned(), credentials("me", "p \"q"));
        assert_eq!(found.get("b.test").cloned(), credentials("you", "x"));
        assert_eq!(found.len(), 2);
    }
}
