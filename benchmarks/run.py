"""All benchmarks one after the other: `make bench`. Each prints ratios measured in one run, with its target beside.

The studies (``quality.py``, ``baselines_quality.py``, ``additive.py``, ``networks.py``, ``pairs.py``,
``pairs_calibration.py``) take long and are started by hand, and so is ``serve.py``, which needs Chromium.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent

if __name__ == "__main__":
    failed = []
    for script in ("speed.py", "mask.py", "baselines.py", "tables.py"):
        print(f"\n=== {script}", flush=True)
        if subprocess.run([sys.executable, str(HERE / script)], check=False).returncode:
            failed.append(script)
    if failed:
        sys.exit("these ended with an error: " + ", ".join(failed))
