#!/usr/bin/env python3
"""mekik-validate finds nothing in the plugins of this build. Schemes share their code: without --long some of each kind stand for all."""
import concurrent.futures
import glob
import json
import os
import subprocess
import sys

SOURCE = os.environ.get("MEKIK_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("MEKIK_BUILD") or os.path.join(SOURCE, "build", "release")
# (library, check) -> what is known and not mended yet.
KNOWN = {("loader_safetensors", "hostile.heap"): "ends the process when one of the allocations of open() is refused",
         ("backend_vulkan", "hostile.heap"): "a task throws when an allocation is refused, and lavapipe follows null pointers",
         ("backend_vulkan", "behaviour.process"): "lavapipe keeps its threads"}
QUICK_SCHEMES = {"float", "q4_0", "q4_k", "iq2_xxs", "nvfp4", "tq1_0", "gptq", "fp8", "bitsandbytes"}


def validate(library):
    name = os.path.basename(library)[:-3]
    result = subprocess.run([os.path.join(BUILD, "bin", "mekik-validate"), "--json", "--jobs", "1", "--time-limit", "300", library],
                            capture_output=True, text=True, errors="replace", timeout=1800)
    checks = json.loads(result.stdout)["checks"]
    bad = [c for c in checks if c["verdict"] == "failed" and (name, c["check"]) not in KNOWN]
    return len(bad), "\n".join(f"{name} {c['check']}: {fault}" for c in bad for fault in c["faults"])


def main(arguments):
    libraries = sorted(glob.glob(os.path.join(BUILD, "lib", "mekik", "*.so")))
    if "--long" not in arguments:
        libraries = [p for p in libraries if not os.path.basename(p).startswith("scheme_") or os.path.basename(p)[7:-3] in QUICK_SCHEMES]
    libraries.sort(key=lambda p: not os.path.basename(p).startswith("backend_"))  # the longest ones first
    assert libraries, "no plugins in the build"
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        answers = list(pool.map(validate, libraries))
    bad = [text for code, text in answers if code != 0]
    print("\n".join(bad))
    print(f"{len(libraries)} plugins, {len(bad)} with faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
