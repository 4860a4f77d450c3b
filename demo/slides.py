"""The slides of the demo lectures: Latin letters and maths signs only, so that no CJK font is needed."""

from __future__ import annotations

from collections.abc import Callable

from PIL import Image, ImageDraw, ImageFont

Slide = Callable[[ImageDraw.ImageDraw], None]
SIZE = (640, 360)
INK, PAPER, ACCENT, PALE = "#1d2733", "#fbfaf5", "#b3362b", "#cfd8e3"


def draw(slide: Slide) -> bytes:
    """The slide as one raw RGB frame of ``SIZE``."""
    image = Image.new("RGB", SIZE, PAPER)
    slide(ImageDraw.Draw(image))
    return bytes(image.tobytes())


def _write(draw: ImageDraw.ImageDraw, at: tuple[int, int], text: str, size: int, colour: str = INK) -> None:
    # DejaVu has the maths signs and is on nearly every Linux; Pillow finds it by its file name.
    draw.text(at, text, fill=colour, font=ImageFont.truetype("DejaVuSans.ttf", size), anchor="mm")


def _title(draw: ImageDraw.ImageDraw, big: str, small: str) -> None:
    _write(draw, (320, 150), big, 52)
    draw.line((200, 205, 440, 205), fill=ACCENT, width=3)
    _write(draw, (320, 245), small, 24)


def _triangle(draw: ImageDraw.ImageDraw, legs: tuple[str, str], hypotenuse: str) -> None:
    corner, right, top = (170, 290), (410, 290), (170, 110)
    draw.polygon((corner, right, top), outline=INK, width=4)
    draw.rectangle((170, 268, 192, 290), outline=INK, width=2)
    _write(draw, (290, 318), legs[0], 28)
    _write(draw, (115, 200), legs[1], 28)
    _write(draw, (335, 170), hypotenuse, 28, ACCENT)


def pythagoras_title(draw: ImageDraw.ImageDraw) -> None:
    """The theorem alone."""
    _title(draw, "a² + b² = c²", "∠C = 90°")


def names(draw: ImageDraw.ImageDraw) -> None:
    """A right triangle with named sides."""
    _triangle(draw, ("a", "b"), "c")


def theorem(draw: ImageDraw.ImageDraw) -> None:
    """The triangle and the theorem."""
    _triangle(draw, ("a", "b"), "c")
    _write(draw, (500, 120), "a² + b² = c²", 28, ACCENT)


def question(draw: ImageDraw.ImageDraw) -> None:
    """Two legs given, the hypotenuse asked."""
    _triangle(draw, ("4 cm", "3 cm"), "?")


def answer(draw: ImageDraw.ImageDraw) -> None:
    """The sum worked out."""
    _triangle(draw, ("4 cm", "3 cm"), "5 cm")
    _write(draw, (500, 110), "9 + 16 = 25", 26)
    _write(draw, (500, 150), "√25 = 5", 26, ACCENT)


def ladder(draw: ImageDraw.ImageDraw) -> None:
    """A ladder of 13 m at a wall, its foot 5 m away."""
    draw.line((420, 40, 420, 310), fill=INK, width=8)
    draw.line((140, 310, 460, 310), fill=INK, width=4)
    draw.line((310, 310, 416, 56), fill=ACCENT, width=6)
    _write(draw, (330, 160), "13", 28, ACCENT)
    _write(draw, (365, 335), "5", 28)
    _write(draw, (455, 180), "?", 32)


def converse(draw: ImageDraw.ImageDraw) -> None:
    """From the sides to the right angle."""
    _title(draw, "a² + b² = c²  ⇒  90°", "(3, 4, 5)   (5, 12, 13)")


def newton_title(draw: ImageDraw.ImageDraw) -> None:
    """The law alone."""
    _title(draw, "F = m · a", "Newton's second law")


def cart(draw: ImageDraw.ImageDraw) -> None:
    """A cart that a force pushes."""
    draw.line((60, 290, 580, 290), fill=INK, width=4)
    draw.rectangle((260, 180, 420, 260), outline=INK, fill=PALE, width=4)
    for x in (290, 390):
        draw.ellipse((x - 16, 256, x + 16, 288), outline=INK, fill=PAPER, width=4)
    draw.line((130, 220, 250, 220), fill=ACCENT, width=6)
    draw.polygon(((258, 220), (236, 208), (236, 232)), fill=ACCENT)
    _write(draw, (180, 190), "F", 30, ACCENT)
    _write(draw, (340, 220), "m", 30)


def product(draw: ImageDraw.ImageDraw) -> None:
    """The cart and the force worked out."""
    cart(draw)
    _write(draw, (320, 90), "20 kg × 1.5 m/s² = 30 N", 32, ACCENT)
