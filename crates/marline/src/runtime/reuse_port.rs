//! Sockets of several workers at one address (`SO_REUSEPORT`), and the program by which the kernel selects one.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use marline_proto::{WorkerField, WorkerKey};
use nix::libc;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::AttachReusePortCbpf;
use socket2::{Domain, SockRef, Socket, Type};

/// Binds `count` sockets to `addr`, at least one. Port 0 selects a free one for all.
///
/// The kernel selects one of them for each datagram by the hash of its addresses, until it is [steered](steer). The order
/// of the sockets is that of the workers' numbers, as long as none is closed: the last one takes the place of one that is.
///
/// # Errors
/// The system's error. The address is in use even if the other program shares it, so that two servers that were started by
/// mistake do not divide the clients among them.
pub fn bind(addr: SocketAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
    let mut sockets = vec![UdpSocket::bind(addr)?];
    if count > 1 {
        share(&mut sockets, count)?;
    }
    Ok(sockets)
}

/// Binds further sockets to the address of the first of `sockets`, so that there are `count`.
///
/// # Errors
/// The system's error: of the user that bound the first one, and nobody else, may others share its address.
pub fn share(sockets: &mut Vec<UdpSocket>, count: usize) -> io::Result<()> {
    let Some(first) = sockets.first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let addr = first.local_addr()?;
    let options = SockRef::from(first);
    // Only now, for a socket that may share an address when it is bound does not find out that it is in use.
    options.set_reuse_port(true)?;
    let only_v6 = addr.is_ipv6() && options.only_v6()?;
    while sockets.len() < count {
        let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, None)?;
        if addr.is_ipv6() {
            socket.set_only_v6(only_v6)?;
        }
        socket.set_reuse_port(true)?;
        socket.bind(&addr.into())?;
        sockets.push(socket.into());
    }
    Ok(())
}

/// Has the kernel deliver the datagrams of a connection at the socket of its worker, where `socket` is any of the
/// sockets of `workers`, whose connection IDs carry a number in `field` under `key`. Datagrams whose destination a client chose, as the first ones
/// of a connection, are still distributed by the hash of their addresses.
///
/// # Errors
/// The system's error: not every kernel and not every sandbox allows this.
pub fn steer(
    socket: &UdpSocket,
    key: &WorkerKey,
    field: WorkerField,
    workers: u8,
) -> io::Result<()> {
    let mut program = Program::of(key, field, workers).0;
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(io::Error::other)?,
        filter: program.as_mut_ptr(),
    };
    Ok(setsockopt(socket, AttachReusePortCbpf, &program)?)
}

/// A number that no socket has: the kernel then selects one by the hash of the addresses.
const ANY: u32 = u32::MAX;

/// A program of classic BPF. Its input is the UDP payload, and its result the number of a socket.
///
/// It has an accumulator, an index register, and a memory of 16 words, and does by instructions on them what
/// [`WorkerKey::worker`] does.
struct Program(Vec<libc::sock_filter>);

/// Words of the memory: the state of the hash, and an intermediate result.
const STATE: [u32; 4] = [0, 1, 2, 3];
const TEMPORARY: u32 = 4;

impl Program {
    fn of(key: &WorkerKey, field: WorkerField, workers: u8) -> Self {
        // The connection ID begins with the second byte, and connection IDs are short.
        let hashed = field.hashed() as u32;
        let number = 1 + field.number() as u32;
        let mut program = Self(Vec::new());
        // Long headers have the destination that the client chose at first.
        program.load_bytes(libc::BPF_B, 0);
        program.push(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0x80);
        program.skip_one_if_equal(0);
        program.push(libc::BPF_RET | libc::BPF_K, ANY);
        let [low, high] = key.words();
        for (word, value) in
            STATE
                .into_iter()
                .zip([low, high, 0x6c79_6765 ^ low, 0x7465_6462 ^ high])
        {
            program.push(libc::BPF_LD | libc::BPF_IMM, value);
            program.push(libc::BPF_ST, word);
        }
        // The last four of the seven bytes, then the first three with the length of both.
        program.block(hashed + 4, |_| {});
        program.block(hashed, |program| {
            program.push(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0x00ff_ffff);
            program.push(libc::BPF_ALU | libc::BPF_OR | libc::BPF_K, 7 << 24);
        });
        let [_, b, c, d] = STATE;
        program.push(libc::BPF_LD | libc::BPF_MEM, c);
        program.push(libc::BPF_ALU | libc::BPF_XOR | libc::BPF_K, 0xff);
        program.push(libc::BPF_ST, c);
        for _ in 0..3 {
            program.round();
        }
        program.xor(b, d);
        program.load_bytes(libc::BPF_B, number);
        program.push(libc::BPF_LDX | libc::BPF_MEM, b);
        program.push(libc::BPF_ALU | libc::BPF_XOR | libc::BPF_X, 0);
        program.push(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0xff);
        program.skip_one_if_less(workers.into());
        program.push(libc::BPF_LD | libc::BPF_IMM, ANY);
        program.push(libc::BPF_RET | libc::BPF_A, 0);
        program
    }

