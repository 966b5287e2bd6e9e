"""How long the random searches run: some seconds, or as long as the environment says.

TFWIRE_SEARCH_SECONDS is the time of each search, TFWIRE_SEARCH_SEED its first seed. Other searches,
which count their seconds or cases themselves, begin with that seed too.
"""

import os
import random
import time
from collections.abc import Callable, Iterator

FIRST_SEED = int(os.environ.get("TFWIRE_SEARCH_SEED", "0"))


def cases(seed: str, seconds: float, least: int = 0) -> Iterator[tuple[str, random.Random]]:
    """The names of cases and their chance, for so many seconds, and at least so many."""
    end, number = time.monotonic() + seconds, 0
    while number < least or time.monotonic() < end:
        yield f"{seed}/{number}", random.Random(f"{seed}/{number}")
        number += 1


def search(case: Callable[[random.Random], None], seconds: float = 2.0, least: int = 1) -> None:
    """Runs a case with one seed after the other; a failure names its seed.

    Runs at least so many cases, however slow the machine is, and for at least so many seconds.
    """
    end = time.monotonic() + float(os.environ.get("TFWIRE_SEARCH_SECONDS", seconds))
    seed = FIRST_SEED
    while seed < FIRST_SEED + least or time.monotonic() < end:
        try:
            case(random.Random(seed))
        except Exception as error:
            error.add_note(f"TFWIRE_SEARCH_SEED={seed}") if hasattr(error, "add_note") else None
            print(f"TFWIRE_SEARCH_SEED={seed}")
            raise
        seed += 1
    print(f"{seed - FIRST_SEED} cases, seeds from {FIRST_SEED} on")
