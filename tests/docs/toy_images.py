"""toy_images.py: writes small stand-ins for CIFAR-10's binary files into the working directory.

cifar-10-batches-bin/ has data_batch_1.bin and test_batch.bin, with one bright square on a dark ground in each image, whose
color says which class it is.
"""

import pathlib
import random

CLASSES, SIDE, SQUARE = 10, 32, 8


def image(draw):
    """A record: the label, then red, green and blue line by line."""
    label = draw.randrange(CLASSES)
    top, left = (draw.randrange(SIDE - SQUARE) for _ in "yx")
    color = [255 if label >> bit & 1 else 90 for bit in (0, 1, 2)]
    if label > 7:
        color = [part // 2 for part in color]
    planes = bytes([label])
    for channel in color:
        plane = bytearray(draw.randrange(40) for _ in range(SIDE * SIDE))
        for y in range(top, top + SQUARE):
            plane[y * SIDE + left:y * SIDE + left + SQUARE] = bytes([channel]) * SQUARE
        planes += bytes(plane)
    return planes


def main():
    draw = random.Random(1)
    folder = pathlib.Path("cifar-10-batches-bin")
    folder.mkdir(exist_ok=True)
    for name, count in (("data_batch_1.bin", 100), ("test_batch.bin", 30)):
        (folder / name).write_bytes(b"".join(image(draw) for _ in range(count)))


if __name__ == "__main__":
    main()
