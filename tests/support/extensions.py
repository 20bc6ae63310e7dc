"""The examples of docs/extending, as modules, with the pages of proofs that they are about."""

import importlib.util
import sys
from pathlib import Path

from skdpsurv.dp.proofs import PROOFS

#: What the package's own tests prove of the examples' classes.
PROVED = {
    "poisson.CappedPoisson": "linear.md#constants",
    "histogram.Counts": "noise.md#laplace-on-a-lattice",
    "exponential.EventsAndTime": "noise.md#laplace-on-a-lattice",
    "product_laplace.ProductLaplace": "noise.md#laws-of-noise",
}
PROOFS.update(PROVED)
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "examples" / "extending"


def extension(name):
    """Return an example, imported once, so that what it defines can be pickled."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
