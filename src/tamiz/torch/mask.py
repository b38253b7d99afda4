"""FeatureMask: E2E-FS inside any PyTorch model and training loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from tamiz._validation import resolve_n_features_to_select
from tamiz.core import Rule, Slot, current_ranking, fill_budget, penalty
from tamiz.core.gates import KEPT
from tamiz.core.state import N_SLOTS
from tamiz.torch._gated import entry_places, gates_digest, gather_gradient, mask_gates, spread_gamma
from tamiz.torch._handle import MaskHandle, find_stepping_optimizer
from tamiz.torch._mask_parts import Rest, check_description, check_shape, describe_mask
from tamiz.torch._stepping import MaskTensors, Stepper, mask_state
from tamiz.torch._strength import check_alone, is_undecided, open_penalty, ranking_by_strength
from tamiz.torch.fold import masked

if TYPE_CHECKING:
    from tamiz.torch.watching import MaskSummary


class FeatureMask(nn.Module):
    r"""Mask over the inputs of a model that ends with exactly M ones.

    Multiplies its input by gamma, element by element. Once attached to the optimizer that trains the model, gamma moves by
    the paper's rule in every step: it keeps its own moments, so that neither the optimizer nor its weight decay,
    learning-rate schedule, gradient clipping or scaler changes what is selected. A mask that is closed, or not attached,
    sends no gradient to gamma; a closed gamma that was changed from outside (by averaging the weights, for example) is
    set back to the selected features at the next forward.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the mask: the number of columns, or a shape that broadcasts against one sample. ``(1, 32, 32)`` picks
        pixels for all channels, ``(3, 32, 32)`` single values, ``(n_channels, 1)`` channels of a time series.
    n_features_to_select : int, float or None, default=None
        M: a number, a fraction in (0, 1), or None for half; with groups, of groups. Must be None with a budget or a strength.
    variant : str, default="soft"
        A name in ``tamiz.core.VARIANTS``: E2E-FS-Soft ("soft"), E2E-FS ("hard"), or "ranking", whose target falls slowly,
        so that one fit orders all features.
    groups : array-like of labels in the shape of the mask, or list of lists of numbers, default=None
        Entries of the mask with the same label share one entry of gamma, and are kept or eliminated together. In a list of
        lists, each holds the numbers of some entries of the flattened mask; the others stand alone.
    costs : array-like in the shape of the mask, default=None
        What each entry costs, from 0 on; a group costs the sum of its entries. Only with ``budget``.
    budget : float or None, default=None
        Takes the place of M: the kept entries cost at most this, and nothing left out would still fit.
    keep, drop : list of int or mask of bool, default=None
        Numbers of entries of the flattened mask that are always, or never, let through, with their groups. Kept ones count
        towards M or the budget.
    strength : float or None, default=None
        Takes the place of M, as a regulariser: the price of an entry in units of the loss, above 0. Gamma follows the loss
        + strength * sum(gamma) and is made binary; how many entries stay, from none to all, is left to the loss. The selection
        ends with the ramp. Not together with groups, costs, keep or drop.
    mu : float, default=1.0
        The paper's :math:`\mu`, weight of the count penalty beyond 1.
    rho : float, default=0.75
        The paper's :math:`\rho`, relaxation of the target of the soft variant.
    mask_learning_rate : float, default=0.01
        Learning rate of gamma.
    betas : pair of float, default=(0.5, 0.999)
        Decay rates of the moments of gamma (Adam).
    epsilon : float, default=1e-8
        Added to the denominator of the step of gamma (Adam).
    mask_optimizer : {"adam", "rmsprop", "sign", "sgd"}, default="adam"
        Solver of gamma: Adam, RMSprop, steps of equal length by the sign of the gradient, or plain projected gradient.
    device : torch.device or str, default=None
        Where the mask lies; None: the default device.
    dtype : torch.dtype, default=None
        Type of gamma: ``torch.float64``, else ``torch.float32``, since a step of 0.01 is lost in half precision.

    Attributes
    ----------
    gamma : Parameter
        The mask, in [0, 1]; binary once ``closed``.
    rule : Rule
        The settings, with the schedule of the last ``attach``.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> _ = torch.manual_seed(0)
    >>> x = torch.randn(256, 20)
    >>> y = x[:, 3] - 2 * x[:, 11]
    >>> mask = FeatureMask(20, n_features_to_select=2)
    >>> model = nn.Sequential(mask, nn.Linear(20, 1))
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    >>> handle = mask.attach(optimizer, warmup_steps=50, ramp_steps=300)
    >>> while not mask.closed:
    ...     optimizer.zero_grad()
    ...     nn.functional.mse_loss(model(x).squeeze(1), y).backward()
    ...     _ = optimizer.step()
    >>> mask.support().nonzero().flatten().tolist()
    [3, 11]
    """

    first: torch.Tensor
    second: torch.Tensor
    rank: torch.Tensor
    counters: torch.Tensor
    feature_gamma: torch.Tensor
    place: torch.Tensor

    def __init__(
        self,
        shape: int | Sequence[int],
        n_features_to_select: int | float | None = None,
        variant: str = "soft",
        *,
        groups: Any = None,
        costs: Any = None,
        budget: float | None = None,
        keep: Any = None,
        drop: Any = None,
        strength: float | None = None,
        mu: float = 1.0,
        rho: float = 0.75,
        mask_learning_rate: float = 0.01,
        betas: tuple[float, float] = (0.5, 0.999),
        epsilon: float = 1e-8,
        mask_optimizer: str = "adam",
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.shape = check_shape(shape)
        self._n_entries = math.prod(self.shape)
        options = {"groups": groups, "costs": costs, "budget": budget, "keep": keep, "drop": drop}
        if strength is not None:
            check_alone(strength, n_features_to_select, options)
        self.gates, self.group_names = mask_gates(self._n_entries, n_features_to_select, options)
        if self.gates is None:
            m = 0 if strength is not None else resolve_n_features_to_select(n_features_to_select, self._n_entries)
            counts: dict[str, Any] = {"n_features": self._n_entries, "n_features_to_select": m, "strength": strength}
        else:
            counts = self.gates.rule_options()
        n_features = counts["n_features"]
        self._options: dict[str, Any] = {
            **counts,
            "variant": variant,
            "mu": mu,
            "rho": rho,
            "mask_learning_rate": mask_learning_rate,
            "beta1": betas[0],
            "beta2": betas[1],
            "epsilon": epsilon,
            "mask_optimizer": mask_optimizer,
        }
        self.rule = Rule(**self._options)
        dtype = torch.float64 if dtype == torch.float64 else torch.float32
        self.gamma = nn.Parameter(torch.empty(self.shape, device=device, dtype=dtype))
        self.register_buffer("first", torch.empty(n_features, device=device, dtype=dtype))
        self.register_buffer("second", torch.empty(n_features, device=device, dtype=dtype))
        self.register_buffer("rank", torch.empty(n_features, device=device, dtype=torch.int32))
        self.register_buffer("counters", torch.empty(N_SLOTS, device=device, dtype=torch.int64))
        if self.gates is not None:
            self.register_buffer("feature_gamma", torch.empty(n_features, device=device, dtype=dtype))
            self.register_buffer("place", entry_places(self.gates).to(device), persistent=False)
        self._handle: MaskHandle | None = None
        self._moving = False  # attached and not closed, in Python: a look at the counters would wait for the device
        self._seen = False  # forward ran in training since the last step
        self._warned = False
        self._gamma_version: int | None = None  # version of gamma after the last change of our own
        self._stepper: Stepper | None = None
        self.reset()

    # ---- state -----------------------------------------------------------------------------------------------------

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

    def summary(self, names: Sequence[str] | None = None, n_best: int = 10) -> MaskSummary:
        """Return where the mask stands: phase, features alive, sum of gamma, and the best features; ``print`` shows it."""
        from tamiz.torch.watching import summarize_mask

        return summarize_mask(self, names, n_best)

    def plot(self, names: Sequence[str] | None = None, ax: Any = None, n_shown: int = 50) -> Any:
        """Draw gamma with matplotlib: an image where the mask has rows and columns, else bars, the best first."""
        from tamiz.torch.watching import plot_mask

        return plot_mask(self, names, ax, n_shown)

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

    # ---- forward ---------------------------------------------------------------------------------------------------

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``x * gamma``."""
        gamma: torch.Tensor = self.gamma
        mine, theirs = gamma.shape, x.shape
        if theirs[-1:] != mine and (
            len(theirs) < len(mine) or any(a not in (1, b) for a, b in zip(mine[::-1], theirs[::-1]))
        ):
            raise ValueError(f"a mask of shape {tuple(mine)} does not fit an input of shape {tuple(theirs)}")
        compiling = torch.compiler.is_compiling()
        if not self._moving:
            gamma = gamma.detach() if compiling else self._resting_gamma()
        if gamma.dtype != x.dtype and (x.is_floating_point() or x.is_complex()):
            gamma = gamma.to(x.dtype)
        if compiling or not torch.is_grad_enabled() or torch.jit.is_tracing():
            return x * gamma
        self.__dict__["_seen"] = True  # nn.Module.__setattr__ is slow
        return masked(x, gamma)

    def _resting_gamma(self) -> torch.Tensor:
        """Return gamma without a gradient: the mask is closed or not attached."""
        self._undo_changes()
        if not torch.is_grad_enabled() or torch._C._are_functorch_transforms_active():
            return self.gamma.detach()
        # Not detached: data-parallel wrappers, and a loop that trains nothing but the mask, need gamma in the graph.
        return Rest.apply(self.gamma, self if self.training and not self._warned and not self.closed else None)

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

    # ---- attaching -------------------------------------------------------------------------------------------------

    def attach(
        self,
        optimizer: torch.optim.Optimizer,
        *,
        warmup_steps: int = 0,
        ramp_steps: int = 2000,
        max_steps: int | None = None,
    ) -> MaskHandle:
        """Let gamma move with every step of ``optimizer``; the training loop stays as it is.

        Parameters
        ----------
        optimizer : torch.optim.Optimizer
            The optimizer of the model that holds the mask; ``model.parameters()`` may be handed to it whole. The gradient
            of gamma is taken away before the optimizer's own step, so the optimizer never moves it. Of an optimizer that
            wraps another (SAM, Accelerate), the one that steps is followed.
        warmup_steps : int, default=0
            Steps during which only the weights are trained.
        ramp_steps : int, default=2000
            The paper's T: steps until the penalty alone decides.
        max_steps : int or None, default=None
            Steps of selection after which the M largest are kept, with a ``ConvergenceWarning``; None: four ramps. Must be
            None with a strength, whose selection ends with the ramp.

        Returns
        -------
        MaskHandle
            ``remove()`` does the same as :meth:`detach`.
        """
        rule = Rule(**self._options, warmup_steps=warmup_steps, ramp_steps=ramp_steps, max_steps=max_steps)
        if self._handle is not None:
            raise RuntimeError("this mask is attached already; call detach() first")
        inner = find_stepping_optimizer(optimizer, self.gamma)
        if not self.gamma.requires_grad:
            raise ValueError("gamma does not require a gradient: call mask.gamma.requires_grad_() before attach")
        self._undo_changes()
        self.rule = rule
        self._handle = MaskHandle(inner, self.gamma, self.take_step, self._release)
        self._update()
        return self._handle

    def detach(self) -> None:
        """Take the mask off its optimizer; gamma stays as it is."""
        if self._handle is not None:
            self._handle.remove()

    def _release(self) -> None:
        self._handle = None
        self._moving = False

    def take_step(self) -> None:
        """Move gamma by its gradient and take the gradient away; ``attach`` calls this before each optimizer step."""
        own = self.__dict__  # attributes of modules are slow to look up and to set
        tensors = self._tensors()
        gamma = own["_parameters"]["gamma"]
        gradient = gamma.grad
        if not own["_moving"] and self.closed:
            self.counters[Slot.STEP] += 1
        elif gradient is None:
            raise RuntimeError(f"gamma has no gradient: {self._why_no_gradient()}")
        else:
            stepper = own["_stepper"]
            if stepper is None or not stepper.serves(tensors, self.rule):
                stepper = own["_stepper"] = Stepper(tensors, self.rule)
                own["_gamma_version"] = None
            if gamma._version != own["_gamma_version"]:
                self._check_gamma()
            flat = gradient.detach().reshape(-1)
            if self.gates is not None:
                flat = gather_gradient(flat, self.place, self.rule.n_features)
            if stepper.step(flat):
                own["_moving"] = False
            if self.gates is not None:
                self._spread()
            own["_gamma_version"] = gamma._version
        gamma.grad = None
        own["_seen"] = False

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

    def _why_no_gradient(self) -> str:
        if not self.gamma.requires_grad:
            return (
                "it was frozen before the mask closed; call mask.gamma.requires_grad_(), or mask.finalize() to close it"
            )
        if self._seen:
            return "the loss does not depend on the mask's output, or the gradients were cleared before the step"
        return "the mask has not seen any data: its forward did not run in training since the last step"

    # ---- saving, copying, moving -----------------------------------------------------------------------------------

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        def moved(tensor: torch.Tensor) -> torch.Tensor:
            result = fn(tensor)
            if tensor.is_floating_point() and result.dtype not in (torch.float32, torch.float64):
                # A step of 0.01 is lost in half precision: the mask keeps its type, and only the device is taken over.
                result = tensor.to(result.device)
            return result.contiguous()  # the compiled step writes into the memory, in the order of the features

        self._gamma_version = None
        return super()._apply(moved, recurse)

    def __getstate__(self) -> dict[str, Any]:
        # A copy is not attached: the optimizer that it would step with is not copied along.
        bound = {"_handle": None, "_stepper": None, "_gamma_version": None, "_moving": False, "_warned": False}
        return {**super().__getstate__(), **bound}

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
