"""Run the command line as ``python -m skdpsurv``."""

from __future__ import annotations

from skdpsurv.cli import app

if __name__ == "__main__":
    app(prog_name="skdpsurv")
