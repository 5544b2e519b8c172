"""`keys`: who signs on this machine, and whom it believes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from boxeval.cli.output import say, say_json
from boxeval.cli.places import Json
from boxeval.reports.escape import escape

keys_app = typer.Typer(no_args_is_help=True, help="Signing keys of this machine, and the keys it trusts.")

KeyId = Annotated[
    str, typer.Argument(metavar="KEYID", help="The key's id, or its first digits (at least 8).")
]


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.add_typer(keys_app, name="keys")


@keys_app.command()
def make(
    label: Annotated[str, typer.Argument(metavar="LABEL", help="What people will read beside the id.")],
    as_json: Json = False,
) -> None:
    """Make a signing key on this machine and trust it here. Runs sign with the oldest one that is not revoked."""
    from boxeval.receipts.keys import make_key
    from boxeval.settings import load_settings

    key = make_key(load_settings(), label).trusted(label)
    if as_json:
        say_json(key.model_dump(mode="json"))
    else:
        say(f"made {key.keyid}  {escape(label)}")


@keys_app.command("ls")
def list_all(as_json: Json = False) -> None:
    """List the keys that this machine signs with or trusts."""
    from boxeval.receipts.keys import list_keys
    from boxeval.settings import load_settings

    known = list_keys(load_settings())
    if as_json:
        say_json([{**one.key.model_dump(mode="json"), "signsHere": one.signs_here} for one in known])
        return
    for one in known:
        state = "revoked" if one.key.revoked else "signs here" if one.signs_here else "trusted"
        say(f"{one.key.keyid}  {state:<10}  {escape(one.key.label)}".rstrip())
    if not known:
        say("no keys yet; the first run makes one")


@keys_app.command()
def export(key: KeyId) -> None:
    """Print a key's public half as a trust file, for others to give to --trust."""
    import json

    from boxeval.receipts.keys import export_public
    from boxeval.settings import load_settings

    say_json(json.loads(export_public(load_settings(), key)))


@keys_app.command()
def trust(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A trust file, as `keys export` prints it.")],
) -> None:
    """Trust the public keys of a file on this machine."""
    from boxeval.receipts.keys import trust as trust_file
    from boxeval.settings import load_settings

    for key in trust_file(load_settings(), file):
        state = "revoked, and stays so" if key.revoked else "trusted"
        say(f"{state}: {key.keyid}  {escape(key.label)}".rstrip())


@keys_app.command()
def revoke(key: KeyId) -> None:
    """Refuse a key from now on, with every receipt that it ever signed."""
    from boxeval.receipts.keys import revoke as revoke_key
    from boxeval.settings import load_settings

    gone = revoke_key(load_settings(), key)
    say(f"revoked: {gone.keyid}  {escape(gone.label)}".rstrip())
