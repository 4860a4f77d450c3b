"""Learn the mark models: ``python -m training.train ARRAYS OUT``. Four minutes on a GPU, some hours on two cores."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from training.channel import COLON, COMMA, END, EXCLAMATION, LIST, QUESTION, SEMICOLON, hear
from training.network import MarkNetwork, export

WINDOW = 256
DROP = {"zh": 0.2, "en": 0.3}
"""English has less text to learn from, so it is learnt for a shorter time and with more left out."""
SEED = {"zh": 7, "en": 8}


@dataclass(frozen=True)
class Course:
    """How long and how fast is learnt; what a step sees: so many windows of prose, of made-up lectures, of scripts."""

    steps: int
    prose: int = 20
    spoken: int = 8
    scripts: int = 20
    peak_rate: float = 2e-3


COURSES = {"zh": Course(8000), "en": Course(3500)}
CLASSES = {
    "zh": (0, COMMA, LIST, END, QUESTION, EXCLAMATION, COLON, SEMICOLON),
    "en": (0, COMMA, COLON, END, QUESTION, EXCLAMATION, SEMICOLON),
}
"""The classes of the channel in the order of the model's own."""


class Stream:
    """One part of the corpus end to end on the device; windows are cut out of it at random."""

    def __init__(self, arrays: np.lib.npyio.NpzFile, part: str, language: str, device: str) -> None:
        order = torch.tensor(CLASSES[language], device=device)
        self.ids = torch.tensor(arrays[f"{part}_ids"], device=device).long()
        self.labels = order[torch.tensor(arrays[f"{part}_labels"], device=device).long()]
        shapes = torch.tensor(arrays[f"{part}_shapes"], device=device).long()
        self.endings, self.capitals = shapes[:, 1], shapes[:, 2]

    def windows(self, count: int) -> tuple[Tensor, ...]:
        starts = torch.randint(0, len(self.ids) - WINDOW, (count, 1), device=self.ids.device)
        return self.at(starts + torch.arange(WINDOW, device=self.ids.device)[None])

    def at(self, places: Tensor) -> tuple[Tensor, ...]:
        return self.ids[places], self.labels[places], self.endings[places], self.capitals[places]


def scores(
    network: MarkNetwork, batch: tuple[Tensor, ...], known: dict[str, Tensor], language: str
) -> tuple[Tensor, Tensor, Tensor]:
    """(scores, wanted classes of the model, Whisper's marks as heard)."""
    ids, labels, endings, capitals = batch
    heard = hear(ids, labels, capitals, known["homophones"], known["openers"], language == "zh")
    order = torch.tensor(CLASSES[language], device=ids.device)
    wanted = (labels[..., None] == order).float().argmax(-1)
    given = network(heard.ids, endings, heard.pauses_ms, heard.stretch, heard.marks, heard.capitals)
    return given, wanted, heard.marks


def f1(given: Tensor, wanted: Tensor) -> float:
    """Over the two classes that the benchmark knows, end and comma; both tensors hold classes of the channel."""
    fold = torch.tensor([0, 1, 1, 2, 2, 2, 1, 1], device=given.device)
    a, b = fold[given], fold[wanted]
    right = ((a == b) & (a > 0)).sum()
    return float(2 * right / ((a > 0).sum() + (b > 0).sum()))


def untaught(arrays: np.lib.npyio.NpzFile, language: str) -> MarkNetwork:
    torch.manual_seed(SEED[language])
    return MarkNetwork(language, len(arrays["units"]), len(CLASSES[language]), DROP[language])


def learn(
    network: MarkNetwork, arrays: np.lib.npyio.NpzFile, language: str, course: Course, device: str
) -> MarkNetwork:
    counts = {"train": course.prose, "spoken": course.spoken, "scripts": course.scripts}
    streams = {part: Stream(arrays, part, language, device) for part in (*counts, "held", "held_scripts")}
    known = {name: torch.tensor(arrays[name], device=device) for name in ("homophones", "openers")}
    order = torch.tensor(CLASSES[language], device=device)
    network, steps = network.to(device), course.steps
    optimiser = torch.optim.AdamW(network.parameters(), lr=course.peak_rate, weight_decay=0.02, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, course.peak_rate, total_steps=steps, pct_start=0.1)
    for step in range(steps):
        network.train()
        parts = [streams[part].windows(count) for part, count in counts.items()]
        batch = tuple(torch.cat(each) for each in zip(*parts, strict=True))
        with torch.autocast(device, torch.bfloat16):
            given, wanted, _ = scores(network, batch, known, language)
        loss = torch.nn.functional.cross_entropy(given.float().flatten(0, 1), wanted.flatten())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % max(1, steps // 8) == 0 or step == steps - 1:
            network.eval()
            print(f"{language} step {step} loss {float(loss):.4f}")
            for part in ("held", "held_scripts"):
                with torch.no_grad():
                    given, wanted, whisper = scores(network, streams[part].windows(100), known, language)
                own = f1(order[given.argmax(-1)], order[wanted]), f1(whisper, order[wanted])
                print(f"  {part}: F1 {own[0]:.4f}, Whisper's {own[1]:.4f}", flush=True)
    return network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("arrays", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--language", choices=("zh", "en"))
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for language in [arguments.language] if arguments.language else ["zh", "en"]:
        arrays = np.load(arguments.arrays / f"{language}.npz")
        network = learn(untaught(arrays, language), arrays, language, COURSES[language], device)
        arguments.out.mkdir(parents=True, exist_ok=True)
        weights = export(network.eval(), arrays["units"])
        np.savez_compressed(arguments.out / f"marks.{language}.npz", **weights)  # type: ignore[arg-type, unused-ignore]


if __name__ == "__main__":
    main()
