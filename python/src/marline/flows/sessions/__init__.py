"""Parallel connections: sessions of flows, and how their flows overlap (thesis of J. Manzoor, 2019, chapter 4)."""

from marline.flows.sessions.engines import sessions
from marline.flows.sessions.options import Options
from marline.flows.sessions.scan import Flows, Sessions, scan, session_of
from marline.flows.sessions.summary import Summary, summarise

__all__ = ["Flows", "Options", "Sessions", "Summary", "scan", "session_of", "sessions", "summarise"]
