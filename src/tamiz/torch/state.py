"""A mask whose number of features is left to the loss and one strength."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from tamiz.core import Rule, Slot, binary_penalty, current_ranking, fill_budget, penalty
from tamiz.core.gates import KEPT, Gates, read_gates
from tamiz.core.rule import N_SLOTS
from tamiz.core.step import check_strength, decide_by_price
from tamiz.torch.handle import MaskHandle
from tamiz.torch.stepping import MaskTensors, mask_state, spread_by_place, sum_by_place


def check_alone(strength: Any, n_features_to_select: Any, others: Mapping[str, Any]) -> None:
    """Raise ValueError if a strength is none, or if a count, groups, costs, keep or drop are given beside it.

    Examples
    --------
    >>> check_alone(0.1, None, {"groups": None})
    >>> check_alone(0.1, 5, {"groups": None})
    Traceback (most recent call last):
    ValueError: strength=0.1 leaves the number of features to the loss: leave n_features_to_select at None, got 5
    """
    check_strength(strength)
    if n_features_to_select is not None:
        raise ValueError(
            f"strength={strength!r} leaves the number of features to the loss: leave n_features_to_select at None, "
            f"got {n_features_to_select!r}"
        )
    given = [name for name, value in others.items() if value is not None]
    if given:
        raise ValueError(f"strength={strength!r} prices single entries: it cannot be combined with {', '.join(given)}")


def is_undecided(tensors: MaskTensors, rule: Rule) -> bool:
    """Check whether the number of features of a mask with a strength is still open."""
    return rule.strength is not None and int(tensors.counters[Slot.OPEN]) > 0


def ranking_by_strength(tensors: MaskTensors, rule: Rule) -> tuple[torch.Tensor, int]:
    """Return the ranks as of now, and how many of the first would be kept: those whose gamma is above one half."""
    decided = decide_by_price(mask_state(tensors), rule)
    return decided.rank, int(decided.kept)


def open_penalty(tensors: MaskTensors) -> torch.Tensor:
    """Return the penalty while the number of features is open: it is that of gamma's not being binary."""
    penalty: torch.Tensor = binary_penalty(tensors.gamma.detach().reshape(-1))
    return penalty


#: Number of the format of a saved mask; raise it whenever the meaning of a buffer changes.
MASK_FORMAT = 2


class Rest(torch.autograd.Function):
    """Hand gamma on with a place in the graph but without a gradient.

    With a mask as second argument, its first backward pass warns that the mask is not attached.
    """

    @staticmethod
    def forward(ctx: Any, gamma: torch.Tensor, mask: Any) -> torch.Tensor:
        ctx.mask = mask
        return gamma.view_as(gamma)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> Any:
        mask, ctx.mask = ctx.mask, None
        if mask is not None and not mask._warned:
            mask._warned = True
            warnings.warn(
                "a FeatureMask is trained without an optimizer: gamma does not move. Call mask.attach(optimizer) before "
                "training, also after copying or loading the model, or mask.finalize() to close it",
                UserWarning,
                stacklevel=2,
            )
        return None, None


def check_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    """Return a shape as a tuple; raise ValueError if it is none.

    Examples
    --------
    >>> check_shape(3), check_shape([1, 28, 28])
    ((3,), (1, 28, 28))
    """
    try:
        sizes = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        is_valid = len(sizes) > 0 and all(isinstance(n, (int, np.integer)) and n > 0 for n in sizes)
    except TypeError:
        is_valid = False
    if not is_valid:
        raise ValueError(f"shape must be a positive integer or a tuple of them, got {shape!r}")
    return tuple(int(n) for n in sizes)


def describe_mask(
    shape: Sequence[int],
    n_features_to_select: int,
    variant: str,
    gates: str | None = None,
    strength: float | None = None,
) -> torch.Tensor:
    """Return the description of a saved mask as a tensor of bytes, which every format of weights can hold.

    Examples
    --------
    >>> bytes(describe_mask((3,), 1, "soft").tolist()).decode()
    '{"format": 2, "shape": [3], "n_features_to_select": 1, "variant": "soft", "gates": null, "strength": null}'
    """
    about = {
        "format": MASK_FORMAT,
        "shape": list(shape),
        "n_features_to_select": n_features_to_select,
        "variant": variant,
        "gates": gates,
        "strength": strength,
    }
    return torch.tensor(list(json.dumps(about).encode()), dtype=torch.uint8)