    fn push(&mut self, code: u32, k: u32) {
        self.push_jump(code, k, 0, 0);
    }

    fn push_jump(&mut self, code: u32, k: u32, jt: u8, jf: u8) {
        // Codes have 16 bits.
        let code = code as u16;
        self.0.push(libc::sock_filter { code, jt, jf, k });
    }

    /// Loads bytes of the payload into the accumulator, in network byte order.
    fn load_bytes(&mut self, size: u32, at: u32) {
        self.push(libc::BPF_LD | size | libc::BPF_ABS, at);
    }

    /// Skips the next instruction if the accumulator has `value`.
    fn skip_one_if_equal(&mut self, value: u32) {
        self.push_jump(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value, 1, 0);
    }

    /// Skips the next instruction if the accumulator has less than `value`.
    fn skip_one_if_less(&mut self, value: u32) {
        self.push_jump(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, value, 0, 1);
    }

    /// A block of the hash: the word `at` of the payload, after what `change` does with it in the accumulator.
    fn block(&mut self, at: u32, change: impl Fn(&mut Self)) {
        let [a, _, _, d] = STATE;
        for (word, rounds) in [(d, 1), (a, 0)] {
            self.load_bytes(libc::BPF_W, at);
            change(self);
            self.push(libc::BPF_LDX | libc::BPF_MEM, word);
            self.push(libc::BPF_ALU | libc::BPF_XOR | libc::BPF_X, 0);
            self.push(libc::BPF_ST, word);
            for _ in 0..rounds {
                self.round();
            }
        }
    }

    /// A round of HalfSipHash.
    fn round(&mut self) {
        let [a, b, c, d] = STATE;
        self.add(a, b);
        self.rotate(b, 5);
        self.xor(b, a);
        self.rotate(a, 16);
        self.add(c, d);
        self.rotate(d, 8);
        self.xor(d, c);
        self.add(a, d);
        self.rotate(d, 7);
        self.xor(d, a);
        self.add(c, b);
        self.rotate(b, 13);
        self.xor(b, c);
        self.rotate(c, 16);
    }

    /// Adds the word `other` to the word `word`.
    fn add(&mut self, word: u32, other: u32) {
        self.combine(libc::BPF_ADD, word, other);
    }

    fn xor(&mut self, word: u32, other: u32) {
        self.combine(libc::BPF_XOR, word, other);
    }

    fn combine(&mut self, operation: u32, word: u32, other: u32) {
        self.push(libc::BPF_LDX | libc::BPF_MEM, other);
        self.push(libc::BPF_LD | libc::BPF_MEM, word);
        self.push(libc::BPF_ALU | operation | libc::BPF_X, 0);
        self.push(libc::BPF_ST, word);
    }

    fn rotate(&mut self, word: u32, bits: u32) {
        self.push(libc::BPF_LD | libc::BPF_MEM, word);
        self.push(libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K, 32 - bits);
        self.push(libc::BPF_ST, TEMPORARY);
        self.push(libc::BPF_LD | libc::BPF_MEM, word);
        self.push(libc::BPF_ALU | libc::BPF_LSH | libc::BPF_K, bits);
        self.push(libc::BPF_LDX | libc::BPF_MEM, TEMPORARY);
        self.push(libc::BPF_ALU | libc::BPF_OR | libc::BPF_X, 0);
        self.push(libc::BPF_ST, word);
    }
}

#[cfg(test)]
mod tests;
