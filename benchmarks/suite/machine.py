"""What the measurements ran on."""

import importlib.metadata
import os
import platform
from pathlib import Path

PACKAGES = ("numpy", "scipy", "scikit-learn", "polars")


def describe():
    from threadpoolctl import threadpool_info

    memory = next(
        line
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemTotal")
    )
    blas = {
        f"{found['internal_api']} {found['version']}"
        for found in threadpool_info()
        if found["user_api"] == "blas"
    }
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(memory.split()[1]) / 2**20),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in PACKAGES},
        "blas": ", ".join(sorted(blas)),
    }


def _processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()