def check_description(
    description: Any,
    shape: Sequence[int],
    n_features_to_select: int,
    variant: str,
    gates: str | None = None,
    strength: float | None = None,
) -> None:
    """Raise ValueError if a saved state does not belong to a mask of this shape, M, variant, gates and strength.

    Examples
    --------
    >>> check_description(describe_mask((3,), 2, "soft"), (3,), 1, "soft")
    Traceback (most recent call last):
    ValueError: this state belongs to a mask with n_features_to_select=2, this mask has n_features_to_select=1; ...
    """
    try:
        about = json.loads(bytes(description.tolist()))
        found = int(about["format"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError("this state does not belong to a FeatureMask: its description cannot be read") from error
    if found > MASK_FORMAT:
        raise ValueError(
            f"this state was saved in format {found}, this version of tamiz reads formats up to {MASK_FORMAT}; upgrade tamiz"
        )
    if about.get("gates") != gates:
        raise ValueError(
            "this state belongs to a mask with other groups, costs, budget, keep or drop; build the mask as the saved one "
            "was built"
        )
    mine = {
        "shape": list(shape),
        "strength": strength,
        "n_features_to_select": n_features_to_select,
        "variant": variant,
    }
    for name, value in mine.items():
        if about.get(name) != value:
            raise ValueError(
                f"this state belongs to a mask with {name}={about.get(name)!r}, this mask has {name}={value!r}; "
                "build the mask as the saved one was built"
            )


def mask_gates(n_entries: int, n_features_to_select: Any, options: dict[str, Any]) -> tuple[Gates | None, Any]:
    """Return the gates that the options of a mask ask for, with the names of groups; None if every entry is a feature.

    Examples
    --------
    >>> none = {"groups": None, "keep": None, "drop": None, "costs": None, "budget": None}
    >>> mask_gates(4, 2, none), mask_gates(4, 2, {**none, "keep": [1]})[0].feature.tolist()
    ((None, None), [0, -1, 1, 2])
    """
    if all(value is None for value in options.values()):
        return None, None
    plain: dict[str, Any] = {
        name: value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
        for name, value in options.items()
    }
    return read_gates(n_entries, n_features_to_select, **plain)


def entry_places(gates: Gates) -> torch.Tensor:
    """Return where each entry finds its value behind all features: a one for what is kept, a zero for what is dropped."""
    feature = gates.column_feature
    n = gates.n_features
    return torch.from_numpy(np.where(feature >= 0, feature, np.where(feature == KEPT, n, n + 1)))


def spread_gamma(feature_gamma: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    """Return gamma of each entry.

    Examples
    --------
    >>> spread_gamma(torch.tensor([0.5]), torch.tensor([0, 1, 0, 2])).tolist()
    [0.5, 1.0, 0.5, 0.0]
    """
    if _is_plain(feature_gamma):
        gamma = torch.empty(place.numel())
        spread_by_place(feature_gamma.numpy(), place.numpy(), gamma.numpy())
        return gamma
    ends = feature_gamma.new_tensor([1.0, 0.0])
    return torch.cat([feature_gamma, ends]).index_select(0, place)


def _is_plain(tensor: torch.Tensor) -> bool:
    """Check whether compiled loops can work on the memory of a tensor."""
    return tensor.device.type == "cpu" and tensor.dtype == torch.float32 and tensor.is_contiguous()


def gather_gradient(gradient: torch.Tensor, place: torch.Tensor, n_features: int) -> torch.Tensor:
    """Return the gradient of each feature: the sum over its entries.

    Examples
    --------
    >>> gather_gradient(torch.tensor([1.0, 9.0, 2.0, 9.0]), torch.tensor([0, 1, 0, 2]), 1).tolist()
    [3.0]
    """
    if _is_plain(gradient):
        total = torch.empty(n_features)
        sum_by_place(gradient.numpy(), place.numpy(), total.numpy())
        return total
    return gradient.new_zeros(n_features + 2).index_add_(0, place, gradient)[:n_features].contiguous()


def gates_digest(gates: Gates | None) -> str | None:
    """Return a short text that differs for masks with other groups, kept or dropped entries, costs or budget."""
    if gates is None:
        return None
    parts = [gates.group.astype(np.int64), gates.feature.astype(np.int64), np.array(gates.budget or 0.0)]
    parts += [] if gates.costs is None else [gates.costs]
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16]


class StatefulMask(nn.Module):
    """Hold the state of :class:`~tamiz.torch.FeatureMask`, which lets it take part in a training.

    Parameters
    ----------
    shape : tuple of int
        Shape of the mask.
    rule : Rule
        The settings; replaced by ``attach``.
    gates : Gates or None
        Entries that share gamma or have none; None: every entry is a feature.
    device : torch.device or str or None
        Where the state lies.
    dtype : torch.dtype or None
        Type of gamma: ``torch.float64``, else ``torch.float32``.
    """

    first: torch.Tensor
    second: torch.Tensor
    rank: torch.Tensor
    counters: torch.Tensor
    feature_gamma: torch.Tensor
    place: torch.Tensor

    def __init__(
        self, shape: tuple[int, ...], rule: Rule, gates: Gates | None, device: Any, dtype: torch.dtype | None
    ) -> None:
        super().__init__()
        self.shape, self.rule, self.gates = shape, rule, gates
        # Of the whole mask: while columns are dropped, the shape is that of the others.
        self._n_entries = math.prod(shape)
        n_features = rule.n_features
        dtype = torch.float64 if dtype == torch.float64 else torch.float32
        self.gamma = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.register_buffer("first", torch.empty(n_features, device=device, dtype=dtype))
        self.register_buffer("second", torch.empty(n_features, device=device, dtype=dtype))
        self.register_buffer("rank", torch.empty(n_features, device=device, dtype=torch.int32))
        self.register_buffer("counters", torch.empty(N_SLOTS, device=device, dtype=torch.int64))
        if gates is not None:
            self.register_buffer("feature_gamma", torch.empty(n_features, device=device, dtype=dtype))
            self.register_buffer("place", entry_places(gates).to(device), persistent=False)
        self._handle: MaskHandle | None = None
        self._moving = False  # attached and not closed, in Python: a look at the counters would wait for the device
        self._gamma_version: int | None = None  # version of gamma after the last change of our own
        self.reset()

    @property
    def n_features(self) -> int:
        """Return the number of entries of the mask (the paper's F)."""
        return self._n_entries

    @property
    def n_features_to_select(self) -> int:
        """Return how many features are kept in the end (the paper's M), with groups how many groups.

        With a budget or a strength it is known once the closing has begun; before that only what is always kept counts.
        """
        if self.gates is None and self.rule.strength is None:
            return self.rule.n_features_to_select
        return self._n_forced + int(self.counters[Slot.KEPT])

    @property
    def _n_forced(self) -> int:
        return 0 if self.gates is None else int((self.gates.feature == KEPT).sum())

    @property
    def variant(self) -> str:
        """Return the name of the variant."""
        return self.rule.variant

    @property
    def step(self) -> int:
        """Return the number of optimizer steps since the start of the warm-up."""
        return int(self.counters[Slot.STEP])

    @property
    def closed(self) -> bool:
        """Check whether gamma is binary with exactly M ones; it does not move any more."""
        return bool(self.counters[Slot.CLOSED])

    @property
    def n_alive(self) -> int:
        """Return how many features (groups, where there are groups) have not been eliminated."""
        return self._n_forced + int((self.rank <= self.counters[Slot.KEPT]).sum())

    def ranking(self) -> torch.Tensor:
        """Return 1 for the best feature, 2 for the next, ...; at any moment, in the shape of the mask.

        The entries of a group follow each other; what is always kept comes first, what is dropped last.
        """
        return self._ranks()[0]

    def _ranks(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rank and support of every entry, in the shape of the mask."""
        ranking, n_kept = self._feature_ranking()
        if self.gates is None:
            return ranking.reshape(self.shape), (ranking <= n_kept).reshape(self.shape)
        parts = self.gates.rank_columns(ranking.cpu().numpy(), n_kept)
        ranks, support = (torch.from_numpy(part).to(self.gamma.device).reshape(self.shape) for part in parts)
        return ranks, support

    def _feature_ranking(self) -> tuple[torch.Tensor, int]:
        """Return the ranks of the features as of now, and how many of the first would be kept."""
        if is_undecided(self._tensors(), self.rule):
            return ranking_by_strength(self._tensors(), self.rule)
        ranking, n_kept = current_ranking(mask_state(self._tensors()), self.rule), int(self.counters[Slot.KEPT])
        if self.rule.costs is None or n_kept > 0:
            return ranking, n_kept
        filled, n_kept = fill_budget(ranking.cpu().numpy(), 0, self.rule.costs, self.rule.limit)
        return torch.from_numpy(filled).to(ranking.device), n_kept

    def support(self) -> torch.Tensor:
        """Return True for the M features that are kept; before the mask is closed, for those that are best now.

        Raises
        ------
        RuntimeError
            If gamma has not moved yet: nothing tells the features apart.
        """
        self._check_order()
        return self._ranks()[1]

    def penalty(self) -> torch.Tensor:
        r"""Return :math:`L_{1-2} + L_M` for M, over the features that gamma decides; zero once the mask is closed.

        Until the closing begins, :math:`L_B` takes the place of :math:`L_M` with a budget, and nothing with a strength.
        """
        self._undo_changes()
        if is_undecided(self._tensors(), self.rule):
            return open_penalty(self._tensors())
        gamma, n_kept = self._tensors().gamma.detach().reshape(-1), int(self.counters[Slot.KEPT])
        if self.rule.costs is None or n_kept > 0:
            return penalty(gamma, n_kept, self.rule.mu)
        costs = torch.from_numpy(self.rule.costs).to(gamma)
        return penalty(gamma, self.rule.size, self.rule.mu, costs)

    def finalize(self) -> None:
        """Close the mask at once: keep the M features that are best now.

        For a training that ends before the mask has closed. ``Selection.converged`` would be False.

        Raises
        ------
        RuntimeError
            If gamma has not moved yet.
        """
        if self.closed:
            return
        self._check_order()
        ranking, n_kept = self._feature_ranking()
        with torch.no_grad():
            self.rank.copy_(ranking)
            state = self._tensors().gamma
            state.copy_((ranking <= n_kept).reshape(state.shape))
            self._spread()
            self.first.zero_()
            self.second.zero_()
            values = ((Slot.AGE, 0), (Slot.OPEN, 0), (Slot.CLOSED, 1), (Slot.FORCED, 2), (Slot.KEPT, n_kept))
            for slot, value in values:
                self.counters[slot] = value
        self._update()

    def _spread(self) -> None:
        """Write gamma of the features to the entries of the mask."""
        if self.gates is not None:
            with torch.no_grad():
                self.gamma.copy_(spread_gamma(self.feature_gamma, self.place).reshape(self.gamma.shape))

    def reset(self) -> None:
        """Go back to the start: gamma all ones, nothing decided, no step taken."""
        m, n = self.rule.n_features_to_select, self.rule.n_features
        with torch.no_grad():
            self._tensors().gamma.fill_(1.0)
            self._spread()
            self.first.zero_()
            self.second.zero_()
            self.counters.zero_()
            self.rank.zero_()
            if m == n:
                self.rank.copy_(torch.arange(1, n + 1))
            self.counters[Slot.OPEN] = 0 if m == n else n
            self.counters[Slot.CLOSED] = int(m == n)
            self.counters[Slot.KEPT] = m
        self._update()

    def extra_repr(self) -> str:
        """Return what ``print(model)`` shows."""
        shape = self.shape[0] if len(self.shape) == 1 else self.shape
        about = f"{shape}, n_features_to_select={self.rule.n_features_to_select}, variant={self.variant!r}"
        if self.gates is not None:
            budget = "" if self.gates.budget is None else f", budget={self.gates.budget:g}"
            about = f"{shape}, features={self.gates.n_features} of {self.gates.n_groups} groups{budget}, variant={self.variant!r}"
        if self.rule.strength is not None:
            about = f"{shape}, strength={self.rule.strength:g}"
        if self.gamma.is_meta:  # there are no numbers to show
            return about
        return f"{about}, closed" if self.closed else f"{about}, alive={self.n_alive}"

    def _tensors(self) -> MaskTensors:
        buffers = self.__dict__["_buffers"]  # attributes of modules are slow to look up
        return MaskTensors(
            self.__dict__["_parameters"]["gamma"] if self.gates is None else buffers["feature_gamma"],
            buffers["first"],
            buffers["second"],
            buffers["rank"],
            buffers["counters"],
        )

    def _check_order(self) -> None:
        n, m = self.rule.n_features, int(self.counters[Slot.KEPT])
        if int(self.counters[Slot.OPEN]) == n != m and not int(self.counters[Slot.AGE]):
            raise RuntimeError(
                f"nothing is selected yet: gamma has not moved in {self.step} steps (warm-up: "
                f"{self.rule.warmup_steps}); attach the mask to the optimizer and train on"
            )

    def _update(self) -> None:
        """Take over a state that was written by something other than a step."""
        if not self.gamma.is_meta:
            self._moving = self._handle is not None and not self.closed
            self._gamma_version = self.gamma._version

    def _undo_changes(self) -> None:
        """Set gamma back to what was decided, if something other than the mask has written to it."""
        gamma = self.gamma
        if self._moving or gamma.is_meta or gamma.is_inference() or gamma._version == self._gamma_version:
            return
        n_kept, state = int(self.counters[Slot.KEPT]), self._tensors().gamma
        kept = (self.rank <= n_kept).reshape(state.shape)
        with torch.no_grad():
            if not self.closed:
                state.mul_(kept)
                self._spread()
            elif int(kept.sum()) == n_kept:
                state.copy_(kept)
                self._spread()
            else:
                raise RuntimeError(
                    f"the state of this mask is not consistent: it is closed with {int(kept.sum())} features instead of "
                    f"{n_kept}. If its buffers were averaged, copy them instead (AveragedModel with "
                    "use_buffers=False)"
                )
        self._gamma_version = gamma._version

    def _check_gamma(self) -> None:
        """Raise if something other than the mask has moved gamma to where the rule never leaves it."""
        gamma, dead = self._tensors().gamma.detach().reshape(-1), self.rank > self.counters[Slot.KEPT]
        moved = bool(((gamma < 0) | (gamma > 1) | (dead & (gamma != 0))).any())
        if self.gates is not None:
            moved = moved or not torch.equal(self.gamma.detach().reshape(-1), spread_gamma(gamma, self.place))
        if moved:
            raise RuntimeError(
                "gamma was changed between two steps by something other than the mask, for example an optimizer that "
                "wraps another one: attach the mask to the optimizer whose step() moves the weights"
            )

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        def moved(tensor: torch.Tensor) -> torch.Tensor:
            result = fn(tensor)
            if tensor.is_floating_point() and result.dtype not in (torch.float32, torch.float64):
                # A step of 0.01 is lost in half precision: the mask keeps its type, and only the device is taken over.
                result = tensor.to(result.device)
            return result.contiguous()  # the compiled step writes into the memory, in the order of the features

        self._gamma_version = None
        return super()._apply(moved, recurse)

    def get_extra_state(self) -> torch.Tensor:
        """Return what the state belongs to (format, shape, M and variant by name) as the bytes of a JSON text."""
        return describe_mask(*self._description())

    def _description(self) -> tuple[Any, ...]:
        rule = self.rule
        return self.shape, rule.n_features_to_select, self.variant, gates_digest(self.gates), rule.strength

    def set_extra_state(self, state: torch.Tensor) -> None:
        """Do nothing: the description is checked before anything is loaded."""

    def _save_to_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self._undo_changes()
        super()._save_to_state_dict(*args, **kwargs)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any) -> None:
        description = state_dict.get(prefix + "_extra_state")
        if description is not None:
            check_description(description, *self._description())
        counters = state_dict.get(prefix + "counters")
        if counters is not None and counters.numel() == N_SLOTS - 1:  # format 1 did not count what is kept
            kept = counters.new_tensor([self.rule.n_features_to_select])
            state_dict[prefix + "counters"] = torch.cat([counters, kept])
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        self._update()
        self._gamma_version = None
        self._undo_changes()
