"""`images`: boxeval's own images on the engine."""

from __future__ import annotations

from typing import Annotated

import typer

from boxeval.cli.output import camel, say, say_json, warn
from boxeval.cli.places import Json
from boxeval.reports.escape import escape

images_app = typer.Typer(no_args_is_help=True, help="Build, list and prune boxeval's own images.")


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.add_typer(images_app, name="images")


@images_app.command()
def build(
    agents: Annotated[
        list[str] | None,
        typer.Option("--agent", metavar="NAME", help="The image of this agent too, or of `all`; repeatable."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Build every image that is missing; the base is pulled, or made from packages without a registry."""
    from boxeval.reports.words import size
    from boxeval.sandbox.engine import connect
    from boxeval.sandbox.images import agent_images, build_all

    wanted = agent_images(agents or [])
    built = build_all(connect(), wanted, note=warn)
    if as_json:
        say_json([camel(image) for image in built])
        return
    for image in built:
        say(f"{escape(image.tag)}  {image.image_id}  {size(image.size_bytes)}")


@images_app.command("ls")
def list_all(as_json: Json = False) -> None:
    """List boxeval's images and caches with their sizes; layers that images share are counted in each."""
    from boxeval.reports.words import size
    from boxeval.sandbox.engine import connect
    from boxeval.sandbox.images import list_images
    from boxeval.sandbox.ownership import Owner
    from boxeval.sandbox.sweep import cache_sizes
    from boxeval.settings import load_settings

    engine = connect()
    images = list_images(engine)
    if as_json:
        say_json([camel(image) for image in images])
        return
    for image in images:
        notes = [word for word, is_so in (("old", not image.current), ("in use", image.in_use)) if is_so]
        say(f"{escape(image.tag)}  {size(image.size_bytes)}  {', '.join(notes)}".rstrip())
    for name, size_bytes in cache_sizes(engine, Owner.here(load_settings().data_dir)).items():
        say(f"{name}  {size(size_bytes)}  cache; `boxeval clean --cache` removes it")
    if not images:
        say("no images yet; `boxeval images build` makes them")


@images_app.command()
def prune(
    everything: Annotated[
        bool, typer.Option("--all", help="Also those that this version would use.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove boxeval's images that no container uses. Nothing of others is touched."""
    from boxeval.reports.words import plural, size
    from boxeval.sandbox.engine import connect
    from boxeval.sandbox.images import prune as prune_images

    removed, freed_bytes = prune_images(connect(), keep_current=not everything)
    if as_json:
        say_json({"removed": [image.tag for image in removed], "freedBytes": freed_bytes})
        return
    for image in removed:
        say(f"removed {escape(image.tag)}")
    say(f"{plural(len(removed), 'image')} removed, {size(freed_bytes)} freed")
