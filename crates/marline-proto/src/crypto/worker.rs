//! Numbers of a server's workers in its connection IDs (RFC 9000, section 5.1).

use std::fmt;
use std::net::Ipv6Addr;

use super::provider::hmac_sha256;

/// Bytes of a connection ID that name a worker: IDs have at least as many where there are several workers.
pub const WORKER_ID_LEN: usize = 8;

/// The bytes of a connection ID that have to do with a worker's number: the masked number, and seven that the mask is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerField {
    number: usize,
    hashed: usize,
}

impl WorkerField {
    /// In random connection IDs: the first byte, and the seven after it.
    pub const FIRST: Self = Self {
        number: 0,
        hashed: 1,
    };

    /// In connection IDs of `len` bytes that begin with what a balancer reads: the last byte, and the seven before it.
    pub(crate) const fn last_of(len: usize) -> Self {
        Self {
            number: len - 1,
            hashed: len - WORKER_ID_LEN,
        }
    }

    /// The offset of the masked number in the connection ID.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The offset of the seven bytes, at least 1.
    pub fn hashed(&self) -> usize {
        self.hashed
    }

    fn hashed_bytes(&self, id: &[u8]) -> Option<[u8; WORKER_ID_LEN - 1]> {
        id.get(self.hashed..)?.first_chunk().copied()
    }
}

/// The key that hides the number of a worker in the connection IDs of its connections, so that nobody else can tell
/// which IDs are of one worker, and with that perhaps of one connection (RFC 9000, section 5.1).
///
/// The number is masked by HalfSipHash-1-3 of seven other bytes in reverse order. The hash consists of
/// additions, rotations and exclusive ors of 32 bits, so that a program of classic BPF can undo it in the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WorkerKey([u32; 2]);

impl WorkerKey {
    /// The key made of `secret`.
    pub fn new(secret: &[u8; 32]) -> Self {
        let hash = hmac_sha256(secret, b"worker numbers");
        let word =
            |at: usize| u32::from_le_bytes([hash[at], hash[at + 1], hash[at + 2], hash[at + 3]]);
        Self([word(0), word(4)])
    }

    /// Its words, for a program that reads worker numbers in the kernel.
    pub fn words(&self) -> [u32; 2] {
        self.0
    }

    /// The number that the connection ID `id` carries in `field` if a worker made it; any number if not. `None` if it is too
    /// short.
    pub fn worker(&self, id: &[u8], field: WorkerField) -> Option<u8> {
        let mask = self.mask(field.hashed_bytes(id)?);
        Some(id.get(field.number)? ^ mask)
    }

    /// Has the connection ID `id` carry the number `worker` in `field`.
    pub(crate) fn write(&self, id: &mut [u8], field: WorkerField, worker: u8) {
        if let Some(hashed) = field.hashed_bytes(id)
            && let Some(number) = id.get_mut(field.number)
        {
            *number = worker ^ self.mask(hashed);
        }
    }

    fn mask(&self, [a, b, c, d, e, f, g]: [u8; WORKER_ID_LEN - 1]) -> u8 {
        let first = u32::from_be_bytes([d, e, f, g]);
        let hash = self.hash([first, u32::from_be_bytes([7, a, b, c])]);
        hash.to_be_bytes()[3]
    }

    /// One of `workers` for `address`, which nobody without the key can choose.
    pub(crate) fn select(&self, address: Ipv6Addr, workers: u8) -> u8 {
        let [a, b, c, d, e, f, g, h] = address.segments().map(u32::from);
        let hash = self.hash([a << 16 | b, c << 16 | d, e << 16 | f, g << 16 | h, 16 << 24]);
        let scaled = u64::from(hash) * u64::from(workers);
        scaled.to_be_bytes()[3]
    }

    /// HalfSipHash-1-3 of a message in blocks of four bytes, in little-endian order; the last has its length.
    fn hash<const BLOCKS: usize>(&self, blocks: [u32; BLOCKS]) -> u32 {
        let [low, high] = self.0;
        let mut state = [low, high, 0x6c79_6765 ^ low, 0x7465_6462 ^ high];
        for block in blocks {
            state[3] ^= block;
            round(&mut state);
            state[0] ^= block;
        }
        state[2] ^= 0xff;
        for _ in 0..3 {
            round(&mut state);
        }
        state[1] ^ state[3]
    }
}

/// A round of HalfSipHash.
fn round([a, b, c, d]: &mut [u32; 4]) {
    *a = a.wrapping_add(*b);
    *b = b.rotate_left(5) ^ *a;
    *a = a.rotate_left(16);
    *c = c.wrapping_add(*d);
    *d = d.rotate_left(8) ^ *c;
    *a = a.wrapping_add(*d);
    *d = d.rotate_left(7) ^ *a;
    *c = c.wrapping_add(*b);
    *b = b.rotate_left(13) ^ *c;
    *c = c.rotate_left(16);
}

impl fmt::Debug for WorkerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkerKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_halfsiphash_1_3() {
        // The key and the message of the kernel's self-test of hsiphash on machines of 32 bits.
        let key = WorkerKey([0x0302_0100, 0x0706_0504]);
        assert_eq!(key.hash([0x0302_0100, 0x0706_0504]), 0x9d38_d9d6);
    }

    #[test]
    fn a_connection_id_carries_the_number_for_the_key_alone() {
        let key = WorkerKey::new(&[1; 32]);
        let other = WorkerKey::new(&[2; 32]);
        let mut read_by_other = [false; 256];
        for number in 0..=u8::MAX {
            let mut id = [number.wrapping_mul(31); 12];
            id[5] = number;
            let before = id;
            key.write(&mut id, WorkerField::FIRST, 3);
            assert_eq!(key.worker(&id, WorkerField::FIRST), Some(3));
            assert_eq!(id[1..], before[1..]);
            read_by_other[usize::from(other.worker(&id, WorkerField::FIRST).unwrap())] = true;
        }
        let distinct = read_by_other.iter().filter(|read| **read).count();
        assert!(distinct > 100, "{distinct}");
        assert_eq!(key.worker(&[0; 7], WorkerField::FIRST), None);
    }
}
