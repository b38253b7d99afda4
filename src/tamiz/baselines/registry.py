"""The one list of methods: a new method is one file and one line here."""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamiz.baselines._base import BaselineSelector

#: Name of the method -> "module:class". Strings, so that the list can be read without loading numba or torch.
METHODS: dict[str, str] = {
    "fisher": "tamiz.baselines.fisher:FisherScore",
    "mim": "tamiz.baselines.mim:MIM",
    "relieff": "tamiz.baselines.relieff:ReliefF",
    "inffs": "tamiz.baselines.inffs:InfFS",
    "ilfs": "tamiz.baselines.ilfs:ILFS",
    "svm-rfe": "tamiz.baselines.svm_rfe:SVMRFE",
    "lasso": "tamiz.baselines.lasso:Lasso",
    "dfs": "tamiz.baselines.dfs:DFS",
    "sfs": "tamiz.baselines.sfs:SFS",
    "isfs": "tamiz.baselines.isfs:ISFS",
    "sfs+dfs": "tamiz.baselines.sfs_dfs:SFSDFS",
    "random-forest": "tamiz.baselines.random_forest:RandomForestImportance",
    "mrmr": "tamiz.baselines.mrmr:MRMR",
    "random": "tamiz.baselines.random_selection:RandomSelection",
    "all": "tamiz.baselines.all_features:AllFeatures",
}


def available() -> list[str]:
    """The names of all methods, in the order of the registry.

    Examples
    --------
    >>> available()[:4]
    ['fisher', 'mim', 'relieff', 'inffs']
    """
    return list(METHODS)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def canonical_name(name: str) -> str:
    """The registry's spelling of a method's name, whichever case and punctuation, or of its class.

    Examples
    --------
    >>> canonical_name("SVM_RFE"), canonical_name("FisherScore")
    ('svm-rfe', 'fisher')
    >>> canonical_name("relif")
    Traceback (most recent call last):
    ValueError: Unknown method 'relif'. Did you mean 'relieff'? There are: fisher, mim, ...
    """
    spellings = {_plain(path.partition(":")[2]): known for known, path in METHODS.items()}
    spellings.update({_plain(known): known for known in METHODS})
    plain = _plain(str(name))
    if plain in spellings:
        return spellings[plain]
    near = difflib.get_close_matches(plain, spellings, n=1, cutoff=0.5)
    hint = f" Did you mean {spellings[near[0]]!r}?" if near else ""
    raise ValueError(f"Unknown method {name!r}.{hint} There are: {', '.join(METHODS)}.")


def load(name: str) -> type[BaselineSelector]:
    """The class of a method.

    Examples
    --------
    >>> load("fisher").__name__
    'FisherScore'
    """
    module, _, class_name = METHODS[canonical_name(name)].partition(":")
    try:
        return getattr(import_module(module), class_name)
    except ModuleNotFoundError as error:
        if error.name == "torch":
            raise ImportError(f"The method {name!r} needs torch: pip install 'tamiz[torch]'.") from error
        raise


def make(name: str, **params: Any) -> BaselineSelector:
    """A selector by name, with parameters as for its class.

    Examples
    --------
    >>> make("fisher", n_features_to_select=3)
    FisherScore(n_features_to_select=3)
    """
    return load(name)(**params)
