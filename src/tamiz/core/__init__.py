"""The rule of the paper, once: settings, schedule, the step, losses and history. No framework, no input or output.

``tamiz.core.step`` states the step for NumPy arrays, ``tamiz.core.compiled`` the same step compiled for arrays on the CPU.
Import names from their modules: ``compiled`` and ``history`` load numba, the others do not.
"""
