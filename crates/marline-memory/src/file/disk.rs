//! The database file.

use std::fs::File;
use std::io::{self, Read};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use marline_proto::coordination::history::{PathKey, PathRecord};
use redb::{Database, ReadableTable, ReadableTableMetadata, TableDefinition};

use super::OpenError;
use super::error::Failure;
use crate::cache::{Cache, Decoded, StoredValue};
use crate::{key, value};

/// Metadata of the file.
const METADATA: TableDefinition<'_, &str, u64> = TableDefinition::new("marline");
const FORMAT: &str = "format";
const CURRENT_FORMAT: u64 = 1;

/// Encoded records by encoded key.
const PATHS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("paths");

type Paths<'a> = redb::Table<'a, &'static [u8], &'static [u8]>;

/// Magic number of a redb database.
const MAGIC: &[u8] = b"redb\x1a\x0a";

/// Size of redb's page cache, in bytes.
const CACHE: usize = 4 << 20;

/// Number of records read from the cache at a time when all are written.
const PAGE: usize = 256;

#[derive(Debug)]
pub(super) struct Disk {
    path: PathBuf,
    /// The database; `None` after an error: the next commit opens it again.
    database: Option<Database>,
}

/// An opened file.
pub(super) struct Opened {
    pub(super) disk: Disk,
    /// Whether the wall clock went backwards since the file was written. Such a file has to be
    /// rewritten, because its records would stop aging.
    pub(super) is_ahead: bool,
}
impl Disk {
    /// Opens or creates the file, and loads its records into `cache`.
    pub(super) fn open(path: &Path, cache: &Cache) -> Result<Opened, OpenError> {
        let Loaded { database, is_ahead } = catch_panics(path, || {
            let database = open_or_create(path)?;
            let is_ahead = load(&database, cache).map_err(|error| OpenError::redb(path, error))?;
            Ok(Loaded { database, is_ahead })
        })?;
        let disk = Self {
            path: path.into(),
            database: Some(database),
        };
        Ok(Opened { disk, is_ahead })
    }

    /// Writes the records of `keys` (or all, with `is_all`) from `cache` in one transaction. Afterwards
    /// the file has at most slightly more than `limit` records.
    pub(super) fn commit(
        &mut self,
        cache: &Cache,
        keys: &[PathKey],
        is_all: bool,
        limit: usize,
    ) -> Result<(), OpenError> {
        let path = &self.path;
        // After an error the database must be opened again, for its integrity check.
        let before = self.database.take();
        let database = catch_panics(path, || {
            let database = match before {
                Some(database) => database,
                None => open_or_create(path)?,
            };
            write(&database, cache, keys, is_all, limit)
                .map_err(|error| OpenError::redb(path, error))?;
            Ok(database)
        })?;
        self.database = Some(database);
        Ok(())
    }
}

struct Loaded {
    database: Database,
    is_ahead: bool,
}

/// Turns panics into errors: redb asserts the consistency of its file, which may be damaged.
fn catch_panics<T>(
    path: &Path,
    body: impl FnOnce() -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    panic::catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|_| Err(OpenError::damaged(path, "its pages are inconsistent")))
}

