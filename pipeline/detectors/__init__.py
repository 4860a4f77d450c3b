"""Voice-activity detectors: audio blocks in, a speech probability per frame out. ``speech.py`` turns them into spans."""
