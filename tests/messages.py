"""Whole messages of errors: what a user reads is compared from the first letter to the last."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


def whole(error: BaseException | str) -> str:
    """The text of an error, with ``N`` for line numbers of sources and for measured differences."""
    text = re.sub(r"(\w\.py):\d+", r"\1:N", str(error))
    return re.sub(r"(that differ by) \S+", r"\1 N", text)


@contextmanager
def refuses(kind: type[BaseException], text: str) -> Iterator[pytest.ExceptionInfo]:
    """The statements inside raise ``kind``, whose :func:`whole` message is ``text``."""
    with pytest.raises(kind) as error:
        yield error
    assert whole(error.value) == text
