"""Runtime objects: one Python face for simulators and boards."""

from .base import BaseRuntime
from .board import Runtime
from .csim import RuntimeCSim

__all__ = ["BaseRuntime", "Runtime", "RuntimeCSim"]
