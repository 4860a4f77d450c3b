"""What tasks need to slice media, and to know which are to be sliced."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from dags.common import only_warnings_of, opened_store

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from pipeline.publisher import Present, Publisher
    from pipeline.settings import Settings


@contextmanager
def opened_publisher(settings: Settings) -> Iterator[Publisher]:
    """The database, the broker and the detector, opened. Raises RetriableError where one of them is away."""
    from pipeline.assembly import find_detector
    from pipeline.broker import Sender
    from pipeline.decoding import find_ffmpeg
    from pipeline.publisher import Present, Publisher
    from pipeline.publishing import PublishingTools

    only_warnings_of("kafka")
    with ExitStack() as stack:
        store = stack.enter_context(opened_store(settings))
        sender = stack.enter_context(Sender.open(settings.brokers, "lecturemill-slice"))
        detector, fingerprint = find_detector("silero", settings, log.info)
        tools = PublishingTools(store, sender.send, detector, find_ffmpeg())
        yield Publisher(tools, Present(store, fingerprint, settings.model), log.info)


@contextmanager
def opened_present(settings: Settings) -> Iterator[Present]:
    """What media would be made under now; nothing can be published with it."""
    from pipeline.assembly import find_detector
    from pipeline.publisher import Present

    with opened_store(settings) as store:
        _, fingerprint = find_detector("silero", settings, log.info)
        yield Present(store, fingerprint, settings.model)
