"""Prose with its punctuation, out of public repositories under free licences.

``python -m training.corpus OUT`` clones each source at its pinned commit (or reads a copy under ``--mirror``), takes
the prose out of its pages and writes ``OUT/<language>.<part>.txt``: a paragraph a line, ``part`` is ``train`` or
``held``. No text is kept in this project; what ships are the weights that were learnt from it.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import io
import json
import re
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

from training.sources import SOURCES, Source

HELD_OUT_PERCENT = 4
SHORTEST_PARAGRAPH = {"zh": 12, "en": 40}
"""In characters; shorter ones are captions and headings."""

_FENCE = re.compile(r"^\s*(```|~~~).*?^\s*\1\s*$", re.M | re.S)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])")
_ROLE = re.compile(r":[a-z]+:`[^`]*`")
_MATH = re.compile(r"\${1,2}[^$]{1,120}?\${1,2}")
_CODE = re.compile(r"`+([^`]*)`+")
_BRACKETED = re.compile(r"[（(【\[{][^（）()【】\[\]{}]{0,80}[）)】\]}]")
_LEADING = re.compile(r"^\s*([-*+>]|\d+[.)、]|[#:!?]+\s*(note|tip|warning|info|success)?)\s*", re.I)
_BLOCK = re.compile(r"^\s*(#|\||\$\$|import |export |:label|:numref|\[\^|={3,}|-{3,}|!!!|\?\?\?|\.\. |<)")
_QUOTES = re.compile('[“”「」『』《》〈〉"]|(?<![a-z])[‘’]|[‘’](?![a-z])')
_NOISE = re.compile(r"[*_~^\\|=<>{}#]|https?://\S+")


def clean(line: str, language: str) -> str:
    """The prose of one line of a page; empty where too little of it is prose."""
    text = _IMAGE.sub("", line)
    text = _LINK.sub(r"\1", text)
    text = _ROLE.sub("x", text)
    text = _MATH.sub("x", text)
    text = _CODE.sub(r"\1", text)
    text = _TAG.sub("", text)
    for _ in range(2):
        text = _BRACKETED.sub("", text)
    text = _LEADING.sub("", text)
    text = _NOISE.sub(" ", text)
    text = _QUOTES.sub("", text.replace("’", "'") if language == "en" else text)
    return re.sub(r"\s+", " ", text).strip()


def _markdown(text: str, language: str) -> Iterator[str]:
    text = _COMMENT.sub("", _FENCE.sub("\n\n", text.replace("\r", "")))
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.split("\n") if line.strip()]
        if not lines or any(_BLOCK.match(line) for line in lines[:1]):
            lines = lines[1:] if lines and re.match(r"^\s*(#|\?\?\?|!!!|\.\. )", lines[0]) else []
        is_list = any(re.match(r"^\s*([-*+]|\d+[.)])\s", line) for line in lines)
        parts = lines if is_list else [(" " if language == "en" else "").join(line.strip() for line in lines)]
        yield from (clean(part, language) for part in parts)


def _treebank(text: str, language: str) -> Iterator[str]:
    """Sentences of one document make a paragraph; in Chinese, where documents are not told, twelve do."""
    paragraph: list[str] = []
    for line in text.split("\n"):
        if line.startswith("# newdoc") or (language == "zh" and len(paragraph) == 12) or len(paragraph) > 40:
            yield (" " if language == "en" else "").join(paragraph)
            paragraph = []
        if line.startswith("# text = "):
            paragraph.append(clean(line[9:], language))
    yield (" " if language == "en" else "").join(paragraph)


def _pairs(text: str, column: int, joint: str) -> Iterator[str]:
    """Single sentences in a shuffled order that is always the same, seven a paragraph; each one once."""
    said = {line.split("\t")[column].strip() for line in text.split("\n") if line.count("\t") >= 2}
    order = sorted(said, key=lambda one: hashlib.sha256(one.encode()).digest())
    for start in range(0, len(order), 7):
        yield joint.join(order[start : start + 7])


TURNS = 14
"""Of a conversation, in one paragraph."""
_TITLE_MARKS = str.maketrans("", "", "【】")
_PARAGRAPH = re.compile(r"<para\b[^>]*>(.*?)</para>", re.S)
_FORMULA = re.compile(r"<m:math\b.*?</m:math>", re.S)
_ASIDE = re.compile(r"<(note|list|footnote|equation|figure|media|table|caption)\b.*?</\1>", re.S)


def _talks(text: str) -> Iterator[str]:
    """Conversations, a turn ending in a period where it has no mark of its own."""
    talks = json.loads(text)
    for talk in talks if isinstance(talks, list) else talks.values():
        said = [one.get("message") or one.get("content") or "" for one in talk["messages"]]
        turns = [clean(one.translate(_TITLE_MARKS), "zh") for one in said]
        ended = [one if one[-1] in "。？！?!~" else one + "。" for one in turns if one]
        for start in range(0, len(ended), TURNS):
            yield "".join(ended[start : start + TURNS])


def _textbook(text: str) -> Iterator[str]:
    """The paragraphs of an OpenStax module (CNXML), formulas as letters."""
    for paragraph in _PARAGRAPH.findall(_ASIDE.sub("", _FORMULA.sub("x", text))):
        yield clean(" ".join(html.unescape(_TAG.sub("", paragraph)).split()), "en")


def _simplified(text: str) -> str:
    import opencc

    return str(opencc.OpenCC("t2s").convert(text))


def paragraphs(source: Source, text: str) -> Iterator[str]:
    """The paragraphs of one page that end in a sentence mark and are long enough."""
    readers = {
        "markdown": lambda: _markdown(text, source.language),
        "treebank": lambda: _treebank(text, source.language),
        "talks": lambda: _talks(text),
        "textbook": lambda: _textbook(text),
        "pairs_zh": lambda: _pairs(_simplified(text), 1, ""),
        "pairs_en": lambda: _pairs(text, 0, " "),
    }
    for paragraph in readers[source.kind]():
        whole = unify(paragraph) if source.language == "zh" else paragraph
        if is_prose(whole, source.language):
            yield whole


_HALF_TO_FULL = str.maketrans({"．": "。", ",": "，", ";": "；", "?": "？", "!": "！", ":": "：", "｡": "。"})
_HAN = re.compile(r"[\u4e00-\u9fff]")
_ENGLISH = re.compile("[A-Za-z ]")


def unify(text: str) -> str:
    """Chinese text with full-width marks and without spaces beside Chinese characters."""
    text = re.sub(r"(?<=[\u4e00-\u9fff])[—–]+", "，", text).replace("……", "").replace("…", "")
    text = re.sub(r"(?<=[^\x00-\x7f])\.(?=\s|$)", "。", text).translate(_HALF_TO_FULL)
    return re.sub(r"(?<=[^\x00-\x7f]) | (?=[^\x00-\x7f])", "", text)


def is_prose(text: str, language: str) -> bool:
    """Whether this is running text: long enough, ended by a mark, most of it letters of its language."""
    if len(text) < SHORTEST_PARAGRAPH[language] or text[-1] not in "。？！?!.":
        return False
    own = len(_HAN.findall(text)) if language == "zh" else len(_ENGLISH.findall(text))
    return own >= (0.7 if language == "zh" else 0.9) * len(text)


def is_held_out(path: str) -> bool:
    """Whole pages are held out, so that no paragraph has a neighbour in the training part."""
    return int(hashlib.sha256(path.encode()).hexdigest(), 16) % 100 < HELD_OUT_PERCENT


def read_source(source: Source, folder: Path) -> Iterator[tuple[str, str]]:
    """(path, text) of each page, out of a git repository's objects."""
    for path in _git(folder, "ls-tree", "-r", "--name-only", "-z", source.commit).split("\0"):
        if re.search(source.pages, path):
            page = _shown(folder, f"{source.commit}:{path}")
            yield path, (_unzipped(page) if path.endswith(".zip") else page).decode("utf-8", "replace")


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def _shown(folder: Path, name: str) -> bytes:
    return subprocess.run(["git", "-C", str(folder), "show", name], capture_output=True, check=True).stdout


