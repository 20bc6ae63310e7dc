"""Run the fence's settings in an old package and in this one, and say where they differ."""

import functools
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.fence.places import MOVED, RENAMED

ROOT = Path(__file__).resolve().parents[2]


#: Texts of a guarantee may be put better, and so fingerprints of releases change that hold them;
#: everything else of it is compared.
WORDS = frozenset({"mechanism", "source", "sha256"})


def first_difference(old, new, where=""):
    """Return where two recorded values first differ, and how; None if they are equal."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            if key in WORDS and isinstance(old.get(key), str) and isinstance(new.get(key), str):
                continue
            here = f"{where}[{key!r}]"
            if key in MOVED and ((key in old) != (key in new)):
                continue
            if key == "estimator" and RENAMED.get(new.get(key), new.get(key)) == old.get(key):
                continue
            if key not in old or key not in new:
                return f"{here}: only in the {'new' if key in new else 'old'} package"
            if found := first_difference(old[key], new[key], here):
                return found
        return None
    if isinstance(old, list) and isinstance(new, list):
        for i, (one, other) in enumerate(zip(old, new, strict=False)):
            if found := first_difference(one, other, f"{where}[{i}]"):
                return found
        return None if len(old) == len(new) else f"{where}: {len(old)} -> {len(new)} entries"
    return None if type(old) is type(new) and old == new else f"{where}: {old!r} -> {new!r}"


def differences(old, new):
    """Yield the settings that differ, or that failed, and why."""
    for name in dict.fromkeys([*old, *new]):
        one, other = old.get(name, {}), new.get(name, {})
        # The names by which the fence looks into a package may be gone from one of them.
        if "(asked)" in name and ("lacks" in one or "lacks" in other):
            continue
        if failed := [each for each in (one, other) if "values" not in each]:
            yield name, f"did not run: {failed[0]}"
        elif found := first_difference(one, other):
            yield name, found


def extracted(commit):
    """Return a folder with the package as it was, and nothing else of the repository."""
    git = functools.partial(subprocess.run, cwd=ROOT, check=True, capture_output=True)
    resolved = git(["git", "rev-parse", "--verify", f"{commit}^{{commit}}"], text=True).stdout
    folder = ROOT / ".fence" / resolved.strip()
    if not folder.exists():
        packed = git(["git", "archive", resolved.strip(), "skdpsurv"]).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
    return folder


def start(package, out, only):
    """Begin to record the settings with a package; this checkout's tests, whichever it is."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    paths = {"PYTHONPATH": os.pathsep.join([str(package), str(ROOT)]), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-P", "-m", "tests.fence.record", str(package), str(out), only]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, **one_thread, **paths})


def main(commit, only=""):
    if not commit:
        print("Say beside which commit: make fence OLD=<commit>", file=sys.stderr)
        return 2
    old = extracted(commit)
    outs = [ROOT / ".fence" / name for name in ("old.json", "new.json")]
    runs = [start(package, out, only) for package, out in zip((old, ROOT), outs, strict=True)]
    codes = [run.wait() for run in runs]
    if any(codes):
        return 2
    recorded = [json.loads(out.read_text()) for out in outs]
    found = list(differences(*recorded))
    for name, why in found:
        print(f"DIFFERS  {name}\n         {why}")
    unread = sum("lacks" in each for each in [*recorded[0].values(), *recorded[1].values()])
    print(f"{len(recorded[1])} runs, {len(found)} differ" + (f", {unread} not read" * (unread > 0)))
    return int(bool(found) or not recorded[1])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
