"""Whether a Chinese clause asks something, told from its words alone, and only where they leave little
doubt.
"""

from __future__ import annotations

import re

_ASKING_WORD = re.compile("什么|怎么|怎样|多少|哪|谁|几个|几次|是不是|能不能|有没有|可不可以|对不对|会不会|要不要")
_ASKING_END = re.compile(
    "(什么|为什么|怎么办|怎么样|多少|谁|哪里|哪儿|哪个|哪些|对不对|是不是|行不行|好不好|几个|多[大高长远重深宽久快])$"
)
_ASKED_ATTRIBUTE = re.compile("(是|有|等于)(什么|多少|哪个|哪些|几个)[^什怎哪]{1,3}$")
_ASKING_START = re.compile("^(那么?|所以|但是|请问|同学们)?(为什么|怎么|什么是|谁|哪|是不是|能不能|有没有)")
_TELLING = re.compile(
    "无论|不管|不论|知道|看看|看一下|了解|研究|讨论|思考|考虑|判断|说明|解释|告诉|取决于|决定|没什么|什么的|怎么都|什么都|谁都|哪怕"
)
_LAST_CLAUSE = re.compile("[^，、,\\s]*$")


def is_question(sentence: str) -> bool:
    """Whether ``sentence`` (Chinese, without its final mark) asks: 吗 always, 呢 after a question word, else
    a question word in its last clause that opens or closes it and is not governed by a verb such as 知道.

    >>> [is_question(text) for text in ("你们听懂了吗", "什么是惯性呢", "这两个量是什么关系", "等于多少")]
    [True, True, True, True]
    >>> [is_question(text) for text in ("我们还没讲呢", "我知道这是什么", "来看看什么是力", "走吧")]
    [False, False, False, False]
    """
    if sentence.endswith("吗"):
        return True
    if sentence.endswith("呢"):
        return _ASKING_WORD.search(sentence) is not None
    last = _LAST_CLAUSE.search(sentence)
    clause = last.group() if last else ""
    if _TELLING.search(clause):
        return False
    return any(pattern.search(clause) for pattern in (_ASKING_END, _ASKED_ATTRIBUTE, _ASKING_START))
