"""The packets of a transfer, and the features that describe it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from marline.arrays import Numbers
from marline.transfers.dispersion import Dispersion


class Phase(StrEnum):
    """The phase of a sender."""

    SLOW_START = "slow_start"
    """The window doubles in a round trip."""
    CONGESTION_AVOIDANCE = "congestion_avoidance"
    """The window grows slowly, or probes."""
    APP_LIMITED = "app_limited"
    """The application has less to send than the window allows."""
    RECOVERY = "recovery"
    """Lost data is sent again, and the window does not grow."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A packet passes an end."""

    number: int
    """The number of the packet."""
    at_us: float
    """When, in microseconds."""


@dataclass(frozen=True, slots=True)
class PhaseSince:
    """A phase, and when it began."""

    phase: Phase
    at_us: float


@dataclass(frozen=True, slots=True)
class Trace:
    """The data packets of a transfer, and the state of its sender. Times are in microseconds since the same moment."""

    sent: Sequence[Passage]
    """Packets in the order in which they were sent; their numbers differ."""
    received: Sequence[Passage]
    """Packets that arrived, in the order of their arrival."""
    acks: int
    """Acknowledgments that the receiver sent."""
    windows_bytes: Sequence[float]
    """The congestion window at each acknowledgment."""
    phases: Sequence[PhaseSince]
    """Phases of the sender, in their order."""
    end_us: float
    """The end of the transfer."""

    def features(self, window: int = 1) -> dict[str, float | None]:
        """The 17 features by name; None where one is undefined.

        Burstiness is that of sums of ``window`` intervals; variances are those of a population.
        """
        server, client = _intervals(self.sent), _intervals(self.received)
        delays, windows = self._delays(), np.asarray(self.windows_bytes, dtype=np.float64)
        burstiness = Dispersion(window)
        sent = len(self.sent)

        def of_sent(count: int) -> float | None:
            return count / sent if sent else None

        return {
            "server_mean_ipt_us": _mean(server),
            "client_mean_ipt_us": _mean(client),
            "server_var_ipt": _variance(server),
            "client_var_ipt": _variance(client),
            "server_burstiness": burstiness.of(server),
            "client_burstiness": burstiness.of(client),
            "mean_delay_us": _mean(delays),
            "var_delay": _variance(delays),
            "loss_probability": of_sent(sent - delays.size),
            "out_of_order_probability": of_sent(self._out_of_order()),
            "ack_freq": of_sent(self.acks),
            "mean_cwnd_bytes": _mean(windows),
            "var_cwnd": _variance(windows),
            **{f"{phase}_freq_percent": self._percent(phase) for phase in Phase},
        }

    def _delays(self) -> Numbers:
        """One-way delays of the packets that arrived."""
        sent = {packet.number: packet.at_us for packet in self.sent}
        arrived = (packet for packet in self.received if packet.number in sent)
        return np.array([packet.at_us - sent[packet.number] for packet in arrived])

    def _out_of_order(self) -> int:
        """Packets that arrived after one with a higher number."""
        numbers = np.array([packet.number for packet in self.received], dtype=np.int64)
        return int((numbers < np.maximum.accumulate(numbers)).sum()) if numbers.size else 0

    def _percent(self, phase: Phase) -> float | None:
        """The percentage of the time in a phase."""
        if not self.phases or self.end_us <= self.phases[0].at_us:
            return None
        begins = [since.at_us for since in self.phases]
        spans = np.diff([*begins, self.end_us])
        inside = np.array([since.phase is phase for since in self.phases])
        return 100.0 * float(spans[inside].sum()) / (self.end_us - begins[0])


def _intervals(packets: Sequence[Passage]) -> Numbers:
    return np.diff(np.array([packet.at_us for packet in packets], dtype=np.float64))


def _mean(values: Numbers) -> float | None:
    return float(values.mean()) if values.size else None


def _variance(values: Numbers) -> float | None:
    return float(values.var()) if values.size else None
