"""List of the protocols: a new one is a class and a line here."""

from __future__ import annotations

from importlib import import_module

from tamiz._names import pick
from tamiz.reproduce.protocol import Protocol

#: Name -> "module:class", in the order of the results page. Strings, so that a worker imports only the protocol it runs.
PROTOCOLS: dict[str, str] = {
    "microarray": "tamiz.reproduce.protocols.microarray:Microarray",
    "three-layer": "tamiz.reproduce.protocols.three_layer:ThreeLayer",
    "images": "tamiz.reproduce.protocols.images:Images",
    "ground-truth": "tamiz.reproduce.protocols.ground_truth:GroundTruth",
    "madelon": "tamiz.reproduce.protocols.madelon:Madelon",
    "surfaces": "tamiz.reproduce.protocols.surfaces:Surfaces",
}


def protocol_names() -> list[str]:
    """Return the names of all protocols.

    Examples
    --------
    >>> protocol_names()[:2]
    ['microarray', 'three-layer']
    """
    return list(PROTOCOLS)


def protocol_path(name: str) -> str:
    """Return "module:class" of a protocol.

    Examples
    --------
    >>> protocol_path("Ground truth")
    'tamiz.reproduce.protocols.ground_truth:GroundTruth'
    """
    return pick(name, PROTOCOLS, "protocol")


def load_protocol(name: str) -> Protocol:
    """Return a protocol by its name, or by "module:class".

    Examples
    --------
    >>> load_protocol("surfaces").name
    'surfaces'
    """
    module, _, kind = (name if ":" in name else protocol_path(name)).partition(":")
    protocol: Protocol = getattr(import_module(module), kind)()
    return protocol
