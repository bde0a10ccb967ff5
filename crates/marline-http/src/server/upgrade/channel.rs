//! The socket between the two processes of an upgrade. It keeps the limits of messages, and their order.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// File descriptors of one message. Linux allows 253.
pub(super) const MAX_DESCRIPTORS: usize = 64;

/// Bytes that may wait in each direction, as far as the system grants it: those of a socket of UDP.
const BUFFER: usize = 4 << 20;

/// One end.
#[derive(Debug)]
pub(super) struct Channel(AsyncFd<OwnedFd>);

impl Channel {
    /// The end of this process, and that of the other.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (own, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        // Smaller ones lose more in a burst.
        let _ = socket2::SockRef::from(&other).set_send_buffer_size(BUFFER);
        Ok((Self::of(own)?, other))
    }

    /// An end that another process has made.
    pub(super) fn of(end: OwnedFd) -> io::Result<Self> {
        #[expect(
            deprecated,
            reason = "sound for an `OwnedFd`; the constructor that replaces it is unsafe for any type"
        )]
        let end = AsyncFd::new(end)?;
        Ok(Self(end))
    }

    /// Sends a message.
    pub(super) async fn send(
        &self,
        message: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let sent = self.0.async_io(Interest::WRITABLE, |socket| {
            send(socket, &[IoSlice::new(message)], descriptors)
        });
        sent.await
    }

    /// Sends a message of several parts unless it would have to wait.
    pub(super) fn try_send(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        self.0
            .try_io(Interest::WRITABLE, |socket| send(socket, parts, &[]))
    }

    /// The next message, which is written to `buffer`; its descriptors are added to `descriptors`. Returns its length: 0 if the
    /// other end is closed. Safe to cancel.
    ///
    /// # Errors
    /// The system's error; a message is larger than `buffer`, or has more than [`MAX_DESCRIPTORS`].
    pub(super) async fn receive(
        &self,
        buffer: &mut [u8],
        descriptors: &mut Vec<OwnedFd>,
    ) -> io::Result<usize> {
        let received = self.0.async_io(Interest::READABLE, |socket| {
            receive(socket, buffer, descriptors)
        });
        received.await
    }
}

fn send(socket: &OwnedFd, parts: &[IoSlice<'_>], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // Whoever made the socket: a call that waits would stop the thread of the server.
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, parts, &mut control, flags)?;
    Ok(())
}

fn receive(
    socket: &OwnedFd,
    buffer: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let parts = &mut [IoSliceMut::new(buffer)];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = match recvmsg(socket, parts, &mut control, flags) {
        Ok(received) => received,
        // The other process ended while messages were under way to it.
        Err(rustix::io::Errno::CONNRESET) => return Ok(0),
        Err(error) => return Err(error.into()),
    };
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    if received
        .flags
        .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC)
    {
        let problem = "a message of the other process is too large";
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;

    use super::*;

    #[tokio::test]
    async fn messages_keep_their_limits_and_their_descriptors() {
        let (one, other) = Channel::pair().unwrap();
        let other = Channel::of(other).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"content").unwrap();
        one.send(b"first", &[file.as_fd(); MAX_DESCRIPTORS])
            .await
            .unwrap();
        let parts = [IoSlice::new(b"sec"), IoSlice::new(b"ond")];
        one.try_send(&parts).unwrap();
        drop(one);
        let (mut buffer, mut passed) = ([0; 100], Vec::new());
        let mut next = async || other.receive(&mut buffer, &mut passed).await.unwrap();
        assert_eq!(next().await, 5);
        assert_eq!(next().await, 6);
        assert_eq!(next().await, 0, "it is closed");
        assert_eq!(&buffer[..6], b"second");
        assert_eq!(passed.len(), MAX_DESCRIPTORS);
        let mut copy = std::fs::File::from(passed.pop().unwrap());
        let mut content = String::new();
        copy.rewind().unwrap();
        copy.read_to_string(&mut content).unwrap();
        assert_eq!(content, "content");
    }

    #[tokio::test]
    async fn an_end_that_may_wait_does_not_stop_the_thread() {
        let (one, other) = Channel::pair().unwrap();
        rustix::io::ioctl_fionbio(&other, false).unwrap();
        let other = Channel::of(other).unwrap();
        let (mut buffer, mut passed) = ([0; 100], Vec::new());
        let (received, sent) = tokio::join!(
            other.receive(&mut buffer, &mut passed),
            one.send(b"late", &[])
        );
        sent.unwrap();
        assert_eq!(received.unwrap(), 4);
    }

    #[tokio::test]
    async fn a_message_that_would_have_to_wait_is_refused() {
        let (one, other) = Channel::pair().unwrap();
        let other = Channel::of(other).unwrap();
        let large = vec![0; 1 << 16];
        other.send(&large, &[]).await.unwrap();
        let mut sent = 0;
        while other.try_send(&[IoSlice::new(&large)]).is_ok() {
            sent += large.len();
        }
        assert!(sent > 0 && sent < 4 * BUFFER, "{sent}");
        let mut small = [0; 100];
        let received = one.receive(&mut small, &mut Vec::new()).await;
        assert_eq!(received.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
