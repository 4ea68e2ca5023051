"""Writes arrays.npz with numpy 2.4.6: python make.py."""

import pathlib

import numpy

numpy.savez_compressed(
    pathlib.Path(__file__).with_name("arrays.npz"),
    f=numpy.arange(6, dtype="<f4").reshape(2, 3) / 4,
    columns=numpy.asfortranarray(numpy.arange(24, dtype="<i8").reshape(2, 3, 4)),
    big=numpy.array([1.5, -2], dtype=">f8"),
    b=numpy.array([True, False]),
    c=numpy.array([[1 + 2j]], dtype="<c8"),
    h=numpy.array([0.5, 65504], dtype="<f2"),
    scalar=numpy.array(7, dtype="u1"),
    empty=numpy.zeros((0, 3), dtype="<u4"),
    text=numpy.array(["a"]),
    record=numpy.zeros(1, dtype=[("a", "<f4")]),
)
