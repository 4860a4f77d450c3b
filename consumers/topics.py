"""``python -m consumers.topics``: make the topics of the line where they are missing."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from pipeline.broker import DEFAULT_PARTITIONS, create_topics
from pipeline.errors import RetriableError
from pipeline.settings import settings_from

EXIT_RETRIABLE = 75
"""EX_TEMPFAIL of sysexits.h: the same call may succeed later."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the name of each topic that was made; exit status 75 where the brokers cannot be reached."""
    parser = argparse.ArgumentParser(prog="python -m consumers.topics", description=__doc__)
    parser.add_argument("--brokers", default=settings_from(os.environ).brokers, help="default: $LECTUREMILL_BROKERS")
    parser.add_argument("--partitions", type=int, default=DEFAULT_PARTITIONS, help="of each topic (default: 12)")
    parser.add_argument("--replication", type=int, default=1, help="copies of each partition (default: 1)")
    options = parser.parse_args(arguments)
    try:
        made = create_topics(options.brokers, options.partitions, options.replication)
    except RetriableError as error:
        print(error, file=sys.stderr)
        return EXIT_RETRIABLE
    for name in made:
        print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
