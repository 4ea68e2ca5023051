# Writes pixels.json: pictures resized by Pillow in floats (mode F, BILINEAR, which averages over what a result covers).
# Python 3.11, Pillow 13.0, NumPy 2.4:
#
#   python3 js/test/testdata/pixels.py > js/test/testdata/pixels.json

import json

import numpy as np
from PIL import Image


def picture(w, h):
    """Pixel (x, y) has channel c = (37 x + 91 y + 50 c) mod 256."""
    y, x, c = np.mgrid[:h, :w, :3]
    return ((37 * x + 91 * y + 50 * c) % 256).astype(np.float32)


def resize(channel, size, box=None):
    return np.asarray(Image.fromarray(channel, mode="F").resize(size, Image.Resampling.BILINEAR, box=box))


def channels(image, size, box=None):
    return np.stack([resize(np.ascontiguousarray(image[..., c]), size, box) for c in range(3)])


def rounded(values):
    return [round(float(v), 4) for v in values.ravel()]


# 17 × 9 pixels cover 5 × 4: a centred box of 11.25 × 9.
cover = channels(picture(17, 9), (5, 4), (2.875, 0, 14.125, 9))
# 9 × 30 pixels in 4 × 5: 2 × 5 of them from column 1 on. The luma is that of Rec. 601.
luma = picture(9, 30) @ np.array([0.299, 0.587, 0.114], np.float32)
contain = np.zeros((5, 4), np.float32)
contain[:, 1:3] = resize(luma, (2, 5))
# 3 × 2 pixels stretched to 7 × 5.
stretch = channels(picture(3, 2), (7, 5)).transpose(1, 2, 0)
print(json.dumps({"cover": rounded(cover), "contain": rounded(contain), "stretch": rounded(stretch)}))
