//! Splitting one initial window among the members (section IV-A: each connection starts with IW / N).

/// The parts of an initial window of `packets` for each of `members`, in packets: at least one each. They
/// differ by one packet at most, the larger ones first.
pub fn split_initial_window(packets: u64, members: u64) -> impl Iterator<Item = u64> {
    let members = members.max(1);
    let (share, rest) = (packets / members, packets % members);
    (0..members).map(move |part| (share + u64::from(part < rest)).max(1))
}
