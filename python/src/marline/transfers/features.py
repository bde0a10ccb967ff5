"""The features of a transfer: their columns in a table, and their names and units for readers."""

from dataclasses import dataclass

GOODPUT = "goodput_mbps"
"""The column of the throughput: bits of payload over the time without the handshake, in Mbit/s."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of a transfer."""

    column: str
    """Its column in a table."""
    label: str
    """Its name for readers."""
    unit: str = ""
    """The unit that readers see."""
    scale: float = 1.0
    """The divisor of a value of the column for this unit."""
    restates_throughput: bool = False
    """Whether it is the throughput in another unit: packets of one size, over their mean inter-packet time."""

    def show(self, value: float) -> str:
        """A value with its unit, in three digits."""
        scaled = value / self.scale
        digits = f"{scaled:.3g}" if abs(scaled) < 1000 else f"{scaled:,.0f}".replace(",", "\N{THIN SPACE}")
        return f"{digits} {self.unit}".rstrip()


def _microseconds(column: str, label: str, *, restates_throughput: bool = False) -> Feature:
    return Feature(column, label, "µs", restates_throughput=restates_throughput)


def _percentage(column: str, label: str) -> Feature:
    return Feature(column, label, "%")


FEATURES: tuple[Feature, ...] = (
    _microseconds("server_mean_ipt_us", "server mean inter-packet time", restates_throughput=True),
    _microseconds("client_mean_ipt_us", "client mean inter-packet time", restates_throughput=True),
    Feature("server_var_ipt", "server inter-packet time variance", "ms²", 1e6),
    Feature("client_var_ipt", "client inter-packet time variance", "ms²", 1e6),
    Feature("server_burstiness", "server burstiness"),
    Feature("client_burstiness", "client burstiness"),
    Feature("mean_delay_us", "mean delay", "ms", 1e3),
    Feature("var_delay", "delay variance", "ms²", 1e6),
    Feature("loss_probability", "packet loss", "%", 0.01),
    Feature("out_of_order_probability", "out of order", "%", 0.01),
    Feature("ack_freq", "ACK frequency"),
    Feature("mean_cwnd_bytes", "mean cwnd", "kB", 1e3),
    Feature("var_cwnd", "cwnd variance", "kB²", 1e6),
    _percentage("slow_start_freq_percent", "time in slow start"),
    _percentage("congestion_avoidance_freq_percent", "time in congestion avoidance"),
    _percentage("app_limited_freq_percent", "time application limited"),
    _percentage("recovery_freq_percent", "time in recovery"),
)
"""The 17 features of the study (section 6.2.1), in its order."""

_BY_COLUMN = {feature.column: feature for feature in FEATURES}


def feature(column: str) -> Feature:
    """The feature of a column; a column that is not one of the study's is shown as it is."""
    return _BY_COLUMN.get(column, Feature(column, column.replace("_", " ")))
