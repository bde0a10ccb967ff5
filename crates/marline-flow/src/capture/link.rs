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
const NAMES: [(u32, &str); 100] = [
    (3, "AX25"),
    (6, "IEEE802_5, Token Ring"),
    (7, "ARCNET_BSD"),
    (8, "SLIP"),
    (10, "FDDI"),
    (106, "ATM_CLIP"),
    (107, "FRELAY, Frame Relay"),
    (109, "ENC"),
    (114, "LTALK"),
    (122, "IP_OVER_FC"),
    (123, "SUNATM"),
    (129, "ARCNET_LINUX"),
    (138, "APPLE_IP_OVER_IEEE1394"),
    (139, "MTP2_WITH_PHDR"),
    (140, "MTP2"),
    (141, "MTP3"),
    (142, "SCCP"),
    (143, "DOCSIS"),
    (144, "LINUX_IRDA"),
    (165, "BACNET_MS_TP"),
    (169, "GPRS_LLC"),
    (170, "GPF_T"),
    (171, "GPF_F"),
    (177, "LINUX_LAPD"),
    (178, "JUNIPER_ETHER"),
    (182, "MFR"),
    (186, "USB_FREEBSD"),
    (187, "BLUETOOTH_HCI_H4"),
    (188, "IEEE802_16_MAC_CPS"),
    (189, "USB_LINUX"),
    (190, "CAN20B"),
    (191, "IEEE802_15_4_LINUX"),
    (193, "IEEE802_16_MAC_CPS_RADIO"),
    (195, "IEEE802_15_4_WITHFCS"),
    (196, "SITA"),
    (197, "ERF"),
    (199, "IPMB_KONTRON"),
    (201, "BLUETOOTH_HCI_H4_WITH_PHDR"),
    (202, "AX25_KISS"),
    (203, "LAPD"),
    (205, "C_HDLC_WITH_DIR"),
    (206, "FRELAY_WITH_DIR"),
    (207, "LAPB_WITH_DIR"),
    (209, "IPMB_LINUX"),
    (210, "FLEXRAY"),
    (211, "MOST"),
    (212, "LIN"),
    (213, "X2E_SERIAL"),
    (214, "X2E_XORAYA"),
    (215, "IEEE802_15_4_NONASK_PHY"),
    (216, "LINUX_EVDEV"),
    (217, "GSMTAP_UM"),
    (218, "GSMTAP_ABIS"),
    (219, "MPLS"),
    (220, "USB_LINUX_MMAPPED"),
    (221, "DECT"),
    (222, "AOS"),
    (223, "WIHART"),
    (224, "FC_2"),
    (225, "FC_2_WITH_FRAME_DELIMS"),
    (227, "CAN_SOCKETCAN"),
    (230, "IEEE802_15_4_NOFCS"),
    (231, "DBUS"),
    (235, "DVB_CI"),
    (236, "MUX27010"),
    (237, "STANAG_5066_D_PDU"),
    (240, "NETANALYZER"),
    (241, "NETANALYZER_TRANSPARENT"),
    (242, "IPOIB"),
    (243, "MPEG_2_TS"),
    (244, "NG40"),
    (245, "NFC_LLCP"),
    (247, "INFINIBAND"),
    (248, "SCTP"),
    (249, "USBPCAP"),
    (250, "RTAC_SERIAL"),
    (251, "BLUETOOTH_LE_LL"),
    (252, "WIRESHARK_UPPER_PDU"),
    (253, "NETLINK"),
    (254, "BLUETOOTH_LINUX_MONITOR"),
    (255, "BLUETOOTH_BREDR_BB"),
    (256, "BLUETOOTH_LE_LL_WITH_PHDR"),
    (257, "PROFIBUS_DL"),
    (259, "EPON"),
    (260, "IPMI_HPM_2"),
    (261, "ZWAVE_R1_R2"),
    (262, "ZWAVE_R3"),
    (263, "WATTSTOPPER_DLM"),
    (264, "ISO_14443"),
    (265, "RDS"),
    (266, "USB_DARWIN"),
    (268, "SDLC"),
    (270, "LORATAP"),
    (271, "VSOCK"),
    (272, "NORDIC_BLE"),
    (273, "DOCSIS31_XRA31"),
    (274, "ETHERNET_MPACKET"),
    (275, "DISPLAYPORT_AUX"),
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
