//! The file itself.

use std::fs::File;
use std::io::{self, Read};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use marline_proto::coordination::history::{PathKey, PathRecord};
use redb::{Database, ReadableTable, ReadableTableMetadata, TableDefinition};

use super::OpenError;
use super::error::Failure;
use crate::front::{Decoded, Front};
use crate::{key, value};

/// What the file says of itself.
const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("marline");
const FORMAT: &str = "format";
const OUR_FORMAT: u64 = 1;

/// Records by their names.
const PATHS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("paths");

type Paths<'a> = redb::Table<'a, &'static [u8], &'static [u8]>;

/// How a redb database begins.
const MAGIC: &[u8] = b"redb\x1a\x0a";

/// Memory that redb may use to keep pages, in bytes.
const CACHE: usize = 4 << 20;

/// Records written down at a time, where all of them are.
const PAGE: usize = 256;

#[derive(Debug)]
pub(super) struct Disk {
    path: PathBuf,
    /// None after it failed.
    database: Option<Database>,
}

impl Disk {
    /// Opens the file, or begins it, and has `front` take in what it holds. Whether the wall clock went
    /// backwards since it was written: such a file has to be written anew, lest its records stop aging.
    pub(super) fn open(path: &Path, front: &Front) -> Result<(Self, bool), OpenError> {
        let (database, is_ahead) = guard(path, || {
            let database = open_or_begin(path)?;
            let is_ahead = load(&database, front).map_err(|error| OpenError::redb(path, error))?;
            Ok((database, is_ahead))
        })?;
        let disk = Self {
            path: path.into(),
            database: Some(database),
        };
        Ok((disk, is_ahead))
    }

    /// Writes what `front` knows under these keys, or under all, in one transaction. Afterwards the file
    /// has few more records than `most`.
    pub(super) fn commit(
        &mut self,
        front: &Front,
        keys: &[PathKey],
        is_all: bool,
        most: usize,
    ) -> Result<(), OpenError> {
        let path = &self.path;
        // After an error, redb wants to look at its file again.
        let before = self.database.take();
        let database = guard(path, || {
            let database = match before {
                Some(database) => database,
                None => open_or_begin(path)?,
            };
            write(&database, front, keys, is_all, most)
                .map_err(|error| OpenError::redb(path, error))?;
            Ok(database)
        })?;
        self.database = Some(database);
        Ok(())
    }
}

/// What redb takes for granted of its file, it asserts; a file may be anything.
fn guard<T>(path: &Path, body: impl FnOnce() -> Result<T, OpenError>) -> Result<T, OpenError> {
    panic::catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|_| Err(OpenError::broken(path, "its pages contradict each other")))
}

fn open_or_begin(path: &Path) -> Result<Database, OpenError> {
    let mut database = match looks_ours(path) {
        Ok(true) => builder().open(path),
        Ok(false) => return Err(OpenError::not_ours(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            begin(path)?;
            builder().open(path)
        }
        Err(error) => return Err(OpenError::io(path, error)),
    }
    .map_err(|error| OpenError::redb(path, Failure::from(error)))?;
    check(path, &mut database)?;
    Ok(database)
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE);
    builder.create_with_file_format_v3(true);
    builder
}

