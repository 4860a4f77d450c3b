"""Brings media to Kafka as their courses want them now: what is done under the present fingerprints is left alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pipeline.admission import opened
from pipeline.postprocess import Glossary
from pipeline.publishing import PublishingOptions, PublishingTools, publish_media, publishing_options
from pipeline.store_line import LineStore
from pipeline.subtitle_profiles import SubtitleProfile
from pipeline.values import Media, MediaPlan

Headers = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Present:
    """What the fingerprints of any media depend on now, beside its content. For one task: courses are read once."""

    store: LineStore
    detector_fingerprint: str
    model: str
    _courses: dict[str, tuple[Glossary, SubtitleProfile]] = field(default_factory=dict, repr=False)

    def options(self, media: Media, headers: Headers = ()) -> PublishingOptions:
        """Those of a probed, recorded media."""
        if media.course_id not in self._courses:
            course_id = media.course_id
            self._courses[course_id] = self.store.glossary(course_id), self.store.profile(course_id)
        glossary, profile = self._courses[media.course_id]
        return publishing_options(
            media,
            glossary,
            detector_fingerprint=self.detector_fingerprint,
            model=self.model,
            asked=self.store.asked(media.media_id),
            headers=headers,
            profile=profile,
        )


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of one media."""

    plan: MediaPlan
    slices: int
    """How many were sent; the others were transcribed already."""
    stale: str
    """The run key of the result that stands there until the new one is made; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes one media after the other."""

    tools: PublishingTools
    present: Present
    say: Callable[[str], None]

    def publish(self, media_id: str, *, force: bool = False, headers: Headers = ()) -> Sent | None:
        """Send what the media lacks. None, with nothing sent, where its result is there and no ``force`` is used.

        By ``force`` everything is transcribed anew. Raises InvalidInputError where the media is at fault, which is
        recorded by then, and RetriableError where the surroundings are.
        """
        store = self.tools.store
        with opened(store.media(media_id), store) as found:
            options = self.present.options(found.media, headers)
            if force:
                store.forget_work(media_id, options.slicing, options.asr)
            stale = store.stored_fingerprint(media_id)
            if stale == options.result:
                store.begin_slicing(found.media, options.slicing, options.asr)
                return None
            published = publish_media(found, options, self.tools, self.say)
        return Sent(published.plan, published.sent, stale)
