"""``lecturemill doctor --engine``: this machine's engine, proven in every precision and batch size that it uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping

from pipeline.assembly import wanted_of
from pipeline.devices import BATCH_SLICES, batch_bound, choose_device
from pipeline.doctor import Finding
from pipeline.errors import OutOfMemoryError, UsageError
from pipeline.models import find_model
from pipeline.proof.report import prove
from pipeline.settings import Settings


def examine_engine(
    settings: Settings, asked: str, environment: MutableMapping[str, str], say: Callable[[str], None]
) -> Iterator[Finding]:
    """All findings about the engine on the device that was ``asked`` for; ``say`` is told what takes a while."""
    try:
        device = choose_device(asked, settings.engine, settings.precision, environment)
        most_slices = batch_bound(environment.get(BATCH_SLICES), device)
        wanted = wanted_of(find_model(settings.model, settings.models), device, settings)
        for one in prove(wanted, most_slices, settings.home, say):
            yield Finding(one.what, one.holds, one.said, one.remedy)
    except UsageError as error:
        yield Finding("proof", False, error.reason, "correct what is named; then run: lecturemill doctor --engine")
    except OutOfMemoryError as error:
        remedy = "end what else uses the device, or choose a smaller LECTUREMILL_MODEL"
        yield Finding("proof", False, error.reason, remedy)
