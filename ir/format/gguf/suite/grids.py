"""Writes ../grids.bin, the points of the grid types, with gguf 0.19.0: python grids.py."""

import pathlib

from gguf import quants

names = ("IQ1_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S")
data = b"".join(bytes.fromhex(getattr(quants, name).grid_hex.decode()) for name in names)
pathlib.Path(__file__).with_name("..").resolve().joinpath("grids.bin").write_bytes(data)
