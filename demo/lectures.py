"""The demo lectures as they are written: our own words, the pauses between them, the slides behind them."""

from __future__ import annotations

from dataclasses import dataclass

import slides


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence, the silence after it, and the number of the slide that stands while it is spoken."""

    text: str
    pause_ms: int
    slide: int


@dataclass(frozen=True, slots=True)
class Lecture:
    """A lecture as written: ``name`` is the stem of its files, ``language`` is ``zh`` or ``en``."""

    name: str
    language: str
    title: str
    voice: str
    lines: tuple[Line, ...]
    slides: tuple[slides.Slide, ...]


PYTHAGORAS = Lecture(
    name="pythagoras",
    language="zh",
    title="勾股定理",
    voice="zm_yunjian",
    lines=(
        Line("大家好，这节课我们讲一个古老而美丽的结论，勾股定理。", 700, 0),
        Line("先画一个直角三角形，夹着直角的两条边叫做直角边，直角对面的那条边叫做斜边。", 600, 1),
        Line("勾股定理告诉我们，两条直角边的平方和，等于斜边的平方。", 600, 2),
        Line("古希腊的毕达哥拉斯也证明过它，所以西方人叫它毕达哥拉斯定理。", 500, 2),
        Line("现在请你想一想，如果两条直角边是三厘米和四厘米，斜边有多长呢？", 3000, 3),
        Line("九加十六等于二十五，再开平方根，斜边就是五厘米。", 600, 4),
        Line("像三、四、五这样的三个整数，叫做一组勾股数。", 700, 4),
        Line("再看一道题，一架长十三米的梯子靠在墙上，梯脚离墙五米，梯子的顶端有多高？", 1500, 5),
        Line("一百六十九减去二十五，等于一百四十四，所以高度是十二米。", 600, 5),
        Line("反过来，如果三条边满足这个关系，它就是直角三角形，这叫做勾股定理的逆定理。", 700, 6),
        Line("好，今天的作业在第六十二页，下课！", 1000, 6),
    ),
    slides=(
        slides.pythagoras_title,
        slides.names,
        slides.theorem,
        slides.question,
        slides.answer,
        slides.ladder,
        slides.converse,
    ),
)

NEWTON = Lecture(
    name="newton",
    language="en",
    title="Newton's second law",
    voice="am_michael",
    lines=(
        Line("Hello, and welcome to our short course on mechanics.", 500, 0),
        Line("Why does a full shopping cart need a harder push than an empty one?", 2000, 1),
        Line("Newton's second law gives the answer: the net force equals mass times acceleration.", 600, 0),
        Line("Suppose a cart has a mass of twenty kilograms, and it speeds up.", 400, 1),
        Line("If its acceleration is one point five, the net force is thirty newtons.", 700, 2),
        Line("Double the mass, and the same force gives only half the acceleration.", 600, 2),
        Line("Next week we will add friction, so please read chapter twelve.", 1000, 0),
    ),
    slides=(slides.newton_title, slides.cart, slides.product),
)
