"""What the checks share."""
import pathlib
import subprocess

FILES = pathlib.Path(__file__).resolve().parent / "files"


def output(program, words, environment, **more):
    return subprocess.run([str(program)] + words, env=environment, capture_output=True, text=True,
                          timeout=60, **more)
