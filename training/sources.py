"""The public texts that the mark models learn from, with their licences; NOTICE and README.md name them, too."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """Pages of one repository at a commit: ``pages`` is a regular expression over paths, ``kind`` a reader below."""

    repository: str
    commit: str
    language: str
    pages: str
    kind: str
    licence: str


SOURCES = (
    Source(
        "d2l-ai/d2l-zh",
        "e6b18ccea71451a55fcd861d7b96fddf2587b09a",
        "zh",
        r"^chapter_(?!preface|references).*(?<!_origin)\.md$",
        "markdown",
        "Apache-2.0",
    ),
    Source(
        "OI-wiki/OI-wiki",
        "76fa67c1ef16613519ec6c1a4c58857eba8b2a96",
        "zh",
        r"^docs/.*\.md$",
        "markdown",
        "CC BY-SA 4.0",
    ),
    Source(
        "KaiserY/trpl-zh-cn",
        "49df980589ccd5c1b8829b9be47439136dc34101",
        "zh",
        r"^src/.*\.md$",
        "markdown",
        "MIT",
    ),
    Source(
        "microsoft/IoT-For-Beginners",
        "8bd535533b39c8b70e2b027f69e18ac842812968",
        "zh",
        r"^translations/zh/.*\.md$",
        "markdown",
        "MIT",
    ),
    Source(
        "huggingface/course",
        "16af5667532d6966f0fe83f44cc848dd7698a215",
        "zh",
        r"^chapters/zh-CN/.*\.mdx$",
        "markdown",
        "Apache-2.0",
    ),
    Source(
        "reactjs/zh-hans.react.dev",
        "f6cda05526ceff44b24588e9e0c2e2106d4588d4",
        "zh",
        r"^src/content/.*\.md$",
        "markdown",
        "CC BY 4.0",
    ),
    Source(
        "vuejs-translations/docs-zh-cn",
        "c2715ff75bae5376bc5bf212280ae76e30089fbd",
        "zh",
        r"^src/.*\.md$",
        "markdown",
        "CC BY 4.0",
    ),
    Source(
        "pingcap/docs-cn",
        "ae9ab0fd89873986fabc4c8873d77d46ba76f066",
        "zh",
        r"(overview|best-practices|concept|faq|intro|tutorial|design)[^/]*\.md$",
        "markdown",
        "CC BY-SA 3.0",
    ),
    Source(
        "wangdoc/javascript-tutorial",
        "84d50bb63511427d8e3c15e642ba456917e9649e",
        "zh",
        r"^docs/.*\.md$",
        "markdown",
        "CC BY-SA 3.0",
    ),
    Source(
        "UniversalDependencies/UD_Chinese-GSDSimp",
        "eb3aed31ebb170897405ee5cd1db83a1a0b11864",
        "zh",
        r"-(dev|test)\.conllu$",
        "treebank",
        "CC BY-SA 4.0",
    ),
    Source(
        "13luoyu/Transformer-machine-translation",
        "aa43963320ccfacebd1d3542deae559bbca58d03",
        "zh",
        r"^cmn\.txt$",
        "pairs_zh",
        "CC BY 2.0 FR (Tatoeba)",
    ),
    Source(
        "13luoyu/Transformer-machine-translation",
        "aa43963320ccfacebd1d3542deae559bbca58d03",
        "en",
        r"^cmn\.txt$",
        "pairs_en",
        "CC BY 2.0 FR (Tatoeba)",
    ),
    Source(
        "d2l-ai/d2l-en",
        "23d7a5aecceee57d1292c56e90cce307f183bb0a",
        "en",
        r"^chapter_(?!references).*\.md$",
        "markdown",
        "CC BY-SA 4.0",
    ),
    Source(
        "microsoft/IoT-For-Beginners",
        "8bd535533b39c8b70e2b027f69e18ac842812968",
        "en",
        r"^(?!translations).*README\.md$",
        "markdown",
        "MIT",
    ),
    Source(
        "huggingface/course",
        "16af5667532d6966f0fe83f44cc848dd7698a215",
        "en",
        r"^chapters/en/.*\.mdx$",
        "markdown",
        "Apache-2.0",
    ),
    Source(
        "UniversalDependencies/UD_English-EWT",
        "15d613d8447b3478787d4c278730a1e48a945efb",
        "en",
        r"^en_ewt-ud-(dev|test)\.conllu$",
        "treebank",
        "CC BY-SA 4.0",
    ),
    Source(
        "thu-coai/KdConv",
        "653db76432de09a004ba708a68f8bbd5500e6bec",
        "zh",
        r"^data/(film|music|travel)/(dev|test)\.json$",
        "talks",
        "Apache-2.0",
    ),
    Source(
        "thu-coai/CrossWOZ",
        "df82c9fdff91b9b130f2d6b89110d3870ba6260e",
        "zh",
        r"^data/crosswoz/(val|test)\.json\.zip$",
        "talks",
        "Apache-2.0",
    ),
    Source(
        "openstax/osbooks-physics",
        "ff78c7a8150fdda5ed1f786ac59ac25cdd532ef0",
        "en",
        r"^modules/.*\.cnxml$",
        "textbook",
        "CC BY 4.0",
    ),
    Source(
        "openstax/osbooks-principles-economics-bundle",
        "cd31beb103fffbc09cc81ebfe117d8c40cc12d1a",
        "en",
        r"^modules/.*\.cnxml$",
        "textbook",
        "CC BY 4.0",
    ),
)
