"""Multiply small matrices in place, compiled: what the layers of a network cost.

Written out instead of called from BLAS: a library call may allocate and start threads of its own, and several starts of a
network run side by side. The inner loop is given to the compiler as operations on vectors: the sums of a tile of eight rows
and up to 32 columns stay in registers until they are complete, which no loop over arrays gets it to do. Factors that fit
into the first cache together with a tile (some 64 columns of a batch, see ``PANEL``) run at the speed of BLAS.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable

from tamiz.core.compiled import IN_PLACE, INLINED

#: Widths are padded to a multiple of this, the float32 numbers in the largest vector register.
PADDING = 64 // np.dtype(np.float32).itemsize
#: Long rows are multiplied in panels of so many columns.
PANEL = 64

_ROWS, _WIDE = 8, 32


def _make_tile(rows: int, lanes: int) -> Any:
    """Return a function that writes ``rows`` times ``lanes`` entries of a product, the sum of ``n`` outer products."""

    @intrinsic
    def tile(typing_context, a, start, row_stride, step, b, out, column, out_start, width, n, add):
        signature = types.void(a, *[types.intp] * 3, b, out, *[types.intp] * 4, types.boolean)

        def generate(context, builder, signature, arguments):
            a, b, out = (
                context.make_array(signature.args[place])(context, builder, arguments[place]).data
                for place in (0, 4, 5)
            )
            start, row_stride, step = arguments[1:4]
            column, out_start, width, n, add = arguments[6:]
            number, lane = ir.FloatType(), ir.IntType(32)
            vector = ir.VectorType(number, lanes) if lanes > 1 else number
            nothing, zero = ir.Constant(vector, ir.Undefined), ir.Constant(vector, None if lanes > 1 else 0.0)

            def along(place, stride, count):
                return builder.add(place, builder.mul(stride, ir.Constant(stride.type, count)))

            def vector_at(data, place):
                return builder.bitcast(builder.gep(data, [place]), vector.as_pointer())

            targets = [vector_at(out, along(out_start, width, row)) for row in range(rows)]
            sums = [
                cgutils.alloca_once_value(builder, builder.select(add, builder.load(target, align=4), zero))
                for target in targets
            ]
            with cgutils.for_range(builder, n) as loop:
                values = builder.load(vector_at(b, builder.add(column, builder.mul(loop.index, width))), align=4)
                first = builder.add(start, builder.mul(loop.index, step))
                for row, total in enumerate(sums):
                    factor = builder.load(builder.gep(a, [along(first, row_stride, row)]))
                    if lanes > 1:
                        alone = builder.insert_element(nothing, factor, ir.Constant(lane, 0))
                        everywhere = ir.Constant(ir.VectorType(lane, lanes), None)
                        factor = builder.shuffle_vector(alone, nothing, everywhere)
                    # Fused into one operation where the processor has it.
                    product = builder.fmul(factor, values, flags=("contract",))
                    builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)
            for target, total in zip(targets, sums):
                builder.store(builder.load(total), target, align=4)
            return context.get_dummy_value()

        return signature, generate

    return tile


_tile, _narrow_tile, _column_tile = (_make_tile(_ROWS, lanes) for lanes in (_WIDE, PADDING, 1))
_row, _narrow_row, _entry = (_make_tile(1, lanes) for lanes in (_WIDE, PADDING, 1))


@register_jitable(**INLINED)
def _multiply(a, row_stride, step, b, out, n, add):
    """Compute ``out[r] = sum_k a[r * row_stride + k * step] * b[k]`` over ``n`` rows of ``b``, or add it to ``out``."""
    n_rows, width = out.shape
    i = 0
    while i < n_rows:
        start, u = i * row_stride, 0
        if i + _ROWS <= n_rows:
            while u + _WIDE <= width:
                _tile(a, start, row_stride, step, b, out, u, i * width + u, width, n, add)
                u += _WIDE
            while u + PADDING <= width:
                _narrow_tile(a, start, row_stride, step, b, out, u, i * width + u, width, n, add)
                u += PADDING
            while u < width:
                _column_tile(a, start, row_stride, step, b, out, u, i * width + u, width, n, add)
                u += 1
            i += _ROWS
        else:
            while u + _WIDE <= width:
                _row(a, start, row_stride, step, b, out, u, i * width + u, width, n, add)
                u += _WIDE
            while u + PADDING <= width:
                _narrow_row(a, start, row_stride, step, b, out, u, i * width + u, width, n, add)
                u += PADDING
            while u < width:
                _entry(a, start, row_stride, step, b, out, u, i * width + u, width, n, add)
                u += 1
            i += 1


@njit(**IN_PLACE)
def multiply(a, b, out, add):
    """Compute ``out = a @ b``, or ``out += a @ b`` if ``add``.

    Examples
    --------
    >>> out = np.zeros((1, 2), np.float32)
    >>> multiply(np.float32([[1, 2]]), np.float32([[1, 0], [0, 1]]), out, False)
    >>> out.tolist()
    [[1.0, 2.0]]
    """
    _multiply(a, a.shape[1], 1, b, out, a.shape[1], add)


@njit(**IN_PLACE)
def multiply_transposed(a, b, out):
    """Compute ``out = a.T @ b``.

    Examples
    --------
    >>> out = np.zeros((2, 1), np.float32)
    >>> multiply_transposed(np.float32([[1, 2]]), np.float32([[3]]), out)
    >>> out.tolist()
    [[3.0], [6.0]]
    """
    _multiply(a, 1, a.shape[1], b, out, a.shape[0], False)


@njit(**IN_PLACE)
def transpose(a, out):
    """Copy ``a.T`` into ``out``.

    Examples
    --------
    >>> out = np.zeros((2, 1), np.float32)
    >>> transpose(np.float32([[1, 2]]), out)
    >>> out.tolist()
    [[1.0], [2.0]]
    """
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j, i] = a[i, j]
