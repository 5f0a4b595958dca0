"""The state of an embedded service."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """One service of one home, as it is at this moment."""

    name: str
    version: str | None
    """The version that this toolkit would start; ``None`` where it is not installed."""
    pid: int | None
    """The process that serves; ``None`` where none runs."""
    address: str | None
    """The socket folder or the endpoint, while it runs."""
    url: str | None
    """The address that a client connects to, while it runs; it holds no password."""
    data: Path
    data_bytes: int
    log: Path

    @property
    def running(self) -> bool:
        """Tell whether a process serves."""
        return self.pid is not None