def _unzipped(archive: bytes) -> bytes:
    """The only file of an archive."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return opened.read(opened.namelist()[0])


def clone(source: Source, mirror: Path) -> Path:
    """Where its objects lie; cloned from GitHub where ``mirror`` has no copy."""
    folder = mirror / source.repository.replace("/", "+") / "repo"
    if not folder.exists():
        url = f"https://github.com/{source.repository}.git"
        subprocess.run(["git", "clone", "--bare", url, str(folder)], check=True)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--mirror", type=Path, default=Path("corpora"), help="where clones lie or are put")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    texts: dict[tuple[str, str], list[str]] = {}
    for source in SOURCES:
        count = 0
        for path, text in read_source(source, clone(source, arguments.mirror)):
            for number, paragraph in enumerate(paragraphs(source, text)):
                where = path if source.kind in ("markdown", "textbook") else f"{path}:{number // 5}"
                part = "held" if is_held_out(where) else "train"
                texts.setdefault((source.language, part), []).append(paragraph)
                count += len(paragraph)
        print(f"{source.repository} {source.language}: {count} characters", flush=True)
    for (language, part), lines in texts.items():
        (arguments.out / f"{language}.{part}.txt").write_text("\n".join(dict.fromkeys(lines)) + "\n", "utf-8")


if __name__ == "__main__":
    main()
