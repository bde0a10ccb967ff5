//! The type of a packet's first bytes.

use std::fmt;

/// The link layers of packets (numbers of <https://www.tcpdump.org/linktypes.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// Ethernet, with or without VLAN tags.
    Ethernet,
    /// IP without anything before it.
    Raw,
    /// Four bytes with the address family of BSD, in the byte order of the machine or of the network.
    Loopback,
    /// The pseudo-header of Linux for several links, version 1.
    CookedV1,
    /// Its version 2.
    CookedV2,
    /// PPP, with or without the framing of HDLC, or Cisco's.
    Ppp,
    /// PPP after a byte that states the direction.
    PppWithDirection,
    /// PPP after two bytes of pppd, the first of which states the direction.
    PppPppd,
    /// PPP after a header of a PPPoE session.
    PppEther,
    /// HDLC of Cisco.
    CiscoHdlc,
    /// IEEE 802.11.
    Wifi,
    /// IEEE 802.11 after a header of Radiotap.
    Radiotap,
    /// Another link type after a header of Per-Packet Information, mostly IEEE 802.11.
    Ppi,
    /// IEEE 802.11 after a header of Prism drivers, or of AVS.
    Prism,
    /// IEEE 802.11 after a header of AVS.
    Avs,
    /// A message of Linux's netfilter log.
    Nflog,
    /// IP after a header of OpenBSD's packet filter.
    Pflog,
    /// IP after a header of Solaris.
    Ipnet,
    /// Another link type after a header of macOS.
    Pktap,
    /// A frame of 802.2 that ATM carried (RFC 2684).
    Atm,
    /// An unsupported one, by its number.
    Other(u32),
}

impl LinkType {
    /// The link type with a number.
    pub const fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Ethernet,
            // 12 and 14 are what some systems wrote for 101; 228 is IPv4 only, 229 IPv6 only.
            12 | 14 | 101 | 228 | 229 => Self::Raw,
            0 | 108 => Self::Loopback,
            113 => Self::CookedV1,
            276 => Self::CookedV2,
            9 | 50 => Self::Ppp,
            204 => Self::PppWithDirection,
            166 => Self::PppPppd,
            51 => Self::PppEther,
            104 => Self::CiscoHdlc,
            105 => Self::Wifi,
            127 => Self::Radiotap,
            192 => Self::Ppi,
            119 => Self::Prism,
            163 => Self::Avs,
            239 => Self::Nflog,
            117 => Self::Pflog,
            226 => Self::Ipnet,
            258 => Self::Pktap,
            // 11 is what some systems wrote for 100.
            11 | 100 => Self::Atm,
            number => Self::Other(number),
        }
    }
}

/// Names of unsupported link types, as in tcpdump.
const NAMES: [(u32, &str); 48] = [
    (3, "AX25"),
    (6, "IEEE802_5, Token Ring"),
    (7, "ARCNET_BSD"),
    (8, "SLIP"),
    (10, "FDDI"),
    (107, "FRELAY, Frame Relay"),
    (114, "LTALK"),
    (122, "IP_OVER_FC"),
    (123, "SUNATM"),
    (129, "ARCNET_LINUX"),
    (138, "APPLE_IP_OVER_IEEE1394"),
    (139, "MTP2_WITH_PHDR"),
    (143, "DOCSIS"),
    (144, "LINUX_IRDA"),
    (178, "JUNIPER_ETHER"),
    (186, "USB_FREEBSD"),
    (187, "BLUETOOTH_HCI_H4"),
    (189, "USB_LINUX"),
    (190, "CAN20B"),
    (191, "IEEE802_15_4_LINUX"),
    (195, "IEEE802_15_4_WITHFCS"),
    (197, "ERF"),
    (201, "BLUETOOTH_HCI_H4_WITH_PHDR"),
    (203, "LAPD"),
    (209, "IPMB_LINUX"),
    (215, "IEEE802_15_4_NONASK_PHY"),
    (220, "USB_LINUX_MMAPPED"),
    (224, "FC_2"),
    (227, "CAN_SOCKETCAN"),
    (230, "IEEE802_15_4_NOFCS"),
    (231, "DBUS"),
    (240, "NETANALYZER"),
    (242, "IPOIB"),
    (247, "INFINIBAND"),
    (248, "SCTP"),
    (249, "USBPCAP"),
    (251, "BLUETOOTH_LE_LL"),
    (252, "WIRESHARK_UPPER_PDU"),
    (253, "NETLINK"),
    (254, "BLUETOOTH_LINUX_MONITOR"),
    (255, "BLUETOOTH_BREDR_BB"),
    (256, "BLUETOOTH_LE_LL_WITH_PHDR"),
    (270, "LORATAP"),
    (272, "NORDIC_BLE"),
    (273, "DOCSIS31_XRA31"),
    (274, "ETHERNET_MPACKET"),
    (279, "ETW"),
    (283, "IEEE802_15_4_TAP"),
];

/// The number of an unsupported link type, with its name.
pub(super) struct Named(pub(super) u32);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number) = self;
        match NAMES.iter().find(|(named, _)| named == number) {
            Some((_, name)) => write!(f, "{number} ({name})"),
            None if (147..=162).contains(number) => {
                let user = number - 147;
                write!(
                    f,
                    "{number} (USER{user}, of which only its author knows what it is)"
                )
            }
            None => write!(f, "{number}"),
        }
    }
}