fn looks_ours(path: &Path) -> io::Result<bool> {
    let mut begins = [0; MAGIC.len()];
    match File::open(path)?.read_exact(&mut begins) {
        Ok(()) => Ok(begins == MAGIC),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes a file that gets its name when it is whole. If another process was faster, its file stays.
fn begin(path: &Path) -> Result<(), OpenError> {
    let in_file = |error| OpenError::io(path, error);
    let directory = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let file = tempfile::Builder::new()
        .prefix(".marline-")
        .tempfile_in(directory.unwrap_or(Path::new(".")))
        .map_err(in_file)?;
    let database = builder()
        .create(file.path())
        .map_err(|error| OpenError::redb(path, Failure::from(error)))?;
    found(&database).map_err(|error| OpenError::redb(path, error))?;
    drop(database);
    match file.persist_noclobber(path) {
        Err(failed) if failed.error.kind() != io::ErrorKind::AlreadyExists => {
            Err(in_file(failed.error))
        }
        _ => Ok(()),
    }
}

fn found(database: &Database) -> Result<(), Failure> {
    let transaction = database.begin_write()?;
    transaction.open_table(ABOUT)?.insert(FORMAT, OUR_FORMAT)?;
    transaction.open_table(PATHS)?;
    transaction.commit()?;
    Ok(())
}

/// Whether every page is as it was written, and the file one of ours.
fn check(path: &Path, database: &mut Database) -> Result<(), OpenError> {
    let in_redb = |error: Failure| OpenError::redb(path, error);
    match format(database).map_err(in_redb)? {
        Some(OUR_FORMAT) => {}
        Some(format) => {
            return Err(OpenError::Newer {
                path: path.into(),
                format,
            });
        }
        None => return Err(OpenError::not_ours(path)),
    }
    database
        .check_integrity()
        .map_err(|error| in_redb(error.into()))?;
    Ok(())
}

fn format(database: &Database) -> Result<Option<u64>, Failure> {
    let table = database.begin_read()?.open_table(ABOUT)?;
    let format = table.get(FORMAT)?.map(|format| format.value());
    Ok(format)
}

/// Whether any record is of a moment to come.
fn load(database: &Database, front: &Front) -> Result<bool, Failure> {
    let table = database.begin_read()?.open_table(PATHS)?;
    let mut records: Vec<(PathKey, PathRecord)> = Vec::new();
    let mut is_ahead = false;
    for entry in table.iter()? {
        let (name, bytes) = entry?;
        is_ahead |= value::is_ahead(bytes.value(), front.unix_time());
        match (key::decode(name.value()), front.decode(bytes.value())) {
            (Some(key), Decoded::Record(record)) => records.push((key, record)),
            (_, Decoded::Old) => {}
            _ => front.counters.errors.add(1),
        }
    }
    // As they were learnt, so that the latest stay where there are too many.
    records.sort_by_key(|(_, record)| record.seen_at);
    for (key, record) in records {
        front.absorb(&key, record, None);
    }
    Ok(is_ahead)
}

fn write(
    database: &Database,
    front: &Front,
    keys: &[PathKey],
    is_all: bool,
    most: usize,
) -> Result<(), Failure> {
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(PATHS)?;
        for key in keys {
            let Some(name) = key::encode(key) else {
                continue;
            };
            match front.value(key) {
                Some((bytes, _)) => drop(table.insert(name.as_bytes(), bytes.as_slice())?),
                None => drop(table.remove(name.as_bytes())?),
            }
        }
        if is_all {
            write_all(&mut table, front)?;
        }
        // What gave way in memory is still in the file: taken out now and then, since it takes a look at all.
        let is_crowded = table.len()? > most.saturating_add(most / 8) as u64;
        if is_all || is_crowded {
            clear(&mut table, front)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// Takes out what `front` does not know. One by one: redb's `retain` writes a page anew for each.
fn clear(table: &mut Paths<'_>, front: &Front) -> Result<(), Failure> {
    let mut gone = Vec::new();
    for entry in table.iter()? {
        let (name, _) = entry?;
        if !key::decode(name.value()).is_some_and(|key| front.holds(&key)) {
            gone.push(name.value().to_vec());
        }
    }
    for name in gone {
        table.remove(name.as_slice())?;
    }
    Ok(())
}

fn write_all(table: &mut Paths<'_>, front: &Front) -> Result<(), Failure> {
    let mut after = 0;
    loop {
        let page = front.page(after, PAGE);
        let Some((last, ..)) = page.last() else {
            return Ok(());
        };
        after = *last;
        for (_, key, bytes) in &page {
            if let Some(name) = key::encode(key) {
                table.insert(name.as_bytes(), bytes.as_slice())?;
            }
        }
    }
}

#[cfg(test)]
mod tests;
