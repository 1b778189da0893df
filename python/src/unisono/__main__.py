"""python -m unisono doctor"""

import argparse
import sys

from unisono import doctor

parser = argparse.ArgumentParser(prog="python -m unisono")
parser.add_argument("command", choices=["doctor"], help=doctor.__doc__.partition(": ")[2])
parser.parse_args()
sys.exit(doctor.main())
