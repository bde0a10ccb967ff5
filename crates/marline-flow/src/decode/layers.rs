//! The layers around a packet of IP: VLANs, and decoded tunnels.

use super::FragmentKey;
use crate::limits::MAX_LAYERS;

/// A kind of tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TunnelKind {
    /// IPv4 in IPv4 (RFC 2003).
    V4InV4,
    /// IPv6 in IPv4 (RFC 4213).
    V6InV4,
    /// IPv4 in IPv6 (RFC 2473).
    V4InV6,
    /// IPv6 in IPv6 (RFC 2473).
    V6InV6,
    /// GRE (RFC 2784, RFC 2890, and that of PPTP, RFC 2637).
    Gre,
    /// ERSPAN: frames that a switch mirrors, in GRE.
    Erspan,
    /// EtherIP (RFC 3378).
    EtherIp,
    /// GTP version 1, user plane (3GPP TS 29.281).
    GtpU,
    /// VXLAN (RFC 7348).
    Vxlan,
    /// Geneve (RFC 8926).
    Geneve,
    /// Data of CAPWAP (RFC 5415).
    Capwap,
    /// L2TP version 2 (RFC 2661).
    L2tp,
    /// MPLS (RFC 3032).
    Mpls,
    /// PPPoE (RFC 2516).
    Pppoe,
    /// Teredo (RFC 4380).
    Teredo,
    /// AYIYA (draft-massar-v6ops-ayiya-02).
    Ayiya,
    /// NSH (RFC 8300).
    Nsh,
}

impl TunnelKind {
    /// Its name in records.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::V4InV4 => "ipip",
            Self::V6InV4 => "6in4",
            Self::V4InV6 => "4in6",
            Self::V6InV6 => "6in6",
            Self::Gre => "gre",
            Self::Erspan => "erspan",
            Self::EtherIp => "etherip",
            Self::GtpU => "gtpu",
            Self::Vxlan => "vxlan",
            Self::Geneve => "geneve",
            Self::Capwap => "capwap",
            Self::L2tp => "l2tp",
            Self::Mpls => "mpls",
            Self::Pppoe => "pppoe",
            Self::Teredo => "teredo",
            Self::Ayiya => "ayiya",
            Self::Nsh => "nsh",
        }
    }

    /// Whether each end chooses the identifier of the packets it receives, so that the directions have different
    /// ones.
    const fn has_one_way_ids(self) -> bool {
        matches!(
            self,
            Self::GtpU | Self::Gre | Self::L2tp | Self::Mpls | Self::Nsh
        )
    }
}

/// A tunnel around a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tunnel {
    pub(crate) kind: TunnelKind,
    /// The TEID, VNI, key, session or label.
    pub(crate) id: Option<u32>,
    /// The addresses of the packet of IP that carries it, source first; `None` on links.
    pub(crate) ends: Option<[u128; 2]>,
}

/// A layer around a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Layer {
    /// A VLAN (IEEE 802.1Q).
    Vlan(u16),
    /// A tunnel.
    Tunnel(Tunnel),
}

/// The layers around a packet, outermost first.
#[derive(Clone, Debug)]
pub(crate) struct Layers {
    layers: [Layer; MAX_LAYERS],
    len: usize,
    /// The fragmented packet whose first fragment has the tunnel.
    fragment: Option<FragmentKey>,
}

impl Default for Layers {
    fn default() -> Self {
        Self {
            layers: [Layer::Vlan(0); MAX_LAYERS],
            len: 0,
            fragment: None,
        }
    }
}

impl Layers {
    /// Clears all, for the next packet.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.fragment = None;
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn get(&self) -> &[Layer] {
        &self.layers[..self.len]
    }

    /// The fragmented packet that carries the innermost of its tunnels.
    #[inline(always)]
    pub(crate) fn fragment(&self) -> Option<&FragmentKey> {
        self.fragment.as_ref()
    }

    pub(super) fn set_fragment(&mut self, key: Option<FragmentKey>) {
        self.fragment = key.or(self.fragment);
    }

    /// Adds an inner layer. Returns whether there was room.
    #[must_use]
    pub(super) fn push(&mut self, layer: Layer) -> bool {
        let Some(slot) = self.layers.get_mut(self.len) else {
            return false;
        };
        *slot = layer;
        self.len += 1;
        true
    }

    /// Removes the layers behind the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// The part common to both directions: the ends of tunnels in order, without identifiers that differ.
    pub(crate) fn both_ways(&self) -> Self {
        let mut both = self.clone();
        for layer in &mut both.layers[..self.len] {
            if let Layer::Tunnel(tunnel) = layer {
                if let Some(ends) = &mut tunnel.ends {
                    ends.sort_unstable();
                }
                if tunnel.kind.has_one_way_ids() {
                    tunnel.id = None;
                }
            }
        }
        both
    }

    /// Whether the source of the outermost tunnel over IP is its second end in order.
    #[inline(always)]
    pub(crate) fn is_reversed(&self) -> bool {
        self.len > 0 && outer_ends(self.get()).is_some_and(|[from, to]| from > to)
    }

    /// Whether an identifier may differ in the other direction.
    pub(crate) fn has_one_way_ids(&self) -> bool {
        self.get().iter().any(|layer| {
            matches!(layer, Layer::Tunnel(tunnel) if tunnel.id.is_some() && tunnel.kind.has_one_way_ids())
        })
    }
}

/// The ends of the outermost tunnel over IP.
pub(crate) fn outer_ends(layers: &[Layer]) -> Option<[u128; 2]> {
    layers.iter().find_map(|layer| match layer {
        Layer::Tunnel(tunnel) => tunnel.ends,
        Layer::Vlan(_) => None,
    })
}
