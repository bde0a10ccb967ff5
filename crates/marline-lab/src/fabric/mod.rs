//! Hosts, routers and links, joined to a network.
