"""Have the images of a run: built or pulled a few at a time, and for those that cannot be had the reason why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait

from boxeval.errors import ImageError
from boxeval.sandbox.engine import Engine
from boxeval.sandbox.images import ImageInfo, ensure
from boxeval.sandbox.rootfs import stop_bootstrap
from boxeval.spec.plan import PlannedImage

BUILDS_AT_ONCE = 4
STOP_S = 5.0
"""For builds to end after an interrupt; what they left unfinished is a draft that `images prune` removes."""


def have_images(
    engine: Engine, names: Iterable[str], note: Callable[[str], None]
) -> tuple[dict[str, ImageInfo], dict[str, str]]:
    """Images by name, and for each of the others what keeps it from being had."""

    def have(name: str) -> ImageInfo | str:
        try:
            return ensure(engine, name, note=note)
        except ImageError as error:
            return str(error)

    wanted = sorted(names)
    pool = ThreadPoolExecutor(BUILDS_AT_ONCE)
    building = {name: pool.submit(have, name) for name in wanted}
    try:
        answers = {name: future.result() for name, future in building.items()}
    except BaseException:
        # The engine drops a build whose client hangs up.
        stop_bootstrap()
        engine.close()
        wait(building.values(), STOP_S)
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    for answer in answers.values():
        if isinstance(answer, str):
            note(f"warning: {answer}")
    return (
        {name: answer for name, answer in answers.items() if isinstance(answer, ImageInfo)},
        {name: answer for name, answer in answers.items() if isinstance(answer, str)},
    )


def plan_images(
    names: Iterable[str], images: Mapping[str, ImageInfo], faults: Mapping[str, str]
) -> dict[str, PlannedImage]:
    """What of the images goes into a plan."""
    return {
        name: PlannedImage(name=name, image_id=image.image_id, recipe=image.recipe, packages=image.packages)
        if (image := images.get(name))
        else PlannedImage(name=name, fault=faults.get(name))
        for name in names
    }
