"""Plugins that a task wants installed, and the skill that it invokes by name (G48, G51)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boxeval.formats.faults import Fault
from boxeval.formats.place import show
from boxeval.rules.marketplace import MarketplaceFault, Offer, offer_of
from boxeval.rules.skill_token import occurrences, parts_of
from boxeval.spec.host_options import HostOptions, Marketplace
from boxeval.spec.suite import Task


def prompts_of(task: Task) -> tuple[str, ...]:
    """All that is delivered to the agent of a task."""
    prompts = [step.prompt for step in task.steps] or [task.runner.prompt]
    return tuple(prompt for prompt in prompts if prompt)


def plugin_faults(host: HostOptions, prompts: Sequence[str]) -> Iterator[Fault]:
    """What is wrong with `plugins` and `invoke`. A marketplace that could not be read has been told of."""
    offer: Offer | None = None
    if host.plugins and isinstance(host.plugins.marketplace, Marketplace):
        try:
            offer = offer_of(host.plugins.marketplace.files)
        except MarketplaceFault as fault:
            yield ("plugins", "marketplace"), str(fault)
            return
        if set(offer.plugins) != set(host.plugins.install):
            has = ", ".join(sorted(offer.plugins)) or "none"
            yield ("plugins", "install"), f"must name exactly the plugins of the marketplace: {has}"
            return
    if host.invoke is None:
        return
    plugin, skill = parts_of(host.invoke)
    if plugin and host.plugins is None:
        yield ("invoke",), f"{show(host.invoke)} needs `plugins`, with {show(plugin)} among them"
    elif plugin and offer and f"skills/{skill}/SKILL.md" not in offer.plugins.get(plugin, {}):
        yield ("invoke",), f"no plugin {show(plugin)} with a `skills/{skill}/SKILL.md` is installed"
    if (count := sum(occurrences(host.invoke, prompt) for prompt in prompts)) != 1:
        yield ("invoke",), f"{show(host.invoke)} must stand in the prompts once; it is there {count} times"