fn open_or_create(path: &Path) -> Result<Database, OpenError> {
    // Checked before the file is opened: opening a named pipe waits for its writer.
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(OpenError::NotAFile { path: path.into() });
    }
    let mut database = match has_magic(path) {
        Ok(true) => builder().open(path),
        Ok(false) => return Err(OpenError::unknown_format(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create(path)?;
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

fn has_magic(path: &Path) -> io::Result<bool> {
    let mut start = [0; MAGIC.len()];
    match File::open(path)?.read_exact(&mut start) {
        Ok(()) => Ok(start == MAGIC),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Creates a file under a temporary name and renames it when it is complete. If another process has
/// created the file meanwhile, that file is kept.
fn create(path: &Path) -> Result<(), OpenError> {
    let in_file = |error| OpenError::io(path, error);
    let directory = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let file = tempfile::Builder::new()
        .prefix(".marline-")
        .tempfile_in(directory.unwrap_or(Path::new(".")))
        .map_err(in_file)?;
    let database = builder()
        .create(file.path())
        .map_err(|error| OpenError::redb(path, Failure::from(error)))?;
    initialize(&database).map_err(|error| OpenError::redb(path, error))?;
    drop(database);
    match file.persist_noclobber(path) {
        Err(failed) if failed.error.kind() != io::ErrorKind::AlreadyExists => {
            Err(in_file(failed.error))
        }
        _ => Ok(()),
    }
}

fn initialize(database: &Database) -> Result<(), Failure> {
    let transaction = database.begin_write()?;
    transaction
        .open_table(METADATA)?
        .insert(FORMAT, CURRENT_FORMAT)?;
    transaction.open_table(PATHS)?;
    transaction.commit()?;
    Ok(())
}

/// Checks the format of the file and the integrity of its pages.
fn check(path: &Path, database: &mut Database) -> Result<(), OpenError> {
    let in_redb = |error: Failure| OpenError::redb(path, error);
    match format(database).map_err(in_redb)? {
        Some(CURRENT_FORMAT) => {}
        Some(format) => {
            return Err(OpenError::Newer {
                path: path.into(),
                format,
            });
        }
        None => return Err(OpenError::unknown_format(path)),
    }
    database
        .check_integrity()
        .map_err(|error| in_redb(error.into()))?;
    Ok(())
}

fn format(database: &Database) -> Result<Option<u64>, Failure> {
    let table = database.begin_read()?.open_table(METADATA)?;
    let format = table.get(FORMAT)?.map(|format| format.value());
    Ok(format)
}

/// Loads all records into `cache`. Returns whether any of them has a time stamp in the future.
fn load(database: &Database, cache: &Cache) -> Result<bool, Failure> {
    let table = database.begin_read()?.open_table(PATHS)?;
    let mut records: Vec<(PathKey, PathRecord)> = Vec::new();
    let mut is_ahead = false;
    for entry in table.iter()? {
        let (name, bytes) = entry?;
        is_ahead |= value::is_ahead(bytes.value(), cache.unix_time());
        match (key::decode(name.value()), cache.decode(bytes.value())) {
            (Some(key), Decoded::Record(record)) => records.push((key, record)),
            (_, Decoded::Expired) => {}
            _ => cache.counters.errors.add(1),
        }
    }
    // Oldest first, so that the latest are kept if there are too many.
    records.sort_by_key(|(_, record)| record.seen_at);
    for (key, record) in records {
        cache.merge(&key, record, None);
    }
    Ok(is_ahead)
}

fn write(
    database: &Database,
    cache: &Cache,
    keys: &[PathKey],
    is_all: bool,
    limit: usize,
) -> Result<(), Failure> {
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(PATHS)?;
        for key in keys {
            let Some(name) = key::encode(key) else {
                continue;
            };
            match cache.value(key) {
                Some(StoredValue { bytes, .. }) => {
                    drop(table.insert(name.as_bytes(), bytes.as_slice())?);
                }
                None => drop(table.remove(name.as_bytes())?),
            }
        }
        if is_all {
            write_all(&mut table, cache)?;
        }
        // Records evicted from memory are still in the file. They are removed in batches, because that scans it.
        let is_crowded = table.len()? > limit.saturating_add(limit / 8) as u64;
        if is_all || is_crowded {
            remove_evicted(&mut table, cache)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// Removes the records that are not in `cache`. One by one, because redb's `retain` rewrites a page for
/// each.
fn remove_evicted(table: &mut Paths<'_>, cache: &Cache) -> Result<(), Failure> {
    let mut evicted = Vec::new();
    for entry in table.iter()? {
        let (name, _) = entry?;
        if !key::decode(name.value()).is_some_and(|key| cache.holds(&key)) {
            evicted.push(name.value().to_vec());
        }
    }
    for name in evicted {
        table.remove(name.as_slice())?;
    }
    Ok(())
}

fn write_all(table: &mut Paths<'_>, cache: &Cache) -> Result<(), Failure> {
    let mut after = 0;
    loop {
        let page = cache.page(after, PAGE);
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = last.number;
        for entry in &page {
            if let Some(name) = key::encode(&entry.key) {
                table.insert(name.as_bytes(), entry.bytes.as_slice())?;
            }
        }
    }
}

#[cfg(test)]
mod tests;
