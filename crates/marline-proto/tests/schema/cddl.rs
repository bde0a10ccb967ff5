//! A parser of the CDDL (RFC 8610) used by the schemas of qlog. Other syntax is an error, so that no rule is skipped.

use std::collections::BTreeMap;

use regex::Regex;

/// A type.
#[derive(Debug)]
pub(super) enum Type {
    /// A rule, or a type of the prelude.
    Name(String),
    Text(String),
    Map(Vec<Entry>),
    Array(Vec<Entry>),
    Choice(Vec<Self>),
    /// `uint .size N`, in bytes.
    Size(Box<Self>, u32),
    /// `text .regexp`, which must match the whole text.
    Regexp(Box<Self>, Regex),
}

/// An entry of a group, and its number of occurrences.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) min: usize,
    pub(super) max: usize,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// `key: type`
    Member(String, Type),
    /// `text => type`: any key.
    AnyKey(Type),
    /// A type without a key, as arrays have them.
    Value(Type),
    /// `~name`: the entries of that rule.
    Unwrapped(String),
    /// `$$name`, which is not extended.
    Socket,
}

/// The rules of one or more files.
#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: BTreeMap<String, Type>,
}

impl Rules {
    /// Adds the rules of a file. `$name /= type` extends a rule, which may be in another file.
    pub(super) fn read(&mut self, text: &str) -> Result<(), String> {
        let mut parser = Parser {
            tokens: tokens(text)?,
            at: 0,
        };
        while parser.at < parser.tokens.len() {
            let name = parser.name()?;
            match parser.next()? {
                Token::Sign("=") => {
                    let rule = parser.choice()?;
                    if self.rules.insert(name.clone(), rule).is_some() {
                        return Err(format!("{name} is defined twice"));
                    }
                }
                Token::Sign("/=") => {
                    let more = parser.choice()?;
                    let rule = self.rules.entry(name);
                    let rule = rule.or_insert_with(|| Type::Choice(Vec::new()));
                    match rule {
                        Type::Choice(choices) => choices.push(more),
                        other => return Err(format!("extends what is not a choice: {other:?}")),
                    }
                }
                other => return Err(format!("{other:?} after {name}")),
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, name: &str) -> Option<&Type> {
        self.rules.get(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.rules.keys().map(String::as_str)
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Text(String),
    Number(usize),
    /// A control operator such as `.size`.
    Control(String),
    Sign(&'static str),
}

/// Longer signs come first.
const SIGNS: [&str; 15] = [
    "/=", "=>", "=", "/", "{", "}", "[", "]", "(", ")", ":", ",", "?", "*", "+",
];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "@_$-".contains(c);
    let mut tokens = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut rest = line.trim_start();
        while !rest.is_empty() && !rest.starts_with(';') {
            let end_of_name = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            let (token, len) = if let Some(inner) = rest.strip_prefix('"') {
                let end = inner.find('"').ok_or("a text without an end")?;
                (Token::Text(inner[..end].to_owned()), end + 2)
            } else if let Some(control) = rest.strip_prefix('.') {
                let end = control.find(|c| !is_name(c)).unwrap_or(control.len());
                (Token::Control(control[..end].to_owned()), end + 1)
            } else if rest.starts_with(|c: char| c.is_ascii_digit()) {
                let end = rest
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(rest.len());
                let value = rest[..end].parse().map_err(|_| "a number too large")?;
                (Token::Number(value), end)
            } else if end_of_name > 0 {
                (Token::Name(rest[..end_of_name].to_owned()), end_of_name)
            } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
                (Token::Sign(sign), sign.len())
            } else if rest.starts_with('~') {
                (Token::Sign("~"), 1)
            } else {
                return Err(format!("line {}: {rest}", number + 1));
            };
            tokens.push(token);
            rest = rest[len..].trim_start();
        }
    }
    Ok(tokens)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead)
    }

    fn next(&mut self) -> Result<Token, String> {
        let token = self.peek(0).cloned().ok_or("the file ends within a rule")?;
        self.at += 1;
        Ok(token)
    }

    fn skip(&mut self, sign: &'static str) -> bool {
        let is_there = self.peek(0) == Some(&Token::Sign(sign));
        self.at += usize::from(is_there);
        is_there
    }

    fn name(&mut self) -> Result<String, String> {
        match self.next()? {
            Token::Name(name) => Ok(name),
            other => Err(format!("{other:?} where a name belongs")),
        }
    }

    fn choice(&mut self) -> Result<Type, String> {
        let mut choices = vec![self.single()?];
        while self.skip("/") {
            choices.push(self.single()?);
        }
        Ok(Type::Choice(choices))
    }

    fn single(&mut self) -> Result<Type, String> {
        let mut of = match self.next()? {
            Token::Name(name) => Type::Name(name),
            Token::Text(text) => Type::Text(text),
            Token::Sign("{") => Type::Map(self.entries("}")?),
            Token::Sign("[") => Type::Array(self.entries("]")?),
            other => return Err(format!("{other:?} where a type belongs")),
        };
        if let Some(Token::Control(control)) = self.peek(0).cloned() {
            self.at += 1;
            of = match (control.as_str(), self.next()?) {
                ("size", Token::Number(bytes)) => Type::Size(Box::new(of), bytes as u32),
                ("regexp", Token::Text(pattern)) => {
                    let whole = Regex::new(&format!("^(?:{pattern})$"));
                    Type::Regexp(Box::new(of), whole.map_err(|error| error.to_string())?)
                }
                // A default permits no other values.
                ("default", Token::Text(_) | Token::Number(_) | Token::Name(_)) => of,
                (control, argument) => return Err(format!(".{control} {argument:?}")),
            };
        }
        Ok(of)
    }

    fn entries(&mut self, end: &'static str) -> Result<Vec<Entry>, String> {
        let mut entries = Vec::new();
        while !self.skip(end) {
            entries.push(self.entry()?);
            self.skip(",");
        }
        Ok(entries)
    }

    fn entry(&mut self) -> Result<Entry, String> {
        let (min, max) = self.occurrence()?;
        let kind = match (self.peek(0), self.peek(1)) {
            (Some(Token::Sign("~")), _) => {
                self.at += 1;
                Kind::Unwrapped(self.name()?)
            }
            (Some(Token::Name(name)), _) if name.starts_with("$$") => {
                self.at += 1;
                Kind::Socket
            }
            (Some(Token::Name(_)), Some(Token::Sign(":"))) => {
                let key = self.name()?;
                self.at += 1;
                Kind::Member(key, self.choice()?)
            }
            (Some(Token::Name(name)), Some(Token::Sign("=>"))) if name == "text" => {
                self.at += 2;
                Kind::AnyKey(self.choice()?)
            }
            _ => Kind::Value(self.choice()?),
        };
        Ok(Entry { min, max, kind })
    }

    fn occurrence(&mut self) -> Result<(usize, usize), String> {
        if let Some(&Token::Number(min)) = self.peek(0) {
            self.at += 1;
            if !self.skip("*") {
                return Err(format!("{min} without a `*`"));
            }
            let max = match self.peek(0) {
                Some(&Token::Number(max)) => {
                    self.at += 1;
                    max
                }
                _ => usize::MAX,
            };
            return Ok((min, max));
        }
        Ok(if self.skip("?") {
            (0, 1)
        } else if self.skip("*") {
            (0, usize::MAX)
        } else if self.skip("+") {
            (1, usize::MAX)
        } else {
            (1, 1)
        })
    }
}
