"""Shared by the checks."""
import pathlib
import subprocess

# Finds a program that never ends; one with sanitizers on a busy machine may take long.
LIMIT_S = 300
LINK = "alpha=5us,beta=12.5GB/s"
MEASURED = "../../data/nccl/measured.csv"  # from FILES
FILES = pathlib.Path(__file__).resolve().parent / "files"


def output(program, words, environment, **more):
    return subprocess.run([str(program)] + words, env=environment, capture_output=True, text=True,
                          timeout=LIMIT_S, **more)
