"""R's flexmix: the same mixture of regressions, from the same start."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from hetrisk.bench.adapters.base import Missing
from hetrisk.core.numerics.rows import FloatArray, IntArray

SCRIPT = """
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]; n <- as.integer(arguments[2]); d <- as.integer(arguments[3])
suppressMessages(library(flexmix))
values <- readBin(file.path(folder, "rows.bin"), "double", n * (d + 1))
rows <- as.data.frame(matrix(values, nrow = n))
names(rows) <- c(paste0("x", seq_len(d)), "y")
start <- readBin(file.path(folder, "start.bin"), "integer", n)
fit <- function(most) flexmix(y ~ ., data = rows, cluster = start,
  control = list(iter.max = most, minprior = 0, tolerance = 1e-7, verbose = 0))
invisible(fit(2))
elapsed <- system.time(model <- fit(500))[["elapsed"]]
cat(sprintf('{"seconds": %.6f, "log_likelihood": %.10g, "iterations": %d}',
  elapsed, as.numeric(logLik(model)), model@iter))
"""


@dataclass(frozen=True)
class FlexmixFit:
    """What flexmix reached, and how long it took."""

    seconds: float
    log_likelihood: float
    iterations: int


class Flexmix:
    """`flexmix::flexmix` with Gaussian components, each with its own variance."""

    name = "R flexmix"

    def version(self) -> str:
        """Versions of R and flexmix; raises `Missing` where either is not installed."""
        if shutil.which("Rscript") is None:
            raise Missing("Rscript is not installed (Debian: r-cran-flexmix)")
        code = 'cat(R.version.string, "flexmix", as.character(packageVersion("flexmix")))'
        done = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True)
        if done.returncode:
            raise Missing("R has no package flexmix (Debian: r-cran-flexmix)")
        return done.stdout.strip()

    def fit(self, X: FloatArray, y: FloatArray, start: IntArray) -> FlexmixFit:
        """Run EM to convergence from hard assignments ``start`` (codes from 0)."""
        with TemporaryDirectory() as folder:
            np.asfortranarray(np.column_stack([X, y])).T.tofile(Path(folder) / "rows.bin")
            (start + 1).astype(np.int32).tofile(Path(folder) / "start.bin")
            script = Path(folder) / "fit.R"
            script.write_text(SCRIPT)
            done = subprocess.run(
                ["Rscript", str(script), folder, str(len(y)), str(X.shape[1])],
                capture_output=True,
                text=True,
            )
        if done.returncode:
            raise Missing(f"flexmix failed: {done.stderr.strip()[-200:]}")
        return FlexmixFit(**json.loads(done.stdout.splitlines()[-1]))
