"""State of a mask: gamma, its moments, ranks and counters; saved, loaded, and kept from the writes of others."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from tamiz.core import Rule, Slot, binary_penalty, current_ranking, fill_budget, penalty
from tamiz.core.gates import KEPT, Gates, read_gates
from tamiz.core.rule import N_SLOTS
from tamiz.core.step import decide_by_price
from tamiz.torch.stepping import MaskHandle, MaskTensors, mask_state, spread_by_place, sum_by_place

#: Number of the format of a saved mask; raise it whenever the meaning of a buffer changes.
MASK_FORMAT = 3

SCHEDULE = ("warmup_steps", "ramp_steps", "max_steps")


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


def mask_gates(n_entries: int, n_features_to_select: Any, options: dict[str, Any]) -> tuple[Gates | None, Any]:
    """Return the gates for the options of a mask, with the names of groups; None if every entry is a feature.

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


def spread_gamma(feature_gamma: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    """Return gamma of each entry; the two places behind the features are a one and a zero.

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


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether compiled loops can work on the memory of a tensor."""
    return tensor.device.type == "cpu" and tensor.dtype == torch.float32 and tensor.is_contiguous()


class Decision(NamedTuple):
    """What a closed mask has selected, out of the reach of optimizers and averages."""

    gamma: torch.Tensor
    """Zeros and ones, in the shape of the mask."""
    kept: torch.Tensor
    """Numbers of the ones."""
    rank: torch.Tensor
    counters: torch.Tensor


class StatefulMask(nn.Module):
    """State of :class:`~tamiz.torch.FeatureMask`.

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
            feature = gates.column_feature
            place = np.where(feature >= 0, feature, gates.n_features + (feature != KEPT))
            self.register_buffer("feature_gamma", torch.empty(n_features, device=device, dtype=dtype))
            self.register_buffer("place", torch.from_numpy(place).to(device), persistent=False)
        self._handle: MaskHandle | None = None
        self._moving = False  # attached and not closed, in Python: a look at the counters would wait for the device
        self._decided: Decision | None = None
        self._source: weakref.ref[StatefulMask] | None = None  # of a copy: the mask that it was copied from
        self._copied: torch.Tensor | None = None  # of a copy: gamma as it was copied
        self._versions: tuple[int, ...] = ()  # of gamma, rank and counters after the last change of our own
        self.__dict__["_home"] = self.gamma  # functional_call puts another tensor in its place
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
        self._settle(by_value=True)
        return self._decided is not None if not self._moving else bool(self.counters[Slot.CLOSED])

    @property
    def n_alive(self) -> int:
        """Return how many features (groups, where there are groups) have not been eliminated."""
        self._settle(by_value=True)
        return self._n_forced + int((self.rank <= self.counters[Slot.KEPT]).sum())

    def ranking(self) -> torch.Tensor:
        """Return 1 for the best feature, 2 for the next, ...; at any moment, in the shape of the mask.

        The entries of a group follow each other; what is always kept comes first, what is dropped last.
        """
        return self._ranks()[0]

    def support(self) -> torch.Tensor:
        """Return True for the M features that are kept; before the mask is closed, for those that are best now.

        Raises
        ------
        RuntimeError
            If gamma has not moved yet: nothing tells the features apart.
        """
        self._check_order()
        return self._ranks()[1]

    def _ranks(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rank and support of every entry, in the shape of the mask."""
        ranking, n_kept = self._feature_ranking()
        if self.gates is None:
            return ranking.reshape(self.shape), (ranking <= n_kept).reshape(self.shape)
        parts = self.gates.rank_columns(ranking.cpu().numpy(), n_kept)
        ranks, support = (torch.from_numpy(part).to(self.gamma.device).reshape(self.shape) for part in parts)
        return ranks, support

    def _is_undecided(self) -> bool:
        """Whether the number of features of a mask with a strength is still open."""
        return self.rule.strength is not None and int(self.counters[Slot.OPEN]) > 0

    def _feature_ranking(self) -> tuple[torch.Tensor, int]:
        """Return the ranks of the features as of now, and how many of the first would be kept."""
        self._settle(by_value=True)
        state = mask_state(self._tensors())
        if self._is_undecided():
            decided = decide_by_price(state, self.rule)
            return decided.rank, int(decided.kept)
        ranking, n_kept = current_ranking(state, self.rule), int(self.counters[Slot.KEPT])
        if self.rule.costs is None or n_kept > 0:
            return ranking, n_kept
        filled, n_kept = fill_budget(ranking.cpu().numpy(), 0, self.rule.costs, self.rule.limit)
        return torch.from_numpy(filled).to(ranking.device), n_kept

    def penalty(self) -> torch.Tensor:
        r"""Return :math:`L_{1-2} + L_M` for M, over the features that gamma decides; zero once the mask is closed.

        Until the closing begins, :math:`L_B` takes the place of :math:`L_M` with a budget, and nothing with a strength.
        """
        self._settle(by_value=True)
        gamma, n_kept = self._tensors().gamma.detach().reshape(-1), int(self.counters[Slot.KEPT])
        if self._is_undecided():
            return binary_penalty(gamma)
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

    def reset(self) -> None:
        """Go back to the start: gamma all ones, nothing decided, no step taken."""
        m, n = self.rule.n_features_to_select, self.rule.n_features
        with torch.no_grad():
            self._tensors().gamma.fill_(1.0)
            self._spread()
            for buffer in (self.first, self.second, self.counters, self.rank):
                buffer.zero_()
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

    def _spread(self) -> None:
        """Write gamma of the features to the entries of the mask."""
        if self.gates is not None:
            with torch.no_grad():
                self.gamma.copy_(spread_gamma(self.feature_gamma, self.place).reshape(self.gamma.shape))

    def _check_order(self) -> None:
        n, m = self.rule.n_features, int(self.counters[Slot.KEPT])
        if int(self.counters[Slot.OPEN]) == n != m and not int(self.counters[Slot.AGE]):
            raise RuntimeError(
                f"nothing is selected yet: gamma has not moved in {self.step} steps (warm-up: "
                f"{self.rule.warmup_steps}); attach the mask to the optimizer and train on"
            )

    # ---- what others write -----------------------------------------------------------------------------------------

    def _update(self) -> None:
        """Take over a state that the mask itself, or a checkpoint, has written."""
        if self.gamma.is_meta:
            return
        self.__dict__["_home"], self._source, self._copied, self._decided = self.gamma, None, None, None
        counters = self.counters.clone()
        if bool(counters[Slot.CLOSED]):
            kept = self.rank <= counters[Slot.KEPT]
            if int(kept.sum()) != int(counters[Slot.KEPT]):
                raise RuntimeError(
                    f"the state of this mask is not consistent: it is closed with {int(kept.sum())} features instead of "
                    f"{int(counters[Slot.KEPT])}; were its buffers averaged? Copy them instead"
                )
            gamma = kept.to(self.gamma.dtype)
            if self.gates is not None:
                gamma = spread_gamma(gamma, self.place)
            self._decided = Decision(gamma.reshape(self.shape), gamma.nonzero().flatten(), self.rank.clone(), counters)
        self._moving = self._handle is not None and self._decided is None
        self._remember()

    def _remember(self) -> None:
        self._versions = (self.gamma._version, self.rank._version, self.counters._version)

    def _settle(self, by_value: bool = False) -> None:
        """Undo what others wrote to the state of a mask that does not move: weight decay, averages, exchanged weights.

        Writes through ``.data`` leave the version of a tensor as it was; they are found only ``by_value``.
        """
        gamma = self.gamma
        if self._moving or gamma.is_meta or gamma.is_inference():
            return
        written = (gamma._version, self.rank._version, self.counters._version) != self._versions
        source = None if self._source is None else self._source()
        if not written and not by_value and source is None:
            return
        with torch.no_grad():
            if self._decided is not None:
                decided = self._decided
                if not (torch.equal(self.rank, decided.rank) and torch.equal(self.counters[1:], decided.counters[1:])):
                    self.rank.copy_(decided.rank)
                    self.counters.copy_(decided.counters)
                if not torch.equal(gamma, decided.gamma):
                    self._tensors().gamma.copy_(
                        (self.rank <= decided.counters[Slot.KEPT]).reshape(self._tensors().gamma.shape)
                    )
                    self._spread()
            elif source is not None and self._copied is not None:
                if written or not torch.equal(gamma, self._copied):
                    self._follow(source)
            elif source is None:
                if int((self.rank == 0).sum()) != int(self.counters[Slot.OPEN]):
                    raise RuntimeError(
                        "the ranks and counters of this open mask do not fit together: something has averaged its "
                        "buffers; load a checkpoint, or copy the buffers instead (use_buffers=False)"
                    )
                if written:
                    state = self._tensors().gamma
                    state.mul_((self.rank <= self.counters[Slot.KEPT]).reshape(state.shape))
                    self._spread()
        self._remember()

    def _follow(self, source: StatefulMask) -> None:
        """Take over the decisions of the mask that this one is an average of; gamma of the living stays averaged."""
        source._settle(by_value=True)
        averaged = self._tensors().gamma.clone()
        for mine, theirs in zip(self.buffers(), source.buffers()):
            mine.copy_(theirs)
        alive = (self.rank <= self.counters[Slot.KEPT]).reshape(averaged.shape)
        self._tensors().gamma.copy_(averaged * alive)
        self._spread()
        tie = self._source
        self._update()
        if self._decided is None:
            self._source, self._copied = tie, self.gamma.detach().clone()
        else:
            self._settle(by_value=True)

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

    # ---- copies, devices, checkpoints ------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        # A copy is not attached: the optimizer that it would step with is not copied along.
        bound = {"_handle": None, "_moving": False, "_versions": (), "_source": None, "_copied": None}
        return {**super().__getstate__(), **bound}

    def __deepcopy__(self, memo: dict[int, Any]) -> StatefulMask:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        if not self.gamma.is_meta:
            made._remember()
            if made._decided is None:
                made._source, made._copied = weakref.ref(self), self.gamma.detach().clone()
        return made

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        def moved(tensor: torch.Tensor) -> torch.Tensor:
            result = fn(tensor)
            if tensor.is_floating_point() and result.dtype not in (torch.float32, torch.float64):
                # A step of 0.01 is lost in half precision: the mask keeps its type, and only the device is taken over.
                result = tensor.to(result.device)
            return result.contiguous()  # the compiled step writes into the memory, in the order of the features

        super()._apply(moved, recurse)
        self.__dict__["_home"], self._versions = self.gamma, ()
        if self._decided is not None:
            self._decided = Decision(*(moved(part) for part in self._decided))
        if self._copied is not None:
            self._copied = moved(self._copied)
        return self

    def _about(self) -> dict[str, Any]:
        """Describe what a saved state belongs to."""
        rule, digest = self.rule, None
        if self.gates is not None:
            parts = [self.gates.group.astype(np.int64), self.gates.feature.astype(np.int64)]
            parts += [np.array(self.gates.budget or 0.0)] + ([] if self.gates.costs is None else [self.gates.costs])
            digest = hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16]
        return {
            "shape": list(self.shape),
            "strength": rule.strength,
            "n_features_to_select": rule.n_features_to_select,
            "variant": rule.variant,
            "gates": digest,
        }

    def _schedule(self) -> dict[str, Any]:
        return {name: getattr(self.rule, name) for name in SCHEDULE}

    def get_extra_state(self) -> torch.Tensor:
        """Return what the state belongs to, with the schedule, as the bytes of a JSON text, which every format can hold."""
        about = {"format": MASK_FORMAT, **self._about(), "schedule": self._schedule() if self.step else None}
        return torch.tensor(list(json.dumps(about).encode()), dtype=torch.uint8)

    def set_extra_state(self, state: torch.Tensor) -> None:
        """Do nothing: the description is read before anything is loaded."""

    def _read_about(self, description: Any, is_running: bool) -> None:
        """Raise ValueError if a saved state does not belong to this mask; take over its schedule."""
        try:
            about = json.loads(bytes(description.tolist()))
            found, schedule = int(about["format"]), about.get("schedule")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError("this state does not belong to a FeatureMask: its description cannot be read") from error
        if found != MASK_FORMAT:
            raise ValueError(
                f"this state was saved in format {found}, this version of tamiz reads format {MASK_FORMAT}"
            )
        mine = self._about()
        if about.get("gates") != mine["gates"]:
            raise ValueError(
                "this state belongs to a mask with other groups, costs, budget, keep or drop; build the mask as the saved "
                "one was built"
            )
        for name, value in mine.items():
            if about.get(name) != value:
                raise ValueError(
                    f"this state belongs to a mask with {name}={about.get(name)!r}, this mask has {name}={value!r}; "
                    "build the mask as the saved one was built"
                )
        if is_running and schedule is not None and schedule != self._schedule():
            if self._handle is not None:
                raise ValueError(
                    f"this state was saved in mid-selection with {schedule}, the mask is attached with {self._schedule()}; "
                    "attach with the same schedule, or load before attach"
                )
            self.rule = replace(self.rule, **schedule)

    def _save_to_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self._settle(by_value=True)
        super()._save_to_state_dict(*args, **kwargs)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any) -> None:
        description, counters = state_dict.get(prefix + "_extra_state"), state_dict.get(prefix + "counters")
        if description is not None:
            is_running = counters is not None and bool(counters[Slot.STEP]) and not bool(counters[Slot.CLOSED])
            self._read_about(description, is_running)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        self._update()
        self._versions = ()  # what is loaded may be an average
        self._settle()
