"""State of a mask: gamma, its moments, ranks and counters; saved, loaded, and kept from the writes of others."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import weakref
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from tamiz.core.gates import KEPT, Gates
from tamiz.core.rule import N_SLOTS, Phase, Rule, Slot
from tamiz.core.step import MaskState, binary_penalty, current_ranking, decide_by_price, fill_budget, penalty
from tamiz.torch.stepping import MaskHandle, Stepper, mask_state

#: Number of the format of a saved mask; raise it whenever the meaning of a buffer changes.
MASK_FORMAT = 3

SCHEDULE = ("warmup_steps", "ramp_steps", "max_steps")


def schedule_of(rule: Rule) -> dict[str, Any]:
    """Schedule of a rule, as ``FeatureMask.attach`` takes it."""
    return {name: getattr(rule, name) for name in SCHEDULE}


class Decision(NamedTuple):
    """What a closed mask has selected, out of the reach of optimizers and averages; ``kept`` are the numbers of the ones."""

    gamma: torch.Tensor
    kept: torch.Tensor
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
    """

    first: torch.Tensor
    second: torch.Tensor
    rank: torch.Tensor
    counters: torch.Tensor
    feature_gamma: torch.Tensor
    place: torch.Tensor

    def __init__(self, shape: tuple[int, ...], rule: Rule, gates: Gates | None, device: Any) -> None:
        super().__init__()
        self.shape, self.rule, self.gates = shape, rule, gates
        self._n_forced = 0 if gates is None else int((gates.feature == KEPT).sum())
        # A step of 0.01 is lost in half precision: gamma is float32 in networks of any type.
        self.gamma = nn.Parameter(torch.empty(shape, device=device, dtype=torch.float32))
        types = {"first": torch.float32, "second": torch.float32, "rank": torch.int32}
        if gates is not None:
            types["feature_gamma"] = torch.float32
            feature = gates.column_feature
            place = np.where(feature >= 0, feature, gates.n_features + (feature != KEPT))
            self.register_buffer("place", torch.from_numpy(place).to(device), persistent=False)
        for name, dtype in types.items():
            self.register_buffer(name, torch.empty(rule.n_features, device=device, dtype=dtype))
        self.register_buffer("counters", torch.empty(N_SLOTS, device=device, dtype=torch.int64))
        self._handle: MaskHandle | None = None
        self._stepper: Stepper | None = None
        self._moving = False  # attached and not closed, in Python: a look at the counters would wait for the device
        self._alive: torch.Tensor | None = None  # numbers of the living, once they are few
        self._decided: Decision | None = None
        self._source: weakref.ref[StatefulMask] | None = None  # of a copy: the mask that it was copied from
        self._copied: torch.Tensor | None = None  # of a copy: gamma as it was copied
        self._versions: tuple[int, ...] = ()  # of gamma, rank and counters after the last change of our own
        self.__dict__["_home"] = self.gamma  # functional_call puts another tensor in its place
        self.reset()

    @property
    def n_features(self) -> int:
        """Number of entries of the mask (the paper's F)."""
        return math.prod(self.shape)

    @property
    def n_features_to_select(self) -> int:
        """How many features are kept in the end (the paper's M), with groups how many groups.

        With a budget or a strength it is known once the closing has begun; before that only what is always kept counts.
        """
        return self._n_forced + int(self.counters[Slot.KEPT])

    @property
    def variant(self) -> str:
        """Name of the variant."""
        return self.rule.variant

    @property
    def step(self) -> int:
        """Optimizer steps since the start of the warm-up."""
        return int(self.counters[Slot.STEP])

    @property
    def phase(self) -> Phase:
        """Phase of the next step; a closed mask leaves the rest of the training to the refinement of the weights."""
        if self.step < self.rule.warmup_steps:
            return Phase.WARM_UP
        if int(self.counters[Slot.OPEN]):
            return Phase.SELECTION
        return Phase.REFINEMENT if self.closed else Phase.CLOSING

    @property
    def closed(self) -> bool:
        """Whether gamma is binary with exactly M ones; it does not move any more."""
        self._settle(by_value=True)
        return self._decided is not None

    @property
    def n_alive(self) -> int:
        """Features (groups, where there are groups) that have not been eliminated."""
        self._settle(by_value=True)
        return self._n_forced + (int(self.counters[Slot.OPEN]) or int(self.counters[Slot.KEPT]))

    def ranking(self) -> torch.Tensor:
        """Order the features as of now: 1 for the best, 2 for the next, ...; in the shape of the mask.

        The entries of a group follow each other; what is always kept comes first, what is dropped last.
        """
        return self._ranks()[0]

    def support(self) -> torch.Tensor:
        """True for the M features that are kept; before the mask is closed, for those that are best now.

        Raises
        ------
        RuntimeError
            If gamma has not moved yet: nothing tells the features apart.
        """
        self._check_order()
        return self._ranks()[1]

    def _ranks(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Rank and support of every entry, in the shape of the mask."""
        ranking, n_kept = self._feature_ranking()
        parts = (ranking, ranking <= n_kept) if self.gates is None else self.gates.rank_columns(ranking, n_kept)
        ranks, support = (torch.from_numpy(part).to(self.gamma.device).reshape(self.shape) for part in parts)
        return ranks, support

    def _state(self) -> tuple[MaskState, bool]:
        """Read the state as arrays, and whether it is still open how many features a strength or a budget keeps."""
        self._settle(by_value=True)
        state = mask_state([part.detach().reshape(-1).cpu().numpy() for part in self._tensors()])
        return state, bool((state.rank == 0).any()) and not state.kept

    def _feature_ranking(self) -> tuple[np.ndarray, int]:
        """Ranks of the features as of now, and how many of the first would be kept."""
        state, is_open = self._state()
        if is_open and self.rule.strength is not None:
            state = decide_by_price(state, self.rule)
            return state.rank, int(state.kept)
        ranking = current_ranking(state, self.rule)
        if is_open and self.rule.costs is not None:
            return fill_budget(ranking, 0, self.rule.costs, self.rule.limit)
        return ranking, int(state.kept)

    def penalty(self) -> torch.Tensor:
        r"""Compute :math:`L_{1-2} + L_M` for M, over the features that gamma decides; zero once the mask is closed.

        Until the closing begins, :math:`L_B` takes the place of :math:`L_M` with a budget, and nothing with a strength.
        """
        state, is_open = self._state()
        gamma, rule = torch.from_numpy(state.gamma), self.rule
        if is_open and rule.strength is not None:
            return binary_penalty(gamma)
        if is_open and rule.costs is not None:
            return penalty(gamma, rule.size, rule.mu, torch.from_numpy(rule.costs).to(gamma))
        return penalty(gamma, int(state.kept), rule.mu)

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
        self._write(torch.from_numpy(ranking), n_kept, forced=2)

    def reset(self) -> None:
        """Go back to the start: gamma all ones, nothing decided, no step taken."""
        m, n = self.rule.n_features_to_select, self.rule.n_features
        self.counters.zero_()
        self._write(torch.arange(1, n + 1) * (m == n), m, n_open=0 if m == n else n)

    def extra_repr(self) -> str:
        """Tell what ``print(model)`` shows."""
        rule, shape = self.rule, self.shape[0] if len(self.shape) == 1 else self.shape
        aim = f"n_features_to_select={rule.n_features_to_select}" if rule.budget is None else f"budget={rule.budget:g}"
        groups = "" if self.gates is None else f", {self.gates.feature.size} groups"
        about = f"{shape}{groups}, {aim}, variant={rule.variant!r}"
        if rule.strength is not None:
            about = f"{shape}, strength={rule.strength:g}"
        if self.gamma.is_meta:  # there are no numbers to show
            return about
        return f"{about}, closed" if self.closed else f"{about}, alive={self.n_alive}"

    def _tensors(self) -> tuple[torch.Tensor, ...]:
        """gamma of the features, both moments, ranks and counters."""
        own, buffers = self.__dict__, self.__dict__["_buffers"]  # attributes of modules are slow to look up
        gamma = own["_parameters"]["gamma"] if own["gates"] is None else buffers["feature_gamma"]
        return gamma, buffers["first"], buffers["second"], buffers["rank"], buffers["counters"]

    def _write(self, rank: torch.Tensor, n_kept: int, n_open: int = 0, forced: int = 0) -> None:
        """Write ranks and counters; gamma of the living is one, and the moments are fresh."""
        with torch.no_grad():
            self.rank.copy_(rank)
            self.counters[1:] = self.counters.new_tensor([0, n_open, n_open == 0, forced, n_kept])
            self.first.zero_()
            self.second.zero_()
            self._drop_dead(torch.ones_like(self._tensors()[0]))
        self._update()

    def _spread_gamma(self, gamma: torch.Tensor) -> torch.Tensor:
        """Give each entry of the mask gamma of its feature; the two places behind the features are a one and a zero."""
        if self.gates is not None:
            gamma = torch.cat([gamma, gamma.new_tensor([1.0, 0.0])]).index_select(0, self.place)
        return gamma.reshape(self.shape)

    def _spread(self) -> None:
        if self.gates is not None:
            with torch.no_grad():
                self.gamma.copy_(self._spread_gamma(self.feature_gamma))

    def _check_order(self) -> None:
        n, m = self.rule.n_features, int(self.counters[Slot.KEPT])
        if int(self.counters[Slot.OPEN]) == n != m and not int(self.counters[Slot.AGE]):
            raise RuntimeError(
                f"nothing is selected yet: gamma has not moved in {self.step} steps (warm-up: {self.rule.warmup_steps}); "
                "attach the mask to the optimizer and train on"
            )

    # ---- what others write -----------------------------------------------------------------------------------------

    def _update(self) -> None:
        """Take over a state that the mask itself, or a checkpoint, has written."""
        if self.gamma.is_meta:
            return
        self.__dict__["_home"], self._source, self._copied, self._decided = self.gamma, None, None, None
        self._stepper = self._alive = None
        counters = self.counters.clone()
        if bool(counters[Slot.CLOSED]):
            self._check_counts()
            gamma = self._spread_gamma((self.rank <= counters[Slot.KEPT]).to(self.gamma.dtype))
            self._decided = Decision(gamma, gamma.reshape(-1).nonzero().flatten(), self.rank.clone(), counters)
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
            if source is not None and self._copied is not None and (written or not torch.equal(gamma, self._copied)):
                self._follow(source)
            decided = self._decided
            if decided is not None:
                if not (torch.equal(self.rank, decided.rank) and torch.equal(self.counters[1:], decided.counters[1:])):
                    self.rank.copy_(decided.rank)
                    self.counters.copy_(decided.counters)
                if not torch.equal(gamma, decided.gamma):
                    self._drop_dead(torch.ones_like(self._tensors()[0]))
            elif source is None:
                self._check_counts()
                if written:
                    self._drop_dead(self._tensors()[0])
        self._remember()

    def _check_counts(self) -> None:
        n_alive = int((self.rank <= self.counters[Slot.KEPT]).sum())
        if n_alive != (int(self.counters[Slot.OPEN]) or int(self.counters[Slot.KEPT])):
            raise RuntimeError(
                "the ranks and counters of this mask do not fit together: something has averaged its buffers; load a "
                "checkpoint, or copy the buffers instead (use_buffers=False)"
            )

    def _drop_dead(self, gamma: torch.Tensor) -> None:
        """Write gamma of the features, with zeros for those that are eliminated."""
        alive = (self.rank <= self.counters[Slot.KEPT]).reshape(gamma.shape)
        self._tensors()[0].copy_(gamma * alive)
        self._spread()

    def _follow(self, source: StatefulMask) -> None:
        """Take over the decisions of the mask that this one is an average of; gamma of the living stays averaged."""
        source._settle(by_value=True)
        averaged = self._tensors()[0].clone()
        for mine, theirs in zip(self.buffers(), source.buffers()):
            mine.copy_(theirs)
        self._drop_dead(averaged)
        tie = self._source
        self._update()
        if self._decided is None:
            self._source, self._copied = tie, self.gamma.detach().clone()

    def _check_gamma(self) -> None:
        """Raise if something other than the mask has moved gamma to where the rule never leaves it."""
        gamma, dead = self._tensors()[0].detach().reshape(-1), self.rank > self.counters[Slot.KEPT]
        moved = bool(((gamma < 0) | (gamma > 1) | (dead & (gamma != 0))).any())
        if moved or not torch.equal(self.gamma.detach(), self._spread_gamma(gamma)):
            raise RuntimeError(
                "gamma was changed between two steps by something other than the mask, for example an optimizer that "
                "wraps another one: attach the mask to the optimizer whose step() moves the weights"
            )

    # ---- copies, devices, checkpoints ------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        # A copy is not attached: the optimizer that it would step with is not copied along.
        bound = {"_handle": None, "_stepper": None, "_moving": False, "_versions": (), "_source": None, "_copied": None}
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
            result = fn(tensor)  # the mask keeps its type, and only the device is taken over
            return (tensor.to(result.device) if result.dtype != tensor.dtype else result).contiguous()

        super()._apply(moved, recurse)
        self.__dict__["_home"], self._versions, self._stepper = self.gamma, (), None
        if self._decided is not None:
            self._decided = Decision(*(moved(part) for part in self._decided))
        for name in ("_copied", "_alive"):
            if self.__dict__[name] is not None:
                self.__dict__[name] = moved(self.__dict__[name])
        return self

    def description(self) -> dict[str, Any]:
        """Shape, size, variant, strength and groups, as plain values: what a saved state belongs to."""
        rule, digest = self.rule, None
        if self.gates is not None:
            parts = [self.gates.group.astype(np.int64), self.gates.feature.astype(np.int64)]
            parts += [np.array(self.gates.budget or 0.0)] + ([] if self.gates.costs is None else [self.gates.costs])
            digest = hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16]
        about = {"gates": digest, "shape": list(self.shape), "strength": rule.strength, "variant": rule.variant}
        return {**about, "n_features_to_select": rule.n_features_to_select}

    def get_extra_state(self) -> torch.Tensor:
        """Write what the state belongs to, with the schedule, as the bytes of a JSON text, which every format can hold."""
        about = {"format": MASK_FORMAT, **self.description(), "schedule": schedule_of(self.rule) if self.step else None}
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
            raise ValueError(f"a mask saved in format {found}, this version of tamiz reads format {MASK_FORMAT}")
        for name, value in self.description().items():
            if about.get(name) != value:
                other = f"{name}={about.get(name)!r}, this mask has {name}={value!r}"
                other = "other groups, costs, budget, keep or drop" if name == "gates" else other
                raise ValueError(f"this state belongs to a mask with {other}; build the mask as the saved one")
        own = schedule_of(self.rule)
        if is_running and schedule is not None and schedule != own:
            if self._handle is not None:
                raise ValueError(
                    f"this state was saved in mid-selection with {schedule}, the mask is attached with {own}; attach with "
                    "the same schedule, or load before attach"
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
